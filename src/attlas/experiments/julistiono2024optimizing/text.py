r"""Does l_1.1 mirror descent train better text classifiers than gradient descent?

A Transformer encoder is trained by l_1.1, l_2 and l_3 mirror descent on IMDB reviews, or on
digits (is the digit odd? tokens are the image's rows) where no reviews are at hand. Measured:
test accuracy under two ways of choosing the epoch, the attention of the readout on decisive
tokens, and how the query, key and value weights are spread.
"""

from collections.abc import Mapping, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from attlas.core.processes import CHEAP_COMPILATION
from attlas.core.solution import Result
from attlas.data.decisive_sentences import decisive_sentences
from attlas.data.digit_tokens import digit_sequences, row_information
from attlas.data.digits import DIGITS, load_digits
from attlas.data.imdb import IMDB, load_imdb
from attlas.data.sources import is_present
from attlas.data.splits import Split
from attlas.data.token_sequences import TokenSequences
from attlas.data.word_pieces import encode_words, train_word_pieces
from attlas.models.networks.encoder import Encoder, make_encoder
from attlas.optim.mirror_descent import mirror_descent
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.tasks.sequence_classifiers import Sets, held_out_accuracies, train_classifiers

EXPONENTS = (1.1, 2.0, 3.0)
PAPER_RATES = {
    3: {1.1: 8e-4, 2.0: 4e-4, 3.0: 4e-6},
    4: {1.1: 6e-4, 2.0: 4e-4, 3.0: 6e-6},
    6: {1.1: 1e-3, 2.0: 1e-3, 3.0: 1e-5},
}
PAPER_ACCURACY = {
    (1.1, 3): ("83.47 ± .09", "82.57 ± .19"),
    (2.0, 3): ("81.66 ± .09", "80.61 ± .32"),
    (3.0, 3): ("82.57 ± .10", "81.33 ± .23"),
    (1.1, 4): ("83.36 ± .13", "82.93 ± .33"),
    (2.0, 4): ("81.05 ± .17", "79.97 ± .46"),
    (3.0, 4): ("82.40 ± .12", "80.91 ± .37"),
    (1.1, 6): ("82.57 ± .10", "78.07 ± 9.87"),
    (2.0, 6): ("81.03 ± .18", "80.11 ± .29"),
    (3.0, 6): ("80.65 ± .13", "79.47 ± .32"),
}
"""Released test accuracies in %, best epoch on the test set and last epoch, by (p, size)."""
PAPER_ATTENTION = {1.1: 0.439, 2.0: 0.312}
"""Released share of last-layer attention on the decisive token, size 6, sentences unpublished."""
DIGIT_RATES = {1.1: 3e-3, 2.0: 1e-2, 3.0: 1e-3}
REVIEW_RATES = {1.1: 3e-3, 2.0: 2e-2, 3.0: 1e-3}
"""Rates of the small runs, chosen by validation accuracy among two to four of each p."""
BINS = np.linspace(-6.0, 1.0, 57)
PARTS = ("query", "key", "value")


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each p (and, at paper scale, size and seed)."""
    if scale is Scale.PAPER:
        return tuple(
            _reviews(p, PAPER_RATES[size][p], size, seed)
            for size in PAPER_RATES
            for p in EXPONENTS
            for seed in range(10)
        )
    if scale is Scale.QUICK and is_present(IMDB):
        return tuple(_reviews(p, REVIEW_RATES[p], 1, 0) for p in EXPONENTS)
    small = {"task": "digits", "blocks": 1, "heads": 2, "width": 16, "hidden": 32, "length": 8}
    small |= {"dropout": 0.0, "deviation": 1.0, "batch": 50, "stop": 0.995, "vocabulary": 8}
    small |= {"runs": 4, "epochs": 30} if scale is Scale.QUICK else {"runs": 2, "epochs": 3}
    return tuple(
        Cell(small | {"p": p, "rate": DIGIT_RATES[p]}, 0, "float32", DIGITS.data_hash)
        for p in EXPONENTS
    )


def _reviews(p: float, rate: float, size: int, seed: int) -> Cell:
    full = size > 1
    settings = {
        "task": "imdb", "p": p, "rate": rate, "blocks": size, "heads": size if full else 2,
        "width": 384 if full else 32, "hidden": 1536 if full else 64,
        "dropout": 0.2 if full else 0.0, "deviation": 1.0 if full else 0.1,
        "length": 511 if full else 64, "vocabulary": 30522 if full else 1000,
        "reviews": None if full else [2000, 500, 1000], "batch": 100 if full else 20,
        "stop": 0.995, "runs": 1 if full else 2, "epochs": 1000 if full else 60,
    }  # fmt: skip
    return Cell(settings, seed, "float32", IMDB.data_hash)


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Train the cell's encoders as one ensemble, then look at attention and weights."""
    s = cell.settings
    dtype = np.dtype(cell.dtype)
    sets, probe, decisive = _digits(dtype) if s["task"] == "digits" else _texts(cell, dtype)
    # The same start and the same batches for every p: differences between p are paired.
    keys = jax.random.split(jax.random.key(cell.seed), s["runs"])

    def start(key: jax.Array) -> Encoder:
        names = ("vocabulary", "length", "width", "blocks", "heads", "hidden", "dropout")
        shape = {name: s[name] for name in (*names, "deviation")}
        return make_encoder(jax.random.fold_in(key, 1), **shape, dtype=dtype)

    models = jax.jit(jax.vmap(start), compiler_options=CHEAP_COMPILATION)(keys)
    step, tiny = mirror_descent(s["rate"], s["p"]), s["task"] == "digits"
    found = train_classifiers(
        models, step, sets, keys, s["batch"], s["epochs"], s["stop"], quick_compile=tiny
    )
    attention = np.asarray(_readout_attention(found.selected, probe))
    row_mean = attention.mean(axis=1) if s["task"] == "digits" else np.zeros((s["runs"], 0))
    informed = row_information(sets.train) if s["task"] == "digits" else np.zeros(0)
    # Of one length in all cells, so that they stack: NaN after the last epoch.
    rest = ((0, 0), (0, s["epochs"] - found.loss.shape[1]))
    curves = {"loss": found.loss, **found.observed}.items()
    tested = held_out_accuracies(found)
    return {
        **{name: np.pad(curve, rest, constant_values=np.nan) for name, curve in curves},
        "test_selected": tested.selected,
        "test_last": tested.last,
        "test_best": tested.best,
        "selected_epoch": found.selected_at,
        "epochs": np.sum(np.isfinite(found.test), axis=1),
        "result": found.result,
        "decisive": np.sum(attention * decisive[None], axis=2),
        "uniform": np.mean(decisive, axis=1, where=probe.mask),
        "row_attention": row_mean,
        "row_information": informed,
        "weights": _spread(found.last),
        "weights_start": _spread(models),
        "near_zero": _near_zero(found.last),
        "near_zero_start": _near_zero(models),
    }


