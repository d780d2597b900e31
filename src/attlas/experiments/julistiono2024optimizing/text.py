r"""Does $\ell_{1.1}$ mirror descent train better text classifiers than gradient descent?

A Transformer encoder is trained by $\ell_{1.1}$, $\ell_2$ and $\ell_3$ mirror descent on IMDB
reviews, or on digits (is the digit odd? tokens are the image's rows) where no reviews are at hand.
Measured: test accuracy under two ways of choosing the epoch, the attention of the readout on
decisive tokens, and how the query, key and value weights are spread.
"""

from collections.abc import Callable, Mapping, Sequence

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.core.processes import CHEAP_COMPILATION
from attlas.core.solution import Result
from attlas.data.digit_tokens import row_information
from attlas.data.digits import DIGITS
from attlas.data.imdb import IMDB
from attlas.data.sources import is_present
from attlas.measures.attention.encoder_attention import attention_weights, readout_attention
from attlas.measures.statistics.student_interval import student_interval
from attlas.measures.statistics.weight_sizes import weight_sizes
from attlas.models.networks.encoder import Encoder, make_encoder
from attlas.optim.mirror_descent import mirror_descent
from attlas.panels.histogram import Histogram
from attlas.panels.lines import Lines
from attlas.panels.plot import Plot
from attlas.panels.points import Points
from attlas.panels.reference import Reference
from attlas.panels.summary import mean_only, only, quartiles, total
from attlas.panels.table import Column, Printed, Table
from attlas.runs.experiment import CaptionedFigure, Experiment
from attlas.runs.grid import Grid
from attlas.runs.settings import Settings
from attlas.tasks.decisive_tokens import digit_rows, review_pieces
from attlas.tasks.sequence_classifiers import held_out_accuracies, train_classifiers

EXPONENTS = (1.1, 2.0, 3.0)
RATES = {
    0: {1.1: 3e-3, 2.0: 1e-2, 3.0: 1e-3},
    1: {1.1: 3e-3, 2.0: 2e-2, 3.0: 1e-3},
    3: {1.1: 8e-4, 2.0: 4e-4, 3.0: 4e-6},
    4: {1.1: 6e-4, 2.0: 4e-4, 3.0: 6e-6},
    6: {1.1: 1e-3, 2.0: 1e-3, 3.0: 1e-5},
}
"""By number of blocks: released ones from 3 on. Those of digits (0) and of the small run on
reviews (1) were chosen by validation accuracy among two to four of each p."""
BEST_EPOCH = {
    3: ("83.47 ± .09", "81.66 ± .09", "82.57 ± .10"),
    4: ("83.36 ± .13", "81.05 ± .17", "82.40 ± .12"),
    6: ("82.57 ± .10", "81.03 ± .18", "80.65 ± .13"),
}
LAST_EPOCH = {
    3: ("82.57 ± .19", "80.61 ± .32", "81.33 ± .23"),
    4: ("82.93 ± .33", "79.97 ± .46", "80.91 ± .37"),
    6: ("78.07 ± 9.87", "80.11 ± .29", "79.47 ± .32"),
}
"""Released test accuracies in %, by number of blocks and exponent."""
ATTENTION = (0.439, 0.312)
"""Released share of last-layer attention on the decisive token, size 6, sentences unpublished."""
EDGES = np.linspace(-6.0, 1.0, 57)
SELECTED, LAST, BEST = "epoch by validation", "last epoch", "best test epoch (the paper's rule)"
NOTE = (
    "The paper chooses the epoch on the test set; here it is chosen on a validation split, "
    "and the paper's rule is shown beside it. Quick scale: 2,000 IMDB reviews (64 pieces, "
    "one block of width 32) where they are in the data folder, else 1,797 digits (is the digit "
    "odd?); its accuracies are not the paper's. Paper scale: the released sizes and rates; a "
    "30,522-piece vocabulary is trained on the training texts in place of BERT's, 2,500 "
    "training reviews are kept for validation, positions are learnt (the source does not "
    "say). The paper's size-6 numbers are, by its repository's history, those of mean pooling; "
    "the masked first-token runs of August 2024 gave 83.65, 82.23 and 81.97. Digits and small "
    "runs stand beside the paper's numbers for size 3."
)
SMALL = {
    "task": "digits", "blocks": [1], "heads": 2, "width": 16, "hidden": 32, "length": 8,
    "vocabulary": 8, "batch": 50, "epochs": 30, "members": 4, "block": 4,
}  # fmt: skip
REVIEWS = {
    "blocks": [1], "heads": 2, "width": 32, "hidden": 64, "length": 64, "vocabulary": 1000,
    "reviews": [2000, 500, 1000], "deviation": 0.1, "batch": 20, "epochs": 60, "members": 2,
    "block": 2,
}  # fmt: skip


def rate(s: Settings) -> float:
    """The rate of the nearest exponent."""
    rates = RATES[0] if s.task == "digits" else RATES.get(s.blocks, RATES[6])
    return rates[min(rates, key=lambda p: abs(p - s.p))]


