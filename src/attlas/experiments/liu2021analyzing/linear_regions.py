r"""How many linear regions, and does attention reduce their number? Figure 3 and after.

The printed bound of Theorem 4 beside what the construction and the exact maximum are; exact
counts of random networks behind a mask; and softmax attention, fixed and trained, which leaves no
input out: how many of the regions do inputs in a cube meet?
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from attlas.bounds.expressivity.liu2021_regions import (
    liu2021_central_regions_maximum,
    liu2021_regions,
)
from attlas.measures.attention.concentration import concentration
from attlas.measures.complexity.linear_regions import (
    count_cells,
    count_linear_regions,
    sampled_cells,
)
from attlas.models.attention.self_attention_mlp import SelfAttentionMLP
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.training.gradient_descent import gradient_descent

if TYPE_CHECKING:  # workers compute and draw nothing
    import matplotlib.axes
    import pandas

BOUNDS = {
    "printed bound": partial(liu2021_regions, constants="printed"),
    "its construction": partial(liu2021_regions, constants="corrected"),
    "maximum with biases": liu2021_regions,
    "maximum without biases": liu2021_central_regions_maximum,
}
STYLES = {
    "printed bound": {"color": "C3", "lw": 1.5},
    "its construction": {"color": "C1", "lw": 1.2, "ls": "--"},
    "maximum with biases": {"color": "C0", "lw": 1.5},
    "maximum without biases": {"color": "C2", "lw": 1.5, "ls": "-."},
}
STATES = ("start", "trained", "trained, logits x 5")
NOTE = (
    "The sizes of the paper's figure are not given but for p = 100; n1 = 200 is ours. A region of "
    "a network with softmax attention is one of the network with its weights frozen at an input: "
    "with weights that depend on x there are none. The trained task is ours: 5 words of 3 entries "
    "(a sign, a mark, noise), the label is the sign of the marked word. Trained "
    "weights and biases have scales of their own, so that their numbers of regions met compare "
    "with one another rather than with those of the fixed weights."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each seed: its networks, masks, softmax weights and training."""
    seeds = {Scale.SMOKE: 1, Scale.QUICK: 2, Scale.PAPER: 10}[scale]
    settings = {
        "wide": [200, 100],
        "n1": {Scale.SMOKE: 6, Scale.QUICK: 10, Scale.PAPER: 12}[scale],
        "p": 5,
        "networks": {Scale.SMOKE: 1, Scale.QUICK: 3, Scale.PAPER: 10}[scale],
        "temperatures": [0.1, 0.25, 0.5, 1.0, 2.0, 8.0],
        "points": {Scale.SMOKE: 1000, Scale.QUICK: 20_000, Scale.PAPER: 200_000}[scale],
        "samples": 64,
        "steps": {Scale.SMOKE: 20, Scale.QUICK: 1500, Scale.PAPER: 10_000}[scale],
    }
    return tuple(Cell(settings, seed) for seed in range(seeds))


def _patterns(W: np.ndarray, b: np.ndarray, points: np.ndarray) -> int:
    """Different patterns of active units that the points meet."""
    active = points @ W.T + b[None, :] > 0
    return len(np.unique(np.packbits(active, axis=1), axis=0))


def _masked(s: Mapping, rng: np.random.Generator, seed: int) -> dict[str, np.ndarray]:
    """Exact and sampled numbers of random networks of which s0 inputs have weight."""
    shape = (s["networks"], s["p"])
    found = {name: np.zeros(shape) for name in ("regions", "central", "by_lines")}
    for k in range(s["networks"]):
        W = rng.standard_normal((s["n1"], s["p"]))
        b, w2 = rng.standard_normal((2, s["n1"]))
        for s0 in range(1, s["p"] + 1):
            kept = W[:, :s0]
            key = jax.random.key(1000 * seed + k)
            found["regions"][k, s0 - 1] = count_linear_regions(kept, w2, b)
            found["central"][k, s0 - 1] = count_linear_regions(kept, w2)
            found["by_lines"][k, s0 - 1] = sampled_cells(kept, b, key=key)
    return found


