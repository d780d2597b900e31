r"""Which margin does gradient descent reach: the linear one, the NTK's, or that of attention?

Gradient descent on the tokenized mixture, against the sparsity $\zeta$, from zero, from one
randomised step and from Gaussian weights. What it reaches is put on the three scales on which
margins of the paper live: decoders of norm 1 with free attention weights ($\gamma_{lin}$,
$\gamma_{attn}$), all parameters of norm $\sqrt 2$ (the global margin of section 7), and the model
linearised at its start (the NTK margin, $\gamma_\star$).
"""

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import Lines, Reference, extremes, mean_only, only, taken
from attlas.experiments.settings import Settings
from attlas.training.trajectory import log_spaced
from deora2023optimization.experiments.instances import draw_phases
from deora2023optimization.library.measures.reached_margins import SCALES
from deora2023optimization.library.optim.attention_starts import attention_starts
from deora2023optimization.library.training.mixture_margins import mixture_margins

STARTS = ("zero", "one step", "Gaussian")
RECORDS = 25
NEAR = 0.01
"""Relative distance from a margin up to which it counts as reached."""
GOALS = {
    "the linear margin": ("decoder", "linear"),
    "the tangent-kernel margin of the start": ("per distance", "ntk"),
    "the attention margin": ("decoder", "gamma_attn"),
    "the global margin": ("sphere", "global_lower"),
}
"""The margins that a training may reach, and the scale on which each is one."""
GRID = Grid(
    each={"zeta": [0.1, 0.3, 0.5, 0.8]},
    fixed={
        "T": 10, "d": 6, "M": 2, "S": 2.0, "rate": 0.3, "deviation": 0.1, "members": 1, "block": 1,
    },
    smoke={
        "zeta": [0.3, 0.7], "n": 12, "H": 2, "steps": 30, "first": 200, "searches": 4, "climb": 20,
    },
    quick={"n": 30, "H": 4, "steps": 1500, "first": 4000, "searches": 8, "climb": 300},
    paper={
        "zeta": [0.1, 0.3, 0.5, 0.7, 0.9], "n": 60, "H": 16, "steps": 15_000,
        "first": 10**5, "searches": 16, "climb": 1000, "members": 3,
    },
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train from every start, solve for the margins, and measure what was reached."""
    mixture, train, first = draw_phases(s, key)
    sign_key, search_key = (jax.random.fold_in(key, k) for k in (3, 5))
    starts = attention_starts(sign_key, first.X, first.y, s.H, [s.deviation], [s.seed, 4])
    schedule = log_spaced(s.steps, RECORDS)
    measured = mixture_margins(
        mixture, train, starts, s.rate, schedule, s.searches, s.climb, search_key
    )
    axes = {3: ("scale", "start", "step"), 2: ("start", "step"), 1: ("start",), 0: ()}
    return xr.Dataset(
        {name: (axes[np.ndim(values)], values) for name, values in measured._asdict().items()},
        {"scale": list(SCALES), "start": list(STARTS), "step": list(schedule)},
    )


def reached(scale: str) -> panels.Formula:
    """The margin after the last step, on one scale."""
    return taken("reached", {"scale": scale}, at={"step": -1})


def within(goal: tuple[str, str]) -> panels.Formula:
    """Where the last margin is as near to a goal as counts, by start first."""
    scale, name = goal
    return lambda data: (abs(reached(scale)(data) / data[name] - 1) <= NEAR).transpose("start", ...)


def counted(values: xr.DataArray, level: xr.DataArray) -> str:
    """In how many cells a level is exceeded, of those that are there."""
    return f"{int((values > level).sum())} of {int((values - level).count())}"


def reaching(data: xr.Dataset) -> dict[str, object]:
    """What was reached, in how many cells, from which start."""
    ntk = data.ntk.sel(start="one step")
    hits = [
        f"{name} in {', '.join(str(int(near.sum())) for near in within(goal)(data))}"
        for name, goal in GOALS.items()
    ]
    return {
        "steps": data.attrs["steps"],
        "cells": int(data.linear.count()),
        "starts": ", ".join(STARTS),
        "hits": "; ".join(hits),
        "near": f"{100 * NEAR:g}",
        **{name: answer(data)[name] for name in ("counts", "runs")},
        "above_attention": counted(ntk, data.gamma_attn),
        "above_ceiling": counted(ntk, data.global_upper),
    }


def converging(data: xr.Dataset) -> dict[str, object]:
    """Decoder margin over gamma_attn at the end and a tenth of the way."""
    share = data.reached.sel(scale="decoder") / data.gamma_attn
    steps = data.attrs["steps"]
    last, before = share.isel(step=-1), share.sel(step=steps / 10, method="nearest")
    sentences = [
        f"{float(end.min()):.2f} to {float(end.max()):.2f} from {start}, rising in "
        f"{counted(end, before.sel(start=start))}"
        for start, end in zip(STARTS, last.transpose("start", ...), strict=True)
    ]
    return {
        "steps": steps, "shares": "; ".join(sentences), "before": int(before.step),
        "low": f"{float(last.min()):.2f}", "high": f"{float(last.max()):.2f}",
    }  # fmt: skip


def progress(data: xr.Dataset) -> xr.DataArray:
    """Decoder margins from step 1 on, of the least, the middle and the largest sparsity."""
    columns = sorted({0, data.zeta.size // 2, data.zeta.size - 1})
    return data.reached.sel(scale="decoder", step=slice(1, None)).isel(zeta=columns)


def level(quantity: panels.Quantity, style: str, label: str) -> Lines:
    """A solved or printed margin against the sparsity."""
    return Lines(quantity, "zeta", band=mean_only, style=style, label=label)


def on_scale(scale: str, title: str, ylabel: str) -> panels.Points:
    """What was reached from each start against the sparsity."""
    return panels.Points(
        reached(scale), "zeta", colour="start", names="reached, start: {start}", band=extremes,
        line="-", title=title, xlabel="share of relevant tokens", ylabel=ylabel,
    )  # fmt: skip


def answer(data: xr.Dataset) -> dict[str, object]:
    """How many trainings reach each of the margins."""
    counts = {name: int(within(goal)(data).sum()) for name, goal in GOALS.items()}
    above = {
        name: int((reached(scale)(data) > (1 + NEAR) * data[goal]).sum())
        for name, (scale, goal) in GOALS.items()
    }
    most, runs = max(counts.values()), int(reached("decoder")(data).count())
    return {
        "mostly": 2 * most > runs,
        "best": " and ".join(name for name, count in counts.items() if count == most > 0),
        "counts": ", ".join(f"{name} in {count}" for name, count in counts.items()),
        "above": ", ".join(str(count) for count in above.values()),
        "near": f"{100 * NEAR:g}",
        "runs": runs,
        "steps": data.attrs["steps"],
        "n": data.attrs["n"],
        "heads": data.attrs["H"],
    }


DECODERS = (
    on_scale("decoder", "margin per norm of the decoder $u$", "least margin / norm of the decoder")
    + level("gamma_attn", "-", "attention margin: largest with all attention on relevant tokens")
    + level("linear", "--", "linear margin: largest without learnt attention")
)
SPHERE = on_scale(
    "sphere", "margin at weights of norm $\\sqrt{{2}}$", "least margin at this norm"
) + level("global_lower", "-", "global margin: largest of all weights, by a search")
TANGENT = (
    on_scale("per distance", "margin per distance from the start",
        "least margin / distance from start")
    + Lines("ntk", "zeta", colour="start", band=mean_only, style="--",
            names="tangent-kernel margin: largest of the linearised model, start: {start}")
)  # fmt: skip
PROGRESS = (
    Lines(
        progress, "step", colour="start", names="start: {start}", band=extremes, panel="zeta",
        title="{zeta:.0%} relevant tokens", xscale="log", xlabel="training step", ylim=(-0.5, None),
        ylabel="least margin / norm of the decoder",
    )
    + Reference(y=taken("gamma_attn"), style="-",
                label="attention margin: largest with all attention on relevant tokens")
    + Reference(y=taken("linear"), style="--",
                label="linear margin: largest without learnt attention")
)  # fmt: skip
SOLVED = {
    "linear: SVM": "linear", "formula": "gamma_lin", "gamma_attn": "gamma_attn",
    "global: found": "global_lower", "ceiling": "global_upper",
    "searches that agree": "searches_agree", "gamma_star, P = 0": "gamma_star",
    "P": "first_step_error", "gamma_star with P": "gamma_star_error",
}  # fmt: skip
BY_START = {
    "decoder margin from": reached("decoder"), "on the sphere from": reached("sphere"),
    "NTK margin at": "ntk",
}  # fmt: skip
EXPERIMENT = Experiment(
    title="Margins that gradient descent reaches",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        {"zeta": "zeta", "member": "seed"},
        [panels.Column(head, quantity, only) for head, quantity in SOLVED.items()]
        + [
            panels.Column(f"{head} {start}", quantity, only, at={"start": start})
            for head, quantity in BY_START.items()
            for start in STARTS
        ],
    ),
    figures=[
        panels.Plot(
            "Margins by the share of relevant tokens", [DECODERS, SPHERE, TANGENT], reaching
        ),
        panels.Plot("The way to the margin of attention", PROGRESS, converging),
    ],
)  # fmt: skip
