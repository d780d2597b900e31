r"""Does attention need fewer reviews? Tables 1 and 2 of liu2021analyzing, whose numbers are lost.

A network on flattened words beside self-attention, with an l1 penalty and a tempered softmax; an
LSTM beside recurrent attention. Variants of one model differ in numbers only, so that all of them
and all replications train as one ensemble.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.core.processes import CHEAP_COMPILATION
from attlas.core.solution import Result
from attlas.data.imdb import IMDB
from attlas.data.sources import is_present
from attlas.data.token_sequences import TokenSequences
from attlas.measures.attention.concentration import concentration
from attlas.measures.statistics.student_interval import student_interval
from attlas.models.attention.recurrent_attention import RecurrentAttention
from attlas.models.attention.self_attention_mlp import SelfAttentionMLP
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.tasks.reviews.review_words import ReviewWords, load_review_words
from attlas.tasks.reviews.variants import ReviewSizes, make_review_model, train_reviews

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

EQUAL = 1e9
"""A temperature at which all weights are equal in single precision."""
VARIANTS = {
    "mlp": {"MLP": (0.0, 1.0), "MLP + l1": (1e-4, 1.0)},
    "attention": {
        "self-attention": (0.0, 1.0),
        "+ l1": (1e-4, 1.0),
        "+ tempered": (0.0, 0.2),
        "+ l1, tempered": (1e-4, 0.2),
        "equal weights": (0.0, EQUAL),
    },
    "lstm": {"LSTM": (0.0, 1.0)},
    "recurrent": {"recurrent attention": (0.0, 1.0), "+ l1": (1e-4, 1.0)},
}
"""Factor of the l1 penalty and temperature of the softmax, by model and variant."""
TABLES = {"Table 1": ("mlp", "attention"), "Table 2": ("lstm", "recurrent")}
"""The first model without its penalty is the baseline."""
COLOURS = ("#0072b2", "#56b4e9", "#d55e00", "#cc79a7", "#009e73")
TEXTS = {"imdb": "IMDB", "generated": "Generated reviews (a stand-in for IMDB)"}
NOTE = (
    "The numbers of the paper's Tables 1 and 2 are lost; what is tested is the order. Quick scale "
    "trains four replications of small models on 500 and 2,000 IMDB reviews where they are in the "
    "data folder, else on 150 and 600 generated reviews of a small grammar, which stand in for "
    "IMDB; smoke is smaller still. Paper scale: 1,000 to 10,000 reviews, ten replications, 25,000 "
    "test reviews. Replications differ in start and order of the batches, not in the reviews. All "
    "sizes take equally many steps: an epoch shows few reviews several times; it is chosen on "
    "validation. The vocabulary is that of the largest training set. Equal weights and an MLP with "
    "the penalty are controls that the paper lacks. Zero-padded words are attended to, as printed. "
    "Recurrent attention is that of appendix B, with four steps and a network as score."
)
STATISTICS = ("top norm", "relative top norm", "top share", "effective support", "padding")
COLUMNS = ("top-sqrt(p) norm", "over the row's", "top-sqrt(p) share", "support", "on padding")
PROBE = 40
"""Test reviews whose attention is looked at."""


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each number of reviews and each model."""
    real = scale is Scale.PAPER or (scale is Scale.QUICK and is_present(IMDB))
    shape = {"length": 64, "t": 16, "hidden": 16, "state": 12, "readers": [16, 8]}
    shape |= {"vocabulary": 100}
    training = {"rate": 3e-3, "batch": 20, "epochs": 6, "members": 4}
    sizes, held = (150, 600), {"validation": 200, "test": 500}
    if scale is Scale.SMOKE:
        shape |= {"length": 12, "t": 4, "hidden": 4, "state": 3, "readers": [3]}
        training |= {"epochs": 2, "members": 2}
        sizes, held = (20, 40), {"validation": 20, "test": 60}
    elif real:
        shape = {"length": 130, "t": 32, "hidden": 32, "state": 32, "readers": [64, 20]}
        shape |= {"vocabulary": 5000}
        training = {"rate": 1e-3, "batch": 32, "epochs": 6, "members": 4}
        sizes, held = (500, 2000), {"validation": 500, "test": 2000}
    if scale is Scale.PAPER:
        shape |= {"t": 100, "hidden": 64, "vocabulary": 10_000}
        training |= {"epochs": 10, "members": 10}
        sizes = (1000, 2000, 5000, 10_000)
        held = {"validation": 2500, "test": 25_000}
    common = {"text": "imdb" if real else "generated", **shape, **training, **held}
    common |= {"steps": 4, "pool": sizes[-1]}
    digest = IMDB.data_hash if real else ""
    return tuple(
        Cell({"model": model, "n": n, **common}, 0, "float32", digest)
        for n in sizes
        for model in VARIANTS
    )


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Train all variants and replications of one model on n reviews."""
    s = cell.settings
    data = _reviews(s["text"], s["pool"], s["validation"], s["test"], s["vocabulary"],
                    s["length"], cell.seed)  # fmt: skip
    variants = np.array(list(VARIANTS[s["model"]].values()), np.float32)
    # The same start and the same batches for every variant and model: differences are paired.
    own = jax.random.split(jax.random.key(cell.seed), s["members"])
    keys = jnp.tile(own, len(variants))
    numbers = np.repeat(variants, s["members"], axis=0)
    names = ("length", "t", "hidden", "state", "steps")
    given = {name: s[name] for name in names}
    sizes = ReviewSizes(vocabulary=len(data.words), **given, readers=tuple(s["readers"]))

    def start(key: Array, numbers: Array) -> Any:
        return make_review_model(key, s["model"], sizes, numbers[0], numbers[1])

    models = jax.jit(jax.vmap(start), compiler_options=CHEAP_COMPILATION)(keys, numbers)
    # Every size takes the same steps: an epoch is as long as that of the largest one.
    rows = np.resize(np.arange(s["n"]), s["pool"])
    train = jax.tree.map(lambda a: a[rows], data.train)
    found, right = train_reviews(
        models, s["rate"], train, data.validation, data.test, keys, s["batch"], s["epochs"]
    )
    shape = (-1, s["members"])
    spread, uniform = _concentrations(found.selected, data.test)
    return {
        "accuracy": right.reshape(shape),
        "loss": found.loss.reshape(*shape, s["epochs"]),
        "train": found.train.reshape(*shape, s["epochs"]),
        "validation": found.validation.reshape(*shape, s["epochs"]),
        "selected_epoch": found.selected_at.reshape(shape),
        "result": found.result.reshape(shape),
        "concentration": spread.reshape(*shape, len(STATISTICS)),
        "uniform": uniform,
    }


@lru_cache(1)
def _reviews(
    text: str, pool: int, validation: int, test: int, vocabulary: int, length: int, seed: int
) -> ReviewWords:
    """The largest set; smaller ones are its beginning. Kept, since reading IMDB takes seconds."""
    sizes = (pool, validation, test)
    return load_review_words(None, sizes, vocabulary, length, seed, text == "generated")


def _concentrations(models: Any, data: TokenSequences) -> tuple[np.ndarray, np.ndarray]:
    """Means of `STATISTICS` over the attention rows of some texts; the same of equal weights."""
    count = models.embedding.shape[0]
    if not isinstance(models.network, SelfAttentionMLP | RecurrentAttention):
        return np.full((count, len(STATISTICS)), np.nan), np.full(len(STATISTICS), np.nan)
    tokens, mask = np.asarray(data.tokens[:PROBE]), np.asarray(data.mask[:PROBE])
    rows = np.asarray(_attention(models, jnp.asarray(tokens), jnp.asarray(mask)))
    words = mask.sum(axis=1)
    if isinstance(models.network, SelfAttentionMLP):
        rows, lengths = rows[:, mask], np.full(words.sum(), mask.shape[1])  # one row a word
        outside = np.repeat(~mask, words, axis=0)
    else:
        lengths, outside = words, ~mask
    equal = (np.arange(mask.shape[1]) < lengths[:, None]) / lengths[:, None]
    found = [_means(own, lengths, outside) for own in (*rows, equal)]
    return np.array(found[:-1]), found[-1]


def _means(rows: np.ndarray, lengths: np.ndarray, outside: np.ndarray) -> np.ndarray:
    if not np.isfinite(rows).all():
        return np.full(len(STATISTICS), np.nan)
    c = concentration(rows, lengths)
    padding = np.sum(rows, axis=1, where=outside)
    columns = (c.top_norm, c.relative_top_norm, c.top_share, c.effective_support, padding)
    return np.array([column.mean() for column in columns])


@eqx.filter_jit
def _attention(models: Any, tokens: Array, mask: Array) -> Array:
    """Attention rows: of each word, or of the last step."""

    def one(model: Any, tokens: Array, mask: Array) -> Array:
        x = jnp.where(mask[None, :], model.embedding[tokens].T, 0)
        if isinstance(model.network, SelfAttentionMLP):
            return model.network.attention(x).T
        return model.network.attention(x, mask)[-1]

    texts = jax.vmap(one, in_axes=(None, 0, 0))
    return eqx.filter_vmap(texts, in_axes=(eqx.if_array(0), None, None))(models, tokens, mask)


class _Entry(NamedTuple):
    """One variant at one number of reviews."""

    table: str
    model: str
    variant: str
    settings: Mapping
    accuracy: np.ndarray
    gap: np.ndarray
    spread: np.ndarray
    uniform: np.ndarray
    result: np.ndarray

    @property
    def name(self) -> str:
        """The variant with its model."""
        base = {"attention": "self-attention", "recurrent": "recurrent attention"}
        return f"{base[self.model]} {self.variant}" if self.variant[0] == "+" else self.variant


def _entries(records: Sequence[Record]) -> list[_Entry]:
    """All variants; gaps to the baseline of their table are paired by start and batches."""
    found = {(r.cell.settings["model"], r.cell.settings["n"]): r for r in records}
    entries = []
    for name, (baseline, other) in TABLES.items():
        for (model, n), record in found.items():
            if model not in (baseline, other):
                continue
            a, base = record.arrays, found.get((baseline, n))
            for k, variant in enumerate(VARIANTS[model]):
                own = a["accuracy"][k]
                gap = (
                    np.full(own.shape, np.nan) if base is None else own - base.arrays["accuracy"][0]
                )
                rest = a["concentration"][k], a["uniform"], a["result"][k]
                entries.append(_Entry(name, model, variant, record.cell.settings, own, gap, *rest))
    return entries


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Test accuracies in %, paired differences to the baseline, and how concentrated rows are."""
    import pandas as pd

    rows = []
    for each in _entries(records):
        gap, reach = student_interval(100 * each.gap)
        own = 100 * each.accuracy
        rows.append(
            {
                "table": each.table,
                "text": TEXTS[each.settings["text"]],
                "reviews": each.settings["n"],
                "model": each.name,
                "runs": each.accuracy.size,
                "diverged": int(np.sum(each.result == Result.NOT_FINITE.value)),
                "test accuracy, %": f"{own.mean():.2f} ± {own.std(ddof=1):.2f}",
                "minus baseline": f"{gap:+.2f} ± {reach:.2f}" if each.gap.any() else "",
                "paper": "lost",
                **dict(zip(COLUMNS, each.spread.mean(axis=0), strict=True)),
                "share if equal": each.uniform[STATISTICS.index("top share")],
            }
        )
    return pd.DataFrame(rows)


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """Accuracy by number of reviews, paired differences, and concentration."""
    entries = _entries(records)
    panels = [_accuracy_panel(entries)]
    compared = [each for each in entries if np.isfinite(each.gap).all() and each.gap.any()]
    attending = [each for each in entries if np.isfinite(each.spread).all()]
    panels += [_gap_panel(compared)] if compared else []
    panels += [_concentration_panel(attending)] if attending else []
    return tuple(panels)


