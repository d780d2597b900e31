r"""Does attention find a digit among noise, and classify it better than other networks?

Table 3 of liu2021analyzing, whose numbers are lost. A digit fills four neighbouring cells of 16,
uniform noise the others. A plain convolutional network, self-attention between the cells and
equal weights are trained as ensembles of replications.
"""

import math

import jax
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.core.solution import Result
from attlas.data.digits import DIGITS
from attlas.data.mnist import MNIST
from attlas.data.sources import is_present
from attlas.experiments import panels
from attlas.experiments.experiment import CaptionedFigure, Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import (
    PALETTE,
    Column,
    Derived,
    Lines,
    Points,
    mean_and_interval,
    mean_only,
)
from attlas.experiments.settings import Settings
from attlas.measures.statistics.student_interval import student_interval
from attlas.training.ensemble import on_cpu
from attlas.training.sequence_classifiers import Sets, held_out_accuracies, train_classifiers
from liu2021analyzing.library.noisy_grid.attention import digit_attention, digit_cells
from liu2021analyzing.library.noisy_grid.data import SIDE, load_noisy_grids, load_placed_digits
from liu2021analyzing.library.noisy_grid.grid_cnn import (
    PAPER_SIZES,
    GridSizes,
    grid_parameters,
    make_grid_model,
)

