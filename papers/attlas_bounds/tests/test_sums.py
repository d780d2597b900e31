import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas_bounds.library.addition.sums import draw_additions


@pytest.mark.parametrize("digits", [1, 3, 10])
def test_sums_are_those_of_whole_numbers(digits):
    drawn = draw_additions(np.random.default_rng(digits), 500, digits)
    value = 10 ** np.arange(digits + 1, dtype=np.int64)
    a, b = np.moveaxis(drawn.operands, -1, 0)
    assert (a @ value + b @ value == drawn.sums @ value).all()
    assert drawn.operands[:, -1].max() == 0
    assert set(np.unique(drawn.operands[:, 0])) == set(range(10))


@pytest.mark.parametrize(("n", "digits"), [(0, 3), (3, 0)])
def test_nothing_to_draw_is_one_line(n, digits):
    with pytest.raises(UserError, match=f"{n} sums of {digits} digits: choose at least 1"):
        draw_additions(np.random.default_rng(0), n, digits)
