"""`attlas check` and `attlas challenge`: tables, files, exit codes, one-line refusals."""

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attlas._jax.processes import checker_variables
from attlas.claims.verdict import CheckReport, ControlReport, Outcome, Verdict
from attlas.cli.main import main
from attlas.experiments.environment import environment
from attlas.experiments.schema import violations, violations_of
from attlas.experiments.store import Store
from attlas.experiments.verdicts import read_reports
from attlas.experiments.witness import read_witness, write_witness
from attlas.server.schemas import output_schemas
from attlas.verify.challenge import challenge
from attlas.verify.check_many import planned_groups
from attlas.verify.registry import find_claims

LEMMA = "julistiono2024optimizing/lemma-12"


@pytest.fixture
def attlas(capsys, monkeypatch):
    """Run the command line in this process: exit code, standard output, standard error."""
    # The commands set variables for the processes they start; here they are taken back.
    for name, value in {**checker_variables(2), "COLUMNS": "250"}.items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        shown = capsys.readouterr()
        return int(left.value.code or 0), shown.out, shown.err

    return run


def reports_of(outcome: Outcome, control: Outcome = Outcome.VIOLATED):
    """A stand-in for the worker processes: every claim comes out as said."""

    def check_all(claims, **_):
        controls = (ControlReport("false", Outcome.VIOLATED, Verdict(control, "said")),)
        for claim in claims:
            yield CheckReport(claim.name, Verdict(outcome, "said"), controls, Outcome.SUPPORTED)

    return check_all


@pytest.mark.thorough
def test_check_writes_verdict_and_json_from_worker_processes(attlas, tmp_path):
    file = tmp_path / "reports.json"
    results = tmp_path / "results"
    code, out, err = attlas(
        "--results", results, "check", LEMMA, "--instances", "40", "--processes", "1",
        "--json", file, "--latex", tmp_path / "table.tex",
    )  # fmt: skip
    assert (code, err) == (0, "")
    for said in (LEMMA, "Lemma 12", "SUPPORTED", "1/1", "1 as expected, 0 unexpected"):
        assert said in out
    documents = json.loads(file.read_text())
    assert violations(documents, "check") == ()
    (document,) = documents
    assert document["verdict"]["tried"] == 40
    assert document["provenance"] == "as reconstructed"
    assert list(document).index("provenance") < list(document).index("verdict")
    del document["provenance"]
    assert violations(documents, "check") == ('$[0]: "provenance" is a required property',)
    table = (tmp_path / "table.tex").read_text().splitlines()
    assert table[0].startswith("% made by attlas; computed: ")
    (row,) = [line for line in table if line.startswith("Lemma 12: $")]
    assert row.endswith(r" & 40 & -- & $1$ & supported (attained) \\")
    ((report, _),) = read_reports(Store(results))
    assert (report.claim, report.defects) == (LEMMA, ())


@pytest.mark.parametrize(
    "stand_in",
    [reports_of(Outcome.VIOLATED), reports_of(Outcome.SUPPORTED, control=Outcome.SUPPORTED)],
    ids=["verdict differs", "control passes"],
)
def test_check_leaves_with_1_when_something_differs(attlas, monkeypatch, tmp_path, stand_in):
    monkeypatch.setattr("attlas.verify.check_many.check_all", stand_in)
    code, out, _ = attlas("--results", tmp_path, "check", LEMMA)
    assert code == 1
    assert "0 as expected, 1 unexpected" in out
    assert f"{LEMMA}: " in out


