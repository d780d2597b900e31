"""Does a cluster keep up with cells that only sleep?"""

import time

import jax
import numpy as np
import xarray as xr

from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.settings import Settings

GRID = Grid(
    each={"cell": [0]},
    fixed={"seconds": 1.0},
    smoke={"cell": list(range(200))},
    quick={"cell": list(range(2000))},
    paper={"cell": list(range(20_000))},
)


def run(s: Settings, key: jax.Array) -> xr.Dataset:
    """Sleep."""
    time.sleep(s.seconds)
    return xr.Dataset({"slept": np.float64(s.seconds)})


EXPERIMENT = Experiment(
    title="Sleeping cells",
    question=__doc__,
    grid=GRID,
    run=run,
    table=panels.Table(["cell"], [panels.Column("seconds", "slept")]),
    figures=[],
)
