r"""Does known attention need fewer samples at equal width, and by which factor?

Teachers with attention weights f of norm one: equal ones, s0 of a fixed support, and s0 that move
with the input. Students of the teacher's width that know f, and students without attention.
Theorem 1 and Corollary 1 of liu2021analyzing promise a factor (p / s0)^2.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np
from jaxtyping import Array
from scipy import stats

from attlas.experiments.liu2021analyzing.instances import Problem, best_of, fit
from attlas.measures.statistics.loglog_slope import LogLogSlope, loglog_slope
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

NOISE = 0.5
"""Deviation of the labels' noise; that of the truth is 1."""
KINDS = ("fixed", "moving")
STUDENTS = ("attention", "no attention")
COLOURS = {"equal": "0.35", "fixed": "#0072b2", "moving": "#d55e00"}
NOTE = (
    "x uniform in [-1, 1]^p, y = teacher(x o f(x)) + noise of deviation .5, truth of deviation 1. "
    "f has Euclidean norm 1, as the paper asks: all weights p^(-1/2), or s0 weights s0^(-1/2) and "
    "tau = 0. The s0 places are the first ones, or those where M|x| is largest, M Gaussian. All "
    "have the same two layers, hence one C_1, C_2 and C_x. Teachers are balanced (half the units "
    "are the others with signs of their inputs changed, opposite in the output), so that labels "
    "have mean 0. Students have the teacher's width and no biases; of several starts the one of "
    "least training loss is taken, each run to the end by damped Gauss-Newton steps. The test "
    "error is the mean square distance from the truth over fresh inputs. Ratios of errors at one "
    "n are ratios of sample sizes, for errors fall as 1/n there. Dashed: noise^2 times "
    "parameters over n, for pd and s0 d parameters (a ReLU unit has one redundant scale)."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each p."""
    grid = {
        Scale.SMOKE: {4: (2,)},
        Scale.QUICK: {8: (2, 4), 16: (2, 4)},
        Scale.PAPER: {8: (2, 4), 16: (2, 4, 8), 32: (2, 4, 8, 16)},
    }[scale]
    settings = {
        Scale.SMOKE: {"d": 2, "multiples": (8, 16), "replications": 2, "starts": 1, "steps": 10,
                      "fresh": 100, "width": 4},
        Scale.QUICK: {"d": 2, "multiples": (16, 32, 64), "replications": 10, "starts": 4,
                      "steps": 20, "fresh": 2000, "width": 8},
        Scale.PAPER: {"d": 4, "multiples": (8, 16, 32, 64, 128), "replications": 20, "starts": 4,
                      "steps": 150, "fresh": 10000, "width": 16},
    }[scale]  # fmt: skip
    return tuple(Cell({"p": p, "s0": s0, **settings}) for p, s0 in grid.items())


def two_layer(theta: Array, x: Array, constants: Array) -> Array:
    """The output of `attlas.models.networks.two_layer.TwoLayer`, its weights in one vector.

    Args:
        theta: first layer row by row, then the second.
        x: one input, attended already where the model attends.
        constants: none are used.

    Returns:
        The output.
    """
    p = x.shape[0]
    d = (theta.size - constants.size) // (p + 1)
    return jax.nn.relu(x @ theta[: p * d].reshape(p, d)) @ theta[p * d :]


def _attended(kind: str, s0: int, x: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Inputs x o f(x) for s0 equal weights of norm one, at places fixed or moving."""
    places = np.broadcast_to(np.arange(s0), (len(x), s0))
    if kind == "moving":
        places = np.argpartition(-np.abs(x) @ M.T, s0 - 1, axis=1)[:, :s0]
    found = np.zeros_like(x)
    rows = np.arange(len(x))[:, None]
    found[rows, places] = x[rows, places] / np.sqrt(s0)
    return found


def _teacher(rng: np.random.Generator, p: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Balanced layers: the mean is zero for inputs whose signs are fair coins."""
    W1 = rng.standard_normal((p, d // 2))
    # Both signs in turn: with one sign on a whole support the halves would cancel there.
    signs = np.where(np.arange(p) % 2, -1.0, 1.0)[:, None]
    # Weights of one size: a unit that hardly counts would lower the number of parameters.
    w2 = rng.choice([-1.0, 1.0], d // 2)
    return np.hstack([W1, signs * W1]), np.r_[w2, -w2]


def _outputs(x: np.ndarray, W1: np.ndarray, w2: np.ndarray) -> np.ndarray:
    return np.maximum(x @ W1, 0.0) @ w2


def _tasks(s: Mapping, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Inputs and truth of each pair of a task and a student: equal weights first."""
    p, n = s["p"], max(s["multiples"]) * s["p"]
    rng = np.random.default_rng([seed, p])
    W1, w2 = _teacher(rng, p, s["d"])
    x = rng.uniform(-1, 1, (n + s["fresh"], p))
    M = rng.standard_normal((p, p))
    M -= M.mean(axis=1, keepdims=True)  # else some rows have large scores whatever x is
    inputs = [x / np.sqrt(p)]
    inputs += [_attended(kind, s0, x, M) for kind in KINDS for s0 in s["s0"]]
    for k, u in enumerate(inputs):
        truth = _outputs(u, W1, w2)
        truth /= truth[n:].std()
        yield u, truth
        if k:
            yield x, truth


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Test errors of all students on all tasks, by n and replication."""
    s, sizes = cell.settings, np.array(cell.settings["multiples"]) * cell.settings["p"]
    n, d, p, errors, reached = int(sizes[-1]), s["d"], s["p"], [], []
    mask = (np.arange(n) < sizes[:, None]).astype(float)
    for seed in range(s["replications"]):
        tasks = list(_tasks(s, seed))
        rng = np.random.default_rng([seed, p, 1])
        noise = NOISE * rng.standard_normal(n)
        shape = (len(tasks), len(sizes), s["starts"])
        W1 = rng.standard_normal((*shape, p * d))
        W1 /= np.sqrt([np.sum(u[:n] ** 2) / n for u, _ in tasks])[:, None, None, None]
        w2 = rng.standard_normal((*shape, d)) / np.sqrt(d)
        start = np.concatenate([W1, w2], axis=-1).reshape(-1, p * d + d)
        x, y = (np.stack(a) for a in zip(*((u[:n], t[:n] + noise) for u, t in tasks), strict=True))
        repeated = len(sizes) * s["starts"]
        weight = np.tile(np.repeat(mask, s["starts"], axis=0), (len(tasks), 1))
        none = np.zeros((len(start), 2)), np.zeros((len(start), 0))
        problems = Problem(
            start, np.repeat(x, repeated, axis=0), np.repeat(y, repeated, axis=0), weight, *none
        )
        best = best_of(fit(two_layer, problems, s["steps"], s["width"]), s["starts"])
        layers = best.parameters.reshape(*shape[:2], -1)
        errors.append([
            [np.mean((_outputs(u[n:], a[: p * d].reshape(p, d), a[p * d :]) - t[n:]) ** 2)
             for a in row]
            for (u, t), row in zip(tasks, layers, strict=True)
        ])  # fmt: skip
        own = mask @ noise**2 / (2 * sizes)  # the teacher's own training loss
        reached.append(best.risk.reshape(shape[:2]) <= own)
    found, low = np.stack(errors, axis=-1), np.stack(reached, axis=-1)
    shape = (len(KINDS), len(s["s0"]), len(STUDENTS), len(sizes), -1)
    return {
        "n": sizes,
        "s0": np.array(s["s0"]),
        "equal": found[0],
        "error": found[1:].reshape(shape),
        "equal_reached": low[0],
        "reached": low[1:].reshape(shape),
    }


def _slope(record: Record, errors: np.ndarray) -> LogLogSlope:
    """From 16 samples a feature on, below which students fit the noise."""
    n = record.arrays["n"]
    first = min(np.searchsorted(n, 16 * record.cell.settings["p"]), len(n) - 2)
    return loglog_slope(n[first:], errors[first:], jax.random.key(0), samples=500)


class _Mean(NamedTuple):
    """A positive mean, or ratio of means, with a 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def text(self) -> str:
        """For tables and captions."""
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> _Mean:
    """Ratio of means over paired replications; Student's interval of its logarithm, linearised."""
    top, bottom = numerator / numerator.mean(), denominator / denominator.mean()
    spread = np.std(top - bottom, ddof=1) / np.sqrt(len(top))
    reach = float(stats.t.ppf(0.975, len(top) - 1) * spread)
    value = float(numerator.mean() / denominator.mean())
    return _Mean(value, value * np.exp(-reach), value * np.exp(reach))


def _constant(record: Record, errors: np.ndarray) -> np.ndarray:
    """The error times n at the two largest n, a mean for each replication."""
    return (record.arrays["n"][-2:, None] * errors[-2:]).mean(axis=0)


def _ratios(record: Record) -> Iterator[tuple[str, int, int, _Mean]]:
    """What is compared, p, s0, and how many times more samples the model without it needs."""
    a, p = record.arrays, record.cell.settings["p"]
    for j, s0 in enumerate(a["s0"]):
        for k, kind in enumerate(KINDS):
            known, unknown = (_constant(record, errors) for errors in a["error"][k, j])
            equal = _constant(record, a["equal"])
            yield f"own tasks, {kind}", p, int(s0), _ratio(equal, known)
            yield f"one task, {kind}", p, int(s0), _ratio(unknown, known)


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Ratios of errors at one n, hence of sample sizes, beside the paper's factor, and slopes."""
    import pandas as pd

    rows = []
    for record in records:
        a = record.arrays
        slopes = {
            kind: [_slope(record, e) for e in own[:, 0]]
            for kind, own in zip(KINDS, a["error"], strict=True)
        }
        floors = {k: own[:, 1] for k, own in zip(KINDS, a["error"], strict=True)}
        for what, p, s0, found in _ratios(record):
            kind, at = what.split()[-1], list(a["s0"]).index(s0)
            slope = slopes[kind][at]
            corrected = f"{p / s0:g}" if kind == "fixed" else "1"
            if what == "one task, moving":
                corrected = "a floor, no ratio of n"
            rows.append({
                "p": p, "s0": s0, "compared": what, "ratio of errors": found.text,
                "paper (p/s0)^2": (p / s0) ** 2,
                "corrected": corrected,
                "slope with attention": f"{slope.slope:.2f} [{slope.low:.2f}, {slope.high:.2f}]",
                "largest n": int(a["n"][-1]),
                "error without": f"{np.mean(floors[kind][at][-1]):.3g}",
            })  # fmt: skip
    return pd.DataFrame(rows)


def _curves(record: Record) -> Panel:
    """Errors against n for the smallest s0."""
    import matplotlib.pyplot as plt

    a, p, d = record.arrays, record.cell.settings["p"], record.cell.settings["d"]
    n, s0 = a["n"], int(a["s0"][0])
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.4), sharey=True, layout="constrained")
    names = {"fixed": f"{s0} fixed weights", "moving": f"{s0} moving weights"}
    own = {"equal": a["equal"], **{k: a["error"][j, 0, 0] for j, k in enumerate(KINDS)}}
    for kind, errors in own.items():
        name = names.get(kind, "equal weights (baseline)")
        _line(left, n, errors, "o-", COLOURS[kind], name)
    for k, kind in enumerate(KINDS):
        for student, style in ((0, "o-"), (1, "s:")):
            name = f"{names[kind]}, {STUDENTS[student]}"
            _line(right, n, a["error"][k, 0, student], style, COLOURS[kind], name)
    for axis in (left, right):
        for count, text in ((p, r"$\sigma^2pd/n$"), (s0, r"$\sigma^2s_0d/n$")):
            line = NOISE**2 * count * d / n
            axis.plot(n, line, "--", color="0.6", lw=1, zorder=1)
            axis.annotate(text, (n[0], line[0]), (-3, 0), textcoords="offset points", ha="right",
                          va="center", fontsize=8, color="0.4")  # fmt: skip
        axis.set(xscale="log", yscale="log", xlabel="samples $n$", xlim=(n[0] / 1.7, n[-1] * 1.1))
        axis.set_xticks(n, [str(k) for k in n])
        axis.minorticks_off()
        axis.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.15),
                    ncols=2)  # fmt: skip
    left.set_title("students that know $f$, each on its own task", fontsize=10)
    right.set_title("the same tasks with and without attention", fontsize=10)
    left.set_ylabel(r"test error $E(\hat y-E(y|x))^2$")
    return Panel("Test error against the sample size", _curves_caption(record, own), figure)


