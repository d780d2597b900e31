r"""Do the sqrt(p) largest of p attention weights hold most of a trained row?

An encoder-decoder is trained on Portuguese-English pairs, or on generated ones that stand in for
them. The same attention rows, drawn once, are measured at the random start, after training, with
logits times 5, and with uniform weights in their place.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array

from attlas.core.errors import UserError
from attlas.core.processes import CHEAP_COMPILATION
from attlas.core.solution import Result
from attlas.data.portuguese_english import PORTUGUESE_ENGLISH
from attlas.data.sources import is_present
from attlas.data.translation_pairs import SentencePairs, load_translation_pairs
from attlas.measures.attention.attention_dataset import (
    attention_dataset,
    means_of_short_and_long,
    means_over_rows,
)
from attlas.measures.attention.rows import attention_rows, draw_rows, sharpened_rows, uniform_rows
from attlas.measures.attention.summary import MEASURES, NORMS, attention_summary
from attlas.models.networks.tempered_translator import tempered
from attlas.models.networks.translator import make_translator
from attlas.panels.histogram import Histogram
from attlas.panels.lines import Lines
from attlas.panels.palette import PALETTE
from attlas.panels.plot import Plot
from attlas.panels.points import Points
from attlas.panels.reference import Reference
from attlas.panels.summary import extremes, mean_only, total
from attlas.panels.table import Column, Printed, Row, Table
from attlas.runs.experiment import Experiment
from attlas.runs.grid import Grid
from attlas.runs.settings import Settings
from attlas.tasks.translation import train_translator, warm_up_rate
from attlas.tasks.translation_scores import translation_scores

PAPER_NORM = 0.909  # the paper's mean l2 norm of the floor(sqrt(p)) largest weights
FACTOR = 5.0
TAUS = (0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)
BINS = np.linspace(0.0, 1.0, 41)
SHOWN = {
    "raw l2": r"$\ell_2$ norm, as printed",
    "relative l2": r"$\ell_2$ norm over the row's",
    "l1 share": "share of the attention",
}
VARIANTS = ("random start", "trained", "trained, model x 5", "trained, rows x 5", "uniform")
NOTE = (
    "Quick scale: 40,000 rows of a translator with two blocks of width 32, trained on 1,000 "
    "generated pairs, a stand-in of at most 14 pieces, or, where they are in the data folder, "
    "on 1,200 Portuguese-English pairs of at most 32 pieces, too few to translate by. Paper "
    "scale: 100,000 rows, 30,000 pairs, four blocks of width 128 as in the usual example of "
    "this task, without dropout; the paper's corpus, model size and kind of attention are not "
    "said. Rows of one word are left out: their only weight is one. 'Model x 5' multiplies "
    "the logits of all attentions, 'rows x 5' those of a row while what precedes it stays."
)


def quick() -> dict[str, Any]:
    """Real pairs where they are in the data folder."""
    if is_present(PORTUGUESE_ENGLISH):
        return {"task": "pt_en", "pairs": [1200, 200], "vocabulary": 800, "length": 32}
    return {}


GRID = Grid(
    fixed={
        "task": "stand-in", "pairs": [1000, 200], "vocabulary": 120, "length": 14,
        "width": 32, "blocks": 2, "heads": 4, "hidden": 64, "batch": 25, "epochs": 6,
        "warm_up": 100, "factor": 0.3, "sentences": 1000, "rows": 40_000,
        "quick_compile": True, "members": 1, "block": 1, "dtype": "float32",
    },
    smoke={
        "pairs": [50, 10], "width": 8, "blocks": 1, "heads": 2, "hidden": 8, "epochs": 2,
        "sentences": 20, "rows": 500,
    },
    quick=quick,
    paper={
        "task": "pt_en", "pairs": [30_000, 1000], "vocabulary": 8000, "length": 40,
        "width": 128, "blocks": 4, "heads": 8, "hidden": 512, "batch": 64, "epochs": 20,
        "warm_up": 4000, "factor": 1.0, "sentences": 5000, "rows": 100_000,
        "quick_compile": False, "members": 3,
    },
    data=lambda s: PORTUGUESE_ENGLISH if s.task == "pt_en" else None,
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train, then measure the same rows in every variant."""
    data = load_translation_pairs(
        sizes=s.pairs, vocabulary=s.vocabulary, length=s.length, seed=s.seed,
        stand_in=s.task == "stand-in",
    )  # fmt: skip
    static = {"static_argnums": range(1, 6), "static_argnames": "dtype"}
    make = jax.jit(make_translator, compiler_options=CHEAP_COMPILATION, **static)
    shape = (data.vocabularies, s.width, s.blocks, s.heads, s.hidden)
    start = make(key, *shape, dtype=np.dtype(s.dtype))
    adam = optax.adam(warm_up_rate(s.width, s.warm_up, s.factor), b2=0.98, eps=1e-9)
    with jax.numpy_dtype_promotion("standard"):  # Adam's own arithmetic needs it
        found = train_translator(
            start, adam, data.train, data.validation, key, s.batch, s.epochs,
            quick_compile=s.quick_compile,
        )  # fmt: skip
    if int(found.result) == Result.NOT_FINITE:
        raise UserError("training diverged: lower the factor of the rate")
    models = (start, found.last, tempered(found.last, FACTOR))
    some = SentencePairs(*(part[: s.sentences] for part in data.train))
    places = draw_rows(start, some, s.rows, jax.random.key(s.seed + 1), least=2)
    cut = partial(attention_rows, pairs=some, places=places, quick_compile=s.quick_compile)
    alone = ((sharpened_rows(rows, FACTOR), p) for rows, p in cut(found.last))
    blocks = (*(cut(model) for model in models), alone, uniform_rows(places))
    summaries = {
        name: attention_summary(block, places, TAUS, BINS.size - 1, PAPER_NORM)
        for name, block in zip(VARIANTS, blocks, strict=True)
    }
    scores = [translation_scores(model, data.validation, s.quick_compile) for model in models]
    return attention_dataset(summaries, TAUS).assign(
        validation=(("variant", "score"), [*scores, *[(np.nan, np.nan)] * 2]),
        loss=(("epoch", "set"), np.stack([found.loss, found.validation], axis=1)),
        score=["loss", "accuracy"],
        set=["training", "validation"],
    )


