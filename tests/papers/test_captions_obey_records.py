"""Captions follow their records: none raises on a changed record, and each condition turns."""

import re
from functools import cache

import matplotlib.pyplot as plt
import pytest
from jinja2 import Environment, nodes
from perturbed_records import OF_THE_RUN, condition_names, perturbations, published, recorded

from attlas.experiments.panels import Plot
from attlas.experiments.prose import written

EXPERIMENTS = recorded()
CAPTIONS = [
    pytest.param(e.name, place, id=f"{e.name}-{place}")
    for e in EXPERIMENTS.values()
    for place in range(len(e.figures))
]
_NUMBER = re.compile(r"[-+−]?\d[\d.,\u202f{}]*(?:e[-+−]?\d+)?|\b(?:nan|inf|infinity|never)\b")


record = cache(lambda name: published(EXPERIMENTS[name]))


@pytest.fixture
def data(name):
    """The complete published record of an experiment."""
    complete = record(name)
    assert complete is not None
    return complete


def caption(name, place, data):
    """The caption of one figure, and its template; a plot is not drawn for it."""
    experiment = EXPERIMENTS[name]
    draw = experiment.figures[place]
    if isinstance(draw, Plot):
        title, values = draw.title, draw.caption(data) if callable(draw.caption) else draw.caption
    else:
        drawn = draw(data)
        plt.close(drawn.figure)
        title, values = drawn.title, drawn.values if drawn.values is not None else drawn.caption
    template = experiment.captions.get(title, "")
    return (values if isinstance(values, str) else written(template, values)), template


def concludes(template):
    """Whether a condition chooses between sentences, and not by the data or settings of the run."""
    choices = [
        condition_names(each.test)
        for each in Environment().parse(template).find_all(nodes.If)
        if each.else_ or each.elif_
    ]
    return any(names - OF_THE_RUN for names in choices)


@pytest.mark.parametrize(
    ("template", "conclusion"),
    [
        ("{% if nearest %}It is{% else %}It is not{% endif %} {{ number }}.", True),
        ("{% for p in all %}{{ p }}{% if not loop.last %}, {% endif %}{% endfor %}.", False),
        ("{% if stand_in %}Generated{% else %}Real{% endif %} texts{{ number }}.", False),
    ],
)
def test_which_templates_conclude(template, conclusion):
    assert concludes(template) == conclusion


def words(text):
    """A text without its numbers."""
    return _NUMBER.sub("#", text)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # logarithms and means of what is not there
@pytest.mark.parametrize(("name", "place"), CAPTIONS)
def test_a_caption_and_its_values_have_the_same_names(name, place, data):
    if not isinstance(EXPERIMENTS[name].figures[place], Plot):
        pytest.skip("only drawing the figure gives its values, which the thorough tests do")
    assert caption(name, place, data)[0].endswith(".")


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # logarithms and means of what is not there
@pytest.mark.parametrize(("name", "place"), CAPTIONS)
def test_a_caption_follows_its_record(name, place, data):
    said, template = caption(name, place, data)
    changed = {key: caption(name, place, change(data))[0] for key, change in perturbations(data)}
    assert all(text.endswith(".") for text in changed.values())
    if "{{" in template:
        assert set(changed.values()) != {said}  # a number, at least, is one of the record
    if concludes(template):
        assert {words(text) for text in changed.values()} != {words(said)}
