import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from attlas._jax.device_arrays import generator
from attlas.core.errors import UserError
from attlas.measures.complexity.rademacher import (
    draw_signs,
    rademacher_complexity,
    rademacher_estimate,
)
from attlas.models.networks.single_layer_transformer import SingleLayerTransformer
from attlas.norms.balls import project
from trauger2023sequence.library.measures.norm_ball_classes import (
    AttentionClass,
    LinearClass,
    Sequences,
)

EPS = np.finfo(float).eps
KEY = jax.random.key(0)


class TanhClass(eqx.Module):
    """The functions x -> tanh(w x) with |w_k| <= radius; odd steps are half as long."""

    radius: float

    def __call__(self, parameters, inputs):
        return jnp.tanh(inputs @ parameters)

    def draw(self, draws, shape, inputs):
        return jnp.asarray(3 * draws.standard_normal((*shape, inputs.shape[1])))

    def project(self, parameters):
        return jnp.clip(parameters, -self.radius, self.radius)

    def ascend(self, parameters, gradient, step, even):
        return parameters + step * gradient / jnp.where(even, 1, 2)

    def largest(self, inputs):
        return float(jnp.tanh(self.radius * jnp.abs(inputs).sum(axis=1).max()))


@pytest.mark.parametrize(("steps", "repeats", "starts"), [(0, 1, 4), (3, 5, 1)])
def test_ascent_is_the_loop_written_out(steps, repeats, starts):
    x = np.random.default_rng(1).standard_normal((5, 2))
    sizes = {"sign_vectors": 3, "starts": starts, "steps": steps, "step": 0.7, "repeats": repeats}
    found = rademacher_complexity(KEY, TanhClass(2.0), x, **sizes, chunk=2, confidence=0.8)
    signs = draw_signs(KEY, 3, 5, repeats) / repeats
    start = 3 * generator(jax.random.fold_in(KEY, 1)).standard_normal((3, starts, 2))
    best = np.full((3, starts), -np.inf)
    for s in range(3):
        for k in range(starts):
            w = np.clip(start[s, k], -2, 2)
            for t in range(steps + 1):
                best[s, k] = max(best[s, k], np.sum(signs[s] * np.tanh(x @ w)) / 5)
                gradient = (signs[s] * (1 - np.tanh(x @ w) ** 2)) @ x / 5
                length = 0.7 * (steps - t) / steps if steps else 0.0
                w = np.clip(w + length * gradient * (0.5 if t % 2 else 1.0), -2, 2)
    np.testing.assert_allclose(found.suprema, best.max(axis=1), rtol=100 * EPS)
    # One sign of 3 * 5 * repeats moves the mean by c: McDiarmid's exp(-2 t^2 / (sum c^2)) = 0.2.
    signs_drawn = 15 * repeats
    moves = 2 * np.tanh(2 * np.abs(x).sum(axis=1).max()) / signs_drawn
    probability = np.exp(-2 * (found.value - found.certain) ** 2 / (signs_drawn * moves**2))
    assert probability == pytest.approx(0.2, rel=100 * EPS)


def test_limits_are_those_of_student_and_of_mcdiarmid():
    suprema = np.array([0.3, 0.8, 0.45, 0.7, 0.62])
    found = rademacher_estimate(suprema, 7, 3.0, 0.9)
    low, high = stats.t.interval(0.9, 4, np.mean(suprema), stats.sem(suprema))
    assert found[:3] == pytest.approx((np.mean(suprema), low, high), rel=100 * EPS)
    # 35 signs, each of which moves the mean by at most 6 / 35
    assert np.exp(-2 * (found.value - found.certain) ** 2 * 35 / 36) == pytest.approx(
        0.1, rel=1e-12
    )


def test_signs_have_the_moments_of_sums_of_fair_signs():
    """Mean, variance and fourth moment within five standard errors of 30,000 entries."""
    for repeats in (1, 2, 5):
        signs = draw_signs(KEY, 300, 100, repeats)
        assert set(np.unique(signs)) == set(np.arange(-repeats, repeats + 1, 2.0))
        assert abs(signs.mean()) <= 5 * np.sqrt(repeats / 30000)
        fourth = 3 * repeats**2 - 2 * repeats
        spread = np.sqrt((fourth - repeats**2) / 30000)
        assert abs(np.mean(signs**2) - repeats) <= 5 * spread + 1e-12


def test_a_class_that_refuses_the_inputs_is_quoted_by_its_first_line():
    class Refusing(TanhClass):
        def draw(self, draws, shape, inputs):
            raise ValueError("wrong width\nmore")

    with pytest.raises(UserError, match=r"float64\[4, 3\], .* \(wrong width\)"):
        rademacher_complexity(KEY, Refusing(1.0), np.ones((4, 3)))


