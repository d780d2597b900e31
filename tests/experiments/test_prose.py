"""Notes and captions in a file beside the module: read whole, filled in, and checked."""

import pytest

from attlas.experiments.experiment import CaptionedFigure, Experiment
from attlas.experiments.find import find_experiments
from attlas.experiments.grid import Grid
from attlas.experiments.prose import has_gaps, read_prose, without_gaps, written

LEFT_OUT = "Results not yet computed are omitted."


def test_sections_are_captions_and_what_stands_before_them_is_the_note(tmp_path):
    path = tmp_path / "own.md"
    path.write_text(
        "A note\nof $x_{1}$.\n\n## Answer\n\nBy\n{{ gap }}.\n\n"
        "## How to read\n\nOf {{ members }}\nruns.\n\n"
        "## The gap\n\nHow large?\nIt is {{ gap }}.\n\n### How to read\n\nA mark\nis one.\n"
    )
    note, captions, answer, readings = read_prose(path)
    assert note == "A note of $x_{1}$."
    assert captions == {"The gap": "How large? It is {{ gap }}."}
    assert answer == "By {{ gap }}."
    assert readings == {"": "Of {{ members }} runs.", "The gap": "A mark is one."}


@pytest.mark.parametrize(
    ("template", "values"),
    [("It is {{ gap }}.", {}), ("It is {{ gap }}.", {"gap": 1, "width": 2})],
    ids=["missing", "unused"],
)
def test_a_template_and_its_values_have_the_same_names(template, values):
    with pytest.raises(ValueError, match=r"prose and its values differ in the names (gap|width)"):
        written(template, values)


def test_an_answer_may_leave_values_unused_but_lacks_none():
    assert written("{{ gap }}.", {"gap": 1, "width": 2}, all_used=False) == "1."
    with pytest.raises(ValueError, match="differ in the names gap"):
        written("{{ gap }}.", {"width": 2}, all_used=False)


@pytest.mark.parametrize("text", ["It is nan.", "$10^{NaN}$"])
def test_a_missing_number_is_a_gap(text):
    assert has_gaps(text)
    assert not has_gaps("Nance has none.")


def own_experiment(title, captions):
    return Experiment(
        title="Own",
        question="Is it?",
        grid=Grid(),
        run=lambda s, key: None,
        table=[],
        figures=[lambda data: CaptionedFigure(title, "", None, {"gap": 3})],
        captions=captions,
    )


def test_a_figure_without_its_section_is_named():
    (shown,) = own_experiment("The gap", {"The gap": "{{ gap }}."}).drawn(None)
    assert shown.caption == "3."
    with pytest.raises(ValueError, match="no section '## The gap'"):
        own_experiment("The gap", {}).drawn(None)


def test_every_section_is_the_caption_of_a_figure():
    for experiment in find_experiments():
        titles = {getattr(figure, "title", None) for figure in experiment.figures}
        # A figure drawn by hand has no title before it is drawn.
        assert None in titles or set(experiment.captions) <= titles, experiment.name


def test_every_experiment_has_an_answer_that_depends_on_its_values():
    for experiment in find_experiments():
        assert "{{" in experiment.answer_text, experiment.name
        assert experiment.answer is not None, experiment.name


def test_the_library_ships_the_prose_of_its_experiments():
    told = {e.name: e.captions for e in find_experiments()}
    assert set(told["kernel_regression"]) == {"The gap over time", "The gap against the width"}


@pytest.mark.parametrize(
    ("caption", "shown"),
    [
        ("Gaps are finite, $n = 6$.", "Gaps are finite, $n = 6$."),
        ("$p = nan$.", LEFT_OUT),
        ("It falls. $p = 2$: nan. 3 of 4 rise.", f"It falls. 3 of 4 rise. {LEFT_OUT}"),
        ("At 2: 0.5; at 3: nan. So.", f"So. {LEFT_OUT}"),
        ("Rate 0.5 at nan steps. Finance.", f"Finance. {LEFT_OUT}"),
    ],
)
def test_sentences_without_numbers_are_left_out(caption, shown):
    assert without_gaps(caption) == shown
