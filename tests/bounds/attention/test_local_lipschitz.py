"""The local certificate against the Jacobian by finite differences and by differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.attention.local_lipschitz import local_lipschitz
from attlas.core.errors import UserError
from attlas_audit.heads import Head, attend, certificate, jacobian_norm, small_heads

BATCH = small_heads(np.random.default_rng(5), 60)
X = jnp.asarray(BATCH["X"])
HEADS = Head(*(jnp.asarray(BATCH[name]) for name in Head._fields))


def one(place):
    return jax.tree.map(lambda leaf: leaf[place], HEADS), X[place]


@pytest.mark.thorough
@pytest.mark.parametrize("place", [0, 1])
def test_jacobian_agrees_with_finite_differences(place):
    head, x = one(place)
    step = 1e-6
    columns = []
    for move in np.eye(x.size).reshape(-1, *x.shape):
        ends = [attend(head, x + sign * step * move)[0] for sign in (1, -1)]
        columns.append(np.asarray((ends[0] - ends[1]) / (2 * step)).ravel())
    norm = np.linalg.norm(np.stack(columns, axis=1), 2)
    # A central difference is off by step^2 and by eps over step.
    np.testing.assert_allclose(jacobian_norm(head, x), norm, rtol=1e-7)


def test_certificate_is_not_passed_and_attained_by_a_sink():
    norms = np.asarray(jax.jit(jax.vmap(jacobian_norm))(HEADS, X))
    bound = np.asarray(jax.jit(jax.vmap(lambda h, x: certificate(h, x).total))(HEADS, X))
    ratio = norms / bound
    assert ratio.max() <= 1
    assert ratio[2::6].min() > 0.999
    assert ratio.min() > 0.05


@pytest.mark.thorough
def test_moments_bound_the_eigenvalues_from_above():
    head, x = one(0)
    _, (P, q, k, v) = attend(head, x)
    given = (P, q, k, v, head.W_Q, head.W_K, head.W_V, head.W_O, 1.0)
    exact = local_lipschitz(*given)
    for squarings, factor in ((1, 5**0.5), (4, 5 ** (1 / 16))):
        rough = local_lipschitz(*given, squarings=squarings)
        assert exact.total <= rough.total * (1 + 1e-9)
        assert rough.total <= exact.total * factor * 1.0001
    with pytest.raises(UserError, match="squarings = 0"):
        local_lipschitz(*given, squarings=0)
