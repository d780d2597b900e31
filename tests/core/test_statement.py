"""Decorators: what they read off a function, and what a wrongly written claim is told."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.claim import Claim, Control, Kind, Outcome, Sides, Source, Status, assume
from attlas.core.errors import UserError
from attlas.core.statement import (
    computed,
    erratum,
    expectation,
    identity,
    inequality,
    limit,
    probability,
)
from attlas.verify.check import check

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


def test_name_statement_remark_place_and_defaults_come_from_the_function():
    claim = inequality(sample=vectors, controls=HALF, search_over="x")(norms)
    assert isinstance(claim, Claim)
    assert (claim.name, claim.paper) == ("test_statement/norms", "test_statement")
    assert claim.statement == r"\|x\|_\infty \le \|x\|_2"
    assert claim.remark == "Equal for one entry, $x = e_1$, and its multiples."
    assert (claim.locator, claim.source, claim.status) == ("Norms", Source.DERIVED, Status.NEW)
    assert claim.place[0] == __file__
    assert claim.search_over == ("x",)
    left, right = claim(jnp.asarray([3.0, 4.0, 0.0]))
    assert (float(left), float(right)) == (4.0, 5.0)
    assert check(claim, challenge_rounds=1).defects == ()


def test_a_sentence_may_stand_in_place_of_a_formula():
    def positive(square, *, shift=0.0):
        """Squares are not negative."""
        return shift - square, jnp.zeros(())

    claim = inequality(sample=vectors, controls=[Control("shifted", shift=99.0)])(positive)
    assert claim.statement == r"\text{Squares are not negative.}"


def test_each_kind_returns_what_it_says():
    def tends(square, *, offset=0.0):
        r"""$$1/n \to 0$$"""
        n = jnp.asarray([10.0, 100.0, 1000.0]) + 0 * square
        return 1 / n + offset, jnp.zeros(3)

    scales = (10.0, 100.0, 1000.0)
    reached = limit(sample=vectors, scales=scales, controls=[Control("plateau", offset=0.2)])(tends)
    assert reached.kind is Kind.LIMIT
    assert check(reached).defects == ()

    def often(x, *, above=-9.0):
        r"""$$P(x_1 > -9) \ge .8$$"""
        return x[0] > above

    event = probability(level=0.8, sample=vectors, controls=[Control("rare", above=2.0)])(often)
    assert check(event).defects == ()

    def mean(square, *, shift=0.0):
        r"""$$E \min(\|x\|^2, 9) \le 9$$"""
        return jnp.minimum(square, 9.0) + shift, jnp.asarray(9.0)

    bounded = expectation(range=9.0, sample=vectors, controls=[Control("more", shift=9.0)])(mean)
    assert check(bounded).defects == ()


def test_an_erratum_is_violated_on_its_witness_and_its_correction_holds():
    def doubled(x, *, factor=0.5):
        r"""$$\|x\| \le \tfrac12 \|x\|$$"""
        return jnp.linalg.norm(x), factor * jnp.linalg.norm(x)

    claim = erratum(
        "Fact 2",
        Source.RECALLED,
        reason="the factor is 1",
        corrected=Control("1 in place of a half", factor=1.0),
        witness=lambda: {"x": np.ones(3)},
    )(doubled)
    assert claim.status is Status.SUSPECTED_ERRATUM
    assert claim.expect.outcome is Outcome.VIOLATED
    assert check(claim).defects == ()


def test_a_computed_claim_draws_once_and_each_control_computes_again():
    seen = []

    def sums(rng, count, *, missing=0.0):
        r"""$$\sum_i x_i = x^T 1$$"""
        x = rng.normal(size=(count, 4))
        seen.append(float(x[0, 0]))
        return Sides(x.sum(axis=1) - missing, x @ np.ones(4), magnitude=np.abs(x).sum(axis=1))

    claim = computed(Kind.IDENTITY, controls=[Control("one less", missing=1.0)])(sums)
    assert check(claim).defects == ()
    assert len(set(seen[-2:])) == 1


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
    ],
)
def test_what_is_wrongly_written_is_one_line_when_it_is_defined(function, given, words):
    settings = {"sample": vectors, "controls": HALF, **given}
    settings = {name: value for name, value in settings.items() if value is not None}
    with pytest.raises(UserError) as refused:
        inequality(**settings)(function)
    text = str(refused.value)
    assert "\n" not in text
    assert f"claim 'test_statement/{function.__name__.replace('_', '-')}'" in text
    assert all(word in text for word in words), text


def test_only_inequalities_are_searched_and_a_bare_decorator_is_told_what_to_write():
    with pytest.raises(UserError, match="search_over is for inequalities"):
        identity(sample=vectors, controls=HALF, search_over="x")(norms)
    with pytest.raises(UserError, match="no control: write @inequality"):
        inspect.unwrap(inequality)(norms)
    with pytest.raises(ValueError, match="changes nothing"):
        Control("nothing")