def _digits(dtype: np.dtype) -> tuple[Sets, TokenSequences, np.ndarray]:
    """Digits; the decisive token of every image is the row of most class information."""
    sets = Sets(*(_as(digit_sequences(split), dtype) for split in load_digits()))
    decisive = np.zeros(sets.test.mask.shape)
    decisive[:, np.argmax(row_information(sets.train))] = 1
    return sets, sets.test, decisive


def _texts(cell: Cell, dtype: np.dtype) -> tuple[Sets, TokenSequences, np.ndarray]:
    """Reviews; the decisive tokens are the pieces of the marked word of our own sentences."""
    s = cell.settings
    splits = load_imdb()
    if s["reviews"] is not None:
        chosen = zip(splits, s["reviews"], strict=True)
        splits = [_some(split, count, place) for place, (split, count) in enumerate(chosen)]
    pieces = train_word_pieces(list(splits[0].inputs), s["vocabulary"])
    sets = Sets(*(_as(encode_words(pieces, split, s["length"]), dtype) for split in splits))
    sentences = decisive_sentences()
    texts = np.array([each.text for each in sentences], dtype=object)
    labels = np.array([each.label for each in sentences])
    probe = _as(encode_words(pieces, Split(texts, labels), s["length"]), dtype)
    decisive = np.zeros(probe.mask.shape)
    for row, each in enumerate(sentences):
        spans = pieces.encode(each.text).offsets
        for place, (first, last) in enumerate(spans):
            decisive[row, place] = first < each.end and last > each.start
    return sets, probe, decisive


