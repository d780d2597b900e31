r"""Do softmax, ReLU and exponential networks train as fast as the spectrum of the kernel predicts?

Gradient descent on the same unit inputs and random signs at step 1 / lambda_max of each network's
tangent kernel. Loss beside kernel regression at infinite width and beside the rate of Theorem
4.2; how far weights and kernel move against the width.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np

from attlas.experiments.gu2024exploring.instances import (
    draw_network,
    draw_sign_regression,
    stable_step,
)
from attlas.kernels.regression_flow import regression_flow
from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.measures.statistics.trend import Slope, log_slope
from attlas.models.networks.softmax_network import Activation
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.tasks.softmax_regression import Keep, train_softmax_networks

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

COLOURS = dict(zip(Activation, ("#0072b2", "#d55e00", "#009e73"), strict=True))
MARKERS = dict(zip(Activation, "os^", strict=True))
NAMES = dict(zip(Activation, ("softmax", "ReLU", "exponential"), strict=True))
NOTE = (
    "Unit inputs in general position with d = n / 2, which keeps lambda of the limit kernel of "
    "order one (ten unit vectors in the plane have 1e-7), targets random signs, one output, "
    "sigma = 1. Theorem 4.2's rate 1 - m eta lambda / 2 is drawn for the limit kernel, at the step "
    "of the run, 1 / lambda_max, and not at the printed one. 'Own kernel' is "
    "kernel regression with H at the start of that network: what differs from it is training "
    "that leaves the kernel regime, what differs from the limit is also the finite width. Rates "
    "are those of the second half of the steps. Softmax is trained with prefactor sqrt(m) as well "
    "as with the paper's m: c F trained on y at step eta / c^2 moves as F does on y / c at eta."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each activation and block of seeds."""
    n, powers, seeds, block, steps = {
        Scale.SMOKE: (6, (3, 5), 2, 2, 24),
        Scale.QUICK: (16, (6, 10, 14), 3, 3, 60),
        Scale.PAPER: (1000, range(6, 15), 16, 4, 240),
    }[scale]
    settings = {"n": n, "d": n // 2, "widths": [2**k for k in powers], "sigma": 1.0}
    settings |= {"steps": steps, "records": 25 if scale is Scale.PAPER else 13, "seeds": block}
    return tuple(
        Cell({"activation": activation.value, **settings}, seed)
        for seed in range(0, seeds, block)
        for activation in Activation
    )


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Train every width from every seed, and the two kernel regressions beside it."""
    s, activation = cell.settings, Activation(cell.settings["activation"])
    seeds = range(cell.seed, cell.seed + s["seeds"])
    problems = [draw_sign_regression(s["n"], s["d"], [k], s["sigma"], activation) for k in seeds]
    extremes = np.array([problem.eigenvalues[[0, -1]] for problem in problems])
    step = np.linspace(0, s["steps"], s["records"]).astype(int)
    X = np.stack([problem.X for problem in problems])
    Y = np.stack([problem.y[:, None] for problem in problems])
    scales = 2 if activation is Activation.SOFTMAX else 1
    found = {name: [] for name in ("loss", "movement", "drift", "own", "own_smallest")}
    for m in s["widths"]:
        starts = [draw_network(s["d"], m, [k, 1], s["sigma"], activation) for k in seeds]
        sizes = [stable_step(*each) for each in zip(starts, X, strict=True)]
        path = train_softmax_networks(
            jax.tree.map(lambda *leaves: np.stack(leaves), *starts * scales),
            jax.device_put(np.concatenate([X] * scales)),
            jax.device_put(np.concatenate([m ** (k / 2) * Y for k in range(scales)])),
            step_size=jax.device_put(np.array(sizes * scales)),
            steps=s["steps"],
            record_at=step.tolist(),
            keep=Keep(drift=True),
        )
        for name in ("loss", "movement", "drift"):
            values = np.asarray(getattr(path, name)).reshape(scales, s["seeds"], -1)
            found[name].append(values.swapaxes(0, 1))
        kernels = [softmax_ntk(*each) for each in zip(starts, X, strict=True)]
        found["own"].append([_regressed(*each, step) for each in zip(kernels, Y, strict=True)])
        found["own_smallest"].append([np.linalg.eigvalsh(kernel)[0] for kernel in kernels])
    arrays = {name: np.stack(value, axis=1) for name, value in found.items()}
    arrays["loss"] /= arrays["loss"][..., :1]
    arrays["drift"] /= extremes[:, :1, None, None]
    limit = [_regressed(p.kernel, y, step) for p, y in zip(problems, Y, strict=True)]
    return {"step": step, "limit": np.array(limit), "extremes": extremes, **arrays}


def _regressed(kernel: np.ndarray, y: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Loss of kernel regression over its start, at step 1 / lambda_max of the kernel."""
    flow = regression_flow(np.asarray(kernel, float), y)
    left = flow.train(step.astype(float), step_size=1 / flow.eigenvalues[-1]) - y
    return np.sum(left**2, axis=(1, 2)) / len(y)


class _Found(NamedTuple):
    """The records of one activation, seeds joined."""

    widths: np.ndarray
    arrays: Mapping[str, np.ndarray]

    def rate(self, name: str) -> np.ndarray:
        """-d log loss / d step over the second half, by seed (and width and scale)."""
        step, loss = self.arrays["step"], self.arrays[name]
        middle = len(step) // 2
        passed = step[-1] - step[middle]
        return np.log(loss[..., middle] / loss[..., -1]) / passed

    @property
    def promised(self) -> np.ndarray:
        """-log(1 - eta lambda / 2) of the limit kernel, by seed."""
        smallest, largest = self.arrays["extremes"].T
        return -np.log1p(-smallest / largest / 2)

    def furthest(self, name: str, scale: int) -> np.ndarray:
        """The largest value along training, by seed and width."""
        return self.arrays[name][:, :, scale].max(axis=-1)

    def slope(self, name: str, scale: int) -> Slope:
        """Power of m of the largest value along training."""
        return log_slope(self.widths.astype(float), self.furthest(name, scale))


def _gathered(records: Sequence[Record]) -> dict[Activation, _Found]:
    found = {}
    for activation in Activation:
        mine = [r for r in records if r.cell.settings["activation"] == activation]
        if not mine:
            continue
        arrays = {
            name: np.concatenate([record.arrays[name] for record in mine])
            for name in mine[0].arrays
            if name != "step"
        }
        widths = np.asarray(mine[0].cell.settings["widths"])
        found[activation] = _Found(widths, {"step": mine[0].arrays["step"], **arrays})
    return found


class _Line(NamedTuple):
    """A network of one activation and prefactor."""

    activation: Activation
    scale: int

    @property
    def name(self) -> str:
        """As in captions."""
        return NAMES[self.activation] + (" with prefactor sqrt(m)" if self.scale else "")

    @property
    def label(self) -> str:
        """As in legends."""
        return NAMES[self.activation] + (r", prefactor $\sqrt{m}$" if self.scale else "")


def _lines(found: Mapping[Activation, _Found]) -> list[tuple[_Line, _Found]]:
    """Every activation with the paper's prefactor, and softmax with the root of its own."""
    return [
        (_Line(activation, scale), of)
        for activation, of in found.items()
        for scale in range(of.arrays["loss"].shape[2])
    ]


def _spread(values: np.ndarray) -> str:
    """Mean over seeds, and their range."""
    return f"{values.mean():.3g} ({values.min():.3g} to {values.max():.3g})"


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Rates beside both predictions, movement and drift, by activation and width."""
    import pandas as pd

    rows = []
    for line, found in _lines(_gathered(records)):
        limit = found.rate("limit")
        for k, m in enumerate(found.widths):
            rate = found.rate("loss")[:, k, line.scale]
            rows.append(
                {
                    "network": line.name,
                    "m": int(m),
                    "rate / infinite width": _spread(rate / limit),
                    "rate / own kernel": _spread(rate / found.rate("own")[:, k]),
                    "rate / Theorem 4.2": _spread(rate / found.promised),
                    "lambda of the start / limit": _spread(
                        found.arrays["own_smallest"][:, k] / found.arrays["extremes"][:, 0]
                    ),
                    "max_r |w_r - w_r(0)|": _spread(found.furthest("movement", line.scale)[:, k]),
                    "|H - H(0)|_F / lambda": _spread(found.furthest("drift", line.scale)[:, k]),
                }
            )
    return pd.DataFrame(rows)


def _curves_panel(found: Mapping[Activation, _Found]) -> Panel:
    """Loss against the step, one axis for each activation."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.9), sharey=True, layout="constrained")
    for axis, (activation, of) in zip(axes, found.items(), strict=False):
        a, step = of.arrays, of.arrays["step"]
        shades = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(of.widths)))
        for k, (m, shade) in enumerate(zip(of.widths, shades, strict=True)):
            axis.semilogy(step, _middle(a["loss"][:, k, 0]), color=shade, lw=1.4,
                          label=f"$m = 2^{{{int(np.log2(m))}}}$")  # fmt: skip
            own = "own kernel (same shade)" if k == 0 else None
            axis.semilogy(step, _middle(a["own"][:, k]), ":", color=shade, lw=1.4, label=own)
        axis.semilogy(step, _middle(a["limit"]), "k--", lw=1.4, label="kernel of infinite width")
        promised = np.exp(-of.promised.mean() * step)
        axis.semilogy(step, promised, "-.", color="0.5", lw=1.4, label=r"$(1-m\eta\lambda/2)^\tau$")
        axis.set_title(NAMES[activation], fontsize=10)
        axis.set_xlabel(r"step $\tau$")
    axes[0].set_ylabel("loss / loss at the start")
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside right center", frameon=False, fontsize=8)
    return Panel("Loss and the spectrum's prediction", _curves_caption(found), figure)