def over_rows(data: xr.Dataset) -> xr.Dataset:
    """Means over the rows of each kind, beside the scores on validation."""
    return means_over_rows(data).assign(validation=data.validation)


def told(data: xr.Dataset, measure: str) -> dict[str, float]:
    """Mean of a measure over all rows, by variant."""
    means = over_rows(data)["mean"].sel(attention="all", measure=measure).mean("member")
    return dict(zip(VARIANTS, means.values, strict=True))


def norm_caption(data: xr.Dataset) -> str:
    """What was learnt, and mean norms and shares by variant."""
    (pairs, held), stand_in = data.attrs["pairs"], data.attrs["task"] == "stand-in"
    task = "generated pairs, a stand-in" if stand_in else "Portuguese-English pairs"
    start, end = (100 * data.validation.sel(score="accuracy").mean("member").values)[:2]
    raw, relative, share = (told(data, measure) for measure in SHOWN)
    high, least = data.high.sel(variant="trained").mean("member").values
    return (
        "Do the $\\lfloor\\sqrt p\\rfloor$ largest weights hold most of the attention? After "
        f"training on {pairs:,} {task}; accuracy on the pieces of {held} validation pairs "
        f"{end:.1f} %, {start:.1f} % at start. Mean $\\ell_2$ norm {raw['trained']:.3f}, where the "
        f"paper's text has {PAPER_NORM} and calls it a share; random start "
        f"{raw['random start']:.3f}, uniform {raw['uniform']:.3f}. Over the row's own norm that "
        f"is {relative['trained']:.3f}, but {relative['random start']:.3f} at the random start "
        f"and {relative['uniform']:.3f} if uniform; the attention they hold is "
        f"{share['trained']:.3f}, {share['random start']:.3f} and {share['uniform']:.3f}. "
        f"Triangles are means. A norm of {PAPER_NORM}, as {100 * high:.0f} % of the trained rows "
        f"have, forces one weight of {PAPER_NORM**2:.3f}: the least found is {least:.3f}."
    )


