r"""Do sqrt(p) weights hold most of the attention of a trained translator?

An encoder-decoder is trained on Portuguese-English pairs, or on generated ones that stand in for
them. The same attention rows, drawn once, are measured at the random start, after training, with
logits times 5, and with uniform weights in their place.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import optax

from attlas.core.errors import UserError
from attlas.core.processes import CHEAP_COMPILATION
from attlas.core.solution import Result
from attlas.data.portuguese_english import PORTUGUESE_ENGLISH
from attlas.data.sources import is_present
from attlas.data.translation_pairs import SentencePairs, TranslationPairs, load_translation_pairs
from attlas.measures.attention_rows import KINDS, attention_rows, draw_rows, uniform_rows
from attlas.measures.attention_summary import MEASURES, NORMS, AttentionSummary, attention_summary
from attlas.models.tempered_translator import tempered
from attlas.models.translator import Translator, make_translator
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.tasks.translation import piece_losses, train_translator, warm_up_rate
from attlas.training.trajectory import Trajectory

if TYPE_CHECKING:
    import pandas

PAPER_NORM = 0.909
"""The paper's mean l2 norm of the floor(sqrt(p)) largest weights."""
FACTOR = 5.0
TAUS = (0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)
TICKS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
BINS = np.linspace(0.0, 1.0, 41)
SHOWN = {
    "raw l2": r"$\ell_2$ norm, as printed",
    "relative l2": r"$\ell_2$ norm over the row's",
    "l1 share": "share of the attention",
}
COUNTS = ("rows", "rows_by_length")
VARIANTS = ("random start", "trained", "trained, model x 5", "trained, rows x 5", "uniform")
COLOURS = ("0.6", "C0", "C3", "C1", "black")


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell a seed."""
    if scale is Scale.PAPER:
        full = {"task": "pt_en", "pairs": [30_000, 1000], "vocabulary": 8000, "length": 40,
                "width": 128, "blocks": 4, "heads": 8, "hidden": 512, "batch": 64, "epochs": 20,
                "warm_up": 4000, "factor": 1.0, "sentences": 5000, "rows": 100_000,
                "quick_compile": False}  # fmt: skip
        return tuple(_cell(full, seed) for seed in range(3))
    small = {"task": "stand-in", "pairs": [1000, 200], "vocabulary": 120, "length": 14,
             "width": 32, "blocks": 2, "heads": 4, "hidden": 64, "batch": 25, "epochs": 6,
             "warm_up": 100, "factor": 0.3, "sentences": 1000, "rows": 40_000,
             "quick_compile": True}  # fmt: skip
    if scale is Scale.SMOKE:
        small |= {"pairs": [50, 10], "width": 8, "heads": 2, "hidden": 8, "epochs": 2}
        small |= {"blocks": 1, "sentences": 20, "rows": 500}
    elif is_present(PORTUGUESE_ENGLISH):
        small |= {"task": "pt_en", "pairs": [1200, 200], "vocabulary": 800, "length": 32}
    return (_cell(small, 0),)


def _cell(settings: dict[str, Any], seed: int) -> Cell:
    real = settings["task"] == "pt_en"
    return Cell(settings, seed, "float32", PORTUGUESE_ENGLISH.data_hash if real else "")


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Train, then measure the same rows in every variant."""
    s = cell.settings
    data = load_translation_pairs(
        sizes=(s["pairs"][0], s["pairs"][1]), vocabulary=s["vocabulary"], length=s["length"],
        seed=cell.seed, stand_in=s["task"] == "stand-in",
    )  # fmt: skip
    start, found = _train(cell, data)
    models = (start, found.last, tempered(found.last, FACTOR))
    some = SentencePairs(*(part[: s["sentences"]] for part in data.train))
    places = draw_rows(start, some, s["rows"], jax.random.key(cell.seed + 1), least=2)
    cut = partial(attention_rows, pairs=some, places=places, quick_compile=s["quick_compile"])
    alone = ((_power(rows, FACTOR), p) for rows, p in cut(found.last))
    # In the order of VARIANTS.
    blocks = (*(cut(model) for model in models), alone, uniform_rows(places))
    parts = [attention_summary(b, places, TAUS, BINS.size - 1, PAPER_NORM) for b in blocks]
    losses = [_evaluated(model, data.validation, s["quick_compile"]) for model in models]
    return {
        # The rows are the same ones in every variant.
        **{name: getattr(parts[0], name) for name in COUNTS},
        **{
            name: np.stack([getattr(part, name) for part in parts])
            for name in AttentionSummary._fields
            if name not in COUNTS
        },
        "validation": np.array([*losses, *[(np.nan, np.nan)] * 2]),
        "loss": np.stack([found.loss, found.validation], axis=1),
    }


