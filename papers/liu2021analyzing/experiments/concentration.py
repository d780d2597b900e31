r"""Do the $\sqrt{p}$ largest of $p$ attention weights hold most of a trained row?

An encoder-decoder is trained on Portuguese-English pairs, or on generated ones that stand in for
them. The same attention rows, drawn once, are measured at the random start, after training, with
logits times 5, and with uniform weights in their place.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.data.portuguese_english import PORTUGUESE_ENGLISH
from attlas.data.sources import is_present
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import (
    Column,
    Histogram,
    Lines,
    Points,
    Reference,
    extremes,
    mean_only,
)
from attlas.experiments.settings import Settings
from attlas.models.networks.translator import make_translator
from attlas.transformers.attlas_model import stored_form
from liu2021analyzing.library.data.translation_pairs import SentencePairs, load_translation_pairs
from liu2021analyzing.library.measures.rows import (
    attention_rows,
    draw_rows,
    sharpened_rows,
    uniform_rows,
)
from liu2021analyzing.library.measures.summary import (
    MEASURES,
    NORMS,
    attention_dataset,
    attention_summary,
    mean_over_all_rows,
    means_of_short_and_long,
    means_over_rows,
)
from liu2021analyzing.library.models.tempered_translator import tempered
from liu2021analyzing.library.training.translation import (
    train_translator,
    translation_scores,
    warm_up_rate,
)

PAPER_NORM = 0.909  # the paper's mean l2 norm of the floor(sqrt(p)) largest weights
FACTOR = 5.0
AUDITED = 32
"""Held-out sentences that are kept with the model, for its audit."""
TAUS = (0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)
BINS = np.linspace(0.0, 1.0, 41)
SHOWN = {
    "raw l2": "norm: root of their sum of squares",
    "relative l2": "norm / norm of the whole row",
    "l1 share": "sum: share of the attention",
}
WORDED = {
    "raw l2": "Euclidean norm", "l1 share": "share of the attention", "l2": "Euclidean norm",
    "l1": "share", "trained, model x 5": "trained, logits times 5",
    "trained, rows x 5": "trained, each row times 5", "cross": "encoder-decoder",
}  # fmt: skip
"""Labels of the record in words."""
VARIANTS = ("random start", "trained", "trained, model x 5", "trained, rows x 5", "uniform")
REAL = {"task": "pt_en", "pairs": [1200, 200], "vocabulary": 800, "length": 32}
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
    quick=lambda: REAL if is_present(PORTUGUESE_ENGLISH) else {},
    paper={
        "task": "pt_en", "pairs": [30_000, 1000], "vocabulary": 8000, "length": 40,
        "width": 128, "blocks": 4, "heads": 8, "hidden": 512, "batch": 64, "epochs": 20,
        "warm_up": 4000, "factor": 1.0, "sentences": 5000, "rows": 100_000,
        "quick_compile": False, "members": 3,
    },
    work=lambda s: (
        s.members * s.epochs * s.pairs[0] * s.length
        * (s.blocks * s.width * (12 * s.width + 4 * s.hidden) + s.width * s.vocabulary)
    ),
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
        path = train_translator(
            start, adam, data.train, data.validation, key, s.batch, s.epochs,
            quick_compile=s.quick_compile,
        )  # fmt: skip
    if int(path.result) == Result.NOT_FINITE:
        raise UserError("training diverged: lower the factor of the rate")
    models = (start, path.last, tempered(path.last, FACTOR))
    some = SentencePairs(*(part[: s.sentences] for part in data.train))
    places = draw_rows(start, some, s.rows, jax.random.key(s.seed + 1), least=2)
    cut = partial(attention_rows, pairs=some, places=places, quick_compile=s.quick_compile)
    alone = ((sharpened_rows(rows, FACTOR), p) for rows, p in cut(path.last))
    blocks = (*(cut(model) for model in models), alone, uniform_rows(places))
    summaries = {
        name: attention_summary(block, places, TAUS, BINS.size - 1, PAPER_NORM)
        for name, block in zip(VARIANTS, blocks, strict=True)
    }
    scores = [translation_scores(model, data.validation, s.quick_compile) for model in models]
    pairs = zip(data.validation.source[:AUDITED], data.validation.mask, strict=False)
    held_out = [words[there] for words, there in pairs if there.sum() > 1]
    return (
        attention_dataset(summaries, TAUS)
        .assign(
            validation=(("variant", "score"), [*scores, *[(np.nan, np.nan)] * 2]),
            loss=(("epoch", "set"), np.stack([path.loss, path.validation], axis=1)),
            score=["loss", "accuracy"],
            set=["training", "validation"],
        )
        .assign_attrs(models={"trained": stored_form(path.last, sequences=held_out)})
    )


def over_rows(data: xr.Dataset) -> xr.Dataset:
    """Means over the rows of each kind, beside the scores on validation."""
    return means_over_rows(data).assign(validation=data.validation)


def by_variant(data: xr.Dataset, measure: str, digits: int = 3) -> dict[str, str]:
    """Mean of a measure over all rows, by variant."""
    means = mean_over_all_rows(data, "mean").sel(measure=measure).mean("member")
    return {name: f"{x:.{digits}f}" for name, x in zip(VARIANTS, means.values, strict=True)}


def norms(data: xr.Dataset) -> dict[str, object]:
    """What was learnt, and mean norms and shares by variant."""
    start, end = (100 * data.validation.sel(score="accuracy").mean("member").values)[:2]
    high, least = data.high.sel(variant="trained").mean("member").values
    raw, relative, share = (by_variant(data, measure) for measure in SHOWN)
    return {
        "pairs": f"{data.attrs['pairs'][0]:,}", "held": data.attrs["pairs"][1],
        "stand_in": data.attrs["task"] == "stand-in", "start": f"{start:.1f}", "end": f"{end:.1f}",
        "raw": raw, "relative": relative, "share": share, "high": f"{100 * high:.0f}",
        "paper": PAPER_NORM, "forced": f"{PAPER_NORM**2:.3f}", "least": f"{least:.3f}",
    }  # fmt: skip


def support(data: xr.Dataset) -> dict[str, object]:
    """Weights needed at tau = 0.1, by variant."""
    means = over_rows(data).sel(attention="all", tau=0.1).mean("member")
    needed = [
        {name: f"{x:.2f}" for name, x in zip(VARIANTS, by_norm.values, strict=True)}
        for by_norm in means.s0_root.transpose("norm", "variant")
    ]
    unreached = f"{100 * float(means.unreached.sel(variant='trained')):.0f}"
    return {"norm": needed[0], "share": needed[1], "unreached": unreached}


def lengths(data: xr.Dataset) -> dict[str, object]:
    """Mean norms of short and of long rows."""
    middle, halves = means_of_short_and_long(data, "raw l2")
    short, long = halves.mean("member").transpose("rows", "variant")
    means = ", ".join(
        f"{name} {float(short.sel(variant=name)):.3f} and {float(long.sel(variant=name)):.3f}"
        for name in ("trained", "random start", "uniform")
    )
    return {"middle": middle, "means": means}


def temperature(data: xr.Dataset) -> dict[str, object]:
    """What colder attention holds, and what it costs."""
    losses = data.validation.sel(score="loss").mean("member").values
    return {
        "factor": f"{FACTOR:g}", "share": by_variant(data, "l1 share"),
        "support": by_variant(data, "effective support", 2),
        "loss": {name: f"{x:.3f}" for name, x in zip(VARIANTS[:3], losses, strict=False)},
    }  # fmt: skip


def in_words(values: xr.DataArray) -> xr.DataArray:
    """A quantity whose norms and kinds of attention have the names that figures show."""
    axes = {"norm", "kind"} & set(values.dims)
    axes |= {"mass"} & set(values.dims) if "length" in values.dims else set()
    return values.assign_coords({
        axis: [WORDED.get(label, label) for label in values[axis].values.tolist()] for axis in axes
    })  # fmt: skip


def of(name: str, *variants: str, **labels: Any) -> panels.Formula:
    """A quantity of some variants, the mean over members."""
    names = list(variants) if len(variants) > 1 else "".join(variants)
    return lambda data: in_words(data[name].mean("member").sel(variant=names, **labels))


def variants_in_words(data: xr.Dataset) -> xr.DataArray:
    """The share of the attention by the names of variants that figures show."""
    names = VARIANTS[:-1]
    values = of("mean", *names, measure="l1 share")(data)
    return values.assign_coords(variant=[WORDED.get(name, name) for name in names])


def mean_masses(data: xr.Dataset) -> xr.DataArray:
    """Mean masses over all rows, by variant."""
    means = mean_over_all_rows(data, "mean").sel(variant=BUT_ROWS)
    return means.sel(measure=data.mass.values).rename(measure="mass").mean("member")


def by_length(data: xr.Dataset) -> xr.DataArray:
    """Mean masses of rows of each length that has at least thirty."""
    masses = data.by_length.sel(variant=BUT_ROWS, mass=["raw l2", "l1 share"])
    return in_words(masses.where(data.rows_by_length >= 30))


def all_rows(row: panels.Row) -> bool:
    """The lines of the table over all rows."""
    return row["attention"] == "all"


def answer(data: xr.Dataset) -> dict[str, object]:
    """What the largest weights hold, and under which reading the paper's norm comes out."""
    means = mean_over_all_rows(data, "mean").sel(variant="trained").mean("member")
    relative = float(means.sel(measure="relative l2"))
    return norms(data) | {
        "most": float(means.sel(measure="l1 share")) > 0.5,
        "reproduced": relative >= PAPER_NORM > float(means.sel(measure="raw l2")),
    }


