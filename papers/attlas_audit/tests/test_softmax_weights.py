"""The ceiling of a weight among bounded logits."""

import numpy as np

from attlas_audit.library.softmax_weights import repeated_token_ceiling, yudin2025_jacobian


def test_one_logit_against_all_others_attains_it():
    z = np.array([2.0, -2, -2, -2, -2])
    p = np.exp(z) / np.exp(z).sum()
    np.testing.assert_allclose(repeated_token_ceiling(2.0, 5), p[0], rtol=1e-13)
    assert float(repeated_token_ceiling(2.0, 1)) >= 1


def test_random_laws_stay_below_and_two_tokens_attain():
    laws = np.random.default_rng(0).dirichlet(0.4 * np.ones(5), 300)
    norms = [np.linalg.norm(np.diag(p) - np.outer(p, p), 2) for p in laws]
    assert np.all(np.asarray(yudin2025_jacobian(laws)) >= norms)
    p = np.array([0.7, 0.3])
    exact = np.linalg.norm(np.diag(p) - np.outer(p, p), 2)
    np.testing.assert_allclose(yudin2025_jacobian(p), exact, rtol=1e-14)
