r"""Does training move the attention onto the relevant tokens, and from which start?

Attention mass on the relevant tokens of the tokenized mixture during gradient descent, from zero,
from one randomised step and from Gaussian weights of two sizes; and what the sign of the random
step makes of each head.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.data.tokenized_mixture import MixtureSamples
from attlas.experiments.deora2023optimization.instances import draw_phases, gaussian_heads
from attlas.measures.attention.token_attention import relevant_attention
from attlas.measures.statistics.student_interval import student_interval
from attlas.models.attention.multi_head import MultiHead, make_multi_head
from attlas.optim.one_step import first_phase_steps, one_step_initialisation
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.training.gradient_descent import gradient_descent_ensemble
from attlas.training.trajectory import log_spaced

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

DEVIATIONS = (0.1, 0.5)
STARTS = ("zero", "one step", *(f"Gaussian {size:g}" for size in DEVIATIONS))
COLOURS = dict(zip(STARTS, ("#0072b2", "#d55e00", "#009e73", "#cc79a7"), strict=True))
MARKERS = dict(zip(STARTS, "os^v", strict=True))
HEAD_COLOURS = ("#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#f0e442")
CONFIDENCE = 0.95
RECORDS = 25
NOTE = (
    "Mass: share of a query's attention on the tokens that equal the label's pattern, mean over "
    "queries, heads and samples; zeta without attention weights. Every seed draws patterns, "
    "samples and starts. From zero all heads stay equal, and W has no gradient before U has "
    "moved; no symmetry needs breaking. Gaussian: independent entries N(0, deviation^2) in U and "
    "W. Noise: Z_mu = Z_nu = .02 S^2, Z = .2 S."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each sparsity and number of heads; all seeds of a cell share its programs."""
    settings = {"T": 10, "d": 6, "M": 2, "S": 2.0, "rate": 0.3}
    settings |= {
        Scale.SMOKE: {"n": 12, "steps": 30, "first": 100, "seeds": 2},
        Scale.QUICK: {"n": 24, "steps": 800, "first": 1000, "seeds": 4},
        Scale.PAPER: {"n": 100, "steps": 20_000, "first": 10_000, "seeds": 10},
    }[scale]
    tenths, heads = {
        Scale.SMOKE: ((3,), (2,)),
        Scale.QUICK: ((1, 3, 5), (4,)),
        Scale.PAPER: ((1, 3, 5, 7), (1, 4, 16)),
    }[scale]
    return tuple(Cell({**settings, "zeta": tenth / 10, "H": H}) for tenth in tenths for H in heads)


def _key(cell: Cell, seed: int) -> Array:
    """The key of the signs of the first phase."""
    return jax.random.fold_in(jax.random.key(cell.seed), 1000 + seed)


def _first_models(cell: Cell, seed: int, first: MixtureSamples) -> tuple[MultiHead, MultiHead]:
    """Zero, and one randomised step on the first phase's samples."""
    s = cell.settings
    zero = make_multi_head(s["H"], s["T"], s["d"], dtype=first.X.dtype)
    return zero, one_step_initialisation(_key(cell, seed), first.X, first.y, s["H"])


