"""Audits beside the records: kept, read again, and named where they are damaged."""

import copy
import json

import numpy as np
import pytest
from small_documents import AUDIT

from attlas.audit.audit import AuditOptions
from attlas.core.errors import UserError
from attlas.experiments import audits
from attlas.experiments.audits import (
    FOLDER,
    audit_digest,
    audited_model,
    store_audit,
    stored_audits,
    unchanged_audit,
)


def named(name, **change):
    found = copy.deepcopy(AUDIT) | change
    found["model"]["name"] = name
    return found


def test_the_newest_audit_of_a_model_and_level_is_kept(tmp_path):
    file = store_audit(tmp_path, AUDIT)
    assert file.parent == tmp_path / FOLDER
    assert file.name.startswith("a-b-")
    assert store_audit(tmp_path, AUDIT | {"facts": {"loss": 1.5}}) == file
    others = [AUDIT | {"level": "deep"}, named("/other/a b"), named("../..")]
    files = {file, *(store_audit(tmp_path, each) for each in others)}
    assert len(files) == 4
    assert {each.parent for each in files} == {tmp_path / FOLDER}
    found, wrong = stored_audits(tmp_path)
    assert wrong == []
    assert len(found) == 4
    assert AUDIT | {"facts": {"loss": 1.5}} in found


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "[" * 100_000,
        json.dumps(AUDIT | {"level": "other"}),
        json.dumps(AUDIT).replace("2.5", "NaN"),
        json.dumps(AUDIT).replace("2.5", "-Infinity"),
        "",
    ],
)
def test_damaged_audits_are_named_in_one_line_and_left_out(tmp_path, text):
    store_audit(tmp_path, AUDIT)
    (tmp_path / FOLDER / "wrong.json").write_text(text)
    found, (line,) = stored_audits(tmp_path)
    assert found == [AUDIT]
    assert "wrong.json" in line
    assert "\n" not in line


def test_audits_of_earlier_versions_are_read_and_replaced(tmp_path):
    file = store_audit(tmp_path, AUDIT)
    earlier = json.dumps(AUDIT | {"facts": {"loss": 3.5}})
    file.write_text(earlier)
    assert stored_audits(tmp_path) == ([AUDIT | {"facts": {"loss": 3.5}}], [])
    said: list[str] = []
    assert store_audit(tmp_path, AUDIT, said.append) == file
    assert stored_audits(tmp_path) == ([AUDIT], [])
    assert said == []
    assert list(file.parent.iterdir()) == [file]
    file.write_text(earlier[:-5])  # a damaged one is named and set aside
    store_audit(tmp_path, AUDIT, said.append)
    assert ["moved to" in line for line in said] == [True]


def test_every_flipped_bit_is_named_and_what_is_damaged_is_kept(tmp_path):
    file = store_audit(tmp_path, AUDIT)
    content = file.read_bytes()
    for number in range(0, 8 * len(content), 61):
        harmed = bytearray(content)
        harmed[number // 8] ^= 1 << number % 8
        file.write_bytes(harmed)
        audits, (line,) = stored_audits(tmp_path)
        assert audits == []
        assert file.name in line
    said = []
    assert store_audit(tmp_path, AUDIT, said.append) == file
    assert stored_audits(tmp_path) == ([AUDIT], [])
    (aside,) = (tmp_path / FOLDER / "quarantine").iterdir()
    assert aside.read_bytes() == harmed
    assert "moved to" in said[0]


def test_a_folder_without_audits_has_none(tmp_path):
    assert stored_audits(tmp_path) == ([], [])


def test_a_model_is_found_or_asked_for(tmp_path):
    assert audited_model(tmp_path, str(tmp_path)) == tmp_path
    with pytest.raises(UserError, match="does not exist"):
        audited_model(tmp_path, str(tmp_path / "none"))
    with pytest.raises(UserError, match="holds no trained model"):
        audited_model(tmp_path, None)
    model = tmp_path / "models" / "text" / "abc"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    assert audited_model(tmp_path, None) == model


INPUTS = ("f" * 64, "a b", "data", [np.array([1, 2]), np.array([3])], AuditOptions(seed=1))


@pytest.mark.parametrize(
    ("place", "other"),
    [
        (0, "e" * 64),
        (1, "a c"),
        (2, "deep"),
        (3, None),
        (3, [np.array([1, 2])]),
        (3, [np.array([1]), np.array([2, 3])]),
        (3, [np.array([1, 2]), np.array([4])]),
        (4, AuditOptions(seed=1, mask=0)),
        (4, AuditOptions(seed=1, source="other")),
    ],
)
def test_a_digest_differs_wherever_an_audit_could(place, other):
    changed = [*INPUTS[:place], other, *INPUTS[place + 1 :]]
    assert audit_digest(*INPUTS) == audit_digest(*INPUTS)
    assert audit_digest(*changed) != audit_digest(*INPUTS)


@pytest.mark.parametrize("name", ["package_digest", "machine_digest"])
def test_a_digest_differs_with_the_code_and_the_machine(monkeypatch, name):
    before = audit_digest(*INPUTS)
    monkeypatch.setattr(audits, name, lambda: "other")
    assert audit_digest(*INPUTS) != before


def test_an_audit_is_read_again_only_under_its_digest(tmp_path):
    at = tmp_path, AUDIT["model"]["name"], AUDIT["level"]
    assert unchanged_audit(*at, "1") is None
    store_audit(tmp_path, AUDIT)  # as earlier versions did, from what is not known
    assert unchanged_audit(*at, "") is None
    file = store_audit(tmp_path, AUDIT, digest="1")
    stored = unchanged_audit(*at, "1")
    assert stored is not None
    assert json.dumps(stored.audit) == json.dumps(AUDIT)  # in the same order
    assert stored_audits(tmp_path) == ([AUDIT], [])
    assert unchanged_audit(*at, "2") is None
    assert unchanged_audit(*at[:2], "deep", "1") is None
    file.write_bytes(file.read_bytes().replace(b"2.5", b"2.6"))
    assert unchanged_audit(*at, "1") is None


def test_an_audit_whose_order_cannot_be_stored_is_not_read_again(tmp_path):
    at = tmp_path, AUDIT["model"]["name"], AUDIT["level"]
    rows = [{"step": 1, "b": 2}, {"b": 2, "step": 1}]
    store_audit(tmp_path, AUDIT | {"curves": rows}, digest="1")
    assert unchanged_audit(*at, "1") is None
    store_audit(tmp_path, AUDIT | {"facts": {"b": 2.0, "a": 1.0}}, digest="1")
    stored = unchanged_audit(*at, "1")
    assert stored is not None
    assert list(stored.audit["facts"]) == ["b", "a"]
