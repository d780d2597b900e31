import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.data.sparse_majority import BitEmbedding, MajorityDesign, make_sparse_majority
from trauger2023sequence.library.models.majority_attention import (
    MajorityAttention,
    make_majority_attention,
)
from trauger2023sequence.library.sparse_majority.table import majority_table, table_logits

EPS = float(np.finfo(float).eps)
D, KEY_DIM, T, N = 8, 3, 7, 6
DATA = make_sparse_majority(
    jax.random.key(0), T, MajorityDesign(train=N, validation=1, indices=3, dimension=D), "float64"
)


def model_of(scale):
    """A model with biases; the scale sets how far attention is from uniform."""
    model = make_majority_attention(jax.random.key(1), D, 2, KEY_DIM, "float64")
    draw = np.random.default_rng(2)
    model = jax.tree.map(lambda a: a + 0.3 * draw.normal(size=a.shape), model)
    return jax.tree.map(lambda a: scale * a, model)


def plain_logits(model: MajorityAttention, bits):
    return jax.vmap(model)(jax.vmap(DATA.embedding)(bits))


def both(model):
    """Logits and the gradient of a function that weighs all of them, in both orders."""
    mix = jnp.asarray(np.random.default_rng(3).normal(size=(N, 2)))
    found = []
    for logits in (
        plain_logits,
        lambda m, bits: table_logits(majority_table(m, DATA.embedding), bits),
    ):

        def value(model, logits=logits):
            out = logits(model, DATA.bits)
            return jnp.sum(mix * out), out

        (_, out), slope = jax.jit(jax.value_and_grad(value, has_aux=True))(model)
        found.append((out, slope))
    return found


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
def test_outputs_and_gradients_are_those_of_the_plain_model(scale):
    model = model_of(scale)
    (plain, plain_slope), (fast, fast_slope) = both(model)
    rounding = 1e2 * D * T * EPS
    np.testing.assert_allclose(fast, plain, rtol=0, atol=rounding * np.abs(plain).max())
    largest = max(float(jnp.max(jnp.abs(a))) for a in jax.tree.leaves(plain_slope))
    # Scores of size `scale`^2 D pass an exponential: their rounding is relative to them.
    for mine, theirs in zip(jax.tree.leaves(fast_slope), jax.tree.leaves(plain_slope), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=rounding * (1 + scale**2) * largest)
    assert not jnp.any(fast_slope.key[1])


@pytest.mark.thorough
def test_scores_of_hundreds_do_not_overflow():
    model = model_of(1.0)
    sharp = MajorityAttention(
        tuple(300 * a for a in model.query), model.key, model.value, model.output,
        model.dense, model.readout,
    )  # fmt: skip
    fast = table_logits(majority_table(sharp, DATA.embedding), DATA.bits)
    plain = plain_logits(sharp, DATA.bits)
    scores = np.abs(np.einsum("td,dhk->thk", DATA.embedding.positions, sharp.query[0])).max()
    assert scores > 100
    # A score of s is known to s eps, and so is the exponential of its difference.
    assert jnp.max(jnp.abs(fast - plain)) < 1e2 * D * scores * EPS * jnp.max(jnp.abs(plain))


@pytest.mark.parametrize(
    ("places", "offsets"),
    [
        (slice(-1), (2e3, 0)),
        (slice(-1), (-2e3, 0)),
        (slice(-1), (0, 2e3)),
        (slice(-1), (0, -2e3)),
        (slice(-1), (2e3, -2e3)),
        (slice(-2, -1), (2e3, 0)),
    ],
)
def test_a_score_common_to_places_or_to_both_bits_does_not_overflow(places, offsets):
    """Tokens and [CLS] lie 2000 apart, or their parts do, or the last place alone."""
    model, embedding = model_of(1.0), jax.tree.map(np.asarray, DATA.embedding)
    query = np.einsum("d,dhk->hk", embedding.cls + embedding.positions[-1], model.query[0])
    reading = np.einsum("dhk,hk->hd", model.key[0], query + model.query[1]) / KEY_DIM**0.5
    of_places, of_bits = (np.linalg.pinv(reading) @ [score, 1.1 * score] for score in offsets)
    positions = embedding.positions.copy()
    positions[places] += of_places
    parts = (embedding.zero + of_bits, embedding.one + of_bits, embedding.cls, positions)
    moved = BitEmbedding(*map(jnp.asarray, parts))
    fast = table_logits(majority_table(model, moved), DATA.bits)
    plain = jax.vmap(model)(jax.vmap(moved)(DATA.bits))
    assert jnp.max(jnp.abs(fast - plain)) < 1e2 * D * 2.2e3 * EPS * jnp.max(jnp.abs(plain))
