"""Files that a changed bit makes unreadable until their user acts: nothing writes them anew."""

import json
from pathlib import Path
from typing import Any

from crash.outside import PARTS, WORDS
from crash.writer import DAMAGED, Writer, one, seen, with_value

from attlas._files.appended_lines import append_line
from attlas._files.sealed_json import sealed
from attlas.certificates.ledger import Ledger, read_ledger, write_ledger
from attlas.claims.proof import INTERVALS, Proof
from attlas.data.sources import read_verified
from attlas.experiments.proofs import read_proofs, write_proof
from attlas.experiments.store import Store
from attlas.projects.latex.statements import PrintedStatement
from attlas.projects.latex.stubs import STATEMENTS, read_statements, statements_text
from attlas.site.monitors import QUANTITIES, SCHEMA, monitor_drawings, parse_monitor

CLAIM = "mine/triangle"
WHERE = {"signs": {}, "shapes": {"x": [2]}, "fixed": {}, "values": [], "links": {}}


def _ledger(root: Path, value: int) -> None:
    looks = (("a" * 16,), *[("b" * 16, "c" * 16)] * value)
    write_ledger(root / "looks.json", Ledger(0.05, 100, looks))


def _looks(root: Path) -> Any:
    return seen(lambda: [list(look) for look in read_ledger(root / "looks.json", 0.05, 100).looks])


def _proof(root: Path, value: int) -> None:
    certificate = {"fails": True, "margin": float(value), "witness": "b" * 64}
    proof = Proof(INTERVALS, "to fail at its witness", WHERE, "rounding", certificate, "a" * 64)
    write_proof(Store(root), CLAIM, proof)


def _proofs(root: Path) -> Any:
    store = Store(root)
    proofs = read_proofs(store, [CLAIM])
    return (
        DAMAGED
        if store.notes
        else {name: [proof.document() for proof in stored] for name, stored in proofs.items()}
    )


def _monitor(root: Path, value: int) -> None:
    numbers = {name: [[0.5, None]] for name in QUANTITIES}
    for step in (0, 10):
        line = {"schema": SCHEMA, "step": step, "T": 7, "layers": ["a"], "sink_share": 0.25}
        append_line(root / "a.monitor.jsonl", json.dumps(sealed(line | numbers)))


def _monitored(root: Path) -> Any:
    store = Store(root)
    monitor_drawings(store)
    run, _ = parse_monitor((root / "a.monitor.jsonl").read_bytes())
    return DAMAGED if store.notes or run is None else [run.steps.tolist(), str(run.values)]


def _statements(root: Path, value: int) -> None:
    statement = PrintedStatement("Lemma", "2", "a", "", "$1 < 2$", "1", (), (), "main.tex", 3)
    (root / STATEMENTS).write_text(statements_text("On tokens", [statement], "main.tex"))


def _stated(root: Path) -> Any:
    return seen(lambda: str(read_statements(root)))


def _data(root: Path, value: int) -> None:
    (root / WORDS.name).mkdir()
    for name, content in PARTS.items():
        (root / WORDS.name / name).write_bytes(content)


def _verified(root: Path) -> Any:
    return seen(lambda: str(read_verified(WORDS, root)))


REPLACED = (one("ledger of looks", _ledger, _looks), one("proof", _proof, _proofs))
FLIPPED = tuple(
    Writer(name, write, read, {"whole": with_value(write)})
    for name, write, read in (
        ("ledger of looks", _ledger, _looks),
        ("proof", _proof, _proofs),
        ("lines of a monitor", _monitor, _monitored),
        ("statements.json", _statements, _stated),
        ("data set", _data, _verified),
    )
)
