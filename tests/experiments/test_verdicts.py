import json
from dataclasses import replace

import numpy as np
import pytest
from arrays_of import arrays_of

from attlas.claims.shrunk_witness import ShrunkWitness
from attlas.claims.verdict import ChallengeReport, CheckReport, ControlReport, Outcome, Verdict
from attlas.core.errors import UserError
from attlas.experiments import pair
from attlas.experiments.pair import read_pair, write_pair
from attlas.experiments.report_document import report_document
from attlas.experiments.schema import NAMES, schema, violations
from attlas.experiments.store import Store
from attlas.experiments.verdicts import is_current, read_reports, write_report
from attlas.experiments.witness import read_witness, write_witness
from attlas.verify.registry import claims_of

WITNESS = {"x": np.array([1.0, -2.0]), "a.b": np.arange(3)}


@pytest.fixture
def report() -> CheckReport:
    good = Verdict(
        Outcome.SUPPORTED, "all hold", slack=0.0, tightness=float("inf"), applicable=64,
        tried=64, statistics={"limit": float("nan"), "low": 0.5}, index=3, witness=WITNESS,
    )  # fmt: skip
    bad = Verdict(Outcome.VIOLATED, "one fails", slack=-0.1, tried=64, witness={"x": np.zeros(2)})
    control = ControlReport("halved", Outcome.VIOLATED, bad)
    search = ChallengeReport(0.99, False, 8, 100, good)
    return CheckReport(
        "mine/triangle", good, (control,), Outcome.SUPPORTED, search, (0.25, None), (), 1.5
    )


def same(one: Verdict, two: Verdict) -> bool:
    np.testing.assert_equal(one.statistics, two.statistics)
    np.testing.assert_equal(dict(one.witness or {}), dict(two.witness or {}))
    names = ("outcome", "reason", "slack", "tightness", "applicable", "tried", "seed", "index")
    return all(getattr(one, name) == getattr(two, name) for name in names)


def test_a_report_comes_back_whole_and_fits_its_schema(tmp_path, report):
    store = Store(tmp_path)
    path = write_report(store, report)
    assert path == tmp_path / "verdicts" / "mine" / "triangle.json"
    ((found, metadata),) = read_reports(store)
    assert (found.claim, found.expect, found.seconds) == ("mine/triangle", "SUPPORTED", 1.5)
    assert same(found.verdict, report.verdict)
    assert same(found.controls[0].verdict, report.controls[0].verdict)
    assert found.controls[0].as_expected
    assert found.challenge is not None
    assert report.challenge is not None
    assert found.challenge.ratio == 0.99
    assert same(found.challenge.verdict, report.challenge.verdict)
    assert found.defects == ()
    assert found.detection == (0.25, None)
    assert {"code", "versions", "finished"} <= metadata.keys()
    assert violations(json.loads(path.read_bytes()), "verdict") == ()
    assert violations([report_document(report)], "check") == ()


OWN = """
import attlas as at

@at.inequality(
    sample=lambda rng, count: {"x": rng.uniform(size=count)},
    controls=[at.Control("half", factor=0.5)],
)
def triangle(x, *, factor=1.0):
    "The square of a number below 1 is smaller."
    return x**2, factor * x
"""


def test_a_report_belongs_to_the_sources_that_were_checked(tmp_path, report, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)  # puts the path of imports back
    file = tmp_path / "own_of_a_verdict.py"
    file.write_text(OWN)
    store = Store(tmp_path / "results")
    (claim,) = claims_of(str(file))
    path = write_report(store, replace(report, claim=claim.name), claim)
    ((found, metadata),) = read_reports(store)
    assert is_current(claim, found)
    assert metadata["source"]["file"] == "own_of_a_verdict.py"
    assert metadata["source"]["line"] == 4
    assert metadata["source"]["commit"] is None
    assert violations(json.loads(path.read_bytes()), "verdict") == ()
    file.write_text(OWN.replace("x**2", "x**1"))
    (changed,) = claims_of(str(file))
    assert not is_current(changed, found)
    # Nor does a changed claim keep the challenge of the one before.
    write_report(store, replace(report, claim=claim.name, challenge=None), changed)
    ((again, metadata),) = read_reports(store)
    assert is_current(changed, again)
    assert again.challenge is None
    assert not is_current(changed, replace(again, source=""))


