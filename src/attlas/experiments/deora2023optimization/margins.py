r"""Which margin does gradient descent reach: the linear one, the NTK's, or that of attention?

Gradient descent on the tokenized mixture, against the sparsity zeta, from zero, from one
randomised step and from Gaussian weights. What it reaches is put on the three scales on which
margins of the paper live: decoders of norm 1 with free attention weights (gamma_lin,
gamma_attn), all parameters of norm sqrt(2) (the global margin of section 7), and the model
linearised at its start (the NTK margin, gamma_star).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.bounds.optimisation.deora2023_mixture import (
    deora2023_first_step_slope,
    deora2023_gamma_attention,
    deora2023_gamma_linear,
    deora2023_gamma_star,
)
from attlas.data.tokenized_mixture import (
    MixtureSamples,
    TokenizedMixture,
)
from attlas.experiments.deora2023optimization.instances import draw_phases
from attlas.kernels.multi_head_ntk import ntk_gram
from attlas.measures.attention.margins import decoder_margin, margins, normalised_margin
from attlas.models.attention.multi_head import MultiHead, make_multi_head, parameter_norm
from attlas.optim.attention_starts import gaussian_heads
from attlas.optim.one_step import one_step_initialisation
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.solvers.global_margin import global_margin
from attlas.solvers.kernel_svm import kernel_svm
from attlas.solvers.linear_margin import linear_margin
from attlas.training.gradient_descent import gradient_descent_ensemble
from attlas.training.trajectory import log_spaced

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

STARTS = ("zero", "one step", "Gaussian")
COLOURS = dict(zip(STARTS, ("#0072b2", "#d55e00", "#009e73"), strict=True))
MARKERS = dict(zip(STARTS, "os^", strict=True))
RADIUS = 2.0**0.5
"""The norm of P3 and of section 7; margins of unit vectors are multiplied by it."""
REACHED = 0.99
"""Share of a margin from which on it counts as reached."""
RECORDS = 25
NOTE = (
    "Noise: Z_mu = Z_nu = .02 S^2, Z = .2 S. kernel_svm and linear_margin answer for parameters of "
    "norm 1; P3 and section 7 have norm sqrt(2), so NTK margins and the linear margin of the "
    "second axis are multiplied by it. gamma_attn lets W grow without bound and is comparable "
    "on the first axis only. The global margin is the best of a search with one head: a certified "
    "lower bound, below the ceiling in the table. gamma_star is (7) with P = 0; the table has it "
    "with the P of the first phase that was drawn, too. Margin per distance: sqrt(2) min_i y_i "
    "(Phi(X_i; theta_k) - Phi(X_i; theta_0)) / ||theta_k - theta_0||; the model linearised at "
    "theta_0 cannot exceed the NTK margin there."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each sparsity and seed."""
    settings = {"T": 10, "d": 6, "M": 2, "S": 2.0, "rate": 0.3, "deviation": 0.1}
    settings |= {
        Scale.SMOKE: {"n": 12, "H": 2, "steps": 30, "first": 200, "searches": 4, "climb": 20},
        Scale.QUICK: {"n": 30, "H": 4, "steps": 1500, "first": 4000, "searches": 8, "climb": 300},
        Scale.PAPER: {"n": 100, "H": 16, "steps": 10**5, "first": 10**5, "searches": 32,
                      "climb": 3000},
    }[scale]  # fmt: skip
    tenths = {Scale.SMOKE: (3, 7), Scale.QUICK: (1, 3, 5, 8), Scale.PAPER: range(1, 10)}[scale]
    seeds = 3 if scale is Scale.PAPER else 1
    return tuple(
        Cell({**settings, "zeta": tenth / 10}, seed) for seed in range(seeds) for tenth in tenths
    )


def _starts(cell: Cell, first: MixtureSamples) -> tuple[MultiHead, ...]:
    """Zero, one randomised step on the first phase's samples, independent Gaussian entries."""
    s = cell.settings
    key = jax.random.fold_in(jax.random.key(cell.seed), 3)
    zero = make_multi_head(s["H"], s["T"], s["d"], dtype=first.X.dtype)
    random = gaussian_heads(zero, s["deviation"], [cell.seed, 4])
    return zero, one_step_initialisation(key, first.X, first.y, s["H"]), random


