import numpy as np
import pytest

from julistiono2024optimizing.library.token_selection.julistiono2024_rate import julistiono2024_rate


@pytest.mark.parametrize(
    ("p", "expected"), [(1.5, np.exp(-1.0)), (2.0, 4 / np.e**2), (3.0, 2 / np.e**2)]
)
def test_the_three_rates_at_e_squared(p, expected):
    found = julistiono2024_rate(np.array([np.e**2]), p)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("p", "x", "expected"),
    [
        (1.1, [1.0, 1024.0], [1.0, 0.5]),
        (1.5, [4.0, 100.0, 1e4], [0.5, 0.1, 0.01]),
        (2.0, [np.e, np.e**10], [1 / np.e, 100 / np.e**10]),
        (2.5, [np.e, np.e**10], [1 / np.e, 10 / np.e**10]),
        (8.0, [np.e**3], [3 / np.e**3]),
    ],
)
def test_rates_by_hand(p, x, expected):
    np.testing.assert_allclose(julistiono2024_rate(np.array(x), p), expected, rtol=1e-13)
