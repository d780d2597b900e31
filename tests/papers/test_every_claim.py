"""All claims with their controls, and proof that the test fails when the engine is broken.

Claims are checked in processes of their own, as `attlas check` does it: without the checks of
shapes, which would double the time.
"""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from latex2mathml.converter import convert

from attlas.claims.claim import Claim, Control, ErratumClass, Kind
from attlas.claims.kinds.inequality import Inequality
from attlas.claims.verdict import FARTHEST, Outcome, Verdict
from attlas.experiments.strengths import published_strengths
from attlas.verify import check as engine
from attlas.verify.registry import find_claims, find_errata

CLAIMS = find_claims()
PARTS = 24
SEED = 1
"""Of the first part; `make atlas` checks all claims at seed 0."""
SEED_OF_THE_DAY = int(os.environ["ATTLAS_TEST_SEED"])
"""Of the other parts."""


WITHOUT_A_RATIO = {
    "deora2023optimization/one-head-fails": "a sign: the least margin is not positive",
}
"""Inequalities and existences whose controls exceed their bound by no factor, with the reason."""


def assert_as_expected(claim: Claim) -> None:
    """A claim and all of its controls come out as expected."""
    report = engine.check(claim, challenge=0)
    assert report.controls
    assert report.defects == ()


def part_of_all(part: int):
    """One part; all but the first, half as long, are thorough: they take half a minute each."""
    return pytest.param(part, marks=pytest.mark.thorough if part else ())


def reports_of(seeds: dict[str, int]) -> dict:
    """Checks of claims at a seed each, in a process of its own."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("check_claims.py"))],
        input=json.dumps(seeds), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    reports = json.loads(done.stdout)
    assert list(reports) == list(seeds)
    return reports


@pytest.mark.parametrize("part", [part_of_all(part) for part in range(PARTS)])
def test_claims_and_controls(part):
    # Neighbours share a file, its compiled programs and, at one seed, what their samplers draw.
    seed = SEED_OF_THE_DAY if part else SEED
    first, last = (
        max(0, len(CLAIMS) * (2 * end - 1) // (2 * PARTS - 1)) for end in (part, part + 1)
    )
    seeds = {claim.name: seed for claim in CLAIMS[first:last]}
    reports = reports_of(seeds)
    assert [name for name, report in reports.items() if not report["controls"]] == []
    assert [name for name, report in reports.items() if not report["moves"]] == []
    defects = {
        f"{name}, seed {seeds[name]}": report["defects"]
        for name, report in reports.items()
        if report["defects"]
    }
    assert defects == {}


def test_each_claim_has_a_control_near_its_bound():
    published = published_strengths()
    beyond = {name: entry["nearest"] for name, entry in published.items()
              if entry["nearest"] is not None}  # fmt: skip
    assert [name for name, factor in beyond.items() if float(factor) > FARTHEST] == []
    assert {name: entry["far"] for name, entry in published.items() if entry["far"]} == {}
    compared = {
        claim.name
        for claim in CLAIMS
        if isinstance(claim.kind.rule, Inequality) and claim.expect.outcome is Outcome.SUPPORTED
    }
    assert compared - beyond.keys() == WITHOUT_A_RATIO.keys()


@pytest.mark.parametrize("name", ["smoothness", "step-scaling", "lemma-17"])
def test_samplers_on_trajectories_draw_as_many_as_are_asked_for(name):
    claim = next(c for c in CLAIMS if c.name == f"julistiono2024optimizing/{name}")
    for count in (5, 100):
        drawn = claim.draw(3, count)
        assert {len(value) for value in drawn.values()} == {count}


def test_statements_can_be_typeset_and_papers_agree_with_folders():
    for claim in CLAIMS:
        assert convert(claim.statement).startswith("<math")
        assert f"papers/{claim.paper}/" in claim.place[0].replace("\\", "/")


def test_refuted_errata_name_a_claim_with_a_witness():
    named = {claim.name: claim for claim in CLAIMS}
    errata = find_errata()
    assert all(erratum.claim in named for erratum in errata if erratum.claim)
    refuted = [named[erratum.claim] for erratum in errata if erratum.kind is ErratumClass.REFUTED]
    assert refuted
    # An order of growth is refuted by a family, not by one instance.
    assert all(claim.witness is not None or claim.kind is Kind.RATE for claim in refuted)


def test_an_engine_that_always_agrees_makes_the_test_fail(monkeypatch):
    yes = Verdict(Outcome.SUPPORTED, "always")
    monkeypatch.setattr(engine, "decide", lambda *args, **kwargs: yes)
    monkeypatch.setattr(engine, "decided", lambda claim, evidence, *args, **kwargs: (yes, evidence))
    with pytest.raises(AssertionError):
        assert_as_expected(CLAIMS[0])


def test_an_engine_that_always_refuses_makes_the_test_fail(monkeypatch):
    no = Verdict(Outcome.VIOLATED, "always")
    monkeypatch.setattr(engine, "decide", lambda *args, **kwargs: no)
    monkeypatch.setattr(engine, "decided", lambda claim, evidence, *args, **kwargs: (no, evidence))
    with pytest.raises(AssertionError):
        assert_as_expected(CLAIMS[0])


def test_a_true_control_makes_the_test_fail():
    (claim,) = find_claims(["julistiono2024optimizing/lemma-12"])
    same = Control("the claim itself", switched=False)
    with pytest.raises(AssertionError):
        assert_as_expected(replace(claim, controls=(same,)))
