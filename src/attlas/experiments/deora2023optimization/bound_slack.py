r"""How loose are the bounds on gradient, Hessian and negative curvature along training?

One run of gradient descent from the one-step initialisation on the tokenized mixture (DM1). At
each record the measured quantity is divided by its bound of Corollary 1, in three versions, and
the step sizes and numbers of heads that theory certifies are compared with those that work.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.bounds.optimisation.deora2023_initialisation import (
    Start,
    deora2023_corollary_2_heads,
    deora2023_corollary_2_step,
)
from attlas.bounds.optimisation.deora2023_loss import (
    deora2023_beta_1,
    deora2023_beta_2,
    deora2023_beta_3,
)
from attlas.bounds.optimisation.deora2023_model import HeadConstants
from attlas.bounds.optimisation.deora2023_training import (
    Setting,
    deora2023_head_condition,
    deora2023_rho,
)
from attlas.data.tokenized_mixture import make_tokenized_mixture, sample_mixture
from attlas.kernels.multi_head_ntk import ntk_gram
from attlas.losses.empirical_risk import empirical_risk
from attlas.measures.curvature.extreme_eigenvalues import hessian_extremes
from attlas.models.attention.multi_head import MultiHead
from attlas.optim.one_step import one_step_initialisation
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.solvers.kernel_svm import kernel_svm
from attlas.training.gradient_descent import gradient_descent
from attlas.training.trajectory import log_spaced

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

VERSIONS: tuple[HeadConstants, ...] = ("printed", "dimension_free", "sharp")
QUANTITIES = {
    "slope": "|grad L| over beta_1 L",
    "smoothness": "|hess L| over beta_2",
    "convexity": "-lambda_min over beta_3 L / sqrt(H)",
}
SEPARATOR = np.sqrt(2)
NOTE = (
    "Eigenvalues by Lanczos with restarts, or from the whole Hessian where it is small; only "
    "converged ones are used, the others are left out and counted. R is the bound of Assumption "
    "3, x the largest head at the record. A ratio of one means that the bound is attained. "
    "'Certified' is Theorem 1 with the last step of this run as its target, and Corollary 2 with "
    "the real NTK margin; a stable step is one below 2 / lambda_max of all records."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One run for each number of heads."""
    heads, records = {
        Scale.SMOKE: ((2,), 4),
        Scale.QUICK: ((4,), 12),
        Scale.PAPER: ((4, 16, 64, 256), 32),
    }[scale]
    settings = {"T": 4, "d": 8, "M": 3, "S": 2.0, "zeta": 0.25, "Z": 3.0, "Z_mu": 0.5, "Z_nu": 0.5}
    settings |= {"n": 24, "first": 64, "rate": 0.1, "records": records}
    if scale is Scale.SMOKE:
        settings |= {"d": 5, "n": 8}
    settings["steps"] = 20 if scale is Scale.SMOKE else 2000
    return tuple(Cell({**settings, "heads": H}) for H in heads)