MODELS = {"cnn": "CNN", "attention": "self-attention CNN", "equal": "equal-weight attention CNN"}
TEXTS = {"mnist": "MNIST", "digits": "Embedded digits (a stand-in for MNIST)"}
AT_ONCE = {"cnn": 8, "attention": 2, "equal": 2}
"""Images whose gradient is taken at once; the five million parameters of the first want more."""
DRAW = 0
"""Seed of split, places and noise: all replications see the same images."""
EQUAL = 100 * 4 / SIDE**2
"""Percent of equal weights on the four cells of the digit."""
EXAMPLES = 4
"""Test images that are shown with their attention."""
REAL = {"images": "mnist", "cell": 14, "epochs": 10, "train": 1000, "validation": 500, "test": 1000}
GRID = Grid(
    each={"model": list(MODELS)},
    fixed={
        "images": "digits", "cell": 6, "filters": [4, 8], "width": 32, "hidden": 32,
        "rate": 2e-3, "batch": 10, "epochs": 16, "stop": 0.95,
        "train": 800, "validation": 250, "test": 350, "probe": 200,
        "members": 3, "dtype": "float32",
    },
    smoke={
        "filters": [2, 2], "width": 4, "hidden": 4, "epochs": 2,
        "train": 40, "validation": 20, "test": 20, "probe": 12, "members": 2,
    },
    quick=lambda: REAL if is_present(MNIST) else {},
    small={**REAL, "train": 2000, "members": 5},
    paper={
        **REAL, "filters": [32, 64], "width": 100, "hidden": lambda s: PAPER_SIZES[s.model].hidden,
        "rate": 1e-3, "batch": 64, "epochs": 20, "stop": 2.0,
        "train": 50_000, "validation": 10_000, "test": 10_000, "probe": 1000, "members": 5,
    },
    work=lambda s: s.members * s.epochs * s.train * s.cell**2 * s.filters[0] * s.filters[1],
    data=lambda s: MNIST if s.images == "mnist" else DIGITS,
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train all replications of one model; its accuracies and attention."""
    stand_in = s.images == "digits"
    data = load_noisy_grids(None, (s.train, s.validation, s.test), s.cell, DRAW, stand_in)
    # The same keys for every model: differences are paired by the order of the batches.
    keys, sizes = jax.random.split(key, s.members), GridSizes(s.cell, s.filters, s.width, s.hidden)
    start = jax.vmap(lambda key: make_grid_model(key, s.model, sizes, np.dtype(s.dtype)))
    models = jax.jit(start, compiler_options=CHEAP_COMPILATION)(keys)
    with jax.numpy_dtype_promotion("standard"):  # Adam's step count is an integer
        path = train_classifiers(
            models, optax.adam(s.rate), Sets(data.train, data.validation, data.test), keys,
            s.batch, s.epochs, s.stop, chunk=100, mean=True,
            # Convolutions of several members, or of a whole batch, leave the cache of a CPU.
            width=1 if on_cpu() else None,
            at_once=math.gcd(AT_ONCE[s.model], s.batch) if on_cpu() else None,
        )  # fmt: skip
    grids, first = load_placed_digits(None, s.probe, s.cell, DRAW, stand_in)
    digit = digit_cells(first)
    looks = digit_attention(path.selected, grids, digit)
    curves = {"training": path.train} | {k: path.observed[k] for k in ("validation", "test")}
    along, pictured = ("member", "epoch"), ("image", "cell_number")
    return xr.Dataset(
        {
            "accuracy": ("member", held_out_accuracies(path).selected),
            "selected_epoch": ("member", path.selected_at),
            "result": ("member", path.result), "loss": (along, path.loss),
            "by_epoch": (("set", *along), list(curves.values())),
            "parameters": grid_parameters(s.model, sizes),
            "paper_size": grid_parameters(s.model, PAPER_SIZES[s.model]),
            "share": (("member", "query"), looks.share),
            "maps": (("member", *pictured), looks.maps[:, :EXAMPLES]),
            "example": ((*pictured, "pixel"), grids[:EXAMPLES]),
            "example_cells": (pictured, digit[:EXAMPLES]),
        },
        {
            "set": list(curves), "query": ["digit", "noise"],
            "epoch": 1 + np.arange(path.loss.shape[1]),
        },
    )  # fmt: skip


def percent(data: xr.Dataset) -> xr.DataArray:
    """Test accuracies in percent."""
    return 100 * data.accuracy


def learning(data: xr.Dataset) -> xr.DataArray:
    """Accuracies in percent by epoch, as far as no replication has stopped."""
    curves = 100 * data.by_epoch.sel(set=["training", "validation"]).rename(set="part")
    return curves.where(curves.notnull().all("member"))


def gap(data: xr.Dataset) -> xr.DataArray:
    """Accuracy of attention minus that of another model, paired, in points."""
    accuracies = percent(data)
    return accuracies.sel(model="attention", drop=True) - accuracies.drop_sel(model="attention")


def differences(data: xr.Dataset) -> dict[str, object]:
    """Accuracies, sizes and paired differences of the networks that were trained."""
    data = data.dropna("model", how="all", subset=["accuracy"])
    accuracies = ", ".join(
        f"{MODELS[model]} {percent(data).sel(model=model).mean():.1f} % "
        f"({data.parameters.sel(model=model) / 1000:.0f}k parameters)"
        for model in data.model.values.tolist()
    )
    gaps, worse = "", False
    if "attention" in data.model and data.sizes["model"] > 1:
        ends = student_interval(gap(data).transpose("member", "model").values)
        names = (MODELS[model] for model in gap(data).model.values.tolist())
        gaps = "; ".join(
            f"attention minus {name} {mean:+.1f} ± {half:.1f}"
            for name, mean, half in zip(names, *ends, strict=True)
        )
        lows = dict(zip(gap(data).model.values, ends.mean - ends.half_width, strict=True))
        worse = bool(lows.get("equal", 0.0) > 0)
    return {
        "text": TEXTS[data.attrs["images"]], "n": f"{data.attrs['train']:,}", "gaps": gaps,
        "worse": worse,
        "members": data.sizes["member"], "accuracies": accuracies,
        "early": int(data.by_epoch.sel(set="training").isnull().any("epoch").sum()),
    }  # fmt: skip


def attention_figure(data: xr.Dataset) -> CaptionedFigure:
    """Test images above the attention that their cells get, the digit framed."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    first_model, edge = data.isel(model=0), data.attrs["cell"]
    maps = data.maps.reindex(model=["attention"]).squeeze("model").transpose("image", ...)
    means = maps.mean("member").values.reshape(-1, SIDE, SIDE)
    figure, axes = plt.subplots(2, len(means), figsize=(9.6, 4.6), layout="constrained")
    for k, (image, weights) in enumerate(zip(axes[0], axes[1], strict=True)):
        cells = first_model.example.values[k].reshape(SIDE, SIDE, edge, edge).swapaxes(1, 2)
        image.imshow(cells.reshape(SIDE * edge, SIDE * edge), cmap="gray_r", vmin=0, vmax=1)
        weights.imshow(means[k], vmin=0, vmax=np.nanmax(means, initial=1 / SIDE**2))
        row, column = divmod(int(np.argmax(first_model.example_cells.values[k])), SIDE)
        for axis, unit in ((image, edge), (weights, 1)):
            corner = (column * unit - 0.5, row * unit - 0.5)
            frame = Rectangle(corner, 2 * unit, 2 * unit, fill=False, ec=PALETTE[1], lw=2.5)
            axis.add_patch(frame)
            axis.set(xticks=[], yticks=[])
    axes[0, 0].set_ylabel("test image, the digit framed")
    axes[1, 0].set_ylabel("mean attention on a cell")
    figure.colorbar(axes[1, 0].images[0], ax=axes[1], shrink=0.8, label="attention weight")
    return CaptionedFigure("Noisy grid: where attention looks", "", figure, shares(data))


def shares(data: xr.Dataset) -> dict[str, object]:
    """Shares of the attention that the digit gets."""
    means = 100 * data.share.reindex(model=["attention"]).mean(["model", "member"])
    means = means.sel(query=["digit", "noise"]).values
    digit, noise = (f"{mean:.0f}" if np.isfinite(mean) else "" for mean in means)
    return {
        "text": TEXTS[data.attrs["images"]], "own": digit, "noise": noise, "equal": f"{EQUAL:g}",
    }  # fmt: skip


def answer(data: xr.Dataset) -> dict[str, object]:
    """Whether the digit gets more than its share, and whether attention beats its control.

    The control are equal weights: a gain over the CNN that they have too is not one of attending.
    """
    mean, half = student_interval(100 * data.share.sel(model="attention", query="digit").values)
    captions = differences(data)
    alike = is_above(data, "equal", "cnn")
    return captions | {
        "text": str(captions["text"]).removeprefix("Embedded "),
        "finds": float(mean - half) > EQUAL,
        "equal": f"{EQUAL:g}",
        "own": f"{float(mean):.0f}",
        "reach": f"{float(half):.0f}",
        "beats": is_above(data, "attention", "cnn"),
        "attending": is_above(data, "attention", "equal"),
        "alike": alike,
        "beside": "equal weights do as well" if alike else "not clearly equal weights",
        "control": bool(percent(data).reindex(model=["equal"]).notnull().any()),
    }


def is_above(data: xr.Dataset, better: str, base: str) -> bool:
    """Whether the interval of a paired difference of accuracies lies above zero."""
    pair = percent(data).reindex(model=[better, base]).transpose("model", "member").values
    mean, half_width = student_interval(pair[0] - pair[1])
    return bool(mean > half_width)


EXPERIMENT = Experiment(
    title="Noisy grid: a digit in four of 16 cells",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["model"],
        [
            Derived("images", lambda data: TEXTS[data.attrs["images"]]),
            Derived("n", lambda data: data.attrs["train"]),
            Column("replications", "accuracy", lambda accuracy: int(accuracy.notnull().sum())),
            Column("diverged", lambda data: data.result == Result.NOT_FINITE.value, panels.total),
            Column("parameters", "parameters", int),
            Column("at the paper's sizes", "paper_size", int),
            panels.Printed("paper, parameters", {"cnn": "5558k", "attention": "670k"}),
            Column("test accuracy, % [95 % interval]", percent, mean_and_interval),
            Derived("paper, accuracy", lambda data: "lost"),
            Column("attention minus this, points", gap, mean_and_interval),
            Column("on the digit, from the digit", "share", at={"query": "digit"}),
            Column("on the digit, from noise", "share", at={"query": "noise"}),
        ],
    ),
    figures=[
        panels.Plot(
            "Noisy grid: accuracy",
            [
                Lines(
                    learning, "epoch", colour="model", names=MODELS, band=panels.extremes,
                    panel="part", title="{part}", ylim=(0, 100), xlabel="epoch",
                    ylabel="accuracy, %", width=1.3,
                ),
                Points(
                    percent,
                    lambda data: data.model.copy(data=[MODELS[m] for m in data.model.values]),
                    members=True, band=mean_only, title="test, epoch chosen on validation",
                    ylabel="accuracy, %", xlabel="network", ylim=(0, 100), width=1.4,
                ),
            ],
            differences,
        ),
        attention_figure,
    ],
)  # fmt: skip