def _train(cell: Cell, data: TranslationPairs) -> tuple[Translator, Trajectory]:
    """The random start, and what became of it."""
    s = cell.settings
    key = jax.random.key(cell.seed)
    shape = (s["width"], s["blocks"], s["heads"], s["hidden"])
    start = _make(key, data.vocabularies, *shape, dtype=np.dtype(cell.dtype))
    rate = warm_up_rate(s["width"], s["warm_up"], s["factor"])
    with jax.numpy_dtype_promotion("standard"):  # Adam's own arithmetic needs it
        found = train_translator(
            start, optax.adam(rate, b2=0.98, eps=1e-9), data.train, data.validation, key,
            s["batch"], s["epochs"], quick_compile=s["quick_compile"],
        )  # fmt: skip
    if int(found.result) == Result.NOT_FINITE:
        raise UserError("training left the finite numbers: lower the factor of the rate")
    return start, found


def _power(rows: np.ndarray, factor: float) -> np.ndarray:
    """softmax(factor z) of rows softmax(z), as powers: what precedes a row stays as it was."""
    powers = (rows / rows.max(axis=1, keepdims=True)) ** factor
    return powers / powers.sum(axis=1, keepdims=True)


def _evaluated(model: Translator, pairs: SentencePairs, quick: bool) -> tuple[float, float]:
    """Cross-entropy of a validation piece, and share of those told right."""
    losses = _losses_compiled_quickly if quick else _losses
    sums = np.zeros(2)
    for start in range(0, pairs.source.shape[0], 100):
        part = SentencePairs(*(each[start : start + 100] for each in pairs))
        sums += [np.asarray(each).sum(dtype=float) for each in losses(model, part)]
    return tuple(sums / pairs.target_mask[:, 1:].sum())


_QUICK: dict[str, Any] = {"compiler_options": CHEAP_COMPILATION}
_make = jax.jit(make_translator, static_argnums=range(1, 6), static_argnames="dtype", **_QUICK)
_losses = jax.jit(piece_losses)
_losses_compiled_quickly = jax.jit(piece_losses, **_QUICK)


def _rows(record: Record, kind: int | None) -> np.ndarray:
    return record.arrays["rows"][slice(None) if kind is None else kind]


def _mean(record: Record, name: str, kind: int | None = None) -> np.ndarray:
    """Mean over all rows, or those of a kind, of what is kept by layer and head; by variant."""
    part = slice(None) if kind is None else slice(kind, kind + 1)
    values, weight = record.arrays[name][:, part], _rows(record, kind).ravel()
    flat = values.reshape(values.shape[0], weight.size, *values.shape[4:])
    return np.tensordot(flat, weight / weight.sum(), (1, 0))


def _told(record: Record, measure: str) -> dict[str, float]:
    """Mean of a measure over all rows, by variant."""
    means = _mean(record, "mean")[:, MEASURES.index(measure)]
    return dict(zip(VARIANTS, means.tolist(), strict=True))


