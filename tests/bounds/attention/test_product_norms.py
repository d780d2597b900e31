"""Certified norms of products, against NumPy's singular values of the product itself."""

import numpy as np

from attlas.bounds.attention import product_norms as module
from attlas.bounds.attention.product_norms import bias_norms, product_norms


def test_norms_of_every_head_are_upper_and_close():
    rng = np.random.default_rng(1)
    L, R, b = rng.normal(size=(3, 9, 4)), rng.normal(size=(3, 6, 4)), rng.normal(size=(3, 4))
    exact = np.linalg.norm(L @ np.swapaxes(R, 1, 2), 2, axis=(1, 2))
    found = np.asarray(product_norms(L, R))
    assert np.all(found >= exact * (1 - 1e-15))
    np.testing.assert_allclose(found, exact, rtol=1e-11)
    lengths = np.linalg.norm(np.einsum("hdk,hk->hd", L, b), axis=1)
    found = np.asarray(bias_norms(L, b))
    assert np.all(found >= lengths)
    np.testing.assert_allclose(found, lengths, rtol=1e-13)


def test_biases_are_raised_by_the_rounding_of_each_product(coarse_rounding):
    rng, eps = np.random.default_rng(2), coarse_rounding(module, 1e-3)
    W, b = rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 3))
    for found, matrix, bias in zip(bias_norms(W, b), W, b, strict=True):
        upper = np.abs(matrix @ bias) + (3 + 8) * eps * np.abs(matrix) @ np.abs(bias)
        np.testing.assert_allclose(found, np.linalg.norm(upper) * (1 + (5 + 24) * eps), rtol=1e-13)
