r"""Score estimation on real digits, beside the scores of the training set and of one Gaussian.

The digits by a few principal components, where no score is known in closed form. The noised
training set has one: that of point masses on the training digits, whose backward process returns
them; a kernel density spreads the masses. Estimates and samples meet held-out digits.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.data.digit_regression import (
    T0,
    DigitRegression,
    draw_digit_regression,
)
from attlas.data.digits import DIGITS
from attlas.data.gaussian_mixtures import GaussianMixture, posterior_mean
from attlas.data.noise_schedule import NoiseSchedule
from attlas.kernels.regression_flow import regression_flow
from attlas.kernels.softmax_network_limit import softmax_ntk_limit
from attlas.measures.statistics.sample_distance import energy_distance, sliced_wasserstein
from attlas.models.networks.softmax_network import SoftmaxNetwork, symmetric_network
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.tasks.diffusion.reverse_diffusion import sample
from attlas.tasks.diffusion.score_estimation import KernelEstimator, NetworkEstimator
from attlas.tasks.softmax_regression import Keep, train_softmax_network
from attlas.training.trajectory import log_spaced

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

SIGMA = 1.0
STEP = 0.9
LONGER = 100
"""Kernel regression is followed so many times longer than the network."""
FURTHER = 8
WIDTHS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.45)
"""Standard deviations of the kernel density, in units of the coordinates."""
MEMORY = 1e-4
"""That of point masses."""
LAWS = ("network", "NTK", "NTK, end", "kernel density", "training set", "Gaussian")
COLOURS: dict[str, str] = dict(
    zip(LAWS, ("#0072b2", "#d55e00", "#e69f00", "#009e73", "#cc79a7", "0.45"), strict=True)
)
IMAGES = 12
NOTE = (
    "Digits are projected on principal components of the training images, all divided by one "
    "number (mean variance 1). Every training digit gives several pairs (t, x(t)). 'Gaussian' has "
    "the mean and covariance of the training set. 'Training set' is the law of point masses on "
    "the training digits, whose estimate minimises the training loss over all noise. Stops and "
    "the width of the kernel density are chosen on validation digits, losses are those of test "
    "digits. Samples end with the estimate of x(0) at T0, and are compared with validation and "
    "test digits; the line 'training digits' compares the training digits themselves, another "
    "sample of the same law. A network step has m eta = .9 / lambda_max of the limit kernel."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each choice of digits, components and seed."""
    settings = {
        Scale.SMOKE: {"repeats": 1, "held_repeats": 1, "m": 32, "steps": 10, "records": 5,
                      "samples": 30, "integrator": 4},
        Scale.QUICK: {"repeats": 2, "held_repeats": 4, "m": 512, "steps": 500, "records": 16,
                      "samples": 300, "integrator": 24},
        Scale.PAPER: {"repeats": 8, "held_repeats": 16, "m": 16384, "steps": 20000, "records": 40,
                      "samples": 2000, "integrator": 128},
    }[scale]  # fmt: skip
    grids = [((0, 1, 6), 3)]
    if scale is Scale.PAPER:
        grids += [((0, 1, 6), 8), (tuple(range(10)), 3), (tuple(range(10)), 8)]
    seeds = 5 if scale is Scale.PAPER else 1
    return tuple(
        Cell({"classes": classes, "components": count, **settings}, seed,
             data_hash=DIGITS.data_hash)
        for classes, count in grids
        for seed in range(seeds)
    )  # fmt: skip


def _law(points: np.ndarray, variance: float) -> GaussianMixture:
    """Equal masses on points, spread by one variance."""
    n = len(points)
    return GaussianMixture(jnp.full(n, 1 / n), jnp.asarray(points), jnp.full(n, variance))


def _gaussian(points: np.ndarray) -> GaussianMixture:
    """The Gaussian of the points' mean and covariance."""
    mean, covariance = points.mean(axis=0), np.cov(points.T, bias=True)
    return GaussianMixture(jnp.ones(1), jnp.asarray(mean)[None], jnp.asarray(covariance)[None])


@jax.jit
def _estimated(law: GaussianMixture, schedule: NoiseSchedule, t: Array, x: Array) -> Array:
    return jax.vmap(posterior_mean, in_axes=(None, None, 0, 0))(law, schedule, t, x)


class _Curves(NamedTuple):
    """Losses along training, and where validation stops it."""

    step: np.ndarray
    validation: np.ndarray
    test: np.ndarray
    stop: int


