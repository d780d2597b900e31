"""A search as plain JSON: with its witness as lists, as the published schema says."""

import numpy as np

from attlas.claims.shrunk_witness import ShrunkWitness
from attlas.claims.verdict import ChallengeReport, Outcome, Verdict
from attlas.experiments.challenge_document import LARGEST_WITNESS, challenge_document
from attlas.experiments.schema import violations_of
from attlas.server.schemas import output_schemas
from attlas.verify.registry import one_claim

SMALL = ShrunkWitness("a/b", {"x": np.array([3.0])}, (), "3.0", "2.0", "in 60 digits", 40)


def document(witness, shrunk=None):
    """The document of a search that found this instance."""
    broken = Verdict(Outcome.VIOLATED, "beyond", slack=-1.0, witness=witness)
    report = ChallengeReport(1.5, True, 64, 10, broken, evaluations=640)
    return challenge_document(one_claim("julistiono2024optimizing/lemma-12"), report, 3, shrunk)


def test_a_document_has_the_shape_of_its_schema_with_and_without_a_simpler_instance():
    for shrunk in (None, SMALL):
        found = document({"x": np.array([1.5, np.nan]), "k": np.array(2)}, shrunk)
        assert list(violations_of(found, output_schemas()["challenge"])) == []
        assert found["witness"] == {"x": [1.5, "nan"], "k": 2}
        assert found["shrunk"] == (shrunk and shrunk.document())
        assert (found["seed"], found["evaluations"]) == (3, 640)
    found["shrunk"]["latex"] = 1
    assert list(violations_of(found, output_schemas()["challenge"])) != []


def test_a_large_witness_is_left_out():
    assert document({"x": np.zeros(LARGEST_WITNESS + 1)})["witness"] is None
