r"""How far are networks from kernel regression on test points, over time and over the width?

Theorem F.2: networks of several widths are trained beside regression with their own kernel at the
start, step by step, and beside the kernel of infinite width. The gap on test points, its power of
m, and the bound as recalled and as sharpened, with the changes of the kernel that were measured.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.display.numbers import large_number, plain_number
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.join import join
from attlas.experiments.panels import (
    Lines,
    Points,
    geometric_extremes,
    geometric_mean,
    geometric_mean_only,
)
from attlas.experiments.settings import Settings
from attlas.models.networks.softmax_network import Activation
from gu2024exploring.experiments.instances import NAMES, renamed
from gu2024exploring.library.training.regression_gap import RegressionGap, train_beside_regression
from gu2024exploring.library.training.sign_regression import (
    draw_network,
    draw_sign_regression,
    unit_inputs,
)

TINY = np.finfo(float).tiny
"""Before any ReLU changes its sign the gap may be zero exactly."""
GRID = Grid(
    each={"activation": [activation.value for activation in Activation]},
    fixed={"d": lambda s: s.n, "fraction": 0.1, "sigma": 1.0},
    smoke={
        "n": 4, "tests": 3, "widths": [16, 64], "steps": 20, "records": 4, "members": 2,
    },
    quick={
        "n": 12, "tests": 12, "widths": [64, 512, 4096], "steps": 400, "records": 9, "members": 3,
    },
    paper={
        "n": 64, "tests": 64, "widths": [4**k for k in range(3, 8)], "steps": 2000,
        "records": 25, "members": 4, "block": 2,
    },
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train every width from every seed, and compare with both regressions."""
    activation, seeds = Activation(s.activation), range(s.seed, s.seed + s.members)
    problems = [draw_sign_regression(s.n, s.d, [k], s.sigma, activation) for k in seeds]
    step = np.unique(np.geomspace(1, s.steps + 1, s.records).round().astype(int)) - 1
    Z, widths = unit_inputs(s.tests, s.d, [s.tests, s.d]), []
    for m in s.widths:
        starts = [draw_network(s.d, m, [k, 1], s.sigma, activation) for k in seeds]
        gaps = train_beside_regression(problems, starts, s.fraction, s.steps, step, Z, s.sigma)
        widths.append(labelled(gaps).expand_dims(m=[m]))
    results = join(widths).assign_coords(step=step)
    results["certified"] = results.eps_H <= results.smallest / 2
    results["bound"] = xr.where(results.certified, results.in_time, results.sharp)
    return results


def labelled(gaps: RegressionGap) -> xr.Dataset:
    """The axes by name; what is not recorded over time lacks the steps."""
    axes = {3: ("member", "step", "test"), 2: ("member", "test"), 1: ("member",)}
    return xr.Dataset({n: (axes[np.ndim(v)], v) for n, v in gaps._asdict().items()})


def worst(name: str) -> panels.Formula:
    """The largest over times and test points."""
    return panels.reduced(name, "max", "step", "test", floor=TINY)


def in_time(name: str) -> panels.Formula:
    """The largest over the test points, after the start."""
    return panels.reduced(name, "max", "test", at={"step": slice(1, None)}, floor=TINY)


def of_some_widths(name: str) -> panels.Formula:
    """The same for every second width, so that no line hides another."""
    return lambda data: in_time(name)(data).isel(m=slice(None, None, 2)).rename(m="width")


def slack(data: xr.Dataset) -> xr.DataArray:
    """The sharpened bound for all times over the largest gap of the same test point."""
    return data.sharp / data.gap.max("step").clip(min=TINY)


def networks(data: xr.Dataset) -> Iterator[tuple[str, xr.Dataset]]:
    """Each activation with what was trained of it."""
    for activation in data.activation.values:
        part = data.sel(activation=activation).dropna("member", how="all")
        if part.sizes["member"]:
            yield NAMES[activation], part


