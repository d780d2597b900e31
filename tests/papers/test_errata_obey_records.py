"""Errata that rest on an experiment say what its published record says."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from perturbed_records import published

from attlas.claims.claim import Erratum
from attlas.experiments.find import find_experiments, one_named
from attlas.verify.registry import find_errata

Values = Mapping[str, Any]
NAMES = {experiment.name for experiment in find_experiments()}


def _grows_by_its_shortest(values: Values) -> bool:
    """Growth with T beyond the root of log T, which the later lengths alone do not show."""
    _, least, _ = (float(number) for number in re.findall(r"[\d.]+", values["factor"]))
    return values["grows"] and not values["grows_later"] and least > 1 + float(values["rise"]) / 100


RESTS_ON: dict[str, Callable[[Values], bool]] = {"sparse_majority": _grows_by_its_shortest}


def named(text: str) -> list[str]:
    """The experiments that a text names."""
    return [name for name in re.findall(r"`(\w+)`", text) if name in NAMES]


CASES = [
    pytest.param(erratum, name, id=f"{erratum.paper}-{erratum.locator}-{name}")
    for erratum in find_errata()
    for name in named(erratum.text)
]


def test_an_invented_erratum_names_its_experiment():
    assert named("The loss rises (experiment `heads`, with `jax`).") == ["heads"]


@pytest.mark.parametrize(("erratum", "name"), CASES)
def test_an_erratum_is_that_of_its_record(erratum: Erratum, name: str):
    answer = one_named(name).answer
    assert answer is not None
    assert RESTS_ON[name](answer(published(one_named(name))))


def test_what_the_bound_with_the_logarithm_predicts():
    text = " ".join(case.values[0].text for case in CASES)
    entropy = math.log(64 * 300 * 200) / math.log(64 * 300 * 20)
    assert f"= {entropy:.2f}$ in the entropy and {math.sqrt(entropy):.3f} in the gap" in text
