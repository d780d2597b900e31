r"""Does attention to few inputs reduce the number of linear regions, as Theorem 4 says?

The printed bound of Theorem 4 beside what the construction and the exact maximum are; exact
counts of random networks behind a mask; and softmax attention, fixed and trained, which leaves no
input out: how many of the regions do inputs in a cube meet?
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.join import join
from attlas.experiments.panels import (
    PALETTE,
    Column,
    Lines,
    Panel,
    Points,
    Reference,
    mean_only,
    taken,
)
from attlas.experiments.panels.palette import DASHES
from attlas.experiments.settings import Settings
from liu2021analyzing.library.bounds.liu2021_regions import (
    liu2021_central_regions_maximum,
    liu2021_regions,
)
from liu2021analyzing.library.training.sparse_regions import (
    masked_regions,
    softmax_regions,
    trained_regions,
)

BOUNDS: dict[str, Callable[[int, int], int]] = {
    "printed bound": partial(liu2021_regions, constants="printed"),
    "its construction": partial(liu2021_regions, constants="corrected"),
    "maximum with biases": liu2021_regions,
    "maximum without biases": liu2021_central_regions_maximum,
}
IN_LEGEND = {
    "printed bound": "lower bound as printed",
    "its construction": "network of its proof",
}
MAXIMA = ["maximum with biases", "maximum without biases"]
STATES = {"start": (0, 1.0), "trained": (1, 1.0), "trained, logits x 5": (1, 5.0)}
"""Which record of the training, and the factor of its logits."""
COUNTED = {
    "random networks, exact": ("o", PALETTE[2]),
    "without biases, exact": ("s", PALETTE[3]),
    "found by 200 random lines": ("x", panels.INK),
}
GRID = Grid(
    fixed={
        "wide": [200, 100], "p": 5, "temperatures": [0.1, 0.25, 0.5, 1.0, 2.0, 8.0],
        "samples": 64, "frozen": 4, "rate": 0.3, "block": 1,
    },
    smoke={"members": 1, "n1": 6, "networks": 1, "points": 1000, "steps": 20},
    quick={"members": 2, "n1": 10, "networks": 3, "points": 20_000, "steps": 1500},
    paper={"members": 10, "n1": 12, "networks": 10, "points": 200_000, "steps": 10_000},
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """The bounds at the figure's width, and everything of one seed."""
    rng, (n1, p) = np.random.default_rng(s.seed), s.wide
    logs = [[math.log10(of(n1, k)) for k in range(1, p + 1)] for of in BOUNDS.values()]
    bounds = [[float(of(s.n1, k)) for k in range(1, s.p + 1)] for of in BOUNDS.values()]
    masks = masked_regions(rng, s.n1, s.p, s.networks, s.seed)
    fixed = softmax_regions(rng, s.n1, s.p, s.networks, s.temperatures, s.points)
    training, states = {"step_size": s.rate, "steps": s.steps}, list(STATES.values())
    learned = trained_regions(rng, s.n1, s.p, s.samples, training, states, s.frozen, s.points)
    by_temperature = ("network", "temperature")
    return xr.Dataset(
        {
            "log10_bounds": (("bound", "wide_s0"), logs), "bounds": (("bound", "s0"), bounds),
            "regions": (("network", "s0", "counted"), masks),
            **{f"softmax_{name}": (by_temperature, x) for name, x in fixed._asdict().items()},
            "trained_s0": ("state", learned.s0), "support": ("state", learned.support),
            "frozen_regions": ("state", learned.exact), "frozen_met": ("state", learned.met),
            "accuracy": ("state", learned.accuracy), "loss": ("record", learned.loss),
        },
        {
            "bound": list(BOUNDS), "wide_s0": range(1, p + 1), "s0": range(1, s.p + 1),
            "counted": list(COUNTED), "temperature": list(s.temperatures), "state": list(STATES),
        },
    )  # fmt: skip


def values(data: xr.Dataset) -> dict[str, object]:
    """What the bounds say, and what training does."""
    s, printed = data.attrs, "printed bound"
    wide, narrow = (data[name].isel(member=0) for name in ("log10_bounds", "bounds"))
    above = wide.wide_s0.values[wide.sel(bound=printed) > wide.sel(bound=printed)[-1]]
    central = narrow.sel(bound="maximum without biases")
    wrong = narrow.s0.values[narrow.sel(bound=printed) > central]

    def ends(name: str, digits: int = 0) -> list[str]:
        return [f"{value:.{digits}f}" for value in data[name].mean("member").values[:2]]

    maxima = data.bounds.isel(member=0).sel(bound=MAXIMA)
    counts = data.regions.isel(counted=slice(2)).transpose("member", "network", "s0", "counted")
    # Inputs without weight would leave the maximum of fewer inputs.
    all_inputs = maxima.sel(bound=MAXIMA[0]).isel(s0=-1)
    support, met = (data[name].mean("member").values[:2] for name in ("support", "frozen_met"))
    return {
        "falls": bool((maxima.diff("s0") > 0).all()),
        "attained": bool((counts.values == maxima.transpose("s0", "bound").values).all()),
        "dense": bool((data.frozen_regions.isel(state=1) == all_inputs).all()),
        "concentrates": bool(support[1] < support[0]),
        "away": bool(support[1] < support[0] and met[1] < met[0]),
        "p": s["wide"][1], "units": s["wide"][0], "above": ", ".join(map(str, above)),
        "few": s["n1"], "wrong": ", ".join(map(str, wrong)), "support": ends("support", 1),
        "accuracy": ends("accuracy", 2)[1], "regions": ends("frozen_regions"),
        "points": s["points"], "met": ends("frozen_met"),
    }  # fmt: skip


