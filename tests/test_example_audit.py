"""The audit that a guide shows: its stored parts, and the bounds, which are computed again."""

import pytest
from documentation_scripts import documentation_script

import attlas as at

script = documentation_script("example_audit")


@pytest.mark.thorough
def test_the_bounds_are_those_of_the_model(data_dir):
    audit = at.audit(at.load_model(data_dir / "stories260k"), level="weights")
    stored = script.example()["bounds"]
    assert [row["name"] for row in audit.bounds] == [row["name"] for row in stored]
    for row, kept in zip(audit.bounds, stored, strict=True):
        for name in ("gap", "samples_until_nonvacuous"):
            assert row[name] == pytest.approx(kept[name], rel=1e-5), row["name"]


def test_a_head_has_its_cost_in_its_layer():
    heads = [{"layer": k // 2, "head": k % 2, script.COST: k / 10} for k in range(4)]
    costs = script.shown({"heads": heads, **dict.fromkeys(script.SHOWN)})["costs"]
    assert costs == [[0.0, 0.1], [0.2, 0.3]]


def test_the_stored_example_has_every_head_and_what_was_done():
    stored = script.example()
    assert len(stored["costs"]) == stored["model"]["layers"]
    assert {len(layer) for layer in stored["costs"]} == {stored["model"]["heads per layer"]}
    assert {each["kind"] for each in stored["decisions"]} == {"heads", "rounding", "precision"}
