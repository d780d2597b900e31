"""The guides of `docs/choose` say what the published records say."""

from collections.abc import Iterable, Iterator
from functools import cache, partial
from itertools import chain, zip_longest
from typing import Any

import pytest
from documentation_scripts import DOCS, documentation_script
from literal_results import literal_results
from perturbed_records import Change, one_at_a_time, perturbations

from attlas.experiments.find import one_named

guides = partial(documentation_script, "guides")
TEMPLATES = sorted((DOCS / "guides").glob("*.md"))
NAMES = [file.stem for file in TEMPLATES]
published = cache(lambda name: guides().published(name))


@cache
def published_values(experiment: str, figure: str) -> Any:
    """The values of an experiment's answer, or of a caption, of the published records."""
    return guides().values_of(one_named(experiment), published(experiment), figure)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_rendered_from_its_template(name):
    page = (DOCS / "choose" / f"{name}.md").read_text(encoding="utf-8")
    assert page == guides().rendered(guides().Records(name, published)), (
        "run: python docs/guides.py"
    )


def test_every_page_has_a_template():
    assert [file.stem for file in sorted((DOCS / "choose").glob("*.md"))] == NAMES


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.stem)
def test_no_template_has_a_result_of_its_own(file):
    assert literal_results(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "results"),
    [
        ("9 of 9 paths", ["9", "9"]),
        ("falls by a factor of 0.32 on 4,096 samples", ["0.32", "4,096"]),
        ("needs $9 \\cdot 10^{19}$ heads, $-2.23$ of it", ["10^{19}$", "-2.23"]),
        ("{{ value('heads', 'power') }} of $H$ at $p = 1.75$, $\\|W\\|^{-2(p-1)}$", []),
        ("Theorem 4.1, Lemmas 24 and 25 of `x_1.2` in deora2023optimization [a](b/2.md)", []),
    ],
)
def test_which_numbers_may_be_results(text, results):
    assert literal_results(text) == results


def test_a_false_condition_stops_the_rendering_and_names_the_sentence():
    with pytest.raises(guides().DeniedError, match=r"heads\.md: the records deny: heads help"):
        guides().Records("heads").need(0, "heads help")


def conditions(name: str, read: Any = published_values, results: Any = None) -> dict[str, bool]:
    """Whether the values that are read grant each sentence of a guide."""
    records = guides().Records(name)
    granted: dict[str, bool] = {}

    def need(condition: object, sentence: str) -> str:
        granted[sentence] = granted.get(sentence, True) and bool(condition)
        return ""

    records.need = need
    records.answer = str  # no condition reads an answer: its name stands for it
    records.value = lambda experiment, key, figure="": read(experiment, figure)[key]
    if results is not None:
        records.benchmark = results
    guides().rendered(records)
    return granted


def figures_read(name: str) -> dict[str, set[str]]:
    """The experiments whose values a guide asks for, each with its figures ('' for the answer)."""
    figures: dict[str, set[str]] = {}

    def read(experiment: str, figure: str) -> Any:
        figures.setdefault(experiment, set()).add(figure)
        return published_values(experiment, figure)

    conditions(name, read)
    return figures


def mirrored(value: Any) -> Any:
    """A copy with every mean, at any depth, multiplied by -10."""
    if isinstance(value, list):
        return [mirrored(each) for each in value]
    if isinstance(value, dict):
        return {k: each * -10 if k == "mean" else mirrored(each) for k, each in value.items()}
    return value


def mirrored_results(name: str) -> Any:
    return mirrored(guides().Records("exponent").benchmark(name))


def in_turn(experiments: Iterable[str]) -> Iterator[tuple[str, Change]]:
    """The changes of the records: the first of every experiment, then the second of every one."""
    of_each = [
        [(name, change) for _, change in chain(perturbations(data), one_at_a_time(data))]
        for name in experiments
        for data in [published(name)]
    ]
    return (pair for pairs in zip_longest(*of_each) for pair in pairs if pair)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # logarithms of what is not positive
@pytest.mark.parametrize("name", NAMES)
def test_every_condition_of_a_guide_turns_with_its_records(name):
    granted = conditions(name)
    assert all(granted.values())
    turned = {each for each, held in conditions(name, results=mirrored_results).items() if not held}
    figures = figures_read(name)
    for experiment, change in in_turn(figures):
        if turned >= set(granted):
            return
        changed = change(published(experiment))
        values = {
            (experiment, figure): guides().values_of(one_named(experiment), changed, figure)
            for figure in figures[experiment]
        }
        held = conditions(name, lambda *of, v=values: v.get(of) or published_values(*of))
        turned |= {sentence for sentence, still in held.items() if not still}
    assert set(granted) - turned == set()
