"""Graphs, orders, selections and counts are moved: false on one instance in millions."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control
from attlas.claims.statement import inequality
from attlas.verify.challenge import challenge, replay

ROUND = 64 * 400


def graphs(rng, count):
    upper = np.triu(rng.integers(0, 2, size=(count, 9, 9)), 1)
    return {"x": (upper + upper.swapaxes(1, 2)).astype(float)}


def shuffled(rng, count):
    rows = np.tile(np.arange(9.0), (count, 1))
    for row in rows:
        rng.shuffle(row)
    return {"x": rows}


SAMPLERS = {
    "graphs": graphs,
    "permuted": lambda rng, count: {
        "x": rng.permuted(np.tile(np.arange(10.0), (count, 1)), axis=1)
    },
    "permutations": lambda rng, count: {
        "x": np.stack([rng.permutation(9) for _ in range(count)]).astype(float)
    },
    "shuffled": shuffled,
    "selected": lambda rng, count: {
        "x": np.stack([rng.choice(30, 5, replace=False) for _ in range(count)]).astype(float)
    },
    "chosen": lambda rng, count: {"x": rng.choice([1.0, 4.0, 25.0], size=(count, 14))},
    "dirichlet": lambda rng, count: {"x": rng.dirichlet(np.ones(10), size=count)},
    "multinomial": lambda rng, count: {
        "x": rng.multinomial(20, np.ones(8) / 8, size=count).astype(float)
    },
    "binomial": lambda rng, count: {"x": rng.binomial(12, 0.5, size=(count, 8)).astype(float)},
    "poisson": lambda rng, count: {"x": rng.poisson(2.0, size=(count, 6)).astype(float)},
}
ORDER = jnp.arange(10.0)
FALSE = {
    "graphs": (lambda x: -jnp.linalg.eigvalsh(x)[0], 4.4),  # sqrt(20) of the graph K(4, 5) alone
    "permuted": (lambda x: x @ ORDER, 284.5),
    "permutations": (lambda x: jnp.sum(jnp.triu(x[:, None] > x[None], 1).astype(float)), 35.5),
    "shuffled": (lambda x: x @ ORDER[:9], 203.5),
    "selected": (jnp.sum, 134.5),
    "chosen": (jnp.sum, 345.0),
    "dirichlet": (jnp.max, 0.999),
    "multinomial": (jnp.max, 14.5),
    "binomial": (jnp.sum, 90.0),
    "poisson": (jnp.sum, 50.0),
}


@pytest.mark.parametrize("law", FALSE)
def test_what_fails_on_one_instance_in_millions_is_found(law):
    side, bound = FALSE[law]

    @inequality(sample=SAMPLERS[law], controls=[Control("half", factor=0.5)])
    def statement(x, *, factor=1.0):
        r"""$$f(x) \le c$$"""
        return side(x), factor * bound

    assert not challenge(statement, method="draws", evaluations=ROUND).violated
    report = challenge(statement, evaluations=4 * ROUND)
    assert report.violated
    assert replay(statement, report.verdict.witness).outcome == "VIOLATED"
