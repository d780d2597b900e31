r"""Which bound on the complexity of one attention layer is smallest, and where are all vacuous?

Theorem 4.1 without T, the log T cover of Edelman et al. (2022) and parameter counting on one class,
in the plane of the norm of $W_{QK}$ and the number of samples: once with every norm equal to B,
once with the norms that a dense matrix has.
"""

from collections.abc import Sequence

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.bounds.comparison.single_layer_class import LayerNorms, norms_of_dense_matrix
from attlas.experiments import panels
from attlas.experiments.experiment import CaptionedFigure, Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import PALETTE, Column, Lines, Printed, Reference
from attlas.experiments.settings import Settings
from trauger2023sequence.library.bounds.bound_plane import (
    PLANE_COVERS,
    SmallestBound,
    bounds_in_plane,
    break_even_ratio,
    smallest_bound,
    trauger2023_orders,
)

LENGTHS = (20, 200, 10_000)
FAMILIES = (*PLANE_COVERS, "log m", *(f"log T, T = {T}" for T in LENGTHS))
"""'log m' is the cover of Edelman et al. at the [CLS] tokens alone."""
ORDERS = ("1,1", "log T, T = 20", "log T, T = 200", "parameters")
CHECKED = {
    (1, 300): (0.794, 0.850, 0.875, 1.0),
    (1, 1e4): (0.250, 0.305, 0.318, 0.998),
    (1, 1e6): (0.0389, 0.0543, 0.0566, 0.0998),
    (3, 1e6): (0.0925, 0.128, 0.134, 0.119),
    (10, 1e6): (0.231, 0.313, 0.324, 0.138),
    (30, 1e6): (0.491, 0.631, 0.650, 0.154),
    (100, 1e6): (0.908, 0.997, 0.999, 0.169),
}
"""Orders at (B, m) worked out independently of this library, by quadrature, to three digits."""
POINTS = [f"B = {B:g}, m = {m:.0e}" for B, m in CHECKED]
PRINTED = [{("equal", point): row[k] for point, row in zip(POINTS, CHECKED.values(), strict=True)}
           for k in range(len(ORDERS))]  # fmt: skip
NORMS = {"equal": "all norms equal", "dense": "a dense matrix"}
SHOWN = {
    "1,1": ("Theorem 4.1, entry-sum norm", "#9ccbe8"),
    "1,inf": ("Theorem 4.1, largest-column norm", "#cc79a7"),
    "2,1": ("Theorem 4.1, column-length norm", "#0072b2"),
    "parameters": ("parameter counting", "#f5e6a8"),
    "log m": ("Edelman et al., one token, any length", "#7fc8ae"),
    "log T": ("Edelman et al., log of the length", "#eeb655"),
}
"""Names and light colours of areas, on which contours are read."""
WIDTH = 64
SAMPLES = 10**6
"""Width d of the matrix, and samples m at which the ratio of the norms breaks even."""
LONG = 1_000_000
"""Tokens of a long text, for which the caption reads off how sparse a matrix must be."""
GRID = Grid(
    fixed={"d": WIDTH, "B": [0.1, 300.0], "m": [1e2, 1e10], "longest": 200},
    smoke={"points": 5},
    quick={"points": 25},
    paper={"points": 97},
)


def run(s: Settings, key: Array) -> xr.Dataset:
    """All bounds on the grid and at the checked points, and the ratio that breaks even."""
    B, m = (np.geomspace(low, high, s.points) for low, high in (s.B, s.m))
    plane = np.stack(np.meshgrid(B, m, indexing="ij"), axis=-1)
    checked = np.array(list(CHECKED), float)
    norm, size = np.concatenate([plane.reshape(-1, 2), checked]).T
    units = [LayerNorms(1.0, 1.0, 1.0, 1.0, 1.0), norms_of_dense_matrix(key, s.d)]
    bounds = np.stack([bounds_in_plane(unit, norm, size, (1, *LENGTHS), s.d) for unit in units])
    in_plane = bounds[:, : -len(CHECKED)].reshape(2, s.points, s.points, -1)
    exponents = np.linspace(0, s.longest, 201)
    orders = jax.jit(jax.vmap(lambda B, m: trauger2023_orders(B, m, LENGTHS[:2], s.d)))
    ratio = jax.jit(jax.vmap(lambda T: break_even_ratio(T, s.d, SAMPLES)))
    return xr.Dataset(
        {
            "unit": (("norms", "quantity"), np.array(units)),
            "bound": (("norms", "norm", "samples", "family"), in_plane),
            "checked_bound": (("norms", "point", "family"), bounds[:, -len(CHECKED) :]),
            "order": (("point", "cover"), orders(checked[:, 0], checked[:, 1])),
            "break_even": ("exponent", ratio(10.0**exponents)),
        },
        {
            "norms": list(NORMS), "norm": B, "samples": m, "family": list(FAMILIES),
            "quantity": list(LayerNorms._fields), "point": POINTS, "cover": list(ORDERS),
            "exponent": exponents,
        },
    )  # fmt: skip


