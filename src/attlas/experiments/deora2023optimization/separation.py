r"""Do random attention weights satisfy NTK separability, and with which margin?

The paper's first open question, on the tokenized mixture: the NTK margin of Gaussian weights
against their size, beside those of zero and of one randomised step; and g_0, the ratio of outputs
to margin that the paper's bounds square.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from attlas.bounds.optimisation.deora2023_initialisation import deora2023_target_scale
from attlas.data.tokenized_mixture import MixtureSamples
from attlas.experiments.deora2023optimization.instances import draw_phases
from attlas.kernels.multi_head_ntk import ntk_gram
from attlas.measures.statistics.student_interval import student_interval
from attlas.models.attention.multi_head import MultiHead, make_multi_head
from attlas.optim.attention_starts import gaussian_heads
from attlas.optim.one_step import one_step_initialisation
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.solvers.kernel_svm import kernel_svm_batch
from attlas.training.risk_gradient import model_outputs

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

HEAD_COLOURS = ("#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#f0e442")
RADIUS = 2.0**0.5
"""The norm of P3: the margin of `kernel_svm`, for norm 1, is multiplied by it."""
CONFIDENCE = 0.95
NOTE = (
    "Gaussian: independent entries N(0, deviation^2) in U and W; one random stream for all "
    "deviations of a seed. NTK margins are for ||theta_star|| = sqrt(2). B_Phi, the largest "
    "output at the start, counts as at least 1 (Definition 1); g_0(1/n) = (2 B_Phi + log n) / "
    "gamma enters the bounds of Corollary 2 squared, and is infinite without separation. Noise "
    "of the data: Z_mu = Z_nu = .02 S^2, Z = .2 S."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each number of heads (and sparsity, at paper scale)."""
    settings = {"T": 10, "d": 6, "M": 2, "S": 2.0}
    settings |= {
        Scale.SMOKE: {"n": 12, "first": 100, "seeds": 2, "points": 3},
        Scale.QUICK: {"n": 24, "first": 1000, "seeds": 5, "points": 7},
        Scale.PAPER: {"n": 200, "first": 10_000, "seeds": 20, "points": 15},
    }[scale]
    heads = {Scale.SMOKE: (1, 2), Scale.QUICK: (1, 4, 16), Scale.PAPER: (1, 4, 16, 64, 256)}[scale]
    tenths = (3, 1, 5) if scale is Scale.PAPER else (3,)
    return tuple(Cell({**settings, "zeta": tenth / 10, "H": H}) for tenth in tenths for H in heads)


def _first_models(cell: Cell, seed: int, first: MixtureSamples) -> tuple[MultiHead, MultiHead]:
    """Zero, and one randomised step on the first phase's samples."""
    s = cell.settings
    key = jax.random.fold_in(jax.random.key(cell.seed), 1000 + seed)
    zero = make_multi_head(s["H"], s["T"], s["d"], dtype=first.X.dtype)
    return zero, one_step_initialisation(key, first.X, first.y, s["H"])


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """NTK margin and largest output of zero, one step, and Gaussian weights of many sizes."""
    s = cell.settings
    deviations = np.geomspace(0.01, 3.0, s["points"])
    grams, labels, outputs = [], [], []
    for seed in range(s["seeds"]):
        key = jax.random.fold_in(jax.random.key(cell.seed), seed)
        _, train, first = draw_phases(cell.settings, key)
        zero, one_step = _first_models(cell, seed, first)
        random = (gaussian_heads(zero, size, [cell.seed, seed]) for size in deviations)
        for model in (zero, one_step, *random):
            grams.append(ntk_gram(model, train.X))
            labels.append(np.asarray(train.y))
            outputs.append(float(jnp.max(jnp.abs(_outputs(model, train.X)))))
    svm = kernel_svm_batch(np.stack(grams), np.stack(labels))
    # 0 where the labels are not separable, NaN where no certificate was reached.
    margin = np.where(svm.converged, RADIUS * np.asarray(svm.value), np.nan)
    margin = np.where(np.isnan(margin) & (svm.certificate["lower"] == 0), 0.0, margin)
    shape = (s["seeds"], 2 + len(deviations))
    return {
        "deviation": deviations,
        "ntk": margin.reshape(shape),
        "output": np.reshape(outputs, shape),
    }


_outputs = jax.jit(model_outputs)


def _shown(values: np.ndarray) -> str:
    mean, reach = student_interval(values, CONFIDENCE)
    return f"{mean:.3f} ± {reach:.3f}"