def support_caption(data: xr.Dataset) -> str:
    """Weights needed at tau = 0.1, by variant."""
    means = over_rows(data).sel(attention="all", tau=0.1).mean("member")
    random, trained, *_, uniform = means.s0_root.transpose("variant", "norm").values
    return (
        "How many weights hold all but $\\tau$, for each layer and head? Mean $s_0$ over "
        "$\\lfloor\\sqrt p\\rfloor$; below the dashed line $\\sqrt p$ weights are enough. At "
        f"$\\tau = 0.1$ that is {trained[0]:.2f} in $\\ell_2$ and {trained[1]:.2f} in share after "
        f"training, {random[0]:.2f} and {random[1]:.2f} at the random start, {uniform[0]:.2f} and "
        f"{uniform[1]:.2f} if uniform. As printed, with a norm of one supposed, "
        f"{100 * float(means.unreached.sel(variant='trained')):.0f} % of the trained rows have no "
        "$s_0$ at $\\tau = 0.1$."
    )


def length_caption(data: xr.Dataset) -> str:
    """Mean norms of short and of long rows."""
    middle, parts = means_of_short_and_long(data, "raw l2")
    short, long = parts.mean("member").transpose("rows", "variant")
    means = ", ".join(
        f"{name} {float(short.sel(variant=name)):.3f} and {float(long.sel(variant=name)):.3f}"
        for name in ("trained", "random start", "uniform")
    )
    return (
        "Is the norm a matter of short rows? The $\\lfloor\\sqrt p\\rfloor$ largest weights by "
        f"the number p of words that a row may attend to. Mean norm of rows up to p = {middle} "
        f"and of longer ones: {means}. Uniform weights have norm "
        "$\\sqrt{\\lfloor\\sqrt p\\rfloor} / p$ and share $\\lfloor\\sqrt p\\rfloor / p$, whose "
        "steps all curves have; rows of a single word are left out."
    )


def temperature_caption(data: xr.Dataset) -> str:
    """What colder attention holds, and what it costs."""
    means, support = told(data, "l1 share"), told(data, "effective support")
    start, trained, colder, *_ = data.validation.sel(score="loss").mean("member").values
    return (
        "Does a lower temperature concentrate attention? With the trained weights and logits "
        f"times {FACTOR:g} the $\\sqrt p$ largest weights hold {means[VARIANTS[2]]:.3f} of the "
        f"attention instead of {means['trained']:.3f}, and exp(entropy) falls from "
        f"{support['trained']:.2f} to {support[VARIANTS[2]]:.2f} words; each row alone gives "
        f"{means[VARIANTS[3]]:.3f}. Nothing was trained again: the validation loss goes from "
        f"{trained:.3f} to {colder:.3f} nats ({start:.3f} at the random start)."
    )


def of(name: str, *variants: str, **labels: Any) -> Callable[[xr.Dataset], xr.DataArray]:
    """A quantity of some variants, the mean over members."""
    chosen = list(variants) if len(variants) > 1 else "".join(variants)
    return lambda data: data[name].mean("member").sel(variant=chosen, **labels)


def mean_masses(data: xr.Dataset) -> xr.DataArray:
    """Mean masses over all rows, by variant."""
    means = over_rows(data)["mean"].sel(attention="all", variant=BUT_ROWS)
    return means.sel(measure=data.mass.values).rename(measure="mass").mean("member")


def by_length(data: xr.Dataset) -> xr.DataArray:
    """Mean masses of rows of each length that has at least thirty."""
    shown = data.by_length.sel(variant=BUT_ROWS, mass=["raw l2", "l1 share"])
    return shown.where(data.rows_by_length >= 30)