def _colour(each: _Entry) -> str:
    """One colour a variant in all figures; baselines are grey."""
    if each.model in ("mlp", "lstm"):
        return "0.35" if each.variant in ("MLP", "LSTM") else "0.65"
    return COLOURS[list(VARIANTS[each.model]).index(each.variant)]


def _said(entries: Sequence[_Entry]) -> str:
    return f"{TEXTS[entries[0].settings['text']]}, {entries[0].accuracy.size} paired replications"


def _accuracy_panel(entries: Sequence[_Entry]) -> Panel:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9.6, 4), sharey=True, layout="constrained")
    largest, told = max(each.settings["n"] for each in entries), []
    for axis, name in zip(axes, TABLES, strict=True):
        own = [each for each in entries if each.table == name]
        lines = list(dict.fromkeys(each.name for each in own))
        for place, line in enumerate(lines):
            points = [each for each in own if each.name == line]
            n = [each.settings["n"] * 1.025 ** (place - len(lines) / 2) for each in points]
            means = [100 * each.accuracy.mean() for each in points]
            dashed = "--" if line == "equal weights" else "-"
            axis.plot(n, means, dashed, color=_colour(points[0]), lw=1.8, label=line)
            for x, each in zip(n, points, strict=True):
                axis.plot(np.full(each.accuracy.size, x), 100 * each.accuracy, "o", ms=3.5,
                          alpha=0.6, color=_colour(each))  # fmt: skip
            last = {each.settings["n"]: mean for each, mean in zip(points, means, strict=True)}
            told += [f"{line} {last[largest]:.1f}"] if largest in last else []
        sizes = sorted({each.settings["n"] for each in own})
        axis.set(xscale="log", xlabel="training reviews", title=name)
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axis.minorticks_off()
        if own:
            axis.legend(fontsize=8, frameon=False)
    axes[0].set_ylabel("test accuracy, %")
    caption = (
        f"Does attention need fewer reviews? {_said(entries)}; mean test accuracy in % with "
        f"{largest} reviews, epoch chosen on validation: {', '.join(told)}. Points are "
        "replications. The numbers of the paper's tables are lost."
    )
    return Panel("Reviews: accuracy against training size", caption, figure)