def _line(axis, n: np.ndarray, errors: np.ndarray, style: str, colour: str, name: str) -> None:
    middle, low, high = np.array([_ratio(row, np.ones_like(row)) for row in errors]).T
    bars = [middle - low, high - middle]
    axis.errorbar(n, middle, bars, fmt=style, color=colour, ms=4.5, lw=1.4, capsize=2, label=name)


def _curves_caption(record: Record, own: Mapping[str, np.ndarray]) -> str:
    a, p, s0 = record.arrays, record.cell.settings["p"], int(record.arrays["s0"][0])
    slopes = []
    for kind, errors in own.items():
        found = _slope(record, errors)
        slopes.append(f"{kind} {found.slope:.2f} [{found.low:.2f}, {found.high:.2f}]")
    fixed, moving = (a["error"][k, 0, :, -1].mean(axis=1) for k in range(2))
    known = np.concatenate([a["equal_reached"][None], a["reached"][:, :, 0].reshape(
        -1, *a["equal_reached"].shape)])  # fmt: skip
    return (
        f"Does attention need fewer samples? p = {p}, s0 = {s0}, width "
        f"{record.cell.settings['d']}. Slopes of the error in n (95 %): {'; '.join(slopes)}. At "
        f"n = {a['n'][-1]} the error with attention and without is {fixed[0]:.3g} and "
        f"{fixed[1]:.3g} where the support is fixed, {moving[0]:.3g} and {moving[1]:.3g} where it "
        "moves: there a network without attention of this width has a floor. Dashed: noise^2 "
        f"times pd or s0 d parameters over n. {100 * known.mean():.0f} % of the students that "
        "know f ended at or below the training loss of the truth. Bars: 95 % of the mean "
        f"over {a['equal'].shape[-1]} replications."
    )


