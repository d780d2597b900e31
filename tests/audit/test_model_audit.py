"""An audit as plain data, tables and a notebook's summary."""

import json

import numpy as np
import xarray as xr

from attlas.audit.finding import Finding
from attlas.audit.model_audit import NOT_CLAIMED, ModelAudit
from attlas.audit.quantity import EvidenceLevel, Quantity, labelled
from attlas.experiments.schema import violations

QUANTITIES = [
    Quantity("gain", "Gain", "$g$", "large", EvidenceLevel.PROVED),
    Quantity("guess", "Guess", "", "", EvidenceLevel.HEURISTIC),
]
VALUES = {"gain": np.array([[1.0, np.inf]]), "guess": np.array([[np.nan, -np.inf]])}
DEPTH = Quantity("residual", "Residual", "", "", EvidenceLevel.MEASURED)


def made(**change):
    facts = {"architecture": "gpt2", "layers": 1, "heads per layer": 2, "parameters": 9}
    given = {
        "model": {"name": "<b>a</b>", **facts},
        "level": "data",
        "heads": labelled(QUANTITIES, VALUES, ("layer", "head")),
        "depths": labelled([DEPTH], {"residual": np.array([0.5, 0.25])}, ("depth",)),
        "bounds": (
            {
                "name": "bits",
                "gap": np.float64(np.inf),
                "vacuous": np.bool_(True),
                "samples_until_nonvacuous": 3.0,
                "about": "the model",
            },
        ),
        "findings": (Finding("what <i>", "how", None, None, "gain", np.inf),),
        "facts": {"loss": np.nan},
        "notes": ("note",),
        "curves": ({"step": 3, "gain_median": np.inf},),
    }
    return ModelAudit(**(given | change))


def test_plain_data_follow_the_schema_and_infinite_numbers_are_null():
    found = made().to_json()
    assert violations(found, "audit") == ()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["heads"] == [
        {"layer": 0, "head": 0, "gain": 1.0, "guess": None},
        {"layer": 0, "head": 1, "gain": None, "guess": None},
    ]
    assert found["depths"][1] == {"depth": 1, "residual": 0.25}
    assert found["bounds"][0]["gap"] is None
    assert found["bounds"][0]["vacuous"] is True
    assert found["facts"] == {"loss": None}
    assert found["findings"][0]["strength"] is None
    assert found["quantities"]["gain"]["standing"] == "proved"
    assert found["curves"] == [{"step": 3, "gain_median": None}]


def test_level_weights_has_no_depths():
    found = made(depths=xr.Dataset(), findings=(), level="weights").to_json()
    assert found["depths"] == []
    assert violations(found, "audit") == ()


def test_a_document_that_lacks_something_breaks_the_schema():
    found = made().to_json()
    for name in ("heads", "findings", "standings"):
        assert violations({key: found[key] for key in found if key != name}, "audit")


def test_every_quantity_is_in_the_list_of_how_it_is_known():
    assert made().evidence_levels() == {
        "proved": ["Gain"],
        "checked on instances": ["Residual"],
        "heuristic": ["Guess"],
        "not claimed": list(NOT_CLAIMED),
    }


def test_a_quantity_without_any_number_is_in_no_list():
    unknown = labelled(QUANTITIES, VALUES | {"guess": np.full((1, 2), np.nan)}, ("layer", "head"))
    assert made(heads=unknown).evidence_levels()["heuristic"] == []


def test_tables_and_summaries():
    table = made().to_pandas()
    assert table.loc[(0, 0), "gain"] == 1.0
    assert table.shape == (2, 2)
    page = made()._repr_html_()
    assert "what &lt;i&gt;" in page
    assert "<b>" not in page
    assert "<i>" not in page
    assert "tested effect" not in made(findings=())._repr_html_()
