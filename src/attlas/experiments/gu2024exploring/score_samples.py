r"""Do learned scores draw the data, and does the stop that learns the score best draw best?

The mixture of `score_estimation`, sampled by the backward equation (4) of gu2024exploring with the
true score, with kernel regression stopped at several times, and with the network of two times.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.data.gaussian_mixtures import GaussianMixture, diffused, score
from attlas.data.gaussian_mixtures import sample as sample_mixture
from attlas.data.noise_schedule import NoiseSchedule
from attlas.experiments.gu2024exploring.instances import (
    SIGMA,
    STEP,
    T0,
    MixtureRegression,
    draw_mixture_regression,
    mixture_kernel,
)
from attlas.kernels.regression_flow import regression_flow
from attlas.measures.statistics.sample_distance import energy_distance, sliced_wasserstein
from attlas.models.networks.softmax_network import SoftmaxNetwork, symmetric_network
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.tasks.diffusion.reverse_diffusion import sample
from attlas.tasks.diffusion.score_estimation import (
    KernelEstimator,
    NetworkEstimator,
    ScoreEstimator,
)
from attlas.tasks.softmax_regression import Keep, train_softmax_network
from attlas.training.trajectory import log_spaced

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

LONGER = (1, 10, 100, 1000, 10000)
"""Kernel regression is sampled at its stop and so many times later."""
FAR = 10.0
"""A sample that is so many times farther out than all data counts as lost."""
LAWS = (
    "exact sample",
    "true score",
    "network, stopped",
    "network, end",
    *(f"NTK, {k} x its stop" if k > 1 else "NTK, stopped" for k in LONGER),
)
NTK = LAWS.index("NTK, stopped")
SHOWN = (1, 2, 3, NTK, NTK + 2, NTK + 4)
NOTE = (
    "Data and samples are compared at time T0 = .05; 'exact sample' is a second exact sample of "
    "that law: the least that a distance can show. Stopped where the validation loss on noisy "
    "labels is least among the network's recorded steps, for the kernel too. Samples that end ten "
    "times farther out than all data are counted as lost, and distances are those of the others. "
    "The kernel is that of infinite width and takes the steps of the network."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each n and seed."""
    settings = {
        Scale.SMOKE: {"m": 32, "steps": 20, "records": 6, "held_out": 40, "samples": 30,
                      "integrator": 4},
        Scale.QUICK: {"m": 512, "steps": 600, "records": 16, "held_out": 500, "samples": 400,
                      "integrator": 24},
        Scale.PAPER: {"m": 16384, "steps": 20000, "records": 40, "held_out": 4000,
                      "samples": 4000, "integrator": 128},
    }[scale]  # fmt: skip
    sizes = {Scale.SMOKE: (24,), Scale.QUICK: (256,), Scale.PAPER: (256, 1024, 4096)}[scale]
    seeds = 5 if scale is Scale.PAPER else 1
    return tuple(Cell({"n": n, **settings}, seed) for n in sizes for seed in range(seeds))


def _mean_square(gap: np.ndarray) -> np.ndarray:
    """Mean over points of the squared length of the last axis."""
    return np.asarray(np.mean(np.sum(gap**2, axis=-1), axis=-1))


class _Learned(NamedTuple):
    """Estimators, the step of each, and its mean squared distance from the true labels."""

    estimators: list
    step: np.ndarray
    error: np.ndarray


def _networks(cell: Cell, p: MixtureRegression, largest: float) -> _Learned:
    """The network at its stop and at the end."""
    s, d = cell.settings, p.train.x.shape[1]
    key = jax.random.fold_in(jax.random.key(cell.seed), 10)
    start = symmetric_network(key, d + 1, s["m"], d, sigma=SIGMA)
    path = train_softmax_network(
        start, p.inputs(p.train), p.train.labels / p.scale.labels,
        step_size=STEP / (s["m"] * largest), steps=s["steps"],
        record_at=log_spaced(s["steps"], s["records"]), X_test=p.inputs(p.further),
        keep=Keep(weights=True),
    )  # fmt: skip
    found = np.asarray(path.test_outputs) * float(p.scale.labels)
    chosen, error = _stopped(p, found)
    at = [chosen, len(found) - 1]
    estimators = [NetworkEstimator(p.scale, SoftmaxNetwork(path.W[k], start.a)) for k in at]
    return _Learned(estimators, np.asarray(path.steps, float)[at], error[at])


def _stopped(p: MixtureRegression, found: np.ndarray) -> tuple[int, np.ndarray]:
    """Where the loss on noisy validation labels is least, and the true error on test pairs."""
    half = found.shape[1] // 2
    loss = _mean_square(found[:, :half] - np.asarray(p.further.labels)[:half])
    return int(np.argmin(loss)), _mean_square(found[:, half:] - np.asarray(p.further.truth)[half:])


