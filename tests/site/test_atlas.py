"""What the atlas gathers from a results folder, and that it writes it whole or not at all."""

import base64
import json
import re
import zlib
from dataclasses import replace

import pytest
from tests.site.conftest import toy_experiment

from attlas.claims.verdict import CheckReport, Outcome, Verdict
from attlas.core.errors import UserError
from attlas.experiments.store import Store, published_store
from attlas.experiments.verdicts import write_report
from attlas.site import findings
from attlas.site.atlas import gather, source_of, write_atlas
from attlas.site.claim_entry import Source
from attlas.site.experiment_pages import ExperimentRecords, small_picture
from attlas.site.finding import Card, Evidence
from attlas.site.findings import with_pictures
from attlas.site.links import anchor
from attlas.site.pages import render_single


@pytest.fixture
def atlas(store, claims, errata, experiments):
    return gather(store, claims, errata, experiments)


def test_claims_without_a_record_are_listed_as_not_run(atlas):
    (paper,) = atlas.papers
    assert [entry.outcome for entry in paper.claims if entry.slug == "never"] == [None]
    (group,) = paper.groups
    assert group.count(None) == 1
    assert group.count(Outcome.SUPPORTED) == 4
    assert group.challenged == 5


def test_a_control_that_is_true_is_unexpected_and_an_expected_violation_is_not(atlas):
    assert [e.slug for e in atlas.claims if e.unexpected] == ["true-control"]


def test_ledger_says_where_the_factor_is_lost(atlas):
    (chain,) = atlas.papers[0].chains
    assert [link.entry.slug for link in chain.links] == ["first", "plain"]
    # The challenge of the toy reports found 0.8, the check of Lemma 0 found 1.
    assert [link.tightness for link in chain.links] == [1.0, 0.8]
    assert [link.share for link in chain.links] == [0.0, 1.0]
    assert chain.factor == pytest.approx(1 / 0.8, rel=1e-12)


def test_experiments_show_their_most_complete_grid(atlas):
    shown, silent = atlas.experiments
    assert (shown.scale, shown.done, shown.total) == ("smoke", 4, 4)
    assert shown.problems == ()
    assert len(shown.drawings) == 1
    assert shown.settings == {
        "p": "2, 3", "members": "1", "seeds": "0, 1", "precision": "float64",
    }  # fmt: skip
    assert (silent.done, silent.drawings, silent.table) == (0, (), None)


def test_a_whole_grid_is_answered_and_a_part_of_one_is_not(store, claims, errata, experiments):
    asked = replace(experiments[0], answer=lambda data: {"n": data.sizes["p"]})
    asked = replace(asked, answer_text="Yes, at {{ n }} exponents, $p > 1$.")
    atlas = gather(store, claims, errata, (asked,))
    (shown,) = atlas.experiments
    assert (shown.answer, shown.values) == ("Yes, at 2 exponents, $p > 1$.", {"n": 2})
    page = render_single(atlas)
    # Beside the question and on its card; the index of the search is compressed.
    assert page.count("Yes, at 2 exponents") == 2
    index = json.loads(zlib.decompress(base64.b64decode(re.findall('id="index">([^<]*)', page)[0])))
    assert str(index["rows"]).count("Yes, at 2 exponents") == 1
    packed = sorted((store.root / "lines").glob("*.npz"))[0]
    packed.write_bytes(packed.read_bytes()[:-7])
    atlas = gather(Store(store.root), claims, errata, (asked,))
    (shown,) = atlas.experiments
    assert (shown.answer, shown.done) == ("", 3)
    page = render_single(atlas)
    assert "Yes, at 2 exponents" not in page
    assert page.count("Not answered yet: 3 of 4 cells have been run.") == 2


def test_an_answer_that_fails_is_named(store, claims, errata, experiments):
    asked = replace(experiments[0], answer_text="By {{ n }}.")
    atlas = gather(store, claims, errata, (asked,))
    (shown,) = atlas.experiments
    assert (shown.answer, shown.done) == ("", shown.total)
    assert any("the answer: UserError: a template" in problem for problem in shown.problems)
    assert "a number for the answer is missing" in render_single(atlas)


def test_findings_stand_at_the_head_of_their_paper(store, claims, errata, experiments, monkeypatch):
    prose = {"What holds": ('{{ holds("plain") }} It is plain: $x$.',)}
    monkeypatch.setattr(
        findings,
        "read_findings",
        lambda folders, name=findings.FILE: prose if name == findings.FILE else {},
    )
    atlas = gather(store, claims, errata, experiments)
    ((title, (finding,)),) = atlas.papers[0].findings
    assert (title, finding.text) == ("What holds", "It is plain: $x$.")
    page = render_single(atlas)
    assert page.index("It is plain") < page.index(f'id="{atlas.papers[0].anchor}-claims"')


def test_damaged_records_are_named_without_the_machines_path(
    store, claims, errata, experiments, tmp_path
):
    packed = sorted((store.root / "lines").glob("*.npz"))[0]
    packed.write_bytes(packed.read_bytes()[:-7])
    verdict = sorted((store.root / "verdicts").rglob("*.json"))[0]
    verdict.write_text("{", encoding="utf-8")
    atlas = gather(Store(store.root), claims, errata, experiments)
    assert sum(packed.name in warning for warning in atlas.warnings) == 1
    assert sum(verdict.name in warning for warning in atlas.warnings) == 1
    page = render_single(atlas)
    assert "Read this first" in page
    assert packed.name in page
    assert str(tmp_path) not in page
    assert atlas.experiments[0].done == 3