def _some(split: Split, count: int, seed: int) -> Split:
    chosen = np.random.default_rng(seed).permutation(split.labels.size)[:count]
    return Split(split.inputs[chosen], split.labels[chosen])


def _as(data: TokenSequences, dtype: np.dtype) -> TokenSequences:
    continuous = np.issubdtype(data.tokens.dtype, np.floating)
    tokens = np.asarray(data.tokens, dtype if continuous else None)
    return TokenSequences(tokens, data.mask, np.asarray(data.labels, dtype))


@eqx.filter_jit
def _readout_attention(models: Encoder, probe: TokenSequences) -> jax.Array:
    """Attention of the readout in the last block on each token, heads averaged, sum one."""

    def one(model: Encoder, tokens: jax.Array, mask: jax.Array) -> jax.Array:
        weights = jnp.mean(model.attention(tokens, mask)[-1][:, 0, 1:], axis=0)
        return weights / jnp.sum(weights)

    members = jax.vmap(one, in_axes=(None, 0, 0))
    return eqx.filter_vmap(members, in_axes=(0, None, None))(
        models, jnp.asarray(probe.tokens), jnp.asarray(probe.mask)
    )


def _parts(models: Encoder) -> list[np.ndarray]:
    return [
        np.concatenate([np.abs(np.asarray(getattr(b, part))).ravel() for b in models.blocks])
        for part in PARTS
    ]


def _spread(models: Encoder) -> np.ndarray:
    """Counts of log10 |w| in `BINS`, for queries, keys, values; what is outside is clipped."""
    clipped = (np.clip(size, 10 ** BINS[0], 10 ** BINS[-1]) for size in _parts(models))
    return np.array([np.histogram(np.log10(size), BINS)[0] for size in clipped])


def _near_zero(models: Encoder) -> np.ndarray:
    """Share of query, key and value weights below a thousandth in size."""
    return np.array([np.mean(size < 1e-3) for size in _parts(models)])


def _grouped(records: Sequence[Record]) -> dict[tuple[str, int, float], list[Record]]:
    groups: dict[tuple[str, int, float], list[Record]] = {}
    for record in records:
        s = record.cell.settings
        groups.setdefault((s["task"], s["blocks"], s["p"]), []).append(record)
    return dict(sorted(groups.items()))


def _joined(records: Sequence[Record], name: str) -> np.ndarray:
    """One array of all members that stayed finite."""
    parts = [r.arrays[name][r.arrays["result"] != Result.NOT_FINITE.value] for r in records]
    return np.concatenate(parts)


def _percent(values: np.ndarray) -> str:
    if values.size == 0:
        return "diverged"
    spread = f" ± {100 * values.std(ddof=1):.2f}" if values.size > 1 else ""
    return f"{100 * values.mean():.2f}{spread}"


