"""The search for the global margin against a grid, closed forms and its upper bound."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.models.attention.multi_head import Decoder, MultiHead, parameter_norm
from attlas.solvers.global_margin import global_margin, margin_upper_bound
from attlas.solvers.kernel_svm import kernel_svm, kernel_svm_batch

KEY = jax.random.key(0)


def draw(seed, n=4, T=3, d=2, shift=1.0):
    rng = np.random.default_rng(seed)
    y = np.resize([1.0, -1.0], n)
    X = rng.normal(size=(n, T, d))
    X[:, 0, 0] += shift * y
    return jnp.asarray(X), jnp.asarray(y)


def attended(X, w):
    """softmax(w x x') x for scalar tokens x [n, T] and many w [k], in plain NumPy."""
    logits = w[:, None, None, None] * X[:, :, None] * X[:, None, :]
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True) * X[:, None, :]).sum(axis=-1)


@pytest.mark.thorough
def test_one_head_on_scalar_tokens_against_a_grid():
    X, y = draw(1, d=1)
    found = global_margin(X, y, 1, radius=2.0, starts=8, steps=200, key=KEY)
    w = np.linspace(-2, 2, 2001)
    features = attended(np.asarray(X)[:, :, 0], w)
    labels = np.broadcast_to(np.asarray(y), (len(w), len(y)))
    margins = kernel_svm_batch(features @ features.transpose(0, 2, 1), labels)
    grid = np.nanmax(np.sqrt(4 - w**2) * np.asarray(margins.value))
    # the grid misses the top by its curvature times a step of 0.002 squared
    np.testing.assert_allclose(found.unwrap(), grid, rtol=1e-4)
    assert float(found.value) >= grid * (1 - 1e-6)


def test_the_value_is_attained_on_the_sphere_and_below_the_ceiling():
    X, y = draw(2)
    found = global_margin(X, y, 2, starts=8, steps=200, key=KEY)
    model = found.stats["model"]
    assert found.converged
    np.testing.assert_allclose(parameter_norm(model), 2**0.5, rtol=1e-9)
    np.testing.assert_allclose(jnp.min(y * jax.vmap(model)(X)), found.value, rtol=1e-12)
    uniform = np.repeat(np.asarray(X).mean(axis=1), 3, axis=0).reshape(4, -1)
    start = 2**0.5 * kernel_svm(uniform @ uniform.T, y).unwrap()
    assert start <= found.value <= found.certificate["upper"]
    assert found.stats["agreeing"] >= 3


def test_one_token_reaches_the_ceiling():
    X = jnp.array([[[3.0, 4.0]]])
    found = global_margin(X, jnp.array([-1.0]), 3, radius=2.0, starts=3, steps=200, key=KEY)
    # what is left of W costs its square
    np.testing.assert_allclose(found.unwrap(), 10, rtol=1e-6)
    np.testing.assert_allclose(found.certificate["upper"], 10, rtol=1e-12)


def test_equal_samples_with_opposite_labels_have_no_margin():
    X = jnp.ones((2, 2, 2))
    found = global_margin(X, jnp.array([1.0, -1.0]), 1, starts=3, steps=20, key=KEY)
    assert int(found.result) == Result.MAX_STEPS
    assert found.value <= 0
    assert found.certificate["upper"] <= 1e-7


@pytest.mark.parametrize("decoder", list(Decoder))
@pytest.mark.parametrize("scale", [0.1, 10.0])
def test_no_model_exceeds_the_ceiling(decoder, scale):
    rng = np.random.default_rng(5)
    X, y = draw(5, n=3, shift=3.0)
    shape = (200, 2, 3, 2) if decoder is Decoder.FULL else (200, 2, 2)
    U, W = rng.normal(size=shape), scale * rng.normal(size=(200, 2, 2, 2))
    # decoders along the labels make margins worth bounding
    U[..., 0] = np.abs(U[..., 0])

    @eqx.filter_jit
    def ratios(U, W):
        def one(u, w):
            margin = jnp.min(y * jax.vmap(MultiHead(u, w, decoder))(X))
            return margin / jnp.sqrt(jnp.sum(u**2))

        return jax.vmap(one)(U, W)

    largest = ratios(jnp.asarray(U), jnp.asarray(W)).max()
    assert 0 < largest <= margin_upper_bound(X, y, decoder, radius=1.0)


@pytest.mark.parametrize(
    ("decoder", "reads"), [(Decoder.FULL, 2.0), (Decoder.POOLED, 4.0), (Decoder.LAST, 1.0)]
)
def test_the_ceiling_is_reached_by_equal_tokens(decoder, reads):
    # two samples of four copies of one token each, at right angles: attention changes nothing
    tokens, y = np.array([[3.0, 0.0], [0.0, 4.0]]), np.array([1.0, -1.0])
    X = jnp.asarray(np.repeat(tokens[:, None], 4, axis=1))
    best = kernel_svm(reads**2 * tokens @ tokens.T, y).unwrap()
    # lambda = 0.36 lies between two points of the grid, which costs (0.01 * 5 / 2.4)^2 / 2
    ceiling = margin_upper_bound(X, jnp.asarray(y), decoder, radius=1.0)
    np.testing.assert_allclose(ceiling, best, rtol=3e-4)
    assert ceiling >= best


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": jnp.array([1.0, 2.0, 1.0, 1.0])}, "labels other than"),
        ({"X": jnp.full((4, 3, 2), jnp.nan)}, "NaN or infinite"),
        ({"heads": 0}, "heads = 0"),
        ({"radius": -1.0}, "radius"),
        ({"starts": 2}, "starts = 2"),
        ({"tolerance": 1.0}, "tolerance"),
    ],
)
def test_bad_input_is_one_line(change, message):
    X, y = draw(0)
    given = {"X": X, "y": y, "heads": 1} | change
    with pytest.raises(UserError, match=message) as caught:
        global_margin(given.pop("X"), given.pop("y"), given.pop("heads"), key=KEY, **given)
    assert "\n" not in str(caught.value)
