r"""Does attention classify reviews better than a network or an LSTM, and from how many?

Tables 1 and 2 of liu2021analyzing, whose numbers are lost: a network on flattened words beside
self-attention, with an $\ell_1$ penalty and a tempered softmax; an LSTM beside recurrent
attention of appendix B and of Luong et al. All variants and replications of one model train as
one ensemble.
"""

from functools import lru_cache

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.core.solution import Result
from attlas.data.imdb import IMDB
from attlas.data.sources import is_present
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import (
    Column,
    Derived,
    Lines,
    Points,
    Reference,
    mean_and_interval,
    mean_only,
)
from attlas.experiments.settings import Settings
from attlas.measures.statistics.onset import onset
from attlas.measures.statistics.student_interval import student_interval
from liu2021analyzing.library.reviews.attention import STATISTICS, review_concentration
from liu2021analyzing.library.reviews.review_words import load_review_words
from liu2021analyzing.library.reviews.variants import (
    ReviewSizes,
    make_review_ensemble,
    train_reviews,
)

EQUAL = 1e9
"""A temperature at which all weights are equal in single precision."""
VARIANTS = {
    "mlp": {"MLP": (0.0, 1.0), "MLP + l1": (1e-4, 1.0)},
    "attention": {
        "self-attention": (0.0, 1.0),
        "self-attention + l1": (1e-4, 1.0),
        "self-attention + tempered": (0.0, 0.2),
        "self-attention + l1, tempered": (1e-4, 0.2),
        "equal weights": (0.0, EQUAL),
    },
    "lstm": {"LSTM": (0.0, 1.0)},
    "luong": {"Luong attention": (0.0, 1.0), "Luong attention + l1": (1e-4, 1.0)},
    "recurrent": {"recurrent attention": (0.0, 1.0), "recurrent attention + l1": (1e-4, 1.0)},
}
"""Factor of the l1 penalty and temperature of the softmax."""
PAPER_MODELS = ["mlp", "attention", "lstm", "recurrent"]
"""Those of paper scale; Luong's structure is trained at the smaller ones."""
TABLES = {
    "Table 1": [*VARIANTS["mlp"], *VARIANTS["attention"]],
    "Table 2": [*VARIANTS["lstm"], *VARIANTS["luong"], *VARIANTS["recurrent"]],
}
"""The first model of a table is the baseline of the others."""
ATTENDING = [*VARIANTS["attention"], *VARIANTS["luong"], *VARIANTS["recurrent"]]
TEXTS = {"imdb": "IMDB", "generated": "Generated reviews (a stand-in for IMDB)"}
DRAW = 0
"""Seed of the reviews: all replications read the same ones."""
PROBE = 40
"""Test reviews whose attention is looked at."""
REAL = {
    "text": "imdb", "n": [500, 2000], "pool": 2000, "length": 130, "t": 32, "hidden": 32,
    "state": 32, "readers": [64, 20], "vocabulary": 5000, "rate": 1e-3, "batch": 32,
    "validation": 500, "test": 2000,
}  # fmt: skip
GRID = Grid(
    each={"n": [150, 600], "model": list(VARIANTS)},
    fixed={
        "text": "generated", "pool": 600, "length": 64, "t": 16, "hidden": 16, "state": 12,
        "readers": [16, 8], "steps": 4, "vocabulary": 100, "rate": 3e-3, "batch": 20, "epochs": 6,
        "validation": 200, "test": 500, "members": 4, "dtype": "float32",
    },
    smoke={
        "n": [20, 40], "pool": 40, "length": 12, "t": 4, "hidden": 4, "state": 3, "readers": [3],
        "epochs": 2, "validation": 20, "test": 60, "members": 2,
    },
    quick=lambda: REAL if is_present(IMDB) else {},
    paper={
        **REAL, "n": [1000, 2000, 5000, 10_000], "pool": 10_000, "t": 100, "hidden": 64,
        "vocabulary": 10_000, "epochs": 10, "validation": 2500, "test": 25_000, "members": 10,
        "model": PAPER_MODELS,
    },
    work=lambda s: (
        s.members * s.epochs * max(s.pool, s.n)
        * (s.length * s.t * (s.length + s.hidden) + s.t * s.vocabulary / s.batch)
    ),
    data=lambda s: IMDB if s.text == "imdb" else None,
)  # fmt: skip

