"""What a wrongly written claim is told: one line with the claim, the argument and the remedy."""

import inspect
from fractions import Fraction
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attlas as at
from attlas.claims.claim import Control, Kind, Status, assume
from attlas.claims.statement import identity, inequality, probability
from attlas.claims.well_formed import try_out
from attlas.core.errors import UserError
from attlas.verify.registry import find_claims

HALF = [Control("half", factor=0.5)]


def vectors(rng, count):
    """Gaussian vectors, their squares and an index."""
    x = rng.normal(size=(count, 3))
    return {"x": x, "square": np.sum(x**2, axis=1), "k": np.arange(count)}


def norms(x, *, factor=1.0):
    r"""$$\|x\|_\infty
    \le \|x\|_2$$

    Equal for one entry, $x = e_1$,
    and its multiples.
    """
    return jnp.max(jnp.abs(x)), factor * jnp.linalg.norm(x)


def no_first_axis(rng, count):
    """The same vector, without an axis for the instances."""
    return {"x": rng.normal(size=5)}


def whole_numbers(rng, count):
    """Integers."""
    return {"x": rng.integers(0, 9, size=(count, 3))}


def fails(rng, count):
    """Always."""
    raise RuntimeError("no such file")


def one_side(x, *, factor=1.0):
    r"""$$x$$"""
    return factor * jnp.linalg.norm(x)


def unequal(x, *, factor=1.0):
    r"""$$x$$"""
    return jnp.ones(2), factor * jnp.ones(3)


def unread(x, y, *, factor=1.0):
    r"""$$x$$"""
    return jnp.sum(x), factor * jnp.sum(y)


def silent(x, *, factor=1.0):
    return jnp.sum(x), factor * jnp.sum(x)


def defaulted(x, factor=1.0):
    r"""$$x$$"""
    return jnp.sum(x), factor * jnp.sum(x)


def clashing(x, *, square=1.0, **others):
    r"""$$x$$"""
    return jnp.sum(x), square * jnp.sum(x)


def rooted(x, *, factor=1.0):
    r"""$$x$$"""
    with_loop = jax.lax.while_loop(lambda s: s < 9, lambda s: 2 * s + 1, jnp.sum(x**2))
    return with_loop, factor * with_loop


@pytest.mark.parametrize(
    ("function", "given", "words"),
    [
        (norms, {"controls": []}, ["no control", "controls=[Control"]),
        (norms, {"controls": [Control("half", factr=0.5)]}, ["'factr'", "did you mean factor"]),
        (norms, {"search_over": "W"}, ["search_over", "'W'", "There are x"]),
        (norms, {"search_over": "x", "sample": whole_numbers}, ["'x'", "int64", "only float"]),
        (norms, {"sample": no_first_axis}, ["sample", "'x'", "(5,)", "first axis"]),
        (norms, {"sample": fails}, ["sample", "RuntimeError: no such file"]),
        (norms, {"sample": None}, ["sample="]),
        (unread, {}, ["'y'", "There are k, square, x"]),
        (one_side, {}, ["shape ()", "return the pair"]),
        (unequal, {}, ["(2,)", "(3,)", "broadcast"]),
        (silent, {}, ["no docstring", "$$...$$"]),
        (defaulted, {}, ["'factor'", "write a *"]),
        (clashing, {"controls": [Control("two", square=2.0)]}, ["'square'", "rename one"]),
        (rooted, {"search_over": "x"}, ["search_over", "derivative"]),
        (norms, {"assumptions": [assume("many", lambda x: x > 0)]}, ["'many'", "jnp.all"]),
        (norms, {"assumptions": [assume("odd", lambda z: z > 0)]}, ["'odd'", "'z'"]),
        (norms, {"assumptions": ["x > 0"]}, ["x > 0", "assume("]),
        (norms, {"status": Status.AS_PRINTED}, ["as printed", "Source.FOUND"]),
        (norms, {"rounding": 9}, ["no detail 'rounding': did you mean roundings? There are alike"]),
        (norms, {"statement": "$x$"}, ["statement= is no detail", "docstring"]),
        (norms, {"place": ("a.py", 1)}, ["place= is no detail", "file and line"]),
    ],
)
def test_what_is_wrongly_written_is_one_line_when_it_is_defined(function, given, words):
    settings = {"sample": vectors, "controls": HALF, **given}
    settings = {name: value for name, value in settings.items() if value is not None}
    with pytest.raises(UserError) as refused:
        inequality(**settings)(function)
    text = str(refused.value)
    assert "\n" not in text
    assert f"claim 'test_well_formed/{function.__name__.replace('_', '-')}'" in text
    assert all(word in text for word in words), text


def test_only_inequalities_are_searched_and_a_bare_decorator_is_told_what_to_write():
    with pytest.raises(UserError, match="search_over is for inequalities"):
        identity(sample=vectors, controls=HALF, search_over="x")(norms)
    with pytest.raises(UserError, match="no control: write @inequality"):
        inspect.unwrap(inequality)(norms)
    with pytest.raises(ValueError, match="changes nothing"):
        Control("nothing")


