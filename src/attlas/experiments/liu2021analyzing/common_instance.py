r"""What do five papers say of one attention head, trained once, and what is its gap in truth?

One head that reads the last token, f(X) = u' X' softmax(X W' x_T), is trained by gradient descent
on a tokenized mixture; all seeds and the trainings that leave a sample out are one program. Every
measurement of the five papers is taken on the same parameters.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

from attlas.audit.head_audit import (
    AUDIT_DIMS,
    AuditedHeads,
    AuditSettings,
    audit_heads,
)
from attlas.audit.head_rows import HeadRow, head_rows, theorem_2_applies
from attlas.audit.ranked_bounds import ranked_bounds
from attlas.audit.single_head_path import HeadPath, single_head_path
from attlas.bounds.optimisation.deora2023_loss import deora2023_beta_2
from attlas.data.tokenized_mixture import make_tokenized_mixture, sample_mixture
from attlas.measures.statistics.stability import average_model_stability
from attlas.models.attention.multi_head import Decoder, MultiHead, make_multi_head
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.training.gradient_descent import descend

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

DELTA = 0.05
COLOURS = {"truth": "#222222", "julistiono2024": "#0072b2", "deora2023": "#d55e00",
           "gu2024": "#009e73", "trauger2023": "#aa4499", "liu2021": "#b8860b"}  # fmt: skip
NOTE = (
    "Data: (DM1) of deora2023optimization, T = 8 tokens in R^8, one relevant, three irrelevant "
    "patterns, noise of norm 1. The head reads the last token. It is the model of "
    "julistiono2024optimizing with the query x_T (both u and W trained), that of "
    "deora2023optimization with one head and a last-token decoder, one layer of "
    "trauger2023sequence with x_T in the place of [CLS], W_v = W_c = I and sigma the identity, and "
    "a network of liu2021analyzing with two hidden units +-u; gu2024exploring speaks of another "
    "network, of its theorem only the kernel's part is evaluated. The step is 1 / beta_2 at a "
    "radius that no decoder leaves, so every step lowers the risk. Bounds of trauger2023sequence "
    "are on the ramp risk and include a union bound, as norms were read off after training; those "
    "of deora2023optimization are on the expected gap of the logistic risk, with theta_K itself as "
    "the target. Stability leaves out the first samples only, an unbiased choice."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each number of samples."""
    usual = {
        "T": 8,
        "d": 8,
        "M": 3,
        "Z": 1.0,
        "Z_mu": 0.4,
        "deviation": 0.2,
        "tau": 0.1,
        "gamma": 0.5,
    }
    sizes = {
        Scale.SMOKE: {"fresh": 80, "seeds": 2, "left_out": 2, "radius": 6.0, "steps": 200,
                      "records": 5, "searches": 3, "climb": 5},
        Scale.QUICK: {"fresh": 2000, "seeds": 5, "left_out": 2, "radius": 8.0, "steps": 45_000,
                      "records": 15, "searches": 5, "climb": 100},
        Scale.PAPER: {"fresh": 20_000, "seeds": 10, "left_out": 16, "radius": 14.0,
                      "steps": 200_000, "records": 25, "searches": 16, "climb": 2000},
    }[scale]  # fmt: skip
    samples = {Scale.SMOKE: (12,), Scale.QUICK: (32,), Scale.PAPER: (32, 128, 512)}[scale]
    return tuple(Cell({**usual, **sizes, "n": n}) for n in samples)


