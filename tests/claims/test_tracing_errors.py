"""What no traced program can do ends in one line with the remedy, without a tracer's name."""

import math
import re

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control, assume
from attlas.claims.statement import inequality
from attlas.claims.tracing_errors import tracing_failure
from attlas.core.errors import UserError


def vectors(rng, count):
    """Gaussian vectors of three entries."""
    return {"x": rng.normal(size=(count, 3)), "k": rng.integers(3, size=count)}


def branch(x):
    return x if x[0] > 0 else -x


def repeated(x):
    while x.sum() > 1:
        x = x / 2
    return x


def larger(x):
    return max(x[0], x[1])


def by_numpy(x):
    return np.linalg.norm(x)


def loop(x, k):
    return sum(x[j] for j in range(k))


def loop_to_a_value(x):
    return sum(x[0] for _ in range(int(10 * x[0])))


def masked(x):
    return x[x > 0].sum()


def root(x):
    return math.sqrt(x[0])


def assigned(x):
    x[0] = 1.0
    return x


def product(x):
    return jnp.outer(x, x) @ jnp.ones(4)


def sums(x):
    return x + jnp.ones(4)


CASES = [
    (branch, "branches on values.*jnp.where"),
    (repeated, "branches on values.*while_loop"),
    (larger, "branches on values.*jnp.maximum"),
    (by_numpy, "passes an array to NumPy.*use jnp in place of np"),
    (loop, "as a whole number.*jax.lax.scan"),
    (loop_to_a_value, "a Python number.*jax.lax.scan"),
    (masked, r"at which others are true.*jnp.where\(condition"),
    (root, "a Python number.*use jnp in place of math"),
    (assigned, r"assigns to entries.*x.at\[0\].set"),
    (product, r"shapes do not fit.*x \(3,\), k \(\)"),
    (sums, r"shapes do not fit.*x \(3,\), k \(\)"),
]


def refusal(function, assumptions=()):
    """What the author of a claim with this function as its left side reads."""

    def claim(x, k, *, c=1.0):
        r"""$$f(x)\le c$$"""
        return function(x, k) if function is loop else function(x), c * jnp.ones(())

    control = Control("0", c=0.0)
    with pytest.raises(UserError) as caught:
        inequality("Lemma 1", sample=vectors, assumptions=assumptions, controls=[control])(claim)
    return str(caught.value)


@pytest.mark.parametrize(("function", "text"), CASES)
def test_what_cannot_be_traced_ends_in_one_line_with_the_remedy(function, text):
    message = refusal(function)
    assert re.search(text, message), message
    assert "\n" not in message
    assert "racer" not in message
    first = function.__code__.co_firstlineno
    assert int(re.search(r"in line (\d+)", message)[1]) in range(first + 1, first + 3)


def test_an_assumption_that_branches_is_refused_likewise():
    positive = assume("x > 0", lambda x: bool(x[0] > 0))
    message = refusal(sums, [positive])
    assert "'x > 0' in line" in message
    assert "branches on values" in message


def test_other_errors_are_shown_as_they_are():
    error = RuntimeError("no such thing\nmore")
    said = "fails on a drawn instance: RuntimeError: no such thing"
    assert tracing_failure(error, by_numpy, {}) == said
