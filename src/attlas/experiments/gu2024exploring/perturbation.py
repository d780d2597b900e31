r"""How much does the kernel change when the weights do, against what Lemma 5.1 allows?

Networks of three activations on the same inputs and with the same weights; every unit is moved
by R, at random and in the directions that change the kernel most. The change over R beside the
lemmas of the paper and of its predecessors, and beside the sharpened bound.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.bounds.optimisation.gu2024_convergence import gu2024_radius
from attlas.bounds.optimisation.gu2024_perturbation import gu2024_kernel_change
from attlas.kernels.dense_softmax_ntk import dense_softmax_ntk
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.tasks.sign_regression import (
    draw_network,
    draw_sign_regression,
)

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

COLOURS = dict(zip(Activation, ("#0072b2", "#d55e00", "#009e73"), strict=True))
MARKERS = dict(zip(Activation, "os^", strict=True))
NAMES = dict(zip(Activation, ("softmax", "ReLU", "exponential"), strict=True))
LEMMA = 0.01
"""Lemma 5.1 is stated for R below this."""
DELTA = 0.1
NOTE = (
    "Unit inputs, k outputs, symmetric initialisation; constants are |H(W~) - H(W)|_F / (R n k), "
    "the largest over the draws. Aligned: ascent on the change of the kernel with every column "
    "kept at length R, from random and from sign-aligned starts, so a lower bound on the worst "
    "case; a ReLU's derivative is smoothed over R for the direction only, not in what is "
    "measured. B in the figure is the largest |<w_r, x_i>| of the draw and at least 1, the most "
    "favourable reading; the table has Definition 4.1's with C = 10, delta = 0.1. The lemmas for "
    "ReLU and exponential units are quoted by the paper for sigma = 1 and one output."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each sigma and block of seeds."""
    n, m, k, sigmas, seeds, block = {
        Scale.SMOKE: (3, 8, 1, (1.0,), 1, 1),
        Scale.QUICK: (8, 512, 2, (1.0,), 2, 2),
        Scale.PAPER: (128, 8192, 4, (0.5, 1.0, 2.0), 8, 2),
    }[scale]
    radii = (-3, -1) if scale is Scale.SMOKE else (-3, -2.5, -2, -1.5, -1, -0.5, 0)
    settings = {"n": n, "d": max(2, n // 2), "m": m, "outputs": k, "log10_R": radii}
    settings |= {"draws": 2, "climb": 3 if scale is Scale.SMOKE else 20, "seeds": block}
    return tuple(
        Cell({**settings, "sigma": sigma}, seed)
        for sigma in sigmas
        for seed in range(0, seeds, block)
    )


def _moved(network: SoftmaxNetwork, change: Array) -> SoftmaxNetwork:
    return eqx.tree_at(lambda part: part.W, network, network.W + change)


def _smooth_kernel(network: SoftmaxNetwork, X: Array, width: Array) -> Array:
    """The kernel, with a smooth step in place of ReLU's derivative: it has a gradient."""
    if network.activation is not Activation.RELU:
        return dense_softmax_ntk(network, X)
    features = network.a[:, None, :] * jax.nn.sigmoid(X @ network.W / width)[None]
    k, n, m = features.shape
    rows = features.reshape(k * n, m)
    return rows @ rows.T / m * jnp.tile(X @ X.T, (k, k))


def _to_length(change: Array, R: Array) -> Array:
    """Every column brought to length R; columns of zero stay."""
    lengths = jnp.linalg.norm(change, axis=0, keepdims=True)
    return R * change / jnp.where(lengths > 0, lengths, 1)


@partial(jax.jit, static_argnames=("climb",))
def _changes(
    network: SoftmaxNetwork, X: Array, radii: Array, starts: Array, climb: int
) -> tuple[Array, Array]:
    """Frobenius norm of the change at the start and at the best of the climb, [R, start]."""
    before = dense_softmax_ntk(network, X)

    def measured(change: Array) -> Array:
        return jnp.linalg.norm(dense_softmax_ntk(_moved(network, change), X) - before)

    def one(R: Array, start: Array) -> tuple[Array, Array]:
        smooth_before = _smooth_kernel(network, X, R)

        def smooth(change: Array) -> Array:
            return jnp.sum((_smooth_kernel(_moved(network, change), X, R) - smooth_before) ** 2)

        def step(_: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            change, best = carry
            change = _to_length(jax.grad(smooth)(change), R)
            return change, jnp.maximum(best, measured(change))

        first = _to_length(start, R)
        value = measured(first)
        return value, jax.lax.fori_loop(0, climb, step, (first, value))[1]

    return jax.lax.map(lambda R: jax.vmap(partial(one, R))(starts), radii)


@jax.jit
def _bounds(network: SoftmaxNetwork, X: Array, radii: Array, B: Array) -> tuple[Array, Array]:
    """The printed and the sharpened bound on the Frobenius norm, by R."""

    def one(R: Array) -> tuple[Array, Array]:
        printed = gu2024_kernel_change(network, X, R, B=B, constants="printed")
        return jnp.linalg.norm(printed), jnp.linalg.norm(gu2024_kernel_change(network, X, R))

    return jax.lax.map(one, radii)


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Changes and bounds for every activation: [activation, seed, R]."""
    s = cell.settings
    radii = jax.device_put(10.0 ** np.array(s["log10_R"]))
    found = {name: [] for name in ("random", "aligned", "printed", "sharp", "norm")}
    reach = []
    for activation in Activation:
        rows = {name: [] for name in found}
        for seed in range(cell.seed, cell.seed + s["seeds"]):
            X = draw_sign_regression(s["n"], s["d"], [seed], s["sigma"], activation).X
            network = draw_network(s["d"], s["m"], [seed, 1], s["sigma"], activation, s["outputs"])
            logits = np.abs(X @ np.asarray(network.W)).max()
            starts = _starts(s, X, np.asarray(network.W), seed)
            first, best = _changes(network, jax.device_put(X), radii, starts, s["climb"])
            printed, sharp = _bounds(network, jax.device_put(X), radii, jnp.maximum(logits, 1))
            rows["random"].append(np.asarray(first)[:, : s["draws"]].max(axis=1))
            rows["aligned"].append(np.asarray(best).max(axis=1))
            rows["printed"].append(np.asarray(printed))
            rows["sharp"].append(np.asarray(sharp))
            rows["norm"].append(
                float(jnp.linalg.norm(dense_softmax_ntk(network, jax.device_put(X))))
            )
            if activation is Activation.SOFTMAX:
                reach.append(logits)
        for name, values in rows.items():
            found[name].append(values)
    arrays = {name: np.asarray(values) for name, values in found.items()}
    return {"R": np.asarray(radii), "reach": np.array(reach), **arrays}


def _starts(s: Mapping, X: np.ndarray, W: np.ndarray, seed: int) -> Array:
    """Random directions, then: all along the mean input, and each along the inputs it likes."""
    rng = np.random.default_rng([seed, 2])
    drawn = rng.normal(size=(s["draws"], *W.shape))
    mean = np.broadcast_to(X.sum(axis=0)[:, None], W.shape)
    liked = X.T @ np.sign(X @ W)
    return jax.device_put(np.concatenate([drawn, [mean, liked]]))


def _joined(records: Sequence[Record]) -> dict[float, dict[str, np.ndarray]]:
    """Constants |H~ - H|_F / (R n k) by sigma; arrays are [activation, seed, R]."""
    found = {}
    for sigma in sorted({r.cell.settings["sigma"] for r in records}):
        mine = [r for r in records if r.cell.settings["sigma"] == sigma]
        s = mine[0].cell.settings
        whole = {
            name: np.concatenate([r.arrays[name] for r in mine], axis=1)
            for name in ("random", "aligned", "printed", "sharp", "norm")
        }
        R, norm, entries = mine[0].arrays["R"], whole.pop("norm"), s["n"] * s["outputs"]
        relative = whole["aligned"] / (R * norm[..., None])
        found[sigma] = {name: value / (R * entries) for name, value in whole.items()}
        found[sigma] |= {"R": R, "relative": relative}
        found[sigma]["relative_random"] = whole["random"] / (R * norm[..., None])
        found[sigma]["reach"] = np.concatenate([r.arrays["reach"] for r in mine])
    return found


def _inside(a: Mapping[str, np.ndarray]) -> np.ndarray:
    """The R for which Lemma 5.1 is stated; all of them if there is none."""
    inside = a["R"] <= LEMMA * (1 + 1e-9)
    return inside if inside.any() else np.ones_like(inside)


def _times(bound: np.ndarray, found: np.ndarray) -> np.ndarray:
    """A bound over what was found, infinite where no unit of a ReLU network changed."""
    return np.where(found > 0, bound / np.maximum(found, np.finfo(float).tiny), np.inf)


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """The largest constants within the lemma's range beside its own."""
    import pandas as pd

    s = records[0].cell.settings
    rows = []
    for sigma, a in _joined(records).items():
        inside = _inside(a)
        B = float(gu2024_radius(s["n"], s["outputs"], DELTA, sigma, constants="printed"))
        for k, activation in enumerate(Activation):
            here = {name: a[name][k][:, inside].max() for name in ("random", "aligned", "sharp")}
            log10_B = 10 * B / np.log(10) if activation is Activation.SOFTMAX else np.nan
            slack = _times(a["sharp"], a["aligned"])[k][:, inside].min()
            rows.append(
                {
                    "sigma": sigma,
                    "activation": NAMES[activation],
                    "random": here["random"],
                    "aligned": here["aligned"],
                    "aligned, relative to |H|_F": a["relative"][k][:, inside].max(),
                    "sharpened bound": here["sharp"],
                    "sharpened / aligned, least": slack,
                    "lemma, measured B": a["printed"][k].min(),
                    "log10 of e^(10 B), C = 10": log10_B,
                    "measured B": a["reach"].max(),
                }
            )
    return pd.DataFrame(rows)


def _shown(records: Sequence[Record]) -> tuple[float, dict[str, np.ndarray]]:
    """The sigma that the figures show: one if it was run."""
    found = _joined(records)
    sigma = 1.0 if 1.0 in found else next(iter(found))
    return sigma, found[sigma]


def _draw(axis, a: Mapping[str, np.ndarray], k: int) -> None:
    """One activation: measured, sharpened and, where it fits, the printed constant."""
    colour, mark = COLOURS[tuple(Activation)[k]], MARKERS[tuple(Activation)[k]]
    R = a["R"]
    for name, label, style in (
        ("aligned", "measured, aligned", {"marker": mark, "ls": "-"}),
        ("random", "measured, random", {"marker": mark, "ls": ":", "mfc": "none"}),
        ("sharp", "sharpened bound", {"ls": "--", "lw": 1.6}),
    ):
        values = a[name][k].max(axis=0)
        seen = values > 1e-12  # no unit of a ReLU network need change within a small R
        axis.loglog(R[seen], values[seen], color="0.2" if name == "sharp" else colour,
                    label=label, ms=5, **style)  # fmt: skip
    printed, top = a["printed"][k].min(), a["sharp"][k].max()
    if printed < 1e4 * top:
        axis.axhline(printed, color="0.5", ls="-.", lw=1.6, label="printed lemma")
        return
    axis.plot([], [], color="0.5", ls="-.", lw=1.6, label="printed lemma")
    axis.annotate(
        f"printed $e^{{10B}}$ = {printed:.0e}, {np.log10(printed / top):.0f} decades above",
        (0.5, 0.98), xycoords="axes fraction", ha="center", va="top", fontsize=8, color="0.35",
    )  # fmt: skip
    axis.set_ylim(top=8 * top)


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """Constants of each activation with their bounds, and all relative to the kernel."""
    import matplotlib.pyplot as plt

    sigma, a = _shown(records)
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.7), layout="constrained")
    for k, activation in enumerate(Activation):
        axes[k].axvspan(a["R"][0], LEMMA, color="0.9", lw=0, label=f"$R\\leq{LEMMA:g}$: Lemma 5.1")
        _draw(axes[k], a, k)
        axes[k].set_title(NAMES[activation], fontsize=10)
        mark, colour = MARKERS[activation], COLOURS[activation]
        for name, style in (("relative", "-"), ("relative_random", ":")):
            values = a[name][k].max(axis=0)
            seen = values > 1e-12
            axes[3].loglog(a["R"][seen], values[seen], mark + style, color=colour, ms=5,
                           mfc="none" if style == ":" else None)  # fmt: skip
        axes[3].plot([], [], mark + "-", color=colour, label=NAMES[activation])
    axes[3].legend(frameon=False, fontsize=8)
    axes[3].set_title("all, relative to the kernel", fontsize=10)
    axes[3].set_ylabel(r"$\|\tilde H-H\|_F\,/\,(R\,\|H\|_F)$")
    axes[0].set_ylabel(r"$\|\tilde H-H\|_F\,/\,(R\,nk)$")
    for axis in axes:
        axis.set_xlabel(r"radius $R=\|\tilde w_r-w_r\|$")
    handles, labels = axes[0].get_legend_handles_labels()
    handles = [copy(handle) for handle in handles]
    for handle in handles[1:3]:
        handle.set_color("0.4")
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    return (Panel("Change of the kernel over the radius", _caption(records, sigma, a), figure),)


def _caption(records: Sequence[Record], sigma: float, a: Mapping[str, np.ndarray]) -> str:
    s, inside = records[0].cell.settings, _inside(a)
    aligned, relative, loose, exceeded = [], [], [], []
    for k, activation in enumerate(Activation):
        name, best = NAMES[activation], a["aligned"][k][:, inside]
        aligned.append(f"{name} {best.max():.2g}")
        relative.append(f"{name} {a['relative'][k][:, inside].max():.2g}")
        printed, sharp = (_times(a[name][k][:, inside], best) for name in ("printed", "sharp"))
        loose.append(f"{name} {printed.min():.1e} and {sharp.min():.2g}")
        for bound in ("printed", "sharp"):
            # Sums of n k terms and their norm: a bound that is attained may be passed by rounding.
            slack = s["n"] * s["outputs"] * np.finfo(float).eps
            if (a["aligned"][k] > a[bound][k] * (1 + slack)).any():
                exceeded.append(f"{name} exceeds the {bound} bound")
    within = ", ".join(exceeded) or "no change exceeds a bound"
    return (
        f"Is softmax perturbed less? For R up to {LEMMA:g} (sigma = {sigma:g}, n = {s['n']}, "
        f"k = {s['outputs']}, m = {s['m']}) the largest change over R n k found is "
        f"{', '.join(aligned)}; relative to the kernel itself {', '.join(relative)}. The printed "
        "constants, with the measured B, and the sharpened ones are this many times what was "
        f"found, at least: {'; '.join(loose)}. Over all R, {within}. ReLU kernels change by whole "
        "units at a time, so that at small R the constant depends on m."
    )


EXPERIMENT = Experiment(
    name="perturbation",
    paper="gu2024exploring",
    title="Change of the kernel with the weights",
    question="How much does the kernel change with the weights, against what Lemma 5.1 allows?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        "R": ("R",),
        "reach": ("member",),
        "norm": ("activation", "member"),
        **dict.fromkeys(("random", "aligned", "printed", "sharp"), ("activation", "member", "R")),
    },
    note=NOTE,
)
