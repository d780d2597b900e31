r"""Does multi-head attention find the informative rows of real digits, and do more heads help?

Gradient descent on handwritten digits cut into rows, as two digits or as odd against even ones:
losses and accuracies for several numbers of heads, the margins of the theory on a subsample, and
where the attention goes, beside how much each row alone separates the classes.
"""

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.data.digit_pairs import load_digit_pairs
from attlas.data.digits import DIGITS
from attlas.data.mnist import MNIST
from attlas.data.sources import is_present
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import Column, Lines, Points, mean_only, taken
from attlas.experiments.settings import Settings
from attlas.training.trajectory import log_spaced
from deora2023optimization.library.optim.attention_starts import attention_starts
from deora2023optimization.library.training.digit_heads import train_on_digits

RECORDS = 16
STARTS = ("zero", "one step", "Gaussian")
TASKS = {"3 or 8": (3, 8), "odd or even": None}
EMBEDDED = {"n": 100, "first": 60, "steps": 30_000, "subsample": 100}
IMAGES = {"source": "mnist", "n": 500, "first": 500, "steps": 1000, "subsample": 100}
GRID = Grid(
    each={"task": list(TASKS), "H": [1, 4, 16, 64]},
    fixed={
        "source": "digits", "tokens": "rows", "R": 2.0, "rate": 1.0, "deviation": 0.3,
        "members": 1, "block": 1,
    },
    smoke={
        "task": ["3 or 8"], "H": [1, 2], "n": 20, "first": 20, "steps": 20, "subsample": 10,
    },
    quick={"H": [1, 4, 16], "n": 80, "first": 80, "steps": 600, "subsample": 40},
    paper=lambda: (IMAGES if is_present(MNIST) else EMBEDDED) | {"H": [1, 4, 16], "members": 3},
    data=lambda s: MNIST if s.source == "mnist" else DIGITS,
    choices={"source": ("digits", "mnist"), "tokens": ("rows", "patches")},
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train from every start and measure losses, margins and attention."""
    pairs = load_digit_pairs(
        TASKS[s.task], s.tokens, R=s.R, scale="longest", count=s.n + s.first, source=s.source,
        seed=s.seed, dtype=jnp.float32,
    )  # fmt: skip
    (X, first), (y, labels) = (jnp.split(a, [s.n]) for a in (pairs.X_train, pairs.y_train))
    starts = attention_starts(key, first, labels, s.H, [s.deviation], [s.seed, 1])
    schedule = log_spaced(s.steps, RECORDS)
    heads = train_on_digits(starts, X, y, pairs.X_test, pairs.y_test, s.rate, schedule, s.subsample)
    axes = dict.fromkeys(heads._fields, ("start",)) | {
        "loss": ("set", "start", "step"), "accuracy": ("set", "start", "step"),
        "mass": ("start", "step", "row"), "effective_rows": ("start", "step"),
        "information": ("row",), "linear": (),
    }  # fmt: skip
    return xr.Dataset(
        {name: (axes[name], values) for name, values in heads._asdict().items()},
        {"set": ["training", "test"], "start": list(STARTS), "step": list(schedule),
         "row": 1 + np.arange(len(heads.information))},
    )  # fmt: skip


def last(name: str, **labels: str) -> panels.Formula:
    """A quantity after the last step."""
    return taken(name, labels, at={"step": -1})


def by_task(data: xr.Dataset, *names: str) -> Iterator[tuple[str, xr.Dataset]]:
    """Means over the members of some quantities after the last step, by task."""
    ends = data[list(names)].isel(step=-1, missing_dims="ignore").mean("member")
    for task in ends.task.values:
        values = ends.sel(task=task).dropna("H", how="all")
        if values.sizes["H"]:
            yield task, values


def losses(data: xr.Dataset) -> dict[str, object]:
    """Test loss and accuracy by number of heads."""
    sentences = []
    for task, values in by_task(data.sel(set="test", start="zero"), "loss", "accuracy"):
        ends = values.dropna("H")
        pairs = zip(ends.loss.values, ends.accuracy.values, strict=True)
        numbers = ", ".join(f"{loss:.3f} ({accuracy:.1%})" for loss, accuracy in pairs)
        sentences.append(f"on '{task}' {numbers} with {', '.join(map(str, ends.H.values))} heads")
    return {
        "steps": data.attrs["steps"], "tasks": "; ".join(sentences),
        **{name: answer(data)[name] for name in ("fewest", "most", "falls")},
        "count": len(sentences),
    }  # fmt: skip


def attended(data: xr.Dataset) -> dict[str, Any]:
    """Whether the most informative row is the most attended one."""
    tasks, names = [], ("mass", "information", "correlation", "effective_rows")
    for task, ends in by_task(data, *names):
        best = ends.information.mean("H").idxmax("row")
        hits = ends.mass.sel(start="zero").idxmax("row") == best
        ranks = []
        for H in ends.H.values:
            correlations = ", ".join(f"{rank:.2f}" for rank in ends.correlation.sel(H=H).values)
            rows = float(ends.effective_rows.sel(H=H, start="zero"))
            ranks.append(f"$H = {H}$: {correlations} ({rows:.1f} rows)")
        counts = f"{int(hits.sum())} of {hits.size}"
        ends_of_zero = ends.correlation.sel(start="zero").values
        counted = {"all": bool(hits.all()), "any": bool(hits.any()), "hits": counts}
        counted["sign"] = common_sign(ends_of_zero)
        tasks.append({"name": task, "best": int(best), **counted, "ranks": "; ".join(ranks)})
    never, every = (
        all(task[name] == wanted for task in tasks)
        for name, wanted in (("any", False), ("all", True))
    )
    fewest = int(data.H[0])
    return {
        "starts": ", ".join(STARTS), "tasks": tasks, "never": never, "every": every,
        "fewest": fewest,
    }  # fmt: skip


def common_sign(numbers: np.ndarray) -> str:
    """The sign that all numbers have, in a word."""
    if (numbers > 0).all():
        return "positive"
    return "negative" if (numbers < 0).all() else "of both signs"


def separated(data: xr.Dataset) -> dict[str, object]:
    """How many starts separate the subsample, by their NTK and after training."""
    tasks = []
    for task, values in by_task(data, "ntk", "decoder", "linear"):
        counts = (values.ntk > 0).sum("H")
        separable = ", ".join(f"{int(counts.sel(start=start))} from {start}" for start in STARTS)
        task_values = {"name": task, "heads": values.sizes["H"], "separable": separable}
        task_values |= {"separated": int((values.decoder > 0).sum()), "runs": values.decoder.size}
        tasks.append(task_values | {"exceeding": int((values.decoder > values.linear).sum())})
    return {
        "tasks": tasks,
        "total": sum(task["separated"] for task in tasks),
        "runs": sum(task["runs"] for task in tasks),
    }


def few_heads(name: str) -> panels.Formula:
    """A quantity after the last step with the fewest heads."""
    return taken(name, at={"H": 0, "step": -1})


def information(data: xr.Dataset) -> xr.DataArray:
    """Row information as a share of the sum over rows."""
    values = few_heads("information")(data)
    return values / values.sum("row").where(values.notnull().any("row"))


def margins(name: str, label: str) -> panels.Panel:
    """Margins on the subsample by number of heads."""
    return Points(
        name, "H", colour="start", names="from {start}", dodge=0.08, line="-", panel="task",
        title="{task}", xscale="log2", xlabel="number of heads", ylabel=label, shared=False,
    ) + panels.Reference(y=0, label="nothing separated")  # fmt: skip


def answer(data: xr.Dataset) -> dict[str, object]:
    """On which tasks the informative row is found, and on how many more heads help."""
    tasks, change = attended(data)["tasks"], []
    for _, values in by_task(data.sel(set="test", start="zero"), "loss"):
        ends = values.loss.dropna("H")
        change.append(float(ends[-1] - ends[0]))
    return {
        "tasks": tasks,
        "all": all(task["all"] for task in tasks),
        "never": not any(task["any"] for task in tasks),
        "fewest": int(data.H[0]),
        "most": int(data.H[-1]),
        "falls": sum(difference < 0 for difference in change),
        "n": data.attrs["n"],
        "seeds": data.sizes["member"],
    }


LOSSES = Lines(
    "loss", lambda data: data.step + 1, at={"start": "zero"}, colour="H", dash="set",
    band=mean_only, panel="task", title="{task}", xscale="log", yscale="log",
    xlabel="training step + 1", ylabel="mean logistic loss (lower is better)", names="heads: {H}",
    shared=False, width=1.2,
)  # fmt: skip
BY_ROW: dict[str, Any] = {
    "panel": "task", "title": "{task}", "xlabel": "row of the image, from the top", "width": 1.5,
}  # fmt: skip
ATTENTION = Lines(
    few_heads("mass"), "row", colour="start", names="from {start}", dash="start",
    dash_names=dict.fromkeys(STARTS, ""), band=panels.extremes, ylim=(0, None),
    ylabel="share of the attention", **BY_ROW,
) + panels.Reference(
    y=lambda data: 1 / data.row.size, style="-", label="equal attention on all rows"
)  # fmt: skip
INFORMATION = Lines(
    information, "row", band=mean_only, ylim=(0, None),
    label="how well the row alone separates the classes",
    ylabel="Fisher's ratio of the row / sum over rows",
    **BY_ROW,
)  # fmt: skip
REACHED = margins("decoder", "least margin of an image / norm of weights, after training") + Lines(
    "linear", "H", band=mean_only, style="--", label="margin of a linear classifier"
)
TANGENT = margins("ntk", "margin of the tangent kernel at the start")
EXPERIMENT = Experiment(
    title="Multi-head attention on real digits",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["task", "H", "start"],
        [
            Column("seeds", "decoder", lambda margin: int(np.isfinite(margin).sum())),
            Column("steps", lambda data: xr.DataArray(data.attrs["steps"]), panels.only),
            Column("loss", last("loss", set="training")),
            Column("test loss", last("loss", set="test")),
            Column("accuracy", last("accuracy", set="training")),
            Column("test accuracy", last("accuracy", set="test")),
            Column("NTK margin (0: not separable)", "ntk"),
            Column("linear margin", "linear"),
            Column("decoder margin reached", "decoder"),
            Column("margin reached on the sphere", "sphere"),
            Column("effective rows", last("effective_rows")),
            Column("mass on the most attended row",
                   lambda data: last("mass")(data).mean("member").max("row")),
            Column("rank correlation with information", "correlation"),
        ],
    ),
    figures=[
        panels.Plot("Losses on digits", LOSSES, losses),
        panels.Plot("Where the attention goes", [ATTENTION, INFORMATION], attended),
        panels.Plot("Margins on digits", [REACHED, TANGENT], separated),
    ],
)  # fmt: skip
