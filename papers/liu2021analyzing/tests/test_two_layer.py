import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.models.two_layer import (
    AttendedTwoLayer,
    MaskedTwoLayer,
    TwoLayer,
    make_two_layer,
)

P, D = 5, 7


def _network(sharpness=None):
    model = make_two_layer(jax.random.key(0), P, D, biases=True, sharpness=sharpness)
    draw = np.random.default_rng(1)
    biases = jnp.asarray(draw.normal(size=D)), jnp.asarray(draw.normal())
    return TwoLayer(model.W1, model.w2, *biases, sharpness)


def _reference(model, x):
    total = float(model.b2)
    for unit in range(D):
        z = sum(float(model.W1[i, unit]) * x[i] for i in range(P)) + float(model.b1[unit])
        soft = model.sharpness
        hidden = max(z, 0) if soft is None else np.log(1 + np.exp(soft * z)) / soft
        total += float(model.w2[unit]) * hidden
    return total


@pytest.mark.parametrize("sharpness", [None, 3.0])
def test_outputs_agree_with_a_plain_computation(sharpness):
    model = _network(sharpness)
    x = np.random.default_rng(2).normal(size=P)
    weights = np.abs(np.random.default_rng(3).normal(size=P))
    # P + D sums of numbers of size one: fewer than a hundred roundings.
    room = 100 * np.finfo(float).eps
    assert abs(float(model(jnp.asarray(x))) - _reference(model, x)) < room
    attended = AttendedTwoLayer(model, lambda x: jnp.asarray(weights) * jnp.sum(x))
    expected = _reference(model, x * weights * x.sum())
    assert abs(float(attended(jnp.asarray(x))) - expected) < 10 * room
    masked = MaskedTwoLayer(model, jnp.asarray(weights))
    assert abs(float(masked(jnp.asarray(x))) - _reference(model, x * weights)) < 10 * room


def test_features_give_the_output():
    model, x = _network(), jnp.arange(1.0, 1 + P)
    for each in (model, AttendedTwoLayer(model, jax.nn.softmax), MaskedTwoLayer(model, x)):
        output = each.features(x) @ model.w2 + model.b2
        assert np.isclose(float(output), float(each(x)), rtol=1e-14)


def test_only_a_trainable_mask_has_a_gradient():
    def slope(trainable):
        model = MaskedTwoLayer(_network(), jnp.ones(P), trainable)
        return jax.grad(lambda m: m(jnp.ones(P)))(model).mask

    assert float(jnp.max(jnp.abs(slope(False)))) == 0
    assert float(jnp.max(jnp.abs(slope(True)))) > 0


@pytest.mark.parametrize(
    ("change", "said"),
    [({"p": 0}, "p = 0"), ({"d": 0}, "d = 0"), ({"sharpness": 0.0}, "sharpness = 0.0")],
)
def test_bad_sizes_are_refused(change, said):
    with pytest.raises(UserError, match=said):
        make_two_layer(jax.random.key(0), **({"p": 2, "d": 2} | change))


def test_start_has_the_variance_of_xavier():
    model = make_two_layer(jax.random.key(3), 60, 90, dtype=jnp.float32)
    assert model.W1.dtype == jnp.float32
    variance = float(jnp.mean(model.W1**2)) * 150 / 2
    # 5400 squares of a uniform variable, relative deviation sqrt(0.8 / 5400) = 0.012 each.
    assert abs(variance - 1) < 5 * 0.0122


def test_entries_start_within_xaviers_limits():
    """sqrt(6 / (m + n)) bounds each matrix of sizes m and n, and many draws come near it."""
    keys = jax.random.split(jax.random.key(7), 100)
    model = jax.jit(jax.vmap(lambda key: make_two_layer(key, 5, 3)))(keys)
    for matrix, size in ((model.W1, 5 + 3), (model.w2, 3 + 1)):
        limit = np.sqrt(6 / size)
        assert 0.97 * limit < float(abs(matrix).max()) <= limit
