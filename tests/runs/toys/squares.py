"""Cells that square a number; by their settings they sleep, fail, or kill their process once."""

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from attlas.core.errors import UserError
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment
from attlas.runs.record import Record

if TYPE_CHECKING:
    import pandas

COUNTS = {Scale.SMOKE: 3, Scale.QUICK: 6, Scale.PAPER: 12}


def cells(scale: Scale) -> tuple[Cell, ...]:
    return tuple(
        Cell({"x": x, **_behaviour(x)}, dtype="float32" if x == 1 else "float64")
        for x in range(COUNTS[scale])
    )


def _behaviour(x: int) -> dict[str, float | str]:
    """Settings from the environment of the test: SQUARES_SLEEP, SQUARES_DIE, SQUARES_FAIL."""
    found: dict[str, float | str] = {}
    if "SQUARES_SLEEP" in os.environ:
        found["sleep"] = float(os.environ["SQUARES_SLEEP"])
    for name in ("die", "fail", "refuse"):
        for told in os.environ.get(f"SQUARES_{name.upper()}", "").split(","):
            value, _, which = told.rpartition("@")
            if which == str(x):
                found[name] = value
    return found


def run(cell: Cell) -> dict[str, np.ndarray]:
    settings = cell.settings
    time.sleep(settings.get("sleep", 0))
    if "die" in settings:
        # Deaths are counted in a file: so many processes are killed, then the cell succeeds.
        folder, _, deaths = settings["die"].rpartition(":")
        marks = Path(folder)
        marks.mkdir(exist_ok=True)
        if len(list(marks.iterdir())) < int(deaths):
            (marks / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    if "fail" in settings:
        raise ZeroDivisionError(settings["fail"])
    if "refuse" in settings:
        raise UserError(settings["refuse"])
    x = jnp.asarray(settings["x"], jnp.result_type(float))
    return {
        "square": np.asarray(x**2),
        "power": np.asarray(x ** jnp.arange(4, dtype=x.dtype)),
        "exponent": np.arange(4),
        "process": np.asarray(os.getpid()),
    }


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    from attlas.runs.load import to_pandas

    return to_pandas(records)


EXPERIMENT = Experiment(
    name="squares",
    paper="toys",
    title="Squares",
    question="Is a square the number times itself?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=lambda records: (),
    dims={"power": ("exponent",), "exponent": ("exponent",)},
)
