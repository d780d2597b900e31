r"""Do random attention weights satisfy NTK separability, and with which margin?

The paper's first open question, on the tokenized mixture: the NTK margin of Gaussian weights
against their size, beside those of zero and of one randomised step; and $g_0$, the ratio of
outputs to margin that the paper's bounds square.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import (
    Column,
    Lines,
    Reference,
    mean_and_interval,
)
from attlas.experiments.settings import Settings
from attlas.training.risk_gradient import model_outputs
from deora2023optimization.experiments.instances import draw_phases, member_keys
from deora2023optimization.library.bounds.deora2023_initialisation import deora2023_target_scale
from deora2023optimization.library.measures.ntk_margin import ntk_margins
from deora2023optimization.library.optim.attention_starts import attention_starts

GRID = Grid(
    each={"zeta": [0.3], "H": [1, 4, 16]},
    fixed={"T": 10, "d": 6, "M": 2, "S": 2.0},
    smoke={"H": [1, 2], "n": 12, "first": 100, "members": 2, "points": 3},
    quick={"n": 24, "first": 1000, "members": 5, "points": 7},
    paper={
        "zeta": [0.1, 0.3, 0.5], "H": [1, 4, 16, 64, 256], "n": 200, "first": 10_000,
        "members": 20, "points": 15,
    },
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """NTK margin and largest output of zero, one step, and Gaussian weights of many sizes."""
    deviations = np.geomspace(0.01, 3.0, s.points).tolist()
    models, X, y = [], [], []
    for member in range(s.seed, s.seed + s.members):
        data_key, sign_key = member_keys(member)
        _, train, first = draw_phases(s, data_key)
        starts = attention_starts(sign_key, first.X, first.y, s.H, deviations, [0, member])
        models += starts
        X += [train.X] * len(starts)
        y += [train.y] * len(starts)
    output = [jnp.max(jnp.abs(OUTPUTS(*pair))) for pair in zip(models, X, strict=True)]
    margin = ntk_margins(models, np.stack(X), np.stack(y))
    # Without separation the margin is 0, and the target infinitely far.
    target = partial(deora2023_target_scale, epsilon=1 / s.n)
    scale = jax.vmap(target)(jnp.maximum(jnp.stack(output), 1), jnp.asarray(margin))
    along, shape = ("member", "start"), (s.members, -1)
    return xr.Dataset(
        {
            "margin": (along, margin.reshape(shape)),
            "output": (along, np.reshape(output, shape)),
            "target": (along, np.reshape(scale, shape)),
        },
        {
            "start": ["zero", "one step", *(f"Gaussian {size:.2g}" for size in deviations)],
            "deviation": ("start", [np.nan, np.nan, *deviations]),
        },
    )


OUTPUTS = jax.jit(model_outputs)


def gaussian(data: xr.Dataset) -> xr.Dataset:
    """What belongs to Gaussian weights, by their standard deviation."""
    return data.isel(start=slice(2, None)).swap_dims(start="deviation")


def separable(margins: xr.DataArray) -> str:
    """In how many draws labels were separated."""
    return f"{int((margins > 0).sum())} of {int(margins.count())}"


def _best_ratio(data: xr.Dataset) -> dict[str, object]:
    """The least ratio g_0 of Gaussian weights, and that of one step in the same setting."""
    ratio = gaussian(data).target.median("member")
    best = ratio.isel({name: int(place) for name, place in ratio.argmin(ratio.dims).items()})
    cell = {"zeta": best.zeta, "H": best.H, "start": "one step"}
    return {
        "ratio": f"{float(best):.1f}",
        "deviation": f"{float(best.deviation):.2g}",
        "heads": int(best.H),
        "one_step": f"{float(data.target.sel(cell).median()):.1f}",
    }


def random_weights(data: xr.Dataset) -> dict[str, object]:
    """How often random weights separate, and the best of their sizes beside one step and zero."""
    sentences = []
    cells = data.stack(cell=["zeta", "H"]).dropna("cell", how="all", subset=["target"])
    fixed, random = (part.target.median("member") for part in (cells, gaussian(cells)))
    for at, target in zip(fixed.transpose("cell", ...), random.transpose("cell", ...), strict=True):
        best = target.isel(deviation=int(target.argmin("deviation")))
        where = f", $\\zeta = {float(at.zeta):g}$" if data.zeta.size > 1 else ""
        sentences.append(
            f"{float(best):.1f} at $\\sigma = {float(best.deviation):.2g}$ for $H = {int(at.H)}$"
            f"{where} (one step {float(at.sel(start='one step')):.1f}, "
            f"zero {float(at.sel(start='zero')):.1f})"
        )
    ends = gaussian(data).isel(zeta=0, H=-1, deviation=[0, -1]).mean("member")
    margin, output = (float(ends[name][1] / ends[name][0]) for name in ("margin", "output"))
    return {
        "n": data.attrs["n"],
        **_best_ratio(data),
        "separated": separable(gaussian(data).margin),
        "margin": f"{margin:.1f}",
        "output": f"{output:.0f}",
        "most": int(data.H[-1]),
        "least": "; ".join(sentences),
    }


def median_of(name: str, start: str) -> panels.Formula:
    """A quantity of another start, in the middle of the draws and of the numbers of heads."""
    return lambda data: data[name].sel(start=start, drop=True).median(["H", "member"])


def answer(data: xr.Dataset) -> dict[str, object]:
    """How often random weights separate, with which margins, and their best ratio."""
    margins = gaussian(data).margin
    means = margins.mean("member")
    return random_weights(data) | {
        "all": int((margins > 0).sum()) == int(margins.count()),
        "never": not bool((margins > 0).any()),
        "low": f"{float(means.min()):.2g}",
        "high": f"{float(means.max()):.2g}",
    }


DEVIATION = "deviation $\\sigma$ of weights"
MARGINS = (
    Lines(
        lambda data: gaussian(data).margin, "deviation", colour="H",
        names="Gaussian weights, heads: {H}",
        band=panels.quartiles, row="zeta", title="{zeta:.0%} relevant tokens", xscale="log",
        xlabel=DEVIATION,
        ylabel="largest margin of the linearised model (higher is better)", width=1.3,
    )
    # A head's sign leaves its part of the kernel alone: one level for every H.
    + Reference(y=median_of("margin", "one step"), style="--",
                label="after one large training step")
    + Reference(y=median_of("margin", "zero"), label="zero weights")
)  # fmt: skip
TARGETS = (
    Lines(
        lambda data: gaussian(data).target, "deviation", colour="H",
        names="Gaussian weights, heads: {H}",
        band=panels.quartiles, row="zeta", title="{zeta:.0%} relevant tokens", xscale="log",
        yscale="log",
        xlabel=DEVIATION, ylabel="distance to a fit $g_0$ (lower is better)", width=1.3,
    )
    + Reference(y=median_of("target", "one step"), style="--",
                label="after one large training step")
    + Reference(y=median_of("target", "zero"), label="zero weights")
)  # fmt: skip
EXPERIMENT = Experiment(
    title="NTK separability of random weights",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["zeta", "H", "start"],
        [
            Column("separable", "margin", separable),
            Column("NTK margin", "margin", mean_and_interval),
            Column("largest output", "output", mean_and_interval),
            Column("g_0(1/n), median", "target", panels.median),
        ],
    ),
    figures=[
        panels.Plot(
            "Separability of random weights by the tangent kernel",
            [MARGINS, TARGETS],
            random_weights,
        )
    ],
)
