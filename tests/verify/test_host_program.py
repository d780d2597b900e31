"""Claims in plain NumPy: the verdicts of the same claims in JAX, with violations confirmed."""

import math
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control, assume
from attlas.claims.domains.vectors import Ball
from attlas.claims.statement import identity, inequality, limit, probability
from attlas.claims.verdict import Outcome
from attlas.core.errors import UserError
from attlas.verify.certify import certify
from attlas.verify.challenge import challenge, replay
from attlas.verify.check import check
from attlas.verify.evidence import compile_program
from attlas.verify.power import power

HALF = [Control("half", factor=0.5)]


def pairs(rng, count):
    return {"x": rng.normal(size=(count, 4)), "y": rng.normal(size=(count, 4))}


def in_both(xp, sides, **details):
    """One claim, in plain NumPy or in JAX."""

    def claim(x, y, *, factor=1.0):
        "A statement."
        return sides(xp, x, y, factor)

    backend = "numpy" if xp is np else "jax"
    return inequality(sample=pairs, controls=HALF, backend=backend, **details)(claim)


def triangle(xp, x, y, factor):
    return xp.linalg.norm(x + y), factor * (xp.linalg.norm(x) + xp.linalg.norm(y))


def too_strong(xp, x, y, factor):
    return xp.sum((x + y) ** 2), factor * 1.9 * (xp.sum(x**2) + xp.sum(y**2))


@pytest.mark.thorough
def test_both_backends_give_the_same_report():
    of_numpy, of_jax = (check(in_both(xp, triangle), challenge=1) for xp in (np, jnp))
    assert of_numpy.verdict.outcome is of_jax.verdict.outcome is Outcome.SUPPORTED
    assert of_numpy.verdict.tightness == pytest.approx(of_jax.verdict.tightness, rel=1e-12)
    assert of_numpy.detection == pytest.approx(of_jax.detection, rel=1e-9)
    assert [c.verdict.outcome for c in of_numpy.controls] == [Outcome.VIOLATED]
    assert of_numpy.challenge.ratio == pytest.approx(1, abs=1e-3)
    assert of_numpy.defects == ()


@pytest.mark.parametrize("method", ["moves", "covariance", "extremes", "auto"])
def test_methods_without_gradients_find_a_false_claim_and_digits_confirm_it(method):
    claim = in_both(np, too_strong, search_over=("x", "y"))
    report = challenge(claim, method=method, evaluations=6400)
    assert report.violated
    assert report.verdict.confirmed.violates
    assert report.verdict.confirmed.digits >= 50
    again = replay(claim, dict(report.verdict.witness))
    assert again.outcome is Outcome.VIOLATED
    assert again.tightness == report.verdict.tightness


def test_gradients_are_refused_with_the_reason():
    with pytest.raises(UserError, match="no gradient to follow"):
        challenge(in_both(np, triangle, search_over=("x", "y")), method="ascent")


def cancelling(scale):
    @inequality(
        sample=lambda rng, count: {"x": rng.uniform(0.5 * scale, scale, size=count)},
        controls=[Control("0.6", least=0.6)],
        backend="numpy",
    )
    def cosine(x, *, least=0.49):
        r"""$$0.49 \le (1 - \cos x) / x^2$$"""
        return least, (1 - np.cos(x)) / x**2

    return cosine


def test_a_violation_that_is_rounding_is_withdrawn():
    verdict = check(cancelling(1e-9), challenge=0).verdict
    assert verdict.outcome is Outcome.SUPPORTED
    assert "in floats withdrawn in digits" in verdict.reason


@pytest.mark.parametrize(
    ("sides", "why"),
    [
        (lambda x: (math.fsum(abs(x)), np.max(abs(x))), "it makes a float of a number"),
        (lambda x: (np.sum(abs(np.fft.fft(x))), 0.0), "np.fft.fft has no rule"),
        (lambda x: (np.polyval([1.0, 0.0], x.tolist()).sum() + 100, 0.0), ""),
    ],
    ids=["math", "Fourier", "lists"],
)
def test_what_digits_cannot_evaluate_is_inconclusive_with_the_reason(sides, why):
    claim = inequality(
        sample=lambda rng, count: {"x": rng.normal(size=(count, 4))},
        controls=[Control("none", changed=True)],
        backend="numpy",
    )(_documented(lambda x, *, changed=False: sides(x)))
    verdict = check(claim, challenge=0).verdict
    if why:
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert why in verdict.reason
    else:
        assert verdict.outcome is Outcome.VIOLATED


def _documented(function):
    function.__name__, function.__doc__ = "sides", "A statement."
    return function


def test_loops_branches_and_writing_to_an_array_are_allowed():
    @inequality(sample=pairs, controls=HALF, backend="numpy")
    def loops(x, y, *, factor=1.0):
        r"""$$\sum_i \max(x_i, 0) \le \|x\|_1$$"""
        total = 0.0
        for value in x:
            if value > 0:
                total += value
        x[:] = np.abs(x)
        return total, factor * x.sum()

    report = check(loops, challenge=0)
    assert report.defects == ()
    # Each variant has its own copy: the control saw the instance, and not its absolute values.
    assert report.controls[0].verdict.outcome is Outcome.VIOLATED


