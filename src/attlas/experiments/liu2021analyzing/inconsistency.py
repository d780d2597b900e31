r"""A network without attention on a self-attention teacher, and the guidance of section 5.

After Theorem 2 liu2021analyzing says that a baseline is inconsistent where attention makes the
labels: its error should keep a floor as n grows. Section 5 advises penalties, low temperature and
many query dimensions: each is swept at one n, in pairs with the plain student.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np

from attlas.experiments.liu2021analyzing.instances import (
    Outputs,
    Problem,
    best_of,
    fit,
    no_attention,
    self_attention,
)
from attlas.measures.statistics.loglog_slope import loglog_slope
from attlas.measures.statistics.student_interval import student_interval
from attlas.measures.statistics.trend import extrapolated_limit
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

NOISE = 0.5
"""Deviation of the labels' noise; that of the truth is 1."""
SHARP = 1.7
"""Entries of the teacher's query and key matrices: its logits have a deviation of about 3."""
STUDENTS = {"self-attention": "#d55e00", "no attention": "0.35", "no attention, wider": "0.6"}
SWEEPS = {"d_q": r"query dimension $d_q$", "temperature": "temperature",
          "l1": r"$\ell_1$ penalty", "l2": r"$\ell_2$ penalty"}  # fmt: skip
PLAIN = {"temperature": 1.0, "l1": 0.0, "l2": 0.0}
NOTE = (
    "Teacher: w2' relu(W1' vec(W_V x A)) on p words with t entries, uniform in [-1, 1], labels "
    "with noise of deviation .5, truth centred and of deviation 1. Students have an output bias; "
    "of several starts the one of least training risk is taken, each by damped Gauss-Newton steps. "
    "The network without attention reads all words as one vector; it has the teacher's d hidden "
    "units, or several times as many. Penalties are on W_V, W1 and w2: on W1 and w2 alone, as the "
    "paper says, they could be moved into W_V without a change of the function. Temperature is "
    "that of the student, whose W_Q and W_K are free, so that it changes the start and the path "
    "and not what can be learned. The same teachers, samples, noise and test inputs serve every "
    "setting, so that settings are compared in pairs."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each student's sample sizes, and one for all sweeps."""
    sizes = {"p": 3, "t": 3, "d_q": 2, "d_v": 2, "d": 3}
    effort = {
        Scale.SMOKE: {"replications": 2, "starts": 1, "steps": 5, "fresh": 100, "width": 4},
        Scale.QUICK: {"replications": 6, "starts": 5, "steps": 25, "fresh": 2000, "width": 5},
        Scale.PAPER: {"replications": 20, "starts": 8, "steps": 200, "fresh": 20000, "width": 16},
    }[scale]
    n, swept_n, wider = {
        Scale.SMOKE: ((16, 32), 24, ()),
        Scale.QUICK: ((64, 256, 1024), 256, ()),
        Scale.PAPER: ((64, 128, 256, 512, 1024, 2048, 4096, 8192), 256, (4,)),
    }[scale]
    sweeps = {
        Scale.SMOKE: {"d_q": (1, 2), "temperature": (), "l1": (), "l2": (0.01,)},
        Scale.QUICK: {"d_q": (1, 2, 4, 8), "temperature": (0.2, 5.0), "l1": (0.001, 0.01),
                      "l2": (0.001, 0.01)},
        Scale.PAPER: {"d_q": (1, 2, 3, 4, 8, 16, 32), "temperature": (0.1, 0.2, 0.5, 2.0, 5.0),
                      "l1": (0.0003, 0.001, 0.003, 0.01, 0.03),
                      "l2": (0.0003, 0.001, 0.003, 0.01, 0.03)},
    }[scale]  # fmt: skip
    names = tuple(STUDENTS)
    found = [Cell({**sizes, **effort, "n": swept_n, "sweeps": sweeps})]
    for name, factor in zip(names, (1, 1, *wider), strict=False):
        units = {"student": name, "units": factor * sizes["d"]}
        found.append(Cell({**sizes, **effort, **units, "sizes": n}))
    return tuple(found)


def _weights(
    rng: np.random.Generator, s: Mapping, d_q: int, padded: int, size: float
) -> np.ndarray:
    """Gaussian weights of the self-attention model; queries and keys have rows of zeros below."""
    p, t, d_v, d = s["p"], s["t"], s["d_v"], s["d"]
    queries = np.zeros((2, padded, t))
    queries[:, :d_q] = size * rng.standard_normal((2, d_q, t))
    rest = (rng.standard_normal((d_v, t)), np.sqrt(6 / (p * d_v)) * rng.standard_normal(
        (d_v * p, d)), rng.choice([-1.0, 1.0], d) / np.sqrt(d))  # fmt: skip
    return np.concatenate([queries.ravel(), *(a.ravel() for a in rest), np.zeros(1)])


class _Task(NamedTuple):
    """Training inputs and labels, fresh inputs and their truth."""

    x: np.ndarray
    y: np.ndarray
    fresh: np.ndarray
    truth: np.ndarray


@cache
def _predict(outputs: Outputs):
    return jax.jit(jax.vmap(jax.vmap(outputs, (None, 0, None)), (0, None, 0)))


def _task(s: Mapping, seed: int, n: int) -> _Task:
    rng = np.random.default_rng([seed, 11])
    sizes = (s["p"], s["t"], s["d_q"], s["d_v"], s["d"])
    theta = _weights(rng, s, s["d_q"], s["d_q"], SHARP)
    fresh = rng.uniform(-1, 1, (s["fresh"], s["t"], s["p"]))
    x = rng.uniform(-1, 1, (n, s["t"], s["p"]))
    noise = NOISE * rng.standard_normal(n)
    values = _predict(self_attention(*sizes))(
        theta[None], np.concatenate([fresh, x]), np.ones((1, 1))
    )
    truth = np.asarray(values)[0]
    truth = (truth - truth[: s["fresh"]].mean()) / truth[: s["fresh"]].std()
    return _Task(x, truth[s["fresh"] :] + noise, fresh, truth[: s["fresh"]])


class _Students(NamedTuple):
    """Starts and settings of all students of one task: levels, then starts."""

    start: np.ndarray
    weight: np.ndarray
    penalty: np.ndarray
    constants: np.ndarray


def _errors(s: Mapping, outputs: Outputs, task: _Task, students: _Students) -> np.ndarray:
    """Test error at the best of the starts, one a level."""
    count = len(students.start)
    x, y = (np.repeat(a[None], count, axis=0) for a in (task.x, task.y))
    problems = Problem(students.start, x, y, *students[1:])
    best = best_of(fit(outputs, problems, s["steps"], s["width"]), s["starts"])
    constants = students.constants[:: s["starts"]]
    found = np.asarray(_predict(outputs)(best.parameters, task.fresh, constants))
    return np.mean((found - task.truth) ** 2, axis=1)


def _by_size(s: Mapping, seed: int) -> np.ndarray:
    """Errors of one student on one task by sample size."""
    sizes = np.array(s["sizes"])
    task = _task(s, seed, int(sizes[-1]))
    rng = np.random.default_rng([seed, 12])
    count = len(sizes) * s["starts"]
    if s["student"] == "self-attention":
        outputs = self_attention(s["p"], s["t"], s["d_q"], s["d_v"], s["d"])
        start = [_weights(rng, s, s["d_q"], s["d_q"], 1.0) for _ in range(count)]
    else:
        outputs, inputs = no_attention(s["p"], s["t"], s["units"]), s["p"] * s["t"]
        W1 = np.sqrt(3 / inputs) * rng.standard_normal((count, inputs * s["units"]))
        w2 = rng.standard_normal((count, s["units"])) / np.sqrt(s["units"])
        start = np.concatenate([W1, w2, np.zeros((count, 1))], axis=1)
    weight = (np.arange(sizes[-1]) < np.repeat(sizes, s["starts"])[:, None]).astype(float)
    start = np.asarray(start)
    penalty = np.zeros((count, 2, start.shape[1]))
    return _errors(s, outputs, task, _Students(start, weight, penalty, np.ones((count, 1))))


def levels(sweeps: Mapping[str, Sequence[float | int]], d_q: int) -> list[tuple[str, float | int]]:
    """The settings in their order: the plain student first.

    Args:
        sweeps: levels by what is swept.
        d_q: the plain student's.

    Returns:
        Pairs of what is set and the level.

    Examples:
        >>> levels({"d_q": (1, 2), "l1": (0.1,)}, 2)
        [('plain', 2), ('d_q', 1), ('l1', 0.1)]
    """
    swept = [(name, level) for name, own in sweeps.items() for level in own]
    return [("plain", d_q), *(pair for pair in swept if pair != ("d_q", d_q))]


def _by_setting(s: Mapping, seed: int) -> np.ndarray:
    """Errors on one task by setting; those of one d_q share a program with more rows of zeros."""
    task, starts = _task(s, seed, s["n"]), s["starts"]
    settings = levels(s["sweeps"], s["d_q"])
    found = np.empty(len(settings))
    for wide in (False, True):
        rows = [k for k, (name, _) in enumerate(settings) if (name == "d_q") == wide]
        if not rows:
            continue
        padded = max(int(level) for _, level in (settings[k] for k in rows)) if wide else s["d_q"]
        start, penalty, constants = [], [], []
        for name, level in (settings[k] for k in rows):
            d_q = int(level) if wide else s["d_q"]
            own = {**PLAIN, name: level}
            free = 2 * padded * s["t"]
            on = np.ones(free + s["d_v"] * s["t"] + s["d_v"] * s["p"] * s["d"] + s["d"] + 1)
            on[:free] = on[-1] = 0.0
            rng = np.random.default_rng([seed, 13])  # the same starts for all
            start += [_weights(rng, s, d_q, padded, 1.0) for _ in range(starts)]
            penalty += [np.stack([own["l1"] * on, own["l2"] * on])] * starts
            constants += [[np.sqrt(padded / d_q) / own["temperature"]]] * starts
        students = _Students(
            np.array(start), np.ones((len(start), s["n"])), np.array(penalty), np.array(constants)
        )
        outputs = self_attention(s["p"], s["t"], padded, s["d_v"], s["d"])
        found[rows] = _errors(s, outputs, task, students)
    return found


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Errors by sample size or by setting, and replication."""
    s = cell.settings
    one = _by_setting if "sweeps" in s else _by_size
    return {"error": np.stack([one(s, seed) for seed in range(s["replications"])], axis=1)}


class _Change(NamedTuple):
    """Error over the plain student's, geometric mean over pairs, with Student's interval."""

    value: float
    low: float
    high: float


def _change(errors: np.ndarray, plain: np.ndarray) -> _Change:
    mean, reach = student_interval(np.log(errors / plain))
    return _Change(*np.exp([mean, mean - reach, mean + reach]).tolist())


def _swept(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if "sweeps" in record.cell.settings]


def _sized(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if "sizes" in record.cell.settings]


def _limit(errors: np.ndarray) -> _Change:
    """Extrapolation of the last three sizes, a mean over replications with its interval."""
    found = np.asarray(extrapolated_limit(jax.device_put(errors[-3:].T)))
    mean, reach = student_interval(found)
    return _Change(float(mean), float(mean - reach), float(mean + reach))


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Errors by student and n, then by setting with the change against the plain student."""
    import pandas as pd

    rows = []
    for record in _sized(records):
        s = record.cell.settings
        rows += [
            {"student": s["student"], "setting": f"{s['units']} units", "n": n,
             "test error": f"{each.mean():.3g}", "over the plain": "", "95 %": ""}
            for n, each in zip(s["sizes"], record.arrays["error"], strict=True)
        ]  # fmt: skip
    for record in _swept(records):
        s, errors = record.cell.settings, record.arrays["error"]
        for (name, level), each in zip(levels(s["sweeps"], s["d_q"]), errors, strict=True):
            found = _change(each, errors[0])
            shown = f"{name}, d_q = {level}" if name == "plain" else f"{name} = {level:g}"
            rows.append({
                "student": "self-attention", "setting": shown, "n": s["n"],
                "test error": f"{each.mean():.3g}",
                "over the plain": f"{found.value:.2f}" if name != "plain" else "",
                "95 %": f"[{found.low:.2f}, {found.high:.2f}]" if name != "plain" else "",
            })  # fmt: skip
    return pd.DataFrame(rows)


def _floor_panel(records: Sequence[Record]) -> Panel:
    """Errors against n, every replication behind their mean."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 4.2), layout="constrained")
    said = []
    for record in records:
        s, errors = record.cell.settings, record.arrays["error"]
        n, colour = np.array(s["sizes"]), STUDENTS[s["student"]]
        axis.plot(n, errors, color=colour, lw=0.7, alpha=0.35)
        axis.plot(n, errors.mean(axis=1), "o-", color=colour, lw=2, ms=5,
                  label=f"{s['student']}, {s['units']} units")  # fmt: skip
        last = min(3, len(n))
        slope = loglog_slope(n[-last:], errors[-last:], jax.random.key(0), samples=500)
        text = f"{s['student']} {errors[-1].mean():.3g}, slope {slope.slope:.2f} "
        text += f"[{slope.low:.2f}, {slope.high:.2f}]"
        if len(n) >= 3 and s["student"] != "self-attention":
            found = _limit(errors)
            text += f", limit extrapolated {found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"
            axis.axhspan(max(found.low, 1e-4), found.high, color=colour, alpha=0.12, lw=0)
        said.append(text)
    axis.set(xscale="log", yscale="log", xlabel="samples $n$",
             ylabel=r"test error $E(\hat y-E(y|x))^2$")  # fmt: skip
    ticks = records[0].cell.settings["sizes"]
    axis.set_xticks(ticks, [str(k) for k in ticks])
    axis.minorticks_off()
    axis.legend(frameon=False, fontsize=9, loc="lower left")
    count = records[0].arrays["error"].shape[1]
    caption = (
        "Does a network without attention keep an error as n grows? Mean test error at n = "
        f"{ticks[-1]} on self-attention teachers: {'; '.join(said)} (95 %). {_compared(records)}"
        f"Thin lines: {count} teachers; band: the limit."
    )
    return Panel("A floor without attention", caption, figure)


def _compared(records: Sequence[Record]) -> str:
    """The ratio at the largest n, in pairs."""
    by_name = {record.cell.settings["student"]: record.arrays["error"] for record in records}
    first, second = (by_name.get(name) for name in list(STUDENTS)[:2])
    if first is None or second is None:
        return ""
    found = _change(second[-1], first[-1])
    return (
        f"Without attention it is {found.value:.3g} [{found.low:.3g}, {found.high:.3g}] times "
        "that of self-attention, in pairs. "
    )


def _sweep_panel(record: Record) -> Panel:
    """Error over the plain student's for each sweep."""
    import matplotlib.pyplot as plt

    s, errors = record.cell.settings, record.arrays["error"]
    settings = levels(s["sweeps"], s["d_q"])
    figure, axes = plt.subplots(
        1, len(SWEEPS), figsize=(10, 3.4), sharey=True, layout="constrained"
    )
    better, worse, said = [], [], []
    for axis, (name, title) in zip(axes, SWEEPS.items(), strict=True):
        plain = float(s["d_q"]) if name == "d_q" else PLAIN[name]
        own = {plain: _Change(1.0, 1.0, 1.0)}
        for (which, level), each in zip(settings, errors, strict=True):
            if which == name:
                own[level] = found = _change(each, errors[0])
                better += [f"{name} = {level:g}"] * (found.high < 1)
                worse += [f"{name} = {level:g}"] * (found.low > 1)
                if name == "d_q":
                    said.append(f"{level:g}: {found.value:.2f} [{found.low:.2f}, {found.high:.2f}]")
        at = sorted(own)
        values = np.array([own[level] for level in at])
        bars = [values[:, 0] - values[:, 1], values[:, 2] - values[:, 0]]
        places = np.arange(len(at))
        axis.axhline(1, color="0.6", lw=0.9, ls=":")
        axis.errorbar(places, values[:, 0], bars, fmt="o", color=STUDENTS["self-attention"], ms=5.5,
                      capsize=3, lw=1.4)  # fmt: skip
        mark = at.index(plain)
        axis.plot([mark], [1], "o", color="w", mec="k", ms=7, zorder=3)
        axis.set(yscale="log", xlim=(-0.6, len(at) - 0.4))
        axis.set_title(title, fontsize=10)
        axis.set_xticks(places, [f"{level:g}" for level in at])
    axes[0].set_ylabel("test error over the plain student's")
    ticks = [0.25, 0.5, 1, 2, 4, 8]
    axes[0].set_yticks(ticks, [f"{t:g}" for t in ticks])
    axes[0].minorticks_off()
    caption = (
        "Does the advice of section 5 help? Test error over that of the plain student (white), "
        f"at n = {s['n']}, geometric means over {errors.shape[1]} teachers in pairs, bars 95 %. "
        f"Clearly smaller: {', '.join(better) or 'none'}; clearly larger: "
        f"{', '.join(worse) or 'none'}. Query dimensions against the teacher's own {s['d_q']}: "
        f"{'; '.join(said)}. Only W_K' W_Q enters, t by t whatever d_q is: beyond d_q = t = "
        f"{s['t']} nothing is added to what can be learned."
    )
    return Panel("Advice of section 5 at one sample size", caption, figure)


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """The floor of a network without attention, and the sweeps of section 5."""
    sized, swept = _sized(records), _swept(records)
    found = [_floor_panel(sized)] if sized else []
    return (*found, *(_sweep_panel(record) for record in swept))


EXPERIMENT = Experiment(
    name="inconsistency",
    paper="liu2021analyzing",
    title="Without attention on an attention teacher, and the advice of section 5",
    question="Does a network without attention keep an error floor, and what lowers the error?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={"error": ("setting", "replication")},
    note=NOTE,
)
