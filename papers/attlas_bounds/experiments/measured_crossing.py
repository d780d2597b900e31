r"""From which drawn sample size on is each bound on sparse majority non-vacuous?

One attention layer is trained in norm balls that were fixed beforehand, and every bound on its
error is evaluated on the sequences that were drawn, up to ten million of them: the crossing of the
norm-based bounds is seen, and not extrapolated.
"""

import equinox as eqx
import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.data.sparse_majority import MajorityDesign, make_sparse_majority
from attlas.data.unit_bit_embedding import one_hot_bits
from attlas.display.bound_names import bound_in_words, bound_label
from attlas.display.numbers import large_number
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import Column, Lines, Reference, mean_only
from attlas.experiments.settings import Settings
from attlas.training.sparse_majority.certified_error import FAMILIES
from attlas.training.sparse_majority.projected import ProjectedSettings
from attlas_bounds.library.sparse_majority.measured_crossing import (
    MeasuredCrossing,
    measured_crossing,
)

MARGINS = np.geomspace(0.1, 0.95, 12)
HELD_OUT = "held-out, exact binomial"
SHOWN = {name: bound_in_words(name) for name in FAMILIES}
"""Names of the bounds in figures and texts."""
GUESSING = 0.5
COUNTING = tuple(name for name in FAMILIES if name.startswith("parameters"))
GRID = Grid(
    each={"T": [4]},
    fixed={
        "s": 1, "samples": [100, 1000, 10_000, 100_000, 1_000_000, 10_000_000],
        "radii": [2.0, 3.0, 4.0, 6.0, 8.0], "steps": 600, "fresh": 100_000, "delta": 0.05,
    },
    smoke={"samples": [50, 100], "radii": [2.0, 4.0], "steps": 5, "fresh": 50},
    paper={
        "T": [4, 8, 16], "steps": 4000,
        "samples": [100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000,
                    10_000_000],
    },
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Draw the largest sample once, and bound the error on its beginnings."""
    start, draw = jax.random.split(key)
    data = make_sparse_majority(draw, s.T, MajorityDesign(max(s.samples), s.fresh, s.s, s.T + 2))
    data = eqx.tree_at(lambda sequences: sequences.embedding, data, one_hot_bits(s.T))
    bounds = measured_crossing(
        start, data, s.samples, np.array(s.radii), MARGINS, ProjectedSettings(steps=s.steps),
        s.delta,
    )  # fmt: skip
    axes = {"certified": ("m", "family"), "radius": ("m", "family")}
    return xr.Dataset(
        {
            name: (axes.get(name, ("m",)), getattr(bounds, name))
            for name in MeasuredCrossing._fields
        },
        {"m": list(s.samples), "family": list(FAMILIES)},
    )


def first_size(data: xr.Dataset, below: float = 1.0) -> xr.DataArray:
    """The least drawn m from which a bound stays below a threshold; NaN where none does."""
    under = (data.certified < below).sortby("m", ascending=False)
    below_from_here = under.cumprod("m").astype(bool)
    return below_from_here.m.where(below_from_here).min("m")


def power_of_ten(m: float) -> str:
    """A sample size in words."""
    return large_number(m) if np.isfinite(m) else "none of them"


def sizes(data: xr.Dataset) -> dict[str, object]:
    """Where every family crosses, at the fewest bits."""
    fewest = data.isel(T=0)
    crossing, half = first_size(fewest), first_size(fewest, GUESSING)
    return {
        **answer(data),
        "each": [
            {
                "name": SHOWN.get(name, name),
                "first": power_of_ten(float(crossing.sel(family=name))),
                "half": power_of_ten(float(half.sel(family=name))),
                "last": f"{float(fewest.certified.sel(family=name).isel(m=-1)):.2g}",
            }
            for name in FAMILIES
        ],
        "largest": power_of_ten(float(fewest.m[-1])),
        "held_out": f"{100 * float(fewest.held_out.isel(m=-1)):.2g}",
    }


def answer(data: xr.Dataset) -> dict[str, object]:
    """The sizes from which the two kinds of bounds are below the error of guessing."""
    fewest = data.isel(T=0)
    crossing = first_size(fewest, GUESSING)
    norms = crossing.drop_sel(family=list(COUNTING))
    counted, fixed = (power_of_ten(float(crossing.sel(family=name))) for name in COUNTING)
    last = fewest.certified.isel(m=-1).drop_sel(family=list(COUNTING))
    crosses = bool(norms.notnull().any())
    least = norms if crosses else last
    return {
        "T": int(fewest["T"]), "crosses": crosses,
        "name": SHOWN.get(str(least.idxmin("family").values), ""),
        "norm": power_of_ten(float(norms.min())), "counted": counted, "fixed": fixed,
        "last": f"{float(last.min()):.2g}", "largest": power_of_ten(float(fewest.m[-1])),
    }  # fmt: skip


EXPERIMENT = Experiment(
    title="Sparse majority: the crossing of the bounds, measured",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["T", "m"],
        [
            *(Column(name, "certified", at={"family": name}) for name in FAMILIES),
            Column("held-out error", "held_out"),
            Column(HELD_OUT, "held_out_bound"),
        ],
    ),
    figures=[
        panels.Plot(
            "Bounds on the error at drawn sample sizes",
            Lines("certified", "m", colour="family", band=mean_only, panel="T",
                  names={family: bound_label(family) for family in FAMILIES},
                  title="sequences of {T} bits", xscale="log", yscale="log",
                  xlabel="training sequences $m$",
                  ylabel="bound on the error (lower is better)", width=1.2)
            + Lines("held_out_bound", "m", band=mean_only, style="--", label=HELD_OUT)
            + Reference(y=1.0, label="largest possible error")
            + Reference(y=GUESSING, style="-.", label="error of guessing"),
            sizes,
            height=1.4,
        ),
    ],
)  # fmt: skip