def test_a_first_page_is_marked_and_has_answers_without_figures_and_tables(
    store, claims, errata, experiments, tmp_path
):
    asked = replace(experiments[0], answer=lambda data: {"n": data.sizes["p"]})
    asked = replace(asked, answer_text="Yes, at {{ n }} exponents.")
    atlas = gather(Store(tmp_path / "none"), claims, errata, (asked,), published=store, first=True)
    (shown,) = atlas.experiments
    assert (shown.drawings, shown.table, shown.done) == ((), None, 4)
    assert shown.answer == "Yes, at 2 exponents."
    assert "This is the first page of a run that has not ended." in render_single(atlas)
    atlas = gather(store, claims, errata, (asked,))
    assert "This is the first page" not in render_single(atlas)
    assert atlas.experiments[0].drawings


def test_the_cards_of_a_first_page_have_pictures(store, experiments):
    experiment = experiments[0]
    records = tuple(store.records(experiment.name))
    inputs = [ExperimentRecords(experiment, records, Source("", 0, ""))]
    seen = Evidence(experiment.title, anchor("experiment", experiment.name))
    other = Evidence("Lemma 1", "claim-lemma-1")
    cards = (Card("Why?", "So.", (other, seen)), Card("Which?", "This.", (other,)))
    pictured, without = with_pictures(cards, inputs)
    assert pictured.thumbnail.startswith("data:image/webp;base64,")
    assert without == cards[1]
    kept = with_pictures((pictured._replace(thumbnail="data:,"),), inputs)
    assert kept[0].thumbnail == "data:,"
    assert with_pictures(cards, [inputs[0]._replace(records=())]) == cards


def test_a_card_has_the_next_figure_where_one_cannot_be_drawn(store, experiments):
    def broken(data):
        raise ValueError("nothing there")

    experiment = replace(experiments[0], figures=(broken, *experiments[0].figures))
    inputs = ExperimentRecords(experiment, tuple(store.records(experiment.name)), Source("", 0, ""))
    assert small_picture(inputs).startswith("data:image/webp;base64,")
    assert not small_picture(inputs._replace(experiment=replace(experiment, figures=(broken,))))


def test_verdicts_of_unknown_claims_are_said(store, claims, errata, experiments):
    atlas = gather(store, claims[1:], errata, experiments)
    assert any("/plain" in warning for warning in atlas.warnings)


def test_a_claim_that_was_changed_since_its_check_is_shown_as_not_run(
    store, claims, errata, experiments, tmp_path
):
    own = tmp_path / "claims_of_mine.py"
    own.write_text("x = 1\n")
    claim = replace(claims[0], name=f"{claims[0].paper}/mine", place=(str(own), 7))
    verdict = Verdict(Outcome.SUPPORTED, "a reason")
    write_report(store, CheckReport(claim.name, verdict, (), Outcome.SUPPORTED), claim)
    atlas = gather(store, [*claims, claim], errata, experiments)
    (entry,) = [entry for entry in atlas.claims if entry.slug == "mine"]
    assert (entry.outcome, entry.outdated, entry.commit) == (Outcome.SUPPORTED, "", "")
    assert "claims_of_mine.py:7" in render_single(atlas)
    own.write_text("x = 2\n")
    atlas = gather(store, [*claims, claim], errata, experiments)
    (entry,) = [entry for entry in atlas.claims if entry.slug == "mine"]
    assert (entry.outcome, entry.report, bool(entry.outdated)) == (None, None, True)
    page = render_single(atlas)
    assert f"changed since it was checked on {entry.outdated}" in page
    assert "<dd>5<small> of 7</small></dd>" in page


def test_an_excerpt_is_silent_on_verdicts_of_other_claims(store, claims, errata, experiments):
    atlas = gather(store, claims[1:], errata, experiments, excerpt=True)
    assert not any("/plain" in warning for warning in atlas.warnings)


def test_the_same_records_give_the_same_page(store, claims, errata, experiments):
    pages = [
        render_single(gather(Store(store.root), claims, errata, experiments)) for _ in range(2)
    ]
    assert pages[0] == pages[1]


def test_a_figure_that_fails_is_named_and_the_rest_stands(store, claims, errata, experiments):
    def broken(data):
        raise KeyError("divergence")

    atlas = gather(store, claims, errata, (replace(experiments[0], figures=[broken]),))
    (shown,) = atlas.experiments
    assert any("KeyError: 'divergence'" in problem for problem in shown.problems)
    assert shown.table is not None


@pytest.mark.thorough
def test_an_empty_folder_gives_an_atlas_of_what_is_not_run(tmp_path):
    out = write_atlas(tmp_path / "nothing", tmp_path / "deep" / "atlas.html")
    page = out.read_text(encoding="utf-8")
    assert "not run" in page
    assert not (tmp_path / "nothing").exists()
    assert sorted(path.name for path in out.parent.iterdir()) == ["atlas", "atlas.html"]


@pytest.mark.thorough
def test_an_unwritable_place_is_one_line(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UserError, match=r"cannot write .*--out") as refused:
        write_atlas(tmp_path / "nothing", tmp_path / "file" / "atlas.html")
    assert "\n" not in str(refused.value)


def test_sources_are_relative_to_the_checkout():
    import attlas.claims.claim as module

    source = source_of((module.__file__, 7))
    assert source.path == "src/attlas/claims/claim.py"
    assert source.link == "src/attlas/claims/claim.py#L7"


def test_an_experiment_of_ones_own_has_no_published_records(tmp_path):
    own = toy_experiment("heads")
    atlas = gather(Store(tmp_path / "none"), (), (), (own,), published=published_store())
    assert [entry.done for entry in atlas.experiments] == [0]