def test_what_the_verdicts_are_worth_is_said_below_the_table(attlas, monkeypatch, tmp_path):
    def check_all(claims, **_):
        verdict = Verdict(Outcome.SUPPORTED, "said", tightness=0.01)
        for claim in claims:
            yield CheckReport(
                claim.name, verdict, (), Outcome.SUPPORTED, detection=(0.999,), nearest=20
            )

    monkeypatch.setattr("attlas.verify.check_many.check_all", check_all)
    _, out, _ = attlas("--results", tmp_path, "check", LEMMA, "trauger2023sequence/lemma-3-2")
    assert "as printed: 1 claim checked, 1 as expected, 0 unexpected; 0.0 s by the clock" in out
    assert "as reconstructed: 1 claim checked, 1 as expected" in out
    assert f"{LEMMA}: no control is nearer than a factor of 10: the nearest exceeds its" in out
    assert "A verdict on a statement as reconstructed is about our wording of the paper." in out
    (line,) = [line for line in out.splitlines() if line.startswith(f"{LEMMA} ")]
    row = [LEMMA, "as", "reconstructed", "SUPPORTED", "vacuous", "1000", "times", "smaller"]
    assert line.split()[:8] == row


def test_strengths_are_counted_for_each_provenance(attlas, monkeypatch, tmp_path):
    monkeypatch.setattr("attlas.verify.check_many.check_all", reports_of(Outcome.SUPPORTED))
    names = (LEMMA, "julistiono2024optimizing/lemma-16", "trauger2023sequence/lemma-3-2")
    _, out, _ = attlas("--results", tmp_path, "check", *names)
    assert "as reconstructed: 2 supported claims, 2 without" in out
    assert "3 supported" not in out


def test_unknown_claim_is_refused_with_the_nearest_names(attlas):
    for command in ("check", "challenge"):
        code, out, err = attlas(command, "lema-12")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "lemma-12" in err


def test_a_results_folder_that_cannot_be_written_is_refused_before_anything_runs(
    attlas, monkeypatch, tmp_path
):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("attlas.verify.check_many.check_all", reports_of(Outcome.SUPPORTED))
    code, out, err = attlas("--results", tmp_path / "file", "check", LEMMA)
    assert (code, out, err.count("\n")) == (2, "", 1)
    code, out, err = attlas("check", LEMMA, "--json", tmp_path / "none" / "file.json")
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_challenge_stores_a_witness_that_replays(attlas, tmp_path):
    code, out, _ = attlas("--results", tmp_path, "challenge", LEMMA, "--seconds", "0")
    assert code == 0
    assert "best ratio" in out
    (witness,) = tmp_path.rglob("*.json")
    code, again, _ = attlas("challenge", "--replay", witness)
    assert code == 0
    # One instance never supports a claim; its tightness is that of the search.
    assert "INCONCLUSIVE" in again
    tightness = [line.split()[1] for line in (out + again).splitlines() if "tightness" in line]
    assert len(tightness) == 2
    assert tightness[0] == tightness[1]


TOTAL = '''
import jax.numpy as jnp
import attlas as at


def eight(rng, count):
    return {"x": rng.uniform(-3, 3, size=(count, 8)), "y": rng.normal(size=(count, 16))}


@at.inequality(sample=eight, controls=[at.Control("half", factor=0.5)])
def total(x, y, *, factor=1.0):
    r"""$$\\sum_i x_i \\le 2$$"""
    return jnp.sum(x) + 0 * y[0], factor * 2.0
'''


def test_challenge_shows_a_simple_instance_and_stores_it(attlas, tmp_path):
    (tmp_path / "own.py").write_text(TOTAL)
    file, results = tmp_path / "found.json", tmp_path / "results"
    asked = ("challenge", tmp_path / "own.py", "--seconds", "0", "--json", file)
    code, out, _ = attlas("--results", results, *asked)
    assert code == 1
    assert "shrunk      x = 3 e_{1}" in out
    document = json.loads(file.read_text())
    assert list(violations_of(document, output_schemas()["challenge"])) == []
    assert document["shrunk"]["python"] in out
    (stored,) = (results / "witnesses").rglob("*.json")
    assert read_witness(stored).arrays["x"].tolist() == [3.0] + [0.0] * 7
    code, again, _ = attlas("challenge", tmp_path / "own.py", "--replay", stored)
    assert code == 1
    assert "instance    x = 3 e_{1}" in again
    code, out, err = attlas("challenge", LEMMA, "--replay", stored, "--json", file)
    assert (code, out, err.count("\n")) == (2, "", 1)


