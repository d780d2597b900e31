"""The loop against plain loops of optax steps, for every way of using it, and its refusals."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.tree_util import Partial

from attlas.core.checkpoint import checkpointed
from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.training.course import ClosedForm
from attlas.training.fit import Ensemble, fit

DRAW = np.random.default_rng(0)
X = jnp.asarray(DRAW.standard_normal((12, 3)))
Y = jnp.asarray(DRAW.standard_normal(12))
W = {"w": jnp.asarray(DRAW.standard_normal(3)), "b": jnp.asarray(0.5)}
ROUNDING = 1e4 * np.finfo(float).eps
"""At most 20 steps, each with a few hundred roundings of numbers of size one."""


def risk(params, data):
    X, Y = data
    return jnp.mean((X @ params["w"] + params["b"] - Y) ** 2) / 2


def batch_risk(params, data, rows):
    return risk(params, jax.tree.map(lambda a: a[rows], data))


def plain_loop(optimizer, params, slope, steps):
    """Parameters before each step and after the last, with the losses of the steps."""
    state, path, losses = optimizer.init(params), [params], []
    for k in range(steps):
        value, g = slope(params, k)
        with jax.numpy_dtype_promotion("standard"):
            change, state = optimizer.update(g, state, params)
        params = optax.apply_updates(params, change)
        path.append(params)
        losses.append(float(value))
    return path, np.array(losses)


def assert_close(mine, theirs, **how):
    for a, b in zip(jax.tree.leaves(mine), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=ROUNDING, atol=ROUNDING, **how)


@pytest.mark.thorough
def test_records_of_a_full_batch_are_those_of_a_plain_loop():
    optimizer = optax.adam(0.1)
    path = fit(risk, optimizer, W, (X, Y), steps=9, record_at=(2, 3, 7))
    slope = jax.value_and_grad(risk)
    expected, losses = plain_loop(optimizer, W, lambda w, _: slope(w, (X, Y)), 8)

    assert path.steps.tolist() == [2, 3, 7]
    assert int(path.result) == Result.MAX_STEPS
    for record, k in enumerate((2, 3, 7)):
        assert_close(path.at(record), expected[k])
        assert_close(path.loss[record], losses[k])
        assert_close(path.gradient_norm[record], optax.tree.norm(slope(expected[k], (X, Y))[1]))
    assert_close(path.last, expected[7])
    assert np.array_equal(path.w, path.params["w"])


@pytest.mark.thorough
def test_batches_are_taken_in_order_and_their_losses_averaged_between_records():
    rows = jnp.asarray(DRAW.integers(0, 12, (6, 4)))
    optimizer = optax.sgd(0.2, momentum=0.9)
    path = fit(batch_risk, optimizer, W, (X, Y), record_at=(0, 2, 6), batches=rows)
    slope = jax.value_and_grad(batch_risk)
    expected, losses = plain_loop(optimizer, W, lambda w, k: slope(w, (X, Y), rows[k]), 6)

    assert_close(path.loss[1:], np.array([losses[:2].mean(), losses[2:].mean()]))
    assert np.isnan(path.loss[0])
    assert int(path.result) == Result.MAX_STEPS
    assert path.gradient_norm is None
    for record, k in enumerate((0, 2, 6)):
        assert_close(path.at(record), expected[k])


def test_losses_of_batches_are_averaged_from_record_to_record():
    """On (w - b)^2 / 2 a step of size 1/2 takes w half way to b."""
    batches, w, losses, path = [4.0, -1.0, 3.0, 0.5, 2.0], 8.0, [], [8.0]
    for b in batches:
        losses.append((w - b) ** 2 / 2)
        w = (w + b) / 2
        path.append(w)
    found = fit(lambda w, _, b: (w - b) ** 2 / 2, optax.sgd(0.5), jnp.array(8.0),
                batches=jnp.array(batches), record_at=(0, 2, 5))  # fmt: skip
    assert found.params.tolist() == [path[0], path[2], path[5]]
    assert float(found.last) == path[5]
    np.testing.assert_allclose(found.loss, [np.nan, np.mean(losses[:2]), np.mean(losses[2:])])
    assert int(found.result) == Result.MAX_STEPS


def test_batches_may_be_keys_of_fresh_draws():
    """The mean of a Gaussian by one fresh sample per step of size 1/k: the running mean."""
    keys = jax.random.split(jax.random.key(0), 50)

    def one_sample(w, _, key):
        return (w - jax.random.normal(key)) ** 2 / 2

    path = fit(one_sample, optax.sgd(lambda k: 1 / (k + 1.0)), jnp.array(9.0),
               record_at=(50,), batches=keys)  # fmt: skip
    assert_close(path.last, jnp.mean(jax.vmap(jax.random.normal)(keys)))


def test_every_step_is_projected():
    def onto_sphere(params):
        return {**params, "w": params["w"] / jnp.linalg.norm(params["w"])}

    path = fit(risk, optax.sgd(0.3), W, (X, Y), record_at=range(5), project=onto_sphere)
    assert_close(jnp.linalg.norm(path.w, axis=1), np.ones(5))
    w = onto_sphere(W)
    for k in range(5):
        assert_close(path.at(k), w)
        w = onto_sphere(jax.tree.map(lambda a, g: a - 0.3 * g, w, jax.grad(risk)(w, (X, Y))))


def test_rates_of_members_follow_the_closed_form():
    """On a w^2 / 2 each member with rate eta is at (1 - eta a)^k w_0."""
    rates, a, w = np.array([0.1, 0.5, 1.5]), 0.8, 2.0
    path = fit(lambda w, a: a * w**2 / 2, Partial(optax.sgd, rates), jnp.array(w), jnp.array(a),
               record_at=range(6), ensemble=Ensemble(optimizer=True))  # fmt: skip
    np.testing.assert_allclose(
        path.params, (1 - rates[:, None] * a) ** np.arange(6) * w, rtol=1e-13
    )


def test_members_in_chunks_are_each_alone():
    starts = {"w": jnp.asarray(DRAW.standard_normal((5, 3))), "b": jnp.zeros(5)}
    labels = jnp.asarray(DRAW.standard_normal((5, 12)))
    settings = {"record_at": (0, 4), "observe": lambda w, _: {"size": jnp.linalg.norm(w["w"])}}
    optimizer = optax.adam(0.1)
    many = Ensemble(params=True, data=(False, True), chunk=2)
    together = fit(risk, optimizer, starts, (X, labels), ensemble=many, **settings)
    assert together.loss.shape == together.size.shape == (5, 2)
    assert together.steps.tolist() == [0, 4]
    for i in (0, 4):
        one = jax.tree.map(lambda a, i=i: a[i], starts)
        alone = fit(risk, optimizer, one, (X, labels[i]), **settings)
        assert_close(together.member(i).params, alone.params)
        assert_close(together.member(i).size, alone.size)
        assert_close(together.loss[i], alone.loss)


class Empty:
    """A store of checkpoints that holds none and drops what is written."""

    def read(self, stage):
        return None

    def write(self, stage, arrays):
        assert arrays


def test_chunks_of_members_in_pieces_follow_the_closed_form():
    """On sum a w^2 / 2 every entry of w is multiplied by 1 - a / 2 at a step of size 1/2."""
    starts, a = np.arange(1.0, 13).reshape(3, 4), np.array([0.5, 1.5, 3.0, -1.0])
    with checkpointed(Empty(), 0.0) as pieces:
        path = fit(lambda w, a: a @ w**2 / 2, optax.sgd(0.5), jnp.asarray(starts), jnp.asarray(a),
                   record_at=(0, 5), observe=lambda w, _: {"first": w[0]},
                   ensemble=Ensemble(params=True, chunk=2))  # fmt: skip
    assert pieces.made > 0
    exact = starts[:, None] * (1 - a / 2) ** np.array([[0], [5]])
    np.testing.assert_allclose(path.params, exact, rtol=1e-13)
    np.testing.assert_allclose(path.last, exact[:, -1], rtol=1e-13)
    np.testing.assert_allclose(path.first, exact[:, :, 0], rtol=1e-13)
    np.testing.assert_allclose(path.loss, exact**2 @ a / 2, rtol=1e-12)


def test_members_may_see_batches_of_their_own():
    rows = jnp.asarray(DRAW.integers(0, 12, (3, 4, 2)))
    together = fit(batch_risk, optax.sgd(0.1), W, (X, Y), steps=4, batches=rows,
                   ensemble=Ensemble(batches=True))  # fmt: skip
    alone = fit(batch_risk, optax.sgd(0.1), W, (X, Y), steps=4, batches=rows[1])
    assert_close(together.member(1).last, alone.last)


def test_new_numbers_compile_nothing():
    traced = []

    def counted(w, a):
        traced.append(1)
        return a * w**2 / 2

    def run(rate, a):
        optimizer = Partial(optax.sgd, jnp.array(rate))
        return fit(counted, optimizer, jnp.array(1.0), jnp.array(a), record_at=(0, 2)).last

    assert float(run(0.5, 1.0)) == 0.25
    once = len(traced)
    assert float(run(0.25, 2.0)) == 0.25
    assert len(traced) == once


def test_it_can_be_mapped_and_its_schedule_traced():
    @jax.jit
    def run(labels, schedule):
        return jax.vmap(
            lambda y: fit(risk, optax.sgd(0.1), W, (X, y), record_at=schedule).last["w"]
        )(labels)

    labels = jnp.stack([Y, -Y])
    found = run(labels, jnp.array([0, 7]))
    for y, w in zip(labels, found, strict=True):
        assert_close(w, fit(risk, optax.sgd(0.1), W, (X, y), steps=7).last["w"])


def test_a_restart_from_the_last_point_continues():
    whole = fit(risk, optax.sgd(0.2), W, (X, Y), record_at=(4, 10))
    half = fit(risk, optax.sgd(0.2), W, (X, Y), record_at=(4,))
    again = fit(risk, optax.sgd(0.2), half.last, (X, Y), record_at=(6,))
    assert_close(again.last, whole.last)


def test_a_closed_form_takes_the_place_of_autodiff():
    def value_and_gradient(w, data):
        return jax.value_and_grad(risk)(w, data)

    given = fit(ClosedForm(value_and_gradient), optax.sgd(0.1), W, (X, Y), steps=5)
    assert_close(given.params, fit(risk, optax.sgd(0.1), W, (X, Y), steps=5).params)


def test_modules_keep_what_is_not_trained():
    class Linear(eqx.Module):
        w: jax.Array
        places: jax.Array
        name: str = "linear"

    model = Linear(jnp.ones(3), jnp.array([2, 0]))
    path = fit(lambda m, _: jnp.sum(m.w[m.places] ** 2) / 2, optax.sgd(0.5), model, steps=1)
    assert path.last.w.tolist() == [0.5, 1.0, 0.5]
    assert path.last.name == "linear"
    assert path.at(0).places.tolist() == [2, 0]


def test_single_precision_stays_single():
    start = jax.tree.map(lambda a: a.astype("float32"), W)
    data = X.astype("float32"), Y.astype("float32")
    path = fit(risk, optax.adam(0.1), start, data, steps=3)
    assert {a.dtype.name for a in jax.tree.leaves((path.params, path.loss))} == {"float32"}


@pytest.mark.parametrize("record_at", [(1,), (0, 1), (2, 3)])
def test_a_loss_that_is_no_number_has_its_code_after_every_number_of_steps(record_at):
    rule = ClosedForm(lambda w, _, batch: (batch * np.inf, 0 * w))
    # The loss is infinite or 0 / 0, while the parameters stay.
    for batches in (np.ones(3), np.zeros(3)):
        path = fit(rule, optax.sgd(0.1), jnp.ones(2), batches=batches, record_at=record_at)
        assert int(path.result) == Result.NOT_FINITE


def test_full_batches_record_the_loss_and_the_gradient_before_the_step():
    a = np.array([0.5, 1.5, 0.25])
    path = fit(lambda w, a: jnp.sum(a * w**2) / 2, optax.sgd(0.4, momentum=0.7), jnp.ones(3),
               jnp.asarray(a), steps=9, record_at=(0, 2, 3, 7))  # fmt: skip
    w, velocity, points = np.ones(3), np.zeros(3), []
    for _ in range(8):
        points.append(w)
        velocity = 0.7 * velocity + a * w
        w = w - 0.4 * velocity
    for record, k in enumerate((0, 2, 3, 7)):
        np.testing.assert_allclose(path.params[record], points[k], rtol=1e-13)
        np.testing.assert_allclose(path.loss[record], a @ points[k] ** 2 / 2, rtol=1e-13)
        norm = np.linalg.norm(a * points[k])
        np.testing.assert_allclose(path.gradient_norm[record], norm, rtol=1e-13)
    np.testing.assert_allclose(path.last, points[7], rtol=1e-13)
    assert int(path.result) == Result.MAX_STEPS


@pytest.mark.parametrize("batches", [None, np.zeros((60, 1), int)])
@pytest.mark.parametrize("keep", [True, False])
def test_divergence_has_its_code(batches, keep):
    loss = risk if batches is None else batch_risk
    path = fit(loss, optax.sgd(1e10), W, (X, Y), steps=60, batches=batches, keep=keep)
    assert int(path.result) == Result.NOT_FINITE
    assert (path.params is None) is not keep


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, "steps = 0 must be at least 1"),
        ({"steps": None}, "neither steps nor record_at"),
        ({"record_at": (3, 2)}, "increasing"),
        ({"record_at": (9,)}, "step 9 of 4: raise steps"),
        ({"params": {"w": 1.0}}, "params has no floating array"),
        ({"batches": np.zeros((3, 2), int)}, r"batches of shape \(3, 2\) for 4 steps"),
        ({"ensemble": Ensemble()}, r"leading axes of \[\] members in no argument"),
        ({"ensemble": Ensemble(params=True)}, r"leading axes of \[0, 3\] members in params"),
        ({"ensemble": Ensemble(data=True, chunk=0)}, "chunks of 0"),
    ],
)
def test_bad_input_is_refused(change, message):
    settings = {"params": W, "data": (X, Y), "steps": 4} | change
    with pytest.raises(UserError, match=message):
        fit(risk, optax.sgd(0.1), settings.pop("params"), settings.pop("data"), **settings)


def test_a_loss_of_several_numbers_is_refused():
    with pytest.raises(UserError, match=r"^the loss has shape \(3,\): give one number"):
        fit(lambda w, _: w**2, optax.sgd(0.1), jnp.ones(3), steps=1)
