"""Audits stored beside the records, and the model that is audited by default."""

import hashlib
import json
import re
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from attlas._files.plain_file import Damaged, printable, read_plain_file, stems
from attlas.core.errors import UserError
from attlas.experiments.pair import largest_text, read_pair, write_pair
from attlas.experiments.schema import first_violation
from attlas.experiments.trained_models import trained_models

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


def store_audit(
    root: Path, audit: dict[str, Any], note: Callable[[str], None] = warnings.warn
) -> Path:
    """Store an audit as `<root>/audits/<name>.json`; it replaces the one of its model and level.

    Args:
        note: receives one line if the audit that it replaces is damaged.

    Raises:
        UserError: if it cannot be written.
    """
    name = str(audit["model"]["name"])
    digest = hashlib.sha256(f"{name} {audit['level']}".encode()).hexdigest()[:8]
    short = re.sub(r"[^A-Za-z0-9]+", "-", Path(name).name).strip("-")[:40] or "model"
    document = {"kind": _KIND, "audit": audit}
    folder, stem = root / FOLDER, f"{short}-{digest}"
    old = partial(_read, folder / f"{stem}.json")
    return write_pair(folder, stem, document, None, note, read_old=old)


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
    pair = read_pair(file.parent, file.stem, _KIND)
    if pair is None:
        return None
    audit = pair[0].get("audit")
    broken = first_violation(audit, "audit")
    if audit is None or broken:
        raise Damaged(f"{file} breaks its schema: {broken}")
    return audit


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