CORNER = '''
import jax.numpy as jnp
import attlas as at


def three(rng, count):
    return {"x": rng.normal(size=(count, 3))}


@at.inequality(sample=three, search_over="x", controls=[at.Control("tenth", factor=0.1)])
def corner(x, *, factor=1.0):
    r"""$$\\|x\\|_2 \\le 0.99 \\|x\\|_1$$"""
    return jnp.linalg.norm(x), 0.99 * factor * jnp.linalg.norm(x, 1)
'''


def test_claims_of_ones_own_are_searched_by_default_as_pytest_and_challenge_do(attlas, tmp_path):
    own = tmp_path / "own.py"
    own.write_text(CORNER)
    asked = ("--results", tmp_path / "results", "check", own)
    file = tmp_path / "reports.json"
    assert attlas(*asked, "--challenge", "0", "--json", file)[0] == 0
    assert json.loads(file.read_text())[0]["challenge"] is None
    # The verdict without a search does not stand for the one with it.
    code, out, _ = attlas(*asked, "--json", file)
    assert (code, "the challenge found a counterexample" in out) == (1, True)
    # The table does not call it supported either.
    assert "VIOLATED" in out
    assert "SUPPORTED" not in out
    (found,) = json.loads(file.read_text())
    assert found["challenge"]["violated"]
    (claim,) = find_claims([str(own)])
    searched = challenge(claim)
    assert searched.violated
    assert searched.method == found["challenge"]["method"]


def test_of_installed_papers_a_search_is_asked_for(monkeypatch, tmp_path):
    (installed,) = find_claims([LEMMA])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(CORNER)
    (own,) = find_claims(["own.py"])
    efforts = {
        claims[0].name: [
            planned_groups(claims, challenge=rounds, effort=2.0)[0].keywords["challenge"]
            for rounds in (None, 0, 1)
        ]
        for claims in ([installed], [own])
    }
    assert efforts == {installed.name: [0, 0, 2], own.name: [2, 0, 2]}
    # In its own folder a paper is the project, installed or not.
    monkeypatch.chdir(Path(installed.place[0]).parent)
    (group,) = planned_groups(find_claims([LEMMA]))
    assert group.keywords["challenge"] == 1


def test_a_level_in_the_place_of_the_locator_is_one_line(attlas, tmp_path):
    own = CORNER.replace("@at.inequality(", "@at.probability(0.95, independent='x', ")
    (tmp_path / "own.py").write_text(own.replace('search_over="x", ', ""))
    for command in ("check", "challenge", "power"):
        code, out, err = attlas("--results", tmp_path, command, tmp_path / "own.py")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "own.py" in err
        assert "level=0.95" in err


def test_equal_evaluations_agree_and_a_better_witness_stays(attlas, tmp_path):
    asked = ("challenge", LEMMA, "--evaluations", "256", "--method", "moves")
    first = attlas("--results", tmp_path, *asked)
    assert first[0] == 0
    assert "256 evaluations, seed 0" in first[1]
    (witness,) = tmp_path.rglob("*.json")
    ratio = json.loads(witness.read_text())["facts"]["ratio"]
    again = attlas("--results", tmp_path, *asked, "--seed", "1")
    # The stored instance is evaluated first, and is kept unless there is a better one.
    assert "stored      INCONCLUSIVE" in again[1]
    assert json.loads(witness.read_text())["facts"]["ratio"] >= ratio
    other = attlas("--results", tmp_path / "other", *asked)
    (repeated,) = (tmp_path / "other").rglob("*.json")
    facts = json.loads(repeated.read_text())["facts"]
    assert (other[0], facts["ratio"], facts["evaluations"]) == (0, ratio, 256)