def smallest(data: xr.Dataset) -> str:
    """The family of the smallest bound at a checked point."""
    bound = data.checked_bound
    return bound.family.values[int(bound.argmin("family"))] if bound.min() < 1 else "all vacuous"


def lengths(data: xr.Dataset) -> list[int]:
    """The lengths for which the record has the bound with log T."""
    return [int(name.split("= ")[1]) for name in data.family.values if name.startswith("log T")]


def columns(data: xr.Dataset) -> dict[str, str]:
    """The family beside Theorem 4.1 and parameter counting in each map, and the map's title."""
    shortest, *_, longest = lengths(data)
    with_T = {f"log T, T = {T}": f"sequences of {T:,} tokens" for T in (shortest, longest)}
    return with_T | {"log m": "any length, one token covered"}


def offered(last: str) -> list[str]:
    """The families that a map compares."""
    return [*PLANE_COVERS, last]


def compared(data: xr.Dataset, norms: str, last: str) -> SmallestBound:
    """The map of the smallest bound."""
    bound = data.bound.sel(norms=norms, family=offered(last))
    return smallest_bound(data["norm"].values, data["samples"].values, bound.values)


def in_legend(name: str) -> str:
    """The name of a bound by what it is made from, whose it is in brackets."""
    whose, comma, made_from = name.partition(", ")
    return f"bound by {made_from} ({whose})" if comma else f"bound by {name}"


