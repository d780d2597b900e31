r"""How well do a softmax network and its tangent kernel learn a score, and when must they stop?

Section 6 of gu2024exploring on a Gaussian mixture, whose true label $f_* = E[x(0) | x(t) = x]$ is
known in closed form. The four terms of Claim G.1 are measured on fresh points at every step:
coupling (network - kernel regression), label mismatch (regression on labels - on pseudo-labels
$f_H$ + noise), early stopping (that regression - $f_H$) and approximation ($f_H - f_*$).
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.display.numbers import large_number
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import INK, PALETTE, Column, Lines, Reference
from attlas.experiments.settings import Settings
from attlas.models.networks.softmax_network import symmetric_network
from attlas.training.trajectory import log_spaced
from gu2024exploring.experiments.instances import SIGMA, STEP, draw_mixture_regression
from gu2024exploring.library.diffusion.error_terms import (
    RULES,
    TERMS,
    regression_terms,
    rkhs_function,
    score_error_bound,
    score_error_dataset,
)
from gu2024exploring.library.training.softmax_regression import train_on_nested

LONGER = 1000
"""How many times longer than the network kernel regression is followed."""
FURTHER = 10
DELTA = 0.1
WORDS = ("coupling", "label mismatch", "early stopping", "approximation")
NAMES = dict(zip(TERMS, WORDS, strict=True))
DIFFERENCES = (
    "network minus kernel regression", "regression on labels minus on the reference + noise",
    "that on the reference + noise minus the reference", "the reference minus the true label",
)  # fmt: skip
SYMBOLS = {
    term: f"{name}: {difference}"
    for (term, name), difference in zip(NAMES.items(), DIFFERENCES, strict=True)
}
GRID = Grid(
    fixed={"block": 1, "members": 1},
    smoke={"n": [12, 24], "m": [32], "steps": 20, "records": 6, "test": 40, "reference": 48},
    quick={
        "n": [32, 64, 128, 256], "m": [512], "steps": 600, "records": 16, "test": 500,
        "reference": 512,
    },
    paper={
        "n": [64, 128, 256, 512, 1024], "m": [256, 2048], "steps": 4000,
        "records": 25, "test": 2000, "reference": 2048, "members": 4,
    },
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Networks and kernel regression for every n, the four terms at every step and at the stop."""
    p = draw_mixture_regression(s.seed, max(s.n), s.test, s.reference)
    f_H = rkhs_function(p.reference, p.further.first(s.test), p.scale, sigma=SIGMA)
    at = log_spaced(s.steps, s.records)
    steps = np.append(at, np.geomspace(s.steps, LONGER * s.steps, FURTHER + 1)[1:].round())
    kernels = [
        regression_terms(f_H, p.train.first(n), p.further, steps, share=STEP, validation=s.test)
        for n in s.n
    ]
    kernel = jax.tree.map(lambda *leaves: np.stack(leaves), *kernels)
    d = p.train.x.shape[1]
    paths = [
        train_on_nested(
            symmetric_network(jax.random.fold_in(key, 10), d + 1, m, d, sigma=SIGMA),
            p.inputs(p.train), p.train.labels / p.scale.labels, s.n,
            step_size=STEP / (m * kernel.largest), steps=s.steps, record_at=at,
            X_test=p.inputs(p.further),
        )
        for m in s.m
    ]  # fmt: skip
    networks = np.stack([np.asarray(path.test_outputs) for path in paths]) * float(p.scale.labels)
    errors = score_error_dataset(f_H, kernel, networks, p.further, steps, s.test)
    errors = errors.assign_coords(m=list(s.m), n=list(s.n))
    moved = np.stack([np.asarray(path.movement) for path in paths])
    return errors.assign(
        moved=xr.DataArray(moved, {"step": np.array(at, float)}, ("m", "n", "step")),
        bound=score_error_bound(errors, d, DELTA),
    )


def widest(name: str, largest: bool = False, **labels: Any) -> Callable[[xr.Dataset], xr.DataArray]:
    """A quantity of the widest network, at all n or at the largest, without step 0."""
    positions = {"m": -1, "n": -1} if largest else {"m": -1}

    def cut(data: xr.Dataset) -> xr.DataArray:
        errors = panels.taken(name, labels, positions)(data)
        errors = errors.where(errors.step > 0) if "step" in errors.dims else errors
        return errors.where(errors > 1e-4 * errors.max())

    return cut


