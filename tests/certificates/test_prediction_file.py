"""Files of predictions as tools write them, and what cannot be read."""

import io
import json
import zipfile

import numpy as np
import pytest

from attlas.certificates.columns import Columns
from attlas.certificates.prediction_file import read_predictions
from attlas.core.errors import UserError

HARNESS = [
    {"doc_id": k, "doc": {"question": "?"}, "target": "A", "resps": [["A"]], "filter": "none",
     "acc": float(k > 0), "acc_norm": 1.0}
    for k in range(3)
]  # fmt: skip
"""As lm-evaluation-harness logs samples."""
INSPECT = {
    "version": 2,
    "status": "success",
    "eval": {"task": "mine"},
    "samples": [
        {"id": name, "epoch": epoch, "scores": {"match": {"value": value}}}
        for name, epoch, value in (("a", 1, "C"), ("b", 1, "I"), ("a", 2, "I"), ("b", 2, "I"))
    ],
}
"""As Inspect logs two epochs."""


def _lines(rows):
    return "\n".join(json.dumps(row) for row in rows).encode()


def _archive(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _eval(method=zipfile.ZIP_DEFLATED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for place, sample in enumerate(INSPECT["samples"]):
            archive.writestr(f"samples/{place}.json", json.dumps(sample))
    return stream.getvalue()


def _read(folder, name, content, **columns):
    path = folder / name
    path.write_bytes(content)
    return read_predictions(path, Columns(**columns))


@pytest.mark.parametrize(
    ("name", "content", "columns", "losses"),
    [
        ("a.csv", b"label,prediction\n1,1\n0,1.0\n", {}, [0, 1]),
        ("a.csv", "\ufefflabel,pred\r\ncat,\"a\nb\"\r\ncat,cat\r\n".encode(), {}, [1, 0]),
        ("a.tsv", b"gold\toutput\nx\tx\n", {}, [0]),
        ("a.csv", b"y,p\n1,0.7\n0,0.6\n", {"label": "y", "score": "p"}, [0, 1]),
        ("a.csv", b"y,p\n1,0.7\n0,0.6\n", {"label": "y", "score": "p", "threshold": 0.65}, [0, 0]),
        ("a.csv", b"brier\n0.25\n0.5\n", {"loss": "brier"}, [0.25, 0.5]),
        ("a.csv", b"ok\ntrue\nFalse\n", {"correct": "ok"}, [0, 1]),
        ("a.npz", _archive(label=np.arange(3), prediction=np.array([0, 1, 1])), {}, [0, 0, 1]),
        (
            "a.npz",
            _archive(label=np.array(["bom", "má"]), prediction=np.array([">", "má"], ">U2")),
            {},
            [1, 0],
        ),
        ("a.npz", _archive(loss=np.array([0.5, 1.0]), other=np.ones((2, 2))), {}, [0.5, 1]),
        ("a.jsonl", _lines(HARNESS), {"correct": "acc"}, [1, 0, 0]),
        ("a.jsonl", _lines([{k: row[k] for k in ("doc_id", "acc")} for row in HARNESS]), {},
         [1, 0, 0]),
        ("a.json", json.dumps({"label": ["a"], "prediction": ["b"]}).encode(), {}, [1]),
        ("a.json", json.dumps(INSPECT).encode(), {}, [0.5, 1]),
        ("a.eval", _eval(), {}, [0.5, 1]),
    ],
)  # fmt: skip
def test_losses_of_files(tmp_path, name, content, columns, losses):
    assert _read(tmp_path, name, content, **columns).losses.tolist() == losses


def test_examples_and_groups_are_read(tmp_path):
    content = b"id,lang,loss\n7,en,0\n8,pt,1\n"
    found = _read(tmp_path, "a.csv", content, group="lang")
    assert (found.examples, found.groups) == (("7", "8"), ("en", "pt"))
    assert _read(tmp_path, "a.jsonl", _lines(HARNESS), correct="acc").examples == ("0", "1", "2")


@pytest.mark.parametrize(
    ("name", "content", "columns", "said"),
    [
        ("a.txt", b"", {}, "give a file with one of .csv"),
        ("a.csv", b"", {}, "line of different names of columns"),
        ("a.csv", b"loss\n", {}, "no examples"),
        ("a.csv", b"loss,x\n1\n", {}, "1 values in line 2, of 2"),
        ("a.csv", b"loss\n\xff\n", {}, "not a text in UTF-8"),
        ("a.csv", b'loss\n"a', {}, "no table in line"),
        ("a.csv", b"loss\n1.5\n", {}, "'1.5', which is no number in"),
        ("a.csv", b"loss\nnan\n", {}, "'nan', which is no number"),
        ("a.csv", b"x\n1\n", {}, "no column of predictions"),
        ("a.csv", b"x\n1\n", {"loss": "y"}, "no column 'y': it has x"),
        ("a.csv", b"acc,exact_match\n1,0\n", {}, "several grades .acc, exact_match."),
        ("a.csv", b"p\n1\n", {"score": "p"}, "no column of labels"),
        ("a.csv", b"p,label\n1,2\n", {"score": "p"}, "'2', which is no number"),
        ("a.jsonl", b"{}\n[", {}, "line 2 is not JSON"),
        ("a.jsonl", b"1\n", {}, "no list of mappings"),
        ("a.jsonl", _lines([{"doc_id": 1, "filter": k, "acc": 1} for k in "ab"]), {}, "filters"),
        ("a.json", b"[1]", {}, "no list of mappings"),
        ("a.json", b'{"eval": 1, "status": 2}', {}, "has no samples"),
        ("a.json", b'{"eval": 1, "status": 2, "samples": [1]}', {}, "sample without scores"),
        ("a.eval", b"PK\x03\x04", {}, "cannot be unpacked"),
        ("a.eval", _eval(zipfile.ZIP_LZMA), {}, "packs 'samples/0.json' by a method"),
        ("a.npz", b"PK", {}, "holds no arrays"),
        ("a.npz", _archive(label=np.array(["a"], dtype=object)), {}, "holds no array 'label'"),
        (
            "a.npz",
            _archive(label=np.array([0xD800], "<u4").view("<U1")),
            {},
            "texts with numbers that are no characters",
        ),
        (
            "a.npz",
            _archive(label=np.array([0x110000], "<u4").view("<U1")),
            {},
            "texts with numbers that are no characters",
        ),
        ("a.parquet", b"PAR1", {}, "Parquet"),
    ],
)
def test_bad_files_are_one_line(tmp_path, name, content, columns, said):
    with pytest.raises(UserError, match=said) as refusal:
        _read(tmp_path, name, content, **columns)
    assert "\n" not in str(refusal.value)


def test_an_absent_file_is_one_line(tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        read_predictions(tmp_path / "a.csv")