@pytest.mark.thorough
@pytest.mark.parametrize("ball", ["1,1", "2,1", "1,inf", "spectral"])
def test_ascent_finds_the_closed_form_of_linear_classes(ball):
    x = jnp.asarray(generator(jax.random.key(1)).standard_normal((12, 3, 4)))
    linear = LinearClass(ball, jnp.array(1.7))
    found = rademacher_complexity(KEY, linear, x, sign_vectors=6, starts=2, steps=30, chunk=4)
    exact = linear.suprema(jnp.asarray(draw_signs(KEY, 6, 12)), x)
    assert np.all(found.suprema <= exact * (1 + 200 * EPS))
    # The last steps are a thirtieth of the radius long, and what they lack is of second order.
    np.testing.assert_allclose(found.suprema, exact, rtol=1 / 30**2)


@pytest.mark.thorough
def test_repeats_are_the_sample_written_out():
    x = jnp.asarray(generator(jax.random.key(1)).standard_normal((5, 3, 2)))
    linear = LinearClass("2,1", jnp.array(1.3))
    few = {"sign_vectors": 4, "starts": 2, "steps": 30, "chunk": 4}
    found = rademacher_complexity(KEY, linear, x, **few, repeats=7)
    sums = draw_signs(KEY, 4, 5, 7)
    assert np.all(np.abs(sums) <= 7)
    assert np.all(sums % 2 == 1)
    # Signs of the written-out sample with these sums.
    signs = np.where(np.arange(7)[None, :, None] < (sums[:, None] + 7) / 2, 1.0, -1.0)
    whole = jnp.tile(x, (7, 1, 1))
    exact = linear.suprema(jnp.asarray(signs.reshape(4, 35)), whole)
    np.testing.assert_allclose(found.suprema, exact, rtol=1 / 30**2)
    slack = linear.largest(x) * np.sqrt(2 * np.log(20) / (4 * 35))
    assert found.value - found.certain == pytest.approx(slack, rel=100 * EPS)


def attention(ball, radii, activation=jax.nn.relu):
    return AttentionClass(ball, *(jnp.array(r) for r in radii), activation)


def sequences(seed, m, T, d):
    tokens = generator(jax.random.key(seed)).standard_normal((m, T, d))
    return Sequences(jnp.asarray(tokens), jnp.asarray(tokens[:, 0]))


@pytest.mark.thorough
@pytest.mark.parametrize("activation", [jax.nn.relu, jnp.tanh])
def test_ascent_finds_the_maximum_over_a_line(activation):
    """One dimension: W and v are numbers, and a grid shows the whole class."""
    sample = sequences(2, 10, 4, 1)
    found = rademacher_complexity(
        KEY,
        attention("1,1", (3.0, 0.8, 1.5, 1.0), activation),
        sample,
        sign_vectors=5,
        starts=8,
        steps=60,
        chunk=5,
    )
    tokens = np.asarray(sample.tokens[:, :, 0])
    W = np.linspace(-3, 3, 4001)[:, None, None]
    logits = W * tokens * tokens[:, :1]
    weights = np.exp(logits - logits.max(axis=2, keepdims=True))
    pooled = (weights * tokens).sum(axis=2) / weights.sum(axis=2)
    signs = draw_signs(KEY, 5, 10)
    # v at some steps between its ends: tanh is not a convex function of it.
    values = [
        np.asarray(activation(jnp.asarray(v * pooled))) @ signs.T for v in np.linspace(-0.8, 0.8, 9)
    ]
    best = 1.5 * np.max(np.abs(values), axis=(0, 1)) / 10
    # Largest slope in W: 1.5 x 0.8 x (largest token)^3 at most, over half a grid step.
    slack = 1.2 * np.abs(tokens).max() ** 3 * 6 / 4000 / 2
    assert np.all(found.suprema >= best * (1 - 1e-3))
    assert np.all(found.suprema <= best + slack) or activation is jnp.tanh


@pytest.mark.thorough
def test_without_attention_the_class_is_linear():
    sample = sequences(3, 15, 6, 3)
    identity = attention("1,1", (0.0, 0.7, 2.0, 1.0), lambda x: x)
    found = rademacher_complexity(KEY, identity, sample, sign_vectors=4, starts=2, steps=20)
    mean = sample.tokens.mean(axis=1)[:, :, None]
    linear = LinearClass("1,1", jnp.array(1.4))
    exact = linear.suprema(jnp.asarray(draw_signs(KEY, 4, 15)), mean)
    np.testing.assert_allclose(found.suprema, exact, rtol=1 / 20**2)


