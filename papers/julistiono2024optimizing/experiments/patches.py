r"""Are the weights of a vision Transformer sparser by $\ell_{1.1}$ mirror descent than by Adam?

An encoder reads digits as 16 square patches, and tells whether the digit is odd. It is trained by
Adam, by $\ell_{1.1}$ mirror descent and by gradient descent from the same starts and batches.
Measured: test accuracy at the epoch of best validation, and how the query, key and value weights
are spread.
"""

from collections.abc import Callable, Mapping

import jax
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array

from attlas.data.digits import DIGITS
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import Column, Points
from attlas.experiments.settings import Settings
from attlas.measures.statistics.student_interval import student_interval
from attlas.optim.mirror_descent import mirror_descent
from julistiono2024optimizing.library.training.decisive_encoders import (
    PARTS,
    train_decisive_encoders,
)
from julistiono2024optimizing.library.training.decisive_tokens import digit_tokens

MIRROR, ADAM, DESCENT = "mirror descent (p = 1.1)", "Adam", "gradient descent"
RATES = {MIRROR: 3e-3, ADAM: 3e-3, DESCENT: 3e-3}
"""Each has the best validation accuracy of 1e-3, 3e-3, 1e-2 and 3e-2 with one block of width 16."""
EDGES = np.linspace(-6.0, 1.0, 57)
SELECTED, LAST = "epoch by validation", "last epoch"


def optimiser(name: str, rate: float) -> optax.GradientTransformation:
    """The transformation of gradients of that name."""
    makers: Mapping[str, Callable[[], optax.GradientTransformation]] = {
        MIRROR: lambda: mirror_descent(rate, 1.1),
        ADAM: lambda: optax.adam(rate),
        DESCENT: lambda: mirror_descent(rate, 2.0),
    }
    return makers[name]()


def work(s: Settings) -> float:
    """Products of training, up to a factor."""
    token = s.blocks * s.width * (4 * s.width + 2 * s.hidden + 2 * 16)
    return s.members * s.epochs * 16 * 1437 * token


