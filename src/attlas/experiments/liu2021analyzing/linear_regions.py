r"""Does attention to few inputs reduce the number of linear regions, as Theorem 4 says?

The printed bound of Theorem 4 beside what the construction and the exact maximum are; exact
counts of random networks behind a mask; and softmax attention, fixed and trained, which leaves no
input out: how many of the regions do inputs in a cube meet?
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import equinox as eqx
import jax
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from attlas.bounds.expressivity.liu2021_regions import (
    liu2021_central_regions_maximum,
    liu2021_regions,
)
from attlas.data.marked_words import marked_words
from attlas.measures.attention.concentration import concentration
from attlas.measures.complexity.activation_patterns import activation_patterns
from attlas.measures.complexity.frozen_regions import frozen_regions
from attlas.measures.complexity.linear_regions import count_linear_regions, sampled_cells
from attlas.models.attention.self_attention_mlp import SelfAttentionMLP
from attlas.panels.lines import Lines
from attlas.panels.palette import DASHES, INK, PALETTE
from attlas.panels.panel import Panel
from attlas.panels.plot import Plot
from attlas.panels.points import Points
from attlas.panels.reference import Reference
from attlas.panels.summary import mean_only
from attlas.panels.table import Column, Table
from attlas.runs.experiment import Experiment
from attlas.runs.grid import Grid
from attlas.runs.join import join
from attlas.runs.settings import Settings
from attlas.training.gradient_descent import gradient_descent

BOUNDS: dict[str, Callable[[int, int], int]] = {
    "printed bound": partial(liu2021_regions, constants="printed"),
    "its construction": partial(liu2021_regions, constants="corrected"),
    "maximum with biases": liu2021_regions,
    "maximum without biases": liu2021_central_regions_maximum,
}
STATES = {"start": (0, 1.0), "trained": (1, 1.0), "trained, logits x 5": (1, 5.0)}
"""Which record of the training, and the factor of its logits."""
COUNTED = {
    "random networks, exact": ("o", PALETTE[2]),
    "without biases, exact": ("s", PALETTE[3]),
    "found by 200 random lines": ("x", INK),
}
NOTE = (
    "The sizes of the paper's figure are not given but for $p = 100$; $n_1 = 200$ is ours. A "
    "region of a network with softmax attention is one of the network with its weights frozen at "
    "an input: with weights that depend on x there are none. The trained task is ours: 5 words of "
    "3 entries (a sign, a mark, noise), the label is the sign of the marked word. Trained "
    "weights and biases have scales of their own, so that their numbers of regions met compare "
    "with one another rather than with those of the fixed weights."
)
GRID = Grid(
    fixed={
        "wide": [200, 100], "p": 5, "temperatures": [0.1, 0.25, 0.5, 1.0, 2.0, 8.0],
        "samples": 64, "frozen": 4, "rate": 0.3, "block": 1,
    },
    smoke={"members": 1, "n1": 6, "networks": 1, "points": 1000, "steps": 20},
    quick={"members": 2, "n1": 10, "networks": 3, "points": 20_000, "steps": 1500},
    paper={"members": 10, "n1": 12, "networks": 10, "points": 200_000, "steps": 10_000},
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """The bounds at the figure's width, and everything of one seed."""
    rng = np.random.default_rng(s.seed)
    n1, p = s.wide
    logs = [[math.log10(of(n1, k)) for k in range(1, p + 1)] for of in BOUNDS.values()]
    bounds = [[float(of(s.n1, k)) for k in range(1, s.p + 1)] for of in BOUNDS.values()]
    known = xr.Dataset(
        {"log10_bounds": (("bound", "wide_s0"), logs), "bounds": (("bound", "s0"), bounds)},
        {"bound": list(BOUNDS), "wide_s0": range(1, p + 1), "s0": range(1, s.p + 1)},
    )
    return xr.merge([known, masked(s, rng), softmax(s, rng), trained(s, rng)])


def masked(s: Settings, rng: np.random.Generator) -> xr.Dataset:
    """Exact and sampled numbers of random networks of which s0 inputs have weight."""
    found = np.zeros((s.networks, s.p, 3))
    for k in range(s.networks):
        W = rng.standard_normal((s.n1, s.p))
        b, w2 = rng.standard_normal((2, s.n1))
        for s0 in range(1, s.p + 1):
            kept = W[:, :s0]
            found[k, s0 - 1] = (
                count_linear_regions(kept, w2, b),
                count_linear_regions(kept, w2),
                sampled_cells(kept, b, key=jax.random.key(1000 * s.seed + k)),
            )
    return xr.Dataset(
        {"regions": (("network", "s0", "counted"), found)}, {"counted": list(COUNTED)}
    )


