r"""Can a bound certify 90 % accuracy at all, if training stays in norm balls, and for which m?

One layer is trained on sparse majority by projected gradient descent on the balls of Theorem 4.1.
Its class is fixed before the data are seen; the bound on the error is then compared with the error,
and solved for the number of samples from which it is below one, below guessing and below 10 %.
"""

import equinox as eqx
import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.bounds.generalisation.generalisation_gap import generalisation_gap
from attlas.data.sparse_majority import MajorityDesign, make_sparse_majority
from attlas.data.unit_bit_embedding import one_hot_bits, scaled_to_unit
from attlas.display.bound_names import bound_in_words, bound_label
from attlas.display.numbers import large_number
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import PALETTE, Column, Lines, Reference, mean_only
from attlas.experiments.settings import Settings
from attlas.training.sparse_majority.certified_error import (
    FAMILIES,
    ball_complexities,
    certified_error,
    ramp_risks,
)
from attlas.training.sparse_majority.projected import ProjectedSettings, train_projected
from trauger2023sequence.library.measures.crossing import last_crossing

DELTA = 0.05
ACCURACY = 0.9
THRESHOLDS = (1.0, 0.5, 0.1)
"""Bounds on the error that are below its largest value, that beat a coin, and that certify 90 %."""
MARGINS = np.geomspace(0.01, 0.5, 18)
SAMPLES = np.geomspace(1e3, 1e13, 81)
FIXED = FAMILIES[-1]
TASKS = {
    "majority of 1 (a decisive token)": ("one-hot", 1),
    "majority of 3": ("one-hot", 3),
    "majority of 3, released embedding": ("released", 3),
}
GRID = Grid(
    each={"task": list(TASKS)},
    fixed={
        "embedding": lambda s: TASKS[s.task][0], "s": lambda s: TASKS[s.task][1],
        "T": 32, "radii": [0.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0], "batch": 64,
        "members": 1, "block": 1,
    },
    smoke={"T": 8, "train": 512, "test": 500, "steps": 20, "radii": [0.0, 4.0, 16.0]},
    quick={"train": 2**19, "test": 20_000, "steps": 600},
    paper={"train": 2**22, "test": 200_000, "steps": 4000, "members": 5},
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train in every ball; accuracies, ramp risks, and the bounds at many sample sizes."""
    start, draw = jax.random.split(key)
    d, radii, samples = s.T + 2, np.asarray(s.radii, float), np.append(SAMPLES, s.train)
    data = make_sparse_majority(draw, s.T, MajorityDesign(s.train, s.test, s.s, d))
    unit = one_hot_bits(s.T) if s.embedding == "one-hot" else scaled_to_unit(data.embedding)
    data = eqx.tree_at(lambda axes: axes.embedding, data, unit)
    settings = ProjectedSettings(steps=s.steps, batch=s.batch)
    models = train_projected(start, data, jax.device_put(radii.astype("float32")), settings)
    sets = (data.bits, data.labels), (data.validation_bits, data.validation_labels)
    margins = jax.device_put(MARGINS)
    accuracy, ramp = zip(*(ramp_risks(models, unit, *axes, margins) for axes in sets), strict=True)
    complexity = np.asarray(ball_complexities(radii, samples, s.T, d))
    errors = certified_error(np.asarray(ramp[0]), complexity, samples, MARGINS, DELTA)
    logs, error = np.log(SAMPLES), np.moveaxis(errors.error[:, :-1], 1, -1)
    needed = [np.exp(last_crossing(logs, error - threshold)) for threshold in THRESHOLDS]
    by_set, axes = ("set", "radius"), ("radius", "samples", "family")
    return xr.Dataset(
        {
            "norm": ("radius", np.abs(np.asarray(models.query_key)).sum(axis=(1, 2, 3))),
            "accuracy": (by_set, np.stack(accuracy)),
            "ramp": ((*by_set, "margin"), np.stack(ramp)),
            "complexity": (axes, complexity),
            "error": (axes, errors.error),
            "best_margin": (axes, MARGINS[errors.margin]),
            "needed": (("threshold", "radius", "family"), needed),
        },
        {
            "set": ["train", "test"], "radius": radii, "margin": MARGINS, "samples": samples,
            "family": list(FAMILIES), "threshold": list(THRESHOLDS),
        },
    )  # fmt: skip


def trained(data: xr.Dataset) -> xr.Dataset:
    """The bounds at the samples trained on; the ramp loss at the margin that `FIXED` takes."""
    at_training_size = data.isel(samples=-1, drop=True)
    margin = at_training_size.best_margin.sel(family=FIXED, drop=True)
    ramp = at_training_size.ramp.where(at_training_size.margin == margin).sum("margin", min_count=1)
    delta = DELTA / (data.sizes["radius"] * data.sizes["margin"])
    tail = float(generalisation_gap(0.0, data.attrs["train"], delta))
    return at_training_size.assign(
        own_margin=margin,
        own_ramp=ramp.sel(set="train"),
        gap=ramp.sel(set="test") - ramp.sel(set="train"),
        gap_bound=2 * at_training_size.complexity / margin + tail,
        error=at_training_size.error.clip(max=1),
    )


def learnt(data: xr.Dataset) -> xr.DataArray:
    """Where the accuracy on fresh data is the one wanted."""
    return data.accuracy.sel(set="test") >= ACCURACY


def accuracy(data: xr.Dataset) -> xr.DataArray:
    """The accuracy on fresh sequences, of the tasks that were learnt if there are any."""
    any_learnt = learnt(data).any(["radius", "member"])
    accuracies = data.accuracy.sel(set="test")
    return accuracies.sel(task=any_learnt) if any_learnt.any() else accuracies


def curves(data: xr.Dataset) -> xr.DataArray:
    """Bounds on the error of the tasks that were learnt, each at its own best radius."""
    error = data.error.isel(samples=slice(None, -1)).where(learnt(data)).min("radius")
    any_learnt = learnt(data).any(["radius", "member"])
    return error.sel(task=any_learnt) if any_learnt.any() else error


def certified(family: str, m: float | None) -> Lines:
    """The accuracy that a bound certifies, at some m or at the samples trained on."""

    def share(data: xr.Dataset) -> xr.DataArray:
        error = data.error.isel(samples=-1)
        if m is not None:
            error = data.error.isel(samples=int(np.abs(SAMPLES / m - 1).argmin()))
        return (1 - error.sel(family=family)).clip(min=0)

    size = "the sequences trained on" if m is None else f"{large_number(m)} sequences"
    return Lines(
        share, "radius", band=mean_only, style="s-" if m is None else "s--",
        ink=PALETTE[6] if family == FIXED else PALETTE[1],
        label=f"certified from {size}, {bound_label(family)}",
    )  # fmt: skip


def certificates(data: xr.Dataset) -> dict[str, object]:
    """What is certified at the samples trained on."""
    texts = []
    for task in data["task"].values:
        cell = trained(data).sel(task=task).mean("member")
        usable = learnt(cell) if learnt(cell).any() else cell.error.notnull().any("family")
        best = 1 - float(cell.error.sel(family=FIXED).where(usable).min())
        texts.append(
            f"{task}: accuracy up to {float(cell.accuracy.sel(set='test').max()):.3f}, certified "
            + (f"{best:.3f}" if best > 0 else "nothing")
        )
    sharp = 1 - trained(data).error.sel(family=FAMILIES[1])
    theorem, below = (float(sharp.where(there).max()) for there in (learnt(data), ~learnt(data)))
    facts = answer(data)
    return {
        "m": f"{data.attrs['train']:,}",
        **{name: facts[name] for name in ("certified", "task", "accuracy")},
        "tasks": "; ".join(texts),
        "wanted": f"{100 * ACCURACY:g}",
        "theorem": f"{theorem:.3f}" if theorem > 0 else "",
        "below": f"{below:.3f}" if below > 0 else "",
    }


def needs(data: xr.Dataset) -> dict[str, object]:
    """The samples that each bound needs."""
    texts, missed, facts = [], [], answer(data)
    for task in data["task"].values:
        cell = data.sel(task=task)
        if not learnt(cell).any():
            missed.append(task)
            continue
        needed = cell.needed.where(learnt(cell)).min("radius").median("member")
        names = [FAMILIES[k] for k in (0, 1, 3, 5)]
        sizes = [
            f"{bound_in_words(name)} {sample_sizes(needed.sel(family=name))}" for name in names
        ]
        texts.append(f"{task}: {'; '.join(sizes)}")
    return {
        "sizes": ". ".join(texts),
        **{name: facts[name] for name in ("task", "needed")},
        "counted": large_number(float(_needed(data, str(facts["task"]), FIXED)))
        if facts["task"]
        else "",
        "missed": ", ".join(missed),
        "wanted": f"{100 * ACCURACY:g}",
        "thresholds": " / ".join(f"{100 * each:g} %" for each in THRESHOLDS),
    }


def sample_sizes(needed: xr.DataArray) -> str:
    """The samples for each threshold."""
    sizes = needed.median("member").values if "member" in needed.dims else needed.values
    return " / ".join(large_number(m) if np.isfinite(m) else "never" for m in sizes)


def _needed(data: xr.Dataset, task: str, family: str) -> xr.DataArray:
    """The fewest samples from which a bound on a learnt model is below the largest error."""
    needed = data.needed.sel(task=task, family=family, threshold=THRESHOLDS[0])
    return needed.where(learnt(trained(data)).sel(task=task)).min()


def answer(data: xr.Dataset) -> dict[str, object]:
    """The largest certified accuracy of a model of the accuracy wanted."""
    at_training_size = trained(data)
    usable = learnt(at_training_size)
    share = (
        (1 - at_training_size.error.sel(family=FIXED)).where(usable).max("radius").mean("member")
    )
    facts: dict[str, object] = {
        **dict.fromkeys(("certified", "task", "accuracy", "needed"), ""),
        "m": f"{data.attrs['train']:,}",
        "wanted": f"{100 * ACCURACY:g}",
        "T": data.attrs["T"],
        "members": data.sizes["member"],
    }
    if not usable.any() or float(share.max()) <= 0:
        return facts
    task = data.task.values[int(share.argmax("task"))]
    accuracy = at_training_size.accuracy.sel(task=task, set="test").max("radius").mean("member")
    return facts | {
        "task": task,
        "certified": f"{float(share.max()):.3f}",
        "accuracy": f"{float(accuracy):.3f}",
        "needed": large_number(float(_needed(data, task, FAMILIES[1]))),
    }


EXPERIMENT = Experiment(
    title="Training in norm balls",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["task", "radius"],
        [
            Column("trained norm", "norm"),
            *(Column(f"accuracy, {n}", "accuracy", at={"set": n}) for n in ("train", "test")),
            Column("margin", "own_margin"), Column("ramp, train", "own_ramp"), Column("gap", "gap"),
            *(Column(f"bound on gap, {FAMILIES[k]}", "gap_bound", at={"family": FAMILIES[k]})
              for k in (0, 1, 5)),
            Column("bound on error", "error", at={"family": FIXED}),
            *(Column(f"m for error < 1, 0.5, 0.1: {f}", "needed", sample_sizes, at={"family": f})
              for f in FAMILIES),
        ],
        of=trained,
    ),
    figures=[
        panels.Plot(
            "Accuracy and certified accuracy",
            Lines(
                accuracy, "radius", band=mean_only, style="o-", ink="#999999",
                label="measured accuracy", panel="task", title="{task}", ylim=(-0.03, 1.03),
                xlabel="limit on the sum of |entries| of the weights",
                ylabel="share of sequences classified rightly",
            )
            + certified(FIXED, None) + certified(FIXED, 1e7) + certified(FAMILIES[1], 1e10)
            + Reference(y=ACCURACY, label=f"accuracy {100 * ACCURACY:g} %"),
            certificates,
        ),
        panels.Plot(
            "Samples for a bound below one and below guessing",
            Lines(
                curves, "samples", colour="family", names={f: bound_label(f) for f in FAMILIES},
                band=mean_only, panel="task", title="{task}",
                xscale="log", yscale="log", ylim=(0.01, 10), xlabel="training sequences",
                ylabel="bound on the error (lower is better)", width=1.3,
            )
            + Reference(x=lambda data: xr.DataArray(data.attrs["train"]),
                        label="sequences trained on")
            + Reference(y=THRESHOLDS[0], to=10,
                        label="above the largest error: a bound is vacuous")
            + Reference(y=THRESHOLDS[1], style="--", label="error of guessing")
            + Reference(y=THRESHOLDS[2], style="-.", label="error 10 %"),
            needs,
        ),
    ],
)  # fmt: skip
