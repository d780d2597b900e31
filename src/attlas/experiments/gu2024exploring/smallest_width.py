r"""Does a softmax network need fewer units than a ReLU or an exponential one, as Table 1 compares?

Gradient descent on unit inputs and random signs at step 1 / lambda_max of the tangent kernel at
the start. The smallest width with which the loss falls to a hundredth within the steps that the
rate of Theorem 4.2 gives for the kernel of infinite width, against the number of samples.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np

from attlas.bounds.optimisation.gu2024_convergence import gu2024_steps, gu2024_table_1_log10
from attlas.experiments.gu2024exploring.instances import (
    draw_network,
    draw_sign_regression,
    stable_step,
)
from attlas.measures.statistics.student_interval import student_interval
from attlas.measures.statistics.trend import Slope, log_slope
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.tasks.softmax_regression import train_softmax_networks

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

COLOURS = dict(zip(Activation, ("#0072b2", "#d55e00", "#009e73"), strict=True))
MARKERS = dict(zip(Activation, "os^", strict=True))
NAMES = dict(zip(Activation, ("softmax", "ReLU", "exponential"), strict=True))
STEEP = {Activation.SOFTMAX: "m", Activation.RELU: "1", Activation.EXPONENTIAL: "1"}
FLAT = {Activation.SOFTMAX: r"\sqrt{m}", **dict.fromkeys(list(Activation)[1:], r"1/\sqrt{m}")}
"""Prefactors of the network that give its tangent kernel a scale of m, and of 1."""
NOTE = (
    "Unit inputs in general position, targets random signs, one output, sigma = 1; with d = n / 2 "
    "lambda of the limit kernel hardly depends on n, with d fixed it falls. In time: loss at most "
    "epsilon of its start after T steps, (1 - eta lambda / 2)^T = epsilon with the limit kernel. "
    "The smallest width is the least on the grid from which on all widths of that seed are in "
    "time. The paper's softmax network has m in front of an average, so a unit weighs sqrt(m) "
    "times what it does in networks with 1 / sqrt(m): it is lazier at equal width. All networks "
    "are therefore trained with both scales: c F trained on y at step eta / c^2 moves exactly as "
    "F does on y / c at step eta. Table 1's constants are set to 1 and its o(1) to 0."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each activation, block of seeds and, at the paper's sizes, each n."""
    groups, seeds, block, top, fixed = {
        Scale.SMOKE: (((8, 12),), 2, 2, 12, 8),
        Scale.QUICK: (((12, 20, 32),), 4, 4, 192, 12),
        Scale.PAPER: (tuple((n,) for n in (16, 32, 64, 125, 250, 500, 1000)), 16, 4, 1536, 32),
    }[scale]
    settings = {
        "widths": [m for m in range(2, top + 1, 2) if top % m == 0],
        "epsilon": 0.01,
        "sigma": 1.0,
        "seeds": block,
    }
    return tuple(
        Cell(
            {
                "activation": activation.value,
                "samples": samples,
                "dimensions": [[n // 2 for n in samples], [fixed] * len(samples)],
                **settings,
            },
            seed,
            dtype="float32",
        )
        for samples in groups
        for seed in range(0, seeds, block)
        for activation in Activation
    )


class _Member(NamedTuple):
    """One training: the network, its samples and targets, its step, and when it is due."""

    network: SoftmaxNetwork
    X: np.ndarray
    Y: np.ndarray
    step_size: float
    due: int


def _copied(network: SoftmaxNetwork, copies: int, d: int) -> tuple[SoftmaxNetwork, float, float]:
    """The same network with every unit copied, its factor on the outputs and on the step."""
    # One width for all networks is one compiled program. Copies stay equal along training:
    # c copies multiply a softmax network by c and its tangent kernel, per copy, by c; the two
    # others, whose prefactor falls by c^(1/2), by c^(1/2) and 1. Inputs that are zero do nothing.
    softmax = network.activation is Activation.SOFTMAX
    W = np.zeros((d, network.width * copies))
    W[: len(network.W)] = np.repeat(np.asarray(network.W), copies, axis=1)
    a = np.repeat(np.asarray(network.a), copies, axis=1)
    grown = SoftmaxNetwork(jax.device_put(W), jax.device_put(a), network.activation)
    return grown, float(copies) if softmax else math.sqrt(copies), 1 / copies if softmax else 1.0


def _members(s: Mapping, seed: int, n: int, d: int) -> tuple[list[_Member], float]:
    """Both scales of every width on one data set, and lambda of the limit kernel."""
    activation, widest = Activation(s["activation"]), max(s["widths"])
    rows, depth = max(s["samples"]), max(max(each) for each in s["dimensions"])
    problem = draw_sign_regression(n, d, [seed], s["sigma"], activation)
    smallest, largest = problem.eigenvalues[[0, -1]]
    due = int(gu2024_steps(n, 1, float(smallest / largest / 2), s["epsilon"], start=1.0))
    X = np.pad(problem.X, ((0, rows - n), (0, depth - d)))
    y = np.pad(problem.y, (0, rows - n))[:, None]
    own_is_steep = activation is Activation.SOFTMAX
    members = []
    for steep in (True, False):
        for m in s["widths"]:
            network = draw_network(d, m, [seed, 1], s["sigma"], activation)
            grown, factor, slower = _copied(network, widest // m, depth)
            shrink = 1.0 if steep == own_is_steep else m ** (0.5 if own_is_steep else -0.5)
            size = slower * stable_step(network, problem.X)
            members.append(_Member(grown, X, shrink * factor * y, size, due))
    return members, float(smallest)


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """The loss over its start at the allowed time, by seed, data, scale and width."""
    s = cell.settings
    members, smallest, due = [], [], []
    for seed in range(cell.seed, cell.seed + s["seeds"]):
        for dimensions in s["dimensions"]:
            for n, d in zip(s["samples"], dimensions, strict=True):
                some, least = _members(s, seed, n, d)
                members += some
                smallest.append(least)
                due.append(some[0].due)
    schedule = sorted({0, *due})
    networks, X, Y, sizes, times = jax.tree.map(lambda *leaves: np.stack(leaves), *members)
    path = train_softmax_networks(
        networks,
        jax.device_put(X),
        jax.device_put(Y),
        step_size=jax.device_put(sizes),
        steps=schedule[-1],
        record_at=schedule,
    )
    loss = np.asarray(path.loss)
    left = loss[np.arange(len(loss)), np.searchsorted(schedule, times)] / loss[:, 0]
    shape = (s["seeds"], len(s["dimensions"]), len(s["samples"]))
    return {
        "left": left.reshape(*shape, 2, len(s["widths"])),
        "smallest": np.reshape(smallest, shape),
        "steps_allowed": np.reshape(due, shape),
    }


def _smallest_widths(record: Record) -> np.ndarray:
    """The least width from which on all are in time; NaN if the widest is not."""
    s = record.cell.settings
    # A training that left the range of floats has no loss below epsilon either.
    late = ~(record.arrays["left"] <= s["epsilon"])
    widths = np.append(np.asarray(s["widths"], float), np.nan)
    last_late = late.shape[-1] - 1 - np.argmax(late[..., ::-1], axis=-1)
    return widths[np.where(late.any(axis=-1), last_late + 1, 0)]


class _Found(NamedTuple):
    """Everything of one activation: axes seed, family of dimensions, n, and scale."""

    samples: np.ndarray
    widths: np.ndarray
    smallest: np.ndarray
    allowed: np.ndarray

    def slope(self, family: int, scale: int) -> Slope | None:
        """Power of n, over the seeds whose smallest widths were all found."""
        values = self.widths[:, family, :, scale]
        values = values[np.isfinite(values).all(axis=1)]
        if len(values) == 0 or len(self.samples) < 2:
            return None
        return log_slope(self.samples.astype(float), values)


def _gathered(records: Sequence[Record]) -> dict[Activation, _Found]:
    """Blocks of seeds joined, and samples in order."""
    found = {}
    for activation in Activation:
        mine = [r for r in records if r.cell.settings["activation"] == activation]
        parts: dict[int, list[tuple[np.ndarray, ...]]] = {}
        for record in mine:
            widths = _smallest_widths(record)
            for k, n in enumerate(record.cell.settings["samples"]):
                a = record.arrays
                of = widths[:, :, k], a["smallest"][:, :, k], a["steps_allowed"][:, :, k]
                parts.setdefault(n, []).append(of)
        if not parts:
            continue
        joined = [[np.concatenate(each) for each in zip(*parts[n], strict=True)]
                  for n in sorted(parts)]  # fmt: skip
        seeds = min(len(each[0]) for each in joined)
        whole = [np.stack([each[k][:seeds] for each in joined], axis=2) for k in range(3)]
        found[activation] = _Found(np.array(sorted(parts)), *whole)
    return found


def _families(records: Sequence[Record]) -> list[str]:
    """Names of the two rules for the dimension, from the settings."""
    fixed = records[0].cell.settings["dimensions"][1][0]
    return ["d = n / 2", f"d = {fixed}"]


def _middle(widths: np.ndarray) -> np.ndarray:
    """Geometric mean over the seeds that have one, NaN where none has."""
    found = np.isfinite(widths).sum(axis=0)
    logs = np.nansum(np.log(widths), axis=0)
    return np.exp(np.where(found > 0, logs / np.maximum(found, 1), np.nan))


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Smallest widths beside Table 1's, whose constants are set to one."""
    import pandas as pd

    rows = []
    epsilon = records[0].cell.settings["epsilon"]
    for activation, found in _gathered(records).items():
        for f, family in enumerate(_families(records)):
            for k, n in enumerate(found.samples):
                least = float(found.smallest[:, f, k].mean())
                printed = gu2024_table_1_log10(activation, int(n), least, epsilon * int(n))
                steep, flat = _middle(found.widths[:, f, k])
                rows.append(
                    {
                        "activation": NAMES[activation],
                        "dimension": family,
                        "n": int(n),
                        "lambda": least,
                        "smallest width, kernel of scale m": steep,
                        "smallest width, kernel of scale 1": flat,
                        "seeds without": int(np.isnan(found.widths[:, f, k]).any(axis=1).sum()),
                        "Table 1: log10 width": float(printed["width"]),
                        "steps allowed": float(found.allowed[:, f, k].mean()),
                        "Table 1: log10 steps": float(printed["steps"]),
                    }
                )
    return pd.DataFrame(rows)


def _said(slope: Slope | None) -> str:
    if slope is None:
        return "no seed complete"
    if not np.isfinite(slope.low):
        return f"{slope.mean:.1f} (one seed)"
    return f"{slope.mean:.1f} [{slope.low:.1f}, {slope.high:.1f}]"


def _draw(axis, found: Mapping[Activation, _Found], family: int) -> None:
    """Geometric means over the seeds with their range; both scales of each activation."""
    for k, (activation, of) in enumerate(found.items()):
        for scale, (prefactor, style) in enumerate(
            ((STEEP[activation], "-"), (FLAT[activation], "--"))
        ):
            values = of.widths[:, family, :, scale]
            middle = _middle(values)
            ends = np.stack([np.fmin.reduce(values), np.fmax.reduce(values)])
            reach = np.abs(ends - middle)
            axis.errorbar(
                of.samples * 1.05 ** (2 * k + scale - 2.5), middle, reach, fmt=MARKERS[activation],
                ls=style, color=COLOURS[activation], ms=5, lw=1.3, elinewidth=0.8, capsize=2,
                mfc="none" if scale else COLOURS[activation],
                label=f"{NAMES[activation]}, prefactor ${prefactor}$",
            )  # fmt: skip


def _reference(axis, records: Sequence[Record], found: Mapping[Activation, _Found], f: int) -> None:
    """The rise of Table 1's width for ReLU, n^2 log n / lambda^2, from the lowest mean on."""
    activation = Activation.RELU if Activation.RELU in found else next(iter(found))
    of = found[activation]
    means = [_middle(each.widths[:, f]) for each in found.values()]
    lowest = np.nanmin([m[0] for m in means]) if np.isfinite(np.array(means)).any() else 1.0
    width = [
        float(gu2024_table_1_log10(activation, int(n), float(of.smallest[:, f, k].mean()), 1.0)
              ["width"])
        for k, n in enumerate(of.samples)
    ]  # fmt: skip
    rise = lowest * 10 ** (np.array(width) - width[0])
    label = f"rise of Table 1 ({NAMES[activation]}), shifted by {lowest / 10 ** width[0]:.0e}"
    axis.plot(of.samples, rise, ":", color="0.35", lw=1.3, label=label)


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """The smallest width against n, for both rules for the dimension."""
    import matplotlib.pyplot as plt

    found = _gathered(records)
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.4), sharey=True, layout="constrained")
    for f, (axis, family) in enumerate(zip(axes, _families(records), strict=True)):
        _draw(axis, found, f)
        _reference(axis, records, found, f)
        axis.set_xscale("log", base=2)
        samples = next(iter(found.values())).samples
        axis.set_xticks(samples, [str(n) for n in samples])
        axis.set_yscale("log", base=2)
        axis.set_xlabel("samples n")
        axis.set_title(family.replace("d = n / 2", "$d = n/2$"), fontsize=10)
    top = max(float(np.nanmax(of.widths, initial=2)) for of in found.values())
    axes[0].set_ylim(1.5, 4 * top)
    axes[0].set_ylabel("smallest width m in time")
    handles, labels = axes[0].get_legend_handles_labels()
    labels[0] = labels[0].replace(f", shifted by {labels[0].split()[-1]}", ", shifted")
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=8)
    return (Panel("The smallest width that converges in time", _caption(records, found), figure),)