def _regressions(cell: Cell, p: MixtureRegression) -> tuple[_Learned, float]:
    """Kernel regression at its stop and later, and the largest eigenvalue."""
    s, Z = cell.settings, p.inputs(p.train)
    flow = regression_flow(mixture_kernel(Z, Z), np.asarray(p.train.labels / p.scale.labels))
    largest = float(flow.eigenvalues[-1])
    cross, scale = mixture_kernel(p.inputs(p.further), Z), float(p.scale.labels)
    step = np.asarray(log_spaced(s["steps"], s["records"]), float)
    first, _ = _stopped(p, flow.test(cross, step, STEP / largest) * scale)
    steps = max(1.0, step[first]) * np.asarray(LONGER, float)
    _, error = _stopped(p, flow.test(cross, steps, STEP / largest) * scale)
    rows = flow.test(np.eye(len(Z)), steps, STEP / largest)
    found = [KernelEstimator(p.scale, Z, jnp.asarray(c), sigma=SIGMA) for c in rows]
    return _Learned(found, steps, error), largest


def _score(
    t: Array,
    x: Array,
    schedule: NoiseSchedule,
    rule: Array,
    mixture: GaussianMixture,
    learned: tuple[ScoreEstimator, ScoreEstimator],
) -> Array:
    """The true score, or an estimate: one program of the sampler for all of them."""
    rules = [lambda: score(mixture, schedule, t, x)]
    rules += [lambda each=each: each.score(schedule, t, x) for each in learned]
    return jax.lax.switch(rule, rules)


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Learn the score, sample by every estimate of it, and compare with held-out data."""
    s, key = cell.settings, jax.random.fold_in(jax.random.key(cell.seed), 20)
    p = draw_mixture_regression(cell.seed, s["n"], s["held_out"])
    kernels, largest = _regressions(cell, p)
    networks = _networks(cell, p, largest)
    law = diffused(p.mixture, p.schedule, jnp.asarray(T0))
    held_out, again = (
        np.asarray(sample_mixture(jax.random.fold_in(key, k), law, s["samples"])) for k in (1, 2)
    )
    first = (networks.estimators[0], kernels.estimators[0])
    runs = [(0, first)]
    runs += [(1, (network, first[1])) for network in networks.estimators]
    runs += [(2, (first[0], kernel)) for kernel in kernels.estimators]
    samples = [again]
    for rule, learned in runs:
        known = (p.schedule, jnp.asarray(rule), p.mixture, learned)
        done = sample(
            _score, p.schedule, key, s["samples"], p.train.x.shape[1], args=known,
            steps=s["integrator"], T0=T0,
        )  # fmt: skip
        samples.append(np.asarray(done.value))
    return {
        "data": held_out,
        "samples": np.stack(samples),
        "distances": np.stack([_distances(key, points, held_out) for points in samples]),
        "lost": np.array([np.sum(_outside(points, _far(held_out))) for points in samples]),
        "step": np.concatenate([[np.nan, np.nan], networks.step, kernels.step]),
        "error": np.concatenate([[0.0, 0.0], networks.error, kernels.error]),
    }


def _far(data: np.ndarray) -> float:
    return FAR * float(np.abs(data).max())


def _outside(points: np.ndarray, limit: float) -> np.ndarray:
    """Points that leave a square, or that are not numbers."""
    return ~np.all(np.abs(points) <= limit, axis=-1, keepdims=True)[..., 0]


def _distances(key: Array, points: np.ndarray, data: np.ndarray) -> np.ndarray:
    """Energy and sliced Wasserstein distance with their errors, of the points not lost."""
    whole = points[~_outside(points, _far(data))]
    if len(whole) < 3:
        return np.full((2, 2), np.nan)
    return np.asarray([energy_distance(whole, data), sliced_wasserstein(key, whole, data)])


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Distances of every sample with their standard errors, beside the error of the label."""
    import pandas as pd

    rows = []
    for record in records:
        a = record.arrays
        for k, law in enumerate(LAWS):
            (energy, e), (wasserstein, w) = a["distances"][k]
            rows.append({
                "n": record.cell.settings["n"], "seed": record.cell.seed, "law": law,
                "step": a["step"][k], "label error": a["error"][k],
                "energy distance": energy, "its error": e, "sliced W2": wasserstein,
                "error of W2": w, "lost": int(a["lost"][k]),
            })  # fmt: skip
    return pd.DataFrame(rows)


def _largest(records: Sequence[Record]) -> list[Record]:
    size = max(record.cell.settings["n"] for record in records)
    return [record for record in records if record.cell.settings["n"] == size]


