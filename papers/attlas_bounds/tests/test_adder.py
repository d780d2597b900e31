import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas_bounds.library.addition.adder import make_adder


def plain(adder, operands):
    """Token after token, with a softmax of scores."""
    adder = jax.tree.map(np.array, adder)
    x = (adder.digits)[operands].sum(1)
    x = np.concatenate([(adder.start)[None], x])
    for _ in range(adder.layers):
        mixed = []
        for t in range(len(x)):
            seen = range(t) if t else [0]
            scores = np.array([x[j] @ adder.key - adder.fall * (t - 1 - j) * (t > 0) for j in seen])
            weights = np.exp(scores - scores.max())
            mixed.append(weights @ x[list(seen)] / weights.sum())
        y = x + np.array(mixed) @ (adder.value)
        x = y + np.maximum(y @ adder.up + adder.bias, 0) @ (adder.down)
    return x[1:] @ (adder.readout) + (adder.readout_bias)


def perturbed(adder):
    """No bias is zero and no two numbers are alike; scores are not nearly uniform."""
    draw = np.random.default_rng(7)
    return jax.tree.map(lambda a: a + jnp.asarray(draw.normal(size=a.shape), a.dtype), adder)


def test_starts_are_normal_draws_of_their_scales():
    adder = make_adder(jax.random.key(3), 3, 5, 2)
    scales = {"digits": 0.5, "start": 0.5, "key": 0.3, "value": 3**-0.5, "up": 3**-0.5,
              "bias": 0.5, "down": 5**-0.5, "readout": 3**-0.5}  # fmt: skip
    for key, (name, scale) in zip(
        jax.random.split(jax.random.key(3), 8), scales.items(), strict=True
    ):
        found = getattr(adder, name)
        np.testing.assert_allclose(found, scale * jax.random.normal(key, found.shape), rtol=1e-14)
    assert (float(adder.fall), adder.layers) == (2.5, 2)
    assert not np.any(adder.readout_bias)


@pytest.mark.parametrize("layers", [1, 2])
def test_it_is_softmax_attention_that_falls_off_with_the_distance(layers):
    adder = perturbed(make_adder(jax.random.key(layers), 3, 4, layers))
    operands = np.random.default_rng(0).integers(0, 10, (2, 6, 2)).astype(np.int8)
    found = adder(jnp.asarray(operands))
    for own, digits in zip(found, operands, strict=True):
        # 7 tokens of 3 numbers, 4 units: some hundred roundings of numbers of size 10
        np.testing.assert_allclose(own, plain(adder, digits), rtol=0, atol=1e-11)


@pytest.mark.thorough
def test_a_place_depends_on_the_lower_ones_alone():
    adder = make_adder(jax.random.key(0), 3, 4, 2)
    operands = jnp.zeros((1, 6, 2), jnp.int8)
    moved = adder(operands.at[0, 3, 1].set(7)) - adder(operands)
    assert (np.abs(np.asarray(moved[0])).max(1) > 0).tolist() == [False] * 3 + [True] * 3


@pytest.mark.thorough
def test_parameters_are_as_many_as_the_formula_says():
    for d, h in ((2, 2), (8, 12)):
        count = sum(a.size for a in jax.tree.leaves(make_adder(jax.random.key(0), d, h)))
        assert count == d * d + 2 * d * h + 22 * d + h + 11


def test_a_size_below_one_is_one_line():
    with pytest.raises(UserError, match="0 units"):
        make_adder(jax.random.key(0), 2, 0)