class _Data(NamedTuple):
    """Samples of every seed, their relevant tokens, and the bound of the tokens' norms."""

    X: np.ndarray
    y: np.ndarray
    fresh_X: np.ndarray
    fresh_y: np.ndarray
    relevant: np.ndarray
    fresh_relevant: np.ndarray
    R: float

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Training and fresh samples with their labels."""
        return self.X, self.y, self.fresh_X, self.fresh_y


def _data(cell: Cell) -> _Data:
    """One mixture a seed, with patterns of norm 1 and one relevant token of T."""
    s, parts, R = cell.settings, [], 0.0
    for seed in range(s["seeds"]):
        key = jax.random.fold_in(jax.random.key(cell.seed), seed)
        mixture = make_tokenized_mixture(
            key, d=s["d"], M=s["M"], zeta=1 / s["T"], Z_mu=s["Z_mu"], Z_nu=s["Z_mu"], Z=s["Z"]
        )
        train, fresh = (
            sample_mixture(jax.random.fold_in(key, k), mixture, s[size], s["T"])
            for k, size in ((1, "n"), (2, "fresh"))
        )
        R = max(R, float(mixture.R))
        parts.append((train.X, train.y, fresh.X, fresh.y, train.relevant, fresh.relevant))
    stacked = [np.stack([np.asarray(a) for a in each]) for each in zip(*parts, strict=True)]
    X, y, fresh_X, fresh_y, relevant, fresh_relevant = stacked
    return _Data(X, y, fresh_X, fresh_y, relevant, fresh_relevant, R)


def _start(cell: Cell) -> MultiHead:
    """Small Gaussian parameters, other ones for each seed."""
    s, rng = cell.settings, np.random.default_rng([cell.seed, 7])
    shapes = (s["seeds"], 1, s["d"]), (s["seeds"], 1, s["d"], s["d"])
    start = [jax.device_put(s["deviation"] * rng.normal(size=shape)) for shape in shapes]
    one = make_multi_head(1, s["T"], s["d"], Decoder.LAST)
    return jax.tree.unflatten(jax.tree.structure(one), start)


@eqx.filter_jit
def _train(
    start: MultiHead, data: tuple[Array, ...], weights: Array, rate: Array, schedule: Array
) -> tuple[MultiHead, Array, HeadPath]:
    """Paths on all samples, the average stability along them, and what is seen on them."""

    def one(head: MultiHead, X: Array, y: Array, *fresh: Array) -> tuple:
        every = jax.vmap(lambda w: descend(head, X, y, w, rate, schedule, "logistic"))(weights)
        whole, without = (
            jax.tree.map(lambda a, part=part: a[part], every.params) for part in (0, slice(1, None))
        )
        stability = average_model_stability(whole, without)
        return whole, stability, single_head_path(whole, X, y, *fresh)

    return jax.vmap(one)(start, *data)


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Train, measure as each paper does, and evaluate every bound."""
    s, data = cell.settings, _data(cell)
    rate = 1 / float(deora2023_beta_2(1, s["d"], data.R, s["radius"], 1, "sharp"))
    late = np.geomspace(s["steps"] / 1000, s["steps"], s["records"] - 1)
    schedule = np.unique([0, *np.ceil(late).astype(int)])
    blind = np.ones((1 + s["left_out"], s["n"]))
    # samples are exchangeable: the first ones stand for all
    blind[np.arange(1, 1 + s["left_out"]), np.arange(s["left_out"])] = 0
    given = [jax.device_put(a) for a in (*data.arrays, blind, np.float64(rate), schedule)]
    path, stability, seen = jax.tree.map(
        np.asarray, _train(_start(cell), tuple(given[:4]), *given[4:])
    )
    heads = AuditedHeads(path, seen, stability, *data.arrays, data.R, rate, schedule)
    settings = AuditSettings(s["tau"], s["gamma"], DELTA, s["searches"], s["climb"], seed=cell.seed)
    mass = np.einsum("esnt,ent->esn", seen.attention, data.fresh_relevant).mean(-1)
    picked = np.take_along_axis(data.relevant, seen.tokens[..., None], 2).mean(axis=(1, 2))
    return {
        "step": schedule,
        "relevant_mass": mass,
        "relevant_selected": picked,
        "certified": seen.norms[..., 0].max(axis=1) <= s["radius"],
        **audit_heads(heads, settings),
    }


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """One row a measurement: paper, quantity, value over the seeds, what it says."""
    import pandas as pd

    rows = []
    for record in records:
        n, gamma = (record.cell.settings[name] for name in ("n", "gamma"))
        for row in head_rows(record.arrays, n, gamma):
            finite = row.values[~np.isnan(row.values)]
            numbers = (
                (np.median(finite), finite.min(), finite.max()) if finite.size else [np.nan] * 3
            )
            rows.append({
                "samples": n, "paper": row.paper, "quantity": row.quantity,
                **dict(zip(("median", "least", "largest"), map(float, numbers), strict=True)),
                "says": row.says,
            })  # fmt: skip
    return pd.DataFrame(rows)