def test_a_verdict_belongs_to_the_data_that_the_project_declares(tmp_path, report):
    file, table = tmp_path / "own_with_data.py", tmp_path / "table.csv"
    file.write_text(OWN)
    table.write_text("1,2\n")
    (tmp_path / "pyproject.toml").write_text("[tool.attlas]\ndata = ['*.csv']\n")
    store = Store(tmp_path / "results")
    (claim,) = claims_of(str(file))
    write_report(store, replace(report, claim=claim.name), claim)
    ((found, _),) = read_reports(store)
    assert is_current(claim, found)
    table.write_text("1,3\n")
    (later,) = claims_of(str(file))
    assert not is_current(later, found)
    table.write_text("1,2\n")
    (same_again,) = claims_of(str(file))
    assert is_current(same_again, found)


def test_a_check_without_a_challenge_keeps_the_stored_one(tmp_path, report):
    store = Store(tmp_path)
    write_report(store, report)
    later = replace(report, challenge=None, seconds=9.0)
    path = write_report(store, later)
    ((found, metadata),) = read_reports(store)
    assert found.seconds == 9.0
    assert found.challenge is not None
    assert found.challenge.ratio == 0.99
    assert same(found.challenge.verdict, report.challenge.verdict)
    assert {"code", "finished"} == metadata["challenged"].keys()
    assert violations(json.loads(path.read_bytes()), "verdict") == ()


@pytest.mark.parametrize("has_challenge", [True, False])
def test_what_is_replaced_is_verified_once(tmp_path, report, has_challenge, monkeypatch):
    store, verified = Store(tmp_path), []
    write_report(store, report)
    real = pair._document
    monkeypatch.setattr(pair, "_document", lambda *a: verified.append(a[0]) or real(*a))
    later = replace(report, seconds=9.0)
    path = write_report(store, later if has_challenge else replace(later, challenge=None))
    assert verified == [path]


SMALL = ShrunkWitness("own.py:triangle", WITNESS, ("x",), "3.0", "2.0", "in 60 digits", 40)


def test_a_shrunk_witness_comes_back_and_stays_with_its_challenge(tmp_path, report):
    store = Store(tmp_path)
    broken = replace(report, challenge=replace(report.challenge, violated=True), shrunk=SMALL)
    path = write_report(store, broken)
    assert violations(json.loads(path.read_bytes()), "verdict") == ()
    write_report(store, replace(report, challenge=None))
    ((found, _),) = read_reports(store)
    assert found.shrunk is not None
    assert found.shrunk.document() == SMALL.document()
    np.testing.assert_equal(dict(found.shrunk.arrays), WITNESS)
    # One of a verdict that is replaced goes with it.
    write_report(store, replace(report, shrunk=SMALL))
    write_report(store, replace(report, challenge=None))
    ((found, _),) = read_reports(store)
    assert found.shrunk is None


def test_a_report_of_earlier_rules_is_named_and_left_out(tmp_path, report):
    store = Store(tmp_path)
    path = write_report(store, report)
    pair = read_pair(path.parent, path.stem, "verdict")
    assert pair is not None
    document, arrays = pair
    del document["report"]["detection"]
    write_pair(path.parent, path.stem, document, arrays)
    assert read_reports(store) == ()
    assert '"detection" is a required property' in store.notes[0]


def test_a_damaged_verdict_is_named_and_left_out(tmp_path, report):
    store = Store(tmp_path)
    path = write_report(store, report)
    packed = arrays_of(path)
    packed.write_bytes(b"")
    assert read_reports(store) == ()
    assert packed.name in store.notes[0]
    write_report(store, replace(report, challenge=None))
    ((found, _),) = read_reports(store)
    assert found.challenge is None
    # The challenge that is lost is named, and what is left of it kept.
    assert "if it had a challenge, challenge the claim again" in store.notes[1]
    assert len(list((path.parent / "quarantine").iterdir())) == 2


def test_a_witness_comes_back(tmp_path):
    store = Store(tmp_path)
    path = write_witness(store, "mine/triangle", WITNESS, {"ratio": 0.5})
    for name in (path, arrays_of(path)):
        found = read_witness(name)
        assert (found.claim, found.facts) == ("mine/triangle", {"ratio": 0.5})
        np.testing.assert_equal(dict(found.arrays), WITNESS)
    assert violations(json.loads(path.read_bytes()), "witness") == ()


def test_what_is_no_witness_is_one_clear_line(tmp_path, report):
    store = Store(tmp_path)
    with pytest.raises(UserError, match="no witness at"):
        read_witness(tmp_path / "nothing.json")
    with pytest.raises(UserError, match="is a verdict, not a witness"):
        read_witness(write_report(store, report))
    path = write_witness(store, "mine/triangle", WITNESS)
    arrays_of(path).unlink()
    with pytest.raises(UserError, match="missing: search again"):
        read_witness(path)


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_refuses_what_is_not_its_own(name):
    assert schema(name)["$id"] == f"{name}.json"
    assert violations({"schema": 3}, name)
