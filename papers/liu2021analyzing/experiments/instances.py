r"""What the experiments on reviews share: models, sizes, their training, and paired differences."""

from functools import lru_cache

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.data.imdb import IMDB
from attlas.data.sources import DataSet
from attlas.experiments import panels
from attlas.experiments.settings import Settings
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
    "luong": {
        "Luong attention": (0.0, 1.0),
        "Luong attention + l1": (1e-4, 1.0),
        "Luong, equal weights": (0.0, EQUAL),
    },
    "recurrent": {"recurrent attention": (0.0, 1.0), "recurrent attention + l1": (1e-4, 1.0)},
}
"""Factor of the l1 penalty and temperature of the softmax."""
TABLES = {
    "Table 1": [*VARIANTS["mlp"], *VARIANTS["attention"]],
    "Table 2": [*VARIANTS["lstm"], *VARIANTS["luong"], *VARIANTS["recurrent"]],
}
"""The first model of a table is the baseline of the others."""
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
TINY = {
    "n": [20, 40], "pool": 40, "length": 12, "t": 4, "hidden": 4, "state": 3, "readers": [3],
    "epochs": 2, "validation": 20, "test": 60, "members": 2,
}  # fmt: skip
LARGE = {
    **REAL, "n": [1000, 2000, 5000, 10_000], "pool": 10_000, "t": 100, "hidden": 64,
    "vocabulary": 10_000, "epochs": 10, "validation": 2500, "test": 25_000, "members": 10,
}  # fmt: skip
FIXED = {
    "text": "generated", "pool": 600, "length": 64, "t": 16, "hidden": 16, "state": 12,
    "readers": [16, 8], "steps": 4, "vocabulary": 100, "rate": 3e-3, "batch": 20, "epochs": 6,
    "validation": 200, "test": 500, "members": 4, "dtype": "float32",
}  # fmt: skip


def work(s: Settings) -> float:
    """How the operations of a training grow with its sizes."""
    attended = s.length * s.t * (s.length + s.hidden) + s.t * s.vocabulary / s.batch
    return s.members * s.epochs * max(s.pool, s.n) * attended


def imdb_of(s: Settings) -> DataSet | None:
    """The data set of real reviews."""
    return IMDB if s.text == "imdb" else None


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


def largest(data: xr.Dataset) -> xr.DataArray:
    """Accuracies in percent with the most reviews."""
    return percent(data).isel(n=-1)


def means_text(values: xr.DataArray, digits: int) -> str:
    """The mean of each model that has one."""
    means = values.mean("member").to_series().dropna()
    return ", ".join(f"{in_words(str(name))} {mean:.{digits}f}" for name, mean in means.items())


def in_words(model: str) -> str:
    """The name of a model as figures and captions show it."""
    return model.replace("l1", "penalty").replace("tempered", "tempered softmax")


def with_words(quantity: panels.Formula) -> panels.Formula:
    """A quantity by the names of models that figures show."""

    def named(data: xr.Dataset) -> xr.DataArray:
        values = quantity(data)
        return values.assign_coords(model=[in_words(name) for name in values.model.values.tolist()])

    return named


def size(data: xr.Dataset) -> dict[str, object]:
    """The reviews, their largest number and the replications."""
    text = TEXTS[data.attrs["text"]]
    return {"text": text, "n": f"{int(data.n[-1]):,}", "members": data.sizes["member"]}


def accuracies(data: xr.Dataset) -> dict[str, object]:
    """Mean accuracies with the most reviews."""
    return {**size(data), "accuracies": means_text(largest(data), 1)}


def is_compared(row: panels.Row) -> bool:
    """Rows of models that are not a baseline."""
    return all(row["model"] != models[0] for models in TABLES.values())