read_once = lru_cache(1)(load_review_words)
"""Reading IMDB takes seconds; smaller training sets are the beginning of the largest."""


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train all variants and replications of one model on n reviews."""
    pool = max(s.pool, s.n)
    data = read_once(
        None, (pool, s.validation, s.test), s.vocabulary, s.length, DRAW, s.text == "generated"
    )
    sizes = ReviewSizes(len(data.words), s.length, s.t, s.hidden, s.state, s.steps, s.readers)
    variants = VARIANTS[s.model]
    keys, numbers = jax.random.split(key, s.members), list(variants.values())
    models, keys = make_review_ensemble(keys, s.model, sizes, numbers)
    # Every size takes the same steps: an epoch is as long as that of the largest one.
    train = jax.tree.map(lambda a: a[np.resize(np.arange(s.n), pool)], data.train)
    path, accuracy = train_reviews(
        models, s.rate, train, data.validation, data.test, keys, s.batch, s.epochs
    )
    looks = review_concentration(path.selected, jax.tree.map(lambda a: a[:PROBE], data.test))

    def stack(values: Array | np.ndarray, *axes: str) -> tuple[tuple[str, ...], np.ndarray]:
        shape = (len(variants), s.members, *values.shape[1:])
        return ("model", "member", *axes), np.reshape(values, shape)

    return xr.Dataset(
        {
            "accuracy": stack(accuracy), "result": stack(path.result),
            "selected_epoch": stack(path.selected_at), "loss": stack(path.loss, "epoch"),
            "training": stack(path.train, "epoch"), "validation": stack(path.validation, "epoch"),
            "concentration": stack(looks.models, "statistic"),
            "uniform": (("model", "statistic"), np.tile(looks.uniform, (len(variants), 1))),
        },
        # The variants of a model are labels of one axis: "self-attention + l1" is a model.
        {"model": list(variants), "statistic": list(STATISTICS)},
    )  # fmt: skip


def percent(data: xr.Dataset) -> xr.DataArray:
    """Test accuracies in percent."""
    return 100 * data.accuracy


def gap(data: xr.Dataset) -> xr.DataArray:
    """Accuracy minus that of the table's baseline with the same start and batches, in points."""
    names = [name for models in TABLES.values() for name in models[1:] if name in data.model]
    baselines = {name: models[0] for models in TABLES.values() for name in models}
    base = percent(data).reindex(model=[baselines[name] for name in names])
    return percent(data).sel(model=names) - base.assign_coords(model=names)


def of(models: list[str], quantity: panels.Formula) -> panels.Formula:
    """A quantity of some models, which have colours of their own: their axis is `network`."""

    def of_models(data: xr.Dataset) -> xr.DataArray:
        there = [name for name in models if name in data.model]
        return quantity(data).sel(model=there).rename(model="network")

    return of_models


def largest(data: xr.Dataset) -> xr.DataArray:
    """Accuracies in percent with the most reviews."""
    return percent(data).isel(n=-1)


def share(data: xr.Dataset) -> xr.DataArray:
    """What the largest weights of a row hold, with the most reviews."""
    return data.concentration.isel(n=-1).sel(statistic="top share")


def means_text(values: xr.DataArray, digits: int) -> str:
    """The mean of each model that has one."""
    means = values.mean("member").to_series().dropna()
    return ", ".join(f"{name} {mean:.{digits}f}" for name, mean in means.items())


def size(data: xr.Dataset) -> dict[str, object]:
    """The reviews, their largest number and the replications."""
    text = TEXTS[data.attrs["text"]]
    return {"text": text, "n": f"{int(data.n[-1]):,}", "members": data.sizes["member"]}


def accuracies(data: xr.Dataset) -> dict[str, object]:
    """Mean accuracies with the most reviews."""
    return {**size(data), "accuracies": means_text(largest(data), 1)}


def differences(data: xr.Dataset) -> dict[str, object]:
    """How many intervals lie on one side of zero."""
    counts = []
    for n, part in gap(data).groupby("n", squeeze=False):
        ends = student_interval(part.squeeze("n").transpose("member", "model").values)
        above, below = (int(np.sum(sign * ends.mean > ends.half_width)) for sign in (1, -1))
        counts.append(f"with {n:,} reviews {above} intervals lie above 0, {below} lie below")
    text, _, members = size(data).values()
    return {"text": text, "members": members, "counts": "; ".join(counts)}


def concentration(data: xr.Dataset) -> dict[str, object]:
    """Shares of the largest weights, and self-attention against equal weights."""
    control = against_equal_weights(data)
    ends = control[-1] if control else ""
    return {**size(data), "probe": PROBE, "shares": means_text(share(data), 2), "difference": ends}


def is_compared(row: panels.Row) -> bool:
    """Rows of models that are not a baseline."""
    return all(row["model"] != models[0] for models in TABLES.values())