@jax.jit
def _masses(path: MultiHead, X: Array, relevant: Array) -> tuple[Array, Array]:
    """Mass on the relevant tokens, of relevant and irrelevant queries: (start, record, head)."""

    def one(model: MultiHead) -> tuple[Array, Array]:
        mass = partial(relevant_attention, model, X, relevant)
        return jnp.mean(mass(relevant), axis=0), jnp.mean(mass(~relevant), axis=0)

    return jax.vmap(jax.vmap(one))(path)


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Trainings of every seed from every start, with the mass of every head."""
    s = cell.settings
    rows = []
    for seed in range(s["seeds"]):
        key = jax.random.fold_in(jax.random.key(cell.seed), seed)
        _, train, first = draw_phases(cell.settings, key)
        zero, one_step = _first_models(cell, seed, first)
        random = (gaussian_heads(zero, size, cell.seed, seed) for size in DEVIATIONS)
        starts = jax.tree.map(lambda *leaves: jnp.stack(leaves), zero, one_step, *random)
        path = gradient_descent_ensemble(
            starts,
            train.X,
            train.y,
            step_size=s["rate"],
            steps=s["steps"],
            record_at=log_spaced(s["steps"], RECORDS),
        )
        from_relevant, from_others = _masses(path.params, train.X, train.relevant)
        rows.append(
            {
                "step": path.steps,
                "loss": path.loss,
                "mass_relevant": from_relevant,
                "mass_others": from_others,
                "largest_W": jnp.sqrt(jnp.max(jnp.sum(path.params.W**2, axis=(3, 4)), axis=2)),
                "sign": jnp.sign(first_phase_steps(_key(cell, seed), s["H"])),
            }
        )
    found = {name: np.stack([np.asarray(row[name]) for row in rows]) for name in rows[0]}
    share = s["zeta"]
    found["head_mass"] = share * found["mass_relevant"] + (1 - share) * found["mass_others"]
    means = {"mass": found["head_mass"].mean(axis=-1)}
    means |= {name: found[name].mean(axis=-1) for name in ("mass_relevant", "mass_others")}
    return found | means | {"step": found["step"][0]}


def _shown(values: np.ndarray) -> str:
    mean, reach = student_interval(values, CONFIDENCE)
    return f"{mean:.3f} ± {reach:.3f}"


def _of_sign(record: Record, sign: int) -> np.ndarray:
    """Mass of the heads whose first step had one sign, from one step: (head, record)."""
    mass = np.moveaxis(record.arrays["head_mass"][:, STARTS.index("one step")], -1, 1)
    kept = mass[record.arrays["sign"] == sign]
    return kept if len(kept) else np.full((1, mass.shape[-1]), np.nan)


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Attention mass and loss at the end of the trainings from every start."""
    rows = []
    for record in records:
        s, a = record.cell.settings, record.arrays
        for k, start in enumerate(STARTS):
            row = {"zeta": s["zeta"], "H": s["H"], "start": start, "seeds": s["seeds"]}
            row["steps"] = int(a["step"][-1])
            row["mass at the start"] = _shown(a["mass"][:, k, 0])
            row["mass at the end"] = _shown(a["mass"][:, k, -1])
            row["queried by relevant tokens"] = _shown(a["mass_relevant"][:, k, -1])
            row["queried by others"] = _shown(a["mass_others"][:, k, -1])
            if start == "one step":
                for sign, name in ((1, "alpha_h > 0"), (-1, "alpha_h < 0")):
                    row[f"mass of heads with {name}"] = _of_sign(record, sign)[:, -1].mean()
            row["training loss"] = _shown(a["loss"][:, k, -1])
            row["largest W_h"] = _shown(a["largest_W"][:, k, -1])
            rows.append(row)
    import pandas as pd

    return pd.DataFrame(rows)


def _mass_panel(records: Sequence[Record]) -> Panel:
    """Mass against the step from every start, one axis for each sparsity, fewest heads shown."""
    import matplotlib.pyplot as plt

    fewest = min(r.cell.settings["H"] for r in records)
    shown = [r for r in records if r.cell.settings["H"] == fewest]
    figure, axes = plt.subplots(
        1, len(shown), figsize=(2 + 2.9 * len(shown), 3.6), sharey=True, layout="constrained",
        squeeze=False,
    )  # fmt: skip
    for axis, record in zip(axes[0], shown, strict=True):
        a, share = record.arrays, record.cell.settings["zeta"]
        step = a["step"]
        axis.axhline(share, color="0.4", ls=":", lw=1.2, label=r"uniform, $\zeta$")
        for k, start in enumerate(STARTS):
            mean, reach = student_interval(a["mass"][:, k], CONFIDENCE)
            axis.semilogx(step, mean, MARKERS[start] + "-", color=COLOURS[start], ms=3, lw=1.2,
                          label=f"from {start}")  # fmt: skip
            axis.fill_between(step, mean - reach, mean + reach, color=COLOURS[start], alpha=0.2,
                              lw=0)  # fmt: skip
        axis.set_title(rf"$\zeta$ = {share:g}, H = {fewest}", fontsize=10)
        axis.set_xlabel("step $k$")
        axis.set_ylim(0, 1)
    axes[0, 0].set_ylabel("attention on the relevant tokens")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), frameon=False, fontsize=8,
                  loc="outside right center")  # fmt: skip
    return Panel("Attention on the relevant tokens", _mass_caption(records), figure)


