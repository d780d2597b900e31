r"""Which attention SVM does the factored pair W = W_K W_Q' find: nuclear norm or Frobenius?

The theorems of the paper are about the merged matrix W. Here gradient descent trains the factors,
and W itself from the same start; each is measured against the nuclear-norm and the Frobenius
attention SVM of the tokens that it selected.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from attlas.data.token_selection import TokenSelection
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.solvers.attention_svm import attention_svm
from attlas.solvers.nuclear_svm import nuclear_svm
from attlas.tasks.token_selection.factored import train_factored
from attlas.tasks.token_selection.training import train_selection_ensemble
from attlas.training.trajectory import log_spaced

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

TRAINED = {"factored": "factors W_K, W_Q", "merged": "merged W"}
NORMS = ("nuclear", "Frobenius")
RECORDS = 32
NOTE = (
    "Beyond the paper (recalled: Tarzanagh et al. 2023, the nuclear norm as bias of the factored "
    "pair). Released synthetic settings but n = 4, T = 4, d = 5, so that the two SVMs differ; "
    "normalised gradient steps of 0.02 in (W_K, W_Q) and 0.1 in W, small start. The shortfall is 1 "
    "- (margin / norm of W) x (norm of the SVM), between 0 and 1 once all margins are "
    "positive: it is 0 for any minimiser, also where the nuclear-norm one is not unique."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell."""
    smoke = scale is Scale.SMOKE
    settings = {
        "problems": {Scale.SMOKE: 2, Scale.QUICK: 6, Scale.PAPER: 50}[scale],
        "n": 4,
        "T": 4,
        "d": 5,
        "start": 0.1,
        "steps": {Scale.SMOKE: 500, Scale.QUICK: 20_000, Scale.PAPER: 100_000}[scale],
        "records": 8 if smoke else RECORDS,
        "factored_rate": 0.02,
        "merged_rate": 0.1,
    }
    return (Cell(settings),)


