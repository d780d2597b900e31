r"""A folder of checkpoints: how the quantities of the heads move along training."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from attlas.audit.audit import AuditOptions, audit
from attlas.audit.level import Level
from attlas.audit.model_audit import ModelAudit
from attlas.audit.quantities import QUANTITIES
from attlas.core.arrays import ArrayInput
from attlas.core.errors import UserError
from attlas.transformers.load_model import load_model

_STEP = re.compile(r"(\d+)$")


def checkpoints_of(folder: Path) -> tuple[tuple[int, Path], ...]:
    """The checkpoints of a folder: subfolders with config.json whose names end in a number.

    Returns:
        Step and path, in order of the steps; none where the folder is a model itself.

    Raises:
        UserError: if two subfolders end in one number.

    Examples:
        >>> checkpoints_of(Path("/never/made"))
        ()
    """
    if not folder.is_dir() or (folder / "config.json").is_file():
        return ()
    checkpoints: dict[int, Path] = {}
    for subfolder in sorted(folder.iterdir()):
        number = _STEP.search(subfolder.name)
        if number is None or not (subfolder / "config.json").is_file():
            continue
        step = int(number.group(1))
        if step in checkpoints:
            raise UserError(
                f"{checkpoints[step].name} and {subfolder.name} are both of step {step}: name one"
            )
        checkpoints[step] = subfolder
    return tuple(sorted(checkpoints.items()))


def audit_checkpoints(
    checkpoints: Sequence[tuple[int, Path]],
    sequences: Sequence[ArrayInput] | None = None,
    *,
    level: Level | None = None,
    options: AuditOptions | None = None,
    progress: Callable[[str, int, int], None] = lambda part, done, all_: None,
) -> ModelAudit:
    """Audit every checkpoint; the last one in full, with the curves that lead to it.

    Args:
        checkpoints: step and path of each, at least one.
        level: level of the last checkpoint; the others are audited at level data at most.
        progress: called with the part, how much of it is done, and of how much.
    """
    rows = []
    below = "data" if level == "deep" else level
    for place, (step, path) in enumerate(checkpoints):
        last = place == len(checkpoints) - 1
        name = f"{path.resolve().parent.name}/{path.name}"
        report = audit(
            load_model(path, name=name),
            sequences,
            level=level if last else below,
            options=options,
            progress=progress if last else lambda part, done, all_: None,
        )
        rows.append(curve_row(step, report))
        progress("checkpoints", place + 1, len(checkpoints))
    return replace(report, curves=tuple(rows))


def curve_row(step: int, report: ModelAudit) -> Mapping[str, int | float]:
    """Median, least and largest value over the heads of a checkpoint."""
    row: dict[str, int | float] = {"step": step}
    for name, quantity in QUANTITIES.items():
        if quantity.follow and name in report.heads:
            values = report.heads[name].values
            row[f"{name}_median"] = float(np.nanmedian(values))
            row[f"{name}_least"] = float(np.nanmin(values))
            row[f"{name}_largest"] = float(np.nanmax(values))
    return row
