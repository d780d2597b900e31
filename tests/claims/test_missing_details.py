"""Decorators of claims with a missing or foreign keyword end in one line with the remedy."""

import re

import numpy as np
import pytest

import attlas as at
from attlas.claims.claim import Kind
from attlas.core.errors import UserError

SCALES = 10.0 ** np.arange(4)
PROBABILITY = {"level": 0.5, "independent": "a number"}
EXPECTATION = {"range": 1.0, "independent": "a number"}


def uniform(rng, count):
    return {"x": rng.uniform(size=count)}


def refused(decorator, *arguments, **details):
    """The line in which a decorator ends."""
    controls = [at.Control("twice", factor=2.0)]
    given = {"sample": uniform, "controls": controls, **details}
    with pytest.raises(UserError) as error:

        @decorator(*arguments, **given)
        def stated(x, *, factor=1.0):
            """The number is small."""
            return x, factor

    (line,) = str(error.value).splitlines()
    return line


@pytest.mark.parametrize(
    ("decorator", "details", "foreign", "plural"),
    [
        (at.expectation, EXPECTATION, {"level": 0.5}, "probabilities"),
        (at.expectation, EXPECTATION, {"parameters": [at.Box("p", 0, 1, shape=())]}, "probab"),
        (at.identity, {}, {"parameters": [at.Box("p", 0, 1, shape=())]}, "probabilities"),
        (at.inequality, {}, {"level": 0.5}, "probabilities"),
        (at.limit, {"scales": SCALES}, {"variance": 1.0}, "expectations"),
        (at.probability, PROBABILITY, {"range": 1.0}, "expectations"),
        (at.probability, PROBABILITY, {"deviation": np.ones(2)}, "expectations"),
        (at.probability, PROBABILITY, {"variance": 1.0}, "expectations"),
    ],
)
def test_a_detail_of_another_kind_is_refused(decorator, details, foreign, plural):
    (name,) = foreign
    line = refused(decorator, **details, **foreign)
    assert f"{name}= is for {plural}" in line
    assert line.endswith("leave it out")


@pytest.mark.parametrize("decorator", [at.limit, at.rate])
def test_a_limit_without_scales_says_how_to_give_them(decorator):
    line = refused(decorator)
    assert "needs the scales" in line
    assert "scales=2.0 ** np.arange(4, 12), or scales=Doubling('t', 16)" in line


@pytest.mark.parametrize(
    "details", [{}, {"reason": "x = 1"}, {"corrected": at.Control("c", factor=2.0)}]
)
def test_an_erratum_without_its_reason_or_correction_says_what_to_give(details):
    assert "reason='why" in (line := refused(at.erratum, **details))
    assert "corrected=Control(" in line


@pytest.mark.parametrize(
    ("decorator", "written"),
    [
        (at.limit, "@limit(scales=..., sample=..., controls=[Control(...)])"),
        (at.rate, "@rate(scales=..., sample=..., controls=[Control(...)])"),
        (at.probability, "@probability(level=..., sample=..., controls=[Control(...)])"),
        (at.expectation, "@expectation(range=..., sample=..., controls=[Control(...)])"),
        (at.identity, "@identity(sample=..., controls=[Control(...)])"),
        (at.computed, "@computed(...)"),
        (at.erratum, "an erratum needs reason="),
    ],
)
def test_a_decorator_without_parentheses_says_what_to_write(decorator, written):
    with pytest.raises(UserError, match=re.escape(written)):

        @decorator
        def stated(x):
            """The number is small."""
            return x, x


def test_a_computed_claim_without_its_kind_is_refused_before_its_function_is_read():
    with pytest.raises(UserError, match=r"give one such as Kind\.INEQUALITY"):
        at.computed(controls=[])
    assert callable(at.computed(Kind.INEQUALITY, controls=[]))
