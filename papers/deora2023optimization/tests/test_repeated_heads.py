"""Groups of equal heads are the model with every head on its own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.models.attention.multi_head import Decoder, MultiHead, head_norms, make_multi_head
from attlas.optim.one_step import one_step_initialisation
from attlas.training.gradient_descent import gradient_descent
from deora2023optimization.library.repeated_heads import RepeatedHeads, repeat_signed_head

T, D = 3, 2


def drawn(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


def both(copies):
    """The grouped model, and the same with every head on its own."""
    U, W = drawn(0, len(copies), T, D), drawn(1, len(copies), D, D)
    root = jnp.sqrt(jnp.asarray(copies, float))[:, None, None]
    grouped = RepeatedHeads(root * U, root * W, jnp.asarray(copies))
    return grouped, MultiHead(
        jnp.repeat(U, np.array(copies), 0), jnp.repeat(W, np.array(copies), 0)
    )


@pytest.mark.thorough
def test_output_and_largest_head_are_those_of_all_heads():
    grouped, alone = both([3, 2])
    X = drawn(2, T, D)
    # A sum of 5 heads in another order: a few roundings of numbers of order 10.
    assert abs(grouped(X) - alone(X)) < 1e-13
    assert abs(grouped.largest_head - jnp.max(head_norms(alone))) < 1e-14


@pytest.mark.thorough
def test_gradient_descent_keeps_equal_heads_equal():
    grouped, alone = both([3, 2])
    X, y = drawn(3, 4, T, D), jnp.array([1.0, -1.0, 1.0, -1.0])
    paths = [gradient_descent(m, X, y, step_size=0.3, steps=20) for m in (grouped, alone)]
    assert paths[0].loss[-1] < paths[0].loss[0]
    # Twenty steps of a smooth map: roundings of each step, grown by a small power.
    assert jnp.allclose(paths[0].loss, paths[1].loss, rtol=1e-12)
    assert jnp.allclose(paths[0].gradient_norm, paths[1].gradient_norm, rtol=1e-11)
    last = paths[1].at(-1)
    assert jnp.allclose(paths[0].at(-1).distinct.W, last.W[jnp.array([0, 3])], rtol=1e-11)


def test_an_empty_group_does_nothing():
    U, W = drawn(4, 2, T, D), drawn(5, 2, D, D)
    model = RepeatedHeads(U, W, jnp.array([1, 0]))
    X = drawn(6, T, D)
    assert abs(model(X) - MultiHead(U[:1], W[:1])(X)) < 1e-14
    norms = np.sqrt(np.sum(np.square(U), axis=(1, 2)) + np.sum(np.square(W), axis=(1, 2)))
    for copies, largest in (([1, 0], norms[0]), ([0, 1], norms[1])):
        found = RepeatedHeads(U, W, jnp.array(copies)).largest_head
        np.testing.assert_allclose(found, largest, rtol=1e-14)
        small = RepeatedHeads(0.01 * U, 0.01 * W, jnp.array(copies)).largest_head
        np.testing.assert_allclose(small, 0.01 * largest, rtol=1e-14)
    slope = jax.grad(lambda U: RepeatedHeads(U, W, model.copies)(X))(U)
    assert jnp.all(slope[1] == 0)
    assert jnp.any(slope[0] != 0)


def test_signs_are_drawn_at_equal_odds_for_any_number_of_heads():
    head = MultiHead(drawn(7, 1, T, D), jnp.zeros((1, D, D)))
    heads = 10**14
    model = repeat_signed_head(jax.random.key(0), head, heads)
    assert int(model.copies.sum()) == heads
    # The number of + heads is within 6 standard deviations sqrt(H)/2 of H/2.
    assert abs(int(model.copies[0]) - heads // 2) < 3 * heads**0.5
    assert jnp.allclose(model.distinct.U, jnp.stack([head.U[0], -head.U[0]]), rtol=1e-15)


def test_several_heads_and_impossible_numbers_are_refused():
    with pytest.raises(UserError, match="one head"):
        repeat_signed_head(jax.random.key(0), make_multi_head(2, T, D), 4)
    with pytest.raises(UserError, match="one head"):
        repeat_signed_head(jax.random.key(0), make_multi_head(1, T, D, Decoder.LAST), 4)
    with pytest.raises(UserError, match=r"heads = 0"):
        repeat_signed_head(jax.random.key(0), make_multi_head(1, T, D), 0)


@pytest.mark.thorough
def test_the_first_phase_gives_heads_that_differ_by_sign_alone():
    X, y = drawn(8, 5, T, D), jnp.array([1.0, -1.0, 1.0, 1.0, -1.0])
    one = one_step_initialisation(jax.random.key(0), X, y, 1)
    many = one_step_initialisation(jax.random.key(1), X, y, 6)
    assert jnp.array_equal(jnp.abs(many.U), jnp.broadcast_to(jnp.abs(one.U), many.U.shape))
    signs = jnp.sign(jnp.sum(many.U * one.U, axis=(1, 2)))
    assert jnp.array_equal(many.U, signs[:, None, None] * one.U)
    copies = jnp.array([jnp.sum(signs > 0), jnp.sum(signs < 0)])
    root = jnp.sqrt(copies)[:, None, None] * jnp.array([1.0, -1.0])[:, None, None]
    grouped = RepeatedHeads(root * one.U, jnp.zeros((2, D, D)), copies)
    assert abs(grouped(X[0]) - many(X[0])) < 1e-14