def _mass_caption(records: Sequence[Record]) -> str:
    """In how many trainings the mass has left its start, and how far it came."""
    said = []
    for k, start in enumerate(STARTS):
        first, last, uniform = [], [], []
        for record in records:
            mass = record.arrays["mass"][:, k]
            first.append(mass[:, 0])
            last.append(mass[:, -1])
            uniform.append(np.full(len(mass), record.cell.settings["zeta"]))
        first, last, uniform = (np.concatenate(parts) for parts in (first, last, uniform))
        said.append(
            f"from {start} in {int((last > first).sum())} of {len(last)} trainings, by a factor "
            f"of {np.median(last / uniform):.1f} over uniform attention in the median"
        )
    steps = int(records[0].arrays["step"][-1])
    return (
        "Does training move the attention onto the relevant tokens? The mass has grown after "
        f"{steps} steps {'; '.join(said)}. Bands: {CONFIDENCE:.0%} intervals of the mean over "
        "the seeds."
    )


def _sign_panel(records: Sequence[Record]) -> Panel:
    """Mass from the one-step start, heads apart by the sign of their first step."""
    import matplotlib.pyplot as plt

    fewest = min(r.cell.settings["H"] for r in records)
    figure, axis = plt.subplots(figsize=(6.6, 3.6), layout="constrained")
    shown = [r for r in records if r.cell.settings["H"] == fewest]
    for record, colour in zip(shown, HEAD_COLOURS, strict=False):
        step, share = record.arrays["step"], record.cell.settings["zeta"]
        for sign, style, name in ((1, "o-", "> 0"), (-1, "v--", "< 0")):
            mass = _of_sign(record, sign)
            axis.semilogx(step, mass.mean(axis=0), style, color=colour, ms=3, lw=1.2,
                          label=rf"$\zeta$ = {share:g}, $\alpha_h$ {name}")  # fmt: skip
        axis.axhline(share, color=colour, ls=":", lw=1)
    axis.set_ylim(0, 1)
    axis.set_xlabel("step $k$")
    axis.set_ylabel("attention on the relevant tokens")
    figure.legend(frameon=False, fontsize=8, loc="outside right center")
    said = []
    for record in shown:
        with_step, against = (_of_sign(record, sign)[:, -1].mean() for sign in (1, -1))
        share = record.cell.settings["zeta"]
        with_step, against = (
            f"{mass:.2f}" if np.isfinite(mass) else "(no such head)"
            for mass in (with_step, against)
        )
        said.append(f"{with_step} and {against} at zeta = {share:g}")
    caption = (
        "What does the sign of the random first step make of a head? Heads with alpha_h = 1, whose "
        "decoders start on the right label, and heads with -1, which start on the wrong one, end "
        f"at the mean mass {', '.join(said)}. Dotted: uniform attention. The separator of "
        "Proposition 2 has the same signs in W: it turns half of the heads away."
    )
    return Panel("Heads of the one-step start", caption, figure)


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """Attention during training from every start, and by the sign of the random first step."""
    return _mass_panel(records), _sign_panel(records)


EXPERIMENT = Experiment(
    name="attention",
    paper="deora2023optimization",
    title="Attention on the relevant tokens",
    question="Does training move the attention onto the relevant tokens, and from which start?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        "step": ("step",),
        **dict.fromkeys(("loss", "mass", "largest_W"), ("seed", "start", "step")),
        **dict.fromkeys(("mass_relevant", "mass_others"), ("seed", "start", "step")),
        "head_mass": ("seed", "start", "step", "head"),
        "sign": ("seed", "head"),
    },
    note=NOTE,
)
