"""Mirror descent against its definition, its identities, float64, and within optax."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attlas.core.errors import UserError
from attlas.norms.entrywise import entrywise_norm
from attlas.optim.mirror_descent import (
    bregman,
    inverse_potential_gradient,
    mirror_descent,
    mirror_step,
    potential,
    potential_gradient,
)

EPS = np.finfo(np.float64).eps


def run(optimiser, w, gradients):
    def step(carry, gradient):
        w, state = carry
        change, state = optimiser.update(gradient, state, w)
        return (optax.apply_updates(w, change), state), None

    return jax.lax.scan(step, (w, optimiser.init(w)), gradients)[0]


@pytest.mark.parametrize("p", [1.1, 2.0, 10.0])
def test_potential_gradient_is_the_derivative_and_is_inverted(p):
    w = jnp.array([[0.5, -2.0], [0.0, 1e-3]])
    u = potential_gradient(w, p)
    # A power of exponent at most 10 multiplies the relative rounding by as much.
    assert jnp.allclose(jax.grad(potential)(w, p), u, rtol=32 * EPS, atol=0)
    assert jnp.allclose(inverse_potential_gradient(u, p), w, rtol=32 * EPS, atol=0)


@pytest.mark.thorough
@pytest.mark.parametrize("p", [1.1, 1.75, 3.0, 10.0])
def test_bregman_keeps_its_digits_near_zero(p):
    v = jnp.array([0.7, -1.3, 2.0])
    for size in (1e-9, 1e-4, 0.05, 0.5):
        w = v * (1 + size * jnp.array([1.0, -0.5, 0.25]))
        # Independent: Taylor's remainder (p-1) int_0^1 (1-s) |v + s(w-v)|^{p-2} (w-v)^2 ds.
        nodes, weights = np.polynomial.legendre.leggauss(20)
        s = jnp.asarray((nodes + 1) / 2)[:, None]
        line = jnp.abs(v[None, :] + s * (w - v)[None, :]) ** (p - 2) * (w - v)[None, :] ** 2
        remainder = (p - 1) * jnp.sum(jnp.asarray(weights / 2)[:, None] * (1 - s) * line)
        # Beyond the series' range the subtraction loses at most a factor 16^2 p.
        assert jnp.allclose(bregman(w, v, p), remainder, rtol=2**12 * EPS, atol=0)


@pytest.mark.thorough
@pytest.mark.parametrize("p", [1.1, 10.0])
def test_float32_follows_float64(p):
    """500 steps, from zero and tiny entries; p = 1.1 needs the mirror variable in the state."""
    gradients = jax.random.normal(jax.random.key(0), (500, 6)) * 0.1 - 0.05
    start = jnp.array([0.0, 1e-30, -1e-6, 0.5, 1.0, 0.0])
    fine, _ = run(mirror_descent(0.1, p), start, gradients)
    coarse, _ = run(
        mirror_descent(0.1, p), start.astype(jnp.float32), gradients.astype(jnp.float32)
    )
    assert coarse.dtype == jnp.float32
    assert jnp.all(jnp.isfinite(coarse))
    coarse = coarse.astype(jnp.float64)
    # The mirror variable collects 500 roundings; the map back has exponent 1 / (p-1) <= 10.
    u = 500 * float(jnp.max(jnp.abs(gradients))) * 0.1
    unit = float(np.finfo(np.float32).eps)
    error = unit * 500 * u
    at = potential_gradient(fine, p)
    low = inverse_potential_gradient(at - error, p)
    high = inverse_potential_gradient(at + error, p)
    slack = 32 * unit * jnp.abs(fine) + 1e-37
    assert jnp.all((coarse >= low - slack) & (coarse <= high + slack))


def test_mirror_variable_survives_underflow_of_the_weight():
    """At p = 1.1 each step leaves w = (1e-5)^10 = 1e-50, zero in float32, yet steps add up."""
    gradients = jnp.full((1000, 1), -1e-5, jnp.float32)
    w, state = run(mirror_descent(1.0, 1.1), jnp.zeros(1, jnp.float32), gradients)
    assert jnp.allclose(state.dual, 1e-2, rtol=1e-4)
    assert w[0] > 0


@pytest.mark.thorough
def test_normalised_step_has_the_length_of_the_rate():
    w = {"a": jnp.array([1.0, -2.0]), "b": jnp.array([[0.5]])}
    gradient = {"a": jnp.array([3e-200, 4e-200]), "b": jnp.array([[1e-200]])}
    optimiser = mirror_descent(0.1, 3.0, normalized=True)
    start = optimiser.init(w)
    _, state = optimiser.update(gradient, start, w)
    change = jnp.concatenate(
        [
            (x - y).ravel()
            for x, y in zip(*map(jax.tree.leaves, (state.dual, start.dual)), strict=True)
        ]
    )
    # Mirror variables of size 4 are subtracted: absolute rounding of 4 eps each.
    assert jnp.allclose(entrywise_norm(change, 1.5), 0.1, rtol=0, atol=16 * EPS)


def test_exponents_normalise_apart():
    w = {"v": jnp.ones(2), "W": jnp.ones((2, 2))}
    optimiser = mirror_descent(0.5, {"v": 2.0, "W": 3.0}, normalized=True)
    start = optimiser.init(w)
    _, state = optimiser.update(jax.tree.map(lambda a: 7 * a, w), start, w)
    assert jnp.allclose(start.dual["v"] - state.dual["v"], 0.5 / np.sqrt(2), atol=4 * EPS)
    assert jnp.allclose(start.dual["W"] - state.dual["W"], 0.5 / 4 ** (2 / 3), atol=4 * EPS)


def test_a_gradient_below_its_floor_stops_and_says_so():
    w = jnp.ones(3)
    optimiser = mirror_descent(0.1, 3.0, normalized=True, floor=1e-12)
    change, state = optimiser.update(jnp.full(3, 1e-13), optimiser.init(w), w)
    assert bool(state.stalled)
    assert not jnp.any(change)
    _, state = optimiser.update(jnp.ones(3), state, w)
    assert not bool(state.stalled)


STEPS = 8
GRADIENTS = jax.random.normal(jax.random.key(3), (STEPS, 3))
START = jnp.array([0.5, -1.5, 2.0])
# Each step rounds a few times, and powers of exponents at most 3 multiply that; u stays above 0.01.
CLOSE = {"rtol": 0, "atol": 2**12 * EPS}


def by_hand(p, step=mirror_step, rates=(0.05,) * STEPS, gradients=GRADIENTS):
    """The weights after each gradient, every mirror variable computed from its weights."""
    w = START
    for rate, gradient in zip(rates, gradients, strict=True):
        w = step(w, gradient, rate, p)
    return w


@pytest.mark.thorough
@pytest.mark.parametrize("p", [1.5, 3.0])
def test_a_step_is_the_pure_step(p):
    w, _ = run(mirror_descent(0.05, p), START, GRADIENTS)
    assert jnp.allclose(w, by_hand(p), **CLOSE)
    assert jnp.allclose(jax.jit(by_hand)(p), by_hand(p), **CLOSE)  # p traced


def test_a_schedule_is_evaluated_at_every_step():
    schedule = optax.linear_schedule(0.0, 0.1, 5)
    w, state = run(mirror_descent(schedule, 3.0), START, GRADIENTS)
    assert jnp.allclose(
        w,
        by_hand(3.0, rates=[float(schedule(k)) for k in jnp.arange(STEPS, dtype=jnp.int32)]),
        **CLOSE,
    )
    assert int(state.count) == STEPS
    plain, _ = run(mirror_descent(schedule, 2.0), START, GRADIENTS)
    assert jnp.allclose(plain, run(optax.sgd(schedule), START, GRADIENTS)[0], **CLOSE)


def test_p_per_leaf_by_prefix_by_function_and_by_multi_transform():
    w = {"v": START, "layers": [START, -START]}
    gradients = {"v": GRADIENTS, "layers": [GRADIENTS, 2 * GRADIENTS]}

    def of(params):
        return {name: 2.0 if name == "v" else 3.0 for name in params}

    parted = optax.multi_transform(
        {"euclidean": mirror_descent(0.05, 2.0), "cubic": mirror_descent(0.05, 3.0)},
        {"v": "euclidean", "layers": "cubic"},
    )
    expected = {
        "v": run(optax.sgd(0.05), START, GRADIENTS)[0],
        "layers": [
            run(mirror_descent(0.05, 3.0), s * START, g)[0]
            for s, g in ((1, GRADIENTS), (-1, 2 * GRADIENTS))
        ],
    }
    for optimiser in (mirror_descent(0.05, of(w)), mirror_descent(0.05, of), parted):
        found, _ = run(optimiser, w, gradients)
        assert jax.tree.all(jax.tree.map(lambda a, b: jnp.allclose(a, b, **CLOSE), found, expected))


def test_a_model_of_exponents_is_a_tree_even_if_it_can_be_called():
    class Model(eqx.Module):
        w: jax.Array | float

        def __call__(self, x):
            return self.w * x

    optimiser = mirror_descent(0.05, Model(3.0))
    assert optimiser.init(Model(START)).exponents.w == 3


@pytest.mark.parametrize("normalized", [False, True])
def test_p_is_mapped(normalized):
    """Groups of the dual norm follow the values of p, traced or not: twice apart, once one."""
    pairs = jnp.array([[1.5, 3.0], [2.0, 1.75], [2.5, 2.5]])
    w, gradients = {"v": START, "W": START[:2]}, {"v": GRADIENTS, "W": GRADIENTS[:, :2]}

    def final(rate, pair):
        p = {"v": pair[0], "W": pair[1]}
        return run(mirror_descent(rate, p, normalized), w, gradients)[0]

    rates = jnp.array([0.05, 0.02, 0.03])
    together = jax.jit(jax.vmap(final))(rates, pairs)
    for member, (rate, pair) in enumerate(zip(rates.tolist(), pairs.tolist(), strict=True)):
        alone = final(rate, pair)
        for name, expected in alone.items():
            assert jnp.allclose(together[name][member], expected, **CLOSE)


def test_a_traced_exponent_without_a_mirror_map_gives_no_number():
    def final(p):
        return run(mirror_descent(0.05, p), START, GRADIENTS)[0]

    found = jax.vmap(final)(jnp.array([1.0, 0.5, jnp.inf, 2.0]))
    assert jnp.all(jnp.isnan(found[:3]))
    assert jnp.all(jnp.isfinite(found[3]))


@pytest.mark.parametrize("p", [1.0, 0, -2.0, float("inf"), float("nan"), {"w": 0.5}, lambda w: 1.0])
def test_bad_exponents_are_refused(p):
    with pytest.raises(UserError, match="no mirror map"):
        mirror_descent(0.1, p).init({"w": START})


def test_bad_arguments_are_refused_at_once():
    for arguments, message in (
        ((0, 2.0), "learning_rate = 0.0 is not positive"),
        ((-0.1, 2.0), "learning_rate = -0.1 is not positive"),
        ((jnp.array(-0.1), 2.0), "learning_rate = -0.1 is negative"),
        ((float("nan"), 2.0), "learning_rate = nan is not positive"),
        ((jnp.inf, 2.0), "learning_rate = inf is not positive"),
        (("0.1", 2.0), "learning_rate = '0.1' is not a number"),
        ((True, 2.0), "learning_rate = True is not a number"),
        ((None, 2.0), "learning_rate = None is not a number"),
        ((np.ones(3), 2.0), r"learning_rate has shape \(3,\)"),
        ((0.1, "2"), "exponent p = '2' is not a number"),
        ((0.1, jnp.array([2.0, 3.0])), r"exponent p has shape \(2,\)"),
        ((0.1, 2.0, True, -1.0), "eps = -1.0 is negative"),
        ((0.1, 2.0, True, 0.0, float("nan")), "floor = nan is negative or not finite"),
        ((0.1, 2.0, False, 0.0, None, -1e-4), "weight_decay = -0.0001 is negative"),
    ):
        with pytest.raises(UserError, match=message) as caught:
            mirror_descent(*arguments)
        assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="a prefix of the parameters"):
        mirror_descent(0.1, {"v": 2.0}).init({"w": START})
    with pytest.raises(UserError, match="needs the parameters"):
        mirror_descent(0.1, 2.0).update(START, mirror_descent(0.1, 2.0).init(START))


def test_weight_decay_shrinks_the_mirror_variable():
    optimiser = mirror_descent(0.5, 3.0, weight_decay=0.5)
    w = jnp.array([2.0, -2.0])  # u = +-4; 3/4 of it, less half the gradient: 9 and -3
    change, state = optimiser.update(jnp.array([-12.0, 0.0]), optimiser.init(w), w)
    assert state.dual.tolist() == [9.0, -3.0]
    assert jnp.allclose(w + change, jnp.array([3.0, -np.sqrt(3)]), **CLOSE)
    plain, _ = run(mirror_descent(0.05, 2.0, weight_decay=0.3), START, GRADIENTS)
    expected = optax.chain(optax.add_decayed_weights(0.3), optax.sgd(0.05))
    assert jnp.allclose(plain, run(expected, START, GRADIENTS)[0], **CLOSE)


def test_a_stalled_step_does_not_decay():
    optimiser = mirror_descent(0.1, 3.0, normalized=True, floor=1e-12, weight_decay=0.5)
    change, state = optimiser.update(jnp.zeros(3), optimiser.init(START), START)
    assert bool(state.stalled)
    assert not jnp.any(change)


def test_what_comes_before_acts_on_the_gradient():
    clipped = jax.vmap(lambda g: g / jnp.maximum(1, jnp.linalg.norm(g)))(GRADIENTS)
    chain = optax.chain(optax.clip_by_global_norm(1.0), mirror_descent(0.05, 3.0))
    found, _ = run(chain, START, GRADIENTS)
    assert jnp.allclose(found, by_hand(3.0, gradients=clipped), **CLOSE)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_what_comes_after_is_not_undone(p):
    """Half of every displacement, and a weight decay on top of it."""

    def half(w, gradient, rate, p):
        return w + (mirror_step(w, gradient, rate, p) - w) / 2 - 0.01 * w

    chain = optax.chain(mirror_descent(0.05, p), optax.scale(0.5), optax.add_decayed_weights(-0.01))
    found, _ = run(chain, START, GRADIENTS)
    assert jnp.allclose(found, by_hand(p, half), **CLOSE)
    if p == 2:
        halved, _ = run(optax.chain(mirror_descent(0.05, p), optax.scale(0.5)), START, GRADIENTS)
        assert jnp.allclose(halved, run(optax.sgd(0.025), START, GRADIENTS)[0], **CLOSE)


def test_a_parameter_changed_by_hand_is_read_and_the_others_keep_their_mirror_variable():
    """At p = 1.1 in float32 the first weight is 0 while its mirror variable is 1e-5."""
    optimiser = mirror_descent(1.0, 1.1)
    w, state = run(optimiser, jnp.zeros(2, jnp.float32), jnp.full((1, 2), -1e-5, jnp.float32))
    assert w.tolist() == [0.0, 0.0]
    moved = w.at[1].set(0.25)
    _, state = optimiser.update(jnp.zeros(2, jnp.float32), state, moved)
    expected = jnp.array([1e-5, 0.25**0.1], jnp.float32)
    assert jnp.allclose(state.dual, expected, rtol=1e-6, atol=0)


def test_injected_hyperparameters_change_without_compiling_again():
    optimiser = optax.inject_hyperparams(mirror_descent)(0.05, 3.0, weight_decay=0.1)
    traces = []

    @jax.jit
    def step(w, state, gradient):
        traces.append(1)
        change, state = optimiser.update(gradient, state, w)
        return optax.apply_updates(w, change), state

    def decayed(w, gradient, rate, p):
        u = (1 - 0.1 * rate) * potential_gradient(w, p) - rate * gradient
        return inverse_potential_gradient(u, p)

    w, state = START, optimiser.init(START)
    expected = START
    for gradient, (rate, p) in zip(GRADIENTS, [(0.05, 3.0), (0.02, 1.5)] * 4, strict=True):
        # The kept mirror variable belongs to the last p: it is taken anew for this one.
        state.hyperparams.update(learning_rate=jnp.asarray(rate), p=jnp.asarray(p))
        w, state = step(w, state, gradient)
        expected = decayed(expected, gradient, rate, p)
    assert jnp.allclose(w, expected, **CLOSE)
    assert len(traces) == 1


def test_an_injected_schedule_may_begin_at_zero():
    schedule = optax.linear_schedule(0.0, 0.1, 5)
    optimiser = optax.inject_hyperparams(mirror_descent)(schedule, 3.0)
    change, state = optimiser.update(GRADIENTS[0], optimiser.init(START), START)
    assert not jnp.any(change)
    change, _ = optimiser.update(GRADIENTS[0], state, START)
    expected = mirror_step(START, GRADIENTS[0], float(schedule(jnp.int32(1))), 3.0)
    assert jnp.allclose(START + change, expected, **CLOSE)


def test_multi_steps_takes_the_mean_gradient():
    rule = optax.MultiSteps(mirror_descent(0.05, 3.0), 2, accumulator_dtype=jnp.float64)
    with jax.numpy_dtype_promotion("standard"):  # optax divides by a count
        found, state = run(rule.gradient_transformation(), START, GRADIENTS)
    pairs = jnp.mean(GRADIENTS.reshape(STEPS // 2, 2, 3), axis=1)
    expected = by_hand(3.0, rates=(0.05,) * (STEPS // 2), gradients=pairs)
    assert jnp.allclose(found, expected, **CLOSE)
    assert int(state.inner_opt_state.count) == STEPS // 2


@pytest.mark.parametrize("p", [2.0, 3.0])
def test_parameters_and_state_share_no_memory(p):
    """A step that is given both for good would otherwise be given one buffer twice."""
    optimiser = mirror_descent(0.05, p)
    w = jnp.copy(START)
    pieces = [w, *jax.tree.leaves(optimiser.init(w))]
    assert len({piece.unsafe_buffer_pointer() for piece in pieces}) == len(pieces)


def test_eps_is_added_to_the_dual_norm():
    w, gradient = jnp.array([1.0, 1.0]), jnp.array([3.0, 4.0])
    optimiser = mirror_descent(0.5, 2.0, normalized=True, eps=5.0)
    change, _ = optimiser.update(gradient, optimiser.init(w), w)
    # The norm is 5, and with eps 10.
    assert jnp.allclose(change, jnp.array([-0.15, -0.2]), rtol=1e-13)