def _middle(values: np.ndarray) -> np.ndarray:
    """Geometric mean over seeds."""
    return np.exp(np.log(values).mean(axis=0))


def _curves_caption(found: Mapping[Activation, _Found]) -> str:
    said, beside = [], []
    for activation, of in found.items():
        rate, limit = of.rate("loss")[..., 0], of.rate("limit")[:, None]
        shares = (rate / limit).mean(axis=0)
        own = (rate / of.rate("own")).mean(axis=0)
        said.append(
            f"{NAMES[activation]} {shares[0]:.2f} (own kernel {own[0]:.2f}) at m = "
            f"{of.widths[0]} and {shares[-1]:.2f} ({own[-1]:.2f}) at m = {of.widths[-1]}"
        )
        beside.append(f"{NAMES[activation]} {(rate[:, -1] / of.promised).mean():.1f}")
    near = [_from(of) for of in found.values()]
    order = ", ".join(f"{NAMES[a]} {m}" for a, m in zip(found, near, strict=True))
    return (
        "Do networks train as fast as the spectrum predicts? Rate over that of kernel regression "
        f"at infinite width (over that of regression with the network's own kernel): "
        f"{'; '.join(said)}. Within 10% of infinite width from m = {order} on. Over the rate of "
        f"Theorem 4.2 at the same step, the widest: {', '.join(beside)}. Curves: geometric mean "
        f"over {len(next(iter(found.values())).arrays['loss'])} seeds."
    )


