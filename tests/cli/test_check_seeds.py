"""`attlas check --seeds N`: each change, each control near its limit, and the exit code."""

import json

import pytest

from attlas.cli.main import main
from attlas.experiments.schema import violations
from attlas.experiments.store import Store
from attlas.experiments.verdicts import read_reports

OWN = """
import attlas as at

def numbers(rng, count):
    return {"x": rng.uniform(1, 2, size=count)}

@at.inequality(sample=numbers, controls=[at.Control("barely larger", factor=1.02)])
def itself(x, *, factor=1.0):
    "A number is at most itself."
    return x * factor, x

@at.inequality(sample=numbers, controls=[at.Control("half", factor=2.0)])
def rarely_large(x, *, factor=1.0):
    "A number is below 1.98."
    return x * factor, 1.98
"""


@pytest.fixture
def checked(capsys, monkeypatch, tmp_path):
    """Check two claims at five seeds: exit code, text, documents and stored reports."""
    monkeypatch.syspath_prepend(tmp_path)
    file, written = tmp_path / "claims_seeds.py", tmp_path / "reports.json"
    file.write_text(OWN)
    results = tmp_path / "results"
    arguments = ["--results", results, "check", file, "--instances", 40, "--seed", 3, "--seeds", 5]
    arguments += ["--challenge", 0]
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in (*arguments, "--json", written)])
    stored = [report for report, _ in read_reports(Store(results))]
    text = " ".join(capsys.readouterr().out.split())  # sentences are broken to fit
    return left.value.code, text, json.loads(written.read_text()), stored


def test_changes_and_narrow_controls_are_named_with_their_seeds(checked):
    code, text, documents, stored = checked
    assert violations(documents, "check") == ()
    seeds = [document["verdict"]["seed"] for document in documents]
    assert seeds == 2 * [3, 4, 5, 6, 7]
    narrow, large = documents[:5], documents[5:]
    assert all(document["near"] for document in narrow)
    assert "seeds 3, 4, 5, 6 and 7: control 'barely larger' is violated by less than 5 %" in text
    broken = [d["verdict"]["seed"] for d in large if d["verdict"]["outcome"] == "VIOLATED"]
    assert 0 < len(broken) < 5
    assert code == 1
    for seed in broken:
        assert f"claims_seeds/rarely-large: seed {seed}: VIOLATED, expected SUPPORTED" in text
    assert f" {5 - len(broken)}/5 " in text
    assert "2 claims checked at 5 seeds" in text
    assert "1 as expected at each, 1 not, 1 with a control or count within 5 % of" in text
    assert {report.verdict.seed for report in stored} == {3}
    assert any(report.near for report in stored)
