r"""Do a network and its kernel learn the score of digits better than scores that are known?

Digits by a few principal components, where the true score is not known. The noised training set
has a score in closed form: that of point masses on the training digits, whose backward process
returns them; a kernel density spreads the masses; one Gaussian forgets them. Estimates and samples
are compared with held-out digits.
"""

from itertools import zip_longest
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.data.digits import DIGITS
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import PALETTE, Column, Lines, Points, Reference, extremes, quartiles
from attlas.experiments.settings import Settings
from attlas.training.trajectory import log_spaced
from gu2024exploring.experiments.instances import DISTANCES
from gu2024exploring.library.data.digit_regression import T0, draw_digit_regression
from gu2024exploring.library.data.gaussian_mixtures import fitted_gaussian, kernel_density
from gu2024exploring.library.diffusion.reverse_diffusion import sample_estimators
from gu2024exploring.library.diffusion.score_estimation import MixtureEstimator, predict_pairs
from gu2024exploring.library.diffusion.score_paths import kernel_path, network_path
from gu2024exploring.library.measures.sample_comparison import comparison_dataset, nearest_distances

SIGMA = 1.0
STEP = 0.9
LONGER, FURTHER = 100, 8
"""Kernel regression is followed so many times longer than the network, in so many records."""
WIDTHS = (1e-4, 0.05, 0.1, 0.15, 0.2, 0.3, 0.45)
"""Standard deviations of the kernel density; the first is that of point masses."""
LEARNERS = ("network", "NTK")
KNOWN = ("kernel density", "training set", "Gaussian")
LAWS = (*LEARNERS, "NTK, end", *KNOWN)
OWN = "digits"
SHOWN = {"NTK": "its kernel", "NTK, end": "its kernel, never stopped", OWN: "real digits"}
"""Names of laws in figures, where they are not those of the record."""
"""Held-out digits beside the samples; as a sample of their law, the training digits."""
IMAGES = 12
GRID = Grid(
    each={"classes": [[0, 1, 6]], "components": [3]},
    fixed={"block": 1, "members": 1},
    smoke={
        "repeats": 1, "held_repeats": 1, "m": 32, "steps": 10, "records": 5, "samples": 30,
        "integrator": 4,
    },
    quick={
        "repeats": 2, "held_repeats": 4, "m": 512, "steps": 500, "records": 16, "samples": 300,
        "integrator": 24,
    },
    paper={
        "classes": [[0, 1, 6], list(range(10))], "components": [3, 8], "repeats": 2,
        "held_repeats": 8, "m": 2048, "steps": 2000, "records": 25, "samples": 1000,
        "integrator": 64, "members": 2,
    },
    data=lambda s: DIGITS,
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Learn, choose stops and widths on validation digits, and sample by every estimate."""
    p = draw_digit_regression(s.seed, s.classes, s.components, s.repeats, s.held_repeats)
    digits = p.digits
    kernel = kernel_path(p.train, p.scale, share=STEP, sigma=SIGMA)
    further = np.geomspace(s.steps, LONGER * s.steps, FURTHER + 1)[1:].round()
    steps = np.append(log_spaced(s.steps, s.records), further)
    network = network_path(
        jax.random.fold_in(key, 10), p.train, p.scale, p.further, width=s.m,
        rate=kernel.step_size, steps=s.steps, records=s.records, sigma=SIGMA,
    )  # fmt: skip
    curves = p.losses(network.predicted), p.losses(kernel.predict(p.further, steps))
    stops = [int(np.argmin(validation)) for validation, _ in curves]
    fitted = [kernel_density(digits.train, width) for width in WIDTHS]
    fitted.append(fitted_gaussian(digits.train))
    laws = [MixtureEstimator(law, p.schedule) for law in fitted]
    known_loss = np.stack([p.losses(np.asarray(predict_pairs(law, p.further))) for law in laws])
    best = int(np.argmin(known_loss[:-1, 0]))
    samples = sample_estimators(
        [
            network.estimator(stops[0]),
            *kernel.estimators(steps[[stops[1], -1]]),
            *(laws[k] for k in (best, 0, -1)),
        ],
        p.schedule, jax.random.fold_in(key, 20), s.samples, s.components,
        steps=s.integrator, T0=T0, denoise=True,
    )  # fmt: skip
    held_out = np.concatenate([digits.validation, digits.test])
    learnt = (curves[0][1, stops[0]], curves[1][1, stops[1]], curves[1][1, -1])
    longer = ((0, 0), (0, len(steps) - len(network.steps)))
    loss = np.stack([np.pad(curves[0], longer, constant_values=np.nan), curves[1]], axis=1)
    images = [*samples, held_out]
    near = [nearest_distances(points, digits.train) for points in images]
    samples_of_law = {**dict(zip(LAWS, samples, strict=True)), OWN: digits.train}
    distances = comparison_dataset(jax.random.fold_in(key, 30), samples_of_law, held_out).assign(
        loss=(("split", "learner", "step"), loss),
        width_loss=(("width", "split"), known_loss[:-1]),
        held_out_loss=("law", [*learnt, *known_loss[[best, 0, -1], 1], np.nan]),
        stop=("law", [*steps[[*stops, -1]], *[np.nan] * (len(KNOWN) + 1)]),
        samples=(("estimate", "sample", "coordinate"), samples),
        nearest=(("point", "law"), np.array([*zip_longest(*near, fillvalue=np.nan)])),
        images=(
            ("law", "image", "pixel"),
            np.stack([digits.components.decode(points[:IMAGES]) for points in images]),
        ),
        explained=float(digits.components.explained.sum()),
    )  # fmt: skip
    return distances.expand_dims("digits").assign_coords(
        digits=["".join(map(str, s.classes))], estimate=list(LAWS), learner=list(LEARNERS),
        split=["validation", "test"], step=steps, width=list(WIDTHS),
    )  # fmt: skip


def first(name: str, **labels: Any) -> panels.Formula:
    """A quantity of the first digits and the fewest components."""
    return lambda data: data[name].isel(digits=0, components=0).sel(labels)


def energy(laws: Any) -> panels.Formula:
    """Energy distances between two standard errors, the mean over members."""
    cut = {"measure": "energy distance", "law": laws}
    value_and_error = panels.within_errors(first("distance", **cut), first("standard_error", **cut))
    return lambda data: value_and_error(data).mean("member")


def nearest_own(level: float) -> panels.Formula:
    """A quantile of the distance of held-out digits from training digits."""
    return lambda data: first("nearest", law=OWN)(data).quantile(level)


def curves(data: xr.Dataset) -> xr.DataArray:
    """Losses on test digits from step 1 on, up to where they exceed those of step 1."""
    loss = first("loss", split="test")(data)
    return loss.where((loss.step > 0) & (loss <= 1.05 * loss.isel(step=1).max()))


def in_words(quantity: Any) -> panels.Formula:
    """A quantity by the names that figures show."""

    def named(data: xr.Dataset) -> xr.DataArray:
        values = quantity(data)
        laws = [SHOWN.get(law, law) for law in values.law.values.tolist()]
        return values.assign_coords(law=laws)

    return named


def learnt(name: str) -> panels.Formula:
    """A quantity of what is stopped, the mean over members."""
    return lambda data: first(name, law=list(LEARNERS))(data).mean("member")


def losses_and_samples(data: xr.Dataset) -> dict[str, object]:
    """Losses in order, and which samples differ from held-out digits."""
    first_cell = data.isel(digits=0, components=0, member=0)
    loss = dict(
        sorted(zip(LAWS, first_cell.held_out_loss.values, strict=False), key=lambda pair: pair[1])
    )
    differs = (first_cell.distance > 5 * first_cell.standard_error).sel(measure="energy distance")
    near = first_cell.nearest.median("point")
    share = (first_cell.lost / first_cell.drawn).sel(law=list(LAWS)).values
    return {
        "losses": ", ".join(f"{SHOWN.get(law, law)} {value:.3f}" for law, value in loss.items()),
        "digits": ", ".join(str(first_cell.digits.values)),
        "components": int(first_cell.components),
        "repeats": data.attrs["repeats"],
        "apart": ", ".join(SHOWN.get(law, law) for law in LAWS if differs.sel(law=law)),
        "near_training": f"{float(near.sel(law='training set')):.1g}",
        "near_network": f"{float(near.sel(law='network')):.2f}",
        "near_own": f"{float(near.sel(law=OWN)):.2f}",
        "lost": ", ".join(
            f"{SHOWN.get(law, law)} {part:.0%}"
            for law, part in zip(LAWS, share, strict=True)
            if part
        ),
    }


def images(data: xr.Dataset) -> dict[str, object]:
    """What is shown, and which samples are farthest from held-out digits."""
    first_cell = data.isel(digits=0, components=0, member=0)
    far = first_cell.distance.sel(measure="energy distance", law=list(LAWS)).fillna(-np.inf)
    return {
        "images": data.sizes["image"],
        "components": int(first_cell.components),
        "explained": f"{float(first_cell.explained):.0%}",
        "farthest": SHOWN.get(name := LAWS[int(far.argmax("law"))], name),
    }


def answer(data: xr.Dataset) -> dict[str, object]:
    """Losses of what is learnt beside the least of the known scores."""
    first_cell = data.isel(digits=0, components=0, member=0)
    loss = dict(zip(LAWS, first_cell.held_out_loss.values.tolist(), strict=False))
    name = min(KNOWN, key=lambda law: loss[law])
    return {
        "better": [law for law in LEARNERS if loss[law] < loss[name]],
        "network": f"{loss['network']:.3f}",
        "kernel": f"{loss['NTK']:.3f}",
        "name": name,
        "best": f"{loss[name]:.3f}",
        "digits": ", ".join(str(first_cell.digits.values)),
        "components": int(first_cell.components),
        "m": data.attrs["m"],
    }


EXPERIMENT = Experiment(
    title="Score estimation on digits",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        {"digits": "digits", "components": "components", "member": "seed", "law": "estimate"},
        [
            Column("held-out loss", "held_out_loss"),
            *DISTANCES,
            Column("lost", lambda data: data.lost / data.drawn),
            Column("nearest training digit", "nearest", panels.median),
        ],
    ),
    figures=[
        panels.Plot(
            "Learned and known scores of digits",
            [
                Lines(
                    curves, "step", colour="learner", xscale="log", width=1.2,
                    names={name: SHOWN.get(name, name) for name in LEARNERS},
                    xlabel="training step (dots: stops)",
                    ylabel="squared distance of the score",
                )
                + Points(learnt("held_out_loss"), learnt("stop"), colour="law", legend=False)
                + Reference(y=first("held_out_loss", law=KNOWN[0]), ink=PALETTE[2],
                            style="--", label=KNOWN[0])
                + Reference(y=first("held_out_loss", law=KNOWN[1]), ink=PALETTE[3], label=KNOWN[1])
                + Reference(y=first("held_out_loss", law=KNOWN[2]), style="-.", label=KNOWN[2]),
                Points(in_words(energy(list(LAWS))), "law", band=extremes, width=1.4,
                       spread="mean and 2 standard errors",
                       ylabel="energy distance to the digits",
                       xlabel="score that draws the samples")
                + Reference(y=lambda data: energy(OWN)(data).min("end"),
                            to=lambda data: energy(OWN)(data).max("end"),
                            label="training digits, 2 standard errors")
                + Reference(y=0, label="no distance"),
                Points(in_words(first("nearest", law=list(LAWS))), "law", band=quartiles, width=1.4,
                       ylabel="distance to the nearest training digit",
                       xlabel="score that draws the samples", ylim=(0, None))
                + Reference(y=nearest_own(0.25), to=nearest_own(0.75),
                            label="held-out digits, quartiles"),
            ],
            losses_and_samples,
        ),
        panels.Plot(
            "Sample digits",
            panels.ImageStrip(
                in_words(lambda data: first("images")(data).isel(member=0)), rows="law",
                columns="image",
                pixels="pixel", limits=(0.0, 16.0), most=IMAGES, width=2.4,
                ylabel="score that draws the digits",
            ),
            images, height=1.6,
        ),
    ],
)  # fmt: skip
