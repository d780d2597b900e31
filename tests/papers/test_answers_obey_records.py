"""Answers follow their records: none raises on a changed record, and each condition turns."""

from contextlib import suppress
from itertools import chain

import numpy as np
import pytest
from jinja2 import Environment, StrictUndefined, nodes
from perturbed_records import (
    OF_THE_RUN,
    condition_names,
    further_perturbations,
    negated,
    perturbations,
    published,
    recorded,
)

from attlas.core.errors import UserError

ENVIRONMENT = Environment(undefined=StrictUndefined, autoescape=False)
SLOW = {"attention", "direction", "heads", "kernel_regression", "sample_complexity", "score_digits"}
EXPERIMENTS = [
    pytest.param(e, id=e.name, marks=[pytest.mark.thorough] if e.name in SLOW else [])
    for e in recorded().values()
    if e.answer is not None
]


def noted(template):
    """A template that notes what each of its conditions says, and the notes by condition."""
    tree, notes = ENVIRONMENT.parse(template), {}
    for place, node in enumerate(list(tree.find_all((nodes.If, nodes.CondExpr)))):
        inside = condition_names(node.test)
        condition = f"{place}: {' '.join(sorted(inside))}"
        if not inside & OF_THE_RUN:
            notes[condition] = set()
        node.test = nodes.Call(
            nodes.Name("note", "load"), [nodes.Const(condition), node.test], [], None, None
        )
    tree.set_environment(ENVIRONMENT)

    def note(condition, holds):
        notes.get(condition, set()).add(bool(holds))
        return holds

    ready = ENVIRONMENT.from_string(tree)
    return lambda values: ready.render({**values, "note": note}), notes


def test_a_condition_that_never_turns_is_noted():
    write, notes = noted("{% if a %}Yes{% elif b %}No{% endif %} {{ 'x' if c else 'y' }}")
    assert write({"a": True, "b": True, "c": 0}) == "Yes y"
    assert write({"a": False, "b": True, "c": 0}) == "No y"
    assert notes == {"0: a": {True, False}, "1: b": {True}, "2: c": {False}}
    assert unturned(notes) == {"1: b", "2: c"}


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # logarithms and means of what is not there
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_an_answer_follows_its_record(experiment):
    data = published(experiment)
    assert data is not None
    write, notes = noted(experiment.answer_text)
    said = write(experiment.answer(data))
    with np.errstate(all="ignore"):
        others = {
            key: write(experiment.answer(change(data)))
            for key, change in chain(perturbations(data), further_perturbations(data))
        }
        if unturned(notes):
            for _, change in negated(data):
                with suppress(UserError):  # of a variable that cannot be negative
                    write(experiment.answer(change(data)))
    assert set(others.values()) != {said}  # a number, at least, is one of the record
    assert unturned(notes) == set()


def unturned(notes):
    """The conditions that are always true, or always false."""
    return {condition for condition, seen in notes.items() if len(seen) < 2}
