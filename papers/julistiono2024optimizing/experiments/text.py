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

from attlas._jax.device_arrays import entry
from attlas.data.digit_tokens import row_information
from attlas.data.digits import DIGITS
from attlas.data.imdb import IMDB
from attlas.data.sources import is_present
from attlas.experiments import panels
from attlas.experiments.experiment import CaptionedFigure, Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import Column, Lines, Points, taken
from attlas.experiments.settings import Settings
from attlas.measures.statistics.student_interval import student_interval
from attlas.models.networks.encoder import Encoder
from attlas.optim.mirror_descent import mirror_descent
from attlas.transformers.attlas_model import StoredForm, stored_form
from julistiono2024optimizing.library.training.decisive_encoders import (
    PARTS,
    train_decisive_encoders,
)
from julistiono2024optimizing.library.training.decisive_tokens import (
    DecisiveTokens,
    digit_tokens,
    review_pieces,
)

EXPONENTS = (1.1, 2.0, 3.0)
COMPARED = (1.1, 2.0)
"""The exponent of the question, and that of gradient descent."""
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
AUDITED = 32
"""Number of held-out reviews stored with a trained encoder, for an audit."""
EDGES = np.linspace(-6.0, 1.0, 57)
SELECTED, LAST, BEST = "epoch by validation", "last epoch", "best test epoch (the paper's rule)"
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


def work(s: Settings) -> float:
    """Products of training, up to a factor; 20,000 reviews where all are asked for."""
    token = s.blocks * s.width * (4 * s.width + 2 * s.hidden + 2 * s.length)
    return s.members * s.epochs * (s.reviews[0] or 20_000) * s.length * token


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
    work=work,
    data=lambda s: IMDB if s.task == "imdb" else DIGITS,
    choices={"task": ("digits", "imdb")},
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train the cell's encoders as one ensemble, then look at attention and weights."""
    dtype, digits = np.dtype(s.dtype), s.task == "digits"
    reviews = s.vocabulary, s.length, s.reviews, dtype
    task = digit_tokens(dtype=dtype) if digits else review_pieces(*reviews)
    names = ("width", "blocks", "heads", "hidden", "dropout", "deviation")
    shape = {name: s[name] for name in names} | {"length": task.probe.mask.shape[1]}
    shape |= {"vocabulary": task.probe.tokens.shape[2] if digits else s.vocabulary, "dtype": dtype}
    # The same start and the same batches for every p: differences between p are paired.
    keys, step = jax.random.split(key, s.members), mirror_descent(s.rate, s.p)
    encoders = train_decisive_encoders(
        task, shape, step, keys, s.batch, s.epochs, s.stop, EDGES, quick_compile=digits
    )
    fields = encoders._asdict()
    curves, by_place, selected = (fields.pop(n) for n in ("curves", "by_place", "selected"))
    axes = dict.fromkeys(fields, ("member",)) | {
        "accuracy": ("rule", "member"), "decisive": ("member", "example"), "uniform": ("example",),
        "weights": ("part", "member", "bin"), "weights_start": ("part", "member", "bin"),
        "weights_near_zero": ("part", "member"), "weights_start_near_zero": ("part", "member"),
    }  # fmt: skip
    data = xr.Dataset(
        {name: (axes[name], values) for name, values in fields.items()}
        | {name: (("member", "epoch"), curve) for name, curve in curves.items()},
        {"rule": [SELECTED, LAST, BEST], "part": list(PARTS)},
    ).assign_coords(epoch=1 + np.arange(len(curves["loss"][0])))
    if digits:
        data["row_attention"] = ("member", "row"), by_place
        data["row_information"] = "row", row_information(task.sets.train)
        data = data.assign_coords(row=1 + np.arange(data.sizes["row"]))
    return data.assign_attrs(models=stored_models(selected, encoders.diverged, task))


def stored_models(
    models: Encoder, diverged: np.ndarray, task: DecisiveTokens
) -> dict[str, StoredForm]:
    """The first member that did not diverge, at its selected epoch, and reviews to audit it."""
    usable = np.flatnonzero(~diverged)
    if not usable.size:
        return {}
    model = jax.tree.map(lambda leaf: entry(leaf, int(usable[0])), models)
    test = task.sets.test
    continuous = bool(np.issubdtype(test.tokens.dtype, np.floating))
    # a stored encoder reads its learned first token as one more word, with which it is handed
    first = model.embedding.shape[0]
    reviews = (
        []
        if continuous
        else [
            np.concatenate([[first], words[there]])
            for words, there in zip(test.tokens[:AUDITED], test.mask[:AUDITED], strict=True)
            if there.any()
        ]
    )
    form = stored_form(model, continuous=continuous, sequences=reviews)
    return {f"member-{usable[0]}": form}


def percent(values: xr.DataArray) -> str:
    """Mean and standard deviation of shares, in %."""
    shares = 100 * values.values[np.isfinite(values.values)]
    spread = f" (deviation {shares.std(ddof=1):.2f})" if shares.size > 1 else ""
    return f"{shares.mean():.2f}{spread}" if shares.size else "diverged"


