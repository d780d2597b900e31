"""False or unfounded claims as a careless author writes them: none may pass without a word.

Each is false as stated, or true for a reason that its check does not see, and has a control that
fails as it should.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control, Sides, assume
from attlas.claims.statement import (
    existence,
    expectation,
    identity,
    inequality,
    limit,
    probability,
    rate,
)
from attlas.claims.verdict import Outcome
from attlas.verify.check import check

HALF = [Control("half", factor=0.5)]
SCALES = (10.0, 100.0, 1000.0, 10000.0)
TWO_VECTORS = {"x": np.array([1.0, 0, 0]), "y": np.array([0.0, 1, 0])}


def separately(rng, count):
    """Gaussian pairs, each drawn by itself."""
    return {"x": rng.normal(size=(count, 3)), "y": rng.normal(size=(count, 3))}


def numbers(rng, count):
    """Uniform numbers in (0, 1)."""
    return {"t": rng.uniform(size=count)}


def norm(x):
    return jnp.linalg.norm(x)


@inequality(sample=separately, controls=HALF)
def a_constant_that_samples_do_not_reach(x, y, *, factor=0.99):
    r"""$$\|x+y\| \le .99 (\|x\|+\|y\|)$$"""
    return norm(x + y), factor * (norm(x) + norm(y))


@inequality(sample=numbers, controls=HALF)
def a_corner_that_samples_do_not_reach(t, *, factor=0.9999):
    r"""$$t (2 - t) \le .9999$$"""
    return t * (2 - t), factor * jnp.ones(())


@identity(sample=separately, controls=[Control("twice", factor=2e9)])
def an_identity_of_huge_magnitude(x, *, factor=1.01):
    r"""$$\|x\| = 1.01 \|x\|$$"""
    return Sides(norm(x), factor * norm(x), magnitude=jnp.asarray(1e13))


@identity(sample=numbers, controls=[Control("far away", shift=5.0)])
def an_identity_of_certified_error_one(t, *, shift=0.0):
    r"""$$t = t/2$$"""
    return Sides(t + shift, t / 2, error=1.0)


@inequality(sample=separately, controls=[Control("half of the first", factor=0.5)])
def a_false_component_among_true_ones(x, y, *, factor=1.0):
    r"""$$\|x+y\| \le \|x\|+\|y\|, \quad \|x\| \le 100$$"""
    left, right = jnp.stack([norm(x + y), norm(x)]), jnp.stack([norm(x) + norm(y), 100.0])
    return left, right * jnp.stack([factor, 1.0])


@inequality(sample=separately, alike=True, controls=[Control("half of the first", factor=0.5)])
def a_false_component_among_alike_ones(x, y, *, factor=1.0):
    r"""$$\|x+y\| \le \|x\|+\|y\|, \quad \|x\| \le 100$$"""
    return a_false_component_among_true_ones(x, y, factor=factor)


@inequality(sample=separately, alike=True, controls=[Control("half of the others", factor=0.5)])
def a_false_component_among_more_alike_ones(x, y, *, factor=1.0):
    r"""$$\|x \pm y\| \le \|x\|+\|y\|, \quad \|x\| \le 100$$"""
    left, right = jnp.stack([norm(x + y), norm(x - y), norm(x)]), norm(x) + norm(y)
    return left, jnp.append(factor * right * jnp.ones(2), 100.0)


def one_draw(rng, count, offset=0.0):
    """One uniform number for all trials, each moved a little."""
    return {"t": rng.uniform(size=1) + offset * np.arange(count)}


one_trial = partial(
    probability,
    level=0.9,
    count=4000,
    independent="a uniform number",
    controls=[Control("never", above=2.0)],
)


@one_trial(sample=one_draw)
def a_probability_of_one_draw_repeated(t, *, above=0.5):
    r"""$$P(t > .5) \ge .9$$"""
    return t > above


@one_trial(sample=partial(one_draw, offset=1e-9))
def a_probability_of_one_draw_moved(t, *, above=0.5):
    r"""$$P(t > .5) \ge .9$$"""
    return t > above


@expectation(
    range=0.1,
    sample=numbers,
    independent="a uniform number",
    count=256,
    controls=[Control("more", shift=9.0)],
)
def an_expectation_of_too_small_a_range(t, *, shift=0.0):
    r"""$$E t \le .6$$"""
    return t + shift, jnp.asarray(0.6)


@inequality(
    sample=lambda rng, count: {"k": np.arange(count)},
    count=1,
    enumerates=100,
    controls=[Control("one more", shift=99)],
)
def an_enumeration_of_one(k, *, shift=0):
    r"""$$k^2 \le 50 \text{ for } k = 0, \dots, 99$$"""
    return k**2 + shift, jnp.asarray(50)


@inequality(
    sample=lambda rng, count: {k: np.repeat(v[None], count, 0) for k, v in TWO_VECTORS.items()},
    controls=HALF,
)
def copies_of_one_instance(x, y, *, factor=1.5):
    r"""$$\|x+y\| \le 1.5 \max(\|x\|, \|y\|)$$"""
    return norm(x + y), factor * jnp.maximum(norm(x), norm(y))


@inequality(witness=lambda: TWO_VECTORS, controls=HALF)
def an_ordinary_claim_on_a_witness(x, y, *, factor=1.5):
    r"""$$\|x+y\| \le 1.5 \max(\|x\|, \|y\|)$$"""
    return norm(x + y), factor * jnp.maximum(norm(x), norm(y))


@limit(scales=SCALES, sample=numbers, controls=[Control("higher", plateau=1.0)])
def a_limit_with_a_plateau(t, *, plateau=2e-5):
    r"""$$1/n + 2 \cdot 10^{-5} \to 0$$"""
    return (1 + t) / jnp.asarray(SCALES) + plateau, jnp.zeros(4)


@rate(scales=SCALES, sample=numbers, controls=[Control("without the transient", transient=0.0)])
def a_rate_behind_a_transient(t, *, transient=1e5):
    r"""$$n^{-1} + 10^5 n^{-2} + 10^{-4} = O(n^{-1})$$"""
    n = jnp.asarray(SCALES)
    return (1 + t) / n + transient / n**2 + 1e-4, 1 / n


@inequality(
    sample=numbers,
    assumptions=[assume("$\\log(.9 - t)$ is at most 0", lambda t: jnp.log(0.9 - t) <= 0)],
    controls=HALF,
    count=256,
)
def an_assumption_that_is_nan_on_the_hard_cases(t, *, factor=1.0):
    r"""$$t \le .9$$"""
    return t, factor * jnp.asarray(0.9)


@existence(witness=lambda: {"t": np.asarray(np.nan)}, controls=[Control("other", shift=1.0)])
def an_object_that_is_not_a_number(t, *, shift=0.0):
    r"""$$\exists t: t \le 0$$"""
    return t + shift, jnp.zeros(())


CARELESS = (
    (a_constant_that_samples_do_not_reach, "counterexample"),
    (a_corner_that_samples_do_not_reach, "counterexample"),
    (an_identity_of_huge_magnitude, "relative error"),
    (an_identity_of_certified_error_one, "relative error"),
    (a_false_component_among_true_ones, "no control violates 1 of its 2 components (1)"),
    (a_false_component_among_alike_ones, "no control violates 1 of its 2 components (1)"),
    (a_false_component_among_more_alike_ones, "no control violates 1 of its 3 components (2)"),
    (a_probability_of_one_draw_repeated, "1 of 4000 draws differ"),
    (a_probability_of_one_draw_moved, " of 4000 draws differ"),
    (an_expectation_of_too_small_a_range, "beyond the stated range"),
    (an_enumeration_of_one, "1 distinct instances, where 100"),
    (copies_of_one_instance, "only 1 distinct"),
    (an_ordinary_claim_on_a_witness, "single stored instance"),
    (a_limit_with_a_plateau, "the scales do not suffice"),
    (a_rate_behind_a_transient, "the scales do not suffice"),
    (an_assumption_that_is_nan_on_the_hard_cases, "is NaN"),
    (an_object_that_is_not_a_number, "not finite"),
)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("claim", "words"), CARELESS, ids=[claim.name.split("/")[1] for claim, _ in CARELESS]
)
def test_a_careless_claim_does_not_pass(claim, words):
    report = check(claim, challenge=1)
    assert any(words in text for text in report.defects), report.defects


def test_their_controls_alone_would_have_let_most_of_them_pass():
    """The defects come from the rules, not from controls that do not fail."""
    ruled_out = ("not finite", "draws differ", "beyond the stated range")
    for claim, words in CARELESS:
        if words.endswith(ruled_out) or claim is an_object_that_is_not_a_number:
            continue
        controls = check(claim, challenge=0).controls
        assert all(control.verdict.outcome is Outcome.VIOLATED for control in controls), claim.name
