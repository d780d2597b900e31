r"""Are samples by learned scores closest to the data at the stop that learns the score best?

The mixture of `score_estimation`, sampled by the backward equation (4) of gu2024exploring with the
true score, with kernel regression stopped at several times, and with the network of two times.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.display.numbers import large_number
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import PALETTE, Column, Lines, Points, Reference, extremes
from attlas.experiments.settings import Settings
from attlas.training.trajectory import log_spaced
from gu2024exploring.experiments import instances
from gu2024exploring.library.data.gaussian_mixtures import diffused, sample
from gu2024exploring.library.diffusion.reverse_diffusion import sample_estimators
from gu2024exploring.library.diffusion.score_estimation import MixtureEstimator
from gu2024exploring.library.diffusion.score_paths import held_out_errors, kernel_path, network_path
from gu2024exploring.library.measures.sample_comparison import comparison_dataset

LONGER = (1, 10, 100, 1000, 10000)
"""Kernel regression is sampled at its stop and so many times later."""
NETWORK = ("network, stopped", "network, end")
NTK = ("NTK, stopped", *(f"NTK, {k} x its stop" for k in LONGER[1:]))
TRUE = ("true score",)
LAWS = ("exact sample", *TRUE, *NETWORK, *NTK)
SHOWN = ((*TRUE, *NETWORK), NTK[::2])
"""By line of the figure."""
SHOWN_NAMES = {law: law.replace("NTK", "its kernel").replace(" x ", " × ") for law in LAWS}
FRAME = 2.1
GRID = Grid(
    each={"n": [256]},
    fixed={"block": 1, "members": 1},
    smoke={
        "n": [24], "m": 32, "steps": 20, "records": 6, "held_out": 40, "samples": 30,
        "integrator": 4,
    },
    quick={
        "m": 512, "steps": 600, "records": 16, "held_out": 500, "samples": 400,
        "integrator": 24,
    },
    paper={
        "n": [256, 1024], "m": 2048, "steps": 2000, "records": 25, "held_out": 2000,
        "samples": 1000, "integrator": 48, "members": 3,
    },
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Learn the score, sample by every estimate of it, and compare with held-out data."""
    p = instances.draw_mixture_regression(s.seed, s.n, s.held_out)
    kernel = kernel_path(p.train, p.scale, share=instances.STEP, sigma=instances.SIGMA)
    network = network_path(
        jax.random.fold_in(key, 10), p.train, p.scale, p.further, width=s.m,
        rate=kernel.step_size, steps=s.steps, records=s.records, sigma=instances.SIGMA,
    )  # fmt: skip
    network_errors = held_out_errors(network.predicted, p.further, s.held_out)
    records = [network_errors.stop, len(network.steps) - 1]
    at = log_spaced(s.steps, s.records)
    first = held_out_errors(kernel.predict(p.further, at), p.further, s.held_out).stop
    steps = max(1, at[first]) * np.array(LONGER)
    kernel_errors = held_out_errors(kernel.predict(p.further, steps), p.further, s.held_out)
    noise = jax.random.fold_in(key, 20)
    model_samples = sample_estimators(
        [
            MixtureEstimator(p.mixture, p.schedule),
            *map(network.estimator, records),
            *kernel.estimators(steps),
        ],
        p.schedule, noise, s.samples, p.train.x.shape[1], steps=s.integrator, T0=instances.T0,
    )  # fmt: skip
    law = diffused(p.mixture, p.schedule, jnp.asarray(instances.T0))
    held_out, again = (
        np.asarray(sample(jax.random.fold_in(noise, k), law, s.samples)) for k in (1, 2)
    )
    samples = dict(zip(LAWS, (again, *model_samples), strict=True))
    label_error = [0.0, 0.0, *network_errors.test[records], *kernel_errors.test]
    return comparison_dataset(noise, samples, held_out).assign(
        points=(("sample", "coordinate"), held_out),
        samples=(("law", "sample", "coordinate"), np.stack(list(samples.values()))),
        step=("law", [np.nan, np.nan, *network.steps[records], *steps]),
        label_error=("law", label_error),
    )


def of(name: str, laws: Sequence[str] = LAWS) -> panels.Formula:
    """A quantity of the largest problems, the mean over members."""
    return lambda data: data[name].isel(n=-1).sel(law=list(laws)).mean("member")


def energy(laws: Sequence[str]) -> panels.Formula:
    """The energy distance of the largest problems between two standard errors."""
    value, error = (of(name, laws) for name in ("distance", "standard_error"))
    value_and_error = panels.within_errors(value, error)
    return lambda data: value_and_error(data).sel(measure="energy distance", drop=True)


def coordinate(name: str, which: int, laws: Sequence[str]) -> panels.Formula:
    """One coordinate of the first of the largest problems, by law."""
    cut = {"n": -1, "member": 0, "coordinate": which}
    all_laws = xr.DataArray(np.ones(len(laws)), {"law": list(laws)}, ["law"])
    return lambda data: (data[name].isel(cut) * all_laws).transpose("law", ...)