def _problems(cell: Cell) -> tuple[TokenSelection, np.ndarray, np.ndarray]:
    """Unit-sphere Gaussian problems and small Gaussian factors; problem e is always the same."""
    s, parts = cell.settings, []
    n, T, d = s["n"], s["T"], s["d"]
    for e in range(s["problems"]):
        draw = np.random.default_rng([cell.seed, e])
        drawn = [draw.normal(size=shape) for shape in ((n, T, d), (n, d), (d,))]
        X, z, v = (a / np.linalg.norm(a, axis=-1, keepdims=True) for a in drawn)
        y = draw.choice([-1.0, 1.0], n)
        K, Q = s["start"] * draw.normal(size=(2, d, d)) / np.sqrt(d)
        parts.append((X, y, z, v, K, Q))
    X, y, z, v, K, Q = (np.stack(each) for each in zip(*parts, strict=True))
    return TokenSelection(*(jnp.asarray(a) for a in (X, y, z, v))), K, Q


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Train the factors and the merged matrix, and measure both against both SVMs."""
    s = cell.settings
    data, K, Q = _problems(cell)
    recorded = log_spaced(s["steps"], s["records"])
    factors = partial(
        train_factored, learning_rate=s["factored_rate"], steps=s["steps"], record_at=recorded
    )
    factored = jax.vmap(factors)(data, jnp.asarray(K), jnp.asarray(Q))
    merged = train_selection_ensemble(
        data,
        jnp.asarray(np.einsum("eij,ekj->eik", K, Q)),
        p=2.0,
        learning_rate=s["merged_rate"],
        steps=s["steps"],
        record_at=recorded,
    )
    found = {"step": np.asarray(merged.steps)}
    for name, W in (("factored", factored.W), ("merged", merged.W)):
        measured = [_measured(data, e, np.asarray(W[e])) for e in range(s["problems"])]
        for key in measured[0]:
            found[f"{name}_{key}"] = np.stack([each[key] for each in measured])
    return found


def _measured(data: TokenSelection, e: int, W: np.ndarray) -> dict[str, np.ndarray]:
    """Shortfall in both norms, cosine to both SVMs, and effective rank along one training."""
    X, z = np.asarray(data.X[e]), np.asarray(data.z[e])
    samples = np.arange(len(z))
    attention = np.einsum("ntd,sdc,nc->snt", X, W, z)
    tokens = attention[-1].argmax(axis=1)
    selected = attention[:, samples, tokens]
    attention[:, samples, tokens] = -np.inf
    margin = (selected - attention.max(axis=2)).min(axis=1)
    singular = np.linalg.svd(W, compute_uv=False)
    sizes = (singular.sum(axis=1), np.linalg.norm(singular, axis=1))
    svms = (nuclear_svm(X, z, tokens), attention_svm(X, z, tokens, 2.0))
    certified = np.array([bool(svm.converged) for svm in svms])
    goals = [np.asarray(svm.value) / np.linalg.norm(svm.value) for svm in svms]
    units = [float(svm.certificate["norm_upper"]) for svm in svms]
    shortfall = [1 - margin * unit / size for unit, size in zip(units, sizes, strict=True)]
    cosine = [np.sum(goal[None] * W, axis=(1, 2)) / sizes[1] for goal in goals]
    return {
        "shortfall": np.where(certified[:, None], np.stack(shortfall), np.nan),
        "apart": np.where(certified[:, None], 1 - np.stack(cosine), np.nan),
        "spread": sizes[0] / sizes[1],
        "svm_spread": np.array([np.linalg.svd(g, compute_uv=False).sum() for g in goals]),
        "tokens": tokens,
        "certified": certified,
    }


def _median(values: np.ndarray) -> float:
    kept = values[np.isfinite(values)]
    return float(np.median(kept)) if len(kept) else np.nan


def _nearer(a: Mapping[str, np.ndarray], name: str) -> tuple[int, int]:
    """On how many certified problems training ends nearer to the SVM of its own norm."""
    last = a[f"{name}_shortfall"][:, :, -1]
    last = last[np.isfinite(last).all(axis=1)]
    own = 0 if name == "factored" else 1
    return int((last[:, own] < last[:, 1 - own]).sum()), len(last)


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Shortfall and angle to both SVMs at the last step, with the nuclear over Frobenius norm."""
    rows = []
    for record in records:
        a = record.arrays
        for name, title in TRAINED.items():
            row = {"trained": title, "problems": len(a[f"{name}_tokens"])}
            row["last step"] = int(a["step"][-1])
            for k, norm in enumerate(NORMS):
                row[f"{norm}: shortfall"] = _median(a[f"{name}_shortfall"][:, k, -1])
                row[f"{norm}: 1 - cosine"] = _median(a[f"{name}_apart"][:, k, -1])
                row[f"{norm} SVM: nuclear over Frobenius norm"] = _median(
                    a[f"{name}_svm_spread"][:, k]
                )
            row["W: nuclear over Frobenius norm"] = _median(a[f"{name}_spread"][:, -1])
            nearer, certified = _nearer(a, name)
            row["expected norm has the smaller shortfall"] = f"{nearer} of {certified}"
            row["SVMs not certified"] = int((~a[f"{name}_certified"]).sum())
            rows.append(row)
    import pandas as pd

    return pd.DataFrame(rows)


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """Shortfall of both trainings in the nuclear and in the Frobenius norm against the step."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True, layout="constrained")
    said, lost = [], 0
    for a in (record.arrays for record in records[:1]):
        for index, (name, title) in enumerate(TRAINED.items()):
            for k, (axis, norm) in enumerate(zip(axes, NORMS, strict=True)):
                curves = a[f"{name}_shortfall"][:, k]
                shown = np.where((curves > 0) & (curves < 1), curves, np.nan)
                lines = axis.loglog(a["step"] + 1, shown.T, color=f"C{index}", lw=1, alpha=0.7)
                lines[0].set_label(title)
                axis.set_title(f"{norm} norm")
            last = [_median(a[f"{name}_shortfall"][:, k, -1]) for k in range(2)]
            nearer, certified = _nearer(a, name)
            said.append(
                f"{title}: shortfall {last[0]:.2g} in the nuclear and {last[1]:.2g} in the "
                f"Frobenius norm (the expected one smaller on {nearer} of {certified})"
            )
            lost += int((~a[f"{name}_certified"]).sum())
    for axis in axes:
        axis.set_xlabel("step k + 1")
    axes[0].set_ylabel("shortfall of margin over norm")
    axes[0].legend(frameon=False, fontsize=8)
    caption = (
        "Which SVM does each training find? Median at the last step, "
        f"{'; '.join(said) or 'no record'}. {lost} SVMs were not certified and are left out. Each "
        "line is one problem, from where all margins are positive."
    )
    return (Panel("Factored pair and merged matrix", caption, figure),)


EXPERIMENT = Experiment(
    name="factored",
    paper="julistiono2024optimizing",
    title="The factored pair and its nuclear-norm SVM",
    question="Which attention SVM does the factored pair W_K W_Q' find, nuclear or Frobenius?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        "step": ("step",),
        **{
            f"{name}_{key}": axes
            for name in TRAINED
            for key, axes in {
                "shortfall": ("problem", "norm", "step"),
                "apart": ("problem", "norm", "step"),
                "spread": ("problem", "step"),
                "svm_spread": ("problem", "norm"),
                "tokens": ("problem", "sample"),
                "certified": ("problem", "norm"),
            }.items()
        },
    },
    note=NOTE,
)