def _first_step_error(start: MultiHead, mixture: TokenizedMixture) -> float:
    """||p|| of U_h = alpha_h 1 (zeta/4 u_star + p)', whichever the sign of alpha_h."""
    signal = deora2023_first_step_slope(mixture.zeta) * (mixture.patterns[0] - mixture.patterns[1])
    row = start.U[0, 0]
    return float(jnp.minimum(jnp.linalg.norm(row - signal), jnp.linalg.norm(row + signal)))


def _gamma_star(cell: Cell, mixture: TokenizedMixture, error: float) -> Array:
    """Equation (7) as printed, with the given P."""
    s, m = cell.settings, mixture
    return deora2023_gamma_star(
        *(s["T"], s["S"], s["zeta"], s["M"]),
        *(m.Z_mu, m.Z_nu, m.Z, error),
        constants="printed",
    )


@jax.jit
def _reached(path: MultiHead, X: Array, y: Array) -> tuple[Array, Array, Array]:
    """Decoder margin, margin on the sphere and margin per distance, by start and record."""

    def along(models: MultiHead) -> tuple[Array, Array, Array]:
        start = jax.tree.map(lambda a: a[0], models)
        before = margins(start, X, y)

        def one(model: MultiHead) -> tuple[Array, Array, Array]:
            moved = parameter_norm(jax.tree.map(jnp.subtract, model, start))
            per_distance = RADIUS * jnp.min(margins(model, X, y) - before) / moved
            return decoder_margin(model, X, y), normalised_margin(model, X, y), per_distance

        return jax.vmap(one)(models)

    return jax.vmap(along)(path)


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Train from every start, solve for the margins, and measure what was reached."""
    s = cell.settings
    mixture, train, first = draw_phases(cell.settings, jax.random.key(cell.seed))
    starts = _starts(cell, first)
    path = gradient_descent_ensemble(
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts),
        train.X,
        train.y,
        step_size=s["rate"],
        steps=s["steps"],
        record_at=log_spaced(s["steps"], RECORDS),
    )
    found = dict(
        zip(("decoder", "sphere", "per_distance"), _reached(path.params, train.X, train.y),
            strict=True)
    )  # fmt: skip
    tangent = [kernel_svm(ntk_gram(model, train.X), train.y) for model in starts]
    linear = linear_margin(train.X, train.y)
    key = jax.random.fold_in(jax.random.key(cell.seed), 5)
    best = global_margin(
        train.X, train.y, 1, radius=RADIUS, starts=s["searches"], steps=s["climb"], key=key
    )
    error = _first_step_error(starts[1], mixture)
    found |= {
        "step": path.steps,
        "loss": path.loss,
        "ntk": [RADIUS * float(svm.value) if bool(svm.converged) else np.nan for svm in tangent],
        "linear": float(linear.value) if bool(linear.converged) else np.nan,
        "global_lower": best.certificate["lower"],
        "global_upper": best.certificate["upper"],
        "searches_agree": best.stats["agreeing"],
        "gamma_lin": deora2023_gamma_linear(s["T"], s["S"], s["zeta"], mixture.Z_mu),
        "gamma_star": _gamma_star(cell, mixture, 0.0),
        "gamma_star_error": _gamma_star(cell, mixture, error),
        "gamma_attn": deora2023_gamma_attention(s["T"], s["S"]),
        "first_step_error": error,
    }
    return {name: np.asarray(value) for name, value in found.items()}


def _by_sparsity(records: Sequence[Record], name: str) -> tuple[np.ndarray, np.ndarray]:
    """The sparsities in order, and the values of one array: (zeta, seed, ...)."""
    zetas = sorted({r.cell.settings["zeta"] for r in records})
    values = [[r.arrays[name] for r in records if r.cell.settings["zeta"] == z] for z in zetas]
    seeds = min(len(row) for row in values)
    return np.array(zetas), np.array([row[:seeds] for row in values])


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Every margin of every cell, the formulas beside the solvers'."""
    rows = []
    for record in records:
        a = record.arrays
        row = {"zeta": record.cell.settings["zeta"], "seed": record.cell.seed}
        row |= {"linear: SVM": float(a["linear"]), "formula": float(a["gamma_lin"])}
        row |= {"gamma_attn": float(a["gamma_attn"])}
        for k, start in enumerate(STARTS):
            row[f"decoder margin from {start}"] = float(a["decoder"][k, -1])
        row["global: found"] = float(a["global_lower"])
        row["ceiling"] = float(a["global_upper"])
        row["searches that agree"] = int(a["searches_agree"])
        for k, start in enumerate(STARTS):
            row[f"on the sphere from {start}"] = float(a["sphere"][k, -1])
        for k, start in enumerate(STARTS):
            row[f"NTK margin at {start}"] = float(a["ntk"][k])
        row["gamma_star, P = 0"] = float(a["gamma_star"])
        row["P"] = float(a["first_step_error"])
        row["gamma_star with P"] = float(a["gamma_star_error"])
        rows.append(row)
    import pandas as pd

    return pd.DataFrame(rows)