def _gap_panel(shown: Sequence[_Entry]) -> Panel:
    import matplotlib.pyplot as plt

    sizes = sorted({each.settings["n"] for each in shown})
    lines = list(dict.fromkeys(each.name for each in shown))
    figure, axes = plt.subplots(1, len(sizes), figsize=(3.2 + 2.9 * len(sizes), 3.9), sharey=True,
                                squeeze=False, layout="constrained")  # fmt: skip
    told = []
    for axis, size in zip(axes[0], sizes, strict=True):
        axis.axvline(0, color="0.4", lw=1, ls=":")
        above, below = 0, 0
        for each in shown:
            if each.settings["n"] != size:
                continue
            gap, reach = student_interval(100 * each.gap)
            place = -lines.index(each.name)
            axis.errorbar(gap, place, xerr=reach, fmt="o", color=_colour(each), capsize=3, ms=6)
            axis.plot(100 * each.gap, np.full(each.gap.size, place - 0.25), "|", ms=6,
                      color=_colour(each), alpha=0.7)  # fmt: skip
            above, below = above + (gap > reach), below + (gap < -reach)
        axis.set(title=f"{size:,} reviews", xlabel="accuracy minus baseline, points")
        told.append(f"with {size} reviews {above} intervals lie above 0, {below} below")
    axes[0, 0].set_yticks(-np.arange(len(lines)), lines)
    caption = (
        f"Which changes help? {_said(shown)}; paired differences to the MLP (recurrent "
        f"models: to the LSTM) with Student's 95 % intervals: {'; '.join(told)}. Intervals are "
        "over starts and orders on one draw of reviews, each for itself."
    )
    return Panel("Reviews: paired differences to the baseline", caption, figure)