def risk(model: MultiHead, X: Array, y: Array) -> Array:
    """The empirical risk, as a function that compiles once."""
    return empirical_risk(model, X, y)


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Train once, measure every record, and evaluate the bounds there."""
    s = cell.settings
    keys = [jax.random.fold_in(jax.random.key(cell.seed), k) for k in range(4)]
    sizes = {name: s[name] for name in ("d", "M", "S", "zeta", "Z", "Z_mu", "Z_nu")}
    mixture = make_tokenized_mixture(keys[0], **sizes)
    first, train = (
        sample_mixture(key, mixture, s[name], s["T"])
        for key, name in zip(keys[1:], ("first", "n"), strict=False)
    )
    start = one_step_initialisation(keys[3], first.X, first.y, s["heads"])
    path = gradient_descent(
        start,
        train.X,
        train.y,
        step_size=s["rate"],
        steps=s["steps"],
        record_at=log_spaced(s["steps"], s["records"]),
    )
    U, W = np.asarray(path.params.U), np.asarray(path.params.W)
    largest = np.sqrt((U**2).sum(axis=(2, 3)) + (W**2).sum(axis=(2, 3))).max(axis=1)
    extremes = [
        hessian_extremes(risk, MultiHead(jnp.asarray(u), jnp.asarray(w)), train.X, train.y)
        for u, w in zip(U, W, strict=True)
    ]
    svm = kernel_svm(ntk_gram(start, np.asarray(train.X)), np.asarray(train.y))
    margin = SEPARATOR * float(svm.value) if svm.converged else np.nan
    away = np.sqrt(np.sum((U[-1] - U[0]) ** 2) + np.sum((W[-1] - W[0]) ** 2))
    outputs = np.abs(np.asarray(_outputs(start, train.X)))
    R = max(1.0, float(mixture.R))
    certified = _certified(
        (float(s["T"]), float(s["d"]), R, float(s["steps"]), float(s["heads"])),
        jnp.asarray([away, largest[-1]]),
        jnp.asarray([max(1.0, largest[0]), max(1.0, outputs.max()), margin]),
    )
    loss = np.asarray(path.loss)
    betas = _betas((float(s["T"]), float(s["d"]), R, float(s["heads"])), jnp.asarray(largest))
    return {
        "step": np.asarray(path.steps),
        "loss": loss,
        "gradient_norm": np.asarray(path.gradient_norm),
        "smallest": np.array([one.value.smallest[0] for one in extremes]),
        "largest": np.array([one.value.largest[0] for one in extremes]),
        "residual": np.array([np.max(one.certificate["residual"]) for one in extremes]),
        "converged": np.array([bool(one.converged) for one in extremes]),
        "betas": np.asarray(betas),
        "certified": np.asarray(certified),
        "margin": np.asarray(margin),
    }


_outputs = jax.jit(jax.vmap(MultiHead.__call__, (None, 0)))


@jax.jit
def _betas(sizes: tuple, largest: Array) -> Array:
    """beta_1, beta_2 and beta_3 / sqrt(H) by version and record."""
    T, d, R, H = sizes

    found = []
    for constants in VERSIONS:

        def one(x: Array, constants: HeadConstants = constants) -> Array:
            first = deora2023_beta_1(T, R, x, constants)
            second = deora2023_beta_2(T, d, R, x, H, constants)
            third = deora2023_beta_3(T, d, R, x, constants)
            return jnp.stack([first, second, third / jnp.sqrt(H)])

        found.append(jax.vmap(one)(largest))
    return jnp.stack(found)


@jax.jit
def _certified(sizes: tuple, target: Array, start: Array) -> Array:
    """Heads and 1 / rho of Theorem 1, heads and step size of Corollary 2, by version."""
    T, d, R, K, H = sizes
    setting, first = Setting(T, d, R, *target), Start(T, d, R, *start)
    found = []
    for constants in VERSIONS:
        heads = deora2023_head_condition(setting, constants)
        step = 1 / deora2023_rho(setting, H, constants)
        asked = deora2023_corollary_2_heads(first, K, constants)
        small = deora2023_corollary_2_step(first, K, H, constants)
        found.append(jnp.stack([heads, step, asked, small]))
    return jnp.stack(found)


def _norm(a: Mapping[str, np.ndarray]) -> np.ndarray:
    """||hess L||, NaN where it has not converged."""
    norm = np.maximum(np.abs(a["smallest"]), np.abs(a["largest"]))
    return np.where(a["converged"], norm, np.nan)


def _self_bounded(a: Mapping[str, np.ndarray]) -> np.ndarray:
    """||hess L|| over (beta_1^2 + beta_3 / sqrt(H)) L, sharp: l'' is at most l as well as 1/4."""
    first, _, third = a["betas"][-1].T
    return _norm(a) / ((first**2 + third) * a["loss"])


def _ratios(a: Mapping[str, np.ndarray]) -> np.ndarray:
    """Measured over bound, [version, record, quantity]; NaN where eigenvalues are missing."""
    missing = np.where(a["converged"], 1.0, np.nan)
    measured = np.stack(
        [
            a["gradient_norm"] / a["loss"],
            _norm(a),
            np.maximum(-a["smallest"], 0) / a["loss"] * missing,
        ],
        axis=1,
    )
    return measured[None] / a["betas"]


def _stable(a: Mapping[str, np.ndarray]) -> float:
    """The largest step that every record's curvature allows."""
    largest = a["largest"][a["converged"]]
    return float(2 / largest.max()) if largest.size else np.nan


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """How many times larger than measured every bound is, and what is certified."""
    import pandas as pd

    rows = []
    for record in records:
        s, a = record.cell.settings, record.arrays
        ratios = _ratios(a)
        for v, version in enumerate(VERSIONS):
            row: dict[str, object] = {"heads": s["heads"], "version": version}
            for q, name in enumerate(QUANTITIES.values()):
                low, high = np.nanmin(ratios[v, :, q]), np.nanmax(ratios[v, :, q])
                row[name] = f"{low:.1e} to {high:.1e}"
            heads, step, asked, small = a["certified"][v]
            row["stable step / certified, Theorem 1"] = _stable(a) / step
            row["stable step / certified, Corollary 2"] = _stable(a) / small
            row["heads certified / used, Theorem 1"] = heads / s["heads"]
            row["heads certified / used, Corollary 2"] = asked / s["heads"]
            row["eigenvalues left out"] = int((~a["converged"]).sum())
            row["largest residual"] = float(a["residual"].max())
            rows.append(row)
    return pd.DataFrame(rows)


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """Measured over bound along training, one axis for each of the three bounds."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.7), sharey=True, layout="constrained")
    alphas = np.linspace(1, 0.35, len(records))
    marks, colors = ("o", "s", "^"), ("C0", "C1", "C2")
    for record, alpha in zip(records, alphas, strict=True):
        a = record.arrays
        ratios = _ratios(a)
        for q, axis in enumerate(axes):
            for v, version in enumerate(VERSIONS):
                label = (
                    version
                    if len(records) == 1
                    else f"{version}, H = {record.cell.settings['heads']}"
                )
                values = np.where(ratios[v, :, q] > 0, ratios[v, :, q], np.nan)
                axis.loglog(
                    a["step"] + 1, values, marks[v] + "-", color=colors[v], ms=3, lw=1,
                    alpha=alpha, label=label.replace("_", "-"),
                )  # fmt: skip
        (line,) = axes[1].loglog(a["step"] + 1, _self_bounded(a), "k--", lw=1, alpha=alpha)
        if record is records[0]:
            line.set_label("sharp, over (beta_1^2 + beta_3 / sqrt(H)) L")
            axes[1].legend(handles=[line], frameon=False, fontsize=7, loc="lower left")
    for axis, name in zip(axes, QUANTITIES.values(), strict=True):
        axis.axhline(1, color="grey", lw=0.8)
        axis.set_title(name, fontsize=9)
        axis.set_xlabel("step k + 1")
    axes[0].set_ylabel("measured over bound")
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside right center", frameon=False, fontsize=8)
    return (Panel("Measured over bound along training", _caption(records), figure),)


def _last_share(a: Mapping[str, np.ndarray]) -> str:
    gain = a["betas"][-1, -1, 1] * _self_bounded(a)[-1] / _norm(a)[-1]
    return f"{gain:.1e} times smaller at the last record" if gain > 1 else "not smaller at the end"


def _caption(records: Sequence[Record]) -> str:
    said = []
    every = np.concatenate([_ratios(r.arrays) for r in records], axis=1)
    for q, name in enumerate(QUANTITIES):
        best = [1 / np.nanmax(every[v, :, q], initial=1e-300) for v in (0, 2)]
        said.append(f"{name} {best[0]:.2g} (printed) and {best[1]:.2g} (sharp)")
    a = records[0].arrays
    steps = [_stable(a) / a["certified"][v, 1] for v in (0, 2)]
    heads = [a["certified"][v, 0] / records[0].cell.settings["heads"] for v in (0, 2)]
    left = sum(int((~r.arrays["converged"]).sum()) for r in records)
    held = "No record exceeds a bound" if not np.any(every > 1) else "A BOUND IS EXCEEDED"
    return (
        "How loose are the bounds? At the record where each is tightest it is this many times "
        f"the measured value: {'; '.join(said)}. With H = {records[0].cell.settings['heads']} the "
        f"largest stable step is {steps[0]:.1e} times the one that Theorem 1 certifies as printed "
        f"and {steps[1]:.1e} times with sharp constants; the heads demanded are {heads[0]:.1e} and "
        f"{heads[1]:.1e} times those used. beta_2 does not fall with the loss; dashed, the same "
        f"bound with l'' <= l does, and is {_last_share(a)}. {held}; "
        f"{left} eigenvalues were left out as unconverged."
    )


EXPERIMENT = Experiment(
    name="bound_slack",
    paper="deora2023optimization",
    title="How loose the bounds are along training",
    question="How loose are the bounds on gradient, Hessian and step size along training?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        **dict.fromkeys(
            ("step", "loss", "gradient_norm", "smallest", "largest", "residual", "converged"),
            ("step",),
        ),
        "betas": ("version", "step", "quantity"),
        "certified": ("version", "certificate"),
        "margin": (),
    },
    note=NOTE,
)
