r"""Does recurrent attention with Luong's structure classify reviews better than an LSTM?

Table 2 of liu2021analyzing names the structure of Luong et al. (2015); its numbers are lost. Equal
weights in place of the softmax are a control that the paper lacks: they have the same layers.
"""

import numpy as np
import xarray as xr

from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import Column, Derived, Points, Reference, mean_and_interval
from attlas.measures.statistics.student_interval import student_interval
from liu2021analyzing.experiments import instances
from liu2021analyzing.experiments.instances import TEXTS, gap, percent, run
from liu2021analyzing.library.reviews.attention import STATISTICS

_ATTENTION, _PENALISED, _CONTROL = instances.VARIANTS["luong"]

GRID = Grid(
    each={"n": [40], "model": ["lstm", "luong"]},
    fixed={**instances.FIXED, **instances.TINY, "n": [40], "members": 3},
    smoke={"members": 2},
    small={**instances.REAL, "n": [2000], "epochs": 6, "members": 5},
    paper={**instances.LARGE, "n": [10_000]},
    work=instances.work,
    data=instances.imdb_of,
)


def size(data: xr.Dataset) -> dict[str, object]:
    """The reviews, their number and the replications, as in `reviews`."""
    return {**instances.size(data), "text": TEXTS[data.attrs["text"]].split(" (")[0]}


def points_above(data: xr.Dataset, model: str, base: str) -> tuple[float, float]:
    """Accuracy of a model minus that of another in points, paired: mean and half width."""
    values = percent(data).isel(n=-1)
    interval = student_interval((values.sel(model=model) - values.sel(model=base)).values)
    return float(interval.mean), float(interval.half_width)


def gaps(data: xr.Dataset) -> xr.DataArray:
    """Accuracies minus the LSTM's in points, NaN for what has not been trained."""
    return gap(data).reindex(model=[_ATTENTION, _PENALISED, _CONTROL])


def interval_text(mean: float, half: float) -> str:
    """An interval in points."""
    return f"{mean:+.1f} ± {half:.1f}"


def answer(data: xr.Dataset) -> dict[str, object]:
    """Whether attention is better than the LSTM, and than its own control of equal weights."""
    mean, half = points_above(data, _ATTENTION, "LSTM")
    over, width = points_above(data, _ATTENTION, _CONTROL)
    return {
        **size(data),
        "above": mean > half,
        "below": mean < -half,
        "attending": over > width,
        "plain": interval_text(mean, half),
        "control": interval_text(over, width),
        "equal": interval_text(*points_above(data, _CONTROL, "LSTM")),
        "penalised": interval_text(*points_above(data, _PENALISED, _ATTENTION)),
    }


def accuracies(data: xr.Dataset) -> dict[str, object]:
    """Mean accuracies, and over how many words attention spreads."""
    support = data.concentration.isel(n=-1).sel(statistic="effective support")
    means = {name: float(support.sel(model=name).mean()) for name in (_ATTENTION, _CONTROL)
             if name in data.model}  # fmt: skip
    spread = " and ".join(
        f"{means[name]:.0f} ({instances.in_words(name)})"
        for name in means
        if np.isfinite(means[name])
    )
    return {**size(data), "accuracies": instances.accuracies(data)["accuracies"], "spread": spread}


EXPERIMENT = Experiment(
    title="Reviews: Luong's attention over an LSTM",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        {"model": "model", "n": "reviews"},
        [
            Derived("text", lambda data: TEXTS[data.attrs["text"]]),
            Column("replications", "accuracy", lambda accuracy: int(accuracy.notnull().sum())),
            Column("test accuracy, % [95 % interval]", percent, mean_and_interval),
            Column("minus LSTM, points", gap, mean_and_interval, where=instances.is_compared),
            Derived("paper", lambda data: "lost"),
            *(Column(name, "concentration", at={"statistic": name}) for name in STATISTICS),
        ],
    ),
    figures=[
        panels.Plot(
            "Luong's attention: accuracy and differences to the LSTM",
            [
                Points(
                    instances.with_words(percent), "model", across=True, members=True,
                    xlabel="test accuracy, %", ylabel="model",
                    title="each model", width=1.3,
                ),
                Points(
                    instances.with_words(gaps), "model", across=True, members=True,
                    xlabel="accuracy minus the LSTM's, points", ylabel="model",
                    title="paired differences", width=1.3,
                )
                + Reference(x=0, label="no difference"),
            ],
            accuracies,
        ),
    ],
)  # fmt: skip