def _band(axis: "Axes", step: np.ndarray, values: np.ndarray, colour: str, label: str, **style):
    """Median over the seeds, with their range."""
    axis.plot(step, np.median(values, axis=0), color=colour, lw=1.6, label=label, **style)
    axis.fill_between(step, values.min(0), values.max(0), color=colour, alpha=0.13, lw=0)


def _gaps(a: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """Fresh less training, by seed and record."""
    return a[name][..., 1] - a[name][..., 0]


def _draw_training(axes: np.ndarray, a: Mapping[str, np.ndarray], step: np.ndarray) -> None:
    """What happens, what the attention SVM says, and margins."""
    error, select, margin = axes
    _band(error, step, a["error"][..., 0], "0.55", "error, training", ls="--")
    _band(error, step, a["error"][..., 1], COLOURS["truth"], "error, fresh samples")
    _band(error, step, _gaps(a, "ramp"), "#cc3311", "true gap of the ramp risk")
    error.set_title("What happens", fontsize=10)
    blue = COLOURS["julistiono2024"]
    share = a["selection"] / a["svm_margin"][:, None]
    _band(select, step, share, blue, "attention margin of $W$ / largest")
    cosine = 1 - a["svm_divergence"]
    _band(select, step, cosine, "#56b4e9", "cosine with the attention SVM", ls="--")
    select.axhline(0, color="0.6", lw=0.7)
    select.set_ylim(-1.05, 1.05)
    select.set_title("Attention SVM (julistiono2024)", fontsize=10)
    orange = COLOURS["deora2023"]
    _band(margin, step, a["decoder"], orange, r"least margin over $\|u\|$")
    level = np.nanmedian(a["margin_uniform"]) / np.sqrt(2)
    margin.axhline(level, color="0.4", ls=":", lw=1.2, label="best with $W=0$")
    best = np.median(a["margin_reachable"] / a["norms"][:, -1, 0])
    margin.axhline(best, color=orange, ls="--", lw=1.2, label="best found at the last norm")
    margin.set_title("Margins (deora2023)", fontsize=10)


def _draw_measures(axes: np.ndarray, a: Mapping[str, np.ndarray], step: np.ndarray) -> None:
    """Kernel, concentration, and bounds on the gap."""
    kernel, rows, bound = axes
    _band(kernel, step[1:], a["margin_drift"][:, 1:], COLOURS["gu2024"], r"$\|K_k-K_0\|/\|K_0\|$")
    _band(kernel, step[1:], a["margin_moved"][:, 1:], "#66c2a5",
          r"$\|K_k-K_0\|_2\,/\,(\lambda/2)$", ls="--")  # fmt: skip
    kernel.axhline(1, color="0.6", lw=0.7)
    kernel.annotate("above: no longer lazy", (step[1], 1), (0, 3), textcoords="offset points",
                    fontsize=7.5, color="0.4")  # fmt: skip
    kernel.set_yscale("log")
    kernel.set_title("Tangent kernel (gu2024)", fontsize=10)
    gold = COLOURS["liu2021"]
    _band(rows, step, a["land_relative_top"], gold, r"$\ell_2$ share of the top $\sqrt{T}$ weights")
    _band(rows, step, a["land_unexplained"], "#7f6000", "unexplained variance, (A3)", ls="--")
    _band(rows, step, a["relevant_mass"], COLOURS["truth"], "weight of the relevant token", ls=":")
    rows.set_ylim(0, 1.02)
    rows.set_title("Concentration (liu2021)", fontsize=10)
    orange = COLOURS["deora2023"]
    gap = np.median(_gaps(a, "risk"), axis=0)
    bound.plot(step, np.where(gap > 0, gap, np.nan), color=COLOURS["truth"], lw=2.2,
               label="true gap, logistic risk")  # fmt: skip
    _band(bound, step[1:], a["stability_gap"][:, 1:], "#f0a36b", "leave-one-out stability")
    _band(bound, step[1:], a["bound_gap_sharp"][:, 1:], orange, "Theorem 2, sharp", ls="--")
    _band(bound, step[1:], a["bound_gap"][:, 1:], "#8c3800", "Theorem 2, printed", ls=":")
    bound.axhline(np.log(2), color="0.6", lw=0.7)
    bound.annotate("log 2", (step[1], np.log(2)), (0, 3), textcoords="offset points",
                   fontsize=7.5, color="0.4")  # fmt: skip
    bound.set(yscale="log", ylim=(1e-3, None))
    bound.set_title("Bounds on the gap (deora2023)", fontsize=10)


def _path_panel(record: Record) -> Panel:
    """All papers along the training."""
    import matplotlib.pyplot as plt

    a = record.arrays
    step = np.maximum(a["step"], a["step"][1] / 1.3)  # the start, on a logarithmic axis
    figure, axes = plt.subplots(2, 3, figsize=(11.5, 7.2), layout="constrained")
    _draw_training(axes[0], a, step)
    _draw_measures(axes[1], a, step)
    for axis in axes.flat:
        axis.set(xscale="log", xlabel="step $k$", xlim=(step[0], step[-1]))
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    holds, useful = theorem_2_applies(a), a["bound_gap_sharp"] < np.log(2)
    said = np.mean(holds[:, 1:] & useful[:, 1:])
    caption = (
        f"How do five papers see one head learn from {record.cell.settings['n']} samples? Lines "
        f"are medians of {len(a['risk'])} seeds, bands their range. In the end the attention "
        f"margin is {np.median(a['selection'][:, -1] / a['svm_margin']):.0%} of the largest of the "
        f"selected tokens, the kernel has moved {np.median(a['margin_drift'][:, -1]):.1f} times "
        f"its norm, and {np.median(a['land_relative_top'][:, -1]):.0%} of a row's norm is in two "
        "of eight weights. Theorem 2 is dashed and dotted as its conditions must be checked: they "
        f"hold with a bound below log 2 at {said:.0%} of the records."
    )
    return Panel(f"One head, n = {record.cell.settings['n']}", caption, figure)


def _draw_ladder(axis: "Axes", rows: list[HeadRow]) -> None:
    """One line a row: median and range of what is positive, hollow where conditions fail."""
    for height, (paper, _, values, says) in enumerate(reversed(rows)):
        known, colour = values[(values > 0) & np.isfinite(values)], COLOURS[paper]
        middle = float(np.nanmedian(values)) if known.size else 0.0
        if not 0 < middle < np.inf:
            text = "unbounded" if middle > 0 else "not positive"
            axis.annotate(text, (0.01, height), xycoords=("axes fraction", "data"),
                          va="center", fontsize=8, color=colour)  # fmt: skip
            continue
        axis.plot([known.min(), known.max()], [height] * 2, color=colour, lw=3.5, alpha=0.35)
        axis.plot(middle, height, "o", ms=7, color=colour, mfc="white" if says else colour)
        text = f"{middle:.2g}" if middle < 100 else f"{middle:,.0f}"
        axis.annotate(text, (known.max(), height), (7, 0), textcoords="offset points",
                      va="center", fontsize=8, color=colour)  # fmt: skip
    axis.set_yticks(range(len(rows)), [row.quantity for row in reversed(rows)], fontsize=8.5)
    for label, row in zip(axis.get_yticklabels(), reversed(rows), strict=True):
        label.set_color(COLOURS[row.paper])
    axis.set_ylim(-0.6, len(rows) - 0.4)
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x", color="0.92")
    axis.set_axisbelow(True)
    axis.spines[["top", "right", "left"]].set_visible(False)


def _ladder_panel(record: Record) -> Panel:
    """All margins, all bounds against the true gap, and what would make the bounds speak."""
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    n, ladders = record.cell.settings["n"], ranked_bounds(record.arrays)
    rows = ladders.gaps
    figure, axes = plt.subplot_mosaic(
        [["margins", "asked"], ["gap", "asked"]], figsize=(11.5, 7.6), layout="constrained",
        height_ratios=[8, 12],
    )  # fmt: skip
    upper, left, right = (axes[name] for name in ("margins", "gap", "asked"))
    _draw_ladder(upper, ladders.margins)
    upper.set_xscale("log")
    upper.margins(x=0.12)
    upper.set_title("Margins ($W$ at norm 1, the head at norm $\\sqrt{2}$)", fontsize=10)
    _draw_ladder(left, rows)
    truth = np.concatenate([row.values for row in rows if row.paper == "truth"])
    low, high = max(truth[truth > 0].min(initial=1.0), 1e-3), max(truth.max(), 2e-3)
    left.axvspan(low, high, color="0.5", alpha=0.12, lw=0)
    left.axvline(1, color="0.3", ls="--", lw=1)
    left.set(xscale="log", xlim=(low / 2, 10 * max(row.values.max() for row in rows)))
    left.set_title("The true gap and its bounds (dashed: range of the ramp loss)", fontsize=10)
    _draw_ladder(right, ladders.required_sizes)
    right.axvline(np.log10(n), color="0.3", ls="--", lw=1)
    right.set_xscale("symlog", linthresh=20, linscale=2.5)
    right.set_xlim(0, 900)
    right.set_title(f"$\\log_{{10}}$ of what is asked for (dashed: n = {n})", fontsize=10)
    right.set_xticks([0, 5, 10, 15, 20, 100, 300], ["0", "5", "10", "15", "20", "100", "300"])
    handles = [Line2D([], [], marker="o", ls="", color=c, label=p) for p, c in COLOURS.items()]
    handles.append(Line2D([], [], marker="o", ls="", color="0.4", mfc="white",
                          label="conditions fail"))  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=7, frameon=False, fontsize=9)
    return Panel(f"Margins, bounds and the truth, n = {n}", _ladder_caption(rows, n), figure)


