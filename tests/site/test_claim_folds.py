"""Claims of a paper in folds: each in one, theorems first, and an address opens its fold."""

from dataclasses import replace

from tests.site.conftest import PAPER, toy_claim, toy_report

from attlas.claims.verdict import Outcome
from attlas.experiments.store import Store
from attlas.site.atlas import gather
from attlas.site.claim_entry import ClaimEntry, Source
from attlas.site.claim_folds import claim_folds
from attlas.site.content import PaperEntry
from attlas.site.theorems import theorems_of

PLACES = {
    "Theorem 2": "Theorem 2", "Theorem 1, sharpened": "Theorem 1",
    "Proof of Theorem 2, a step": "Theorem 2", "Lemmas 4 and 5": "Lemmas", "Lemma 4": "Lemmas",
    "(19), a step": "Equations", "(A2), for softmax": "Assumptions and conditions",
    "Beyond the paper: more": "Beyond the paper", "The range": "Other statements",
}  # fmt: skip


def test_each_claim_is_in_the_fold_of_its_theorem_or_kind():
    claims = []
    for number, locator in enumerate(PLACES):
        claim = replace(toy_claim(f"slug-{number}", locator), place=("nowhere.py", 1))
        report = toy_report(claim, Outcome.SUPPORTED)
        claims.append(ClaimEntry(claim, report, (), Source("own.py", 1, "")))
    paper = PaperEntry(PAPER, None, tuple(claims), (), (), ())
    folds = claim_folds(claims, theorems_of(paper))
    assert [fold.title for fold in folds[:3]] == ["Theorem 1", "Theorem 2", "Lemmas"]
    found = {e.claim.locator: fold.title for fold in folds for e in fold.claims}
    assert found == PLACES
    assert sum(len(fold.claims) for fold in folds) == len(PLACES)
    assert folds[0].said == "No counterexample was found. As reconstructed: 1 held"
    assert folds[2].said == "As reconstructed: 2 held"


def test_every_claim_of_the_papers_is_in_one_fold(tmp_path):
    for paper in gather(Store(tmp_path / "none"), experiments=[]).papers:
        folds = claim_folds(paper.claims, theorems_of(paper))
        folded = [entry.claim.name for fold in folds for entry in fold.claims]
        assert sorted(folded) == sorted(entry.claim.name for entry in paper.claims)