def _regressed(cell: Cell, p: DigitRegression) -> tuple[_Curves, list[KernelEstimator], float]:
    """Kernel regression at all steps; estimators at the stop and at the end."""
    s, Z, scale = cell.settings, p.inputs(p.train), float(p.scale.labels)
    K, cross = (np.asarray(softmax_ntk_limit(a, Z, SIGMA)) for a in (Z, p.inputs(p.further)))
    flow = regression_flow(K, np.asarray(p.train.labels) / scale)
    rate = STEP / float(flow.eigenvalues[-1])
    further = np.geomspace(s["steps"], LONGER * s["steps"], FURTHER + 1)[1:].round()
    step = np.concatenate([log_spaced(s["steps"], s["records"]), further]).astype(float)
    validation, test = p.losses(flow.test(cross, step, rate) * scale)
    stop = int(np.argmin(validation))
    rows = flow.test(np.eye(len(K)), step[[stop, -1]], rate)
    found = [KernelEstimator(p.scale, Z, jnp.asarray(c), sigma=SIGMA) for c in rows]
    return _Curves(step, validation, test, stop), found, rate


def _trained(cell: Cell, p: DigitRegression, rate: float) -> tuple[_Curves, NetworkEstimator]:
    """The network along training, and the estimator of its stop."""
    s, d = cell.settings, p.train.x.shape[1]
    key = jax.random.fold_in(jax.random.key(cell.seed), 10)
    start = symmetric_network(key, d + 1, s["m"], d, sigma=SIGMA)
    path = train_softmax_network(
        start, p.inputs(p.train), p.train.labels / p.scale.labels, step_size=rate / s["m"],
        steps=s["steps"], record_at=log_spaced(s["steps"], s["records"]),
        X_test=p.inputs(p.further), keep=Keep(weights=True),
    )  # fmt: skip
    validation, test = p.losses(np.asarray(path.test_outputs) * float(p.scale.labels))
    stop = int(np.argmin(validation))
    network = SoftmaxNetwork(path.W[stop], start.a)
    curves = _Curves(np.asarray(path.steps, float), validation, test, stop)
    return curves, NetworkEstimator(p.scale, network)


class _Rules(eqx.Module):
    """Every estimate of x(0); laws of one shape share a branch."""

    network: NetworkEstimator
    kernel: KernelEstimator
    masses: GaussianMixture
    gaussian: GaussianMixture

    def predict(self, rule: Array, schedule: NoiseSchedule, t: Array, x: Array) -> Array:
        """The estimate by one of them."""
        rules = [
            lambda: self.network.predict(t, x),
            lambda: self.kernel.predict(t, x),
            lambda: posterior_mean(self.masses, schedule, t, x),
            lambda: posterior_mean(self.gaussian, schedule, t, x),
        ]
        return jax.lax.switch(rule, rules)


def _score(t: Array, x: Array, schedule: NoiseSchedule, rule: Array, rules: _Rules) -> Array:
    return schedule.score_of_mean(t, x, rules.predict(rule, schedule, t, x))


@eqx.filter_jit
def _cleaned(x: Array, t: Array, schedule: NoiseSchedule, rule: Array, rules: _Rules) -> Array:
    return jax.vmap(lambda point: rules.predict(rule, schedule, t, point))(x)


