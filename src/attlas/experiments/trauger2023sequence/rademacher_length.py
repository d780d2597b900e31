r"""Does the Rademacher complexity of attention grow with the length, and what stands above it?

Projected ascent over the class of Theorem 4.1, a lower estimate, on prefixes of the same sequences,
for keys and queries in three balls; above it Theorem 4.1, the log T bound and parameter counting.
Sum pooling, which averages nothing, is the contrast that grows.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.bounds.covering.edelman2022_cover import edelman2022_cover
from attlas.bounds.covering.parameter_counting import parameter_counting_single
from attlas.bounds.covering.trauger2023_cover import Ball, trauger2023_cover
from attlas.bounds.generalisation.trauger2023_single import trauger2023_single
from attlas.measures.complexity.norm_ball_classes import AttentionClass, Sequences
from attlas.measures.complexity.rademacher import (
    draw_signs,
    rademacher_complexity,
    rademacher_estimate,
)
from attlas.measures.statistics.student_interval import student_interval
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

BALLS: tuple[Ball, ...] = ("1,1", "2,1", "1,inf")
KINDS = ("own centre", "independent")
COLOURS = dict(zip(KINDS, ("#0072b2", "#009e73"), strict=True))
TITLES: dict[str, str] = dict(
    zip(BALLS, (r"$\|W\|_{1,1}\leq %g$", r"$\|W\|_{2,1}\leq %g$", r"$\|W\|_{1,\infty}\leq %g$"),
        strict=True)
)  # fmt: skip
SHARED = 100
"""Tokens of the program that lengths dividing it share."""
NOTE = (
    "Class: X -> s relu(v'X' softmax(X W x_cls)), s = 1 or -1, |v|_1 <= 1, W in a ball; that of "
    "Theorem 4.1 is its convex hull times B_w B_c. Tokens and [CLS] have length 1: B_x = 1 and "
    "|x|_1 <= sqrt(d). 'Own centre': tokens of a sequence are drawn about a direction of its own; "
    "'independent': all alike. A shorter sequence is the beginning of the longer one, with the "
    "same [CLS] and signs, so that lengths are compared in pairs. Every sequence stands in the "
    "sample many times, a legitimate sample whose signs add up, so that m is large enough for "
    "bounds to say something. Ascent finds functions of the class: values stand below the "
    "complexity, more so with few starts. Bounds are those of the class for any tokens of length "
    "1, with softmax constant 1 and the chain unless called corrected. The log T bound counts the "
    "distinct tokens and needs the sum of the lengths of the columns of W: at most the radius for "
    "(1,1) and (2,1), d times it for (1,inf). Sum pooling is attention without its denominator, "
    "X -> s relu(v' sum_t exp(x_t'W x_cls) x_t); shown is what W = 0 and half the linear "
    "functions, which lie in its hull, give exactly: it stands below that complexity too."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each ball."""
    lengths, n, d, effort = {
        Scale.SMOKE: ((2, 4), 6, 2, (2, 2, 2)),
        Scale.QUICK: ((10, 100, 1000), 64, 4, (16, 6, 24)),
        Scale.PAPER: ((10, 32, 100, 316, 1000, 3162, 10_000), 128, 8, (48, 32, 100)),
    }[scale]
    names = ("sign_vectors", "starts", "steps")
    settings = {"lengths": lengths, "n": n, "d": d, **dict(zip(names, effort, strict=True))}
    settings |= {"repeats": 2**16, "radius": 2.0}
    balls = BALLS[:1] if scale is Scale.SMOKE else BALLS
    return tuple(Cell({"ball": ball, **settings}, dtype="float32") for ball in balls)