def _from(of: _Found) -> str:
    """The least width from which on the mean rate is within a tenth of the limit's."""
    shares = (of.rate("loss")[..., 0] / of.rate("limit")[:, None]).mean(axis=0)
    far = np.flatnonzero(~(np.abs(shares - 1) <= 0.1))
    if far.size == 0:
        return str(of.widths[0])
    return str(of.widths[far[-1] + 1]) if far[-1] + 1 < len(of.widths) else "none"


def _moves_panel(found: Mapping[Activation, _Found]) -> Panel:
    """Movement and drift against the width."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8.5, 3.9), layout="constrained")
    for axis, name in zip(axes, ("movement", "drift"), strict=True):
        for line, of in _lines(found):
            values = of.furthest(name, line.scale)
            middle = _middle(values)
            reach = np.abs(np.stack([values.min(axis=0), values.max(axis=0)]) - middle)
            axis.errorbar(
                of.widths, middle, reach, fmt=MARKERS[line.activation], ms=5, lw=1.3,
                elinewidth=0.8, capsize=2, color=COLOURS[line.activation],
                ls="--" if line.scale else "-", mfc="none" if line.scale else None,
                label=f"{line.label}: $m^{{{of.slope(name, line.scale).mean:.2f}}}$",
            )  # fmt: skip
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xlabel("width m")
        axis.legend(frameon=False, fontsize=8, loc="lower left")
    axes[0].set_ylabel(r"movement $\max_r\|w_r-w_r(0)\|$")
    axes[1].set_ylabel(r"drift $\|H(\tau)-H(0)\|_F\,/\,\lambda$")
    axes[1].axhline(0.5, color="0.4", ls="--", lw=1.2)
    axes[1].annotate("allowed by the proof: 1/2", (0, 0.5), (4, -10), fontsize=8,
                     xycoords=("axes fraction", "data"), textcoords="offset points")  # fmt: skip
    said = {name: [] for name in ("movement", "drift")}
    for name, lines in said.items():
        for line, of in _lines(found):
            slope = of.slope(name, line.scale)
            lines.append(f"{line.name} {slope.mean:.2f} [{slope.low:.2f}, {slope.high:.2f}]")
    within = [f"{_within(of, line.scale)} ({line.name})" for line, of in _lines(found)]
    caption = (
        "How far do weights and kernel move? The largest values along training fall like these "
        f"powers of m (95% over seeds): movement {', '.join(said['movement'])}; drift "
        f"{', '.join(said['drift'])}. The drift stays within lambda / 2 from m = "
        f"{', '.join(within)} on. Units of a pair start equal and move in opposite directions, "
        "which cancels in the kernel to first order. The paper's softmax network weighs units "
        "sqrt(m) times more than networks of prefactor 1 / sqrt(m) do; open circles have that "
        "factor taken out. Bars: range of the seeds."
    )
    return Panel("Movement of the weights and drift of the kernel", caption, figure)


def _within(of: _Found, scale: int) -> str:
    """The least width from which on the drift of every seed is at most lambda / 2."""
    far = np.flatnonzero(~(of.furthest("drift", scale) <= 0.5).all(axis=0))
    if far.size == 0:
        return str(of.widths[0])
    return str(of.widths[far[-1] + 1]) if far[-1] + 1 < len(of.widths) else "none"


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """Loss with its predictions, and movement with drift."""
    found = _gathered(records)
    return _curves_panel(found), _moves_panel(found)


EXPERIMENT = Experiment(
    name="convergence",
    paper="gu2024exploring",
    title="Convergence beside the spectrum of the kernel",
    question="Do softmax, ReLU and exponential networks train as the kernel's spectrum predicts?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        "step": ("step",),
        "limit": ("member", "step"),
        "extremes": ("member", "extreme"),
        "own_smallest": ("member", "width"),
        "own": ("member", "width", "step"),
        **dict.fromkeys(("loss", "movement", "drift"), ("member", "width", "scale", "step")),
    },
    note=NOTE,
)