def whole(row: Row) -> bool:
    """The lines of the table over all rows."""
    return row["attention"] == "all"


BUT_ROWS = [name for name in VARIANTS if "rows" not in name]
PAPER = Reference(x=PAPER_NORM, label="the paper's mean", style="--", ink=PALETTE[2])
SHARES = Histogram(
    of("histogram", "random start", "trained"), edges=BINS, counted="bin", colour="variant",
    filled="trained", panel="mass", title=SHOWN, xlim=(0, 1), ylabel="share of rows",
)  # fmt: skip
ABOVE = Histogram(
    of("histogram", *BUT_ROWS), edges=BINS, counted="bin", colour="variant", above=True,
    panel="mass", title=SHOWN, xlim=(0, 1), ylim=(0, 1.02), ylabel="share of rows above",
)  # fmt: skip
MEANS = Points(
    lambda data: 0 * mean_masses(data), mean_masses, colour="variant", marker="^", clip=False,
    legend=False,
)  # fmt: skip
HISTOGRAMS = [SHARES + PAPER, ABOVE + MEANS + PAPER]
SUPPORT = (
    Lines(
        of("s0_root", "random start"), "tau", band=extremes, label="random start", ink="#999999",
        row="norm", panel="kind", title="{kind}, {norm}", xscale="log", xlabel="$\\tau$",
        ylabel="$s_0 / \\lfloor\\sqrt{p}\\rfloor$", xlim=(TAUS[0], TAUS[-1]),
        xticks=(0.5, 0.2, 0.1, 0.05, 0.02, 0.01),
    )
    + Lines(of("s0_root", "uniform"), "tau", band=mean_only, style=":", label="uniform")
    + Lines(of("s0_root", "trained"), "tau", colour="layer", band=None, names="layer {layer}")
    + Reference(y=1.0, style="--", label="$s_0 = \\lfloor\\sqrt{p}\\rfloor$")
)  # fmt: skip
LENGTHS = Lines(
    by_length, "length", colour="variant", band=mean_only, row="mass", panel="kind",
    title="{kind}, {mass}", ylim=(0, 1.03), xlabel="length $p$ of the row",
    ylabel="of the largest weights",
) + replace(PAPER, x=None, y={"raw l2": PAPER_NORM})  # fmt: skip
COLDER = Lines(
    of("mean", *VARIANTS[:-1], measure="l1 share"), "variant", colour="layer", band=None,
    style="o-", names="layer {layer}, one line per head", panel="kind", title="{kind}",
    ylim=(0, 1.03), ylabel=SHOWN["l1 share"],
) + Reference(y=of("mean", "uniform", measure="l1 share"), label="uniform")  # fmt: skip
EXPERIMENT = Experiment(
    title="Concentration of a translator's attention",
    question=__doc__,
    grid=GRID,
    run=run,
    table=Table(
        {"variant": "weights", "attention": "attention"},
        [
            Column("rows", "rows", total),
            Printed("paper, top sqrt(p)", {("trained", "all"): PAPER_NORM}),
            *(Column(name, "mean", at={"measure": name}) for name in MEASURES),
            *(
                Column(f"s0 / sqrt(p), {norm}, tau = 0.1", "s0_root", at={"norm": norm, "tau": 0.1})
                for norm in NORMS
            ),
            Column("validation loss", "validation", at={"score": "loss"}, where=whole),
            Column("validation accuracy", "validation", at={"score": "accuracy"}, where=whole),
        ],
        of=over_rows,
    ),
    figures=[
        Plot("Norm and share of the largest weights", HISTOGRAMS, norm_caption),
        Plot("Weights needed for all but $\\tau$, by layer and head", SUPPORT, support_caption),
        Plot("Concentration by length of the row", LENGTHS, length_caption),
        Plot("Attention held by the largest weights, by head", COLDER, temperature_caption),
    ],
    note=NOTE,
)
