"""Cells that square a number; by their settings they sleep, fail, or kill their process once."""

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr

from attlas.core.errors import UserError
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.settings import Settings


def numbers(count: int) -> Callable[[], dict[str, Any]]:
    """The first numbers, with settings from the environment of the test.

    SQUARES_SLEEP is for all cells; SQUARES_DIE, SQUARES_FAIL and SQUARES_REFUSE are lists of
    VALUE@NUMBER, each for the cell of that number.
    """

    def laid_out() -> dict[str, Any]:
        found: dict[str, Any] = {"x": list(range(count))}
        if "SQUARES_SLEEP" in os.environ:
            found["sleep"] = float(os.environ["SQUARES_SLEEP"])
        for name in ("die", "fail", "refuse"):
            told = os.environ.get(f"SQUARES_{name.upper()}")
            if told:
                values = dict(reversed(one.rpartition("@")[::2]) for one in told.split(","))
                found[name] = partial(_value_at, values)
        return found

    return laid_out


def _value_at(values: dict[str, str], s: Settings) -> str:
    return values.get(str(s.x), "")


GRID = Grid(
    each={"x": [0]},
    fixed={"dtype": lambda s: "float32" if s.x == 1 else "float64"},
    smoke=numbers(3),
    quick=numbers(6),
    paper=numbers(12),
)


def run(s: Settings, key: jax.Array) -> xr.Dataset:
    time.sleep(s.get("sleep", 0))
    if s.get("die"):
        # Deaths are counted in a file: so many processes are killed, then the cell succeeds.
        folder, _, deaths = s.die.rpartition(":")
        marks = Path(folder)
        marks.mkdir(exist_ok=True)
        if len(list(marks.iterdir())) < int(deaths):
            (marks / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    if s.get("fail"):
        raise ZeroDivisionError(s.fail)
    if s.get("refuse"):
        raise UserError(s.refuse)
    x = jnp.asarray(s.x, jnp.result_type(float))
    return xr.Dataset(
        {
            "square": np.asarray(x**2),
            "power": ("exponent", np.asarray(x ** jnp.arange(4, dtype=x.dtype))),
        },
        {"exponent": np.arange(4)},
    )


def table(data: xr.Dataset) -> pd.DataFrame:
    return data[["square"]].to_dataframe().reset_index()


EXPERIMENT = Experiment(
    title="Squares",
    question="Is a square the number times itself?",
    grid=GRID,
    run=run,
    table=table,
    figures=[],
    paper="toys",
)