def of_softmax(data: xr.Dataset) -> dict[str, object]:
    """What training does to the regions under softmax attention."""
    names = ("dense", "support", "regions", "accuracy", "points", "met", "away", "concentrates")
    return {name: value for name, value in values(data).items() if name in names}


def of_masks(data: xr.Dataset) -> dict[str, object]:
    """What the bounds say of inputs without weight."""
    names = ("falls", "p", "units", "above", "wrong", "few", "attained")
    return {name: value for name, value in values(data).items() if name in names}


def by_weights(data: xr.Dataset) -> xr.Dataset:
    """Means for masks, fixed softmax weights and trained ones, along one axis."""
    p, means = data.attrs["p"], data.drop_vars("loss").mean(["network", "member"])
    masks = {
        "s0": means.s0.values.astype(float),
        **dict(zip(("exact", "central", "met"), means.regions.values.T, strict=True)),
        **dict(zip(BOUNDS, means.bounds.values, strict=True)),
    }
    exact = means.bounds.sel(bound="maximum with biases").values[-1:].repeat(len(means.temperature))
    fixed = {"s0": means.softmax_s0.values, "exact": exact, "met": means.softmax_met.values}
    learned = {
        "s0": means.trained_s0.values, "exact": means.frozen_regions.values,
        "met": means.frozen_met.values, "accuracy": means.accuracy.values,
    }  # fmt: skip
    labels = (
        [f"mask of {k} of {p} inputs" for k in means.s0.values],
        [f"softmax, temperature {t:g}" for t in means.temperature.values],
        [f"self-attention, {state}" for state in means.state.values],
    )
    return join([
        xr.Dataset({name: ("weights", values) for name, values in part.items()}, {"weights": names})
        for part, names in zip((masks, fixed, learned), labels, strict=True)
    ])  # fmt: skip


def bounds(name: panels.Quantity, x: str, **axes: Any) -> Panel:
    """All bounds against s0."""
    first, *others = (
        Lines(
            name,
            x,
            at={"bound": bound},
            style=style,
            ink=ink,
            label=IN_LEGEND.get(bound, bound),
            band=mean_only,
        )
        for bound, style, ink in zip(BOUNDS, DASHES, PALETTE, strict=False)
    )
    return reduce(Panel.__add__, others, replace(first, xlabel="inputs with weight, $s_0$", **axes))


EXPERIMENT = Experiment(
    title="Linear regions and sparse attention",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=values,
    table=panels.Table(
        ["weights"],
        [
            Column("s0", "s0"), Column("regions, exact", "exact"), Column("met", "met"),
            Column("without biases, exact", "central"), *(Column(name, name) for name in BOUNDS),
            Column("accuracy", "accuracy"),
        ],
        of=by_weights,
    ),
    figures=[
        panels.Plot(
            "Linear regions against sparsity",
            [
                bounds(
                    lambda data: 10.0 ** data.log10_bounds, "wide_s0",
                    title="at the sizes of Figure 3",
                    ylabel="linear regions", yscale="log",
                )
                + Reference(y=lambda data: 10.0 ** taken("log10_bounds", {"bound": "printed bound"},
                                                         {"wide_s0": -1})(data),
                            label="lower bound as printed, all inputs"),
                reduce(
                    Panel.__add__,
                    (Points("regions", "s0", at={"counted": name}, marker=marker, ink=ink,
                            hollow=True, label=name, band=mean_only)
                     for name, (marker, ink) in COUNTED.items()),
                    bounds("bounds", "s0", title="small networks, counted exactly", yscale="log",
                           ylabel="linear regions"),
                ),
            ],
            of_masks, height=1.3,
        ),
        panels.Plot(
            "Linear regions under softmax attention",
                Lines(
                    "softmax_met", "softmax_support", band=None, ink="#999999", style=".-",
                    label="fixed softmax weights, by temperature", width=2,
                    xlabel="effective number of attended inputs", yscale="log",
                    ylabel="regions met by uniform points",
                )
                + Points("frozen_met", "support", colour="state", marker="D",
                         names={state: f"self-attention, {state}".replace(" x ", " times ")
                                for state in STATES})
                + Reference(y=taken("bounds", {"bound": "maximum with biases"}, {"s0": -1}),
                            style="-", ink=PALETTE[2], label="exact number with biases"),
            of_softmax, height=1.2,
        ),
    ],
)  # fmt: skip
