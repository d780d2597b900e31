"""Rates and limits as a user writes them in a file of his own, until the scales decide."""

import runpy
from dataclasses import replace

import pytest

import attlas as at
from attlas.claims.verdict import Outcome

FILE = '''"""Rates of gradient descent."""
import jax
import jax.numpy as jnp
import numpy as np
import attlas as at


def regressions(rng, count):
    return {"A": rng.normal(size=(count, 20, 5)), "y": rng.normal(size=(count, 20))}


@at.rate(
    scales=at.Doubling("t", 1),
    sample=regressions,
    controls=[at.Control("a step above 2 / L", step=2.1)],
)
def least_squares(A, y, t, *, step=1.0):
    """Gradient descent on least squares has the error O(1/t)."""
    size = step / jnp.linalg.eigvalsh(A.T @ A)[-1]
    loss = lambda w: jnp.sum((A @ w - y) ** 2) / 2

    def descend(w, _):
        w = w - size * A.T @ (A @ w - y)
        return w, loss(w)

    losses = jax.lax.scan(descend, jnp.zeros(5), None, length=int(t[-1]))[1]
    return losses[t - 1] - loss(jnp.linalg.lstsq(A, y)[0]), 1 / t


@at.rate(
    scales=at.Doubling("t", 16),
    sample=regressions,
    controls=[at.Control("a step above 2 / L", step=2.1)],
)
def from_sixteen(A, y, t, *, step=1.0):
    """Gradient descent on least squares has the error O(1/t)."""
    return least_squares.function(A, y, t, step=step)


@at.rate(
    scales=at.Doubling("t", 16),
    sample=lambda rng, n: {"A": rng.normal(size=(n, 20, 20)), "y": rng.normal(size=(n, 20))},
    controls=[at.Control("a step above 2 / L", step=2.1)],
)
def square(A, y, t, *, step=1.0):
    """Square systems have condition numbers up to 1e7, and errors that wait at plateaus."""
    size = step / jnp.linalg.eigvalsh(A.T @ A)[-1]
    descend = lambda w, _: (w - size * A.T @ (A @ w - y), jnp.sum((A @ w - y) ** 2) / 2)
    losses = jax.lax.scan(descend, jnp.zeros(20), None, length=int(t[-1]) + 1)[1]
    return losses[t], 1 / t


@at.rate(
    scales=2.0 ** np.arange(4, 10),
    sample=regressions,
    controls=[at.Control("a step above 2 / L", step=2.1)],
)
def at_six_scales(A, y, *, step=1.0):
    """Gradient descent on least squares has the error O(1/t)."""
    return least_squares.function(A, y, 2 ** np.arange(4, 10), step=step)


def spectra(rng, count):
    return {"w": rng.uniform(1, 2, size=(count, 1)) * np.ones(60), "shift": rng.uniform(size=count)}


@at.rate(
    scales=at.Doubling("t", 1),
    sample=spectra,
    controls=[at.Control("of order 1/t^2", power=2), at.Control("of order t^-1.5", power=1.5)],
)
def ill_conditioned(w, shift, t, *, power=1):
    """With eigenvalues from 1 to 2^-30 the error is O(1/t)."""
    eigenvalues = 2.0 ** -(shift + jnp.arange(60) / 2)

    def descend(w, _):
        w = w - eigenvalues * w
        return w, jnp.sum(eigenvalues * w**2) / 2

    errors = jax.lax.scan(descend, w, None, length=int(t[-1]))[1]
    return errors[t - 1], t ** -float(power)


def separable(rng, count):
    angle = rng.uniform(0, 2 * np.pi, size=(count, 1))
    u = np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
    x = rng.normal(size=(count, 20, 2))
    side = np.sign(np.einsum("kni,ki->kn", x, u))
    return {"z": side[..., None] * x + 0.1 * u[:, None]}


@at.rate(
    scales=at.Doubling("t", 16),
    sample=separable,
    controls=[at.Control("of order 1/t", order=lambda t: 1 / t)],
)
def margin(z, t, *, order=lambda t: 1 / np.log(t)):
    """The margin of gradient descent on the logistic loss is O(1/log t) below the largest."""
    edges = (z[:, None] - z[None]).reshape(-1, 2)
    normals = jnp.concatenate([jnp.stack([-edges[:, 1], edges[:, 0]], axis=1), z])
    lengths = jnp.linalg.norm(normals, axis=1, keepdims=True)
    best = jnp.max(jnp.min(normals / jnp.maximum(lengths, 1e-12) @ z.T, axis=1))
    step = 4 / jnp.linalg.eigvalsh(z.T @ z / len(z))[-1]

    def descend(w, _):
        w = w + step * jnp.mean(jax.nn.sigmoid(-z @ w)[:, None] * z, axis=0)
        return w, jnp.min(z @ w) / jnp.linalg.norm(w)

    return best - jax.lax.scan(descend, jnp.zeros(2), None, length=int(t[-1]))[1][t - 1], order(t)


@at.limit(
    scales=at.Doubling("t", 16), sample=separable, controls=[at.Control("twice", factor=2.0)]
)
def one_direction(z, t, *, factor=1.0):
    """The direction of gradient descent tends to (1, 0) on all data."""

    def descend(w, _):
        w = w + jnp.mean(jax.nn.sigmoid(-z @ w)[:, None] * z, axis=0)
        return w, w[0] / jnp.linalg.norm(w)

    return jax.lax.scan(descend, jnp.zeros(2), None, length=int(t[-1]))[1][t - 1], factor + 0 * t


@at.expectation(
    deviation=1.0,
    independent="sixteen normal numbers",
    sample=lambda rng, count: {"g": rng.normal(size=(count, 16))},
    controls=[at.Control("0.68 of it", factor=0.68)],
)
def maximum(g, *, factor=1.0):
    r"""$$E \\max_{i \\le 16} g_i \\le \\sqrt{2 \\log 16}$$"""
    return jnp.max(g), factor * jnp.sqrt(2 * jnp.log(16.0))
'''


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    file = tmp_path_factory.mktemp("mine") / "claims_mine.py"
    file.write_text(FILE, encoding="utf-8")
    return runpy.run_path(str(file), run_name="claims_mine")