def softmax(s: Settings, rng: np.random.Generator) -> xr.Dataset:
    """Fixed softmax weights of several temperatures: concentration, and regions met."""
    found = np.zeros((3, s.networks, len(s.temperatures)))
    points = rng.uniform(-1, 1, (s.points, s.p))
    for k in range(s.networks):
        W, b = rng.standard_normal((s.n1, s.p)), 0.3 * rng.standard_normal(s.n1)
        logits = rng.standard_normal(s.p)
        for i, temperature in enumerate(s.temperatures):
            f = np.exp((logits - logits.max()) / temperature)
            f = f / f.sum()
            of = concentration(f[None])
            # Model (3) has weights of Euclidean norm one.
            met = activation_patterns(W * (f / np.linalg.norm(f))[None, :], b, points)
            found[:, k, i] = of.s0[0, 0], of.participation[0], met
    names = ("softmax_s0", "softmax_support", "softmax_met")
    axes = ("network", "temperature")
    return xr.Dataset(
        {name: (axes, each) for name, each in zip(names, found, strict=True)},
        {"temperature": list(s.temperatures)},
    )


def trained(s: Settings, rng: np.random.Generator) -> xr.Dataset:
    """Attention before and after training, and the regions that its frozen networks have."""
    x, y = (jax.device_put(part) for part in marked_words(rng, s.samples, s.p))
    path = gradient_descent(
        xavier(s, rng), x, y, step_size=s.rate, steps=s.steps, record_at=(0, s.steps - 1)
    )
    points = rng.uniform(-1, 1, (s.points, s.p))
    rows = []
    for record, sharper in STATES.values():
        model = path.at(record)
        model = eqx.tree_at(lambda m: m.W_Q, model, sharper * model.W_Q)
        weights, outputs = (np.asarray(part) for part in attention_and_outputs(model, x))
        of = concentration(np.swapaxes(weights, 1, 2).reshape(-1, s.p))
        right = np.mean(outputs * np.asarray(y) > 0)
        frozen = frozen_regions(model, weights[: s.frozen], points)
        rows.append((of.s0.mean(), of.participation.mean(), *frozen, right))
    names = ("trained_s0", "support", "frozen_regions", "frozen_met", "accuracy")
    states = {name: ("state", row) for name, row in zip(names, np.transpose(rows), strict=True)}
    return xr.Dataset({**states, "loss": ("record", np.asarray(path.loss))}, {"state": [*STATES]})


def xavier(s: Settings, rng: np.random.Generator) -> SelfAttentionMLP:
    """Xavier's uniform start; values of one dimension, queries and keys of two."""
    shapes = ((2, 3), (2, 3), (1, 3), (s.p, s.n1), (s.n1, 1))
    drawn = [math.sqrt(6 / sum(shape)) * rng.uniform(-1, 1, shape) for shape in shapes]
    parts = jax.device_put([*drawn[:4], drawn[4][:, 0], np.zeros(s.n1), np.zeros(())])
    W_Q, W_K, W_V, W1, w2, b1, b2 = parts
    return SelfAttentionMLP(W_Q, W_K, W_V, W1, w2, b1, b2)


@eqx.filter_jit
def attention_and_outputs(model: SelfAttentionMLP, x: Float[Array, "n t p"]) -> tuple[Array, Array]:
    """Attention matrices of the samples, column z of query z, and outputs."""
    return jax.vmap(model.attention)(x), jax.vmap(model)(x)


def caption(data: xr.Dataset) -> str:
    """What the bounds say, and what training does."""
    s = data.attrs
    wide, narrow = (data[name].isel(member=0) for name in ("log10_bounds", "bounds"))
    printed, central = "printed bound", "maximum without biases"
    above = wide.wide_s0.values[wide.sel(bound=printed) > wide.sel(bound=printed)[-1]]
    false = narrow.s0.values[narrow.sel(bound=printed) > narrow.sel(bound=central)]
    support, regions, met, right = (
        data[name].mean("member").values
        for name in ("support", "frozen_regions", "frozen_met", "accuracy")
    )
    return (
        "Do fewer inputs with attention mean fewer linear regions? The largest possible number "
        "says yes, with biases and without; the printed lower bound does not: it is above that "
        f"of all $p = {s['wide'][1]}$ inputs, with {s['wide'][0]} units, for $s_0 = "
        f"{', '.join(map(str, above))}$, and with "
        f"{s['n1']} units above the maximum without biases for $s_0 = "
        f"{', '.join(map(str, false))}$. Random networks attain the maxima exactly. Training "
        f"concentrates attention from {support[0]:.1f} to {support[1]:.1f} effective inputs "
        f"(accuracy {right[1]:.2f}), but leaves no weight at zero: the exact number of the frozen "
        f"network goes from {regions[0]:.0f} to {regions[1]:.0f} as biases leave zero, while "
        f"{s['points']} uniform points meet {met[0]:.0f} and then {met[1]:.0f} of them. "
        "Concentration moves boundaries away from the data; it does not remove them."
    )


