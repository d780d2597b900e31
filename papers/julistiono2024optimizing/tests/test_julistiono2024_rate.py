import numpy as np
import pytest

from julistiono2024optimizing.library.token_selection.julistiono2024_rate import julistiono2024_rate


@pytest.mark.parametrize(
    ("p", "expected"), [(1.5, np.exp(-1.0)), (2.0, 4 / np.e**2), (3.0, 2 / np.e**2)]
)
def test_the_three_rates_at_e_squared(p, expected):
    found = julistiono2024_rate(np.array([np.e**2]), p)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
