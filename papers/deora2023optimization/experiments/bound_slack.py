r"""How loose are the bounds on gradient, Hessian and negative curvature along training?

One run of gradient descent from the one-step initialisation on the tokenized mixture (DM1). At
each record the measured quantity is divided by its bound of Corollary 1, in three versions, and
the step sizes and numbers of heads that theory certifies are compared with those that work.
"""

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.display.numbers import large_number
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import Column, Lines, taken
from attlas.experiments.settings import Settings
from attlas.optim.one_step import one_step_initialisation
from attlas.training.trajectory import log_spaced
from deora2023optimization.experiments.instances import MIXTURE, draw_mixture
from deora2023optimization.library.bounds.deora2023_corollary_2 import VERSIONS
from deora2023optimization.library.training.bounded_descent import descend_beside_bounds

TITLES = {
    "slope": "size of the gradient",
    "smoothness": "largest curvature",
    "convexity": "most negative curvature",
}
HEADS = {
    "slope": "|grad L| over beta_1 L",
    "smoothness": "|hess L| over beta_2",
    "convexity": "-lambda_min over beta_3 L / sqrt(H)",
}
THEOREMS = ("Theorem 1", "Corollary 2")
GRID = Grid(
    each={"heads": [4, 16, 64, 256]},
    fixed=MIXTURE | {"n": 24, "first": 64, "rate": 0.1, "records": 32, "steps": 2000},
    smoke={"heads": [2], "records": 4, "d": 5, "n": 8, "steps": 20},
    quick={"heads": [4], "records": 12},
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train once, measure every record, and evaluate the bounds there."""
    keys = [jax.random.fold_in(key, k) for k in range(4)]
    mixture, (first, train) = draw_mixture(s, keys, (s.first, s.n))
    start = one_step_initialisation(keys[3], first.X, first.y, s.heads)
    R, schedule = max(1.0, float(mixture.R)), log_spaced(s.steps, s.records)
    measured = descend_beside_bounds(start, train.X, train.y, R, s.rate, schedule)
    axes = {3: ("quantity", "version", "step"), 2: ("theorem", "version"), 1: ("step",)}
    return xr.Dataset(
        {name: (axes[np.ndim(values)], values) for name, values in measured._asdict().items()},
        {"quantity": list(TITLES), "version": list(VERSIONS), "step": list(schedule),
         "theorem": list(THEOREMS)},
    )  # fmt: skip


HEADS_RATIO = taken("heads_demanded", over_name="heads")
"""Heads that theory demands over those used."""


def step_ratio(data: xr.Dataset) -> xr.DataArray:
    """The largest step that every record's curvature allows over the certified one."""
    return 2 / data["largest"].max("step") / data["step_certified"]


def positive(data: xr.Dataset) -> xr.DataArray:
    """The ratios that a logarithm has."""
    return data["ratio"].where(data["ratio"] > 0)


def spans_of(data: xr.Dataset) -> dict[str, str]:
    """The range of the factors over the three bounds, each where it is tightest."""
    best = 1 / positive(data).max(["heads", "step"])
    return {
        version: f"{large_number(float(over.min()))} to {large_number(float(over.max()))}"
        for version in ("printed", "sharp")
        for over in [best.sel(version=version)]
    }


def looseness(data: xr.Dataset) -> dict[str, object]:
    """How loose each bound is where it is tightest, and what is certified."""
    best, fewest = 1 / positive(data).max(["heads", "step"]), data.isel(heads=0)
    sentences = [
        f"{TITLES[q]} {large_number(float(best.sel(quantity=q, version='printed')))} (printed) "
        f"and {large_number(float(best.sel(quantity=q, version='sharp')))} (sharp)"
        for q in data.quantity.values
    ]
    ratios = {
        f"{name}_{v}": large_number(float(ratio(fewest).sel(theorem="Theorem 1", version=v)))
        for name, ratio in (("step", step_ratio), ("heads", HEADS_RATIO))
        for v in ("printed", "sharp")
    }
    last = fewest.isel(step=-1)
    gain = float(last.self_bounded / last.ratio.sel(quantity="smoothness", version="sharp"))
    return {
        **ratios,
        **spans_of(data),
        "tightest": "; ".join(sentences),
        "heads": int(fewest.heads),
        "tightest_heads": _range(tightest_heads(data)),
        "smaller": gain > 1,
        "gain": large_number(gain),
        "exceeded": bool((data["ratio"] > 1).any()),
        "unconverged": int((data.converged == 0).sum()),
    }


def tightest_heads(data: xr.Dataset) -> xr.DataArray:
    """The number of heads at which each printed and each sharp bound is tightest."""
    at = positive(data).max("step").sel(version=["printed", "sharp"])
    return at.fillna(-np.inf).idxmax("heads")


def _range(values: xr.DataArray) -> str:
    """One whole number, or the least and the largest."""
    return " to ".join(f"{end}" for end in sorted({int(values.min()), int(values.max())}))


def after(data: xr.Dataset) -> xr.DataArray:
    """Steps from 1 on."""
    return data.step + 1


def self_bounded(data: xr.Dataset) -> xr.DataArray:
    """The ratio for the Hessian to a bound that falls with the loss, in the middle panel."""
    return data["self_bounded"].expand_dims(quantity=["smoothness"])


def span(values: xr.DataArray) -> str:
    """From the least to the largest value."""
    return f"{panels.least(values):.1e} to {panels.largest(values):.1e}"


def by_theorem(head: str, value: panels.Formula) -> list[Column]:
    """One column for each theorem."""
    return [Column(f"{head}, {name}", value, at={"theorem": name}) for name in THEOREMS]


def answer(data: xr.Dataset) -> dict[str, object]:
    """The range of the factors over the three bounds, each where it is tightest."""
    spans = spans_of(data)
    stable = float(step_ratio(data.isel(heads=0)).sel(theorem="Theorem 1", version="sharp"))
    facts = {"step_sharp": large_number(stable), "step_far": stable > 1000}
    return looseness(data) | spans | facts | {name: data.attrs[name] for name in ("n", "steps")}


RATIOS = (
    Lines(
        lambda data: positive(data).max("heads"), after, colour="version",
        names={name: f"{name.replace('_', '-')} constants" for name in VERSIONS},
        panel="quantity", title=TITLES, xscale="log", yscale="log", xlabel="training step + 1",
        ylabel="measured value / its upper bound",
    )
    + Lines(
        lambda data: self_bounded(data).max("heads"), after, style=".-",
        label="sharp constants, with the loss as a factor",
    )
    + panels.Reference(y=1, label="bound attained")
)  # fmt: skip
EXPERIMENT = Experiment(
    title="How loose the bounds are along training",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["heads", "version"],
        [
            *(Column(head, "ratio", span, at={"quantity": q}) for q, head in HEADS.items()),
            *by_theorem("stable step / certified", step_ratio),
            *by_theorem("heads certified / used", HEADS_RATIO),
            Column("eigenvalues left out", lambda data: data["converged"] == 0, panels.total),
            Column("largest residual", "residual", panels.largest),
        ],
    ),
    figures=[panels.Plot("Measured over bound along training", RATIOS, looseness)],
)
