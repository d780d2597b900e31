"""Gradient descent against a plain loop, under vmap, for other models, and its refusals."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.losses.empirical_risk import empirical_risk
from attlas.models.attention.multi_head import make_multi_head, parameter_norm
from attlas.training.ensemble import in_chunks
from attlas.training.gradient_descent import gradient_descent, gradient_descent_ensemble

DRAW = np.random.default_rng(1)
X = jnp.asarray(DRAW.standard_normal((6, 4, 3)))
Y = jnp.asarray([1.0, -1, 1, 1, -1, -1])


def start(scale=0.5, heads=2):
    zero = make_multi_head(heads, 4, 3)
    return jax.tree.map(lambda a: scale * jnp.asarray(DRAW.standard_normal(a.shape)), zero)


def stack(*models):
    return jax.tree.map(lambda *a: jnp.stack(a), *models)


def test_records_are_those_of_a_plain_loop():
    model = start()
    path = gradient_descent(model, X, Y, step_size=0.3, steps=9, record_at=(2, 3, 7))
    slope = jax.jit(jax.value_and_grad(empirical_risk))

    found = {}
    for k in range(8):
        value, g = slope(model, X, Y)
        found[k] = (model, float(value), float(parameter_norm(g)))
        model = jax.tree.map(lambda a, b: a - 0.3 * b, model, g)

    assert path.steps.tolist() == [2, 3, 7]
    assert int(path.result) == Result.MAX_STEPS
    # Seven steps of a smooth map from gradients of a few hundred roundings each.
    for record, k in enumerate((2, 3, 7)):
        np.testing.assert_allclose(path.loss[record], found[k][1], rtol=1e-13)
        np.testing.assert_allclose(path.gradient_norm[record], found[k][2], rtol=1e-12)
        for a, b in zip(
            jax.tree.leaves(path.at(record)), jax.tree.leaves(found[k][0]), strict=True
        ):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-13)


def test_small_steps_descend():
    path = gradient_descent(start(), X, Y, step_size=0.1, steps=64)
    assert bool(jnp.all(jnp.diff(path.loss) < 0))
    assert path.steps[0] == 0
    assert path.steps[-1] == 64


@pytest.mark.thorough
def test_many_models_and_step_sizes_at_once():
    models, sizes = (start(), start(), start()), (0.1, 0.2, 0.4)
    together = gradient_descent_ensemble(
        stack(*models), X, Y, step_size=jnp.array(sizes), steps=5, record_at=(0, 5), chunk=2
    )
    mapped = jax.vmap(
        lambda m, s: gradient_descent(m, X, Y, step_size=s, steps=5, record_at=(0, 5)).loss
    )(stack(*models), jnp.array(sizes))

    assert together.loss.shape == (3, 2)
    np.testing.assert_allclose(together.loss, mapped, rtol=1e-13)
    for i, (model, size) in enumerate(zip(models, sizes, strict=True)):
        alone = gradient_descent(model, X, Y, step_size=size, steps=5, record_at=(0, 5))
        np.testing.assert_allclose(together.loss[i], alone.loss, rtol=1e-13)


def test_any_module_of_tokens_is_trained():
    class Linear(eqx.Module):
        w: jax.Array
        name: str = "linear"

        def __call__(self, X):
            return jnp.sum(self.w * X)

    path = gradient_descent(
        Linear(jnp.zeros((4, 3))), X, Y, step_size=1.0, steps=1, record_at=(0, 1)
    )
    # At zero the slope is -1/2: half of the mean of y X.
    expected = jnp.mean(Y[:, None, None] * X, axis=0) / 2
    np.testing.assert_allclose(path.params.w[1], expected, rtol=1e-13, atol=1e-16)


def test_divergence_has_its_code():
    path = gradient_descent(
        start(), X, Y, step_size=1e200, steps=3, record_at=(0, 3), loss="exponential"
    )
    assert int(path.result) == Result.NOT_FINITE


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": X[:, :3]}, "U of shape"),
        ({"y": 2 * Y}, r"not \+1 or -1"),
        ({"X": jnp.inf * X}, "not finite"),
        ({"step_size": 0.0}, r"step_size = 0\.0"),
        ({"steps": 0}, "must be at least 1"),
        ({"record_at": (3, 2)}, "increasing"),
        ({"loss": "hinge"}, "unknown loss"),
    ],
)
def test_bad_input_is_refused(change, message):
    settings = {"X": X, "y": Y, "step_size": 0.1, "steps": 4} | change
    with pytest.raises(UserError, match=message):
        gradient_descent(make_multi_head(2, 4, 3), settings.pop("X"), settings.pop("y"), **settings)


def test_chunks_need_a_width():
    with pytest.raises(UserError, match="chunks of 0"):
        in_chunks(lambda a: a, np.ones(3), 0)