def over_time(data: xr.Dataset) -> dict[str, object]:
    """Growth at the end, and the bound beside the gap."""
    growth, slacks = [], []
    for name, part in networks(data):
        late = geometric_mean_only(in_time("gap")(part).isel(m=-1), ["member"]).middle.values
        growth.append(f"{name} {late[-1] / late[-2]:.2f}")
        factors = slack(part).isel(m=-1)
        slacks.append(
            f"{name} {large_number(float(factors.min()))} to {large_number(float(factors.max()))}"
        )
    return {
        "before": data.step.values[-2],
        "last": data.step.values[-1],
        "growth": ", ".join(growth),
        "slack": "; ".join(slacks),
        "exceeded": int((data.gap > data.bound).sum()),
        "gaps": int(data.gap.notnull().sum()),
        "uncertified": int((data.certified == 0).sum()),
        "runs": int(data.certified.notnull().sum()),
    }


def over_width(data: xr.Dataset) -> dict[str, object]:
    """Slopes in the width, and what remains at the largest."""
    powers = {
        name: ", ".join(
            f"{label} {panels.power_of(worst(name)(part), 'm')}" for label, part in networks(data)
        )
        for name in ("gap", "limit_gap", "sharp", "printed")
    }
    ratio = (worst("limit_gap")(data) / worst("gap")(data)).isel(m=-1)
    ratio = geometric_mean_only(ratio, ["member"]).middle
    share = zip(data.activation.values, ratio.values, strict=True)
    return {
        **powers,
        "share": ", ".join(f"{NAMES[name]} {large_number(float(times))}" for name, times in share),
        "drawing": float(ratio.min()) > 1,
    }


def answer(data: xr.Dataset) -> dict[str, object]:
    """The largest gap of the widest networks, and its slope in the width."""
    gaps, powers = [], []
    for name, part in networks(data):
        last = geometric_mean_only(worst("gap")(part).isel(m=-1), ["member"]).middle
        gaps.append(f"{plain_number(float(last), 2)} ({name})")
        powers.append(panels.power_of(worst("gap")(part), "m"))
    summary = over_time(data)
    return {
        "widest": int(data.m[-1]),
        "gaps": ", ".join(gaps),
        "powers": ", ".join(powers),
        "exceeded": summary["exceeded"],
        "gaps_counted": summary["gaps"],
        "seeds": data.sizes["member"],
        "n": data.attrs["n"],
    }


EXPERIMENT = Experiment(
    title="Network beside kernel regression",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["activation", "m"],
        [
            panels.Column("gap to own kernel", worst("gap"), geometric_mean),
            panels.Column("sharpened bound", worst("sharp"), geometric_mean),
            panels.Column("recalled bound, constant 1", worst("printed"), geometric_mean),
            panels.Column("gap to infinite width", worst("limit_gap"), geometric_mean),
            panels.Column("bound / gap, least", slack, panels.least),
            panels.Column("eps_H / lambda", lambda d: d.eps_H / d.smallest, geometric_mean),
            panels.Column("eps_test", worst("eps_test"), geometric_mean),
            panels.Column("seeds with eps_H <= lambda / 2", "certified", panels.total),
        ],
        of=renamed,
    ),
    figures=[
        panels.Plot(
            "The gap over time",
            Lines(
                of_some_widths("gap"), "step", colour="width", style="o-",
                names="distance, width {width:g}",
                band=geometric_mean_only, panel="activation", title=NAMES, xscale="log",
                yscale="log", xlabel="training step",
                ylabel="max |network − regression| over test points",
                width=1.2,
            )
            + Lines(
                of_some_widths("bound"), "step", colour="width", style="--",
                names="our bound, width {width:g}",
                band=geometric_mean_only,
            ),
            over_time,
            height=1.2,
        ),
        panels.Plot(
            "The gap against the width",
            Points(
                worst("gap"), "m", line="-", ink=panels.PALETTE[0], marker="o",
                band=geometric_extremes, label="to regression with the network's own kernel",
                panel="activation",
                title=NAMES, xscale="log2", yscale="log", xticks="m", xlabel="width $m$",
                width=1.2, ylabel="max |network − regression|, or bound on it",
            )
            + Points(
                worst("limit_gap"), "m", line=":", ink=panels.PALETTE[1], marker="s", hollow=True,
                band=geometric_extremes, label="to regression with the kernel of infinite width",
            )
            + Lines(worst("sharp"), "m", style="--", band=geometric_mean_only,
                    label="our bound")
            + Lines(worst("printed"), "m", style="-.", ink="#888888", band=geometric_mean_only,
                    label="bound of the paper, its constant set to 1"),
            over_width,
            height=1.2,
        ),
    ],
)  # fmt: skip