def by_exponent(values: xr.DataArray, show: Callable[[xr.DataArray], str]) -> str:
    """A quantity of the smallest encoder for each p, in words."""
    rows = values.transpose("p", ...)
    return ", ".join(f"{show(row)} for $p = {float(row.p):g}$" for row in rows)


def released_gains() -> np.ndarray:
    """Points by which the released best test epochs exceed the last ones."""
    best, last = (
        np.array([[float(cell.split()[0]) for cell in row] for row in table.values()])
        for table in (BEST_EPOCH, LAST_EPOCH)
    )
    return best - last


def accuracies(data: xr.Dataset) -> dict[str, object]:
    """Accuracies, their paired difference, and what choosing on the test set adds."""
    accuracy = data["accuracy"].isel(blocks=0)
    selected, gap = accuracy.sel(rule=SELECTED), np.empty(0)
    if set(COMPARED) <= set(data.p.values):
        ours, plain = (selected.sel(p=p) for p in COMPARED)
        gap = 100 * (ours - plain).dropna("member").values
    compared = gap.size > 1
    middle, half_width = student_interval(gap) if compared else (np.nan, np.nan)
    return {
        "task": data.attrs["task"],
        "accuracies": by_exponent(selected, percent),
        "compared": compared,
        "compares": [f"{p:g}" for p in COMPARED],
        "gap": f"{middle:+.2f}",
        "reach": f"{half_width:.2f}",
        "runs": gap.size,
        "gain": f"{100 * float((accuracy.sel(rule=BEST) - selected).mean()):.2f}",
        "released": [f"{gain:.1f}" for gain in (released_gains().min(), released_gains().max())],
    }


def decisive(data: xr.Dataset) -> dict[str, object]:
    """Mean attention on the decisive tokens."""
    attention = data["decisive"].isel(blocks=0)
    return {
        "digits": "row_attention" in data,
        "means": by_exponent(attention, lambda row: f"{float(row.mean()):.3f}"),
        "uniform": f"{float(data.uniform.mean()):.3f}",
    }


def small_weights(data: xr.Dataset) -> dict[str, object]:
    """How many weights are nearly zero."""
    shares = data["weights_near_zero"].isel(blocks=0)
    return {"shares": by_exponent(shares, lambda row: f"{100 * float(row.mean()):.1f} %")}


def side_by_side(name: str) -> panels.Formula:
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
    return panels.Plot("Attention on decisive tokens", panel, decisive)(data)


def information(data: xr.Dataset) -> xr.DataArray:
    """Information of each row as a share of their sum."""
    bits = data["row_information"].isel(p=0)
    return bits / bits.sum("row")


def released(head: str, numbers: Mapping[int, Sequence[object]]) -> panels.Printed:
    """A column of the paper's numbers; those for three blocks stand beside small runs, too."""
    rows = {**numbers, 1: numbers[3]}.items()
    cells = {(blocks, EXPONENTS[k]): v for blocks, row in rows for k, v in enumerate(row)}
    return panels.Printed(head, cells)


def answer(data: xr.Dataset) -> dict[str, object]:
    """The paired difference of the accuracies, and on which side of zero its interval lies."""
    facts = accuracies(data)
    middle, half_width = (float(str(facts[name])) for name in ("gap", "reach"))
    return facts | {"better": middle > half_width, "worse": -middle > half_width}


UNIFORM = panels.Reference(y=taken("uniform"), label="uniform")
ACCURACY = Points(
    lambda data: 100 * side_by_side("accuracy")(data), "p", colour="rule", band=panels.mean_only,
    members=True, hollow=True, dodge=0.2, panel="blocks", title="blocks: {blocks}",
    ylabel="test accuracy, %", width=1.6,
)  # fmt: skip
ROWS = (
    Lines(
        "row_attention", "row", colour="p", band=panels.quartiles, panel="blocks",
        title="blocks: {blocks}", xlabel="row of the image", ylabel="share of attention", width=1.6,
    )
    + Lines(information, "row", style="s--", label="class information")
    + UNIFORM
)  # fmt: skip
WORDS = (
    Points(
        side_by_side("decisive"), "p", band=panels.quartiles, members=True, panel="blocks",
        title="blocks: {blocks}", ylabel="share of attention", width=1.6,
        label="median and quartiles over runs and sentences",
    )
    + UNIFORM
)  # fmt: skip
WEIGHTS = panels.Histogram(
    outlines, edges=EDGES, counted="bin", colour="outline", panel="part", row="blocks",
    title="{part} weights", xlabel="size of a weight, decimal logarithm", ylabel="share of weights",
)  # fmt: skip
EXPERIMENT = Experiment(
    title="Text and digits: a Transformer encoder by mirror descent",
    question=__doc__,
    grid=GRID,
    revision=2,
    run=run,
    answer=answer,
    table=panels.Table(
        ["blocks", "p"],
        [
            Column("task", lambda data: xr.DataArray(data.attrs["task"]), panels.only),
            Column("runs", "diverged", lambda members: members.size),
            Column("diverged", "diverged", panels.total),
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
        panels.Plot("Test accuracy by mirror descent exponent", ACCURACY, accuracies),
        attention,
        panels.Plot("Sizes of the query, key and value weights", WEIGHTS, small_weights),
    ],
)
