r"""Which bound on the Rademacher complexity of one attention layer is smallest, and when?

Theorem 4.1 without T, the log T cover of Edelman et al. (2022) and parameter counting on one class,
in the plane of the norm of W_QK and the number of samples: once with every norm equal to B, once
with the norms that a dense matrix has.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.bounds.comparison.transformer_weights import matrix_norms
from attlas.bounds.covering.edelman2022_cover import edelman2022_cover
from attlas.bounds.covering.parameter_counting import parameter_counting_single, parameter_entropy
from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.trauger2023_single import trauger2023_bracket, trauger2023_single
from attlas.core.generator import generator
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas
    from matplotlib.axes import Axes

LENGTHS = (20, 200, 10_000)
FAMILIES = ("1,1", "1,inf", "2,1", "parameters", "log m", *(f"log T, T = {T}" for T in LENGTHS))
"""Order of the axis `bound`; "log m" is the cover of Edelman et al. at the [CLS] tokens alone."""
BRACKETS = ("1,1", "log T, T = 20", "log T, T = 200", "parameters")
"""Order of the axis `bracket`: unknown constants set to 1, as the paper compares orders."""
EXPONENTS = np.linspace(0, 200, 201)
"""log10 of the lengths at which the ratio of norms is asked for that breaks even."""
CHECKED = {
    (1, 300): (0.794, 0.850, 0.875, 1.0),
    (1, 1e4): (0.250, 0.305, 0.318, 0.998),
    (1, 1e6): (0.0389, 0.0543, 0.0566, 0.0998),
    (3, 1e6): (0.0925, 0.128, 0.134, 0.119),
    (10, 1e6): (0.231, 0.313, 0.324, 0.138),
    (30, 1e6): (0.491, 0.631, 0.650, 0.154),
    (100, 1e6): (0.908, 0.997, 0.999, 0.169),
}
"""Brackets at (B, m) worked out apart from this library, by quadrature, to three digits."""
COLOURS = {
    "1,1": "#9ccbe8",
    "1,inf": "#cc79a7",
    "2,1": "#0072b2",
    "parameters": "#f5e6a8",
    "log m": "#7fc8ae",
    "log T": "#eeb655",
}
TITLES = {"equal": "all norms equal $B$", "dense": r"a dense matrix of $\|W\|_{2,1} = B$"}
LABELS = {
    "1,1": r"Theorem 4.1, $\|W\|_{1,1}$",
    "1,inf": r"Theorem 4.1, $\|W\|_{1,\infty}$",
    "2,1": r"Theorem 4.1, $\|W\|_{2,1}$",
    "parameters": "parameter counting",
    "log m": r"log m, $\|W\|_{2,1}$",
    "log T": r"log T, $\|W\|_{2,1}$",
}
NOTE = (
    "One head, d = 64, B_x = 1 and B_w B_c L B_v = 1, so that the complexity is at most 1. Maps "
    "have every constant explicit (softmax constant 1, Dudley's chain). 'Equal' gives each bound "
    "its own norm at the value B and inputs of norm 1 in the norm it asks for. 'Dense' measures "
    "all norms on one Gaussian matrix scaled to a sum B of Euclidean row norms, with tokens of "
    "Euclidean norm 1 and the l_1 norm of a Gaussian direction. The brackets of the table have "
    "unknown constants set to 1 and are orders, not bounds."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell."""
    points = {Scale.SMOKE: 5, Scale.QUICK: 25, Scale.PAPER: 121}[scale]
    return (Cell({"d": 64, "points": points, "norm": [0.1, 300.0], "samples": [1e2, 1e10]}, 0),)


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """All bounds on the grid and at the checked points, and the ratio that breaks even."""
    s = cell.settings
    ends = (s["norm"], s["samples"])
    grid = [np.geomspace(low, high, s["points"]) for low, high in ends]
    plane = np.stack(np.meshgrid(*grid, indexing="ij"), axis=-1)
    factors = np.stack([np.ones(5), _dense(s["d"], cell.seed)])
    pairs = np.concatenate([plane.reshape(-1, 2), np.array(list(CHECKED), float)])
    found, brackets, even = (np.asarray(a) for a in _program(s["d"])(pairs, factors))
    size = plane[..., 0].size
    return {
        "norm": grid[0],
        "samples": grid[1],
        "factors": factors,
        "bound": found[:, :size].reshape(2, *plane.shape[:2], -1),
        "checked_bound": found[:, size:],
        "bracket": brackets[size:],
        "break_even": even,
    }