def _trained_on(record: Record) -> str:
    a, s = record.arrays, record.cell.settings
    task = "generated pairs, a stand-in" if s["task"] == "stand-in" else "Portuguese-English pairs"
    return (
        f"{s['pairs'][0]:,} {task}; {100 * a['validation'][1, 1]:.1f} % of the pieces of "
        f"{s['pairs'][1]} validation pairs told right, {100 * a['validation'][0, 1]:.1f} % at start"
    )


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Means over rows of each kind, and over all; seeds are averaged."""
    import pandas as pd

    at, lines = TAUS.index(0.1), []
    for v, variant in enumerate(VARIANTS):
        for kind, name in ((None, "all"), *enumerate(KINDS)):
            mean = np.mean([_mean(r, "mean", kind)[v] for r in records], axis=0)
            s0 = np.mean([_mean(r, "s0_root", kind)[v, :, at] for r in records], axis=0)
            loss, right = np.mean([r.arrays["validation"][v] for r in records], axis=0)
            rows = sum(int(_rows(r, kind).sum()) for r in records)
            lines.append(
                {
                    "weights": variant,
                    "attention": name,
                    "rows": rows,
                    "paper, top sqrt(p)": PAPER_NORM if name == "all" and v == 1 else np.nan,
                    **dict(zip(MEASURES, mean, strict=True)),
                    "s0 / sqrt(p), l2, tau = 0.1": s0[0],
                    "s0 / sqrt(p), l1, tau = 0.1": s0[1],
                    "validation loss": loss if name == "all" else np.nan,
                    "validation accuracy": right if name == "all" else np.nan,
                }
            )
    return pd.DataFrame(lines)


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """Histograms, (s0, tau) curves, dependence on the length, temperature; of the first seed."""
    if not records:
        return ()
    first = records[0]
    return _histograms(first), _curves(first), _lengths(first), _temperature(first)


def _axes(rows: int, height: float, sharey: Any) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    size = (9.6, height)
    return plt.subplots(
        rows, 3, figsize=size, sharex=True, sharey=sharey, squeeze=False, layout="constrained"
    )


def _legend(figure: Any, axis: Any, columns: int) -> None:
    handles = axis.get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)


def _shades(record: Record) -> np.ndarray:
    """One colour a layer."""
    import matplotlib.pyplot as plt

    return plt.get_cmap("viridis")(np.linspace(0.1, 0.8, record.cell.settings["blocks"]))


def _histograms(record: Record) -> Panel:
    figure, axes = _axes(2, 5.2, "row")
    counts = record.arrays["histogram"].sum(axis=1)
    for m, (measure, label) in enumerate(SHOWN.items()):
        for v, variant in enumerate(VARIANTS):
            share = counts[v, m] / counts[v, m].sum()
            style: dict[str, Any] = {"color": COLOURS[v], "lw": 1.5, "ls": ":" if v == 4 else "-"}
            if v == 1:
                axes[0, m].stairs(share, BINS, color=COLOURS[v], fill=True, alpha=0.4)
            if v < 2:
                axes[0, m].stairs(share, BINS, **style)
            if v != 3:
                above = np.append(np.cumsum(share[::-1])[::-1], 0)
                axes[1, m].plot(BINS, above, label=variant, **style)
                axes[1, m].plot(_told(record, measure)[variant], 0, "^", color=COLOURS[v],
                                ms=7, clip_on=False, zorder=3)  # fmt: skip
        axes[1, m].set(xlabel=label, xlim=(0, 1), ylim=(0, 1.02))
    for axis in axes.ravel():
        axis.axvline(PAPER_NORM, color="C2", ls="--", lw=1.3, label="the paper's mean")
    axes[0, 0].set_ylabel("share of rows")
    axes[1, 0].set_ylabel("share of rows above")
    _legend(figure, axes[1, 0], 5)
    raw, relative, share = (_told(record, measure) for measure in SHOWN)
    high, least = record.arrays["high"][1]
    caption = (
        f"Do the floor(sqrt(p)) largest weights hold most of the attention? After training on "
        f"{_trained_on(record)}. Mean l2 norm {raw['trained']:.3f}, where the paper's text has "
        f"{PAPER_NORM} and calls it a share; random start {raw['random start']:.3f}, uniform "
        f"{raw['uniform']:.3f}. Over the row's own norm "
        f"that is {relative['trained']:.3f}, but {relative['random start']:.3f} at the random "
        f"start and {relative['uniform']:.3f} if uniform; the attention they hold is "
        f"{share['trained']:.3f}, {share['random start']:.3f} and {share['uniform']:.3f}. "
        f"Triangles are means. A norm of {PAPER_NORM}, as {100 * high:.0f} % of the trained rows "
        f"have, forces one weight of {PAPER_NORM**2:.3f}: the least found is {least:.3f}."
    )
    return Panel("Norm and share of the sqrt(p) largest attention weights", caption, figure)


def _curves(record: Record) -> Panel:
    figure, axes = _axes(2, 5.6, "row")
    s0, shades = record.arrays["s0_root"], _shades(record)
    for n, kind in np.ndindex(axes.shape):
        axis, flat = axes[n, kind], s0[:, kind, :, :, n].reshape(len(VARIANTS), -1, len(TAUS))
        axis.fill_between(
            TAUS, flat[0].min(axis=0), flat[0].max(axis=0), color="0.8", label="random start"
        )
        axis.plot(TAUS, flat[4].mean(axis=0), "k:", lw=1.5, label="uniform")
        for layer, head in np.ndindex(s0.shape[2:4]):
            label = None if head else f"trained, layer {layer + 1}"
            axis.plot(TAUS, s0[1, kind, layer, head, n], color=shades[layer], lw=1.2, label=label)
        axis.axhline(1, color="C3", lw=1, ls="--", label=r"$s_0 = \sqrt{p}$")
        axis.set(xscale="log", xlim=(TAUS[0], TAUS[-1]))
        axis.set_xticks(TICKS, [f"{tau:g}" for tau in TICKS])
        axis.minorticks_off()
        axes[0, kind].set_title(KINDS[kind], fontsize=10)
    for n, norm in enumerate(NORMS):
        axes[n, 0].set_ylabel(rf"$s_0/\sqrt{{p}}$, {'relative l2' if norm == 'l2' else 'share'}")
    for axis in axes[1]:
        axis.set_xlabel(r"$\tau$")
    _legend(figure, axes[0, 0], len(shades) + 3)
    at = TAUS.index(0.1)
    means = _mean(record, "s0_root")[:, :, at]
    kinds = record.arrays["rows"].sum(axis=(1, 2))
    unreached = np.average(record.arrays["unreached"][1, :, at], weights=kinds)
    caption = (
        "How many weights hold all but tau, for each layer and head? Mean s0 over floor(sqrt(p)); "
        f"below the dashed line sqrt(p) weights are enough. At tau = 0.1 that is {means[1, 0]:.2f} "
        f"in l2 and {means[1, 1]:.2f} in share after training, {means[0, 0]:.2f} and "
        f"{means[0, 1]:.2f} at the random start, {means[4, 0]:.2f} and {means[4, 1]:.2f} if "
        f"uniform. As printed, with a norm of one supposed, {100 * unreached:.0f} % of the "
        "trained rows have no s0 at tau = 0.1."
    )
    return Panel("Weights needed for all but tau, by layer and head", caption, figure)


def _lengths(record: Record) -> Panel:
    figure, axes = _axes(2, 5.4, "row")
    counts, values = record.arrays["rows_by_length"], record.arrays["by_length"]
    for row, measure in enumerate(("raw l2", "l1 share")):
        for kind, axis in enumerate(axes[row]):
            p = np.flatnonzero(counts[kind] >= 30)
            for v in (0, 1, 2, 4):
                style = {"ls": ":"} if v == 4 else {"marker": "."}
                shown = values[v, kind, p, list(SHOWN).index(measure)]
                axis.plot(p, shown, color=COLOURS[v], lw=1.3, ms=4, label=VARIANTS[v], **style)
            axis.set(ylim=(0, 1.03))
            if row == 0:
                axis.axhline(PAPER_NORM, color="C2", ls="--", lw=1.2, label="the paper's mean")
                axis.set_title(KINDS[kind], fontsize=10)
            else:
                axis.set_xlabel("length p of the row")
        axes[row, 0].set_ylabel(SHOWN[measure])
    _legend(figure, axes[0, 0], 5)
    p = np.arange(counts.shape[1])
    middle = int(np.searchsorted(np.cumsum(counts.sum(axis=0)), counts.sum() / 2))
    means = [
        np.average(values[:, :, part, 0].reshape(len(VARIANTS), -1), axis=1,
                   weights=counts[:, part].ravel())
        for part in (p <= middle, p > middle)
    ]  # fmt: skip
    told = ", ".join(f"{VARIANTS[v]} {means[0][v]:.3f} and {means[1][v]:.3f}" for v in (1, 0, 4))
    caption = (
        "Is the norm a matter of short rows? The floor(sqrt(p)) largest weights by the number p "
        f"of words that a row may attend to. Mean norm of rows up to p = {middle} and of longer "
        f"ones: {told}. Uniform weights have norm sqrt(floor(sqrt(p))) / p and share "
        "floor(sqrt(p)) / p, whose steps all curves have; rows of a single word are left out."
    )
    return Panel("Concentration by length of the row", caption, figure)


def _temperature(record: Record) -> Panel:
    figure, axes = _axes(1, 3.8, True)
    share = record.arrays["mean"][..., MEASURES.index("l1 share")]
    names = ("random\nstart", "trained", "model\nx 5", "rows\nx 5")
    for kind, axis in enumerate(axes[0]):
        for layer, shade in enumerate(_shades(record)):
            lines = axis.plot(share[:4, kind, layer], "o-", color=shade, lw=0.8, ms=4)
            lines[0].set_label(f"layer {layer + 1}, a line a head")
        axis.axhline(share[4, kind].mean(), color="k", ls=":", lw=1.5, label="uniform")
        axis.set_xticks(range(len(names)), names, fontsize=9)
        axis.set_title(KINDS[kind], fontsize=10)
        axis.set(ylim=(0, 1.03), xlim=(-0.3, 3.3))
    axes[0, 0].set_ylabel(SHOWN["l1 share"])
    _legend(figure, axes[0, 0], 5)
    means, support = _told(record, "l1 share"), _told(record, "effective support")
    loss = record.arrays["validation"][:, 0]
    caption = (
        "Does a lower temperature concentrate attention? With the trained weights and logits "
        f"times {FACTOR:g} the sqrt(p) largest weights hold {means[VARIANTS[2]]:.3f} of the "
        f"attention instead of {means['trained']:.3f}, and exp(entropy) falls from "
        f"{support['trained']:.2f} to {support[VARIANTS[2]]:.2f} words; each row alone gives "
        f"{means[VARIANTS[3]]:.3f}. Nothing was trained again: the validation loss goes from "
        f"{loss[1]:.3f} to {loss[2]:.3f} nats ({loss[0]:.3f} at the random start)."
    )
    return Panel("Attention held by the sqrt(p) largest weights, by head", caption, figure)


EXPERIMENT = Experiment(
    name="concentration",
    paper="liu2021analyzing",
    title="Concentration of a translator's attention",
    question="Do the sqrt(p) largest of p attention weights hold most of a trained row?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        "mean": ("variant", "kind", "layer", "head", "measure"),
        **dict.fromkeys(("s0", "s0_root"), ("variant", "kind", "layer", "head", "norm", "tau")),
        "unreached": ("variant", "kind", "tau"),
        "by_length": ("variant", "kind", "length", "measure_shown"),
        "histogram": ("variant", "kind", "measure_shown", "bin"),
        "high": ("variant", "share_and_least"),
        "rows": ("kind", "layer", "head"),
        "rows_by_length": ("kind", "length"),
        "validation": ("variant", "loss_and_accuracy"),
        "loss": ("epoch", "train_and_validation"),
    },
    note=(
        "Quick scale: 40,000 rows of a translator with two blocks of width 32, trained on 1,000 "
        "generated pairs, a stand-in of at most 14 pieces, or, where they are in the data folder, "
        "on 1,200 Portuguese-English pairs of at most 32 pieces, too few to translate by. Paper "
        "scale: 100,000 rows, 30,000 pairs, four blocks of width 128 as in the usual example of "
        "this task, without dropout; the paper's corpus, model size and kind of attention are not "
        "said. Rows of one word are left out: their only weight is one. 'Model x 5' multiplies "
        "the logits of all attentions, 'rows x 5' those of a row while what precedes it stays."
    ),
)