def maps(data: xr.Dataset) -> CaptionedFigure:
    """Rows by the norms, columns by the length."""
    import matplotlib.pyplot as plt
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    figure, axes = plt.subplots(
        2, 3, figsize=(10, 6.4), sharex=True, sharey=True, layout="constrained"
    )
    titles = columns(data)
    planes = {(n, last): compared(data, n, last) for n in NORMS for last in titles}
    seen = set()
    for axis, ((norms, last), plane) in zip(axes.flat, planes.items(), strict=True):
        names = [name.split(", T")[0] for name in offered(last)]
        seen |= {names[k] for k in np.unique(plane.winner) if k >= 0}
        # Labels of contours look for room in the final scales.
        axis.set(xscale="log", yscale="log", xlim=plane.samples[[0, -1]],
                 ylim=plane.norm[[0, -1]])  # fmt: skip
        colours = ListedColormap(["#dddddd", *(SHOWN[name][1] for name in names)])
        at = plane.samples, plane.norm
        axis.pcolormesh(*at, plane.winner, cmap=colours, vmin=-1.5, vmax=len(names) - 0.5,
                        shading="nearest", rasterized=True)  # fmt: skip
        levels = [0.003, 0.01, 0.03, 0.1, 0.3]
        lines = axis.contour(*at, plane.value, levels=levels, colors="k", linewidths=0.8)
        axis.clabel(lines, fontsize=7, fmt="%g")
        axis.contour(*at, plane.value, levels=[1.0], colors="k", linewidths=1.6)
        if norms == "equal":
            axis.set_title(titles[last], fontsize=10)
    for row, title in zip(axes, NORMS.values(), strict=True):
        row[0].set_ylabel(f"{title}\n\nnorm of the key-query matrix")
        row[0].text(1.5e2, 30, "all above 1", fontsize=10, color="0.35")
    for axis in axes[1]:
        axis.set_xlabel("training samples")
    handles = [
        Patch(color=ink, label=in_legend(name)) for key, (name, ink) in SHOWN.items() if key in seen
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return CaptionedFigure("The smallest bound", "", figure, areas(data, planes))


def areas(data: xr.Dataset, planes: dict[tuple[str, str], SmallestBound]) -> dict[str, object]:
    """How much of each map belongs to whom, by the norms and in the order of the columns."""
    first, longer, _ = titles = columns(data)
    vacuous, winners = {}, {}
    for norms in NORMS:
        winners[norms] = []
        for last, title in titles.items():
            shares = 100 * planes[norms, last].shares(len(offered(last)))
            winners[norms].append(f"{title} {named_shares(offered(last), shares)}")
        vacuous[norms] = f"{100 * np.mean(planes[norms, first].winner < 0):.0f}"
    short = planes["equal", first].winner
    leading = 100 * planes["equal", first].shares(len(offered(first)))
    halves = np.array_split(short, 2)
    counting = [
        100 * np.mean(half[half >= 0] == PLANE_COVERS.index("parameters")) for half in halves
    ]
    return {
        "leaders": named_shares(offered(first), leading),
        "vacuous": vacuous,
        "winners": winners,
        "counting": [f"{share:.0f}" for share in counting],
        "rises": bool(counting[1] > counting[0]),
        "moved": {
            norms: f"{100 * np.mean(short.winner != planes[norms, longer].winner):.0f}"
            for norms in NORMS
            for short in [planes[norms, first]]
        },
        "shortest": min(lengths(data)),
        "longest": f"{max(lengths(data)):,}",
    }


def named_shares(names: Sequence[str], shares: np.ndarray) -> str:
    """The bounds that are smallest anywhere, each with its share of the plane in percent."""
    shown = [(SHOWN[name.split(", T")[0]][0], x) for name, x in zip(names, shares, strict=True)]
    return " and ".join(f"{name} in {x:.0f} %" for name, x in shown if x >= 0.5)


def dense(data: xr.Dataset) -> xr.DataArray:
    r"""The ratio $\sqrt{2 d/\pi}$ of a dense matrix."""
    return xr.DataArray(np.sqrt(2 * data.attrs["d"] / np.pi))


def break_even(data: xr.Dataset) -> dict[str, object]:
    """From which ratio of norms removing log T pays."""
    ratio, exponent, full = (
        data["break_even"].values,
        data["exponent"].values,
        float(dense(data)),
    )
    read_at = [*lengths(data)[:2], LONG]
    near = np.interp(np.log10(read_at), exponent, ratio)
    return {
        "d": data.attrs["d"],
        "near": ", ".join(f"{x:.2f} at $T = {T:,}$" for T, x in zip(read_at, near, strict=True)),
        "dense_gains": bool((near >= full).any()),
        "dense": f"{full:.1f}", "beyond": ratio[-1] < full,
        "power": f"10^{{{np.interp(full, ratio, exponent):.0f}}}",
    }  # fmt: skip


def answer(data: xr.Dataset) -> dict[str, object]:
    """The areas at the shortest length, where log T costs least."""
    first, shares_text, vacuous = next(iter(columns(data))), {}, {}
    for norms in NORMS:
        plane = compared(data, norms, first)
        names = offered(first)
        shares_text[norms] = named_shares(names, 100 * plane.shares(len(names)))
        vacuous[norms] = f"{100 * np.mean(plane.winner < 0):.0f}"
    return {"first": shares_text, "vacuous": vacuous, "T": min(lengths(data)), "d": data.attrs["d"]}


EXPERIMENT = Experiment(
    title="The smallest bound in the plane of norm and samples",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        {"norms": "norms", "point": "B, m"},
        [
            *(
                column
                for k, name in enumerate(ORDERS)
                for column in (
                    Column(f"order {name}", "order", at={"cover": name},
                           where=lambda row: row["norms"] == "equal"),
                    Printed(f"order {name}, checked", PRINTED[k]),
                )
            ),
            *(
                Column(name, lambda data: data.checked_bound.clip(max=1), at={"family": name})
                for name in FAMILIES
            ),
            panels.Derived("smallest", smallest),
        ],
    ),
    figures=[
        maps,
        panels.Plot(
            "The cost of removing log T",
            Lines(
                "break_even", "exponent", ink=PALETTE[4], width=1.8, xlim=(0, 200), ylim=(1, 8.2),
                label="break-even: below it the bound without the length is smaller (Theorem 4.1)",
                title=f"{SAMPLES:,} samples, tokens of {WIDTH} entries",
                xlabel="length of the sequences, in decimal digits",
                ylabel="sum of |entries| over sum of row norms",
            )
            + Reference(y=dense, style="--", ink="#333333", label="ratio of a dense matrix")
            + Reference(x=np.log10(LONG), label="a million tokens"),
            break_even,
        ),
    ],
)  # fmt: skip
