"""The largest logit, against singular vectors."""

import numpy as np

from attlas.bounds.attention import largest_logit as module
from attlas.bounds.attention.largest_logit import largest_logit


def test_singular_vectors_attain_it():
    A = np.random.default_rng(0).normal(size=(4, 4))
    U, s, Vt = np.linalg.svd(A)
    logit = 9 * U[:, 0] @ A @ Vt[0]
    bound = float(largest_logit(s[0], 3.0))
    np.testing.assert_allclose(bound, logit, rtol=1e-13)
    assert largest_logit(s[0], 3.0, 1.0, 2.0, 0.5) > bound + 9.4


def test_every_term_and_the_allowance(coarse_rounding):
    eps = coarse_rounding(module, 1e-3)
    found = float(largest_logit(0.7, 3.0, 1.3, 2.1, 0.4))
    np.testing.assert_allclose(
        found, (9 * 0.7 + 3 * 1.3 + 3 * 2.1 + 0.4) * (1 + 8 * eps), rtol=1e-14
    )
