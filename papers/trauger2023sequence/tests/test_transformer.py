import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas._jax.device_arrays import generator
from attlas.core.errors import UserError
from attlas.models.networks.single_layer_transformer import SingleLayerTransformer
from trauger2023sequence.library.models.transformer import (
    Layer,
    Transformer,
    masked_word_readout,
    pi_norm,
    scalar_readout,
)

EPS = np.finfo(float).eps
DRAWS = generator(jax.random.key(0))
T, d, k, H, L = 5, 3, 4, 2, 2
X = DRAWS.standard_normal((T, d))
W_QK, W_V, W_C = (DRAWS.standard_normal((L, H, *s)) for s in ((d, d), (d, k), (k, d)))
w = DRAWS.standard_normal(d)
MODEL = Transformer(
    tuple(Layer(*map(jnp.asarray, each)) for each in zip(W_QK, W_V, W_C, strict=True))
)


def _softmax(logits):
    weights = np.exp(logits)
    return weights / weights.sum()


def _unit_ball(y):
    length = np.linalg.norm(y)
    return y / length if length > 1 else y


def _reference():
    """Section 2.6 with loops over layers, heads and tokens."""
    rows = X
    for layer in range(L):
        out = np.zeros((T, d))
        for head in range(H):
            logits = rows @ W_QK[layer, head] @ rows.T
            for t in range(T):
                mixed = _softmax(logits[t]) @ rows @ W_V[layer, head]
                out[t] += np.maximum(_unit_ball(mixed), 0) @ W_C[layer, head]
        rows = np.stack([_unit_ball(row) for row in out])
    return rows


@pytest.mark.thorough
def test_block_and_readouts_agree_with_loops():
    expected = _reference()
    # Two layers of inner products of at most five terms; logits up to ten pass an exponential.
    tolerance = 1000 * EPS
    np.testing.assert_allclose(MODEL(jnp.asarray(X)), expected, atol=tolerance)
    for position in (0, jnp.array(4)):
        found = scalar_readout(MODEL, jnp.asarray(w), jnp.asarray(X), position)
        assert abs(float(found) - w @ expected[int(position)]) < tolerance * np.abs(w).sum()


def test_masked_word_is_replaced_and_not_read():
    mask, W = jnp.asarray(X[0] / 2), jnp.asarray(W_C[0, 0])
    scores = masked_word_readout(MODEL, W, mask, jnp.asarray(X), 2)
    changed = jnp.asarray(X).at[2].set(7.0)
    np.testing.assert_array_equal(scores, masked_word_readout(MODEL, W, mask, changed, 2))
    whole = MODEL(jnp.asarray(X).at[2].set(mask))
    np.testing.assert_allclose(scores, W @ whole[2], atol=1000 * EPS)
    with pytest.raises(UserError, match="position 5 is outside"):
        masked_word_readout(MODEL, W, mask, jnp.asarray(X), 5)


def test_order_of_the_other_tokens_does_not_matter():
    order = np.array([0, 3, 1, 4, 2])
    one, other = (scalar_readout(MODEL, jnp.asarray(w), jnp.asarray(x)) for x in (X, X[order]))
    assert abs(float(one - other)) < 1000 * EPS * np.abs(w).sum()


def test_pi_norm_is_the_projection_on_the_unit_ball():
    rows = jnp.asarray(3 * DRAWS.standard_normal((50, d)))
    found = pi_norm(rows)
    assert float(jnp.max(jnp.linalg.norm(found, axis=1))) <= 1 + 4 * EPS
    # Obtuse angles with every point of the ball: <y - Pi y, z - Pi y> <= 0, z = Pi of the others.
    angles = jnp.einsum("id,ijd->ij", rows - found, found[None, :, :] - found[:, None, :])
    assert float(jnp.max(angles)) < 100 * EPS
    inside = rows / 20
    kept = jnp.linalg.norm(inside, axis=1) <= 1
    np.testing.assert_array_equal(pi_norm(inside)[kept], inside[kept])
    assert np.all(np.isfinite(jax.jit(jax.jacobian(pi_norm))(jnp.zeros(d))))


def test_single_layer_agrees_with_the_printed_formula():
    model = SingleLayerTransformer(
        jnp.asarray(w), *(jnp.asarray(each[0]) for each in (W_QK, W_V, W_C))
    )
    expected = 0.0
    for W_qk, W_v, W_c in zip(W_QK[0], W_V[0], W_C[0], strict=True):
        pooled = X.T @ _softmax(X @ (W_qk @ X[0]))
        expected += w @ W_c.T @ np.maximum(W_v.T @ pooled, 0)
    assert abs(float(model(jnp.asarray(X), jnp.asarray(X[0]))) - expected) < 1000 * EPS


def test_with_norms_of_columns_the_printed_transpose_exceeds_the_factor_of_the_proof():
    """||W_c'||_{1,inf} <= 1, columns first, allows |w' W_c' h| = k, not max |h_i| = 1."""
    W_c = jnp.zeros((k, d)).at[:, 0].set(1)
    printed, used = (jnp.max(jnp.sum(jnp.abs(W_c), axis=axis)) for axis in (1, 0))
    assert (float(printed), float(used)) == (1, k)
    assert float(jnp.eye(d)[0] @ W_c.T @ jnp.ones(k)) == k
