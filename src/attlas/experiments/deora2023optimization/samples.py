r"""How far is the stability bound from the generalisation gap, and is the gap O(1/n)?

Many independent training sets of each size from one start (one-step initialisation, two groups
of equal heads), with all leave-one-out trainings of some of them. The expected gap needs no test
set: within a block of sets it is the loss of each set under the models of the others, less the
loss under its own model, which cancels the noise of the sets.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.bounds.generalisation.deora2023_generalisation import (
    deora2023_generalisation_gap,
    deora2023_stability_gap,
    deora2023_stability_heads,
)
from attlas.bounds.optimisation.deora2023_initialisation import deora2023_target_distance
from attlas.bounds.optimisation.deora2023_loss import deora2023_beta_1
from attlas.bounds.optimisation.deora2023_training import Setting
from attlas.data.tokenized_mixture import TokenizedMixture, make_tokenized_mixture, sample_mixture
from attlas.kernels.multi_head_ntk import ntk_gram
from attlas.losses.logistic import logistic
from attlas.measures.statistics.student_interval import student_interval
from attlas.measures.statistics.trend import Slope, log_slope
from attlas.models.attention.repeated_heads import RepeatedHeads, repeat_signed_head
from attlas.optim.one_step import one_step_initialisation
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.solvers.kernel_svm import kernel_svm_batch
from attlas.training.fresh_sets import fresh_sets
from attlas.training.leave_one_out import leave_one_out
from attlas.training.risk_gradient import model_outputs

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

BLOCK = 4
"""Training sets whose models are tested on each other; blocks are independent."""
SEPARATOR = np.sqrt(2)
CURVES = {
    "lemma_3": ("Lemma 3, measured G", "C1", "s-"),
    "lemma_3_beta": ("Lemma 3, G = beta_1 (sharp)", "C2", "^-"),
    "theorem_2": ("Theorem 2, target = last step", "C4", "v--"),
    "corollary_2": ("Theorem 2, target of Corollary 2", "C3", "x--"),
}
NOTE = (
    "One start for all sets, so the expectation is over training sets. 'Measured G' is the "
    "largest gradient norm of the loss of one test sample at the leave-one-out "
    "models: a lower bound of the Lipschitz constant of Lemma 3, while beta_1 at the largest head "
    "bounds it from above. 'Leave-one-out' estimates the gap a second way, by the loss of the "
    "sample left out. The conditions of Theorem 2 are not met (the table says by how much): its "
    "formula is drawn at the step size used, for two targets."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each number of samples."""
    sizes, sets, blind = {
        Scale.SMOKE: ((4, 8), 2 * BLOCK, 1),
        Scale.QUICK: ((8, 20, 50), 12 * BLOCK, 2),
        Scale.PAPER: ((8, 16, 32, 64, 128, 256), 64 * BLOCK, 8),
    }[scale]
    settings = {"T": 4, "d": 8, "M": 3, "S": 2.0, "zeta": 0.25, "Z": 3.0, "Z_mu": 0.5, "Z_nu": 0.5}
    settings |= {"heads": 16, "first": 64, "test": 200, "rate": 0.1, "sets": sets, "blind": blind}
    settings["steps"] = 20 if scale is Scale.SMOKE else 200
    return tuple(Cell({**settings, "n": n}) for n in sizes)


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Train on all sets, and without each sample on some; gap, stability and bounds."""
    s = cell.settings
    keys = [jax.random.fold_in(jax.random.key(cell.seed), k) for k in range(6)]
    bounds = {name: s[name] for name in ("d", "M", "S", "zeta", "Z", "Z_mu", "Z_nu")}
    mixture = make_tokenized_mixture(keys[0], **bounds)
    first, test = (
        sample_mixture(key, mixture, s[name], s["T"])
        for key, name in zip(keys[1:3], ("first", "test"), strict=True)
    )
    head = one_step_initialisation(keys[3], first.X, first.y, 1)
    start = repeat_signed_head(keys[4], head, s["heads"])
    m, n = s["sets"], s["n"]
    drawn = sample_mixture(jax.random.fold_in(keys[5], n), mixture, m * n, s["T"])
    # Slices of NumPy arrays cost nothing; each shape of a JAX slice is compiled.
    X = np.asarray(drawn.X).reshape(m, n, *drawn.X.shape[1:])
    y = np.asarray(drawn.y).reshape(m, n)
    settings = {"step_size": s["rate"], "steps": s["steps"], "record_at": (s["steps"],)}
    trained = fresh_sets(start, jnp.asarray(X), jnp.asarray(y), test.X, test.y, **settings)
    last = _last(trained.path.params)
    crossed = np.asarray(_crossed(*_blocks((*last, X, y)), start.copies))
    own = np.einsum("bii->b", crossed) / BLOCK
    other = (crossed.sum(axis=(1, 2)) - BLOCK * own) / (BLOCK * (BLOCK - 1))
    found = [_stability(start, X[k], y[k], (test.X, test.y), settings) for k in range(s["blind"])]
    svm = kernel_svm_batch(np.stack([ntk_gram(head, x) for x in X]), y)
    margin = np.where(svm.converged, SEPARATOR * np.asarray(svm.value), np.nan)
    moved = (a - np.asarray(b) for a, b in zip(last, (start.U, start.W), strict=True))
    distance = np.sqrt(sum(np.sum(a**2, axis=(1, 2, 3)) for a in moved))
    own_risk = np.asarray(trained.path.loss)[:, 0]
    return {
        "train": own,
        "test": other,
        "common_test": np.asarray(trained.test_loss)[:, 0],
        **{name: np.array([each[name] for each in found]) for name in found[0]},
        **_theorem_2(s, _sizes(start, X, mixture), (distance, own_risk, margin)),
        "margin": margin,
    }


def _last(model: RepeatedHeads) -> tuple[np.ndarray, np.ndarray]:
    """U and W at the only record."""
    return np.asarray(model.U)[..., 0, :, :, :], np.asarray(model.W)[..., 0, :, :, :]


def _sizes(start: RepeatedHeads, X: np.ndarray, mixture: TokenizedMixture) -> tuple[float, ...]:
    """R, B_2 and B_Phi; attention is uniform at the start."""
    copies = np.asarray(start.copies)
    weights = np.sqrt(copies / copies.sum())[:, None, None] * np.asarray(start.U)
    outputs = np.einsum("td,mnd->mn", weights.sum(axis=0), X.mean(axis=2))
    found = (float(mixture.R), float(start.largest_head), float(np.abs(outputs).max()))
    return tuple(max(1.0, value) for value in found)


def _blocks(arrays: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    return tuple(a.reshape(-1, BLOCK, *a.shape[1:]) for a in arrays)


@jax.jit
def _crossed(U: Array, W: Array, X: Array, y: Array, copies: Array) -> Array:
    """Loss of the model of set i on set j of a block, [block, i, j]."""

    def loss(U: Array, W: Array, X: Array, y: Array) -> Array:
        return jnp.mean(logistic(y * model_outputs(RepeatedHeads(U, W, copies), X)))

    on_all = jax.vmap(loss, (None, None, 0, 0))
    return jax.vmap(jax.vmap(on_all, (0, 0, None, None)))(U, W, X, y)


def _stability(
    start: RepeatedHeads, X: np.ndarray, y: np.ndarray, test: tuple[Array, Array], settings: Mapping
) -> dict[str, float]:
    """Average stability, slopes and the gap by leave-one-out of one training set."""
    found = leave_one_out(start, jnp.asarray(X), jnp.asarray(y), **settings)
    lost, slope, largest = _left_out(_last(found.without.params), start.copies, (X, y), test)
    return {
        "stability": np.asarray(found.stability)[0],
        "loo_gap": np.mean(lost) - np.asarray(found.full.loss)[0],
        "lipschitz": np.max(slope),
        "largest_head": np.max(largest),
    }


@jax.jit
def _left_out(models: tuple, copies: Array, data: tuple, test: tuple) -> tuple[Array, ...]:
    """Loss of the sample left out, largest slope on test samples, largest head, by model."""

    def loss(parameters: tuple[Array, Array], X: Array, y: Array) -> Array:
        return logistic(y * RepeatedHeads(*parameters, copies)(X))

    def one(parameters: tuple[Array, Array], X: Array, y: Array) -> tuple[Array, ...]:
        slope = jax.vmap(jax.grad(loss), (None, 0, 0))(parameters, *test)
        square = sum(jnp.sum(a**2, axis=(1, 2, 3)) for a in slope)
        largest = RepeatedHeads(*parameters, copies).largest_head
        return loss(parameters, X, y), jnp.sqrt(jnp.max(jnp.asarray(square))), largest

    return jax.vmap(one)(models, *data)


def _theorem_2(
    s: Mapping, sizes: tuple[float, ...], trained: tuple[np.ndarray, ...]
) -> dict[str, np.ndarray]:
    """Theorem 2 for two targets, by training set, and the heads that it demands for each."""
    numbers = (float(s["n"]), float(s["steps"]), s["rate"], float(s["T"]), float(s["d"]))
    found = _bounds(numbers + sizes, *trained)
    return {name: np.asarray(values) for name, values in found.items()}


@jax.jit
def _bounds(numbers: tuple, distance: Array, risk: Array, margin: Array) -> dict[str, Array]:
    n, K, rate, T, d, R, B_2, B_Phi = numbers

    def one(distance: Array, risk: Array, margin: Array) -> dict[str, Array]:
        far = deora2023_target_distance(B_Phi, margin, 1 / K)
        found = {}
        for name, reach, loss in (("theorem_2", distance, risk), ("corollary_2", far, 1 / K)):
            setting = Setting(T, d, R, reach, B_2 + reach)
            found[name] = deora2023_generalisation_gap(n, loss, reach, rate, K, constants="printed")
            found[f"{name}_heads"] = deora2023_stability_heads(setting, "sharp")
        return found

    return jax.vmap(one)(distance, risk, margin)


def _gap(a: Mapping[str, np.ndarray]) -> np.ndarray:
    return a["test"] - a["train"]


def _curve(record: Record, name: str) -> float:
    """A bound on the gap at the n of a record."""
    s, a = record.cell.settings, record.arrays
    if name in a:
        return float(np.mean(a[name]))
    slope = a["lipschitz"].max()
    if name == "lemma_3_beta":
        R = float(np.sqrt(s["S"] ** 2 + s["Z"] ** 2 + 2 * s["Z_nu"] / s["M"]))
        slope = float(deora2023_beta_1(s["T"], R, float(a["largest_head"].max()), "sharp"))
    return float(deora2023_stability_gap(float(slope), float(a["stability"].mean())))


def _sorted(records: Sequence[Record]) -> list[Record]:
    return sorted(records, key=lambda record: record.cell.settings["n"])


def _slope(records: Sequence[Record]) -> Slope | None:
    """Slope of log gap against log n over blocks, if every block has a positive gap."""
    gaps = np.stack([_gap(r.arrays) for r in records], axis=1)
    sizes = np.array([float(r.cell.settings["n"]) for r in records])
    return log_slope(sizes, gaps) if len(records) > 1 and (gaps > 0).all() else None


def _interval(values: np.ndarray) -> tuple[float, float]:
    """Mean over blocks and half the width of Student's 95% interval."""
    mean, reach = student_interval(values)
    return float(mean), float(reach) if len(values) > 1 else np.inf


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Losses, the gap measured in two ways, stability, and every bound over the gap."""
    import pandas as pd

    rows = []
    for record in _sorted(records):
        s, a = record.cell.settings, record.arrays
        gap, reach = _interval(_gap(a))
        row = {"n": s["n"], "sets": s["sets"], "training loss": a["train"].mean()}
        row["test loss"] = a["test"].mean()
        row["test loss, common samples"] = a["common_test"].mean()
        row["gap"] = f"{gap:.4f} ± {reach:.4f}"
        row["gap, leave-one-out"] = a["loo_gap"].mean()
        row["stability"] = a["stability"].mean()
        row["G"] = a["lipschitz"].max()
        row |= {
            f"{label} / gap": _curve(record, name) / gap for name, (label, *_) in CURVES.items()
        }
        for name in ("theorem_2", "corollary_2"):
            ratio = np.median(a[f"{name}_heads"]) / s["heads"]
            row[f"heads demanded / used, {CURVES[name][0].split(', ')[1]}"] = ratio
        rows.append(row)
    return pd.DataFrame(rows)


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """Losses against n, and the gap with the bounds above it."""
    import matplotlib.pyplot as plt

    records = _sorted(records)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    sizes = np.array([float(r.cell.settings["n"]) for r in records])
    for name, color, mark in (("train", "C0", "o"), ("test", "C1", "s")):
        middle, reach = np.array([_interval(r.arrays[name]) for r in records]).T
        label = {"train": "training loss", "test": "test loss"}[name]
        left.errorbar(sizes, middle, reach, fmt=f"{mark}-", color=color, capsize=2, label=label)
    gap, reach = np.array([_interval(_gap(r.arrays)) for r in records]).T
    right.errorbar(sizes, gap, reach, fmt="o-", color="k", capsize=2, label="measured gap")
    estimate = [r.arrays["loo_gap"].mean() for r in records]
    right.plot(sizes, estimate, "D", color="C0", mfc="none", label="leave-one-out estimate")
    bounds = {name: np.array([_curve(r, name) for r in records]) for name in CURVES}
    for name, (label, color, style) in CURVES.items():
        right.plot(sizes, bounds[name], style, color=color, label=label, ms=4)
    right.plot(sizes, gap[0] * sizes[0] / sizes, "k:", lw=1, label="power -1 of n")
    right.axhline(np.log(2), color="grey", lw=0.8)
    for axis in (left, right):
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xlabel("training samples n")
    left.set_ylabel(f"loss after {records[0].cell.settings['steps']} steps")
    right.set_ylabel("generalisation gap and its bounds")
    left.legend(frameon=False)
    figure.legend(*right.get_legend_handles_labels(), loc="outside right center", frameon=False)
    return (Panel("Generalisation gap against n", _caption(records, gap, bounds), figure),)


def _caption(records: Sequence[Record], gap: np.ndarray, bounds: Mapping[str, np.ndarray]) -> str:
    found = _slope(records)
    said = "not resolved at this scale"
    if found:
        power = f"n to the power {found.mean:.2f} [{found.low:.2f}, {found.high:.2f}]"
        way = "as" if found.low <= -1 <= found.high else "faster than" if found.high < -1 else ""
        said = f"{power}, {way or 'slower than'} 1/n"
    factors = [f"{np.nanmin(b / gap):.2g} to {np.nanmax(b / gap):.2g}" for b in bounds.values()]
    below = [label for (label, *_), b in zip(CURVES.values(), bounds.values(), strict=True)
             if np.any(b < np.log(2))]  # fmt: skip
    return (
        f"Is the gap O(1/n)? It falls like {said} (95% over blocks of training sets). How far is "
        f"stability from it? Over the measured gap, {CURVES['lemma_3'][0]} is {factors[0]}, with "
        f"beta_1 {factors[1]}, Theorem 2 {factors[2]} and with the target of Corollary 2 "
        f"{factors[3]}. Below log 2 (grey) somewhere: {'; '.join(below) or 'none of the bounds'}. "
        "Bars: 95%."
    )


EXPERIMENT = Experiment(
    name="samples",
    paper="deora2023optimization",
    title="Generalisation gap against the number of samples",
    question="How far is the stability bound from the generalisation gap, and is it O(1/n)?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        **dict.fromkeys(("train", "test"), ("block",)),
        **dict.fromkeys(("stability", "loo_gap", "lipschitz", "largest_head"), ("blind",)),
        **dict.fromkeys(("common_test", "margin", "theorem_2", "corollary_2"), ("set",)),
        **dict.fromkeys(("theorem_2_heads", "corollary_2_heads"), ("set",)),
    },
    note=NOTE,
)
