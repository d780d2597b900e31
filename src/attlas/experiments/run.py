"""Run an experiment from Python, and load its results."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from attlas.core.errors import UserError
from attlas.experiments.cell import Scale
from attlas.experiments.execute import execute
from attlas.experiments.experiment import Experiment
from attlas.experiments.find import one_named
from attlas.experiments.load import load
from attlas.experiments.progress import Progress
from attlas.experiments.store import Store


def run(
    experiment: str | Experiment,
    *,
    scale: Scale | str = Scale.QUICK,
    settings: Mapping[str, Any] | None = None,
    results: Path | str | None = None,
    fresh: bool = False,
    workers: int = 2,
    progress: Progress | None = None,
) -> xr.Dataset:
    """Compute the cells of an experiment that have no record yet, and load all of them.

    As with `attlas run`, worker processes compute and a stopped run resumes. Workers import the
    calling program, so a script must call under `if __name__ == "__main__":`.

    Args:
        scale: "smoke", "quick" or "paper".
        settings: other values of some settings, as `attlas run --set` takes them.
        results: results folder; the default one when None.
        fresh: recompute cells that have a record.
        workers: processes on this machine.
        progress: called at each event; silent when None.

    Raises:
        UserError: if the experiment, the scale or a setting is unknown, the name stands for
            several experiments, or a cell failed; the other cells are then on disk.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     data = run("heads", scale="smoke", results=folder, workers=1)
        >>> data.sizes["rate"], data["corollary_gap"].dims[-1]
        (2, 'K')
    """
    named = experiment if isinstance(experiment, Experiment) else one_named(experiment)
    changed = named.changed(settings or {})
    summary = execute(
        [changed], scale, fresh=fresh, store=Store(results), progress=progress, workers=workers
    )
    if summary.failures:
        first, *others = summary.failures
        more = f", and {len(others)} more cells" if others else ""
        raise UserError(
            f"{changed.name}: cell {first.label} failed ({first.message}){more}: change the "
            "settings, or see the traceback with attlas --debug run"
        )
    return load(changed, scale=scale, results=results)