def _scatter_panel(records: Sequence[Record]) -> Panel:
    """Points by every score in front of held-out data."""
    import matplotlib.pyplot as plt

    record = _largest(records)[0]
    data, a = record.arrays["data"], record.arrays
    limit = 1.2 * float(np.abs(data).max())
    figure, axes = plt.subplots(2, 3, figsize=(9, 6.2), layout="constrained", sharex=True,
                                sharey=True)  # fmt: skip
    for axis, k in zip(axes.flat, SHOWN, strict=True):
        axis.scatter(*data.T, s=5, color="0.75", linewidths=0)
        axis.scatter(*a["samples"][k].T, s=5, color="#0072b2", linewidths=0)
        gone = int(_outside(a["samples"][k], limit).sum())
        lost = f" ({gone} outside)" if gone else ""
        axis.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")
        axis.set_title(LAWS[k] + lost, fontsize=10)
    for axis in axes[1]:
        axis.set_xlabel("$x_1$")
    for axis in axes[:, 0]:
        axis.set_ylabel("$x_2$")
    (energy, e), (wasserstein, w) = a["distances"][0]
    each = "; ".join(
        f"{LAWS[k]} {a['distances'][k, 0, 0]:.3f} +- {a['distances'][k, 0, 1]:.3f} and "
        f"{a['distances'][k, 1, 0]:.2f} +- {a['distances'][k, 1, 1]:.2f}"
        for k in SHOWN
    )
    caption = (
        f"Do learned scores draw the data? Blue: {len(data)} samples, n = "
        f"{record.cell.settings['n']}; grey: held-out data. Energy distance and sliced W2 from "
        f"it, of the samples not lost, with standard errors: {each}. A second exact sample has "
        f"{energy:.3f} +- {e:.3f} and {wasserstein:.2f} +- {w:.2f}. Titles count the "
        "points outside the frame, lost ones among them."
    )
    return Panel("Samples by every score", caption, figure)


def _stop_panel(records: Sequence[Record]) -> Panel:
    """Distance of the samples and error of the label against the training time of the kernel."""
    import matplotlib.pyplot as plt

    chosen = _largest(records)
    found = {
        name: np.stack([np.asarray(r.arrays[name]) for r in chosen])
        for name in ("step", "distances", "error", "lost")
    }
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained")
    for k, (label, colour, mark) in enumerate(
        (("NTK", "#d55e00", "o-"), ("network", "#0072b2", "s--"))
    ):
        part = slice(NTK, None) if k == 0 else slice(2, NTK)
        steps = found["step"][:, part].mean(axis=0)
        energy = found["distances"][:, part, 0].mean(axis=0)
        left.errorbar(steps, energy[:, 0], 2 * energy[:, 1], fmt=mark, ms=4, lw=1, capsize=2,
                      color=colour, label=label)  # fmt: skip
        right.loglog(steps, found["error"][:, part].mean(axis=0), mark, ms=4, lw=1, color=colour,
                     label=label)  # fmt: skip
    exact = found["distances"][:, 1, 0].mean(axis=0)
    left.axhspan(exact[0] - 2 * exact[1], exact[0] + 2 * exact[1], color="#009e73", alpha=0.25,
                 lw=0, label="true score")  # fmt: skip
    left.axhline(0, color="0.6", lw=0.8)
    left.set_xscale("log")
    left.set_ylabel("energy distance from held-out data")
    right.set_ylabel("mean square error of the label")
    for axis in (left, right):
        axis.set_xlabel(r"training step, of $m\eta = .9/\lambda_{max}$")
        axis.legend(frameon=False, fontsize=8)
    return Panel("The stop for samples", _stop_caption(found, chosen[0]), figure)


def _stop_caption(found: Mapping[str, np.ndarray], record: Record) -> str:
    energy = found["distances"][:, NTK:, 0].mean(axis=0)
    steps, errors, lost = (found[name][:, NTK:].mean(axis=0) for name in ("step", "error", "lost"))
    best = int(np.argmin(np.nan_to_num(energy[:, 0], nan=np.inf)))
    clear = energy[0, 0] - energy[best, 0] > 3 * np.hypot(energy[0, 1], energy[best, 1])
    said = "later" if best and clear else "not clearly later"
    return (
        f"Is the best stop for the score the best for samples? Samples of kernel regression are "
        f"closest to the data {said}: at step {steps[best]:.0f} the energy distance is "
        f"{energy[best, 0]:.3f} +- {energy[best, 1]:.3f}, at the stop {steps[0]:.0f} of the noisy "
        f"labels {energy[0, 0]:.3f} +- {energy[0, 1]:.3f}; the error of the label is "
        f"{errors[best]:.2g} and {errors[0]:.2g}. Of {record.cell.settings['samples']} samples "
        f"{lost[best]:.0f} and {lost[0]:.0f} were lost there, and "
        f"{lost[-1]:.0f} at step {steps[-1]:.0f}. n = {record.cell.settings['n']}; bars and band: "
        "two standard errors."
    )


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """Samples beside the data, and their distance against the training time."""
    return _scatter_panel(records), _stop_panel(records)


EXPERIMENT = Experiment(
    name="score_samples",
    paper="gu2024exploring",
    title="Samples by learned scores",
    question="Do the scores of the network and of its kernel draw the data, and stopped when?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        "data": ("sample", "coordinate"),
        "samples": ("law", "sample", "coordinate"),
        "distances": ("law", "distance", "quantity"),
        **dict.fromkeys(("lost", "step", "error"), ("law",)),
    },
    note=NOTE,
)
