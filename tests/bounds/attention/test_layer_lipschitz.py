"""The layer's constant from those of its heads, on linear heads."""

import numpy as np

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
