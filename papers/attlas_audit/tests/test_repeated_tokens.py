"""The ceiling of a weight among bounded logits."""

import numpy as np

from attlas_audit.library.bounds.repeated_tokens import repeated_token_ceiling


def test_one_logit_against_all_others_attains_it():
    z = np.array([2.0, -2, -2, -2, -2])
    p = np.exp(z) / np.exp(z).sum()
    np.testing.assert_allclose(repeated_token_ceiling(2.0, 5), p[0], rtol=1e-13)
    assert float(repeated_token_ceiling(2.0, 1)) >= 1