def _dense(d: int, seed: int) -> np.ndarray:
    """Norms of a dense matrix over the sum of its row norms, and the l_1 norm of a dense token.

    Returns:
        The factors of ||W||_{1,1}, ||W||_{1,inf}, the sum of row norms, the spectral norm, and
        the l_1 norm of a token.
    """
    W = generator(jax.random.key(seed)).normal(size=(d, d))
    found = matrix_norms(W)
    sizes = np.array([found.total, found.column, found.row_sum, found.spectral]) / found.row_sum
    return np.append(sizes, math.sqrt(2 * d / math.pi))


def _families(d: int, B: Array, m: Array, factors: Array) -> Array:
    """The bounds in the order of `FAMILIES`; their trivial value is 1, they may come out larger."""
    total, column, row_sum, spectral = (factors[k] * B for k in range(4))
    covers = [
        trauger2023_cover("1,1", total, 1.0, d, d),
        trauger2023_cover("1,inf", column, factors[4], d, d),
        trauger2023_cover("2,1", row_sum, factors[4], d, d, m),
        *(edelman2022_cover(row_sum, 1.0, m * T, d, m) for T in (1, *LENGTHS)),
    ]
    values = jax.vmap(lambda C: trauger2023_single(1.0, C, 1.0, d, m))(jnp.stack(covers))
    counted = parameter_counting_single(1.0, spectral, 1.0, d * d, d, m)
    return jnp.concatenate([values[:3], counted[None], values[3:]])


def _orders(d: int, B: Array, m: Array) -> Array:
    """The brackets in the order of `BRACKETS`, cut off at the trivial value."""
    covers = [trauger2023_cover("1,1", B, 1.0, d, d)]
    covers += [B**2 * jnp.log(d * m * T) for T in (20, 200)]
    values = [trauger2023_bracket(C, 1.0, d, m, constants="corrected") for C in covers]
    # 4 B / eps cells a parameter; Gauss-Legendre in the square root of eps, where it is smooth
    node, weight = np.polynomial.legendre.leggauss(60)
    root = (node + 1) / 2
    full = jnp.asarray([float(d * d)])
    entropy = parameter_entropy(full, 4 * B[None], jnp.ones(1), jnp.asarray(root**2))
    counted = jnp.sum(weight * root * jnp.sqrt((entropy + math.log(2 * d)) / m))
    return jnp.minimum(jnp.stack([*values, counted]), 1.0)