def _ratio(found: Mapping[Activation, _Found], other: Activation, scale: int) -> str:
    """Units of softmax over those of another activation on the same data, with its interval."""
    if Activation.SOFTMAX not in found or other not in found:
        return "not run"
    pair = [np.log(found[each].widths[..., scale]) for each in (Activation.SOFTMAX, other)]
    each = np.exp(np.subtract(*pair)).reshape(len(pair[0]), -1)
    logs = np.log(_middle(each.T))
    logs = logs[np.isfinite(logs)]
    if len(logs) == 0:
        return "an unknown share"
    if len(logs) < 2:
        return f"{np.exp(logs.mean()):.2f}"
    mean, reach = student_interval(logs)
    low, middle, high = np.exp(mean + reach * np.array([-1, 0, 1]))
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]"


def _caption(records: Sequence[Record], found: Mapping[Activation, _Found]) -> str:
    s = records[0].cell.settings
    lost = sum(int(np.isnan(of.widths).sum()) for of in found.values())
    count = sum(of.widths.size for of in found.values())
    seeds = min(len(of.widths) for of in found.values())
    ratios = []
    for scale, name in enumerate(("m", "1")):
        of = [f"{_ratio(found, a, scale)} of {NAMES[a]}" for a in list(Activation)[1:]]
        ratios.append(f"{' and '.join(of)} where tangent kernels have scale {name}")
    powers = []
    for f, family in enumerate(_families(records)):
        each = [f"{NAMES[a]} {_said(of.slope(f, 0 if a is Activation.SOFTMAX else 1))}"
                for a, of in found.items()]  # fmt: skip
        powers.append(f"{family}: {', '.join(each)}")
    return (
        "Does softmax need fewer units? Its smallest width in time, over that of another "
        f"activation on the same data (95% over {seeds} seeds), is {'; '.join(ratios)}. Powers of "
        f"n of the smallest width with the paper's prefactors: {'; '.join(powers)} (Table 1: 2, "
        "beside the factor 1 / lambda^2). In time: loss below "
        f"{s['epsilon']:g} of its start after the steps of the rate 1 - m eta lambda / 2. "
        f"{lost} of {count} smallest widths lie above {max(s['widths'])}, the widest tried, and "
        "are left out. Bars: range of the seeds; full: prefactors that make the tangent kernel of "
        "scale m, open: of scale 1."
    )


EXPERIMENT = Experiment(
    name="smallest_width",
    paper="gu2024exploring",
    title="The smallest width that converges",
    question="Does a softmax network need fewer units than ReLU and exponential ones (Table 1)?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        "left": ("member", "dimension", "samples", "scale", "width"),
        **dict.fromkeys(("smallest", "steps_allowed"), ("member", "dimension", "samples")),
    },
    note=NOTE,
)