def test_a_trial_says_what_it_draws_anew():
    with pytest.raises(UserError, match=r"'test_well_formed/norms': .* independent='a sample"):
        probability(sample=vectors, controls=HALF, level=0.5)(norms)
    with pytest.raises(UserError, match="independent is for probabilities and expectations"):
        identity(sample=vectors, controls=HALF, independent="a vector")(norms)


def test_a_claim_of_the_atlas_passes_the_trial_that_users_claims_get_when_they_are_defined():
    for claim in find_claims(["lemma-12", "theorem-1-parameters"]):
        assert try_out(claim) is None


def numbers(rng, count):
    return {"x": rng.uniform(size=count)}


DECORATORS = {
    "identity": at.identity,
    "inequality": at.inequality,
    "existence": at.existence,
    "limit": partial(at.limit, scales=2.0 ** np.arange(4, 12)),
    "rate": partial(at.rate, scales=2.0 ** np.arange(4, 12)),
    "probability": partial(at.probability, independent="x", level=0.5),
    "expectation": partial(at.expectation, independent="x", range=1.0),
    "erratum": partial(at.erratum, reason="x", corrected=Control("half", factor=0.5)),
    "computed": partial(at.computed, Kind.INEQUALITY),
    "worst_case": partial(
        at.worst_case,
        functions=at.SmoothConvex(L=1),
        method=at.GradientDescent([1]),
        measure="value",
    ),
}


def of_numbers(x, *, factor=1.0):
    r"""$$x \le 1$$"""
    return x, factor


def of_nothing(*, factor=1):
    r"""$$f(x_1) - f_\star \le L R^2 / 6$$"""
    return Fraction(1, 6) * factor


NO_LOCATORS = (0.95, 3, True, None, [1, 2], (1,), np.zeros(2), b"x", lambda x: x, "two\nlines")


@pytest.mark.parametrize("decorator", DECORATORS.values(), ids=DECORATORS)
@pytest.mark.parametrize("locator", NO_LOCATORS, ids=lambda value: type(value).__name__)
def test_what_is_no_locator_is_one_line_with_the_remedy(decorator, locator):
    details: dict[str, Any] = {"sample": numbers, "controls": HALF}
    stated: Any = of_numbers
    if decorator is DECORATORS["worst_case"]:
        exact = Control("half", factor=Fraction(1, 2))
        details, stated = {"controls": [exact]}, of_nothing
    with pytest.raises(UserError, match="stands in the place of the locator: give a") as said:
        decorator(locator, **details)(stated)
    assert "\n" not in str(said.value)


def test_a_level_in_the_place_of_the_locator_names_its_keyword():
    details: Any = {"sample": numbers, "controls": HALF, "independent": "x"}
    with pytest.raises(UserError, match=r"all else by keyword, such as level=0\.95"):
        at.probability(0.95, **details)(lambda x, *, factor=1: x)


WRONG = [
    ("source", "found"), ("source", None), ("status", "new"), ("expect", "VIOLATED"),
    ("count", "x"), ("count", 0.5), ("count", 0), ("count", True), ("roundings", "x"),
    ("enumerates", 0.5), ("controls", HALF[0]), ("controls", None), ("assumptions", "x"),
    ("sizes", 3), ("sizes", "n"), ("quantities", 3), ("attained", "x"), ("search_over", 3),
    ("project", 3), ("recertify", 3), ("evaluations", 0.5), ("evaluations", -1),
    ("not_attacked", 3), ("alike", "x"), ("independent", 3), ("witness", {"x": 1}),
    ("proof_step", 3), ("domains", 3), ("smaple", numbers), ("level", 0.5), ("range", 1.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_detail_of_another_type_is_one_line_that_names_it(name, value):
    details: Any = {"sample": numbers, "controls": HALF, name: value}
    with pytest.raises(UserError, match=rf"^claim 'test_well_formed/stated'.*\b{name}\b") as said:

        @at.inequality("Lemma 1", **details)
        def stated(x, *, factor=1.0):
            "$$x \\le 1$$"
            return x, factor

    assert "\n" not in str(said.value)


def test_an_unknown_detail_lists_those_that_the_kind_takes_and_no_other():
    with pytest.raises(UserError) as refused:
        inequality(sample=vectors, controls=HALF, foo=3)(norms)
    listed = str(refused.value).partition("There are ")[2].split(", ")
    assert {"sample", "controls", "search_over", "locator"} < {*listed}
    filled = {"name", "function", "place", "home", "kind", "paper", "worst_case"}
    assert not {*listed} & (filled | {"level", "range", "scales", "parameters"})


def test_an_event_without_a_level_is_told_to_give_one():
    with pytest.raises(UserError, match=r"shape \(\): give level=, a number such as 0\.95, or"):
        probability(sample=vectors, independent="a vector", controls=HALF)(one_side)