def _program(d: int) -> Callable[..., tuple[Array, Array, Array]]:
    """Bounds for all pairs (B, m) and both rows of factors, brackets, and the break-even ratios."""

    def program(pairs: Array, factors: Array) -> tuple[Array, Array, Array]:
        def each(row: Array) -> Array:
            return jax.lax.map(
                lambda pair: _families(d, pair[0], pair[1], row), pairs, batch_size=16
            )

        # both entropies are quadratic in their norm
        lengths = jnp.asarray(10.0**EXPONENTS)
        covers = jax.vmap(lambda T: edelman2022_cover(1.0, 1.0, 1e6 * T, d, 10**6))(lengths)
        even = jnp.sqrt(covers / trauger2023_cover("1,1", 1.0, 1.0, d, d))
        return jax.lax.map(each, factors), jax.vmap(lambda p: _orders(d, p[0], p[1]))(pairs), even

    return jax.jit(program)


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Brackets beside the values worked out apart from this library, and explicit bounds."""
    import pandas as pd

    rows, arrays = [], records[0].arrays
    for norms, bounds in zip(TITLES, arrays["checked_bound"], strict=True):
        for k, ((B, m), checked) in enumerate(CHECKED.items()):
            row = {"norms": norms, "B": B, "m": f"{m:.0e}"}
            for j, name in enumerate(BRACKETS):
                here = f"{arrays['bracket'][k, j]:.3g} ({checked[j]:.3g})"
                row[f"order {name} (apart)"] = here if norms == "equal" else ""
            values = np.minimum(bounds[k], 1.0)
            row |= {name: float(value) for name, value in zip(FAMILIES, values, strict=True)}
            row["smallest"] = FAMILIES[values.argmin()] if values.min() < 1 else "all trivial"
            rows.append(row)
    return pd.DataFrame(rows)


def _offered(column: int) -> list[str]:
    """The families of a column of the figure: two lengths, then no length at all."""
    last = ("log T, T = 20", "log T, T = 10000", "log m")[column]
    return ["1,1", "1,inf", "2,1", "parameters", last]


def _plain(family: str) -> str:
    return family.split(", T")[0]


class _Plane(NamedTuple):
    """One map: axes, which family is smallest (their number where all are trivial), its value."""

    names: list[str]
    samples: np.ndarray
    norm: np.ndarray
    winner: np.ndarray
    best: np.ndarray

    @property
    def seen(self) -> list[str]:
        """The families that win somewhere."""
        return [_plain(self.names[k]) for k in np.unique(self.winner) if k < len(self.names)]

    @property
    def shares(self) -> str:
        """How much of the plane where something is said belongs to whom."""
        said = self.winner[self.winner < len(self.names)]
        parts = ((n, 100 * np.mean(said == k)) for k, n in enumerate(self.names))
        return ", ".join(f"{_plain(n)} {share:.0f}%" for n, share in parts if share >= 0.5)


def _plane(record: Record, row: int, column: int) -> _Plane:
    """Bounds between the points of the grid by interpolation of logarithms, which are smooth."""
    from scipy.interpolate import RectBivariateSpline

    names, arrays = _offered(column), record.arrays
    edges = [np.log(arrays[name]) for name in ("norm", "samples")]
    fine = [np.linspace(edge[0], edge[-1], 241) for edge in edges]
    logs = np.log(arrays["bound"][row][..., [FAMILIES.index(name) for name in names]])
    values = np.stack(
        [
            RectBivariateSpline(edges[0], edges[1], logs[..., k], kx=1, ky=1)(*fine)
            for k in range(len(names))
        ]
    )
    best = np.exp(values.min(axis=0))
    winner = np.where(best < 1, values.argmin(axis=0), len(names))
    return _Plane(names, np.exp(fine[1]), np.exp(fine[0]), winner, best)


def _draw(axis: "Axes", plane: _Plane) -> None:
    """One plane coloured by its smallest bound."""
    from matplotlib.colors import ListedColormap

    # labels of contours look for room in the final scales
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlim(*plane.samples[[0, -1]])
    axis.set_ylim(*plane.norm[[0, -1]])
    colours = ListedColormap([*(COLOURS[_plain(name)] for name in plane.names), "0.87"])
    axis.pcolormesh(plane.samples, plane.norm, plane.winner, cmap=colours, vmin=-0.5,
                    vmax=len(plane.names) + 0.5, shading="nearest", rasterized=True)  # fmt: skip
    levels = [0.003, 0.01, 0.03, 0.1, 0.3]
    lines = axis.contour(
        plane.samples, plane.norm, plane.best, levels=levels, colors="k", linewidths=0.8
    )
    axis.clabel(lines, fontsize=7, fmt="%g")
    axis.contour(plane.samples, plane.norm, plane.best, levels=[1.0], colors="k", linewidths=1.6)


def _map_panel(record: Record) -> Panel:
    """Rows by the norms, columns by the length."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    figure, axes = plt.subplots(
        2, 3, figsize=(10, 6.4), sharex=True, sharey=True, layout="constrained"
    )
    planes = [[_plane(record, row, column) for column in range(3)] for row in range(2)]
    for row, maps, title in zip(axes, planes, TITLES.values(), strict=True):
        for axis, plane in zip(row, maps, strict=True):
            _draw(axis, plane)
        row[0].set_ylabel(f"{title}\n\nnorm $B$ of $W_{{QK}}$")
        row[0].text(2e2, 30, "trivial", fontsize=10, color="0.35")
    heads = ("with log T at T = 20", "with log T at T = 10 000", "with log m at [CLS]: no T")
    for head, top, bottom in zip(heads, *axes, strict=True):
        top.set_title(head, fontsize=10)
        bottom.set_xlabel("samples $m$")
    seen = dict.fromkeys(name for maps in planes for plane in maps for name in plane.seen)
    handles = [Patch(color=COLOURS[name], label=LABELS[name]) for name in seen]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    said = []
    for norms, maps in zip(TITLES, planes, strict=True):
        said.append(
            f"With {norms} norms {100 * np.mean(maps[0].best >= 1):.0f}% of the plane is trivial; "
            f"of the rest {maps[0].shares} at T = 20, {maps[1].shares} at T = 10000, "
            f"{maps[2].shares} where log T is replaced by log m"
        )
    caption = (
        "Which bound on the complexity is smallest? Colours name it; thin lines are its value, "
        f"beyond the thick one all are trivial. {'. '.join(said)}. Areas are in logarithms of B "
        "and m. Parameter counting takes over as norms grow, which stand in its logarithm; the "
        "length T hardly moves a border."
    )
    return Panel("The smallest bound", caption, figure)


