r"""Does the choice of p change which tokens joint training selects?

Joint normalised mirror descent on the value head v and on W, both from zero, on the toy problem
of the paper: two samples of three tokens in the plane, each queried by its first token.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from attlas.data.token_selection import TokenSelection
from attlas.measures.attention.direction import direction_divergence
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.solvers.attention_svm import attention_svm
from attlas.solvers.lp_svm import lp_svm
from attlas.tasks.token_selection.training import train_selection
from attlas.training.trajectory import log_spaced

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

STEPS = {1.75: 1500, 2.0: 2000, 3.0: 20000}
PAPER_TOKENS = {1.75: (1, 0), 2.0: (1, 0), 3.0: (0, 0)}
"""Tokens that the released code selects, counted from 0."""
TOKENS = (
    ((-2.7, 1.2), (1.4, 2.1), (1.3, -0.1)),
    ((0.4, -2.2), (-1.1, -0.4), (0.9, 0.1)),
)
LABELS = (1.0, -1.0)


def toy_problem() -> TokenSelection:
    """The two samples, with z_i the first token and v = 0."""
    X = jnp.asarray(TOKENS)
    return TokenSelection(X, jnp.asarray(LABELS), X[:, 0], jnp.zeros(2))


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each p; the smoke scale makes a tenth of the steps."""
    short = 10 if scale is Scale.SMOKE else 1
    return tuple(Cell({"p": p, "steps": n // short, "rate": 0.1}) for p, n in STEPS.items())


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Train v and W together and measure both against the SVMs of the selected tokens."""
    s = cell.settings
    p, data = s["p"], toy_problem()
    path = train_selection(
        data,
        jnp.zeros((2, 2)),
        p=p,
        learning_rate=s["rate"],
        steps=s["steps"],
        record_at=log_spaced(s["steps"], 48),
        joint=True,
    )
    assert path.v is not None
    attention = np.asarray(path.attention)
    tokens = attention[-1].argmax(axis=1)
    features = np.take_along_axis(np.asarray(data.X), tokens[:, None, None], axis=1)[:, 0]
    W_svm = attention_svm(data.X, data.z, tokens, p)
    v_svm = lp_svm(features, data.y, p)
    context = jnp.einsum("snt,ntd->snd", path.attention, data.X)
    margins = np.asarray(data.y[None, :] * jnp.einsum("snd,sd->sn", context, path.v))

    def apart(path_values, svm) -> np.ndarray:
        if not bool(svm.converged):
            return np.full(len(path.steps), np.nan)
        each = jax.jit(jax.vmap(partial(direction_divergence, p=p), (0, None)))
        return np.asarray(each(path_values, svm.value))

    return {
        "step": np.asarray(path.steps),
        "attention": attention,
        "probability": 1 / (1 + np.exp(-margins)),
        "tokens": tokens,
        "divergence_W": apart(path.W, W_svm),
        "divergence_v": apart(path.v, v_svm),
        "W": np.asarray(path.W),
        "v": np.asarray(path.v),
    }


def _by_exponent(records: Sequence[Record]) -> dict[float, Mapping[str, np.ndarray]]:
    found = {r.cell.settings["p"]: r.arrays for r in records}
    return {p: found[p] for p in STEPS if p in found}


def _first_step_above(steps: np.ndarray, values: np.ndarray, level: float) -> float:
    """First recorded step from which on every sample stays above a level."""
    above = (values > level).all(axis=1)
    stays = np.flip(np.logical_and.accumulate(np.flip(above)))
    return float(steps[np.argmax(stays)]) if stays.any() else np.nan


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Selected tokens beside the paper's, final directions, and when training settles."""
    rows = []
    for p, a in _by_exponent(records).items():
        chosen = np.take_along_axis(a["attention"], a["tokens"][None, :, None], axis=2)[:, :, 0]
        rows.append(
            {
                "p": p,
                "tokens": str(tuple(int(t) for t in a["tokens"])),
                "tokens, paper": str(PAPER_TOKENS[p]),
                "attention > 0.9 from step": _first_step_above(a["step"], chosen, 0.9),
                "probability > 0.9 from step": _first_step_above(a["step"], a["probability"], 0.9),
                "D(W) to its SVM": a["divergence_W"][-1],
                "D(v) to its SVM": a["divergence_v"][-1],
            }
        )
    import pandas as pd

    return pd.DataFrame(rows)


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """Attention of each token, and the directions of W and v, against the step."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(10, 5.4), sharex="col", layout="constrained")
    chosen = []
    for column, (p, a) in enumerate(_by_exponent(records).items()):
        top, bottom = axes[0, column], axes[1, column]
        top.set_title(f"p = {p:g}")
        for sample, style in ((0, "-"), (1, "--")):
            for token in range(3):
                label = f"sample {sample}, token {token}"
                weights = a["attention"][:, sample, token]
                top.semilogx(a["step"] + 1, weights, style, color=f"C{token}", label=label)
        bottom.loglog(a["step"] + 1, a["divergence_W"], label="W to its attention SVM")
        bottom.loglog(a["step"] + 1, a["divergence_v"], label="v to its SVM")
        bottom.set_xlabel("step k + 1")
        chosen.append(f"{tuple(int(t) for t in a['tokens'])} at p = {p:g}")
    axes[0, 0].set_ylabel("attention weight")
    axes[1, 0].set_ylabel("directional divergence")
    axes[0, 0].legend(frameon=False, fontsize=7)
    axes[1, 0].legend(frameon=False, fontsize=7)
    caption = (
        "Does p change which tokens are selected? The same problem from the same start ends on "
        f"tokens {'; '.join(chosen)} (one number a sample, counted from 0)."
    )
    return (Panel("Joint training of v and W", caption, figure),)


EXPERIMENT = Experiment(
    name="joint",
    paper="julistiono2024optimizing",
    title="Joint training of value head and attention",
    question="Does the choice of p change which tokens joint training selects?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        "step": ("step",),
        "attention": ("step", "sample", "token"),
        "probability": ("step", "sample"),
        "tokens": ("sample",),
        "divergence_W": ("step",),
        "divergence_v": ("step",),
        "W": ("step", "row", "column"),
        "v": ("step", "row"),
    },
    note="Released settings: v(0) = 0, W(0) = 0, rate 0.1, each gradient over its own dual norm.",
)
