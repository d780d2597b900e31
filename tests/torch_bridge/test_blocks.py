"""Blocks and their dual norms."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra attlas[torch] is not installed")

from attlas.core.errors import UserError  # noqa: E402
from attlas.torch.blocks import (  # noqa: E402
    CHUNK,
    block_scales,
    block_views,
    dual_norm,
    require_block,
)


@pytest.mark.parametrize("p", [1.1, 1.5, 2.0, 3.0, 10.0])
def test_dual_norms_agree_with_numpy_and_neither_overflow_nor_underflow(p):
    x = np.random.default_rng(0).normal(size=50)
    q = p / (p - 1)
    expected = np.sum(np.abs(x) ** q) ** (1 / q)
    for scale in (1.0, 1e-300, 1e300):
        found = dual_norm(torch.tensor(x) * scale, p).item()
        # Fifty powers and their sum; the root divides what they err by q >= 1.
        assert found == pytest.approx(expected * scale, rel=60 * 2**-52)


@pytest.mark.parametrize("p", [1.5, 3.0])
def test_pieces_of_a_long_tensor_add_up(p):
    x = np.random.default_rng(0).normal(size=(2, CHUNK // 2 + 7))
    q = p / (p - 1)
    expected = np.sum(np.abs(x) ** q) ** (1 / q)
    for given in (torch.tensor(x), torch.tensor(x.T.copy()).T):
        # Sums by pairs, of some twenty levels.
        assert dual_norm(given, p).item() == pytest.approx(expected, rel=60 * 2**-52)
    x[1, -1] = np.nan
    assert torch.isnan(dual_norm(torch.tensor(x), p))


@pytest.mark.parametrize("p", [1.1, 1.5, 1.75, 2.0, 3.0, 5.0, 9.0])
def test_norms_of_float32_by_roots_and_products_agree_with_float64(p):
    x = np.random.default_rng(0).normal(size=CHUNK + 7).astype(np.float32)
    x[::3] = 0.0
    q = p / (p - 1)
    expected = np.sum(np.abs(x).astype(np.float64) ** q) ** (1 / q)
    # At most eleven products and three roots of an entry; sums by pairs, of some twenty levels.
    assert dual_norm(torch.tensor(x), p).item() == pytest.approx(expected, rel=60 * 2**-24)
    x[5] = np.nan
    assert torch.isnan(dual_norm(torch.tensor(x), p))
    assert dual_norm(torch.zeros(3), p).item() == 0


def test_an_interleaved_tensor_is_cut_head_by_head():
    rows = torch.arange(12).view(12, 1)  # two heads of query, key and value with two rows each
    found = [view.flatten().tolist() for view in block_views(rows, (0, 2, (2, 2, 2)))]
    assert found == [[0, 1, 6, 7], [2, 3, 8, 9], [4, 5, 10, 11]]


def test_blocks_are_scaled_by_their_own_norm_or_by_that_of_all():
    grads = [[torch.tensor([3.0, 4.0])], [torch.tensor([0.0, 12.0])], [torch.zeros(2)]]
    apart = [row[0].item() for row in block_scales(grads, 2.0, "tensor", 0.0, None)]
    joined = [row[0].item() for row in block_scales(grads, 2.0, None, 0.0, None)]
    assert apart == pytest.approx([1 / 5, 1 / 12, 0.0])
    assert joined == pytest.approx([1 / 13] * 3)


@pytest.mark.parametrize("block", [3, (0, 1), (0, 1, (2, 0)), (-1, 1, (2,)), (0, 1.0, (2,))])
def test_what_is_no_block_is_refused(block):
    with pytest.raises(UserError, match="give None, 'tensor' or"):
        require_block(block, [(2, 2)])