def _sample(s: Mapping, seed: int, kind: str) -> Sequences:
    """The longest sequences, in NumPy."""
    rng = np.random.default_rng([seed, s["n"], s["d"], KINDS.index(kind)])
    centres = rng.standard_normal((s["n"], 1, s["d"])) * (kind == KINDS[0])
    tokens = centres + rng.standard_normal((s["n"], max(s["lengths"]), s["d"]))
    queries = rng.standard_normal((s["n"], s["d"]))
    unit = (a / np.linalg.norm(a, axis=-1, keepdims=True) for a in (tokens, queries))
    return Sequences(*(a.astype(np.float32) for a in unit))


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Suprema by token law, length and sign vector, and the bounds by length."""
    s, key = cell.settings, jax.random.key(cell.seed)
    one = jax.device_put(np.float32(1.0))
    attention = AttentionClass(s["ball"], jax.device_put(np.float32(s["radius"])), one, one, one)
    effort = {name: s[name] for name in ("sign_vectors", "starts", "steps", "repeats")}
    signs = draw_signs(key, s["sign_vectors"], s["n"], s["repeats"]) / s["repeats"]
    softmax, summed = [], []
    for kind in KINDS:
        tokens, queries = _sample(s, cell.seed, kind)
        for T in s["lengths"]:
            first = tokens[:, :T]
            # All tokens as often as each other: the same function of every W and v, and one
            # compiled program for the short lengths.
            padded = np.tile(first, (1, SHARED // T if SHARED % T == 0 else 1, 1))
            sample = Sequences(jax.device_put(padded), jax.device_put(queries))
            found = rademacher_complexity(key, attention, sample, **effort, chunk=1)
            softmax.append(found.suprema)
            sums = first.sum(axis=1, dtype=float)
            # Half of max |v' sum_i sigma_i z_i| / n over |v|_1 <= 1.
            summed.append(np.abs(signs @ sums).max(axis=1) / (2 * s["n"]))
    shape = (len(KINDS), len(s["lengths"]))
    with jax.enable_x64(True):
        bounds = _bounds(s)
    return {
        "length": np.array(s["lengths"]),
        "softmax": np.reshape(softmax, (*shape, -1)),
        "sum": np.reshape(summed, (*shape, -1)),
        **bounds,
    }


def _bounds(s: Mapping) -> dict[str, np.ndarray]:
    """Bounds on the complexity for any tokens of length one, cut at the trivial one, by length."""
    points = jax.device_put(s["n"] * np.array(s["lengths"], float))
    settings = s["ball"], s["radius"], s["d"], s["n"] * s["repeats"]
    found = jax.tree.map(np.asarray, _class_bounds(points, *settings))
    return {name: np.minimum(value, np.ones(len(points))) for name, value in found.items()}


@partial(jax.jit, static_argnames=("ball", "radius", "d", "m"))
def _class_bounds(points: Array, ball: Ball, radius: float, d: int, m: int) -> dict[str, Array]:
    """For `points` distinct tokens in the sample."""
    l1, wide = np.sqrt(d), ball == "1,inf"
    C = trauger2023_cover(ball, radius, 1.0 if ball == "1,1" else l1, d, d, m)
    logs = jax.vmap(lambda N: edelman2022_cover(radius * (d if wide else 1), 1.0, N, d, m))(points)
    all_C = jnp.concatenate([C[None], logs])
    sharp = jax.vmap(lambda each: trauger2023_single(1.0, each, 1.0, d, m, constants="sharp"))(
        all_C
    )
    spectral = radius * (l1 if wide else 1.0)
    return {
        "theorem": sharp[0],
        "log_T": sharp[1:],
        "corrected": trauger2023_single(1.0, C, 1.0, d, m, constants="corrected"),
        "parameters": parameter_counting_single(1.0, spectral, 1.0, d * d, d, m),
    }


class _Curve(NamedTuple):
    """Means over the sign vectors with Student's interval, by length."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    suprema: np.ndarray

    @property
    def change(self) -> tuple[float, float]:
        """Last length over the first, in pairs of sign vectors, and half its interval."""
        first, last = self.suprema[0], self.suprema[-1]
        ratio = last.mean() / first.mean()
        # A ratio of means, linearised: the residuals carry its spread.
        left = (last - ratio * first) / first.mean()
        return float(ratio), float(student_interval(left).reach)


def _curve(suprema: np.ndarray) -> _Curve:
    found = [rademacher_estimate(each, 1, 0.0) for each in suprema]
    parts = (np.array([getattr(each, name) for each in found]) for name in ("value", "low", "high"))
    mean, low, high = parts
    return _Curve(mean, low, high, suprema)