SMALL = {"blocks": 1, "heads": 2, "width": 16, "hidden": 32, "members": 4, "epochs": 30}
GRID = Grid(
    each={"optimiser": list(RATES)},
    fixed={
        "blocks": 3, "heads": 4, "width": 32, "hidden": 64,
        "dropout": lambda s: 0.1 * (s.blocks > 1),
        "rate": lambda s: RATES[s.optimiser], "batch": 50, "epochs": 100, "members": 8,
        "dtype": "float32",
    },
    smoke=SMALL | {"epochs": 3, "members": 2},
    quick=SMALL,
    work=work,
    data=lambda s: DIGITS,
    choices={"optimiser": tuple(RATES)},
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train the cell's encoders as one ensemble and count the sizes of their weights."""
    dtype = np.dtype(s.dtype)
    task = digit_tokens("patches", dtype)
    names = ("width", "blocks", "heads", "hidden", "dropout")
    shape = {name: s[name] for name in names} | {"dtype": dtype}
    shape |= {"length": task.probe.mask.shape[1], "vocabulary": task.probe.tokens.shape[2]}
    # The same start and the same batches for every optimiser: differences are paired.
    keys = jax.random.split(key, s.members)
    with jax.numpy_dtype_promotion("standard"):  # Adam counts its steps in integers
        encoders = train_decisive_encoders(
            task,
            shape,
            optimiser(s.optimiser, s.rate),
            keys,
            s.batch,
            s.epochs,
            np.inf,
            EDGES,
            quick_compile=s.blocks == 1,
        )
    part, member = ("part", "member"), ("member",)
    return xr.Dataset(
        {
            "accuracy": (("rule", "member"), encoders.accuracy[:2]),
            "diverged": (member, encoders.diverged),
            "selected_epoch": (member, encoders.selected_epoch),
            "weights": ((*part, "bin"), encoders.weights),
            "weights_start": ((*part, "bin"), encoders.weights_start),
            "weights_near_zero": (part, encoders.weights_near_zero),
            "weights_start_near_zero": (part, encoders.weights_start_near_zero),
        },
        {"rule": [SELECTED, LAST], "part": list(PARTS)},
    )


def paired(values: xr.DataArray, base: str = ADAM) -> dict[str, object]:
    """Mirror descent minus Adam in points, over pairs of runs, with its interval of 95 %."""
    difference, compared = np.empty(0), {MIRROR, base} <= set(values.optimiser.values)
    if compared:
        pairs = values.sel(optimiser=MIRROR) - values.sel(optimiser=base)
        difference = 100 * pairs.dropna("member").values
    enough = difference.size > 1
    middle, half_width = student_interval(difference) if enough else (np.nan, np.nan)
    return {
        "compared": enough,
        "gap": f"{middle:+.1f}",
        "reach": f"{half_width:.1f}",
        "runs": difference.size,
        "higher": middle > half_width,
        "lower": -middle > half_width,
    }


def by_optimiser(values: xr.DataArray) -> str:
    """Means in % for each optimiser, in words."""
    rows = values.transpose("optimiser", ...)
    return ", ".join(f"{100 * float(row.mean()):.1f} % for {row.optimiser.item()}" for row in rows)


def sparsity(data: xr.Dataset) -> dict[str, object]:
    """Shares of small weights, and the paired difference of mirror descent and Adam."""
    shares = data["weights_near_zero"].mean("part")
    start = f"{100 * float(data.weights_start_near_zero.mean()):.1f} %"
    return paired(shares) | {"shares": by_optimiser(shares), "start": start}


def accuracies(data: xr.Dataset) -> dict[str, object]:
    """Test accuracies, and the paired difference of mirror descent and Adam."""
    accuracy = data["accuracy"].sel(rule=SELECTED)
    return paired(accuracy) | {"accuracies": by_optimiser(accuracy)}


def answer(data: xr.Dataset) -> dict[str, object]:
    """Shares of small weights with mirror descent and Adam, and the accuracies as a value.

    The control is gradient descent: a share that it has too is not one of the exponent.
    """
    shares = data["weights_near_zero"].mean("part")
    values = paired(shares)
    for name, method in (("mirror", MIRROR), ("adam", ADAM)):
        mean = shares.sel(optimiser=method).mean() if values["compared"] else np.nan
        values[name] = f"{100 * float(mean):.1f} %"
    control = paired(shares, DESCENT)
    values["control"] = f"{control['gap']} ± {control['reach']}" if control["compared"] else ""
    values["alone"] = not control["compared"] or bool(control["higher"])
    return values | {"accuracy": paired(data["accuracy"].sel(rule=SELECTED))}


def outlines(data: xr.Dataset) -> xr.DataArray:
    """Counts after training with each optimiser, and at the start."""
    start = data["weights_start"].isel(optimiser=[0]).assign_coords(optimiser=["start"])
    return xr.concat([data["weights"], start], "optimiser").rename(optimiser="outline")


ACCURACY = Points(
    lambda data: 100 * data["accuracy"], "optimiser", colour="rule", band=panels.mean_only,
    members=True, hollow=True, dodge=0.2, xlabel="optimiser", ylabel="test accuracy, %", width=1.6,
)  # fmt: skip
WEIGHTS = panels.Histogram(
    outlines, edges=EDGES, counted="bin", colour="outline", panel="part", title="{part} weights",
    xlabel="size of a weight, decimal logarithm", ylabel="share of weights",
)  # fmt: skip
EXPERIMENT = Experiment(
    title="Digits in patches: a vision Transformer by mirror descent and by Adam",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["optimiser"],
        [
            Column("runs", "diverged", lambda members: members.size),
            Column("diverged", "diverged", panels.total),
            Column("test, epoch by validation", "accuracy", at={"rule": SELECTED}),
            Column("test, last epoch", "accuracy", at={"rule": LAST}),
            Column("|w| < 1e-3 in Q, K, V", "weights_near_zero"),
            Column("at the start", "weights_start_near_zero"),
        ],
    ),
    figures=[
        panels.Plot("Sizes of the query, key and value weights", WEIGHTS, sparsity),
        panels.Plot("Test accuracy by optimiser", ACCURACY, accuracies),
    ],
)