def _ratio_panel(record: Record) -> Panel:
    """The ratio of norms at which removing log T pays."""
    import matplotlib.pyplot as plt

    ratio, d = record.arrays["break_even"], record.cell.settings["d"]
    dense = math.sqrt(2 * d / math.pi)
    figure, axis = plt.subplots(figsize=(6.4, 3.9), layout="constrained")
    axis.plot(EXPONENTS, ratio, color=COLOURS["log T"], lw=2)
    axis.fill_between(EXPONENTS, 1, ratio, color=COLOURS["1,1"], alpha=0.35)
    axis.fill_between(EXPONENTS, ratio, 9, color=COLOURS["log T"], alpha=0.25)
    axis.text(195, 2.1, "Theorem 4.1 is smaller", ha="right", fontsize=9)
    axis.text(30, 7.6, "log T is smaller", fontsize=9)
    axis.axhline(dense, color="k", ls="--", lw=1.2)
    axis.annotate(r"dense matrix: $\sqrt{2d/\pi}$" + f" = {dense:.1f}", (30, dense), (0, 4),
                  textcoords="offset points", fontsize=9)  # fmt: skip
    axis.axvline(6, color="0.4", ls=":", lw=1.2)
    axis.annotate("a million tokens", (6, 1.2), (5, 0), textcoords="offset points", fontsize=8)
    axis.set(xlim=(0, 200), ylim=(1, 8.2), xlabel=r"$\log_{10} T$",
             ylabel=r"$\|W_{QK}\|_{1,1}\,/\,\|W_{QK}\|_{2,1}$")  # fmt: skip
    at = float(np.interp(dense, ratio, EXPONENTS))
    end = "beyond" if ratio[-1] < dense else "at"
    near = np.interp([math.log10(20), math.log10(200), 6], EXPONENTS, ratio)
    return Panel(
        "Price of removing log T",
        "When does the bound without T beat the one with log T? When the (1,1) norm is at most "
        f"the curve times the sum of row norms (d = {d}, a million samples, all constants "
        f"explicit): {near[0]:.2f} at T = 20, {near[1]:.2f} at T = 200, {near[2]:.2f} at a million "
        f"tokens. A dense matrix has {dense:.1f}, and breaks even {end} T = 10^{at:.0f}; only "
        "sparse matrices gain.",
        figure,
    )


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """The plane coloured by the smallest bound, and the ratio of norms that breaks even."""
    return _map_panel(records[0]), _ratio_panel(records[0])


EXPERIMENT = Experiment(
    name="winning_bound",
    paper="trauger2023sequence",
    title="The smallest bound in the plane of norm and samples",
    question="Which bound on one attention layer is smallest, and where is none informative?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        "norm": ("norm",),
        "samples": ("samples",),
        "factors": ("norms", "factor"),
        "bound": ("norms", "norm", "samples", "family"),
        "checked_bound": ("norms", "point", "family"),
        "bracket": ("point", "order"),
        "break_even": ("exponent",),
    },
    note=NOTE,
)
