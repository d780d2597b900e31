"""Certificates against the exact Jacobian of the model's own forward pass."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_transformer import random_attention

from attlas.audit.data_level.head_attack import ball_attack, local_attack
from attlas.audit.data_level.head_certificate import local_certificate
from attlas.audit.data_level.reduced_heads import head_maps, read_rows, reduce_heads
from attlas.bounds.attention.ball_lipschitz import ball_lipschitz
from attlas.bounds.attention.local_lipschitz import local_lipschitz
from attlas.transformers.forward import attention_weights, head_outputs, visible

T, D = 5, 6
KINDS = [
    {},
    {"causal": False},
    {"rotary": True},
    {"rotary": True, "causal": False},
    {"norms": True, "rotary": True},
    {"softcap": 0.7, "rotary": True, "causal": False},
    {"softcap": 0.7},
    {"relative": True, "causal": False},
]


@jax.jit
def exact_norms(attention, x):
    """The spectral norm of each head's Jacobian, from the canonical form, d x d and all."""

    def output(x):
        return head_outputs(attention, attention_weights(attention, x), x)

    J = jax.jit(jax.jacfwd(output))(x)
    return jnp.linalg.norm(J.reshape(J.shape[0], T * D, T * D), 2, axis=(1, 2))


@jax.jit
def reduced(attention, x):
    """Local certificates and attacks of all heads."""
    heads = reduce_heads(attention)
    seen = visible(attention, T)

    def one(head, y):
        start = jax.random.normal(jax.random.key(0), y.shape)
        gain, _ = local_attack(attention, head, y, seen, start, 200)
        return local_certificate(attention, head, y, seen), gain

    return jax.vmap(one)(heads, read_rows(heads, x))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_attack_finds_the_norm_and_the_certificate_holds(kind):
    draw = np.random.default_rng(6)
    for size in (0.3, 1.0, 3.0):
        attention = random_attention(draw, **kind)
        x = jnp.asarray(size * draw.normal(size=(T, D)))
        exact = exact_norms(attention, x)
        certificate, attack = reduced(attention, x)
        # Bases and products of a few dozen terms.
        room = 1e4 * np.finfo(float).eps
        assert np.all(exact <= certificate * (1 + room)), (exact, certificate)
        assert np.all(attack <= exact * (1 + room))
        # From a random start sigma^2 is missed by at most .871 log(n) / (steps - 1) in the mean,
        # 1.5 % for n = 30 and 200 steps, whatever the gap (Kuczynski and Wozniakowski, 1992).
        assert np.all(attack >= 0.98 * exact)


@pytest.mark.thorough
def test_one_token_attains_the_certificate():
    """A single visible token: P = 1, no spread, and the head is its value matrix."""
    draw = np.random.default_rng(7)
    attention = random_attention(draw, H=1)
    heads = jax.tree.map(lambda a: a[0], reduce_heads(attention))
    y = jnp.asarray(draw.normal(size=(1, heads.W_Q.shape[0])))
    found = local_certificate(attention, heads, y, jnp.ones((1, 1), bool))
    exact = np.linalg.norm(attention.W_V[0] @ attention.W_O[0], 2)
    assert np.isclose(found, exact, rtol=1e-12)


@pytest.mark.thorough
def test_a_head_without_queries_attains_the_certificate():
    """Weights that do not move: J = P (x) V, and the two other parts vanish."""
    draw = np.random.default_rng(7)
    attention = random_attention(draw)
    still = eqx.tree_at(lambda a: (a.W_Q, a.b_Q), attention, replace_fn=jnp.zeros_like)
    x = jnp.asarray(draw.normal(size=(T, D)))
    certificate, _ = reduced(still, x)
    assert np.allclose(exact_norms(still, x), certificate, rtol=1e-12)


def test_a_part_of_the_certificate_alone_is_none():
    """The control: without the paths through queries and keys the bound is violated."""
    draw = np.random.default_rng(7)
    attention = random_attention(draw)
    x = jnp.asarray(2 * draw.normal(size=(T, D)))
    weights = attention_weights(attention, x)
    values = attention.W_V[jnp.array(attention.group)] @ attention.W_O
    through = jnp.linalg.norm(values, 2, axis=(1, 2)) * jnp.linalg.norm(weights, 2, axis=(1, 2))
    assert np.any(exact_norms(attention, x) > 2 * through)