def _scale_of_target(record: Record) -> np.ndarray:
    """g_0(1/n) = (2 B_Phi + log n) / gamma, infinite without separation: (seed, start)."""
    margin, output = record.arrays["ntk"], record.arrays["output"]
    bound, n = np.maximum(output, 1.0), record.cell.settings["n"]
    safe = np.where(margin > 0, margin, 1.0)
    found = np.vectorize(lambda b, m: float(deora2023_target_scale(b, m, 1 / n)))(bound, safe)
    return np.where(margin > 0, found, np.inf)


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """NTK margin, outputs and g_0 of every start, mean and interval over the seeds."""
    rows = []
    for record in records:
        s, a = record.cell.settings, record.arrays
        names = ("zero", "one step", *(f"Gaussian {size:.2g}" for size in a["deviation"]))
        scale = _scale_of_target(record)
        for k, start in enumerate(names):
            row = {"zeta": s["zeta"], "H": s["H"], "n": s["n"], "start": start}
            row["separable"] = f"{int((a['ntk'][:, k] > 0).sum())} of {s['seeds']}"
            row["NTK margin"] = _shown(a["ntk"][:, k])
            row["largest output"] = _shown(a["output"][:, k])
            row["g_0(1/n), median"] = float(np.median(scale[:, k]))
            rows.append(row)
    import pandas as pd

    return pd.DataFrame(rows)


def _separation_panel(records: Sequence[Record]) -> Panel:
    """NTK margin, and how far the certified target lies, against the size of Gaussian weights."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator

    figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
    one_step = {"color": "#d55e00", "lw": 1.2}
    for record, colour in zip(records, HEAD_COLOURS, strict=False):
        a, heads = record.arrays, record.cell.settings["H"]
        mean, reach = student_interval(a["ntk"][:, 2:], CONFIDENCE)
        axes[0].semilogx(a["deviation"], mean, "o-", color=colour, ms=3, lw=1.2,
                       label=f"Gaussian, H = {heads}")  # fmt: skip
        axes[0].fill_between(a["deviation"], mean - reach, mean + reach, color=colour, alpha=0.2,
                             lw=0)  # fmt: skip
        scale = np.median(_scale_of_target(record), axis=0)
        axes[1].loglog(a["deviation"], scale[2:], "o-", color=colour, ms=3, lw=1.2)
        # A head's sign leaves its part of the kernel alone: one level for every H, but not of g_0.
        axes[1].axhline(scale[1], ls="--", alpha=0.3 + 0.7 / heads, **one_step)
    first = records[0]
    levels = first.arrays["ntk"].mean(axis=0)
    axes[0].axhline(levels[1], ls="--", label="one step, every H", **one_step)
    axes[0].axhline(levels[0], color="0.25", ls=":", lw=1.2, label="zero")
    scale = np.median(_scale_of_target(first), axis=0)
    axes[1].axhline(scale[0], color="0.25", ls=":", lw=1.2)
    axes[0].set_ylabel(r"NTK margin, $\|\theta_\star\|=\sqrt{2}$")
    axes[1].set_ylabel(r"$g_0(1/n)=(2B_\Phi+\log n)/\gamma$")
    axes[1].yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes[1].yaxis.set_major_formatter("{x:g}")
    axes[1].yaxis.set_minor_formatter("")
    for axis in axes:
        axis.set_xlabel("standard deviation of the Gaussian weights")
    figure.legend(*axes[0].get_legend_handles_labels(), frameon=False, fontsize=8,
                  loc="outside right center")  # fmt: skip
    return Panel("NTK separability of random weights", _separation_caption(records), figure)


def _separation_caption(records: Sequence[Record]) -> str:
    """How often random weights separate, and the best of their sizes beside one step and zero."""
    total = separable = 0
    said = []
    for record in records:
        a, scale = record.arrays, np.median(_scale_of_target(record), axis=0)
        separable += int((a["ntk"][:, 2:] > 0).sum())
        total += a["ntk"][:, 2:].size
        best = 2 + int(np.argmin(scale[2:]))
        said.append(
            f"{scale[best]:.1f} at deviation {a['deviation'][best - 2]:.2g} for "
            f"H = {record.cell.settings['H']} (one step {scale[1]:.1f}, zero {scale[0]:.1f})"
        )
    s, a = records[-1].cell.settings, records[-1].arrays
    growth = [a[name][:, -1].mean() / a[name][:, 2].mean() for name in ("ntk", "output")]
    return (
        f"Does random initialisation satisfy NTK separability (zeta = {s['zeta']:g}, "
        f"n = {s['n']})? In {separable} of {total} draws. Left: the margin, mean and "
        f"{CONFIDENCE:.0%} interval over the seeds. From the smallest to the "
        f"largest deviation the margin grows {growth[0]:.1f} times and the largest output "
        f"{growth[1]:.0f} times (H = {s['H']}); what Corollary 2 squares is the ratio g_0 on the "
        "right (median over the seeds; "
        f"dashed: one step for each H, fainter for more heads), least at {'; '.join(said)}."
    )


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """NTK margin of random weights, at the sparsity of the first record."""
    first = records[0].cell.settings["zeta"]
    return (_separation_panel([r for r in records if r.cell.settings["zeta"] == first]),)


EXPERIMENT = Experiment(
    name="separation",
    paper="deora2023optimization",
    title="NTK separability of random weights",
    question="Do random attention weights satisfy NTK separability, and with which margin?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        "deviation": ("deviation",),
        "ntk": ("seed", "start"),
        "output": ("seed", "start"),
    },
    note=NOTE,
)