@pytest.mark.thorough
@pytest.mark.parametrize("ball", ["1,1", "spectral"])
def test_no_random_transformer_of_the_class_does_better(ball):
    """The reduced class against the four weight matrices of Theorem 4.1, k = 3 hidden units."""
    sample, draws = sequences(4, 12, 5, 2), generator(jax.random.key(5))
    reduced = attention(ball, (2.0, 0.7, 1.5, 1.0))
    # Maxima are many: eight starts miss a fifth of the best value at one of these sign vectors.
    found = rademacher_complexity(KEY, reduced, sample, sign_vectors=4, starts=64, steps=60)
    count = 20000
    w, W_qk, W_v, W_c = (
        project(jnp.asarray(4 * draws.standard_normal((count, *shape))), kind, radius)
        for shape, kind, radius in (
            ((2, 1), "1,1", 1.0),
            ((2, 2), ball, 2.0),
            ((2, 3), "1,inf", 0.7),
            ((3, 2), "1,inf", 1.5),
        )
    )

    def outputs(w, *heads):
        model = SingleLayerTransformer(w[:, 0], *(each[None] for each in heads))
        return jax.vmap(model)(*sample)

    values = jax.vmap(outputs)(w, W_qk, W_v, W_c)
    best = np.max(np.asarray(values) @ draw_signs(KEY, 4, 12).T, axis=0) / 12
    assert np.all(best <= found.suprema * (1 + 1e-3))
    # And the reduced class is no larger: one of its functions as a Transformer.
    W, v = W_qk[0], project(jnp.ones((2, 1)), "1,1", 0.7)
    model = SingleLayerTransformer(
        jnp.array([0.0, -1.0]),
        W[None],
        jnp.pad(v, ((0, 0), (0, 2)))[None],
        1.5 * jnp.eye(3, 2)[None, :, ::-1],
    )
    one = reduced((W, v, jnp.array(-1.0)), sample)
    np.testing.assert_allclose(jax.vmap(model)(*sample), one, atol=100 * EPS)


@pytest.mark.thorough
def test_more_starts_and_steps_do_not_change_the_signs():
    sample = sequences(6, 10, 4, 2)
    relu = attention("1,1", (2.0, 1.0, 1.0, 1.0))
    few = rademacher_complexity(KEY, relu, sample, sign_vectors=3, starts=1, steps=0)
    many = rademacher_complexity(KEY, relu, sample, sign_vectors=3, starts=8, steps=40)
    assert np.all(many.suprema >= few.suprema)
    assert many.certain < many.value <= relu.largest(sample)


@pytest.mark.thorough
def test_interval_covers_the_mean_of_exact_suprema():
    """Independent estimates of a linear class of which all 2^8 sign vectors can be written down."""
    x = jnp.asarray(generator(jax.random.key(7)).standard_normal((8, 2, 2)))
    linear = LinearClass("frobenius", jnp.array(1.0))
    every = 1.0 - 2.0 * ((np.arange(256)[:, None] >> np.arange(8)) & 1)
    truth = float(np.mean(linear.suprema(jnp.asarray(every), x)))
    signs = draw_signs(KEY, 200 * 30, 8)
    suprema = np.asarray(linear.suprema(jnp.asarray(signs), x)).reshape(200, 30)
    largest = linear.largest(x)
    found = [rademacher_estimate(each, 8, largest) for each in suprema]
    covered = sum(each.low <= truth <= each.high for each in found)
    certain = sum(each.certain <= truth for each in found)
    # 95 % of 200, less three standard deviations of the count and a little for skewness.
    assert covered >= 178
    assert certain >= 178


def test_bad_input_is_refused():
    linear = LinearClass("1,1", jnp.array(1.0))
    with pytest.raises(UserError, match="choose two sign vectors"):
        rademacher_complexity(KEY, linear, jnp.ones((2, 1, 1)), sign_vectors=1)
    with pytest.raises(UserError, match="NaN or infinite"):
        rademacher_complexity(KEY, linear, jnp.full((2, 1, 1), jnp.nan))
    with pytest.raises(UserError, match=r"leading axes \[0\]"):
        rademacher_complexity(KEY, linear, jnp.float64(1.0))


@pytest.mark.parametrize("name", ["starts", "chunk", "repeats", "steps"])
def test_the_smallest_numbers_are_taken_and_none_below(name):
    smallest = {"sign_vectors": 2, "starts": 1, "steps": 0, "chunk": 1, "repeats": 1}
    found = rademacher_complexity(KEY, TanhClass(1.0), np.ones((2, 1)), **smallest)
    assert found.suprema.shape == (2,)
    with pytest.raises(UserError, match="choose two sign vectors"):
        rademacher_complexity(
            KEY, TanhClass(1.0), np.ones((2, 1)), **smallest | {name: smallest[name] - 1}
        )
