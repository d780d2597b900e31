r"""Are samples by learned scores closest to the data at the stop that learns the score best?

The mixture of `score_estimation`, sampled by the backward equation (4) of gu2024exploring with the
true score, with kernel regression stopped at several times, and with the network of two times.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.data.gaussian_mixtures import diffused, sample
from attlas.experiments.gu2024exploring.instances import SIGMA, STEP, T0, draw_mixture_regression
from attlas.measures.statistics.sample_comparison import compare_samples
from attlas.panels.errors import within_errors
from attlas.panels.lines import Lines
from attlas.panels.palette import PALETTE
from attlas.panels.panel import Panel
from attlas.panels.plot import Plot
from attlas.panels.points import Points
from attlas.panels.reference import Reference
from attlas.panels.summary import extremes, total
from attlas.panels.table import Column, Table
from attlas.runs.experiment import Experiment
from attlas.runs.grid import Grid
from attlas.runs.settings import Settings
from attlas.tasks.diffusion.mixture_estimator import MixtureEstimator
from attlas.tasks.diffusion.sample_each import sample_each
from attlas.tasks.diffusion.score_paths import held_out_errors, kernel_path, network_path
from attlas.training.trajectory import log_spaced

LONGER = (1, 10, 100, 1000, 10000)
"""Kernel regression is sampled at its stop and so many times later."""
NETWORK = ("network, stopped", "network, end")
NTK = ("NTK, stopped", *(f"NTK, {k} x its stop" for k in LONGER[1:]))
LAWS = ("exact sample", "true score", *NETWORK, *NTK)
SHOWN = (("true score", *NETWORK), NTK[::2])
"""By line of the figure."""
FRAME = 2.1
MEASURES = ("energy distance", "sliced W2")
NOTE = (
    "Data and samples are compared at time $T_0 = .05$; 'exact sample' is a second exact sample of "
    "that law: the least that a distance can show. Stopped where the validation loss on noisy "
    "labels is least among the network's recorded steps, for the kernel too. Samples that end ten "
    "times farther out than all data are counted as lost, and distances are those of the others. "
    "The kernel is that of infinite width and takes the steps of the network."
)
GRID = Grid(
    each={"n": [256]},
    fixed={"block": 1},
    smoke={
        "n": [24], "m": 32, "steps": 20, "records": 6, "held_out": 40, "samples": 30,
        "integrator": 4, "members": 1,
    },
    quick={
        "m": 512, "steps": 600, "records": 16, "held_out": 500, "samples": 400,
        "integrator": 24, "members": 1,
    },
    paper={
        "n": [256, 1024, 4096], "m": 16384, "steps": 20000, "records": 40, "held_out": 4000,
        "samples": 4000, "integrator": 128, "members": 5,
    },
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Learn the score, sample by every estimate of it, and compare with held-out data."""
    p = draw_mixture_regression(s.seed, s.n, s.held_out)
    kernel = kernel_path(p.train, p.scale, share=STEP, sigma=SIGMA)
    network = network_path(
        jax.random.fold_in(key, 10), p.train, p.scale, p.further, width=s.m,
        rate=kernel.step_size, steps=s.steps, records=s.records, sigma=SIGMA,
    )  # fmt: skip
    network_errors = held_out_errors(network.predicted, p.further, s.held_out)
    records = [network_errors.stop, len(network.steps) - 1]
    at = log_spaced(s.steps, s.records)
    first = held_out_errors(kernel.predict(p.further, at), p.further, s.held_out).stop
    steps = max(1, at[first]) * np.array(LONGER)
    kernel_errors = held_out_errors(kernel.predict(p.further, steps), p.further, s.held_out)
    noise = jax.random.fold_in(key, 20)
    drawn = sample_each(
        [
            MixtureEstimator(p.mixture, p.schedule),
            *map(network.estimator, records),
            *kernel.estimators(steps),
        ],
        p.schedule, noise, s.samples, p.train.x.shape[1], steps=s.integrator, T0=T0,
    )  # fmt: skip
    law = diffused(p.mixture, p.schedule, jnp.asarray(T0))
    held_out, again = (
        np.asarray(sample(jax.random.fold_in(noise, k), law, s.samples)) for k in (1, 2)
    )
    samples = np.stack([again, *drawn])
    found = [compare_samples(noise, points, held_out) for points in samples]
    return xr.Dataset(
        {
            "points": (("sample", "coordinate"), held_out),
            "samples": (("law", "sample", "coordinate"), samples),
            "distance": (("law", "measure"), [each.distance for each in found]),
            "standard_error": (("law", "measure"), [each.error for each in found]),
            "lost": ("law", [each.lost for each in found]),
            "step": ("law", [np.nan, np.nan, *network.steps[records], *steps]),
            "label_error": (
                "law", [0.0, 0.0, *network_errors.test[records], *kernel_errors.test],
            ),
        },
        {"law": list(LAWS), "measure": list(MEASURES)},
    )  # fmt: skip


def of(name: str, laws: Sequence[str] = LAWS) -> Callable[[xr.Dataset], xr.DataArray]:
    """A quantity of the largest problems, the mean over members."""
    return lambda data: data[name].isel(n=-1).sel(law=list(laws)).mean("member")


def energy(laws: Sequence[str]) -> Callable[[xr.Dataset], xr.DataArray]:
    """The energy distance of the largest problems between two standard errors."""
    value, error = (of(name, laws) for name in ("distance", "standard_error"))
    return lambda data: within_errors(value, error)(data).sel(measure="energy distance", drop=True)