def _concentration_panel(entries: Sequence[_Entry]) -> Panel:
    import matplotlib.pyplot as plt

    largest = max(each.settings["n"] for each in entries if np.isfinite(each.spread).all())
    shown = [
        each for each in entries if each.settings["n"] == largest and np.isfinite(each.spread).all()
    ]
    column = STATISTICS.index("top share")
    figure, axis = plt.subplots(figsize=(7.2, 4), layout="constrained")
    for each in shown:
        x, y = each.spread[:, column], 100 * each.accuracy
        mark = "o" if each.model == "attention" else "s"
        axis.plot(x, y, mark, ms=5, alpha=0.55, color=_colour(each))
        axis.plot(x.mean(), y.mean(), mark, ms=10, color=_colour(each), mec="k", label=each.name)
    axis.set(xlabel="share of the floor(sqrt(p)) largest weights", ylabel="test accuracy, %")
    axis.set_xlim(0, 1)
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    told = [f"{each.name} {each.spread[:, column].mean():.2f}" for each in shown]
    runs = {each.name: 100 * each.accuracy for each in shown}
    if "equal weights" in runs:
        gap, reach = student_interval(runs["self-attention"] - runs["equal weights"])
        told[-1] += f". Self-attention minus equal weights: {gap:+.1f} ± {reach:.1f} points"
    caption = (
        f"Is more concentrated attention more accurate? {_said(entries)}, {largest} reviews; the "
        f"floor(sqrt(p)) largest weights of a row of {PROBE} test reviews hold on average: "
        f"{', '.join(told)}. Small marks are replications, large ones their means."
    )
    return Panel("Reviews: accuracy and concentration of attention", caption, figure)


_CURVE = ("variant", "member", "epoch")
EXPERIMENT = Experiment(
    name="reviews",
    paper="liu2021analyzing",
    title="Reviews: attention, penalty and tempered softmax",
    question="Does attention classify reviews better than a network or an LSTM, from how many?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        **dict.fromkeys(("accuracy", "selected_epoch", "result"), ("variant", "member")),
        **dict.fromkeys(("loss", "train", "validation"), _CURVE),
        "concentration": ("variant", "member", "statistic"),
        "uniform": ("statistic",),
    },
    note=NOTE,
)