def table(records: Sequence[Record]) -> pd.DataFrame:
    """Test accuracies in % (mean ± deviation over runs), attention and sparsity, by p."""
    rows = []
    for (task, size, p), group in _grouped(records).items():
        decisive = _joined(group, "decisive")
        paper = PAPER_ACCURACY[p, size if (p, size) in PAPER_ACCURACY else 3]
        codes = np.concatenate([r.arrays["result"] for r in group])
        rows.append(
            {
                "task": task,
                "blocks": size,
                "p": p,
                "runs": codes.size,
                "diverged": int(np.sum(codes == Result.NOT_FINITE.value)),
                "test, epoch by validation": _percent(_joined(group, "test_selected")),
                "test, best test epoch": _percent(_joined(group, "test_best")),
                "paper (IMDB), best test epoch": paper[0],
                "test, last epoch": _percent(_joined(group, "test_last")),
                "paper (IMDB), last epoch": paper[1],
                "attention on decisive": float(decisive.mean()) if decisive.size else np.nan,
                "if uniform": float(group[0].arrays["uniform"].mean()),
                "paper, size 6": PAPER_ATTENTION.get(p, np.nan),
                "|w| < 1e-3 in Q, K, V": float(np.mean([r.arrays["near_zero"] for r in group])),
                "at the start": float(np.mean([r.arrays["near_zero_start"] for r in group])),
            }
        )
    return pd.DataFrame(rows)


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """For the smallest size that was run: accuracy, attention, weights."""
    groups = _grouped(records)
    if not groups:
        return ()
    task, size, _ = min(groups)
    shown = {p: group for (t, b, p), group in groups.items() if (t, b) == (task, size)}
    return (
        _accuracy_panel(shown, task),
        _attention_panel(shown, task),
        _weight_panel(shown),
    )


def _accuracy_panel(shown: Mapping[float, Sequence[Record]], task: str) -> Panel:
    figure, axis = plt.subplots(figsize=(6, 3.4), layout="constrained")
    rules = {
        "test_selected": "epoch by validation",
        "test_last": "last epoch",
        "test_best": "best test epoch (the paper's rule)",
    }
    for place, (name, label) in enumerate(rules.items()):
        for k, group in enumerate(shown.values()):
            values = 100 * _joined(group, name)
            x = np.full(values.size, k + 0.2 * (place - 1))
            axis.plot(x, values, "o^s"[place], color=f"C{place}", label=None if k else label)
    axis.set_xticks(range(len(shown)), [f"p = {p:g}" for p in shown])
    axis.set_ylabel("test accuracy, %")
    axis.legend(fontsize="small")
    means = {p: _joined(group, "test_selected") for p, group in shown.items()}
    told = ", ".join(f"{_percent(v)} for p = {p:g}" for p, v in means.items())
    alive = [group for p, group in shown.items() if means[p].size]
    gain = [np.mean(_joined(g, "test_best") - _joined(g, "test_selected")) for g in alive]
    caption = (
        f"Does p = 1.1 generalise best? On {task}, test accuracy in % with the epoch chosen on "
        f"validation is {told}{_compared(means)}. Choosing the epoch on the test set, as the paper "
        f"does, adds {100 * float(np.mean(gain or [np.nan])):.2f} points on average."
    )
    return Panel("Test accuracy by mirror descent exponent", caption, figure)


def _compared(means: Mapping[float, np.ndarray]) -> str:
    """Paired difference of p = 1.1 to p = 2, where the members are the same."""
    if not {1.1, 2.0} <= set(means) or means[1.1].size != means[2.0].size or means[2.0].size < 2:
        return ""
    gap = 100 * (means[1.1] - means[2.0])
    error = gap.std(ddof=1) / np.sqrt(gap.size)
    return (
        f"; p = 1.1 minus p = 2 is {gap.mean():+.2f} ± {error:.2f} points "
        f"(standard error over {gap.size} paired runs)"
    )