def _ends(cell: xr.Dataset, laws: Sequence[str]) -> dict[str, str]:
    """The learned scores whose samples are nearest to the data and farthest from them."""
    apart = cell.distance.sel(measure="energy distance", law=list(laws))
    return {
        name: f"{SHOWN_NAMES[str(laws[int(k)])]} ({float(apart[int(k)]):.3f})"
        for name, k in (("nearest", apart.argmin("law")), ("farthest", apart.argmax("law")))
    }


def distances(data: xr.Dataset) -> dict[str, object]:
    """Of every sample shown, with errors, and what the frame leaves out."""
    first_cell, facts = data.isel(n=-1, member=0), {}
    for law in ("exact sample", *SHOWN[0], *SHOWN[1]):
        (e, w), (e_error, w_error) = (
            first_cell[q].sel(law=law) for q in ("distance", "standard_error")
        )
        facts[law] = f"${e:.3f} \\pm {e_error:.3f}$ and ${w:.2f} \\pm {w_error:.2f}$"
    exact = facts.pop("exact sample")
    inside = (abs(first_cell.samples) <= FRAME).all("coordinate")
    outside = (~inside).sum("sample").sel(law=list(facts))
    counts = [
        f"{SHOWN_NAMES[law]} ({k})" for law, k in zip(facts, outside.values, strict=True) if k
    ]
    return {
        "samples": data.attrs["samples"],
        "n": int(first_cell.n),
        **_ends(first_cell, [law for law in facts if law not in TRUE]),
        "distances": "; ".join(f"{SHOWN_NAMES[law]} {text}" for law, text in facts.items()),
        "exact": exact,
        "outside": ", ".join(counts) or "none",
    }


def best_stop(data: xr.Dataset) -> dict[str, object]:
    """Whether a later stop draws better."""
    steps, errors, lost = (of(name, NTK)(data).values for name in ("step", "label_error", "lost"))
    low, value, _ = energy(NTK)(data).transpose("end", "law").values
    error = (value - low) / 2
    best = int(np.argmin(np.nan_to_num(value, nan=np.inf)))
    record = (best, 0)
    return {
        "later": best and value[0] - value[best] > 3 * np.hypot(error[0], error[best]),
        "steps": [large_number(steps[k]) for k in (*record, -1)],
        "lost": [f"{lost[k]:.0f}" for k in (*record, -1)],
        "energies": [f"${value[k]:.3f} \\pm {error[k]:.3f}$" for k in record],
        "errors": [f"{errors[k]:.2g}" for k in record],
        "samples": data.attrs["samples"],
        "n": int(data.n[-1]),
    }


def answer(data: xr.Dataset) -> dict[str, object]:
    """The same beside exact samples, the control: no score can draw nearer ones."""
    value, error = (
        float(of(name, ["exact sample"])(data).sel(measure="energy distance").item())
        for name in ("distance", "standard_error")
    )
    return best_stop(data) | {"exact": f"${value:.3f} \\pm {error:.3f}$"}


def scatter(laws: Sequence[str]) -> panels.Panel:
    """Samples by some laws in front of held-out data."""
    frame = (-FRAME, FRAME)
    return Lines(
        coordinate("points", 1, laws), coordinate("points", 0, laws), style=".", ink="#bbbbbb",
        panel="law", title=SHOWN_NAMES, xlabel="first coordinate", ylabel="second coordinate",
        xlim=frame, ylim=frame,
    ) + Lines(
        coordinate("samples", 1, laws), coordinate("samples", 0, laws), style=".", ink=PALETTE[0]
    )  # fmt: skip


def against_step(
    quantity: Callable[[Sequence[str]], panels.Formula], ylabel: str, **look: Any
) -> panels.Panel:
    """A quantity of kernel regression and of the network by training step."""
    return Points(
        quantity(NTK), of("step", NTK), line="-", ink=PALETTE[1], label="its kernel", width=1.5,
        band=extremes, spread="mean and 2 standard errors", xscale="log",
        xlabel="training step",
        ylabel=ylabel, **look,
    ) + Points(
        quantity(NETWORK), of("step", NETWORK), line="--", ink=PALETTE[0], marker="s",
        band=extremes, label="network", spread="mean and 2 standard errors",
    )  # fmt: skip


EXPERIMENT = Experiment(
    title="Samples by learned scores",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        {"n": "n", "member": "seed", "law": "law"},
        [
            Column("step", "step"),
            Column("label error", "label_error"),
            *instances.DISTANCES,
            Column("lost", "lost", panels.total),
        ],
    ),
    figures=[
        panels.Plot("Samples by every score", [*map(scatter, SHOWN)], distances, height=1.25),
        panels.Plot(
            "The stop for samples",
            [
                against_step(energy, "energy distance of samples from data")
                + Reference(y=lambda data: energy(TRUE)(data).min("end"), ink=PALETTE[2],
                            to=lambda data: energy(TRUE)(data).max("end"), label=TRUE[0])
                + Reference(y=0, label="no distance"),
                against_step(partial(of, "label_error"), "mean square error of the score",
                             yscale="log"),
            ],
            best_stop,
        ),
    ],
)  # fmt: skip
