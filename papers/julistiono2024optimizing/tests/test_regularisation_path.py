"""Regularisation paths: stationarity, minimality against sampling, and their limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.data.token_selection import make_separable_selection, optimal_tokens, token_scores
from attlas.losses.logistic import logistic
from attlas.losses.margin_loss import margin_loss
from attlas.norms.entrywise import entrywise_norm
from attlas.solvers.attention_svm import attention_svm
from attlas.solvers.lp_svm import lp_svm
from julistiono2024optimizing.library.solvers.ball_minimum import Cone
from julistiono2024optimizing.library.solvers.regularisation_path import (
    LogExcessLoss,
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