def coordinate(name: str, which: int, laws: Sequence[str]) -> Callable[[xr.Dataset], xr.DataArray]:
    """One coordinate of the first of the largest problems, by law."""
    cut = {"n": -1, "member": 0, "coordinate": which}
    every = xr.DataArray(np.ones(len(laws)), {"law": list(laws)}, ["law"])
    return lambda data: (data[name].isel(cut) * every).transpose("law", ...)


def scatter_caption(data: xr.Dataset) -> str:
    """Distances of every sample shown."""
    one = data.isel(n=-1, member=0)
    told = {}
    for law in ("exact sample", *SHOWN[0], *SHOWN[1]):
        (e, w), (e_error, w_error) = (one[q].sel(law=law) for q in ("distance", "standard_error"))
        told[law] = f"${e:.3f} \\pm {e_error:.3f}$ and ${w:.2f} \\pm {w_error:.2f}$"
    exact = told.pop("exact sample")
    inside = (abs(one.samples) <= FRAME).all("coordinate")
    outside = (~inside).sum("sample").sel(law=list(told))
    counts = [f"{law} ({k})" for law, k in zip(told, outside.values, strict=True) if k]
    return (
        f"Do learned scores draw the data? Blue: {data.attrs['samples']} samples, "
        f"$n = {int(one.n)}$; grey: held-out data. Energy distance and sliced $W_2$ from "
        "it, of the samples not lost, with standard errors: "
        f"{'; '.join(f'{law} {text}' for law, text in told.items())}. A "
        f"second exact sample has {exact}. Outside the frame: {', '.join(counts) or 'none'}."
    )


def stop_caption(data: xr.Dataset) -> str:
    """Whether a later stop draws better."""
    steps, errors, lost = (of(name, NTK)(data).values for name in ("step", "label_error", "lost"))
    low, value, _ = energy(NTK)(data).transpose("end", "law").values
    error = (value - low) / 2
    best = int(np.argmin(np.nan_to_num(value, nan=np.inf)))
    clear = best and value[0] - value[best] > 3 * np.hypot(error[0], error[best])
    return (
        "Is the best stop for the score the best for samples? Samples of kernel regression are "
        f"closest to the data {'later' if clear else 'not clearly later'}: at step "
        f"{steps[best]:.0f} the energy distance is ${value[best]:.3f} \\pm {error[best]:.3f}$, at "
        f"the stop {steps[0]:.0f} of the noisy labels ${value[0]:.3f} \\pm {error[0]:.3f}$; the "
        f"error of the label is {errors[best]:.2g} and {errors[0]:.2g}. Of "
        f"{data.attrs['samples']} samples {lost[best]:.0f} and {lost[0]:.0f} were lost there, and "
        f"{lost[-1]:.0f} at step {steps[-1]:.0f}. $n = {int(data.n[-1])}$; bars and strip: two "
        "standard errors."
    )


def scatter(laws: Sequence[str]) -> Panel:
    """Samples by some laws in front of held-out data."""
    frame = (-FRAME, FRAME)
    return Lines(
        coordinate("points", 1, laws), coordinate("points", 0, laws), style=".", ink="#bbbbbb",
        panel="law", title="{law}", xlabel="$x_1$", ylabel="$x_2$", xlim=frame, ylim=frame,
    ) + Lines(
        coordinate("samples", 1, laws), coordinate("samples", 0, laws), style=".", ink=PALETTE[0]
    )  # fmt: skip


STEPS: dict[str, Any] = {
    "xscale": "log",
    "xlabel": "training step, $m\\eta = .9 / \\lambda_{\\max}$",
}
EXPERIMENT = Experiment(
    title="Samples by learned scores",
    question=__doc__,
    grid=GRID,
    run=run,
    table=Table(
        {"n": "n", "member": "seed", "law": "law"},
        [
            Column("step", "step"),
            Column("label error", "label_error"),
            Column("energy distance", "distance", at={"measure": "energy distance"}),
            Column("its error", "standard_error", at={"measure": "energy distance"}),
            Column("sliced W2", "distance", at={"measure": "sliced W2"}),
            Column("error of W2", "standard_error", at={"measure": "sliced W2"}),
            Column("lost", "lost", total),
        ],
    ),
    figures=[
        Plot("Samples by every score", [scatter(laws) for laws in SHOWN], scatter_caption,
             height=1.25),
        Plot(
            "The stop for samples",
            [
                Points(
                    energy(NTK), of("step", NTK), band=extremes, line="-", ink=PALETTE[1],
                    label="NTK", ylabel="energy distance from data", width=1.5, **STEPS,
                )
                + Points(
                    energy(NETWORK), of("step", NETWORK), band=extremes, line="--",
                    ink=PALETTE[0], marker="s", label="network",
                )
                + Reference(
                    y=lambda data: energy(["true score"])(data).min("end"),
                    to=lambda data: energy(["true score"])(data).max("end"),
                    ink=PALETTE[2], label="true score",
                )
                + Reference(y=0),
                Points(
                    of("label_error", NTK), of("step", NTK), line="-", ink=PALETTE[1],
                    label="NTK", ylabel="mean square error of the label", yscale="log",
                    width=1.5, **STEPS,
                )
                + Points(
                    of("label_error", NETWORK), of("step", NETWORK), line="--", ink=PALETTE[0],
                    marker="s", label="network",
                ),
            ],
            stop_caption,
        ),
    ],
    note=NOTE,
)  # fmt: skip