def test_a_stored_witness_is_replayed_and_forgotten(attlas, monkeypatch, tmp_path):
    seen = []

    def check_all(claims, stored, **_):
        seen.append(sorted(stored))
        yield from reports_of(Outcome.SUPPORTED)(claims)

    monkeypatch.setattr("attlas.verify.check_many.check_all", check_all)
    write_witness(Store(tmp_path), LEMMA, {"W": np.zeros((4, 4)), "p": np.array(2.0)})
    assert attlas("--results", tmp_path, "check", LEMMA)[0] == 0
    code, out, _ = attlas("--results", tmp_path, "check", LEMMA, "--forget")
    assert (code, "1 stored witnesses deleted" in out) == (0, True)
    assert seen == [[LEMMA], []]


def test_challenge_needs_one_claim(attlas):
    for arguments, said in (
        ((), "needs a CLAIM"),
        (("julistiono2024optimizing",), "claims: choose one"),
        (("--replay", "nowhere.json"), "no witness"),
    ):
        code, out, err = attlas("challenge", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert said in err


def test_defects_are_what_the_exit_code_follows():
    sound = CheckReport("a/b", Verdict(Outcome.SUPPORTED, ""), (), Outcome.SUPPORTED)
    assert sound.defects == ()
    assert replace(sound, expect=Outcome.VIOLATED).defects != ()


def test_every_file_that_is_asked_for_is_written(attlas, monkeypatch, tmp_path):
    monkeypatch.setattr("attlas.verify.check_many.check_all", reports_of(Outcome.VIOLATED))
    names = {"--latex": "t.tex", "--markdown": "t.md", "--junit": "t.xml", "--badge": "t.svg"}
    options = [part for option, name in names.items() for part in (option, tmp_path / name)]
    code, _, err = attlas("--results", tmp_path / "results", "check", LEMMA, *options)
    assert (code, err) == (1, "")
    texts = {name: (tmp_path / name).read_text(encoding="utf-8") for name in names.values()}
    assert r"violated$^\dagger$" in texts["t.tex"]
    assert "| violated (unexpected) |" in texts["t.md"]
    assert ElementTree.fromstring(texts["t.xml"])[0].get("failures") == "1"
    assert "1 with a counterexample" in texts["t.svg"]


def test_a_badge_of_another_form_is_refused_before_anything_runs(attlas, monkeypatch, tmp_path):
    monkeypatch.setattr("attlas.verify.check_many.check_all", reports_of(Outcome.SUPPORTED))
    code, out, err = attlas("check", LEMMA, "--badge", tmp_path / "badge.png")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert ".svg" in err


def test_on_a_cluster_the_worker_that_checked_is_what_the_verdict_names(
    attlas, monkeypatch, tmp_path
):
    asked = {}

    def check_on_dask(claims, **given):
        asked.update(given)
        for report in reports_of(Outcome.SUPPORTED)(claims):
            yield report, {**environment(), "device": "cpu: of a worker"}

    monkeypatch.setattr("attlas.experiments.dask_claims.check_on_dask", check_on_dask)
    on = ("--on", "dask://127.0.0.1:1", "--processes", "3", "--insecure", "--instances", "40")
    code, out, _ = attlas("--results", tmp_path, "check", LEMMA, *on)
    assert (code, "1 as expected" in out) == (0, True)
    assert (asked["on"], asked["workers"], asked["insecure"]) == ("dask://127.0.0.1:1", 3, True)
    assert asked["count"] == 40
    ((_, metadata),) = read_reports(Store(tmp_path))
    assert metadata["device"] == "cpu: of a worker"
    monkeypatch.undo()
    code, _, said = attlas("--results", tmp_path, "check", LEMMA, "--on", "nowhere")
    assert code == 2
    assert "cannot run on 'nowhere'" in said