def by_weights(data: xr.Dataset) -> xr.Dataset:
    """Means for masks, fixed softmax weights and trained ones, along one axis."""
    p, means = data.attrs["p"], data.drop_vars("loss").mean(["network", "member"])
    full = float(means.bounds.sel(bound="maximum with biases")[-1])
    masks = {
        "s0": means.s0.values.astype(float),
        **dict(zip(("exact", "central", "met"), means.regions.values.T, strict=True)),
        **dict(zip(BOUNDS, means.bounds.values, strict=True)),
    }
    fixed = {
        "s0": means.softmax_s0.values,
        "exact": np.full(means.sizes["temperature"], full),
        "met": means.softmax_met.values,
    }
    learned = {
        "s0": means.trained_s0.values,
        "exact": means.frozen_regions.values,
        "met": means.frozen_met.values,
        "accuracy": means.accuracy.values,
    }
    labels = (
        [f"mask of {k} of {p} inputs" for k in means.s0.values],
        [f"softmax, temperature {t:g}" for t in means.temperature.values],
        [f"self-attention, {state}" for state in means.state.values],
    )
    return join([
        xr.Dataset({name: ("weights", values) for name, values in part.items()}, {"weights": own})
        for part, own in zip((masks, fixed, learned), labels, strict=True)
    ])  # fmt: skip


def bounds(name: str, x: str, **axes: Any) -> Panel:
    """All bounds against s0."""
    first, *rest = (
        Lines(name, x, at={"bound": bound}, style=style, ink=ink, label=bound, band=mean_only)
        for bound, style, ink in zip(BOUNDS, DASHES, PALETTE, strict=False)
    )
    return reduce(Panel.__add__, rest, replace(first, xlabel="inputs with weight, $s_0$", **axes))


EXPERIMENT = Experiment(
    title="Linear regions and sparse attention",
    question=__doc__,
    grid=GRID,
    run=run,
    table=Table(
        ["weights"],
        [
            Column("s0", "s0"),
            Column("regions, exact", "exact"),
            Column("met", "met"),
            Column("without biases, exact", "central"),
            *(Column(name, name) for name in BOUNDS),
            Column("accuracy", "accuracy"),
        ],
        of=by_weights,
    ),
    figures=[
        Plot(
            "Linear regions against sparsity",
            [
                bounds(
                    "log10_bounds", "wide_s0", title="at the sizes of Figure 3",
                    ylabel="$\\log_{10}$ of the number of regions", ylim=(0, None),
                )
                + Reference(
                    y=lambda data: data.log10_bounds.sel(bound="printed bound").isel(wide_s0=-1),
                    label="printed bound of the baseline, $s_0 = p$",
                ),
                reduce(
                    Panel.__add__,
                    (
                        Points(
                            "regions", "s0", at={"counted": name}, marker=marker, ink=ink,
                            hollow=True, label=name, band=mean_only,
                        )
                        for name, (marker, ink) in COUNTED.items()
                    ),
                    bounds(
                        "bounds", "s0", title="small networks, counted exactly", yscale="log",
                        ylabel="linear regions",
                    ),
                ),
                Lines(
                    "softmax_met", "softmax_support", band=None, ink="#999999", style=".-",
                    label="fixed softmax weights, by temperature", title="no weight is zero",
                    xlabel="effective number of inputs, $1 / \\|a\\|_2^2$", yscale="log",
                    ylabel="regions met by uniform points",
                )
                + Points(
                    "frozen_met", "support", colour="state", marker="D",
                    names="self-attention, {state}",
                )
                + Reference(
                    y=lambda data: data.bounds.sel(bound="maximum with biases").isel(s0=-1),
                    style="-", ink=PALETTE[2], label="exact number with biases",
                ),
            ],
            caption,
            height=1.3,
        )
    ],
    note=NOTE,
)  # fmt: skip
