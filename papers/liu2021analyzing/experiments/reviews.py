r"""Does attention classify reviews better than a network or an LSTM, and from how many?

Tables 1 and 2 of liu2021analyzing, whose numbers are lost: a network on flattened words beside
self-attention, with an $\ell_1$ penalty and a tempered softmax; an LSTM beside recurrent
attention of appendix B. All variants and replications of one model train as one ensemble.
"""

import numpy as np
import xarray as xr

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
from attlas.measures.statistics.onset import onset
from attlas.measures.statistics.student_interval import student_interval
from liu2021analyzing.experiments.instances import (
    FIXED,
    LARGE,
    PROBE,
    REAL,
    TABLES,
    TEXTS,
    TINY,
    VARIANTS,
    accuracies,
    gap,
    imdb_of,
    in_words,
    is_compared,
    largest,
    means_text,
    percent,
    run,
    size,
    with_words,
    work,
)
from liu2021analyzing.library.reviews.attention import STATISTICS

KINDS = dict(zip(TABLES, ("networks on flattened words", "recurrent networks"), strict=True))
"""What the networks of each of the paper's tables are."""
ATTENDING = [*VARIANTS["attention"], *VARIANTS["luong"], *VARIANTS["recurrent"]]
GRID = Grid(
    each={"n": [150, 600], "model": ["mlp", "attention", "lstm", "recurrent"]},
    fixed=FIXED,
    smoke=TINY,
    quick=lambda: REAL if is_present(IMDB) else {},
    paper=LARGE,
    work=work,
    data=imdb_of,
)


def of(models: list[str], quantity: panels.Formula) -> panels.Formula:
    """A quantity of some models, which have colours of their own: their axis is `network`."""

    def of_models(data: xr.Dataset) -> xr.DataArray:
        there = [name for name in models if name in data.model]
        return quantity(data).sel(model=there).rename(model="network")

    return of_models


def share(data: xr.Dataset) -> xr.DataArray:
    """What the largest weights of a row hold, with the most reviews."""
    return data.concentration.isel(n=-1).sel(statistic="top share")


def differences(data: xr.Dataset) -> dict[str, object]:
    """How many intervals lie on one side of zero."""
    counts = []
    for n, part in gap(data).groupby("n", squeeze=False):
        ends = student_interval(part.squeeze("n").transpose("member", "model").values)
        above, below = (int(np.sum(sign * ends.mean > ends.half_width)) for sign in (1, -1))
        counts.append(f"with {n:,} reviews {above} intervals lie above 0, {below} lie below")
    text, _, members = size(data).values()
    return {"text": text, "members": members, "counts": "; ".join(counts), "last": counts[-1]}


def concentration(data: xr.Dataset) -> dict[str, object]:
    """Shares of the largest weights, and self-attention against equal weights."""
    control = against_equal_weights(data)
    ends = control[-1] if control else ""
    return {**size(data), "probe": PROBE, "shares": means_text(share(data), 2), "difference": ends}


def paper_table(data: xr.Dataset) -> str:
    """The paper's table that has the model of a row."""
    return next(name for name, models in TABLES.items() if data.model.item() in models)


def reviews(data: xr.Dataset) -> xr.DataArray:
    """The numbers of reviews as text: sizes stand at equal distances."""
    return xr.DataArray([f"{n:,}" for n in data.n.values.tolist()], {"n": data.n})


def mean_of(quantity: panels.Formula) -> panels.Formula:
    """The mean of a quantity over the replications."""
    return of(ATTENDING, lambda data: quantity(data).mean("member"))


def beside_controls(data: xr.Dataset) -> dict[str, object]:
    """Accuracies, and what self-attention adds to the MLP and to equal weights."""
    facts = answer(data) if "self-attention" in data.model else {}
    return {**accuracies(data), **{name: facts.get(name, "") for name in ("plain", "control")}}


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
                    of(models, percent), reviews, colour="network",
                    names={model: in_words(model) for model in models}, band=mean_only,
                    members=True,
                    line="-", dodge=0.05, title=KINDS[name], xlabel="training reviews",
                    ylabel="test accuracy, %", width=1.6,
                )
                for name, models in TABLES.items()
            ],
            beside_controls, height=1.25,
        ),
        panels.Plot(
            "Reviews: paired differences to the baseline",
            Points(
                with_words(gap), "model", across=True, members=True, panel="n",
                title="{n:,} reviews",
                xlabel="accuracy minus the baseline's, points", ylabel="model", width=1.4,
            )
            + Reference(x=0, label="no difference"),
            differences, height=1.6,
        ),
        panels.Plot(
            "Reviews: accuracy and concentration of attention",
            Lines(
                of(ATTENDING, largest), of(ATTENDING, share), colour="network", style="o",
                band=None, legend=False, width=1.8, ylabel="test accuracy, %",
                xlabel="attention held by the $\\sqrt{p}$ largest weights of a row of length $p$",
            )
            + Points(mean_of(largest), mean_of(share), colour="network",
                     names={model: in_words(model) for model in ATTENDING}),
            concentration, height=1.25,
        ),
    ],
)  # fmt: skip
