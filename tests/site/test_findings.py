"""Findings of a paper: each stands on verdicts and answers, and goes when they do."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.site.conftest import PAPER, toy_claim, toy_experiment, toy_report

from attlas.claims.claim import Erratum, ErratumClass, Expectation, Status
from attlas.claims.claim import Source as Text
from attlas.claims.verdict import Outcome
from attlas.core.errors import UserError
from attlas.experiments.find import find_experiments
from attlas.site.claim_entry import ClaimEntry, Source, claim_groups
from attlas.site.content import ExperimentEntry
from attlas.site.finding import Evidence
from attlas.site.findings import CARDS, FILE, QUESTIONS, findings_of, front_cards, read_findings
from attlas.site.grounds import Grounds
from attlas.verify.registry import find_claims

PLACE = Source("own.py", 1, "")
TITLES = ("What holds", "What does not", "What it asks for", "What to use instead")
PAPERS = sorted(path.parent for path in (Path(__file__).parents[2] / "papers").glob(f"*/{FILE}"))


def entry(slug, folder, outcome=Outcome.SUPPORTED, errata=(), **numbers):
    claim = replace(toy_claim(slug, f"Lemma {slug}"), place=(str(folder / "claims.py"), 1))
    return ClaimEntry(claim, toy_report(claim, outcome, **numbers), errata, PLACE)


def told(folder, prose, *claims, experiments=()):
    (folder / FILE).write_text(f"## What holds\n\n{prose}\n", encoding="utf-8")
    found = findings_of(claims, experiments)
    return [finding.text for section in found for finding in section.findings]


def test_a_finding_stands_with_what_it_rests_on(tmp_path):
    (tmp_path / FILE).write_text(
        '## What holds\n\n- {{ holds("one") }} It holds,\n  to {{ tightness("one") }}.\n'
    )
    ((title, (finding,)),) = findings_of([entry("one", tmp_path)], ())
    # The challenge of the toy reports found 0.8, the check 0.5.
    assert (title, finding.text) == ("What holds", "It holds, to 0.8.")
    assert finding.evidence == (Evidence("Lemma one", f"claim-{PAPER}-one"),)


@pytest.mark.parametrize(
    "call", ['holds("none")', 'fails("one")', 'loss("zero")', 'value("runs", "gain")', "refuted()"]
)
def test_a_finding_goes_with_what_it_rests_on(tmp_path, call):
    zero = entry("zero", tmp_path)
    report = replace(zero.report, challenge=None)
    report = replace(report, verdict=replace(report.verdict, tightness=0.0))
    claims = entry("one", tmp_path), replace(zero, report=report)
    assert told(tmp_path, f"- A {{{{ {call} }}}}.\n- It stays.", *claims) == ["It stays."]


def test_an_unexpected_verdict_bears_nothing(tmp_path):
    odd = entry("odd", tmp_path, Outcome.VIOLATED)  # a violation that nobody expects
    assert told(tmp_path, '- {{ fails("odd") }} It fails.', odd) == []


def test_a_loss_is_one_over_the_tightness(tmp_path):
    assert told(tmp_path, '- {{ loss("one") }} times.', entry("one", tmp_path)) == ["1.2 times."]


def test_values_are_those_of_an_answer(tmp_path):
    experiment = replace(toy_experiment("runs"), title="Runs")
    shown = ExperimentEntry(experiment, PLACE, answer="Yes.", values={"gain": 3, "gap": "nan"})
    prose = '- By {{ value("runs", "gain") }}.\n- By {{ value("runs", "gap") }}.'
    one = entry("one", tmp_path)
    assert told(tmp_path, prose, one, experiments=[shown]) == ["By 3."]
    unanswered = replace(shown, answer="")
    assert told(tmp_path, prose, one, experiments=[unanswered]) == []


def test_a_finding_names_the_scale_of_its_records(tmp_path):
    experiment = replace(toy_experiment("runs"), title="Runs")
    shown = ExperimentEntry(
        experiment, PLACE, scale="quick", answer="Yes.", values={"gain": 3, "gap": "nan"}
    )
    (tmp_path / FILE).write_text('## What holds\n\n- By {{ value("runs", "gain") }}.\n')
    ((_, (finding,)),) = findings_of([entry("one", tmp_path)], [shown])
    assert finding.evidence == (Evidence("Runs", shown.anchor, "quick"),)


def test_statements_with_a_counterexample_are_counted(tmp_path):
    claim = entry("wrong", tmp_path).claim
    refuted = Erratum(PAPER, "Lemma 1", ErratumClass.REFUTED, "Not so.", claim.name)
    expected = replace(claim.expect, outcome=Outcome.VIOLATED, reason="false")
    claim = replace(claim, expect=expected, status=Status.ERRATUM, source=Text.FOUND)
    wrong = ClaimEntry(claim, toy_report(claim, Outcome.VIOLATED), (refuted,), PLACE)
    report = replace(wrong.report, challenge=None)
    wrong = replace(wrong, report=report)
    prose = "- {{ refuted() }} refuted.\n- {{ broken_steps() }} steps."
    assert told(tmp_path, prose, wrong) == ["1 refuted."]
    step = replace(refuted, kind=ErratumClass.INVALID_PROOF)
    assert told(tmp_path, prose, replace(wrong, errata=(step,))) == ["1 steps."]
    suspected = replace(claim, status=Status.SUSPECTED_ERRATUM, source=Text.RECALLED)
    assert told(tmp_path, prose, replace(wrong, claim=suspected)) == []


@pytest.mark.parametrize("folder", PAPERS, ids=lambda folder: folder.name)
def test_every_name_of_the_prose_exists(folder):
    sections = read_findings({folder})
    assert tuple(sections) == TITLES
    prose = " ".join(item for items in sections.values() for item in items)
    called = re.findall(r"(?:holds|fails|tightness|loss)\(([^)]*)\)", prose)
    slugs = {f"{folder.name}/{slug}" for names in called for slug in re.findall('"(.*?)"', names)}
    assert slugs
    assert slugs <= {claim.name for claim in find_claims()}
    known = {e.name: e for e in find_experiments() if e.paper == folder.name}
    # That the values are there is seen where the experiment runs, in tests/experiments.
    assert set(re.findall(r'value\("(.*?)", "', prose)) <= known.keys()


def test_every_name_of_the_answers_exists():
    folders = sorted(path.parent for path in PAPERS[0].parent.glob(f"*/{QUESTIONS}"))
    prose = " ".join(" ".join(items) for items in read_findings(folders, QUESTIONS).values())
    slugs = re.findall(r'(?:holds|fails|tightness|loss)\("(.*?)"', prose)
    assert {*slugs} <= {claim.name for claim in find_claims()}
    named = {*re.findall(r'value\("(.*?)", "', prose)}
    assert named
    assert named <= {experiment.name for experiment in find_experiments()}


@pytest.mark.parametrize(
    "file", sorted(PAPERS[0].parent.glob(f"*/{QUESTIONS}")), ids=lambda file: file.parent.name
)
def test_a_file_of_answers_says_that_it_is_a_template(file):
    title = f"# Questions that {file.parent.name} answers: a template\n"
    assert file.read_text(encoding="utf-8").startswith(title)


def test_papers_that_answer_one_question_answer_it_together(tmp_path):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / QUESTIONS).write_text(f"## Which?\n\n- The {name}.\n", "utf-8")
    folders = [tmp_path / "second", tmp_path / "first"]
    assert read_findings(folders, QUESTIONS) == {"Which?": ("The second.", "The first.")}


def told_cards(folder, text, *claims, experiments=(), audits=()):
    (folder / CARDS).write_text(text, encoding="utf-8")
    return front_cards(claims, experiments, audits)


def test_cards_stand_in_the_order_of_their_numbers_with_the_first_item_that_has_evidence(tmp_path):
    holds = f'{{{{ holds("{PAPER}/one") }}}}'
    text = (
        f"## 2. Second?\n\n- {holds.replace('one', 'gone')} Yes.\n- {holds} No.\n- {holds} Later.\n"
        f"\n## 1. First?\n\n- {holds} So.\n\n## 3. Third?\n\n- {{{{ printed().false }}}}.\n"
    )
    first, second = told_cards(tmp_path, text, entry("one", tmp_path))
    assert (first.title, first.text, second.title, second.text) == (
        "First?",
        "So.",
        "Second?",
        "No.",
    )
    with pytest.raises(UserError, match=r"write '1\. First\?'"):
        told_cards(tmp_path, "## First?\n\n- So.\n", entry("one", tmp_path))


def test_a_card_counts_what_was_read_in_print_alone(tmp_path):
    erratum = Erratum(PAPER, "Lemma", ErratumClass.REFUTED, "Not so.", f"{PAPER}/wrong")
    claims = [entry(slug, tmp_path) for slug in ("one", "two", "ours")]
    claims[:2] = [
        replace(each, claim=replace(each.claim, status=Status.AS_PRINTED, source=Text.FOUND))
        for each in claims[:2]
    ]
    wrong = entry("wrong", tmp_path, Outcome.VIOLATED, (erratum,))
    expect = replace(wrong.claim, status=Status.ERRATUM, source=Text.FOUND,
                     expect=Expectation(Outcome.VIOLATED, "false"))  # fmt: skip
    wrong = replace(wrong, claim=expect, report=replace(wrong.report, expect=Outcome.VIOLATED))
    slip = replace(wrong, errata=(replace(erratum, kind=ErratumClass.TYPO),))
    numbers = "{{ n.false }} and {{ n.slips }} of {{ n.all }}"
    text = f"## 1. Right?\n\n- {{% set n = printed() %}}{numbers}.\n"
    (card,) = told_cards(tmp_path, text, *claims, wrong)
    assert (card.text, card.share) == ("1 and 0 of 3.", (1, 3))
    assert card.evidence[0].anchor == "refuted"
    assert told_cards(tmp_path, text, *claims, slip)[0].text == "0 and 1 of 3."
    assert [claim_groups([*claims, each])[0].refuted for each in (wrong, slip)] == [1, 0]


def test_a_card_says_what_an_audit_says_first(tmp_path):
    item = "{% set a = audited() %}{% if a %}{{ a.model }}: {{ a.sentence }}.{% endif %}"
    text = f"## 5. Heads?\n\n- {item}\n"
    audit = {"model": {"name": "tiny (encoder)"}, "findings": [{"sentence": "A head is idle"}]}
    claim = entry("one", tmp_path)
    assert told_cards(tmp_path, text, claim, audits=[audit])[0].text == "tiny: A head is idle."
    assert told_cards(tmp_path, text, claim, audits=[{**audit, "findings": []}]) == ()
    # An audit that says what to do comes first.
    decided = {**audit, "decisions": [{}], "findings": [{"sentence": "Two heads can go"}]}
    cards = told_cards(tmp_path, text, claim, audits=[audit, decided])
    assert cards[0].text == "tiny: Two heads can go."


def test_a_model_that_an_experiment_trained_is_named_by_it(experiments):
    grounds = Grounds([], [ExperimentEntry(experiments[0], PLACE)], lambda entry: entry.slug, [
        {"model": {"name": "lines-trained (encoder)"}, "findings": [{"sentence": "Idle"}]},
    ])  # fmt: skip
    title = experiments[0].title
    model = grounds.audited()["model"]
    assert model == f"the network that the experiment “{title}” trained"
    assert [each.name for each in grounds.used.values()] == ["audits", title]
    grounds.leads("Do more heads help?")
    assert "question-Do-more-heads-help" in grounds.used


def test_every_name_of_the_cards_exists_and_there_are_five():
    folders = sorted(file.parent for file in PAPERS[0].parent.glob(f"*/{CARDS}"))
    sections = read_findings(folders, CARDS)
    assert sorted(title[:3] for title in sections) == ["1. ", "2. ", "3. ", "4. ", "5. "]
    prose = " ".join(" ".join(items) for items in sections.values())
    called = re.findall(r"(?:holds|fails)\(([^)]*)\)", prose)
    slugs = {slug for names in called for slug in re.findall('"(.*?)"', names)}
    assert slugs <= {claim.name for claim in find_claims()}
    named = {*re.findall(r'value\("(.*?)", "', prose)}
    assert named
    assert named <= {experiment.name for experiment in find_experiments()}


def test_every_paper_has_findings():
    assert len(PAPERS) == 6  # five papers, and the bounds of our own


@pytest.mark.parametrize("folder", PAPERS, ids=lambda folder: folder.name)
def test_a_file_of_findings_says_that_it_is_a_template_and_what_writes_the_page(folder):
    said = (folder / FILE).read_text(encoding="utf-8").partition("\n## ")[0]
    assert said.startswith(f"# Findings of {folder.name}: a template\n")
    assert f"\nattlas check {folder.name}\n" in said
    assert f"\nattlas report {folder.name} --records published --out {folder.name}.html\n" in said