def terms(data: xr.Dataset) -> dict[str, object]:
    """The largest terms, the slack of Claim G.1, the stops and Theorem 6.6."""
    last = data.isel(m=-1)
    middle = last.median("member")  # as the figure draws it
    ends, true = middle.isel(n=[0, -1]), last.true_error_at_stop.sel(learner="network")
    values, error = ends.error_at_stop, ends.true_error_at_stop.sel(learner="network").values
    listed = [f"{NAMES[t]} {pair(v)}" for t, v in zip(TERMS, values.values, strict=True)]
    dominant = [NAMES[TERMS[k]] for k in values.argmax("term").values]
    slack = (np.sqrt(last.error_at_stop).sum("term") / np.sqrt(true)).values
    stops = dict(zip(RULES, middle.stop.isel(n=-1).values, strict=True))
    return {
        "dominant": " and ".join(dict.fromkeys(dominant)),
        "n": data.n.values[[0, -1]],
        "terms": ", ".join(listed),
        "error": pair(error),
        "slack": f"{slack.min():.2f} to {slack.max():.2f}",
        "noisy": f"{stops[RULES[0]]:.0f}",
        "balance": f"{stops[RULES[3]]:.0f}",
        "theorem": " and ".join(map(large_number, ends.bound.values)),
        "seeds": data.sizes["member"],
        "unit": pair(error / float(middle.label_scale) ** 2),
    }


def pair(values: np.ndarray, how: str = ".2g") -> str:
    """Values at the smallest and the largest n."""
    return " and ".join(format(value, how) for value in values)


def last_stop(data: xr.Dataset) -> xr.DataArray:
    """The median stop of the widest network at the largest n."""
    return data.stop.sel(rule=RULES[0]).isel(m=-1, n=-1).median("member")


def stopped(rule: int, ink: str, style: str, label: str, **look: Any) -> Lines:
    """The stops of one rule by n."""
    stops = panels.taken("stop", {"rule": RULES[rule]}, {"m": -1})
    return Lines(stops, "n", style=style, ink=ink, label=label, **look)


def late(name: str, label: str, ink: str, style: str, **labels: str) -> Lines:
    """A quantity by step at the largest n."""
    curve = widest(name, largest=True, **labels)
    return Lines(curve, "step", label=label, ink=ink, style=style)


def answer(data: xr.Dataset) -> dict[str, object]:
    """Errors of both learners at their stops."""
    ends = data.true_error_at_stop.isel(m=-1, n=[0, -1]).median("member")
    errors = {name: pair(ends.sel(learner=name).values) for name in ("network", "NTK")}
    return terms(data) | {"errors": errors, "m": int(data.m[-1])}


PAIRS: dict[str, Any] = {
    "xscale": "log", "xticks": "n", "xlabel": "training pairs $n$", "width": 1.5,
}  # fmt: skip
EARLY = PALETTE[TERMS.index("early")]
GREY = "#888888"
EXPERIMENT = Experiment(
    title="Score estimation on a mixture",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        {"member": "seed", "m": "m", "n": "n"},
        [
            Column("stop", "stop", at={"rule": RULES[0]}),
            *(Column(term, "error_at_stop", at={"term": term}) for term in TERMS),
            Column("network error", "true_error_at_stop", at={"learner": "network"}),
            Column("NTK error at its stop", "true_error_at_stop", at={"learner": "NTK"}),
            Column("network error, unit labels", lambda d: d.true_error_at_stop / d.label_scale**2,
                   at={"learner": "network"}),
            Column("Theorem 6.6, sum", "bound"),
        ],
    ),
    figures=[
        panels.Plot(
            "Four terms of the score error",
            [
                Lines(
                    widest("error", largest=True), "step", colour="term", names=SYMBOLS,
                    xscale="log", yscale="log", width=1.5, title="along training, most pairs",
                    xlabel="training step",
                    ylabel="mean square error on fresh points",
                )
                + late("true_error", "error of the network", INK, "-", learner="network")
                + Reference(x=last_stop, style="-", label="stop of the network"),
                Lines(
                    widest("error_at_stop"), "n", colour="term", names=SYMBOLS, style="o-",
                    yscale="log", title="where the network stops",
                    ylabel="mean square error on fresh points",
                    **PAIRS,
                )
                + Lines(widest("true_error_at_stop", learner="network"), "n", style="*-",
                        ink=INK, label="error of the network"),
                stopped(0, INK, "o-", "network, least validation loss on noisy labels",
                        yscale="log", title="when to stop", ylabel="training step", **PAIRS)
                + stopped(2, GREY, "^--", "its kernel, least true error"),
            ],
            terms, height=1.3,
        )
    ],
)  # fmt: skip