def outcomes(report):
    return report.verdict.outcome, [control.verdict.outcome for control in report.controls]


@pytest.mark.parametrize(
    "name", ["least_squares", "from_sixteen", "at_six_scales", "ill_conditioned", "maximum"]
)
def test_a_true_rate_is_supported_and_its_false_variants_are_not(mine, name):
    report = at.check(mine[name], challenge=2 if name == "least_squares" else 0)
    assert report.defects == ()
    assert report.verdict.outcome is Outcome.SUPPORTED
    assert {control.verdict.outcome for control in report.controls} == {Outcome.VIOLATED}


def test_a_rate_that_comes_like_the_logarithm_is_supported(mine):
    claim = mine["margin"]
    report = at.check(replace(claim, scales=at.Doubling("t", 16, count=12)), challenge=0)
    assert report.defects == ()
    assert outcomes(report) == (Outcome.SUPPORTED, [Outcome.VIOLATED])
    assert "one constant serves all scales up to 2^53" in report.verdict.reason


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_rate_that_comes_like_the_logarithm_is_never_called_false(mine, seed):
    verdict, controls = outcomes(report := at.check(mine["margin"], seed=seed, challenge=0))
    assert controls == [Outcome.VIOLATED]
    if verdict is not Outcome.SUPPORTED:  # how many scales are looked at is a matter of time
        assert verdict is Outcome.INCONCLUSIVE
        assert "scales from 16 to" in report.verdict.reason
        assert "scales=Doubling('t', N)" in report.verdict.reason


@pytest.mark.parametrize(
    ("seed", "effort"), [(2, 0), pytest.param(2, 1, marks=pytest.mark.thorough), (5, 0)]
)
def test_a_rate_that_few_instances_contradict_while_most_have_not_settled_stays_open(
    mine, seed, effort
):
    report = at.check(mine["square"], seed=seed, challenge=effort)
    assert outcomes(report) == (Outcome.INCONCLUSIVE, [Outcome.VIOLATED])
    assert effort == 0 or not report.challenge.violated


def test_a_direction_that_is_not_the_limit_is_refuted_by_the_draws(mine):
    assert outcomes(at.check(mine["one_direction"], challenge=0)) == (
        Outcome.VIOLATED,
        [Outcome.VIOLATED],
    )
