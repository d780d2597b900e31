r"""Do all stationary points have small errors once n is large, as Theorems 1 and 2 promise?

Stationary points of the empirical risk from many starts, minima and saddles alike, with their
errors on fresh inputs: for a model that knows the teacher's attention weights, for the baseline,
and for a student with half the teacher's units.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.experiments.liu2021analyzing.instances import Problem, fit
from attlas.measures.curvature.stationary_points import stationary_points
from attlas.measures.statistics.loglog_slope import loglog_slope
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas
    from matplotlib.axes import Axes

TASKS = ("attention", "baseline", "too narrow")
TITLES = ("moving attention, known $f$", "baseline: equal weights", "baseline, half the units")
POINTS = {"minimum": ("#0072b2", "o"), "saddle": ("#d55e00", "^"), "the origin": ("k", "s")}
ASIDE = (0.75, 1.33, 1.0)
"""Where the points of a kind are drawn, as factors of n."""
MINIMUM, SADDLE, ORIGIN, LOST, FAR = range(5)
SHARPNESS = 5.0
NOISE = 0.5
BALL = 3.0
"""Theorems 1 and 2 speak of weights in balls: here of so many times the teacher's norms."""
L2 = 1e-3
"""Factor of half the squared norm of all weights in the risk."""
ZERO = 1e-4
"""Weights of so small a share of the teacher's norms are at the origin."""
LARGE = 0.5
"""Errors above this share of the teacher's own variance count as large."""
NOTE = (
    "Networks w2' phi(W1' z) with softplus of sharpness 5, for which second derivatives exist; "
    "z = x o f(x), with half of the p weights equal and the others zero, where M|x| is largest "
    "(attention), or z = x / sqrt(p). Labels have noise of deviation .5, truth of deviation 1, "
    "and are centred in the sample, so that the origin is a stationary point exactly. The risk has "
    "an l2 penalty of .001 / 2 in place of the paper's balls: without it minima lie in valleys "
    "along alpha W1, w2 / alpha that lead out of every ball, and all W1 that are uncorrelated with "
    "the labels are stationary at w2 = 0. Starts: the origin, the teacher, and Gaussian weights of "
    "sizes .03 to 3 times the teacher's, a third of them with equal units, a symmetry that steps "
    "keep; every other one first descends the risk. Then damped Gauss-Newton steps on the "
    "gradient's square; kept are ends whose gradient norm is at most the tolerance, in balls of "
    "three times the teacher's norms. A saddle has an eigenvalue of the Hessian below the rounding "
    "error; the others are called minima. Finite searches find some of the points, not all."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each replication."""
    settings = {
        Scale.SMOKE: {"p": 2, "units": 2, "sizes": (16, 64), "starts": 6, "steps": 30,
                      "fresh": 100},
        Scale.QUICK: {"p": 4, "units": 2, "sizes": (32, 128, 512), "starts": 32, "steps": 80,
                      "fresh": 4000},
        Scale.PAPER: {"p": 8, "units": 4, "sizes": (64, 256, 1024, 4096, 16384), "starts": 512,
                      "steps": 400, "fresh": 50000},
    }[scale]  # fmt: skip
    count = {Scale.SMOKE: 1, Scale.QUICK: 2, Scale.PAPER: 10}[scale]
    return tuple(Cell({"tolerance": 1e-8, **settings}, seed) for seed in range(count))


def risk(theta: tuple[Array, Array], z: Array, y: Array, weight: Array) -> Array:
    """Half the mean squared residual of the samples that count, and the penalty.

    Args:
        theta: first layer (p, d) and second layer.
        z: inputs, attended.
        y: labels.
        weight: 1 for samples that count, else 0.

    Returns:
        The risk.
    """
    W1, w2 = theta
    left = (jax.nn.softplus(SHARPNESS * (z @ W1)) / SHARPNESS) @ w2 - y
    size = jnp.sum(W1**2) + jnp.sum(w2**2)
    return jnp.sum(weight * left**2) / (2 * jnp.sum(weight)) + L2 / 2 * size


def _network(theta: Array, z: Array, constants: Array) -> Array:
    """The same network, its weights in one vector."""
    p = z.shape[0]
    d = (theta.size - constants.size) // (p + 1)
    W1 = theta[: p * d].reshape(p, d)
    return (jax.nn.softplus(SHARPNESS * (z @ W1)) / SHARPNESS) @ theta[p * d :]


def _outputs(z: np.ndarray, W1: np.ndarray, w2: np.ndarray) -> np.ndarray:
    return (np.logaddexp(0, SHARPNESS * (z @ W1)) / SHARPNESS) @ w2


def _attended(task: str, x: np.ndarray, M: np.ndarray) -> np.ndarray:
    """The inputs of the two layers: weights of norm one, half of them zero where they move."""
    p = x.shape[1]
    if task != TASKS[0]:
        return x / np.sqrt(p)
    scores = np.abs(x) @ M.T
    return np.where(scores >= np.median(scores, axis=1, keepdims=True), x, 0.0) / np.sqrt(p // 2)


def _teacher(rng: np.random.Generator, p: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Balanced, of mean zero: half the units are the others with signs of inputs changed."""
    W1 = np.sqrt(3) * rng.standard_normal((p, d // 2))
    signs = np.where(np.arange(p) % 2, -1.0, 1.0)[:, None]
    w2 = rng.choice([-1.0, 1.0], d // 2)
    return np.hstack([W1, signs * W1]), np.r_[w2, -w2]


def _starts(
    rng: np.random.Generator, s: Mapping, W1: np.ndarray, w2: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Starts of both layers: the origin, the teacher where it fits, and others of mixed sizes."""
    p, d, count = s["p"], s["units"], s["starts"]
    sizes = np.exp(rng.uniform(np.log(0.03), np.log(3.0), (2, count)))
    first = sizes[0, :, None, None] * np.sqrt(3) * rng.standard_normal((count, p, d))
    second = sizes[1, :, None] * rng.standard_normal((count, d)) * np.abs(w2).max()
    first[::3], second[::3] = first[::3, :, :1], second[::3, :1]
    first[0], second[0] = 0.0, 0.0
    first[1], second[1] = W1[:, :d], w2[:d]
    return first, second


def _descended(
    s: Mapping, starts: tuple[np.ndarray, np.ndarray], z: np.ndarray, y: np.ndarray, w: np.ndarray
) -> tuple[Array, Array]:
    """Every other start after steps that lower the risk: minima attract few starts otherwise."""
    first, second = (a.copy() for a in starts)
    odd = second[1::2]
    count, shape = len(odd), first[1::2].shape
    theta = np.concatenate([first[1::2].reshape(count, -1), odd], axis=1)
    x, y, weight = (np.repeat(a[None], count, axis=0) for a in (z, y, w))
    problems = Problem(theta, x, y, weight, np.tile([0.0, L2], (count, 1)), np.zeros((count, 0)))
    found = fit(_network, problems, s["steps"], count).parameters
    cut = found.shape[1] - odd.shape[1]
    first[1::2], second[1::2] = found[:, :cut].reshape(shape), found[:, cut:]
    return jax.device_put(first), jax.device_put(second)


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Errors, kinds and certificates of the points, by task, n and start."""
    s = cell.settings
    most, rows = max(s["sizes"]), []
    for number, task in enumerate(TASKS):
        rng = np.random.default_rng([cell.seed, number])
        x = rng.uniform(-1, 1, (most + s["fresh"], s["p"]))
        M = rng.standard_normal((s["p"], s["p"]))
        z = _attended(task, x, M - M.mean(axis=1, keepdims=True))
        W1, w2 = _teacher(rng, s["p"], s["units"] * (2 if task == "too narrow" else 1))
        w2 = w2 / _outputs(z[most:], W1, w2).std()
        truth = _outputs(z, W1, w2)
        labels = truth[:most] + NOISE * rng.standard_normal(most)
        starts = _starts(rng, s, W1, w2)
        for n in s["sizes"]:
            weight = (np.arange(most) < n).astype(float)
            y = labels - labels[:n].mean()
            begin = _descended(s, starts, z[:most], y, weight)
            data = (jax.device_put(a) for a in (z[:most], y, weight))
            found = stationary_points(
                risk, begin, *data, tolerance=s["tolerance"], max_steps=s["steps"]
            )
            layers = [np.asarray(a) for a in found.value]
            norms = [float(np.linalg.norm(a)) for a in (W1, w2)]
            rows.append({
                "error": [np.mean((_outputs(z[most:], *point) - truth[most:]) ** 2)
                          for point in zip(*layers, strict=True)],
                "kind": _kinds(layers, norms, found.certificate, s["tolerance"]),
                "risk": found.stats["risk"],
                "smallest": found.certificate["smallest"],
            })  # fmt: skip
    shape = (len(TASKS), len(s["sizes"]), s["starts"])
    stacked = {name: np.stack([row[name] for row in rows]).reshape(shape) for name in rows[0]}
    return {"n": np.array(s["sizes"]), **stacked}


def _kinds(
    layers: Sequence[np.ndarray], norms: Sequence[float], certificate: Mapping, tolerance: float
) -> np.ndarray:
    """What each end is: a minimum, a saddle, the origin, no stationary point, or far out."""
    slope, least, rounding = (
        np.asarray(certificate[name]) for name in ("gradient_norm", "smallest", "rounding")
    )
    own = np.stack([np.linalg.norm(a.reshape(len(a), -1), axis=1) for a in layers])
    kind = np.where(least < -rounding, SADDLE, MINIMUM)
    kind[np.max(own / np.array(norms)[:, None], axis=0) < ZERO] = ORIGIN
    kind[np.max(own / np.array(norms)[:, None], axis=0) > BALL] = FAR
    kind[~(slope <= tolerance)] = LOST
    return kind


def _distinct(record: Record, task: int, size: int, kind: int) -> np.ndarray:
    """Errors of the points of a kind, each once: points that a symmetry maps have one risk."""
    a = record.arrays
    rows = a["kind"][task, size] == kind
    levels = np.round(a["risk"][task, size][rows], 9)
    return a["error"][task, size][rows][np.unique(levels, return_index=True)[1]]


def _pooled(records: Sequence[Record], task: int, size: int, kind: int) -> np.ndarray:
    return np.concatenate([_distinct(record, task, size, kind) for record in records])


def _best(records: Sequence[Record], task: int) -> np.ndarray:
    """Error of the minimum of least risk, by n and replication; NaN where none was found."""
    found = []
    for record in records:
        a = record.arrays
        risks = np.where(a["kind"][task] == MINIMUM, a["risk"][task], np.inf)
        errors = np.take_along_axis(a["error"][task], risks.argmin(1)[:, None], 1)[:, 0]
        found.append(np.where(np.isfinite(risks.min(1)), errors, np.nan))
    return np.stack(found, axis=1)


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Distinct points by kind, the largest of their errors, and ends that were not kept."""
    import pandas as pd

    rows = []
    for task, title in enumerate(TASKS):
        best = _best(records, task)
        for size, n in enumerate(records[0].arrays["n"]):
            minima, saddles = (_pooled(records, task, size, kind) for kind in (MINIMUM, SADDLE))
            origin = _pooled(records, task, size, ORIGIN)
            kinds = np.concatenate([record.arrays["kind"][task, size] for record in records])
            rows.append({
                "task": title, "n": int(n), "minima": len(minima),
                "error, best minimum": f"{np.mean(best[size]):.3g}",
                "error, worst minimum": f"{max(minima, default=np.nan):.3g}",
                "saddles": len(saddles),
                "least error, saddles": f"{min(saddles, default=np.nan):.3g}",
                "largest": f"{max(saddles, default=np.nan):.3g}",
                "error, origin": f"{np.mean(origin) if len(origin) else np.nan:.3g}",
                "not stationary": f"{np.mean(kinds == LOST):.0%}",
                "outside the balls": f"{np.mean(kinds == FAR):.0%}",
            })  # fmt: skip
    return pd.DataFrame(rows)


def _draw(axis: "Axes", records: Sequence[Record], task: int) -> None:
    """Points of every kind beside each other at each n."""
    rng = np.random.default_rng(0)
    n = records[0].arrays["n"]
    for kind, (name, (colour, mark)) in enumerate(POINTS.items()):
        for size, each in enumerate(n):
            errors = _pooled(records, task, size, kind)
            spread = 0.0 if kind == ORIGIN else 0.1
            x = each * ASIDE[kind] * np.exp(rng.uniform(-spread, spread, errors.size))
            axis.scatter(x, errors, s=30, marker=mark, color=colour, alpha=0.75, linewidths=0,
                         label=name if size == 0 else None)  # fmt: skip
    best = np.ma.masked_invalid(_best(records, task)).mean(axis=1).filled(np.nan)
    axis.plot(
        n * ASIDE[MINIMUM], best, color=POINTS["minimum"][0], lw=1.2, label="minimum of least risk"
    )
    axis.axhline(LARGE, color="0.6", lw=0.9, ls=":")
    axis.set(xscale="log", yscale="log", xlabel="samples $n$", title=TITLES[task])
    axis.set_xticks(n, [str(k) for k in n])
    axis.minorticks_off()


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """Errors of all stationary points found against n, one axis a task."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10.5, 4.2), sharey=True, layout="constrained")
    for task, axis in enumerate(axes):
        _draw(axis, records, task)
        axis.title.set_fontsize(10)
    axes[0].set_ylabel("test error / variance of the truth")
    handles, labels = axes[0].get_legend_handles_labels()
    for task in (1, 2):  # a kind that the first task lacks
        more = zip(*axes[task].get_legend_handles_labels(), strict=True)
        new = [(h, name) for h, name in more if name not in labels]
        handles, labels = handles + [h for h, _ in new], labels + [name for _, name in new]
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return (Panel("Stationary points against the sample size", _caption(records), figure),)


def _caption(records: Sequence[Record]) -> str:
    n, said = records[0].arrays["n"], []
    for task, name in enumerate(TASKS):
        best = _best(records, task)
        text = "no minimum was found at some n"
        if np.isfinite(best).all():
            slope = loglog_slope(n, best, jax.random.key(0), samples=500)
            text = f"slope {slope.slope:.2f} [{slope.low:.2f}, {slope.high:.2f}]"
        every = np.concatenate([_pooled(records, task, len(n) - 1, kind) for kind in range(3)])
        said.append(
            f"{name}: minimum of least risk {text}, and {np.sum(every > LARGE)} of "
            f"{every.size} points at n = {n[-1]} have an error above {LARGE:g}, the largest "
            f"{every.max(initial=0):.2g}"
        )
    kinds = np.stack([record.arrays["kind"] for record in records])
    return (
        "Do all stationary points predict well once n is large? "
        f"{'; '.join(said)}. The origin is stationary whatever n, and its error is the variance "
        "of the truth: (A3) fails there. Errors are in units of that variance. Of all ends "
        f"{np.mean(kinds == LOST):.0%} were not stationary and {np.mean(kinds == FAR):.0%} lay "
        f"outside the balls. {len(records)} replications; points of one risk are shown once."
    )


EXPERIMENT = Experiment(
    name="landscape",
    paper="liu2021analyzing",
    title="Errors of all stationary points",
    question="Do all stationary points have small errors once n is large?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        "n": ("n",),
        **dict.fromkeys(("error", "kind", "risk", "smallest"), ("task", "n", "start")),
    },
    note=NOTE,
)
