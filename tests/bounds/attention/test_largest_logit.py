"""The largest logit, against singular vectors."""

import numpy as np

from attlas.bounds.attention.largest_logit import largest_logit


def test_singular_vectors_attain_it():
    A = np.random.default_rng(0).normal(size=(4, 4))
    U, s, Vt = np.linalg.svd(A)
    logit = 9 * U[:, 0] @ A @ Vt[0]
    bound = float(largest_logit(s[0], 3.0))
    np.testing.assert_allclose(bound, logit, rtol=1e-13)
    assert largest_logit(s[0], 3.0, 1.0, 2.0, 0.5) > bound + 9.4