def _ladder_caption(rows: list[HeadRow], n: int) -> str:
    """Which bound is nearest, and by how much it misses."""
    bounds = [(float(np.median(r.values)), r) for r in rows if r.paper != "truth" and not r.says]
    size, best = min(bounds, key=lambda pair: pair[0])
    gap = next(float(np.median(r.values)) for r in rows if r.quantity == "true gap, ramp risk")
    state = "none of them says anything" if size >= 1 else "it says something"
    return (
        f"Does any bound of five papers see the gap of one head trained on {n} samples? The true "
        f"gap of the ramp risk is {gap:.2f}, the smallest bound whose conditions hold is "
        f"{size:.3g} ({best.quantity}): {state}. Points are medians over the seeds, bars "
        "their range. Bounds of trauger2023 stop at the largest output, 2 ||u||_1 max |x|, and "
        "differ by confidence and union only. Right: the samples, heads or units from which each "
        "theorem would speak, in decades; samples of liu2021 are for a squared error of 0.25 with "
        "hidden constants 1, the corrected one with all constants and (A3) taken for granted."
    )


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """The training as five papers see it, and all bounds against the true gap."""
    return tuple(panel for r in records for panel in (_path_panel(r), _ladder_panel(r)))


EXPERIMENT = Experiment(
    name="common_instance",
    paper="liu2021analyzing",
    title="One head through five papers",
    question="What do all measurements and bounds of five papers say of one trained head?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        **AUDIT_DIMS,
        "step": ("step",),
        "relevant_mass": ("seed", "step"),
        "relevant_selected": ("seed",),
        "certified": ("seed",),
    },
    note=NOTE,
)