def _sampled(cell: Cell, p: DigitRegression, choices: Sequence[tuple[int, _Rules]]) -> np.ndarray:
    """Samples by every estimate, cleaned by it at T0."""
    s, d = cell.settings, p.train.x.shape[1]
    key, found = jax.random.fold_in(jax.random.key(cell.seed), 20), []
    for number, rules in choices:
        rule = jnp.asarray(number)
        noisy = sample(
            _score, p.schedule, key, s["samples"], d, args=(p.schedule, rule, rules),
            steps=s["integrator"], T0=T0,
        )  # fmt: skip
        clean = _cleaned(jnp.asarray(noisy.value), jnp.asarray(T0), p.schedule, rule, rules)
        found.append(np.asarray(clean))
    return np.stack(found)


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Learn, choose stops and widths on validation digits, and sample by every estimate."""
    s = cell.settings
    p = draw_digit_regression(
        cell.seed, s["classes"], s["components"], s["repeats"], s["held_repeats"]
    )
    known = p.digits.train
    regression, kernels, rate = _regressed(cell, p)
    training, network = _trained(cell, p, rate)
    spreads = (MEMORY, *WIDTHS)
    laws = [_law(known, width**2) for width in spreads]
    far = (p.schedule, p.further.t, p.further.x)
    masses = np.array([p.losses(np.asarray(_estimated(law, *far))) for law in laws])
    best = int(np.argmin(masses[:, 0]))
    gaussian = _gaussian(known)
    level = float(p.losses(np.asarray(_estimated(gaussian, *far)))[1])
    rules = _Rules(network, kernels[0], laws[best], gaussian)
    late = eqx.tree_at(lambda part: part.kernel, rules, kernels[1])
    memory = eqx.tree_at(lambda part: part.masses, rules, laws[0])
    numbered = ((0, rules), (1, rules), (1, late), (2, rules), (2, memory), (3, rules))
    samples = _sampled(cell, p, numbered)
    held_out = np.concatenate([p.digits.validation, p.digits.test])
    key = jax.random.fold_in(jax.random.key(cell.seed), 30)
    ends = (training.test[training.stop], regression.test[regression.stop], regression.test[-1])
    return {
        "network_step": training.step,
        "network_loss": training.test,
        "kernel_step": regression.step,
        "kernel_loss": regression.test,
        "stops": np.array([training.stop, regression.stop]),
        "width": np.array(spreads),
        "width_loss": masses,
        "loss": np.array([*ends, masses[best, 1], masses[0, 1], level]),
        "samples": samples,
        "distances": np.stack([_distances(key, points, held_out) for points in (known, *samples)]),
        "nearest": np.stack([_nearest(points, known) for points in (held_out, *samples)]),
        "images": np.stack([
            p.digits.components.decode(points[:IMAGES]) for points in (held_out, *samples)
        ]),
        "explained": np.asarray(p.digits.components.explained.sum()),
    }  # fmt: skip


def _whole(points: np.ndarray, data: np.ndarray) -> np.ndarray:
    """Points at most ten times farther out than all data; others are lost."""
    return points[np.all(np.abs(points) <= 10 * np.abs(data).max(), axis=1)]


def _distances(key: Array, points: np.ndarray, data: np.ndarray) -> np.ndarray:
    """Energy and sliced Wasserstein distance with their errors, and the share of lost points."""
    kept = _whole(points, data)
    lost = [1 - len(kept) / len(points)] * 2
    if len(kept) < 3:
        return np.full((2, 3), np.nan)
    found = (energy_distance(kept, data), sliced_wasserstein(key, kept, data))
    return np.column_stack([np.asarray(found), lost])


def _nearest(points: np.ndarray, data: np.ndarray) -> np.ndarray:
    """Quartiles of the distance to the nearest training digit."""
    kept = _whole(points, data)
    if not len(kept):
        return np.full(3, np.nan)
    gaps = np.linalg.norm(kept[:, None] - data[None], axis=2).min(axis=1)
    return np.quantile(gaps, (0.25, 0.5, 0.75))


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Held-out loss, distances from held-out digits and the nearest training digit."""
    import pandas as pd

    rows = []
    for record in records:
        s, a = record.cell.settings, record.arrays
        for k, law in enumerate(("held-out and training digits", *LAWS)):
            (energy, e, lost), (wasserstein, w, _) = a["distances"][k]
            rows.append({
                "digits": "".join(map(str, s["classes"])), "components": s["components"],
                "seed": record.cell.seed, "estimate": law,
                "held-out loss": a["loss"][k - 1] if k else np.nan,
                "energy distance": energy, "its error": e, "sliced W2": wasserstein,
                "error of W2": w, "lost": lost, "nearest training digit": a["nearest"][k, 1],
            })  # fmt: skip
    return pd.DataFrame(rows)


def _curves_panel(records: Sequence[Record]) -> Panel:
    """Held-out loss along training, and what the samples of every estimate are like."""
    import matplotlib.pyplot as plt

    a = records[0].arrays
    figure, axes = plt.subplots(1, 3, figsize=(11, 4.2), layout="constrained")
    left = axes[0]
    for name, law, style in (("network", "network", "-"), ("kernel", "NTK", "--")):
        left.semilogx(a[f"{name}_step"][1:], a[f"{name}_loss"][1:], style, color=COLOURS[law],
                      label=law, lw=2 if name == "network" else 1.5)  # fmt: skip
    for law in LAWS[3:]:
        left.axhline(a["loss"][LAWS.index(law)], color=COLOURS[law], lw=1.2, ls="-.", label=law)
    for k, (name, law) in enumerate((("network", "network"), ("kernel", "NTK"))):
        at = max(1, int(a["stops"][k]))
        left.plot(a[f"{name}_step"][at], a[f"{name}_loss"][at], "o", color=COLOURS[law], ms=5)
    low, start = float(np.nanmin(a["loss"])), float(a["kernel_loss"][1])
    left.set_ylim(low - 0.05 * (start - low), low + 1.2 * (start - low))
    left.set_xlabel(r"step, of $m\eta = .9/\lambda_{max}$ (dots: stops)")
    left.set_ylabel("squared distance from held-out digits")
    left.legend(frameon=False, fontsize=7.5, ncols=2, loc="upper center",
                bbox_to_anchor=(0.5, -0.17))  # fmt: skip
    names = ("network", "NTK", "NTK,\nend", "density", "training\nset", "Gaussian")
    for axis, which, label in ((axes[1], 0, "energy distance"), (axes[2], None, "")):
        for k, law in enumerate(LAWS):
            if which is None:
                low, middle, high = a["nearest"][k + 1]
                reach = [[middle - low], [high - middle]]
            else:
                middle, error, _ = a["distances"][k + 1, which]
                reach = 2 * error
            axis.errorbar(k, middle, reach, fmt="o", color=COLOURS[law], capsize=3, ms=5)
        axis.set_xticks(range(len(LAWS)), names, fontsize=7.5, rotation=35)
        axis.set_ylabel(label + " from held-out digits" if label else "nearest training digit")
    exact, error, _ = a["distances"][0, 0]
    axes[1].axhspan(exact - 2 * error, exact + 2 * error, color="0.85", lw=0,
                    label="training digits")  # fmt: skip
    axes[2].axhspan(*a["nearest"][0, [0, 2]], color="0.85", lw=0, label="held-out digits")
    for axis in axes[1:]:
        axis.axhline(0, color="0.6", lw=0.8)
        axis.legend(frameon=False, fontsize=8)
    return Panel("Learned and known scores of digits", _curves_caption(records[0]), figure)


