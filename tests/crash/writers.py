"""Everything that attlas writes, each as a program that may be killed: what it writes and reads."""

import datetime
import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pooch
from crash.outside import OUTSIDE, copied
from crash.refused import REPLACED
from crash.writer import DAMAGED, Notes, Writer, one, seen, with_value
from small_documents import AUDIT, ENVIRONMENT

from attlas.claims.verdict import ChallengeReport, CheckReport, Outcome, Verdict
from attlas.experiments import checkpoint_files, index, verdicts, witness
from attlas.experiments.audits import store_audit, stored_audits
from attlas.experiments.cell import Cell
from attlas.experiments.checkpoint_files import CheckpointFiles, remove_checkpoints
from attlas.experiments.layer_cache import LayerCache
from attlas.experiments.pair import read_pair
from attlas.experiments.record import Layout, Record, record_key
from attlas.experiments.report_document import report_document
from attlas.experiments.store import WITNESSES, Store
from attlas.experiments.text_file import write_text_file
from attlas.experiments.trained_models import trained_models, write_models
from attlas.site.folder import write_pages
from attlas.transformers import checkpoint_folder

TIME = "2026-11-28T00:00:00+00:00"
CLAIM = "mine/triangle"


def freeze_clocks() -> None:
    """Let every run write the same bytes: time and machine are constants."""
    clock = SimpleNamespace(now=lambda zone: datetime.datetime.fromisoformat(TIME))
    vars(verdicts)["datetime"] = SimpleNamespace(datetime=clock, UTC=datetime.UTC)
    vars(checkpoint_files)["time"] = SimpleNamespace(monotonic=lambda: 0.0)
    vars(witness)["environment"] = lambda: ENVIRONMENT
    vars(index)["WORTH"] = 1
    vars(pooch)["retrieve"] = copied


def _arrays(arrays: Any) -> dict[str, Any]:
    return {name: np.asarray(array).tolist() for name, array in sorted(arrays.items())}


CELL = Cell({"x": 1})
KEY = record_key("toy", 1, CELL)


def record(root: Path, value: int) -> Notes:
    metadata = {**ENVIRONMENT, "revision": 1, "seconds": 0.0, "finished": TIME}
    arrays = {"y": np.full(9, value)}
    store = Store(root)
    store.prepare("toy")
    store.write(Record("toy", CELL, arrays, metadata, KEY, Layout({"y": ("k",)})))
    return store.notes


def read_record(root: Path) -> Any:
    read = seen(lambda: Store(root).read("toy", KEY))
    return read and (read if read == DAMAGED else _arrays(read.arrays))


def _report(value: int, challenge: int = 0) -> CheckReport:
    held = Verdict(Outcome.SUPPORTED, "all hold", slack=float(value), witness={"x": np.ones(value)})
    search = Verdict(Outcome.SUPPORTED, "not broken", witness={"x": np.ones(challenge)})
    found = ChallengeReport(0.5, False, 1, challenge, search) if challenge else None
    return CheckReport(CLAIM, held, (), Outcome.SUPPORTED, found)


def verdict(root: Path, value: int, challenge: int = 0) -> Notes:
    store = Store(root)
    store.prepare(verdicts.FOLDER)
    verdicts.write_report(store, _report(value, challenge), measured_in=ENVIRONMENT)
    return store.notes


def read_verdict(root: Path) -> Any:
    store = Store(root)
    reports = verdicts.read_reports(store)
    shown = [(report_document(r), _arrays(r.verdict.witness or {})) for r, _ in reports]
    return DAMAGED if store.notes else json.loads(json.dumps(shown))


def challenge(root: Path, value: int) -> Notes:
    return verdict(root, 1, challenge=value)


def instance(root: Path, value: int) -> Notes:
    store = Store(root)
    store.prepare(WITNESSES)
    witness.write_witness(store, CLAIM, {"x": np.full(9, value)}, {"ratio": value})
    return store.notes


def read_instance(root: Path) -> Any:
    store = Store(root)
    stored = witness.stored_witnesses(store, [CLAIM])
    shown = {name: [_arrays(w.arrays), dict(w.facts)] for name, w in stored.items()}
    return DAMAGED if store.notes else shown


