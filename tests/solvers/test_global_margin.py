"""The search for the global margin against a grid, closed forms and its upper bound."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas._jax.device_arrays import generator
from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.models.attention.multi_head import Decoder, MultiHead, parameter_norm
from attlas.solvers import global_margin as module
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


@pytest.mark.parametrize(
    ("decoder", "reads"), [(Decoder.FULL, 3**0.5), (Decoder.POOLED, 3.0), (Decoder.LAST, 1.0)]
)
def test_the_ceiling_is_the_least_over_pairs_and_weights_of_the_longest_mean(decoder, reads):
    for seed in range(3):
        X, y = (np.asarray(a) for a in draw(seed, n=4, T=3, d=2, shift=2.0))
        least = min(
            max(np.linalg.norm((1 - w) * y[i] * s + w * y[j] * t) for s in X[i] for t in X[j])
            for i, j in itertools.product(range(4), repeat=2)
            for w in np.linspace(0, 1, 21)
        )
        bound = margin_upper_bound(X, y, decoder, radius=1.7)
        np.testing.assert_allclose(bound, 1.7 * reads * least, rtol=1e-12)


@pytest.mark.parametrize("decoder", list(Decoder))
def test_starts_are_random_directions_whose_share_of_W_grows(decoder):
    X = jnp.ones((5, 3, 2))
    models = module._first_models(X, 4, decoder, 1.7, 6, KEY)
    rng = generator(KEY)
    shape = (6, 4, 3, 2) if decoder is Decoder.FULL else (6, 4, 2)
    parts = rng.normal(size=shape), rng.normal(size=(6, 4, 2, 2))
    for k in range(6):
        share = 0.9 * k / 5
        for found, part, size in zip(
            (models.U[k], models.W[k]), parts, (np.sqrt(1 - share**2), share), strict=True
        ):
            exact = 1.7 * size * part[k] / np.sqrt(np.sum(part[k] ** 2))
            np.testing.assert_allclose(found, exact, rtol=1e-13, atol=1e-15)


def test_the_best_start_counts_if_two_others_reach_it():
    models = MultiHead(jnp.zeros((1, 1, 1)), jnp.zeros((1, 1, 1)))
    models = jax.tree.map(lambda a: jnp.arange(4.0).reshape(4, 1, 1, 1) + a[None], models)
    values = np.array([0.5, 2.0, 1.6, 1.9])
    for tolerance, agreeing, code in (
        (0.21, 3, Result.CONVERGED),
        (0.19, 2, Result.MAX_STEPS),
        (0.04, 1, Result.MAX_STEPS),
    ):
        found = module._best(models, values, 2.5, tolerance)
        assert float(found.value) == found.certificate["lower"] == 2.0
        np.testing.assert_allclose(found.certificate["spread"], 0.2, rtol=1e-14)
        assert found.certificate["upper"] == 2.5
        assert found.stats["agreeing"] == agreeing
        assert float(found.stats["model"].W[0, 0, 0]) == 1.0
        assert int(found.result) == code
    below = module._best(models, values - 4, 2.5, 0.25)
    assert int(below.result) == Result.MAX_STEPS
    np.testing.assert_allclose(below.certificate["spread"], 0.2, rtol=1e-14)
    assert below.stats["agreeing"] == 3
    none = module._best(models, np.zeros(4), 2.5, 0.5)
    assert none.certificate["spread"] == np.inf
    assert int(none.result) == Result.MAX_STEPS
    edge = module._best(models, np.array([1.0, 0.75, 0.75, 0.5]), 2.5, 0.25)
    assert int(edge.result) == Result.CONVERGED
    assert edge.stats["agreeing"] == 3


def outputs(U, W, X):
    """Phi of every sample by loops over heads, for complex parameters too."""
    total = 0
    for U_h, W_h in zip(U, W, strict=True):
        powers = np.exp(X @ W_h @ X.transpose(0, 2, 1))
        total = total + np.sum(U_h * (powers / powers.sum(axis=2, keepdims=True) @ X), axis=(1, 2))
    return total / np.sqrt(len(W))


def test_the_best_decoders_have_the_margin_of_the_kernel_svm_where_it_is_positive():
    X, y = draw(2)
    rng = np.random.default_rng(3)
    U, W = rng.normal(size=(3, 2, 3, 2)), 0.4 * rng.normal(size=(3, 2, 2, 2))
    W[2] *= 1.69 / np.linalg.norm(W[2])
    models = jax.vmap(MultiHead)(jnp.asarray(U), jnp.asarray(W))
    found = module._best_decoders(models, X, y, 1.7)
    np.testing.assert_array_equal(found.W, W)
    X, y = np.asarray(X), np.asarray(y)
    for k in range(3):
        units = np.eye(12).reshape(12, 2, 3, 2)
        features = np.stack([outputs(unit, W[k], X) for unit in units], axis=1)
        size = np.sqrt(1.7**2 - np.sum(W[k] ** 2))
        np.testing.assert_allclose(np.linalg.norm(found.U[k]), size, rtol=1e-12)
        margin = size * kernel_svm(features @ features.T, y).unwrap()
        reached = (y * outputs(np.asarray(found.U[k]), W[k], X)).min()
        np.testing.assert_allclose(reached, margin, rtol=1e-9)
    # Nothing separates a sample from itself: the decoders stay.
    same = module._best_decoders(models, jnp.asarray(X[[0, 0]]), jnp.array([1.0, -1.0]), 1.7)
    np.testing.assert_array_equal(same.U, U)
    # Nor does a W beyond the radius leave anything.
    assert not module._best_decoders(models, jnp.asarray(X), jnp.asarray(y), 0.1).U.any()


def test_the_ascent_is_projected_adam_on_a_growing_sharpness(monkeypatch):
    monkeypatch.setattr(module, "_STEP", 9.0)
    X, y = draw(6, n=3, T=2, d=2, shift=0.5)
    rng, steps, radius, unit = np.random.default_rng(1), 5, 1.6, 0.8
    U, W = rng.normal(size=(3, 1, 2, 2)), rng.normal(size=(3, 1, 2, 2))
    models = jax.vmap(MultiHead)(jnp.asarray(U), jnp.asarray(W))
    found = module._ascend(models, X, y, jnp.asarray(unit), jnp.asarray(radius), steps)
    X, y, kept = np.asarray(X), np.asarray(y), []

    def margins(point):
        U, W = radius * point.reshape(2, 1, 2, 2)
        return y * outputs(U, W, X)

    for k in range(3):
        point = np.concatenate([U[k].ravel(), W[k].ravel()])
        point /= np.linalg.norm(point)
        first, second, met = np.zeros(8), np.zeros(8), []
        for step in range(steps):
            met.append(point)
            sharpness = 3 * 1000 ** (step / (steps - 1))
            slope = np.zeros(8)
            for index in range(8):
                moved = point.astype(complex)
                moved[index] += 1e-30j
                powers = -sharpness * margins(moved) / unit
                highest = powers.real.max()
                slope[index] = np.log(np.sum(np.exp(powers - highest))).imag / sharpness / 1e-30
            slope -= (slope @ point) * point
            first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
            size = np.sqrt(second / (1 - 0.999 ** (step + 1))) + 1e-8
            rate = 9.0 / np.sqrt(8) * (1 + np.cos(np.pi * step / steps)) / 2
            point = point - rate * first / (1 - 0.9 ** (step + 1)) / size
            point /= np.linalg.norm(point)
        best = int(np.argmax([margins(point).min() for point in met]))
        kept.append(best)
        exact = radius * met[best]
        np.testing.assert_allclose(found.U[k].ravel(), exact[:4], rtol=0, atol=1e-10)
        np.testing.assert_allclose(found.W[k].ravel(), exact[4:], rtol=0, atol=1e-10)
    assert len(set(kept)) > 1
