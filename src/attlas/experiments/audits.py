"""Audits stored beside the records, and the model that is audited by default.

With an audit stands the sha256 of all that it follows from, as with a verdict: one of which nothing
has changed since then is shown and not computed again.
"""

import datetime
import hashlib
import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attlas._files.plain_file import Damaged, printable, read_plain_file, stems
from attlas.core.arrays import ArrayInput
from attlas.core.errors import UserError
from attlas.experiments.pair import largest_text, read_pair, write_pair
from attlas.experiments.schema import first_violation
from attlas.experiments.trained_models import trained_models
from attlas.experiments.unchanged import machine_digest, package_digest

FOLDER = "audits"
_KIND = "stored audit"


def audited_model(root: Path, named: str | None) -> Path:
    """Path of the model to audit.

    Args:
        named: the user's choice; None for the first model that a run left.

    Raises:
        UserError: if there is no such model.
    """
    if named is not None:
        if not Path(named).exists():
            raise UserError(f"{named} does not exist: name a folder or file of a model")
        return Path(named)
    models = trained_models(root)
    if not models:
        raise UserError(
            f"{root} holds no trained model: name one, or run `attlas run concentration` first"
        )
    return models[0]


def audit_digest(
    model: str, name: str, level: str | None, sequences: Sequence[ArrayInput] | None, options: Any
) -> str:
    """The sha256 of all that an audit of a model follows from, on this machine as it is now.

    Args:
        model: the digest of the model's files, see `attlas.experiments.layer_cache.files_digest`.
        name: the model's name on the page.
        level: the requested level, None for the one that the sequences decide.
        sequences: vectors of token numbers.
        options: an `attlas.audit.audit.AuditOptions`.

    Examples:
        >>> len(audit_digest("", "gpt2", "data", [[1, 2], [3]], None))
        64
    """
    rows = [np.asarray(row) for row in sequences or ()]
    named = [[str(row.dtype), row.shape, hashlib.sha256(row.tobytes()).hexdigest()] for row in rows]
    inputs = [model, name, level, None if sequences is None else named, repr(options)]
    text = json.dumps([*inputs, package_digest(), machine_digest()])
    return hashlib.sha256(text.encode()).hexdigest()


class StoredAudit(NamedTuple):
    """An audit as it was stored, and when that was."""

    audit: dict[str, Any]
    finished: datetime.datetime


def unchanged_audit(root: Path, name: str, level: str, digest: str) -> StoredAudit | None:
    """The stored audit of a model at a level, if it follows from the same as one of today would.

    Args:
        digest: the digest of today, see `audit_digest`.

    Returns:
        None where none is stored, where it is damaged, or where something has changed.
    """
    file = _place(root, name, level)
    try:
        document = _read_document(file)
    except (Damaged, UserError):
        return None  # it is named when the new one takes its place
    inputs = (document or {}).get("inputs")
    if document is None or not isinstance(inputs, dict) or inputs.get("sha256") != digest:
        return None
    audit = _ordered(document["audit"], inputs["keys"])
    return StoredAudit(audit, datetime.datetime.fromisoformat(inputs["finished"]))


def store_audit(
    root: Path,
    audit: dict[str, Any],
    note: Callable[[str], None] = warnings.warn,
    digest: str = "",
) -> Path:
    """Store an audit as `<root>/audits/<name>.json`; it replaces the one of its model and level.

    Args:
        note: receives one line if the audit that it replaces is damaged.
        digest: the sha256 from `audit_digest`; empty where it is not known.

    Raises:
        UserError: if it cannot be written.
    """
    document: dict[str, Any] = {"kind": _KIND, "audit": audit}
    # A page lists facts and columns in the order of their keys, which a pair does not keep.
    keys = [list(each) for each in dict.fromkeys(_keys(audit))] if digest else []
    if digest and json.dumps(_ordered(audit, keys)) == json.dumps(audit):
        finished = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        document["inputs"] = {"sha256": digest, "finished": finished, "keys": keys}
    file = _place(root, str(audit["model"]["name"]), audit["level"])
    return write_pair(file.parent, file.stem, document, None, note, read_old=partial(_read, file))


def _keys(value: Any) -> Iterator[tuple[str, ...]]:
    """The keys of each mapping in a document, in its order."""
    if isinstance(value, Mapping):
        yield tuple(value)
    if isinstance(value, Mapping | list | tuple):
        for entry in value.values() if isinstance(value, Mapping) else value:
            yield from _keys(entry)


def _ordered(value: Any, orders: Sequence[Sequence[str]]) -> Any:
    """A document whose mappings have their keys in the one of the orders that has the same keys."""
    order_of = {frozenset(order): order for order in orders}

    def ordered(part: Any) -> Any:
        if isinstance(part, Mapping):
            return {key: ordered(part[key]) for key in order_of.get(frozenset(part), part)}
        return [ordered(entry) for entry in part] if isinstance(part, list | tuple) else part

    return ordered(value)


def _place(root: Path, name: str, level: str) -> Path:
    """Where the audit of a model at a level is stored."""
    digest = hashlib.sha256(f"{name} {level}".encode()).hexdigest()[:8]
    short = re.sub(r"[^A-Za-z0-9]+", "-", Path(name).name).strip("-")[:40] or "model"
    return root / FOLDER / f"{short}-{digest}.json"


def stored_audits(root: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """All audits of a results folder sorted by name, and one line per file that is not an audit."""
    audits: list[dict[str, Any]] = []
    wrong: list[str] = []
    try:
        names = stems(root / FOLDER, ".json")
    except Damaged as error:
        return [], [str(error)]
    for name in names:
        file = root / FOLDER / f"{name}.json"
        try:
            audit = _read(file)
        except (Damaged, UserError) as error:
            wrong.append(f"audit {file.name} is left out: {printable(str(error))}")
        else:
            audits += [audit] if audit else []  # it may have left since its folder was listed
    return audits, wrong


def _read(file: Path) -> dict[str, Any] | None:
    earlier = _of_earlier_version(file)
    if earlier is not None:
        return earlier
    document = _read_document(file)
    return None if document is None else document["audit"]


def _read_document(file: Path) -> dict[str, Any] | None:
    """The document with an audit of its schema in it, None without a file."""
    pair = read_pair(file.parent, file.stem, _KIND)
    if pair is None:
        return None
    audit = pair[0].get("audit")
    broken = first_violation(audit, "audit")
    if audit is None or broken:
        raise Damaged(f"{file} breaks its schema: {broken}")
    return pair[0]


def _of_earlier_version(file: Path) -> dict[str, Any] | None:
    """The audit of a file without kind and seal, as earlier versions wrote it; None for others.

    `read_pair` would call it damaged, and wait for the folder's lock to look again.
    """
    try:
        text = read_plain_file(file, largest_text(_KIND))
        if text is None or f'"kind": "{_KIND}"'.encode() in text:
            return None
        audit = json.loads(text, parse_constant=_refuse)
    except (Damaged, ValueError, RecursionError):
        return None
    return None if first_violation(audit, "audit") else audit


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