def _curves_caption(record: Record) -> str:
    s, a = record.cell.settings, record.arrays
    losses = dict(zip(LAWS, a["loss"], strict=True))
    order = sorted(LAWS, key=lambda law: losses[law])
    near = dict(zip(LAWS, a["nearest"][1:, 1], strict=True))
    apart = [
        law for law, (energy, error, _) in zip(LAWS, a["distances"][1:, 0], strict=True)
        if energy > 5 * error
    ]  # fmt: skip
    shares = zip(LAWS, a["distances"][1:, 0, 2], strict=True)
    lost = ", ".join(f"{law} {share:.0%}" for law, share in shares if share > 0)
    return (
        f"Which score estimate is best on held-out digits? Squared distance from them: "
        f"{', '.join(f'{law} {losses[law]:.3f}' for law in order)} (digits "
        f"{', '.join(map(str, s['classes']))} in {s['components']} components, "
        f"{s['repeats']} pairs each). Samples of {', '.join(apart) if apart else 'none'} can be "
        f"told from held-out digits by five standard errors of the energy distance. The nearest "
        f"training digit is at {near['training set']:.1g} for samples of the training set's "
        f"score, at {near['network']:.2f} for the network's and at {a['nearest'][0, 1]:.2f} for "
        f"held-out digits (medians; bars: quartiles). Lost far outside: {lost or 'no sample'}."
    )


def _images_panel(records: Sequence[Record]) -> Panel:
    """Held-out digits, and samples of every estimate, decoded."""
    import matplotlib.pyplot as plt

    record = records[0]
    images = record.arrays["images"]
    side = int(np.sqrt(images.shape[-1]))
    figure, axes = plt.subplots(len(images), 1, figsize=(7.5, 5), layout="constrained")
    for axis, row, name in zip(axes, images, ("held-out digits", *LAWS), strict=True):
        gap = np.full((side, 1), np.nan)
        strip = [part for image in row for part in (image.reshape(side, side), gap)]
        axis.imshow(np.hstack(strip[:-1]), cmap="gray_r", vmin=0, vmax=16)
        axis.set_xticks([])
        axis.set_yticks([])
        axis.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=9)
        for spine in axis.spines.values():
            spine.set_visible(False)
    s, explained = record.cell.settings, float(record.arrays["explained"])
    worst = int(np.nanargmax(record.arrays["distances"][1:, 0, 0]))
    caption = (
        f"What do samples look like? The first {images.shape[1]} of each estimate, decoded from "
        f"{s['components']} principal components, which keep {explained:.0%} of the variance: "
        f"held-out digits are shown through them too. The samples of a column share their noise; "
        f"an empty image is a lost sample. Farthest from held-out digits in energy "
        f"distance: {LAWS[worst]}."
    )
    return Panel("Sample digits", caption, figure)


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """Losses and distances, and sample digits, of the first cell."""
    return _curves_panel(records), _images_panel(records)


EXPERIMENT = Experiment(
    name="score_digits",
    paper="gu2024exploring",
    title="Score estimation on digits",
    question="Do the network and its kernel learn the score of digits better than known scores?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        **dict.fromkeys(("network_step", "network_loss"), ("network_step",)),
        **dict.fromkeys(("kernel_step", "kernel_loss"), ("kernel_step",)),
        "stops": ("learner",),
        "width": ("width",),
        "width_loss": ("width", "split"),
        "loss": ("law",),
        "samples": ("law", "sample", "coordinate"),
        "distances": ("set", "distance", "quantity"),
        "nearest": ("set", "quartile"),
        "images": ("set", "image", "pixel"),
        "explained": (),
    },
    note=NOTE,
)