def _softmax(s: Mapping, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Fixed softmax weights of several temperatures: concentration, and regions met."""
    shape = (s["networks"], len(s["temperatures"]))
    found = {name: np.zeros(shape) for name in ("met", "fixed_s0", "fixed_support")}
    points = rng.uniform(-1, 1, (s["points"], s["p"]))
    for k in range(s["networks"]):
        W, b = rng.standard_normal((s["n1"], s["p"])), 0.3 * rng.standard_normal(s["n1"])
        logits = rng.standard_normal(s["p"])
        for i, temperature in enumerate(s["temperatures"]):
            f = np.exp((logits - logits.max()) / temperature)
            f = f / f.sum()
            of = concentration(f[None])
            found["fixed_s0"][k, i] = of.s0[0, 0]
            found["fixed_support"][k, i] = of.participation[0]
            # Model (3) has weights of Euclidean norm one.
            found["met"][k, i] = _patterns(W * (f / np.linalg.norm(f))[None, :], b, points)
    return found


def _task(s: Mapping, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Words of a sign, a mark and noise; the label is the sign of the marked word."""
    n, p = s["samples"], s["p"]
    signs, marked = rng.choice([-1.0, 1.0], (n, p)), rng.integers(p, size=n)
    x = np.stack([signs, np.eye(p)[marked], rng.uniform(-1, 1, (n, p))], axis=1)
    return x, signs[np.arange(n), marked]


def _start(s: Mapping, rng: np.random.Generator) -> SelfAttentionMLP:
    """Xavier's uniform start; values of one dimension, queries and keys of two."""
    shapes = ((2, 3), (2, 3), (1, 3), (s["p"], s["n1"]), (s["n1"], 1))
    drawn = [math.sqrt(6 / sum(shape)) * rng.uniform(-1, 1, shape) for shape in shapes]
    parts = jax.device_put([*drawn[:4], drawn[4][:, 0], np.zeros(s["n1"]), np.zeros(())])
    W_Q, W_K, W_V, W1, w2, b1, b2 = parts
    return SelfAttentionMLP(W_Q, W_K, W_V, W1, w2, b1, b2)


def _trained(s: Mapping, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Attention before and after training, and the regions that its frozen networks have."""
    x, y = (jax.device_put(part) for part in _task(s, rng))
    start = _start(s, rng)
    path = gradient_descent(
        start, x, y, step_size=0.3, steps=s["steps"], record_at=(0, s["steps"] - 1)
    )
    points = rng.uniform(-1, 1, (s["points"], s["p"]))
    found = {name: np.zeros(len(STATES)) for name in ("frozen", "frozen_met", "s0", "support")}
    accuracy = np.zeros(len(STATES))
    for i, (record, sharper) in enumerate(((0, 1.0), (1, 1.0), (1, 5.0))):
        model = path.at(record)
        model = eqx.tree_at(lambda m: m.W_Q, model, sharper * model.W_Q)
        weights, outputs = (np.asarray(part) for part in _outputs(model, x))
        of = concentration(np.swapaxes(weights, 1, 2).reshape(-1, s["p"]))
        found["s0"][i], found["support"][i] = of.s0.mean(), of.participation.mean()
        accuracy[i] = np.mean(outputs * np.asarray(y) > 0)
        # Frozen at a sample the units see A W1 of the values W_V x.
        first, b = [(A @ np.asarray(model.W1)).T for A in weights[:4]], np.asarray(model.b1)
        found["frozen"][i] = np.mean([count_cells(W, b) for W in first])
        found["frozen_met"][i] = np.mean([_patterns(W, b, points) for W in first])
    return found | {"accuracy": accuracy, "loss": np.asarray(path.loss)}


@eqx.filter_jit
def _outputs(model: SelfAttentionMLP, x: Float[Array, "n t p"]) -> tuple[Array, Array]:
    """Attention matrices of the samples, column z of query z, and outputs."""
    return jax.vmap(model.attention)(x), jax.vmap(model)(x)


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """The bounds at the figure's width, and everything of one seed."""
    s, rng = cell.settings, np.random.default_rng(cell.seed)
    n1, p = s["wide"]
    bounds = [[math.log10(of(n1, s0)) for s0 in range(1, p + 1)] for of in BOUNDS.values()]
    return {
        "bounds": np.asarray(bounds),
        **_masked(s, rng, cell.seed),
        **_softmax(s, rng),
        **_trained(s, rng),
    }


def _joined(records: Sequence[Record], name: str) -> np.ndarray:
    """An array of all records, networks and seeds along the first axis."""
    parts = [np.atleast_2d(record.arrays[name]) for record in records]
    return np.concatenate(parts)


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Exact numbers beside the bounds, then attention that leaves no input out."""
    import pandas as pd

    s = records[0].cell.settings
    rows = []
    for s0 in range(1, s["p"] + 1):
        counted = {n: _joined(records, n)[:, s0 - 1] for n in ("regions", "central", "by_lines")}
        rows.append(
            {
                "weights": f"mask of {s0} of {s['p']} inputs",
                "s0": float(s0),
                "regions, exact": counted["regions"].mean(),
                "met": counted["by_lines"].mean(),
                "without biases, exact": counted["central"].mean(),
                **{name: float(of(s["n1"], s0)) for name, of in BOUNDS.items()},
            }
        )
    met, sizes = _joined(records, "met"), _joined(records, "fixed_s0")
    full = float(liu2021_regions(s["n1"], s["p"]))
    for i, temperature in enumerate(s["temperatures"]):
        rows.append(
            {
                "weights": f"softmax, temperature {temperature:g}",
                "s0": sizes[:, i].mean(),
                "regions, exact": full,
                "met": met[:, i].mean(),
            }
        )
    for i, state in enumerate(STATES):
        found = {n: _joined(records, n)[:, i].mean() for n in ("s0", "frozen", "frozen_met")}
        rows.append(
            {
                "weights": f"self-attention, {state}",
                "s0": found["s0"],
                "regions, exact": found["frozen"],
                "met": found["frozen_met"],
                "accuracy": _joined(records, "accuracy")[:, i].mean(),
            }
        )
    return pd.DataFrame(rows)


def _figure_3(axis: "matplotlib.axes.Axes", records: Sequence[Record]) -> None:
    """The bounds at the paper's p against the number of inputs with weight."""
    n1, p = records[0].cell.settings["wide"]
    sizes = np.arange(1, p + 1)
    lines = records[0].arrays["bounds"]
    for values, (label, style) in zip(lines, STYLES.items(), strict=True):
        axis.plot(sizes, values, label=label, **style)
    baseline = "printed bound of the baseline, $s_0 = p$"
    axis.axhline(lines[0, -1], color="C3", lw=0.9, ls=":", label=baseline)
    axis.set_xlabel("inputs with weight, $s_0$")
    axis.set_ylabel("$\\log_{10}$ of the number of regions")
    axis.set_title(f"Figure 3: $n_1 = {n1}$ units, $p = {p}$ inputs", fontsize=10)
    axis.set_ylim(bottom=0)


def _counted(axis: "matplotlib.axes.Axes", records: Sequence[Record]) -> None:
    """Exact numbers of random networks on the bounds."""
    s = records[0].cell.settings
    sizes = list(range(1, s["p"] + 1))
    for (label, style), of in zip(STYLES.items(), BOUNDS.values(), strict=True):
        axis.plot(sizes, [of(s["n1"], s0) for s0 in sizes], label=label, **style)
    dots = {"regions": ("o", "C0", "random networks, exact"),
            "central": ("s", "C2", "without biases, exact"),
            "by_lines": ("x", "0.3", "found by 200 random lines")}  # fmt: skip
    for name, (marker, colour, label) in dots.items():
        middle = _joined(records, name).mean(axis=0)
        axis.plot(sizes, middle, marker, color=colour, ms=5, mfc="none", label=label)
    axis.set_yscale("log")
    axis.set_xticks(sizes)
    axis.set_xlabel("inputs with weight, $s_0$")
    axis.set_ylabel("linear regions")
    axis.set_title(f"$n_1 = {s['n1']}$ units, counted exactly", fontsize=10)


def _met(axis: "matplotlib.axes.Axes", records: Sequence[Record]) -> None:
    """Regions that uniform points meet, against the effective number of inputs."""
    s = records[0].cell.settings
    supports, met = _joined(records, "fixed_support"), _joined(records, "met")
    for k, (x, y) in enumerate(zip(supports, met, strict=True)):
        label = "fixed softmax weights, by temperature" if k == 0 else None
        axis.plot(x, y, ".-", color="0.6", lw=0.8, ms=5, label=label)
    supports, met = _joined(records, "support"), _joined(records, "frozen_met")
    for i, (state, colour) in enumerate(zip(STATES, ("C1", "C4", "C5"), strict=True)):
        label = f"self-attention, {state}"
        axis.plot(supports[:, i], met[:, i], "D", color=colour, ms=6, label=label)
    exact = liu2021_regions(s["n1"], s["p"])
    axis.axhline(exact, color="C0", lw=1.3, label="exact number with biases")
    axis.set_yscale("log")
    axis.set_xlabel("effective number of inputs, $1 / \\|a\\|_2^2$")
    axis.set_ylabel("regions met by uniform points")
    axis.set_title(f"No weight is zero: $n_1 = {s['n1']}$, $p = {s['p']}$", fontsize=10)


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """Figure 3 with what is exact, counts of random networks, and concentrated attention."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13.5, 4.6), layout="constrained")
    for axis, draw in zip(axes, (_figure_3, _counted, _met), strict=True):
        draw(axis, records)
        axis.legend(fontsize=8, frameon=False, loc="best")
    return (Panel("Linear regions against sparsity", _caption(records), figure),)


def _caption(records: Sequence[Record]) -> str:
    s = records[0].cell.settings
    printed = records[0].arrays["bounds"][0]
    above = np.flatnonzero(printed > printed[-1]) + 1
    sizes = range(1, s["p"] + 1)
    false = [
        str(s0)
        for s0 in sizes
        if liu2021_regions(s["n1"], s0, "printed") > liu2021_central_regions_maximum(s["n1"], s0)
    ]
    support, met = (_joined(records, name).mean(axis=0) for name in ("support", "frozen_met"))
    frozen, right = (_joined(records, name).mean(axis=0) for name in ("frozen", "accuracy"))
    return (
        "Do fewer inputs with attention mean fewer linear regions? The largest possible number "
        "says yes, with biases and without; the printed lower bound does not: it is above that "
        f"of all {s['wide'][1]} inputs for s0 = {', '.join(map(str, above))}, and with "
        f"{s['n1']} units above the maximum without biases for s0 = {', '.join(false)}. Random "
        f"networks attain the maxima exactly. Training concentrates attention "
        f"from {support[0]:.1f} to {support[1]:.1f} effective inputs (accuracy {right[1]:.2f}), "
        f"but leaves no weight at zero: the exact number of the frozen network goes from "
        f"{frozen[0]:.0f} to {frozen[1]:.0f} as biases leave zero, while {s['points']} uniform "
        f"points meet {met[0]:.0f} and then {met[1]:.0f} of them. Concentration moves boundaries "
        "away from the data; it does not remove them."
    )


EXPERIMENT = Experiment(
    name="linear_regions",
    paper="liu2021analyzing",
    title="Linear regions and sparse attention",
    question="Does attention to few inputs reduce the number of linear regions (Theorem 4)?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        "bounds": ("bound", "active"),
        **dict.fromkeys(("regions", "central", "by_lines"), ("network", "mask")),
        **dict.fromkeys(("met", "fixed_s0", "fixed_support"), ("network", "temperature")),
        **dict.fromkeys(("frozen", "frozen_met", "s0", "support", "accuracy"), ("state",)),
        "loss": ("record",),
    },
    note=NOTE,
)
