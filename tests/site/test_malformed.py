"""Files that are sealed and malformed are named in the atlas, and the rest of it stands."""

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arrays_of import arrays_of

from attlas.experiments.packed import pack_arrays
from attlas.experiments.pair import file_pair, seal
from attlas.site.atlas import gather
from attlas.site.pages import render_single


def rewrite(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a document and seal it again, as only a person would."""
    document = json.loads(path.read_bytes())
    change(document)
    document["seal"] = seal(document)
    path.write_text(json.dumps(document))


def repack(path: Path, content: bytes, shapes: dict[str, list[int]] | None = None) -> None:
    """Put other arrays beside a document, with a checksum that fits."""
    told: dict[str, Any] = {"sha256": hashlib.sha256(content).hexdigest()}
    arrays_of(path).unlink()
    file_pair(path.parent, path.stem).data(told["sha256"]).write_bytes(content)
    if shapes is not None:
        told["shapes"] = shapes
    rewrite(path, lambda d: d["arrays"].update(told))


def archive(entry: bytes, method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        file.writestr("x.npy", entry)
    return buffer.getvalue()


def header(shape: str, dtype: str = "<f8") -> bytes:
    """An array of NumPy that promises more than it holds."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(8)


def replaced(path: Path, put: Callable[[Path], object]) -> None:
    path.unlink()
    put(path)


def deep(document: dict[str, Any]) -> None:
    for _ in range(100):
        document["metadata"] = {"within": document["metadata"]}


FILES = {
    "not JSON": lambda p: p.write_text("{"),
    "infinite number": lambda p: p.write_text('{"schema": 2, "x": 1e999}'),
    "endless number": lambda p: p.write_text('{"schema": 2, "x": 1' + "0" * 4000 + "}"),
    "half a character": lambda p: p.write_text('{"schema": 2, "x": "\\ud800"}'),
    "deep JSON": lambda p: p.write_text("[" * 100_000),
    "deep and sealed": lambda p: rewrite(p, deep),
    "kind of another file": lambda p: rewrite(p, lambda d: d.update(kind="witness")),
    "kind of a list": lambda p: rewrite(p, lambda d: d.update(kind=[1])),
    "schema as text": lambda p: rewrite(p, lambda d: d.update(schema="2")),
    "schema of a flag": lambda p: rewrite(p, lambda d: d.update(schema=True)),
    "no arrays": lambda p: rewrite(p, lambda d: d.pop("arrays")),
    "no metadata": lambda p: rewrite(p, lambda d: d.pop("metadata")),
    "versions as a list": lambda p: rewrite(p, lambda d: d["metadata"].update(versions=["1"])),
    "a folder": lambda p: replaced(p, Path.mkdir),
    "a pipe": lambda p: replaced(p, os.mkfifo),
    "a dangling link": lambda p: replaced(p, lambda q: q.symlink_to("nowhere")),
    "a link to itself": lambda p: replaced(p, lambda q: q.symlink_to(q.name)),
    "no archive": lambda p: arrays_of(p).unlink(),
    "a pipe for an archive": lambda p: replaced(arrays_of(p), os.mkfifo),
    "not a zip": lambda p: repack(p, b"PK no"),
    "a pickle": lambda p: repack(p, archive(header("(1,)", "|O"))),
    "a bomb": lambda p: repack(p, archive(header("(1,)") + bytes(10**6), zipfile.ZIP_DEFLATED)),
    "a promised terabyte": lambda p: repack(p, archive(header("(10**12,)"))),
    "a large promise": lambda p: repack(p, archive(header("(1000000000000,)"))),
    "a negative shape": lambda p: repack(p, archive(header("(-1, -1)"))),
    "no characters": lambda p: repack(p, archive(header("(2,)", "<U1")[:-8] + b"\xff" * 8)),
    "an entry of another type": lambda p: repack(p, archive(b"text")),
    "arrays of other names": lambda p: repack(p, pack_arrays({"other": np.zeros(3)})),
    "another file's name": lambda p: p.rename(p.with_name("other.json")),
}  # fmt: skip
RECORDS = {
    "no cell": lambda d: d.pop("cell"),
    "no key": lambda d: d.pop("key"),
    "no layout": lambda d: d.pop("layout"),
    "no revision": lambda d: d["metadata"].pop("revision"),
    "revision as a number": lambda d: d["metadata"].update(revision=1.0),
    "revision as text": lambda d: d["metadata"].update(revision="1"),
    "settings as a list": lambda d: d["cell"].update(settings=[1]),
    "settings of another cell": lambda d: d["cell"]["settings"].update(p="two"),
    "seed as a number": lambda d: d["cell"].update(seed=0.0),
    "seconds as text": lambda d: d["metadata"].update(seconds="0.5"),
    "an experiment of another name": lambda d: d.update(experiment="silent"),
    "axes without an array": lambda d: d["layout"]["dims"].update(y=[]),
    "a label without an array": lambda d: d["layout"].update(coordinates=["y"]),
    "axes of another array": lambda d: d["layout"]["dims"].update(x=["step"]),
}
VERDICTS = {
    "no report": lambda d: d.pop("report"),
    "no verdict": lambda d: d["report"].pop("verdict"),
    "an unknown outcome": lambda d: d["report"]["verdict"].update(outcome="MAYBE"),
    "an unknown expectation": lambda d: d["report"].update(expect="MAYBE"),
    "text for a number": lambda d: d["report"]["verdict"].update(slack="large"),
    "text for seconds": lambda d: d["report"].update(seconds="1.5"),
    "text for a count": lambda d: d["report"]["verdict"].update(tried="64"),
    "a contradiction": lambda d: d["report"]["controls"][0].update(as_expected=False),
    "a statistic that is none": lambda d: d["report"]["verdict"].update(statistics={"x": []}),
    "a claim of another name": lambda d: d["report"].update(claim="a/b"),
}  # fmt: skip


def sealed(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    return lambda path: rewrite(path, change)


CASES = [
    *(("record", name, put) for name, put in FILES.items()),
    *(("verdict", name, put) for name, put in FILES.items()),
    *(("record", name, sealed(change)) for name, change in RECORDS.items()),
    *(("verdict", name, sealed(change)) for name, change in VERDICTS.items()),
]


def place(store, kind: str, claims) -> Path:
    if kind == "record":
        return min((store.root / "lines").glob("*.json"))
    return store.root / "verdicts" / f"{claims[2].name}.json"


def malformed():
    """Every case; a report each is a second, so one in four is enough where time matters."""
    for k, (kind, name, put) in enumerate(CASES):
        marks = [pytest.mark.thorough] if k % 4 else []
        yield pytest.param(kind, name, put, marks=marks, id=f"{kind}: {name}")


@pytest.mark.parametrize(("kind", "name", "put"), list(malformed()))
def test_a_malformed_file_is_named_and_the_rest_stands(
    store, claims, errata, experiments, kind, name, put
):
    path = place(store, kind, claims)
    put(path)
    atlas = gather(store, claims, errata, experiments)
    said = " ".join(atlas.warnings)
    named = "other" if name == "another file's name" else path.stem
    assert named in said, said
    assert len(said) < 1000
    lines, _ = atlas.experiments
    wrong = next(entry for entry in atlas.claims if entry.claim is claims[2])
    # No half of what is damaged is shown, and all of the rest.
    assert lines.done == (3 if kind == "record" else 4)
    assert (wrong.report is None) == (kind == "verdict")
    assert sum(entry.report is not None for entry in atlas.claims) == 5 - (kind == "verdict")
    assert named in render_single(atlas)


def test_a_name_that_is_no_text_is_written_out(store, claims, errata, experiments):
    (store.root / "lines" / os.fsdecode(b"\xff\x1b.json")).write_text("{")
    atlas = gather(store, claims, errata, experiments)
    assert r"\udcff\x1b.json" in atlas.warnings[0]
    assert render_single(atlas).encode()


def test_something_else_in_place_of_a_folder_is_named(store, claims, errata, experiments):
    (store.root / "silent").write_text("")
    (store.root / "verdicts" / "notes").write_text("")
    said = " ".join(gather(store, claims, errata, experiments).warnings)
    assert "silent cannot be listed (Not a directory)" in said
    assert "notes cannot be listed" in said


def test_an_array_that_some_cells_lack_is_named(store, claims, errata, experiments):
    path = place(store, "record", claims)
    rewrite(path, lambda d: d["layout"]["dims"].clear())
    repack(path, pack_arrays({}), {})
    lines, _ = gather(store, claims, errata, experiments).experiments
    assert "1 of 4 cells have no array `x`" in " ".join(lines.problems)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d["report"].update(expect="VIOLATED"), "expected VIOLATED, its claim now"),
        (lambda d: d["report"]["controls"].clear(), "lacks the control 'sides exchanged'"),
        (
            lambda d: d["report"]["controls"][0].update(expect="SUPPORTED", as_expected=False),
            "other outcomes of its controls",
        ),
    ],
)
def test_a_verdict_is_judged_by_what_its_claim_expects(
    store, claims, errata, experiments, change, said
):
    path = store.root / "verdicts" / f"{claims[0].name}.json"
    rewrite(path, change)
    atlas = gather(store, claims, errata, experiments)
    assert said in " ".join(atlas.warnings)
    assert claims[0].name in " ".join(atlas.warnings)
    plain = next(entry for entry in atlas.claims if entry.claim is claims[0])
    assert plain.report is not None
    assert plain.report.expect == "SUPPORTED"
    assert not plain.unexpected