@pytest.mark.thorough
def test_a_cap_needs_a_bound_of_its_own():
    """The control: the covariance of values and keys bounds no head whose logits are capped."""
    draw = np.random.default_rng(1)
    largest, plain = 0.0, 0.0
    for _ in range(10):
        attention = random_attention(draw, softcap=0.7, causal=False)
        attention = eqx.tree_at(lambda a: a.b_K, attention, 10 * attention.b_K)
        x = jnp.asarray(draw.normal(size=(T, D)))
        exact = exact_norms(attention, x)
        largest = max(largest, float(jnp.max(exact / reduced(attention, x)[0])))
        plain = max(plain, float(jnp.max(exact / covariance_bounds(attention, x))))
    assert largest < 1 < plain


@jax.jit
def covariance_bounds(attention, x):
    """What the certificate of a head without a cap says of the weights of one with a cap."""
    seen = visible(attention, T)

    def one(head, y):
        queries, keys, weights = head_maps(attention, head, y, seen)
        unit = jnp.eye(head.W_V.shape[1])
        maps = (head.W_Q, head.W_K, head.W_V, unit)
        return local_lipschitz(
            weights, queries, keys, y @ head.W_V, *maps, attention.scale, squarings=8
        ).total

    heads = reduce_heads(attention)
    return jax.vmap(one)(heads, read_rows(heads, x))


def certified_in_ball(attention, radius):
    """The formula on norms of dense matrices, larger ones where positions rotate."""
    group = np.array(attention.group)
    A = attention.scale * attention.W_Q @ jnp.swapaxes(attention.W_K[group], -1, -2)
    norm, s = np.linalg.norm, attention.scale
    ends = [norm(W, 2, axis=(1, 2)) for W in (attention.W_Q, attention.W_K[group])]
    biases = [norm(b, axis=1) for b in (attention.b_Q, attention.b_K[group])]
    core = norm(A, 2, axis=(1, 2)) if attention.rotary is None else s * ends[0] * ends[1]
    values = norm(attention.W_V[group] @ attention.W_O, 2, axis=(1, 2))
    query = 0.0 if attention.rotary is None else s * ends[0] * biases[1]
    return ball_lipschitz(values, core, radius, T, s * ends[1] * biases[0], query)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [*KINDS[:4], KINDS[-1]], ids=str)
def test_ball_certificate_holds_where_the_ascent_ends(kind):
    draw = np.random.default_rng(8)
    attention = random_attention(draw, **kind)
    heads, seen, radius = reduce_heads(attention), visible(attention, T), 1.5
    x = jnp.asarray(draw.normal(size=(T, D)))

    @jax.jit
    def both(heads, y):
        def one(head, y):
            u = jax.random.normal(jax.random.key(1), y.shape)
            best = ball_attack(attention, head, y, seen, radius, u, 60)
            start, _ = local_attack(attention, head, y, seen, u, 60)
            return best, local_certificate(attention, head, best.tokens, seen), start

        return jax.vmap(one)(heads, y)

    y = read_rows(heads, x)
    y = y * jnp.minimum(1, radius / jnp.linalg.norm(y, axis=-1, keepdims=True))
    best, local, start = both(heads, y)
    ball = certified_in_ball(attention, radius)
    assert np.all(jnp.linalg.norm(best.tokens, axis=-1) <= radius * (1 + 1e-14))
    assert np.allclose(jnp.linalg.norm(best.direction, axis=(1, 2)), 1)
    # The attack is below the Jacobian's norm where it ended, that below both certificates.
    assert np.all(best.gain <= local * (1 + 1e-12))
    assert np.all(local > 0)
    assert np.all(best.gain <= ball * (1 + 1e-12))
    assert np.all(best.gain > 1.05 * start)  # ascent finds more than the user's tokens show
