r"""Do all stationary points have small errors once n is large, as Theorems 1 and 2 promise?

Stationary points of the empirical risk from many starts, minima and saddles alike, with their
errors on fresh inputs: for a model that knows the teacher's attention weights, for the baseline,
and for a student with half the teacher's units.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.join import join
from attlas.experiments.panels import (
    Column,
    Lines,
    Points,
    Reference,
    largest,
    least,
    mean,
    mean_only,
    total,
)
from attlas.experiments.part_cache import cached_part
from attlas.experiments.settings import Settings
from liu2021analyzing.library.data.attended_regression import (
    attended_inputs,
    attention_matrix,
    balanced_layers,
    layer_outputs,
)
from liu2021analyzing.library.levenberg_marquardt import levenberg_marquardt
from liu2021analyzing.library.losses import squared_risk
from liu2021analyzing.library.measures.point_kinds import (
    KINDS,
    at_least_risk,
    first_of_each,
    point_kinds,
)
from liu2021analyzing.library.measures.stationary_points import stationary_points
from liu2021analyzing.library.models.mixed_starts import mixed_starts
from liu2021analyzing.library.models.two_layer import TwoLayer

Sample = tuple[np.ndarray, ...]
"""Inputs, labels and which of them count; or fresh inputs with the truth."""
TASKS = {
    "attention": "attention mask known",
    "baseline": "baseline: equal weights",
    "too narrow": "baseline, half the units",
}
STATIONARY = KINDS[:3]
SHARPNESS = 5.0
NOISE = 0.5
L2 = 1e-3
"""Factor of half the squared norm of all weights in the risk."""
LARGE = 0.5
"""Errors above this share of the truth's own variance count as large."""
ASIDE = 0.3
"""How far minima, saddles and the origin stand beside each other, as a factor of n less one."""
GRID = Grid(
    fixed={"tolerance": 1e-8, "block": 1},
    smoke={"p": 2, "units": 2, "sizes": [16, 64], "starts": 6, "steps": 30, "fresh": 100,
           "members": 1},
    quick={"p": 4, "units": 2, "sizes": [32, 128, 512], "starts": 32, "steps": 80, "fresh": 4000,
           "members": 2},
    paper={"p": 4, "units": 2, "sizes": [32, 128, 512, 2048, 8192], "starts": 64, "steps": 120,
           "fresh": 20_000, "members": 3},
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Errors, kinds and certificates of the points found, by task, n and start."""
    return join([points_of(s, task, number) for number, task in enumerate(TASKS)])


def points_of(s: Settings, task: str, number: int) -> xr.Dataset:
    """The points of one task."""
    most, rng = max(s.sizes), np.random.default_rng([s.seed, number])
    x, M = rng.uniform(-1, 1, (most + s.fresh, s.p)), attention_matrix(rng, s.p)
    z = attended_inputs(x, s.p // 2, M) if task == "attention" else x / np.sqrt(s.p)
    W1, w2 = balanced_layers(rng, s.p, s.units * (2 if task == "too narrow" else 1))
    W1 = np.sqrt(3) * W1
    w2 = w2 / layer_outputs(z[most:], W1, w2, SHARPNESS).std()
    truth = layer_outputs(z, W1, w2, SHARPNESS)
    labels = truth[:most] + NOISE * rng.standard_normal(most)
    starts = mixed_starts(rng, W1, w2, s.units, s.starts, SHARPNESS)
    teacher = [float(np.linalg.norm(a)) for a in (W1, w2)]
    samples = []
    for n in s.sizes:
        weights = (np.arange(most) < n).astype(float)
        sample = z[:most], labels - labels[:n].mean(), weights
        points = cached_part(points_at, s, sample, starts, teacher, (z[most:], truth[most:]))
        samples.append(points.expand_dims(["task", "n"]).assign_coords(task=[task], n=[n]))
    return join(samples)


def points_at(
    s: Settings, sample: Sample, starts: TwoLayer, norms: Sequence[float], fresh: Sample
) -> xr.Dataset:
    """The points of one sample."""
    solutions = stationary_points(
        squared_risk, descended(starts, sample, s.steps), *map(jnp.asarray, sample), L2,
        tolerance=s.tolerance, max_steps=s.steps,
    )  # fmt: skip
    layers = zip(*map(np.asarray, (solutions.value.W1, solutions.value.w2)), strict=True)
    x, truth = fresh
    outputs = [layer_outputs(x, *layer, sharpness=SHARPNESS) for layer in layers]
    error = np.mean((np.array(outputs) - truth) ** 2, axis=1)
    kind = point_kinds(solutions, norms, tolerance=s.tolerance)
    risk, smallest = map(np.asarray, (solutions.stats["risk"], solutions.certificate["smallest"]))
    fields = {
        "error": error, "kind": kind, "risk": risk, "smallest": smallest,
        "distinct": first_of_each(kind, risk),
    }  # fmt: skip
    points = xr.Dataset({name: ("start", values) for name, values in fields.items()})
    return points.assign(best=at_least_risk(error, risk, kind == "minimum"))


def descended(starts: TwoLayer, sample: Sample, steps: int) -> TwoLayer:
    """Every other start after steps that lower the risk: minima attract few starts otherwise."""
    copied = jax.tree.map(np.array, starts)
    odd = jax.tree.map(lambda a: a[1::2], copied)
    x, y, weights = (np.repeat(a[None], len(odd.w2), axis=0) for a in sample)
    ends = levenberg_marquardt(
        TwoLayer.__call__, odd, x, y, weights=weights, l2=L2, max_steps=steps
    ).value
    jax.tree.map(np.copyto, odd, ends)  # a view of the whole
    return jax.device_put(copied)


def errors(data: xr.Dataset) -> xr.DataArray:
    """Errors of the stationary points, each once, by kind."""
    point = xr.DataArray(list(STATIONARY), dims="point", coords={"point": list(STATIONARY)})
    return data.error.where((data.distinct == 1) & (data.kind == point))


def marks(data: xr.Dataset) -> xr.DataArray:
    """The same, in one row."""
    return errors(data).stack(each=["n", "start", "member"])


def of(point: str) -> panels.Formula:
    """Errors of the points of one kind."""
    return lambda data: errors(data).sel(point=point)


def shares(data: xr.Dataset) -> dict[str, object]:
    """How errors fall, and which stay."""
    sentences, n = [], data.n.values
    for task in TASKS:
        slope = panels.power_of(data.best.sel(task=task), "n")
        text = "none at some $n$" if slope == "not available" else f"log-log slope {slope} (95 %)"
        values = errors(data).sel(task=task).isel(n=-1).values
        values = values[np.isfinite(values)]
        sentences.append(
            f"{task}: minimum of least risk {text}, and {np.sum(values > LARGE)} of {values.size} "
            f"points at $n = {n[-1]}$ have an error above {LARGE:g}, the largest "
            f"{values.max(initial=0):.2g}"
        )
    lost, outside = (f"{float((data.kind == kind).mean()):.0%}" for kind in (KINDS[4], KINDS[3]))
    sentences = "; ".join(sentences)
    facts = {name: answer(data)[name] for name in ("large", "points", "n", "level")}
    return facts | {
        "tasks": sentences,
        "lost": lost,
        "outside": outside,
        "members": data.sizes["member"],
    }


def answer(data: xr.Dataset) -> dict[str, object]:
    """How many points of the model that knows its attention have large errors."""
    values = errors(data).sel(task="attention").isel(n=-1).values
    values = values[np.isfinite(values)]
    best = data.best.sel(task="attention").isel(n=-1).mean("member")
    control = errors(data).reindex(task=["baseline"]).isel(n=-1).values
    control = control[np.isfinite(control)]
    return {
        "large": int(np.sum(values > LARGE)),
        "points": values.size,
        "worst": f"{values.max(initial=0):.2g}",
        "best": f"{float(best):.2g}" if np.isfinite(best) else "not been found",
        "level": f"{LARGE:g}",
        "control": f"{np.sum(control > LARGE)} of {control.size}" if control.size else "",
        "n": int(data.n[-1]),
        "members": data.sizes["member"],
        "p": data.attrs["p"],
    }


EXPERIMENT = Experiment(
    title="Errors of all stationary points",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["task", "n"],
        [
            Column("minima", lambda data: of("minimum")(data).notnull(), total),
            Column("error, best minimum", "best"),
            Column("error, worst minimum", of("minimum"), largest),
            Column("saddles", lambda data: of("saddle")(data).notnull(), total),
            Column("least error, saddles", of("saddle"), least),
            Column("largest", of("saddle"), largest),
            Column("error, origin", of("origin"), mean),
            *(
                Column(kind, lambda data, kind=kind: data.kind == kind, lambda a: f"{mean(a):.0%}")
                for kind in (KINDS[4], KINDS[3])
            ),
        ],
    ),
    figures=[
        panels.Plot(
            "Stationary points against the sample size",
            Points(
                marks, "n", colour="point", panel="task", title=TASKS, dodge=ASIDE, xscale="log2",
                yscale="log", xlabel="samples $n$",
                ylabel="test error: mean square / variance of the truth",
            )
            + Lines("best", lambda data: data.n / (1 + ASIDE), band=mean_only,
                    ink=panels.PALETTE[0], label="minimum of least training loss")
            + Reference(y=LARGE, label=f"{LARGE:g} of the variance of the truth"),
            shares, height=1.2,
        )
    ],
)  # fmt: skip
