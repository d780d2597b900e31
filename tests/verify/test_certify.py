"""Certified violations: proved where they are true, never where they are rounding."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control, assume
from attlas.claims.domains.vectors import Ball, Box
from attlas.claims.statement import identity, inequality
from attlas.claims.verdict import ChallengeReport
from attlas.verify.certify import certify, proved
from attlas.verify.challenge import challenge, replay
from attlas.verify.check import check

HALF = [Control("half", factor=0.5)]


@inequality(
    domains=[Ball("W", 1.0, shape=(2, 3)), Box("p", 1.0, 3.0, shape=())],
    controls=HALF,
    not_attacked="for the test",
)
def softmax_norm(W, p, *, factor=1.0):
    r"""$$\|\sigma(W 1)\|_p + \log(1 + W_{11}^2) \le 2$$"""
    weights = jax.nn.softmax(W @ jnp.ones(3))
    norm = jnp.sum(weights**p) ** (1 / p)
    return norm + jnp.log1p(W[0, 0] ** 2) + 0 * jnp.linalg.norm(W), factor * 2.0


INSIDE = {"W": np.full((2, 3), 0.3), "p": np.array(2.0)}


def test_a_true_violation_is_proved_and_a_statement_that_holds_is_not():
    half = replace(softmax_norm, function=lambda W, p: softmax_norm.function(W, p, factor=0.2))
    assert certify(half, INSIDE).startswith("proved by interval arithmetic: left - right exceeds")
    assert certify(softmax_norm, INSIDE) == "not certified: the sides are too close to tell apart"


def test_truth_values_are_compared_and_counted_as_numbers():
    @inequality(
        sample=lambda rng, count: {"x": rng.normal(size=(count, 2))},
        controls=[Control("half", most=0.5)],
        not_attacked="for the test",
    )
    def signs_agree(x, *, most=1.0):
        r"""$$1[(x_1 > 0) = (x_2 > 0)] \le 1$$"""
        return jnp.where((x[0] > 0) == (x[1] > 0), 1.0, 0.0), most

    x = {"x": np.array([0.5, 2.0])}
    half = replace(signs_agree, function=lambda x: signs_agree.function(x, most=0.5))
    assert certify(half, x).startswith("proved")
    assert certify(half, {"x": np.array([0.5, -2.0])}).startswith("not certified")
    assert certify(signs_agree, x).startswith("not certified")


def test_rounding_is_no_proof_and_an_assumption_on_its_border_is_said():
    @identity(
        sample=lambda rng, count: {"x": rng.uniform(1, 2, size=(count, 3))},
        controls=[Control("other", factor=1.1)],
    )
    def sums(x, *, factor=1.0):
        r"""$$(x_1 + x_2) + x_3 = x_1 + (x_2 + x_3)$$"""
        return (x[0] + x[1]) + x[2], factor * (x[0] + (x[1] + x[2]))

    x = {"x": np.array([0.1, 0.2, 0.3])}
    assert 0.1 + 0.2 + 0.3 != 0.1 + (0.2 + 0.3)
    assert certify(sums, x).startswith("not certified")
    wrong = replace(sums, function=lambda x: sums.function(x, factor=1 + 1e-12))
    assert certify(wrong, x).startswith("proved")
    bordered = replace(
        wrong, assumptions=(assume("the sum is at most .6", lambda x: x[0] + x[1] + x[2] <= 0.6),)
    )
    assert "assumption 'the sum" in certify(bordered, x)


def test_a_found_counterexample_is_proved_by_the_challenge_and_the_check():
    @inequality(domains=[Box("x", -1.0, 1.0, shape=2)], controls=HALF)
    def false(x, *, factor=1.0):
        r"""$$x_1 x_2 \le 0.9$$"""
        return x[0] * x[1], factor * 0.9

    found = challenge(false, method="moves")
    assert found.violated
    assert found.certified.startswith("proved by interval arithmetic")
    exact = float(found.verdict.witness["x"][0]), float(found.verdict.witness["x"][1])
    assert exact[0] * exact[1] > 0.9
    assert "proved" in repr(check(false, challenge=1))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.sum(jnp.stack([x, jnp.exp(x)])[:, 2]),
        lambda x: jnp.max(jnp.where(x > 0, jnp.tanh(x), -jnp.square(x))),
        lambda x: jnp.sum(jnp.abs(jnp.cumsum(x)[::-1]) ** 3) / jnp.cumprod(1 + jnp.abs(x))[2],
        lambda x: jax.nn.sigmoid(x[1]) - jnp.expm1(x[0]) + jax.nn.logsumexp(x),
        lambda x: jnp.einsum("i,j->ij", x, x)[0, 2] + jnp.sort(x)[0] + jnp.outer(x, x).trace(),
        lambda x: jnp.sqrt(jnp.sum(x**2)) + jnp.clip(x, -0.1, 0.1)[0] + jnp.mean(x.reshape(1, 3)),
    ],
)
def test_ordinary_operations_have_rules_and_agree_with_the_program(function):
    x = np.array([0.3, -1.2, 2.5])
    value = float(function(jnp.asarray(x)))

    def claimed(right):
        @inequality(
            sample=lambda rng, count: {"x": rng.normal(size=(count, 3))},
            controls=[Control("any", change=1.0)],
            not_attacked="for the test",
        )
        def stated(x, *, change=0.0):
            r"""$$f(x) \le r$$"""
            return function(x), jnp.asarray(right) - change

        return stated

    near = 1e-13 * (1 + abs(value))
    assert certify(claimed(value - near), {"x": x}).startswith("proved")
    assert certify(claimed(value + near), {"x": x}).startswith("not certified: the sides")


def test_an_operation_without_a_rule_is_named():
    @inequality(
        sample=lambda rng, count: {"x": rng.normal(size=(count, 2, 2))},
        controls=[Control("any", change=10.0)],
        not_attacked="for the test",
    )
    def solved(x, *, change=0.0):
        r"""$$|x^{-1}| \ge 0$$"""
        return -jnp.abs(jnp.linalg.inv(x)).max(), 0.0 - change

    assert "'lu' has no interval rule" in certify(solved, {"x": np.eye(2)})


def test_a_violation_by_spectra_is_proved_and_one_by_their_vectors_is_not():
    @inequality(
        sample=lambda rng, count: {"x": rng.normal(size=(count, 2, 2))},
        controls=[Control("any", change=10.0)],
        not_attacked="for the test",
    )
    def spectral(x, *, change=0.0):
        r"""$$\|x\|_2 + \lambda_1(x) \le \|x\|_F$$"""
        values, vectors = jnp.linalg.eigh(x)
        more = change * vectors[0, 0] if change else 0.0
        return jnp.linalg.norm(x, 2) + values[0] + more, jnp.linalg.norm(x)

    positive = {"x": np.array([[2.0, 1.0], [1.0, 2.0]])}
    assert certify(spectral, positive).startswith("proved by interval arithmetic")
    assert certify(spectral, {"x": np.array([[1.0, 2.0], [2.0, 1.0]])}).startswith("not certified")
    turned = replace(spectral, function=lambda x: spectral.function(x, change=1.0))
    assert certify(turned, positive).startswith("not certified")


def logits(rng, count):
    a, b = rng.normal(size=(2, count, 3))
    return {"a": a, "b": b}


@inequality(
    "Rounding", sample=logits, search_over=("a", "b"), controls=[Control("half", constant=0.5)]
)
def log_sum_exp_is_lipschitz(a, b, *, constant=1.0):
    r"""$$|\mathrm{lse}(a) - \mathrm{lse}(b)| \le \|a - b\|_\infty$$"""
    gap = jax.nn.logsumexp(a) - jax.nn.logsumexp(b)
    return jnp.abs(gap), constant * jnp.max(jnp.abs(a - b))


def test_a_violation_beyond_rounding_is_proved():
    half = log_sum_exp_is_lipschitz
    too_small = replace(half, function=lambda a, b: half.function(a, b, constant=0.5))
    verdict = replay(too_small, {"a": np.zeros(3), "b": np.ones(3)})
    found = proved(too_small, ChallengeReport(1.0, True, 1, 1, verdict))
    assert found.violated
    assert found.certified.startswith("proved by interval arithmetic")