def no_instance(root: Path, value: int) -> Notes:
    store = Store(root)
    witness.forget_witness(store, CLAIM)
    return store.notes


def audit(root: Path, value: int) -> Notes:
    notes: Notes = []
    store_audit(root, AUDIT | {"facts": {"loss": value}}, notes.append)
    return notes


def _audit_of_earlier_version(root: Path) -> None:
    """An audit without kind and seal."""
    audit(root, 1)
    (path,) = (root / "audits").iterdir()
    path.write_text(json.dumps(AUDIT | {"facts": {"loss": 1}}))


def read_audit(root: Path) -> Any:
    audits, wrong = stored_audits(root)
    return DAMAGED if wrong else audits


def _cache(root: Path, notes: Notes) -> LayerCache:
    (root.parent / "config.json").write_text("{}")
    return LayerCache(root, root.parent / "config.json", 8, notes.append)


def layer(root: Path, value: int) -> Notes:
    notes: Notes = []
    cache = _cache(root, notes)
    cache.write(3, {"norm": np.full(4, value)})
    return notes


def read_layer(root: Path) -> Any:
    pair = seen(lambda: read_pair(_cache(root, []).folder, "00003", "layer"))
    return pair and (pair if pair == DAMAGED else _arrays(pair[1]))


def no_layers(root: Path, value: int) -> None:
    _cache(root, []).forget()


def _checkpoint_folder(root: Path) -> Path:
    return checkpoint_files.checkpoint_folder(root, "toy", KEY)


def checkpoint(root: Path, value: int) -> Notes:
    files = CheckpointFiles(_checkpoint_folder(root), {"cell": 1})
    files.write(0, {"W": np.full(5, value)})
    return files.notes


def read_checkpoint(root: Path) -> Any:
    folder = _checkpoint_folder(root)
    pair = seen(lambda: read_pair(folder, "000000", "checkpoint"))
    return pair and (pair if pair == DAMAGED else _arrays(pair[1]))


def no_checkpoints(root: Path, value: int) -> None:
    remove_checkpoints(_checkpoint_folder(root))


def model(root: Path, value: int) -> Notes:
    notes: Notes = []
    config = {"model_type": "attlas_encoder", "width": value}
    tensors = {"readout": np.full(7, value, np.float32)}
    write_models(root, "text", KEY, CELL, {"a": (config, tensors)}, notes.append)
    return notes


def read_model(root: Path) -> Any:
    return seen(lambda: [_opened(folder) for folder in trained_models(root)])


def _opened(folder: Path) -> list[Any]:
    found = checkpoint_folder.read_checkpoint(folder)
    return [found.config, _arrays({name: found.tensors[name] for name in found.tensors})]


def indexed(root: Path, value: int) -> Notes:
    """The index of two records, of which one is replaced."""
    store = Store(root)
    store.records("toy")
    return store.notes


def read_index(root: Path) -> Any:
    notes: Notes = []
    passed = index.Index(root / "toy", "record", notes.append)._passed
    return DAMAGED if notes else passed


def text(root: Path, value: int) -> None:
    write_text_file(root / "out.txt", f"{value}\n" * 99, "--out")


def read_text(root: Path) -> Any:
    path = root / "out.txt"
    return path.read_text() if path.exists() else None


PAGES = {1: ("", "a.html", "b.html"), 2: ("", "b.html", "c.html"), 3: ("", "d.html")}


def pages(root: Path, value: int) -> None:
    written = [(name, f"{name} {value}" * 99) for name in PAGES[value]]
    write_pages(root / "atlas.html", root / "atlas", written)


def read_pages(root: Path) -> Any:
    """The front page: it is written last, so that the pages that it links to are there."""
    front = root / "atlas.html"
    if not front.exists():
        return None
    content = front.read_text()
    value = int(content[1 : content.index(" ", 1)] if " " in content[1:] else content[1:])
    there = {path.name for path in (root / "atlas").glob("*.html")}
    return content if {*PAGES[value]} - {""} <= there else DAMAGED