def paper_table(data: xr.Dataset) -> str:
    """The paper's table that has the model of a row."""
    return next(name for name, models in TABLES.items() if data.model.item() in models)


def reviews(data: xr.Dataset) -> xr.DataArray:
    """The numbers of reviews as text: sizes stand at equal distances."""
    return xr.DataArray([f"{n:,}" for n in data.n.values.tolist()], {"n": data.n})


def mean_of(quantity: panels.Formula) -> panels.Formula:
    """The mean of a quantity over the replications."""
    return of(ATTENDING, lambda data: quantity(data).mean("member"))


def answer(data: xr.Dataset) -> dict[str, object]:
    """From how many reviews on self-attention is better, and whether better than its control.

    The control are equal weights: a gain over the MLP that they have too is one of averaging and
    of the value map, and not of attention.
    """
    mean, half = student_interval(
        gap(data).sel(model="self-attention").transpose("member", "n").values
    )
    clear = mean > half
    first, control = onset(data.n.values, clear), equal_weights_interval(data)
    attending = control is not None and bool(np.all(control[0] > control[1], where=clear))
    return {
        "first": f"{float(first):,.0f}" if np.isfinite(first) else "",
        "attending": attending,
        "control": ", ".join(against_equal_weights(data)),
        "support": support_text(data),
        "plain": f"{mean[-1]:+.1f} ± {half[-1]:.1f}",
        "text": TEXTS[data.attrs["text"]].split(" (")[0],
        "n": f"{int(data.n[-1]):,}",
        "members": data.sizes["member"],
    }


def equal_weights_interval(data: xr.Dataset) -> tuple[np.ndarray, np.ndarray] | None:
    """Points of self-attention above equal weights: means and half widths of intervals by n."""
    if "equal weights" not in data.model:
        return None
    values = percent(data).transpose("n", "member", "model")
    attention, control = (
        values.sel(model=name, drop=True) for name in ("self-attention", "equal weights")
    )
    interval = student_interval((attention - control).transpose("member", "n").values)
    return interval.mean, interval.half_width


def against_equal_weights(data: xr.Dataset) -> list[str]:
    """The same as texts, one for each n."""
    interval = equal_weights_interval(data)
    if interval is None:
        return []
    return [f"{mean:+.2f} ± {half:.2f}" for mean, half in zip(*interval, strict=True)]


def support_text(data: xr.Dataset) -> str:
    """How many words self-attention spreads over, and how many equal weights do."""
    one = data.sel(model="self-attention", statistic="effective support").isel(n=-1)
    return f"{float(one.concentration.mean()):.1f} of {float(one.uniform):.1f}"


EXPERIMENT = Experiment(
    title="Reviews: attention, penalty and tempered softmax",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        {"model": "model", "n": "reviews"},
        [
            Derived("table", paper_table),
            Derived("text", lambda data: TEXTS[data.attrs["text"]]),
            Column("replications", "accuracy", lambda accuracy: int(accuracy.notnull().sum())),
            Column("diverged", lambda data: data.result == Result.NOT_FINITE.value, panels.total),
            Column("test accuracy, % [95 % interval]", percent, mean_and_interval),
            Column("minus baseline, points", gap, mean_and_interval, where=is_compared),
            Derived("paper", lambda data: "lost"),
            *(Column(name, "concentration", at={"statistic": name}) for name in STATISTICS),
            Column("top share if equal", "uniform", at={"statistic": "top share"}),
        ],
    ),
    figures=[
        panels.Plot(
            "Reviews: accuracy against training size",
            [
                Points(
                    of(models, percent), reviews, colour="network", band=mean_only, members=True,
                    line="-", dodge=0.05, title=name, xlabel="training reviews",
                    ylabel="test accuracy, %", width=1.6,
                )
                for name, models in TABLES.items()
            ],
            accuracies, height=1.25,
        ),
        panels.Plot(
            "Reviews: paired differences to the baseline",
            Points(
                gap, "model", across=True, members=True, panel="n", title="{n:,} reviews",
                xlabel="accuracy minus baseline, points", width=1.4,
            )
            + Reference(x=0),
            differences,
        ),
        panels.Plot(
            "Reviews: accuracy and concentration of attention",
            Lines(
                of(ATTENDING, largest), of(ATTENDING, share), colour="network", style="o",
                band=None, legend=False, width=1.8, ylabel="test accuracy, %",
                xlabel="share of the $\\lfloor\\sqrt{p}\\rfloor$ largest weights",
            )
            + Points(mean_of(largest), mean_of(share), colour="network"),
            concentration, height=1.25,
        ),
    ],
)  # fmt: skip
