"""Regularisation paths: stationarity, minimality against sampling, and their limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.data.token_selection import (
    TokenSelection,
    make_separable_selection,
    optimal_tokens,
    token_scores,
)
from attlas.losses.logistic import logistic
from attlas.losses.margin_loss import margin_loss
from attlas.norms.entrywise import entrywise_norm
from attlas.solvers.attention_svm import attention_svm
from attlas.solvers.lp_svm import lp_svm
from julistiono2024optimizing.library.solvers.ball_minimum import CONE_SLACK, BallMinimum, Cone
from julistiono2024optimizing.library.solvers.regularisation_path import (
    LogExcessLoss,
    LogJointLoss,
    _directions,
    _solution,
    joint_regularisation_path,
    regularisation_path,
)

DATA = make_separable_selection(jax.random.key(1), n=2, T=3, d=3)
KEY = jax.random.key(0)


def plain_loss(W):
    s = jax.nn.softmax(jnp.einsum("ntd,nd->nt", DATA.X, DATA.z @ W.T), axis=1)
    return jnp.mean(logistic(DATA.y * (jnp.einsum("nt,ntd->nd", s, DATA.X) @ DATA.v)))


def direction_divergence(centre, W, p):
    unit = W / entrywise_norm(W.ravel(), p)
    return float(1 - jnp.sum(jnp.sign(unit) * jnp.abs(unit) ** (p - 1) * centre))


@pytest.mark.parametrize("name", ["logistic", "exponential", "correlation"])
def test_log_excess_is_the_loss_above_its_limit(name):
    loss = margin_loss(name)
    W = jax.random.normal(KEY, (3, 3))
    s = jax.nn.softmax(jnp.einsum("ntd,nd->nt", DATA.X, DATA.z @ W.T), axis=1)
    scores = token_scores(DATA)
    excess = jnp.mean(loss.value(jnp.sum(s * scores, 1)) - loss.value(jnp.max(scores, 1)))
    assert float(LogExcessLoss(DATA, loss)(W)) == pytest.approx(float(jnp.log(excess)), rel=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_path_turns_to_the_attention_svm(p):
    path = regularisation_path(DATA, [5.0, 50.0, 500.0], p, key=KEY, starts=2)
    assert path.converged.all()
    svm = attention_svm(DATA.X, DATA.z, optimal_tokens(DATA), p)
    centre = svm.unwrap() / svm.certificate["norm_upper"]
    apart = [direction_divergence(centre, W, p) for W in path.value]
    # the bias falls like 1 / R in the direction, hence like 1 / R^2 in the divergence
    assert apart[1] < apart[0] / 5
    assert apart[2] < apart[1] / 5
    norms = [float(entrywise_norm(W.ravel(), p)) for W in path.value]
    np.testing.assert_allclose(norms, [5.0, 50.0, 500.0], rtol=1e-12)


@pytest.mark.thorough
def test_no_sampled_point_of_the_ball_is_lower():
    W = regularisation_path(DATA, [3.0], 3.0, key=KEY, starts=4).value[0]
    others = jax.random.normal(KEY, (2000, 3, 3))
    norms = jax.vmap(lambda V: entrywise_norm(V.ravel(), 3.0))(others)
    values = jax.vmap(plain_loss)(3.0 * others / norms[:, None, None])
    assert float(plain_loss(W)) <= float(values.min())


def test_local_path_stays_in_its_cone_and_finds_the_local_direction():
    scores = np.asarray(token_scores(DATA))
    tokens = scores.argmax(1)
    tokens[0] = np.argsort(scores[0])[1]
    svm = attention_svm(DATA.X, DATA.z, tokens, 2.0)
    centre, width = svm.unwrap() / svm.certificate["norm_upper"], jnp.array(0.05)
    path = regularisation_path(DATA, [40.0], 2.0, key=KEY, starts=2, cone=Cone(centre, width))
    assert path.certificate["cone_excess"][0] <= 1e-3
    assert direction_divergence(centre, path.value[0], 2.0) <= 0.05 * (1 + 2e-3)


@pytest.mark.thorough
def test_joint_path_turns_to_both_svms():
    p = 2.0
    radii = [(4.0, 40.0), (16.0, 160.0), (64.0, 640.0)]
    path = joint_regularisation_path(DATA, radii, p, key=KEY, starts=6)
    # At the last radius softmax is one-hot to rounding and the code says so.
    assert path.result.tolist() == [0, 0, Result.GRADIENT_BELOW_ROUNDING]
    v, W = (jnp.asarray(part[1]) for part in path.value)
    tokens = np.asarray(optimal_tokens(with_head(v)))
    at = np.asarray(DATA.X)[np.arange(2), tokens]
    head = lp_svm(at, DATA.y, p)
    svm = attention_svm(DATA.X, DATA.z, tokens, p)
    cosine = [
        float(jnp.vdot(a, b) / jnp.linalg.norm(a) / jnp.linalg.norm(b))
        for a, b in ((v, head.unwrap()), (W, svm.unwrap()))
    ]
    assert min(cosine) > 0.99


def with_head(v):
    return type(DATA)(DATA.X, DATA.y, DATA.z, v)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"p": 1.0}, "p = 1.0"),
        ({"p": float("inf")}, "p = inf"),
        ({"radii": []}, "not positive and increasing"),
        ({"radii": [2.0, 1.0]}, "not positive and increasing"),
        ({"starts": 0}, "starts = 0"),
        ({"loss": "hinge"}, "unknown loss"),
        ({"tolerance": 2.0}, "tolerance"),
    ],
)
def test_bad_input_is_one_line(change, message):
    given = {"radii": [1.0], "p": 2.0, "key": KEY} | change
    with pytest.raises(UserError, match=message) as caught:
        regularisation_path(DATA, given.pop("radii"), given.pop("p"), **given)
    assert "\n" not in str(caught.value)


RNG = np.random.default_rng(14)
SIZED = TokenSelection(
    *(jnp.asarray(a) for a in (
        RNG.normal(size=(3, 4, 5)), np.array([1.0, -1, -1]), RNG.normal(size=(3, 5)),
        RNG.normal(size=5),
    ))
)  # fmt: skip
LOSSES = {"logistic": lambda m: np.log1p(np.exp(-m)), "exponential": lambda m: np.exp(-m)}


def weights(W):
    h = np.einsum("ntd,de,ne->nt", SIZED.X, W, SIZED.z)
    raised = np.exp(h - h.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("name", ["logistic", "exponential"])
def test_both_objectives_are_logarithms_of_risks(name):
    """Shortfalls of about 3, so that slopes vary along them."""
    W, v, loss = RNG.normal(size=(5, 5)), RNG.normal(size=5), LOSSES[name]
    scores = np.asarray(SIZED.y)[:, None] * (np.asarray(SIZED.X) @ np.asarray(SIZED.v))
    excess = np.mean(loss(np.sum(weights(W) * scores, axis=1)) - loss(scores.max(axis=1)))
    found = LogExcessLoss(SIZED, margin_loss(name))(jnp.asarray(W))
    assert float(found) == pytest.approx(np.log(excess), rel=1e-11)
    margins = np.asarray(SIZED.y) * np.einsum("nt,ntd,d->n", weights(W), SIZED.X, v)
    found = LogJointLoss(SIZED, margin_loss(name))(jnp.asarray(v), jnp.asarray(W))
    assert float(found) == pytest.approx(np.log(np.mean(loss(margins))), rel=1e-12)


def test_starts_of_a_local_path_are_near_the_centre_of_its_cone():
    centre = jnp.asarray(RNG.normal(size=(5, 5)))
    plain = _directions(KEY, 2, 3, SIZED, None)
    assert plain.shape == (2, 3, 5, 5)
    # 150 standard normal numbers: six standard errors of mean and variance.
    assert abs(float(plain.mean())) < 6 / 150**0.5
    assert abs(float(plain.var()) - 1) < 6 * (2 / 150) ** 0.5
    near = _directions(KEY, 2, 3, SIZED, Cone(centre, jnp.array(0.1)))
    shaken = (near - centre[None, None]) / jnp.abs(centre).max()
    np.testing.assert_allclose(shaken, 0.01 * plain, rtol=0, atol=1e-14)


def test_joint_points_lie_on_the_spheres_of_their_pairs():
    data = TokenSelection(SIZED.X[:2, :3], SIZED.y[:2], SIZED.z[:2], SIZED.v)
    path = joint_regularisation_path(
        data, [(0.5, 1.5), (0.7, 3.0)], 3.0, key=KEY, starts=2, max_steps=3
    )
    v, W = path.value
    norms = np.sum(np.abs(v) ** 3, axis=1) ** (1 / 3)
    np.testing.assert_allclose(norms, [0.5, 0.7], rtol=1e-12)
    np.testing.assert_allclose(np.sum(np.abs(W) ** 3, axis=(1, 2)) ** (1 / 3), [1.5, 3], rtol=1e-12)
    objective = LogJointLoss(data, margin_loss("logistic"))
    values = [float(objective(jnp.asarray(v[k]), jnp.asarray(W[k]))) for k in range(2)]
    np.testing.assert_allclose(path.certificate["log_excess"], values, rtol=1e-10)


def test_codes_of_points_at_and_beyond_every_limit():
    rounding = 1000 * np.finfo(float).eps
    rows = [
        # value, relative gap, gap, cone excess, code
        (-3.0, 1e-4, 1.0, -1.0, Result.CONVERGED),
        (-3.0, 1.01e-4, 1.0, -1.0, Result.MAX_STEPS),
        (-3.0, 1e-5, 1.0, CONE_SLACK, Result.CONVERGED),
        (-3.0, 1e-5, 1.0, 1.01 * CONE_SLACK, Result.MAX_STEPS),
        (-3.0, 0.5, 4 * rounding, -1.0, Result.GRADIENT_BELOW_ROUNDING),
        (-3.0, 0.5, 4.01 * rounding, -1.0, Result.MAX_STEPS),
        (-3.0, 1e-5, rounding, -1.0, Result.CONVERGED),
        (np.nan, 1e-5, 1.0, -1.0, Result.NOT_FINITE),
        (-np.inf, 0.5, 1.0, -1.0, Result.NOT_FINITE),
    ]
    minima = [
        BallMinimum((), value, relative, gap, excess, k, 10 + k)
        for k, (value, relative, gap, excess, _) in enumerate(rows)
    ]
    found = _solution(np.zeros(9), minima, 1e-4)
    assert found.result.tolist() == [int(row[-1]) for row in rows]
    names = ("log_excess", "relative_gap", "frank_wolfe_gap", "cone_excess")
    for column, name in enumerate(names):
        np.testing.assert_array_equal(found.certificate[name], [row[column] for row in rows])
    assert found.certificate["starts_agreeing"].tolist() == list(range(9))
    assert found.stats["evaluations"].tolist() == list(range(10, 19))