def _of_earlier_version(write: Callable[[Path, int], Any]) -> Callable[[Path], Any]:
    def start(root: Path) -> None:
        write(root, 1)
        for path in root.rglob("*@*.npz"):
            path.rename(path.with_name(f"{path.name.partition('@')[0]}.npz"))

    return start


def _damaged(write: Callable[[Path, int], Any], pattern: str) -> Callable[[Path], Any]:
    def start(root: Path) -> None:
        write(root, 1)
        for path in root.rglob(pattern):
            path.write_bytes(path.read_bytes()[:-5])

    return start


def _pair(name: str, write: Callable, read: Callable) -> Writer:
    starts = {
        "an old pair": with_value(write),
        "nothing": lambda root: None,
        "a pair of an earlier version": _of_earlier_version(write),
        "damaged arrays": _damaged(write, "*.npz"),
        "a damaged document": _damaged(write, "[!c]*.json"),
    }
    return Writer(name, write, read, starts)


def _indexed_records(root: Path) -> None:
    record(root, 1)
    Store(root).records("toy")
    record(root, 2)


def _removal(name: str, write: Callable, remove: Callable, read: Callable) -> Writer:
    return Writer(name, remove, read, {"an old one": with_value(write)}, is_quiet=True)


WRITERS = (
    _pair("record", record, read_record),
    _pair("verdict", verdict, read_verdict),
    _pair("challenge", challenge, read_verdict),
    Writer(
        "verdict after a challenge",
        verdict,
        read_verdict,
        {"a challenge": lambda root: verdict(root, 1, challenge=4)},
    ),
    _pair("witness", instance, read_instance),
    _removal("removed witness", instance, no_instance, read_instance),
    Writer(
        "audit",
        audit,
        read_audit,
        {
            "an old one": with_value(audit),
            "nothing": lambda root: None,
            "an audit of an earlier version": _audit_of_earlier_version,
            "a damaged audit": _damaged(audit, "*.json"),
        },
    ),
    _pair("kept layer", layer, read_layer),
    _removal("removed layers", layer, no_layers, read_layer),
    _pair("checkpoint", checkpoint, read_checkpoint),
    _removal("removed checkpoints", checkpoint, no_checkpoints, read_checkpoint),
    Writer(
        "trained model",
        model,
        read_model,
        {
            "an old one": with_value(model),
            "nothing": lambda root: None,
            "damaged tensors": _damaged(model, "*.safetensors"),
            "a damaged document": _damaged(model, "*.json"),
        },
    ),
    Writer(
        "index",
        indexed,
        read_index,
        {"an old index": _indexed_records, "no index": with_value(record)},
        is_quiet=True,
    ),
    one("text file", text, read_text),
    one("pages", pages, read_pages, is_single=True),
    *OUTSIDE,
    *REPLACED,
)


UNSEALED = (
    *("removed witness", "removed layers", "removed checkpoints", "text file", "pages"),
    *(writer.name for writer in (*OUTSIDE, *REPLACED)),
)
"""Removals, files for people, and those of `crash.refused`."""
SEALED = tuple(writer for writer in WRITERS if writer.name not in UNSEALED)


def _in_place(root: Path, value: int) -> None:
    (root / "out.txt").write_text(f"{value}\n" * 99)


def _removing_first(root: Path, value: int) -> None:
    (root / "out.txt").unlink(missing_ok=True)
    text(root, value)


def _without_a_lock(root: Path, value: int) -> None:
    draft = root / "out.txt.draft"
    draft.write_text(f"{value}\n" * 99)
    draft.replace(root / "out.txt")


def _hanging(root: Path, value: int) -> None:
    try:
        (root / "out.txt").write_text("1")
    except OSError:
        time.sleep(600)


NAMES = tuple(writer.name for writer in WRITERS)
FAULTY = (
    one("control: in place", _in_place, read_text),
    one("control: the old one is removed first", _removing_first, read_text),
    one("control: one draft and no lock", _without_a_lock, read_text),
    one("control: hangs where a call fails", _hanging, read_text),
)
"""What a rehearsal must find: each was a way of writing in an earlier version, or is usual."""
BY_NAME = {writer.name: writer for writer in (*WRITERS, *FAULTY)}
