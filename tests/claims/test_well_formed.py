"""What a wrongly written claim is told: one line with the claim, the argument and the remedy."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control, Status, assume
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
