"""Searches of limits and rates, by many seeds: none true is refused, and the false ones are found.

A true one that is slow somewhere must never be called false, whatever instance a search selects:
at fixed scales nothing else is known of it. What fails for few instances must still be found.
"""

import jax
import pytest
from slow_trends import (
    FALSE_LIMITS,
    FALSE_RATES,
    SCALES,
    TRUE_LIMITS,
    TRUE_RATES,
    stated_limit,
    stated_rate,
)

from attlas._jax.factorising import FACTORISING
from attlas.verify.challenge import challenge
from attlas.verify.evidence import compile_program

SEEDS = 2
"""All twenty that the log tells of take a quarter of an hour."""
TRUE = [
    *((stated_limit, name, *stated) for name, stated in TRUE_LIMITS.items()),
    *((stated_rate, name, *stated) for name, stated in TRUE_RATES.items()),
]
FALSE = [
    *((stated_limit, name, *stated) for name, stated in FALSE_LIMITS.items()),
    *((stated_rate, name, *stated) for name, stated in FALSE_RATES.items()),
]
LARGER = {"inside a slow set"}
"""Not found: the instances around it are slow as well, so that its radii do not settle."""


def identity(case):
    return f"{case[0].__name__} {case[1]}"


def refused(case, scales, seeds, evaluations):
    """The seeds at which a search calls a statement false."""
    make, _, sampler, sides = case
    claim = make(sampler, sides, SCALES[scales])
    with FACTORISING, jax.enable_x64(True):
        program = compile_program(claim)
    options = {"evaluations": evaluations, "program": program}
    return [seed for seed in seeds if challenge(claim, seed=seed, **options).violated]


def test_fourth_power_is_not_refused_where_it_was():
    """The seeds at which lines were measured from another instance, or from one side alone."""
    limits = {name: (stated_limit, name, *TRUE_LIMITS[name]) for name in TRUE_LIMITS}
    assert refused(limits["fourth power"], "seven of 4", [4, 5], 6400) == []
    assert refused(limits["fourth power of a normal number"], "four of 10", [0], 6400) == []
    assert refused(limits["logarithm, clipped"], "doubled", [0], 6400) == []


@pytest.mark.thorough
@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("case", TRUE, ids=identity)
def test_no_true_limit_or_rate_is_refused_by_any_seed(case, scales):
    assert refused(case, scales, range(SEEDS), 3200) == []


@pytest.mark.thorough
@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("case", FALSE, ids=identity)
def test_a_limit_or_rate_that_fails_for_few_instances_is_found(case, scales):
    found = refused(case, scales, range(4), 6400)
    assert len(found) >= (0 if case[1] in LARGER else 3)
