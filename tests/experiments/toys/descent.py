"""One long cell: gradient descent whose steps are counted in a file, then a second training."""

import os
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
import xarray as xr

from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.settings import Settings
from attlas.training.fit import fit

GRID = Grid(
    fixed={"steps": 3000},
    smoke={"steps": 60},
    quick={"steps": 1500},
    paper={},
)


def counted(_: object) -> None:
    """One byte per step, in the file that the test names; and the time that a step takes."""
    with Path(os.environ["DESCENT_STEPS"]).open("ab") as file:
        file.write(b".")
    time.sleep(float(os.environ.get("DESCENT_SLEEP", "0")))


def risk(w: jax.Array, data: jax.Array) -> jax.Array:
    jax.debug.callback(counted, w[0])
    return jnp.mean(jnp.logaddexp(0, -data @ w))


def run(s: Settings, key: jax.Array) -> xr.Dataset:
    data = jax.random.normal(key, (8, 3)) + 1
    first = fit(risk, optax.adam(0.01), jnp.zeros(3), data, steps=s.steps)
    second = fit(risk, optax.sgd(0.1), first.last, data, steps=s.steps // 10)
    return xr.Dataset(
        {
            "first": (("record", "entry"), np.asarray(first.params)),
            "last": ("entry", np.asarray(second.last)),
        }
    )


def table(data: xr.Dataset) -> pd.DataFrame:
    return data[["last"]].to_dataframe().reset_index()


EXPERIMENT = Experiment(
    title="Descent",
    question="Does a killed descent go on?",
    grid=GRID,
    run=run,
    table=table,
    figures=[],
    paper="toys",
)
