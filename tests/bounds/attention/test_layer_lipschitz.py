"""The layer's constant from those of its heads, on linear heads."""

import numpy as np

from attlas.bounds.attention import layer_lipschitz as module
from attlas.bounds.attention.layer_lipschitz import layer_lipschitz


def test_both_sums_bound_the_sum_of_maps():
    rng = np.random.default_rng(0)
    inner, outer = rng.normal(size=(3, 2, 8)), rng.normal(size=(3, 6, 2))
    total = np.linalg.norm(sum(o @ i for o, i in zip(outer, inner, strict=True)), 2)
    heads = [np.linalg.norm(o @ i, 2) for o, i in zip(outer, inner, strict=True)]
    before = np.linalg.norm(inner, 2, axis=(1, 2))
    stacked = np.linalg.norm(np.concatenate(list(outer), axis=1), 2)
    assert total <= layer_lipschitz(heads) * (1 + 1e-12)
    assert total <= layer_lipschitz(heads, before, stacked) <= layer_lipschitz(heads)


def test_layers_take_the_smaller_sum_with_its_allowance(coarse_rounding):
    eps = coarse_rounding(module, 1e-3)
    heads, before, norm = [[3.0, 4.0, 5.0], [1.0, 2.0, 2.5]], [[2.0, 3.0, 6.0]] * 2, [1.5, 1.1]
    expected = np.array([min(12.0, 1.5 * 7), min(5.5, 1.1 * 7)]) * (1 + (2 * 3 + 16) * eps)
    np.testing.assert_allclose(layer_lipschitz(heads, before, norm), expected, rtol=1e-14)
    alone = np.array([12.0, 5.5]) * (1 + 22 * eps)
    for given in ((heads,), (heads, before), (heads, None, norm)):
        np.testing.assert_allclose(layer_lipschitz(*given), alone, rtol=1e-14)