BUT_ROWS = [name for name in VARIANTS if "rows" not in name]
PAPER = Reference(x=PAPER_NORM, label=f"{PAPER_NORM:g}: mean norm in the paper's text",
                  style="--", ink="#333333")  # fmt: skip
ABOVE = (
    Histogram(
        of("histogram", *BUT_ROWS), edges=BINS, counted="bin", colour="variant", above=True,
        names=WORDED,
        panel="mass", title=SHOWN, xlim=(0, 1), ylim=(0, 1.02),
        ylabel="share of rows above the value",
        xlabel="value for the $\\lfloor\\sqrt{p}\\rfloor$ largest of $p$ weights",
    )
    + Points(lambda data: 0 * mean_masses(data), mean_masses, colour="variant", marker="^",
             clip=False, legend=False, key="triangles: mean of the line of this colour")
    + PAPER
)  # fmt: skip
SUPPORT = (
    Lines(
        of("s0_root", "random start"), "tau", band=extremes, label="random start", ink="#999999",
        row="norm", panel="kind", title="{kind}, {norm}", xscale="log",
        xlabel="part $\\tau$ left out", ylabel="largest weights needed / $\\sqrt{p}$",
        xlim=(TAUS[0], TAUS[-1]),
        xticks=(0.5, 0.2, 0.1, 0.05, 0.02, 0.01),
    )
    + Lines(of("s0_root", "uniform"), "tau", band=mean_only, style=":", label="uniform")
    + Lines(of("s0_root", "trained"), "tau", colour="layer", band=None, names="layer {layer}")
    + Reference(y=1.0, style="--", label="$\\lfloor\\sqrt{p}\\rfloor$ weights")
)  # fmt: skip
LENGTHS = Lines(
    by_length, "length", colour="variant", band=mean_only, row="mass", panel="kind",
    title="{kind}, {mass}", ylim=(0, 1.03), xlabel="length $p$ of the row",
    ylabel={
        "Euclidean norm": "mean norm of the $\\lfloor\\sqrt{p}\\rfloor$ largest weights",
        "share of the attention": "mean sum of the $\\lfloor\\sqrt{p}\\rfloor$ largest weights",
    }, names=WORDED,
) + replace(PAPER, x=None, y={WORDED["raw l2"]: PAPER_NORM})  # fmt: skip
COLDER = Lines(
    variants_in_words, "variant", colour="layer", band=None,
    style="o-", names="layer {layer}", panel="kind", title="{kind}",
    ylim=(0, 1.03), ylabel="sum of the $\\lfloor\\sqrt{p}\\rfloor$ largest weights of a row of $p$",
    xlabel="state of the model",
) + Reference(y=of("mean", "uniform", measure="l1 share"), label="uniform")  # fmt: skip
EXPERIMENT = Experiment(
    title="Concentration of a translator's attention",
    question=__doc__,
    grid=GRID,
    revision=2,
    run=run,
    answer=answer,
    table=panels.Table(
        {"variant": "weights", "attention": "attention"},
        [
            Column("rows", "rows", panels.total),
            panels.Printed("paper, top sqrt(p)", {("trained", "all"): PAPER_NORM}),
            *(Column(name, "mean", at={"measure": name}) for name in MEASURES),
            *(
                Column(f"s0 / sqrt(p), {norm}, tau = 0.1", "s0_root", at={"norm": norm, "tau": 0.1})
                for norm in NORMS
            ),
            Column("validation loss", "validation", at={"score": "loss"}, where=all_rows),
            Column("validation accuracy", "validation", at={"score": "accuracy"}, where=all_rows),
        ],
        of=over_rows,
    ),
    figures=[
        panels.Plot("Norm and share of the largest weights", ABOVE, norms),
        panels.Plot("Weights needed for all but $\\tau$, by layer and head", SUPPORT, support),
        panels.Plot("Concentration by length of the row", LENGTHS, lengths),
        panels.Plot("Attention held by the largest weights, by head", COLDER, temperature),
    ],
)
