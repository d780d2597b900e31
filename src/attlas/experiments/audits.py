"""Audits stored beside the records, and the model that is audited by default."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from attlas._files.file_changes import make_folder
from attlas._files.plain_file import Damaged, printable, read_plain_file, stems
from attlas.core.errors import UserError
from attlas.experiments.schema import first_violation
from attlas.experiments.text_file import write_text_file
from attlas.experiments.trained_models import trained_models

FOLDER = "audits"

_LARGEST = 2**27


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


def store_audit(root: Path, audit: dict[str, Any]) -> Path:
    """Store an audit as `<root>/audits/<name>.json`; it replaces the one of its model and level."""
    name = str(audit["model"]["name"])
    digest = hashlib.sha256(f"{name} {audit['level']}".encode()).hexdigest()[:8]
    short = re.sub(r"[^A-Za-z0-9]+", "-", Path(name).name).strip("-")[:40] or "model"
    file = root / FOLDER / f"{short}-{digest}.json"
    make_folder(file.parent)
    return write_text_file(file, json.dumps(audit, allow_nan=False), "--results")


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
            audits.append(_read(file))
        except (Damaged, ValueError, RecursionError) as error:
            wrong.append(f"audit {file.name} is left out: {printable(str(error))}")
    return audits, wrong


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _read(file: Path) -> dict[str, Any]:
    content = read_plain_file(file, _LARGEST)
    audit = json.loads(content or b"", parse_constant=_refuse)
    said = first_violation(audit, "audit")
    if said:
        raise Damaged(f"{file} breaks its schema: {said}")
    return audit