@pytest.mark.thorough
def test_domains_and_assumptions_exclude_instances():
    @inequality(
        domains=[Ball("x", 1.0, shape="n")],
        sizes={"n": 3},
        assumptions=[assume("the first entry is positive", lambda x: x[0] > 0)],
        controls=[Control("cubed", power=3)],
        count=128,
        backend="numpy",
    )
    def shorter(x, *, power=1):
        r"""$$\|x\|^2 \le \|x\|$$"""
        return np.linalg.norm(x) ** 2, np.linalg.norm(x) ** power

    holds, _ = compile_program(shorter)({"x": np.array([[2.0, 0, 0], [0.5, 0, 0], [-0.5, 0, 0]])})
    assert holds.tolist() == [[False, True], [True, True], [True, False]]
    report = check(shorter, challenge=1)
    assert report.defects == ()
    assert report.challenge.ratio == pytest.approx(1, abs=1e-3)


def test_a_projection_in_plain_numpy_is_applied_after_each_move():
    def inside(x):
        return {"x": x / max(1.0, np.linalg.norm(x))}

    @inequality(
        sample=lambda rng, count: {"x": rng.normal(size=(count, 3)) / 9},
        assumptions=[assume("short", lambda x: np.linalg.norm(x) <= 1 + 1e-12)],
        search_over="x",
        project=inside,
        controls=[Control("cubed", power=3)],
        backend="numpy",
    )
    def shorter(x, *, power=1):
        r"""$$\|x\|^2 \le \|x\|$$"""
        return np.linalg.norm(x) ** 2, np.linalg.norm(x) ** power

    report = challenge(shorter, evaluations=6400)
    assert not report.violated
    assert report.ratio == pytest.approx(1, abs=1e-3)


def test_an_assumption_that_is_nan_is_a_fault():
    @inequality(
        sample=pairs,
        controls=HALF,
        assumptions=[assume("small", lambda x: np.sqrt(x[0] - 10) < 1)],
        backend="numpy",
    )
    def never(x, y, *, factor=1.0):
        "A statement."
        return 0.0, factor

    assert any(
        "is NaN on an instance that it refuses" in fault
        for fault in check(never, challenge=0).faults
    )


def test_other_kinds_are_decided_as_in_jax():
    n = 10.0 ** np.arange(4)
    draw = {"sample": lambda rng, count: {"x": rng.normal(size=count)}, "backend": "numpy"}

    @identity(controls=[Control("no 2x", factor=0.0)], **draw)
    def square(x, *, factor=2.0):
        "$$(x + 1)^2 = x^2 + 2x + 1$$"
        return (x + 1) ** 2, x**2 + factor * x + 1

    @limit(scales=n, controls=[Control("to 1", goal=1.0)], **draw)
    def vanishes(x, *, goal=0.0):
        r"$$x / n \to 0$$"
        return np.tanh(x) / n, goal * np.ones(4)

    @probability(level=0.4, independent="x", controls=[Control("never", most=-9.0)],
                 count=400, **draw)  # fmt: skip
    def often(x, *, most=0.0):
        r"$$P(x < 0) \ge 0.4$$"
        return x < most

    for claim in (square, vanishes, often):
        report = check(claim, challenge=0)
        assert (report.verdict.outcome, report.defects) == (Outcome.SUPPORTED, ()), report.verdict


def test_power_and_certificates_know_the_backend():
    assert power(in_both(np, triangle), factors=(100.0,)).rows
    claim = in_both(np, too_strong)
    witness = {"x": np.ones(4), "y": np.ones(4)}
    assert certify(claim, witness) == "not certified: a function in plain NumPy has no intervals"


def test_mistakes_are_one_line():
    with pytest.raises(UserError, match="backend='torch' is neither jax nor numpy"):
        inequality(sample=pairs, controls=HALF, backend="torch")(_documented(lambda x: (0, 1)))  # pyright: ignore
    with pytest.raises(UserError, match=r"reduce it by np\.all"):
        in_both(np, triangle, assumptions=[assume("positive", lambda x: x > 0)])
    with pytest.raises(UserError, match=r"in line \d+ fails on a drawn instance: KeyError"):
        in_both(np, lambda xp, x, y, factor: {}["a"])
    with pytest.raises(UserError, match="give backend='numpy'"):
        in_both(jnp, lambda xp, x, y, factor: (np.linalg.norm(x), factor))
    with pytest.raises(UserError, match="return the pair"):
        in_both(np, lambda xp, x, y, factor: 1.0)


def test_a_claim_of_jax_is_not_changed():
    claim = in_both(jnp, triangle)
    assert claim.backend == "jax"
    assert replace(claim, backend="numpy") != claim