def _draw_reached(axis, zetas: np.ndarray, values: np.ndarray, label: bool) -> None:
    """Mean over seeds of the last record from each start, with the range of the seeds."""
    for k, start in enumerate(STARTS):
        last = values[:, :, k, -1]
        middle = last.mean(axis=1)
        spread = np.abs(np.stack([last.min(axis=1), last.max(axis=1)]) - middle)
        axis.errorbar(
            zetas, middle, spread, fmt=MARKERS[start] + "-", color=COLOURS[start], ms=4, lw=1,
            label=f"reached from {start}" if label else None,
        )  # fmt: skip


def _draw_level(axis, records: Sequence[Record], name: str, style: str, **shown) -> None:
    """One solved or printed margin, mean over seeds, against the sparsity."""
    zetas, values = _by_sparsity(records, name)
    factor = shown.pop("factor", 1.0)
    axis.plot(zetas, factor * values.mean(axis=1), style, color="0.25", lw=1.2, **shown)


def _counted(hits: np.ndarray) -> str:
    return f"{int(hits.sum())} of {hits.size}"


def _sparsity_panel(records: Sequence[Record]) -> Panel:
    """The three scales side by side, against the sparsity."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10.5, 4.2), layout="constrained")
    reached = {}
    for axis, name in zip(axes, ("decoder", "sphere", "per_distance"), strict=True):
        zetas, reached[name] = _by_sparsity(records, name)
        _draw_reached(axis, zetas, reached[name], label=axis is axes[0])
        axis.set_xlabel("share of relevant tokens $\\zeta$")
    _draw_level(axes[0], records, "gamma_attn", "-", label=r"$\gamma_{attn}$ (softmax saturated)")
    _draw_level(axes[0], records, "linear", "--", label="linear margin, SVM")
    _draw_level(axes[0], records, "gamma_lin", ":", label=r"$\gamma_{lin}$, formula")
    best = r"global margin $\geq$ (search)"
    _draw_level(axes[1], records, "global_lower", "-", label=best)
    _draw_level(axes[1], records, "linear", "--", factor=RADIUS, label=r"$\sqrt{2}$ linear margin")
    tangent = _by_sparsity(records, "ntk")[1].mean(axis=1)
    for k, start in enumerate(STARTS):
        axes[2].plot(zetas, tangent[:, k], "--", color=COLOURS[start], lw=1.2,
                     label=f"NTK margin at {start}")  # fmt: skip
    _draw_level(axes[2], records, "gamma_star", ":", label=r"$\gamma_\star$ of (7), $P=0$")
    titles = (r"decoders of norm 1, $W$ free", r"$\|\theta\|=\sqrt{2}$",
              r"per distance $\|\theta-\theta_0\|=\sqrt{2}$")  # fmt: skip
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, fontsize=10)
        axis.legend(frameon=False, fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.17))
    axes[0].set_ylabel("least margin")
    return Panel("Margins against the sparsity", _sparsity_caption(records, reached), figure)


def _sparsity_caption(records: Sequence[Record], reached: Mapping[str, np.ndarray]) -> str:
    """What was reached, in how many cells, from which start."""
    names = ("linear", "gamma_attn", "global_lower", "global_upper", "ntk", "gamma_star")
    levels = {name: _by_sparsity(records, name)[1] for name in names}
    last = {name: values[..., -1] for name, values in reached.items()}

    def hits(scale: str, level: np.ndarray) -> str:
        goal = level if level.ndim == 3 else level[:, :, None]
        return ", ".join(str(k) for k in (last[scale] >= REACHED * goal).sum(axis=(0, 1)))

    count = levels["linear"].size
    return (
        f"Which margin does gradient descent reach? After {int(records[0].arrays['step'][-1])} "
        f"steps and to within 1%, of {count} cells from {', '.join(STARTS)}: the linear margin in "
        f"{hits('decoder', levels['linear'])}; gamma_attn in "
        f"{hits('decoder', levels['gamma_attn'])}; the global margin in "
        f"{hits('sphere', levels['global_lower'])}; the NTK margin of the start, per distance, in "
        f"{hits('per_distance', levels['ntk'])}. The NTK margin at one step exceeds gamma_attn in "
        f"{_counted(levels['ntk'][..., 1] > levels['gamma_attn'])} cells and the ceiling of the "
        f"global margin in {_counted(levels['ntk'][..., 1] > levels['global_upper'])}: it is the "
        "margin of the linearised model, on another scale. Bars: range of the seeds."
    )


def _progress_panel(records: Sequence[Record]) -> Panel:
    """Decoder margin against the step, from the linear margin to that of saturated attention."""
    import matplotlib.pyplot as plt

    step = records[0].arrays["step"]
    zetas, reached = _by_sparsity(records, "decoder")
    linear, attention = (_by_sparsity(records, n)[1] for n in ("linear", "gamma_attn"))
    columns = sorted({0, len(zetas) // 2, len(zetas) - 1})
    figure, axes = plt.subplots(
        1, len(columns), figsize=(1.5 + 3 * len(columns), 3.6), sharey=True,
        layout="constrained", squeeze=False,
    )  # fmt: skip
    for axis, column in zip(axes[0], columns, strict=True):
        axis.axhline(attention[column].mean(), color="0.25", lw=1.2, label=r"$\gamma_{attn}$")
        axis.axhline(linear[column].mean(), color="0.25", ls="--", lw=1.2, label="linear margin")
        for k, start in enumerate(STARTS):
            curves = reached[column, :, k]
            axis.semilogx(step, curves.mean(axis=0), MARKERS[start] + "-", ms=3, lw=1.2,
                          color=COLOURS[start], label=f"from {start}")  # fmt: skip
            axis.fill_between(step, curves.min(axis=0), curves.max(axis=0), alpha=0.2, lw=0,
                              color=COLOURS[start])  # fmt: skip
        axis.set_title(rf"$\zeta$ = {zetas[column]:g}", fontsize=10)
        axis.set_xlabel("step $k$")
        axis.set_ylim(-0.1 * attention.max(), 1.05 * attention.max())
    axes[0, 0].set_ylabel(r"least margin over $\|U\|$")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), frameon=False, fontsize=8,
                  loc="outside right center")  # fmt: skip
    caption = _progress_caption(step, reached / attention[:, :, None, None])
    return Panel("The way to the margin of attention", caption, figure)


def _progress_caption(step: np.ndarray, share: np.ndarray) -> str:
    """Decoder margin over gamma_attn at the end and a tenth of the way, least and largest."""
    tenth = int(np.argmin(np.abs(step - step[-1] / 10)))
    said = []
    for k, start in enumerate(STARTS):
        last, before = share[:, :, k, -1], share[:, :, k, tenth]
        rising = _counted(last > before)
        said.append(f"{last.min():.2f} to {last.max():.2f} from {start}, rising in {rising}")
    return (
        "Does gradient descent converge to weights with margin gamma_attn? After "
        f"{int(step[-1])} steps the decoder margin is this share of gamma_attn: "
        f"{'; '.join(said)} cells between step {int(step[tenth])} and the last. Lines: mean over "
        "the seeds; bands: their range; negative margins are cut off."
    )


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """Margins against the sparsity, and progress against the step."""
    return _sparsity_panel(records), _progress_panel(records)


EXPERIMENT = Experiment(
    name="margins",
    paper="deora2023optimization",
    title="Margins that gradient descent reaches",
    question="Which of gamma_lin, the NTK margin and gamma_attn does gradient descent reach?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        "step": ("step",),
        **dict.fromkeys(("loss", "decoder", "sphere", "per_distance"), ("start", "step")),
        "ntk": ("start",),
        **dict.fromkeys(
            ("linear", "global_lower", "global_upper", "searches_agree", "gamma_lin",
             "gamma_star", "gamma_star_error", "gamma_attn", "first_step_error"), (),
        ),
    },
    note=NOTE,
)  # fmt: skip
