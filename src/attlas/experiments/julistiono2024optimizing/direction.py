r"""Does l_p mirror descent converge to the attention SVM of its own p?

Normalised mirror descent with p in {1.75, 2, 3} on unit-sphere Gaussian tokens, in the released
settings; the directional Bregman divergence, with the potential of the training p, is measured
to the attention SVMs of q in {1.75, 2, 3} of the tokens that training selected.
"""

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.core.processes import CHEAP_COMPILATION
from attlas.data.token_selection import TokenSelection, make_token_selection
from attlas.measures.direction import direction_divergence
from attlas.measures.selection import selected_tokens
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.solvers.attention_svm import attention_svm_batch
from attlas.solvers.token_optimality import is_locally_optimal
from attlas.tasks.token_selection.training import train_selection_ensemble
from attlas.training.trajectory import log_spaced

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

EXPONENTS = (1.75, 2.0, 3.0)
STEPS = {1.75: 1500, 2.0: 2000, 3.0: 20000}
REFERENCE = {1.75: (0.0113, 157.0, 1.0), 2.0: (0.0046, 117.0, 0.983), 3.0: (0.0038, 44.7, 1.0)}
"""Divergence to the own SVM, norm, locally optimal share: earlier runs of 10 seeds (see NOTE)."""
FIGURE = {(3.0, 3.0): 0.005, (3.0, 2.0): 0.185, (3.0, 1.75): 0.215}
"""Final divergences read from the released figure; its other two panels are not stored."""
RECORDS = 48
BLOCK = 20
NOTE = (
    "Released settings: n = 6, T = 8, d = 10, logistic loss, rate 0.1 on the dual-normalised "
    "gradient. The theory is for plain steps; normalised ones give at most the norm "
    "$(\\|W(0)\\|^{p-1} + 0.1 k)^{1/(p-1)}$. The reference is explained by its gradient: "
    "autodiff with 1e-16 added to the norm gives on the first 20 seeds norms 162 and 121 and D "
    ".0108 and .0046 for p = 1.75 and 2; without that constant the rounding noise of saturated "
    "samples is normalised too, and D is .20 and .038. Ours takes scores relative to the "
    "attended token, which does not cancel, and goes on: larger norms and, at p = 1.75, a "
    "smaller D. 'Tokens of q' measures against the SVM of q for the tokens that training with q "
    "selects."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each block of seeds, and one block started at W(0) = 0."""
    seeds = {Scale.SMOKE: 4, Scale.QUICK: 20, Scale.PAPER: 100}[scale]
    short = 10 if scale is Scale.SMOKE else 1
    steps = [STEPS[p] // short for p in EXPONENTS]
    settings = {"steps": steps, "rate": 0.1, "n": 6, "T": 8, "d": 10}
    grid = []
    for block in range(0, seeds, BLOCK):
        count = min(BLOCK, seeds - block)
        grid.append(Cell({**settings, "start": "gaussian", "seeds": count}, seed=block))
    if scale is not Scale.SMOKE:
        grid.append(Cell({**settings, "start": "zero", "seeds": BLOCK}, seed=0))
    return tuple(grid)


def _problems(cell: Cell) -> tuple[TokenSelection, Array]:
    """The block's data and starts; seed k is the same problem in every block and scale."""
    s = cell.settings

    def draw(seed: Array) -> tuple[TokenSelection, Array]:
        key = jax.random.fold_in(jax.random.key(0), seed)
        data = make_token_selection(key, s["n"], s["T"], s["d"])
        return data, jax.random.normal(jax.random.fold_in(key, 1), (s["d"], s["d"]))

    drawn = jax.jit(jax.vmap(draw), compiler_options=CHEAP_COMPILATION)
    data, start = drawn(cell.seed + jnp.arange(s["seeds"]))
    return data, jnp.zeros_like(start) if s["start"] == "zero" else start


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Train a block of seeds with each p and measure every path against the SVMs of every q."""
    s = cell.settings
    data, start = _problems(cell)
    paths = {
        p: train_selection_ensemble(
            data,
            start,
            p=p,
            learning_rate=s["rate"],
            steps=steps,
            record_at=log_spaced(steps, RECORDS),
        )
        for p, steps in zip(EXPONENTS, s["steps"], strict=True)
    }
    tokens = {p: selected_tokens(path.attention[:, -1]) for p, path in paths.items()}
    found: dict[str, np.ndarray] = {}
    for p, path in paths.items():
        apart = jax.jit(jax.vmap(jax.vmap(partial(direction_divergence, p=p), (0, None))))
        curves, own_tokens, solved = [], [], []
        for q in EXPONENTS:
            goal, certified = _solved(data, tokens[p], q)
            curves.append(np.asarray(apart(path.W, goal)))
            solved.append(certified)
            theirs, _ = _solved(data, tokens[q], q)
            own_tokens.append(np.asarray(apart(path.W, theirs))[:, -1])
            if q == p:
                optimal = np.asarray(_optimal(data, tokens[p], goal))
                found[f"locally_optimal_{p:g}"] = optimal & certified
        found[f"step_{p:g}"] = np.asarray(path.steps)
        found[f"divergence_{p:g}"] = np.stack(curves, axis=1)
        found[f"own_tokens_{p:g}"] = np.stack(own_tokens, axis=1)
        found[f"solved_{p:g}"] = np.stack(solved, axis=1)
        found[f"tokens_{p:g}"] = np.asarray(tokens[p])
        norms = jnp.sum(jnp.abs(path.W) ** p, axis=(2, 3)) ** (1 / p)
        found[f"norm_{p:g}"] = np.asarray(norms)
    return found


_optimal = jax.jit(jax.vmap(is_locally_optimal))


def _solved(data: TokenSelection, tokens: Array, q: float) -> tuple[Array, np.ndarray]:
    """Attention SVMs of a block, NaN where no certificate was reached."""
    svm = attention_svm_batch(data.X, data.z, tokens, q)
    certified = np.asarray(svm.converged)
    return jnp.where(jnp.asarray(certified)[:, None, None], svm.value, jnp.nan), certified


def _gathered(records: Sequence[Record], start: str) -> dict[str, np.ndarray]:
    """The blocks of one start, seeds joined."""
    blocks = [r.arrays for r in records if r.cell.settings["start"] == start]
    if not blocks:
        return {}
    return {
        name: array if name.startswith("step") else np.concatenate([b[name] for b in blocks])
        for name, array in blocks[0].items()
    }


def _mean(values: np.ndarray) -> str:
    """Mean and standard error of the finite values."""
    kept = values[np.isfinite(values)]
    if len(kept) < 2:
        return "not available"
    return f"{kept.mean():.4f} ± {kept.std(ddof=1) / np.sqrt(len(kept)):.4f}"


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Final divergence to each SVM, norm and locally optimal share, beside the references."""
    import pandas as pd

    gaussian, zero = _gathered(records, "gaussian"), _gathered(records, "zero")
    rows = []
    for p, (k, q) in itertools.product(EXPONENTS, enumerate(EXPONENTS)):
        row: dict[str, object] = {"p": p, "SVM of q": q}
        if gaussian:
            row["seeds"] = len(gaussian[f"norm_{p:g}"])
            row["D"] = _mean(gaussian[f"divergence_{p:g}"][:, k, -1])
            row["D, tokens of q"] = _mean(gaussian[f"own_tokens_{p:g}"][:, k])
        if zero:
            row["D from W(0) = 0"] = _mean(zero[f"divergence_{p:g}"][:, k, -1])
        row["D in the figure"] = FIGURE.get((p, q), np.nan)
        if p == q and gaussian:
            reference, norm, optimal = REFERENCE[p]
            row["D, reference"] = reference
            row["norm"] = float(gaussian[f"norm_{p:g}"][:, -1].mean())
            row["norm, reference"] = norm
            row["problems locally optimal"] = float(gaussian[f"locally_optimal_{p:g}"].mean())
            row["samples, reference"] = optimal
            row["SVMs unsolved"] = int((~gaussian[f"solved_{p:g}"]).sum())
        rows.append(row)
    return pd.DataFrame(rows)


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """One axis for each training p: divergence to the three SVMs against the step."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), sharey=True, layout="constrained")
    found = _gathered(records, "gaussian")
    own, others = [], []
    for axis, p in zip(axes, EXPONENTS, strict=True):
        axis.set_title(f"training p = {p:g}")
        axis.set_xlabel("step k + 1")
        if not found:
            continue
        steps = found[f"step_{p:g}"] + 1
        for k, q in enumerate(EXPONENTS):
            curves = found[f"divergence_{p:g}"][:, k]
            middle = np.nanmedian(curves, axis=0)
            low, high = np.nanquantile(curves, [0.25, 0.75], axis=0)
            (line,) = axis.loglog(steps, middle, label=f"SVM of q = {q:g}")
            axis.fill_between(steps, low, high, alpha=0.2, color=line.get_color())
            (own if q == p else others).append(middle[-1])
            if (p, q) in FIGURE:
                axis.plot(steps[-1], FIGURE[p, q], "o", mfc="none", color=line.get_color())
    axes[0].set_ylabel("directional Bregman divergence")
    axes[0].legend(frameon=False)
    closest = all(a < b for a, b in zip(own, np.reshape(others, (-1, 2)).min(axis=1), strict=True))
    answer = "the SVM of its own p in every panel" if closest else "not always that of its own p"
    caption = (
        "Which attention SVM does mirror descent approach? Median over seeds and quartiles; the "
        f"nearest at the last step is {answer}. Circles: end points read from the released figure."
    )
    return (Panel("Direction against step", caption, figure),)


EXPERIMENT = Experiment(
    name="direction",
    paper="julistiono2024optimizing",
    title="Direction of mirror descent",
    question="Does l_p mirror descent converge to the attention SVM of its own p?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        f"{name}_{p:g}": axes
        for p in EXPONENTS
        for name, axes in {
            "step": (f"step_{p:g}",),
            "divergence": ("member", "q", f"step_{p:g}"),
            "own_tokens": ("member", "q"),
            "solved": ("member", "q"),
            "norm": ("member", f"step_{p:g}"),
            "locally_optimal": ("member",),
            "tokens": ("member", "sample"),
        }.items()
    },
    note=NOTE,
)