def _factor(records: Sequence[Record]) -> Panel:
    """Ratios of sample sizes against p / s0, with the paper's factor and the corrected ones."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    marks = {"own tasks, fixed": ("o", "#0072b2", -0.06), "one task, fixed": ("s", "#56b4e9", 0.0),
             "own tasks, moving": ("D", "#d55e00", 0.06)}  # fmt: skip
    found, said = [row for record in records for row in _ratios(record)], {}
    for what, (mark, colour, shift) in marks.items():
        rows = [row for row in found if row[0] == what]
        x = np.array([p / s0 for _, p, s0, _ in rows]) * np.exp(shift)
        middle, low, high = np.array([values for *_, values in rows]).T
        axis.errorbar(x, middle, [middle - low, high - middle], fmt=mark, color=colour, ms=5.5,
                      capsize=2.5, lw=1.3, label=f"measured: {what}")  # fmt: skip
        said[what] = "; ".join(f"{v.text} for p = {p}, s0 = {s0}" for _, p, s0, v in rows)
    ends = np.array([1.7, max(p / s0 for _, p, s0, _ in found) * 1.2])
    axis.plot(ends, ends**2, color="k", lw=1.6, label=r"Theorem 1, Corollary 1: $(p/s_0)^2$")
    axis.plot(ends, ends, "--", color="#0072b2", lw=1.4, label="corrected, fixed: $p/s_0$")
    axis.plot(ends, 0 * ends + 1, "--", color="#d55e00", lw=1.4, label="corrected, moving: 1")
    axis.set(
        xscale="log", yscale="log", xlabel="$p/s_0$", ylabel="samples without / with attention"
    )
    ticks = sorted({p / s0 for _, p, s0, _ in found})
    axis.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axis.set_yticks([1, 2, 4, 8, 16, 64], ["1", "2", "4", "8", "16", "64"])
    axis.minorticks_off()
    axis.legend(frameon=False, fontsize=8)
    beyond = [
        f"p = {p}, s0 = {s0}"
        for what, p, s0, v in found
        if what in marks and v.high >= (p / s0) ** 2
    ]
    verdict = f"It is within reach for {', '.join(beyond)}" if beyond else "No interval reaches it"
    caption = (
        f"By which factor? The paper says (p/s0)^2. {verdict}. Measured, with 95 % intervals over "
        f"paired replications: a support that moves {said['own tasks, moving']}; a fixed one "
        f"{said['own tasks, fixed']} on tasks of their own, and {said['one task, fixed']} on one "
        "task. Corrected: no factor from the weights' norms, and p/s0 where a known fixed support "
        "leaves s0 d of pd parameters. A support that moves leaves a network without attention at "
        "its floor on the same task: no ratio there."
    )
    return Panel("How many times fewer samples", caption, figure)


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """Errors against n, and the ratio of sample sizes against p / s0."""
    largest = max(records, key=lambda record: record.cell.settings["p"])
    return _curves(largest), _factor(records)


EXPERIMENT = Experiment(
    name="sample_complexity",
    paper="liu2021analyzing",
    title="Sample complexity with known attention",
    question="Does attention of s0 of p weights need fewer samples, and (p/s0)^2 times fewer?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        "n": ("n",),
        "s0": ("s0",),
        **dict.fromkeys(("equal", "equal_reached"), ("n", "replication")),
        **dict.fromkeys(("error", "reached"), ("kind", "s0", "student", "n", "replication")),
    },
    note=NOTE,
)