def _above(a: Mapping[str, np.ndarray], k: int) -> float:
    """Theorem 4.1 over the larger of the two estimates at one length."""
    return float(a["theorem"][k] / a["softmax"][:, k].mean(axis=1).max())


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Estimates and bounds by ball and length."""
    import pandas as pd

    rows = []
    for record in records:
        s, a = record.cell.settings, record.arrays
        for k, T in enumerate(a["length"]):
            row = {"ball of W": f"({s['ball']}), radius {s['radius']:g}", "T": int(T)}
            for kind, found, summed in zip(KINDS, a["softmax"], a["sum"], strict=True):
                for name, suprema in (("softmax", found), ("sum pooling", summed)):
                    curve = _curve(suprema)
                    row[f"{name}, {kind}"] = (
                        f"{curve.mean[k]:.3g} [{curve.low[k]:.3g}, {curve.high[k]:.3g}]"
                    )
            row |= {
                "Theorem 4.1, sharp": a["theorem"][k],
                "Theorem 4.1, corrected": a["corrected"][k],
                "log T": a["log_T"][k],
                "parameter counting": a["parameters"][k],
                "Theorem 4.1 / estimate": _above(a, k),
            }
            rows.append(row)
    return pd.DataFrame(rows)


def _draw(axis, record: Record) -> None:
    """One ball: estimates with intervals, bounds and sum pooling."""
    a, T = record.arrays, record.arrays["length"]
    for kind, found, summed in zip(KINDS, a["softmax"], a["sum"], strict=True):
        for suprema, name, style in ((found, "softmax", "o-"), (summed, "sum pooling", "^:")):
            curve = _curve(suprema)
            axis.errorbar(T, curve.mean, [curve.mean - curve.low, curve.high - curve.mean],
                          fmt=style, color=COLOURS[kind], ms=4.5, lw=1.3, capsize=2,
                          mfc=None if name == "softmax" else "none",
                          label=f"{name}, {kind}")  # fmt: skip
    for name, label, colour, style in (
        ("corrected", "Theorem 4.1, corrected", "0.2", ":"),
        ("theorem", "Theorem 4.1, sharp", "0.2", "-"),
        ("log_T", "log T, Edelman et al.", "#d55e00", "-"),
        ("parameters", "parameter counting", "#cc79a7", "-"),
    ):
        axis.plot(T, a[name], style, color=colour, lw=1.8, label=label)
    axis.axhline(1.0, color="0.6", lw=1, ls="-.", label="largest value in the class")


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """Complexity and bounds against T, an axis for each ball."""
    import matplotlib.pyplot as plt

    count = len(records)
    figure, axes = plt.subplots(
        1, count, figsize=(3.3 * count + 2.4, 4.1), sharey=True, squeeze=False, layout="constrained"
    )
    for axis, record in zip(axes[0], records, strict=True):
        s = record.cell.settings
        _draw(axis, record)
        axis.set(xscale="log", yscale="log", xlabel="length T")
        axis.set_title(TITLES[s["ball"]] % s["radius"], fontsize=10)
    axes[0, 0].set_ylabel("empirical Rademacher complexity")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=8)
    return (Panel("Rademacher complexity against the length", _caption(records), figure),)


def _said(curve: _Curve) -> str:
    ratio, reach = curve.change
    return f"{ratio:.3g} +- {reach:.2g}"


def _caption(records: Sequence[Record]) -> str:
    s, T = records[0].cell.settings, records[0].arrays["length"]
    changes, loose, grew, crossed = [], [], [], []
    for record in records:
        a, ball = record.arrays, f"({record.cell.settings['ball']})"
        curves = [_curve(found) for found in a["softmax"]]
        changes.append(f"{ball} {' and '.join(_said(curve) for curve in curves)}")
        grew += [ball for curve in curves if curve.change[0] - curve.change[1] > 1]
        rise = a["log_T"][-1] / a["log_T"][0]
        loose.append(f"{ball} {_above(a, -1):.0f} times (log T rises by {100 * rise - 100:.1f} %)")
        crossed += [ball] * bool((a["softmax"].mean(axis=2) > a["theorem"][None]).any())
    pooled = " and ".join(_said(_curve(summed)) for summed in records[0].arrays["sum"])
    growth = f"It grows for {', '.join(grew)}" if grew else "No ball shows growth"
    return (
        f"Does it grow? From T = {T[0]} to {T[-1]} the complexity changes by the factor, for "
        f"sequences about own centres and independent ones, {'; '.join(changes)} (95 %, "
        f"{s['sign_vectors']} sign vectors). {growth}; sum pooling changes by {pooled}. Theorem "
        f"4.1, sharp, stands above the estimate by {'; '.join(loose)}, and "
        f"{'is EXCEEDED for ' + ', '.join(crossed) if crossed else 'is nowhere exceeded'}. "
        f"m = {s['n'] * s['repeats']:,}: {s['n']} sequences, {s['repeats']:,} times each; d = "
        f"{s['d']}. Estimates stand below the complexity: {s['starts']} starts of {s['steps']} "
        "steps for each sign vector. Bars: 95 % of the mean."
    )


EXPERIMENT = Experiment(
    name="rademacher_length",
    paper="trauger2023sequence",
    title="Rademacher complexity against the length",
    question="Does the complexity of attention grow with T, and how far above it are the bounds?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        "length": ("length",),
        "softmax": ("law", "length", "sign_vector"),
        "sum": ("law", "length", "sign_vector"),
        **dict.fromkeys(("log_T", "theorem", "corrected", "parameters"), ("length",)),
    },
    note=NOTE,
)