def _attention_panel(shown: Mapping[float, Sequence[Record]], task: str) -> Panel:
    figure, axis = plt.subplots(figsize=(6, 3.4), layout="constrained")
    shares = {p: _joined(group, "decisive") for p, group in shown.items()}
    uniform = float(next(iter(shown.values()))[0].arrays["uniform"].mean())
    if task == "digits":
        for p, group in shown.items():
            rows = _joined(group, "row_attention")
            if rows.size:
                axis.plot(range(1, rows.shape[1] + 1), rows.mean(axis=0), "o-", label=f"p = {p:g}")
        informed = next(iter(shown.values()))[0].arrays["row_information"]
        relative = informed / informed.sum()
        axis.bar(range(1, informed.size + 1), relative, color="0.8", label="class information")
        axis.set_xlabel("row of the image")
        what = "the row that alone separates odd from even best (Fisher's discriminability)"
    else:
        kept = {p: v for p, v in shares.items() if v.size}
        axis.boxplot([v.ravel() for v in kept.values()], tick_labels=[f"p = {p:g}" for p in kept])
        what = "the decisive word of twelve sentences of our own"
    axis.axhline(uniform, color="0.4", linestyle=":", label="uniform")
    axis.set_ylabel("share of attention")
    axis.legend(fontsize="small")
    told = ", ".join(f"{v.mean():.3f} for p = {p:g}" for p, v in shares.items() if v.size)
    caption = (
        f"Does smaller p attend more to decisive tokens? Last-block attention of the readout on "
        f"{what}, heads averaged, the readout's own position left out: {told or 'all diverged'}; "
        f"uniform attention gives {uniform:.3f}. The paper reports 0.439 (p = 1.1) and 0.312 "
        "(p = 2) on its sentences."
    )
    return Panel("Attention on decisive tokens", caption, figure)


def _weight_panel(shown: Mapping[float, Sequence[Record]]) -> Panel:
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True, layout="constrained")
    first = next(iter(shown.values()))[0].arrays["weights_start"]
    for k, (axis, part) in enumerate(zip(axes, PARTS, strict=True)):
        for p, group in shown.items():
            counts = np.sum([r.arrays["weights"][k] for r in group], axis=0)
            axis.stairs(counts / counts.sum(), BINS, label=f"p = {p:g}")
        axis.stairs(first[k] / first[k].sum(), BINS, color="0.5", linestyle=":", label="start")
        axis.set_title(part)
        axis.set_xlabel("log10 |w|")
    axes[0].set_ylabel("share of weights")
    axes[0].legend(fontsize="small")
    small = {p: np.mean([r.arrays["near_zero"] for r in group]) for p, group in shown.items()}
    told = ", ".join(f"{100 * share:.1f} % for p = {p:g}" for p, share in small.items())
    caption = (
        "Are the attention weights sparser for smaller p? Share of query, key and value weights "
        f"below 1e-3 after training: {told}; the leftmost bin holds all that is smaller."
    )
    return Panel("Sizes of the query, key and value weights", caption, figure)


EXPERIMENT = Experiment(
    name="text",
    paper="julistiono2024optimizing",
    title="Text and digits: a Transformer encoder by mirror descent",
    question=(
        "Does l_1.1 mirror descent generalise better than gradient descent, attend more to "
        "decisive tokens, and give sparser weights?"
    ),
    revision=2,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        **dict.fromkeys(("loss", "train", "validation", "test"), ("member", "epoch")),
        **dict.fromkeys(("test_selected", "test_last", "test_best", "result"), ("member",)),
        **dict.fromkeys(("selected_epoch", "epochs"), ("member",)),
        "decisive": ("member", "example"),
        "uniform": ("example",),
        "row_attention": ("member", "row"),
        "row_information": ("row",),
        **dict.fromkeys(("weights", "weights_start"), ("part", "bin")),
        **dict.fromkeys(("near_zero", "near_zero_start"), ("part",)),
    },
    note=(
        "The paper chooses the epoch on the test set; here it is chosen on a validation split, "
        "and the paper's rule is shown beside it. Quick scale: 2,000 IMDB reviews (64 pieces, "
        "one block of width 32) where they are in the data folder, else 1,797 digits (is the digit "
        "odd?); its accuracies are not the paper's. Paper scale: the released sizes and rates; a "
        "30,522-piece vocabulary is trained on the training texts in place of BERT's, 2,500 "
        "training reviews are kept for validation, positions are learnt (the source does not "
        "say). The paper's size-6 numbers are, by its repository's history, those of mean pooling; "
        "the masked first-token runs of August 2024 gave 83.65, 82.23 and 81.97."
    ),
)