GRID = Grid(
    each={"blocks": [3, 4, 6], "p": list(EXPONENTS)},
    fixed={
        "task": "imdb", "heads": lambda s: s.blocks, "width": 384, "hidden": 1536, "length": 511,
        "vocabulary": 30522, "reviews": [0, 0, 0], "dropout": lambda s: 0.2 * (s.blocks > 1),
        "deviation": 1.0, "rate": rate, "batch": 100, "stop": 0.995, "epochs": 1000,
        "members": 10, "block": 1, "dtype": "float32",
    },
    smoke=SMALL | {"epochs": 3, "members": 2, "block": 2},
    quick=lambda: REVIEWS if is_present(IMDB) else SMALL,
    data=lambda s: IMDB if s.task == "imdb" else DIGITS,
    choices={"task": ("digits", "imdb")},
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train the cell's encoders as one ensemble, then look at attention and weights."""
    dtype, digits = np.dtype(s.dtype), s.task == "digits"
    pieces = s.vocabulary, s.length, s.reviews, dtype
    sets, probe, decisive = digit_rows(dtype) if digits else review_pieces(*pieces)
    # The same start and the same batches for every p: differences between p are paired.
    keys = jax.random.split(key, s.members)
    names = ("width", "blocks", "heads", "hidden", "dropout", "deviation")
    shape = {name: s[name] for name in names} | {"length": probe.mask.shape[1]}
    shape["vocabulary"] = probe.tokens.shape[2] if digits else s.vocabulary

    def start(key: Array) -> Encoder:
        return make_encoder(jax.random.fold_in(key, 1), **shape, dtype=dtype)

    models = jax.jit(jax.vmap(start), compiler_options=CHEAP_COMPILATION)(keys)
    step = mirror_descent(s.rate, s.p)
    found = train_classifiers(
        models, step, sets, keys, s.batch, s.epochs, s.stop, quick_compile=digits
    )
    share = np.asarray(readout_attention(found.selected, probe))
    whole = xr.DataArray(found.result != Result.NOT_FINITE.value, dims="member")
    shown = {
        "accuracy": (("rule", "member"), np.stack(held_out_accuracies(found))),
        "decisive": (("member", "example"), np.sum(share * decisive[None], axis=2)),
        "row_attention": (("member", "row"), share.mean(axis=1)),
    }
    data = xr.Dataset(shown if digits else {n: shown[n] for n in ("accuracy", "decisive")})
    data = data.where(whole).assign(
        {
            "diverged": ~whole,
            "selected_epoch": ("member", found.selected_at),
            "epochs": ("member", np.sum(np.isfinite(found.test), axis=1)),
            "uniform": ("example", np.mean(decisive, axis=1, where=probe.mask)),
        }
    )
    if digits:
        data["row_information"] = "row", row_information(sets.train)
        data = data.assign_coords(row=1 + np.arange(share.shape[2]))
    for name, curve in {"loss": found.loss, **found.observed}.items():
        data[name] = ("member", "epoch"), curve
    for name, each in (("weights", found.last), ("weights_start", models)):
        sizes = [weight_sizes(part, EDGES) for part in attention_weights(each).values()]
        data[name] = ("part", "member", "bin"), np.stack([size.counts for size in sizes])
        data[f"{name}_near_zero"] = ("part", "member"), [size.near_zero for size in sizes]
    data = data.assign_coords(part=list(attention_weights(models)), rule=[SELECTED, LAST, BEST])
    return data.assign_coords(epoch=1 + np.arange(data.sizes["epoch"]))


def percent(values: xr.DataArray) -> str:
    """Mean and standard deviation of shares, in %."""
    kept = 100 * values.values[np.isfinite(values.values)]
    spread = f" (deviation {kept.std(ddof=1):.2f})" if kept.size > 1 else ""
    return f"{kept.mean():.2f}{spread}" if kept.size else "diverged"


def by_exponent(values: xr.DataArray, show: Callable[[xr.DataArray], str]) -> str:
    """A quantity of the smallest encoder for each p, in words."""
    each = values.transpose("p", ...)
    return ", ".join(f"{show(own)} for $p = {float(own.p):g}$" for own in each)


def accuracy_caption(data: xr.Dataset) -> str:
    """Accuracies, their paired difference, and what choosing on the test set adds."""
    own = data["accuracy"].isel(blocks=0)
    selected, compared = own.sel(rule=SELECTED), ""
    if {1.1, 2.0} <= set(data.p.values):
        gap = 100 * (selected.sel(p=1.1) - selected.sel(p=2.0)).dropna("member")
        if gap.size > 1:
            middle, reach = student_interval(gap.values)
            compared = (
                f"; $p = 1.1$ minus $p = 2$ is {middle:+.2f} ± {reach:.2f} points "
                f"(95 %, over {gap.size} paired runs)"
            )
    gain = 100 * float((own.sel(rule=BEST) - selected).mean())
    return (
        f"Does $p = 1.1$ generalise best? On {data.attrs['task']}, test accuracy in % with the "
        f"epoch chosen on validation is {by_exponent(selected, percent)}{compared}. Choosing the "
        f"epoch on the test set, as the paper does, adds {gain:.2f} points on average."
    )


def attention_caption(data: xr.Dataset) -> str:
    """Mean attention on the decisive tokens."""
    what = (
        "the row that alone separates odd from even best (Fisher's discriminability)"
        if "row_attention" in data
        else "the decisive word of twelve sentences of our own"
    )
    means = by_exponent(data["decisive"].isel(blocks=0), lambda own: f"{float(own.mean()):.3f}")
    return (
        "Does smaller $p$ attend more to decisive tokens? Last-block attention of the readout on "
        f"{what}, heads averaged, the readout's own position left out: {means}; uniform attention "
        f"gives {float(data.uniform.mean()):.3f}. The paper reports 0.439 ($p = 1.1$) and 0.312 "
        "($p = 2$) on its sentences."
    )


def weights_caption(data: xr.Dataset) -> str:
    """How many weights are nearly zero."""
    small = data["weights_near_zero"].isel(blocks=0)
    told = by_exponent(small, lambda own: f"{100 * float(own.mean()):.1f} %")
    return (
        "Are the attention weights sparser for smaller $p$? Share of query, key and value weights "
        f"below $10^{{-3}}$ after training: {told}; the leftmost bin holds all that is smaller."
    )


def side_by_side(name: str) -> Callable[[xr.Dataset], xr.DataArray]:
    """A quantity whose exponents are names, and stand at equal distances."""
    return lambda data: data[name].assign_coords(p=[f"$p = {p:g}$" for p in data.p.values])


def outlines(data: xr.Dataset) -> xr.DataArray:
    """Counts after training with each p, and at the start."""
    trained = side_by_side("weights")(data)
    start = data["weights_start"].isel(p=[0]).assign_coords(p=["start"])
    return xr.concat([trained, start], "p").rename(p="outline")


def attention(data: xr.Dataset) -> CaptionedFigure:
    """Attention by row of a digit, or on the decisive words."""
    panel = ROWS if "row_attention" in data else WORDS
    return Plot("Attention on decisive tokens", panel, attention_caption)(data)


def information(data: xr.Dataset) -> xr.DataArray:
    """Information of each row as a share of their sum."""
    own = data["row_information"].isel(p=0)
    return own / own.sum("row")


def released(head: str, numbers: Mapping[int, Sequence[object]]) -> Printed:
    """A column of the paper's numbers; those for three blocks stand beside small runs, too."""
    rows = {**numbers, 1: numbers[3]}.items()
    return Printed(head, {(size, EXPONENTS[k]): v for size, r in rows for k, v in enumerate(r)})


UNIFORM = Reference(y=lambda data: data["uniform"], label="uniform")
ACCURACY = Points(
    lambda data: 100 * side_by_side("accuracy")(data), "p", colour="rule", band=mean_only,
    members=True, hollow=True, dodge=0.2, panel="blocks", title="blocks: {blocks}",
    ylabel="test accuracy, %", width=1.6,
)  # fmt: skip
ROWS = (
    Lines(
        "row_attention", "row", colour="p", band=quartiles, panel="blocks",
        title="blocks: {blocks}", xlabel="row of the image", ylabel="share of attention", width=1.6,
    )
    + Lines(information, "row", style="s--", label="class information")
    + UNIFORM
)  # fmt: skip
WORDS = (
    Points(
        side_by_side("decisive"), "p", band=quartiles, members=True, panel="blocks",
        title="blocks: {blocks}", ylabel="share of attention", width=1.6,
        label="median and quartiles over runs and sentences",
    )
    + UNIFORM
)  # fmt: skip
WEIGHTS = Histogram(
    outlines, edges=EDGES, counted="bin", colour="outline", panel="part", row="blocks",
    title="{part}", xlabel="$\\log_{10} |w|$", ylabel="share of weights",
)  # fmt: skip
EXPERIMENT = Experiment(
    title="Text and digits: a Transformer encoder by mirror descent",
    question=__doc__,
    grid=GRID,
    run=run,
    table=Table(
        ["blocks", "p"],
        [
            Column("task", lambda data: xr.DataArray(data.attrs["task"]), only),
            Column("runs", "diverged", lambda members: members.size),
            Column("diverged", "diverged", total),
            Column("test, epoch by validation", "accuracy", percent, at={"rule": SELECTED}),
            Column("test, best test epoch", "accuracy", percent, at={"rule": BEST}),
            released("paper (IMDB), best test epoch", BEST_EPOCH),
            Column("test, last epoch", "accuracy", percent, at={"rule": LAST}),
            released("paper (IMDB), last epoch", LAST_EPOCH),
            Column("attention on decisive", "decisive"),
            Column("if uniform", "uniform"),
            released("paper, size 6", dict.fromkeys(BEST_EPOCH, ATTENTION)),
            Column("|w| < 1e-3 in Q, K, V", "weights_near_zero"),
            Column("at the start", "weights_start_near_zero"),
        ],
    ),
    figures=[
        Plot("Test accuracy by mirror descent exponent", ACCURACY, accuracy_caption),
        attention,
        Plot("Sizes of the query, key and value weights", WEIGHTS, weights_caption),
    ],
    note=NOTE,
)
