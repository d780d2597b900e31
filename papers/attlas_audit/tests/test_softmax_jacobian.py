"""The bound on the softmax's Jacobian, against eigenvalues."""

import numpy as np

from attlas_audit.library.bounds.softmax_jacobian import yudin2025_jacobian


def test_random_laws_stay_below_and_two_tokens_attain():
    laws = np.random.default_rng(0).dirichlet(0.4 * np.ones(5), 300)
    norms = [np.linalg.norm(np.diag(p) - np.outer(p, p), 2) for p in laws]
    assert np.all(np.asarray(yudin2025_jacobian(laws)) >= norms)
    p = np.array([0.7, 0.3])
    exact = np.linalg.norm(np.diag(p) - np.outer(p, p), 2)
    np.testing.assert_allclose(yudin2025_jacobian(p), exact, rtol=1e-14)
