r"""Does the regularisation path converge in direction to the attention SVM of the same p?

$W(R) = \arg\min \{L(W) : \|W\|_{p,p} \le R\}$ for growing R, over the whole ball, and over the
part of it in a cone around the attention SVM of a choice of tokens that is locally but not
globally optimal. Every point carries a Frank-Wolfe certificate; points without it are left out and
counted.
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.join import join
from attlas.experiments.panels import Column, Derived, last_finite, median, total
from attlas.experiments.part_cache import cached_part
from attlas.experiments.settings import Settings
from julistiono2024optimizing.library.solvers.local_selection import (
    LocalSelection,
    draw_local_selection,
)
from julistiono2024optimizing.library.token_selection.paths_to_svms import (
    PathsToSvms,
    paths_to_svms,
)

EXPONENTS = (1.75, 2.0, 3.0)
SCOPES = ("global", "local")
SHOWN = (4.0, 16.0)
GRID = Grid(
    fixed={
        # One cell for all p, which share their compiled programs.
        "p": list(EXPONENTS),
        "q": lambda s: sorted({*EXPONENTS, *s.p}),
        "width": 0.02, "global_radii": [2.0, 4.0, 8.0, 16.0, 32.0, 64.0],
        "local_radii": [4.0, 8.0, 16.0, 24.0],
    },
    smoke={
        "p": [2.0], "members": 1, "starts": 1, "global_radii": [2.0, *SHOWN],
        "local_radii": list(SHOWN),
    },
    quick={"members": 3, "starts": 3},
    paper={"members": 8, "starts": 12},
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """The global and the local path of every problem, measured against the SVMs of every q."""
    problems = draw_local_selection(s.seed, s.members, s.q)
    grid = [(p, scope) for p in s.p for scope in ("global", "local")]
    return join([cached_part(of_scope, s, key, problems, p, scope) for p, scope in grid])


def of_scope(s: Settings, key: Array, problems: LocalSelection, p: float, scope: str) -> xr.Dataset:
    """One path of every problem."""
    tokens, radii, width = {
        "global": (problems.best, s.global_radii, None),
        "local": (problems.local, s.local_radii, s.width),
    }[scope]
    paths = paths_to_svms(problems, tokens, p, s.q, radii, key, s.starts, width)
    return labelled(paths, tokens, s.q, radii).expand_dims(p=[p], scope=[scope])


def labelled(
    paths: PathsToSvms, tokens: np.ndarray, q: Sequence[float], radii: Sequence[float]
) -> xr.Dataset:
    """The axes by name."""
    axes = {3: ("q", "member", "radius"), 2: ("member", "radius"), 1: ("member",)}
    named = {name: (axes[np.ndim(value)], value) for name, value in paths._asdict().items()}
    data = xr.Dataset(named, {"q": list(q), "radius": list(radii)})
    return data.assign(tokens=(("member", "sample"), tokens)).transpose("member", "q", ...)


def same_p(data: xr.Dataset) -> xr.DataArray:
    """Divergence to the SVM of the own p."""
    return data.divergence.sel(q=data.p)


def next_p(data: xr.Dataset) -> xr.DataArray:
    """Divergence to the nearest SVM of another p, at the last certified radius."""
    return last_finite("divergence", "radius")(data).where(data.q != data.p).min("q")


LAST_OWN, LAST_GLOBAL = (last_finite(quantity, "radius") for quantity in (same_p, "to_global"))


def nearest(at: xr.Dataset) -> str:
    """On how many paths with a certified radius the SVM of the same p is the nearest."""
    ends = LAST_OWN(at)
    return f"{int((ends < next_p(at)).sum())} of {int(ends.count())}"


def uncertified(at: xr.Dataset) -> str:
    """How many points are left out."""
    there = at.certified.notnull()
    return f"{total(at.certified == 0)} of {total(there)}"


def nearness(data: xr.Dataset) -> dict[str, object]:
    """Where the paths turn to, and what was left out."""
    counts = {f"count_{scope}": nearest(data.sel(scope=scope)) for scope in SCOPES}
    near = counts | {
        f"near_{scope}": f"{nearest(at)} {scope} paths (median divergence "
        f"{median(LAST_OWN(at)):.2g}, to the nearest other exponent {median(next_p(at)):.2g})"
        for scope in SCOPES
        for at in [data.sel(scope=scope)]
    }
    border = total(border_points(data).sel(scope="local"))
    return {**near, "uncertified": uncertified(data), "border": border, "without": without(data)}


def without(data: xr.Dataset) -> str:
    """Of which scope how many paths have no certified radius."""
    counts = {scope: int(LAST_OWN(data.sel(scope=scope)).isnull().sum()) for scope in SCOPES}
    return " and ".join(f"{count} {scope}" for scope, count in counts.items() if count)


def border_points(data: xr.Dataset) -> xr.DataArray:
    """Certified points on the border of the cone."""
    return (data.on_border == 1) & (data.certified == 1)


def power(data: xr.Dataset) -> xr.DataArray:
    """A power -2 from the least radius of each scope on."""
    radius = data.radius.where(data.certified.notnull().any(["member", "p"]))
    return 0.1 * (radius / radius.min("radius")) ** -2


def is_local(row: panels.Row) -> bool:
    """The rows of the local paths."""
    return row["scope"] == "local"


def answer(data: xr.Dataset) -> dict[str, object]:
    """On how many paths the own SVM is the nearest, and by how much."""
    scopes = {scope: data.sel(scope=scope) for scope in SCOPES}
    ends = LAST_OWN(data)
    hits = (ends < next_p(data)).where(ends.notnull())
    return {
        "all": bool((hits.fillna(1) == 1).all()),
        "never": not bool((hits == 1).any()),
        "without": without(data),
        "n": data.sizes["sample"],
        "near": {scope: nearest(at) for scope, at in scopes.items()},
        "own": {scope: f"{median(LAST_OWN(at)):.2g}" for scope, at in scopes.items()},
        "other": {scope: f"{median(next_p(at)):.2g}" for scope, at in scopes.items()},
    }


EXPERIMENT = Experiment(
    title="Regularisation paths, global and local",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        {"p": "p", "scope": "path"},
        [
            Derived("problems", lambda at: at.sizes["member"]),
            *(
                Column(f"D to own, R = {R:g} norms", same_p, median, at={"radius": R})
                for R in SHOWN
            ),
            Column("largest R", lambda d: d.radius.where(d.gap.notnull()), panels.largest),
            Column("D to own, last", LAST_OWN, median),
            Column("D to the nearest other p, last", next_p, median),
            Derived("own p nearest", nearest),
            Column("D to the global choice, last", LAST_GLOBAL, median, where=is_local),
            Column("on the border of the cone", border_points, total, where=is_local),
            Column("largest gap kept", lambda d: d.gap.where(d.certified == 1), panels.largest),
            Derived("not certified", uncertified),
        ],
    ),
    figures=[
        panels.Plot(
            "Regularisation paths, global and local",
            panels.Lines(
                "divergence", "radius", colour="q", names="to the attention SVM of exponent {q:g}",
                band=None,
                style="o-", panel="p", row="scope", title="{scope} path, exponent {p:g}",
                xscale="log2", yscale="log", xlabel="norm bound $R$ / norm of the SVM",
                ylabel="distance $D$ of directions",
            )
            + panels.Lines(power, "radius", style=":", label="fall like $R^{-2}$"),
            nearness,
        )
    ],
)  # fmt: skip
