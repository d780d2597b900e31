r"""Does the regularisation path turn to the attention SVM of its own p, and does a local one?

W(R) = argmin {L(W) : ||W||_{p,p} <= R} for growing R, over the whole ball, and over the part of
it in a cone around the attention SVM of a choice of tokens that is locally but not globally
optimal. Every point carries a Frank-Wolfe certificate; points without it are left out and counted.
"""

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.core.solution import Solution
from attlas.data.token_selection import TokenSelection
from attlas.measures.attention.direction import direction_divergence
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.solvers.attention_svm import attention_svm_batch
from attlas.solvers.ball_minimum import CONE_SLACK, Cone
from attlas.solvers.regularisation_path import regularisation_path

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

EXPONENTS = (1.75, 2.0, 3.0)
GLOBAL, LOCAL = "global", "local"
RADII = {GLOBAL: (2.0, 4.0, 8.0, 16.0, 32.0, 64.0), LOCAL: (4.0, 8.0, 16.0, 24.0)}
"""R over the norm of the SVM. Along a local path the loss tends to a limit that is not zero, and
beyond about 30 what is left of it is below its rounding error."""
SHOWN = (4.0, 16.0)
POOL = 40
NOTE = (
    "Not in the paper: its theorem on the path has no experiment. Two samples of three tokens on "
    "the unit sphere in three dimensions, logistic loss. Of a pool of 40 problems those are taken "
    "that have a choice of tokens which is locally but not globally optimal for every p, with the "
    "better tokens farthest behind the margin (in units of the norm of the SVM). The cone of the "
    "local path is empirical: 0.02 wide where (8) gives 2e-10 to 3e-4 on these problems. That a "
    "stationary point is the global minimum is supported by the random starts, not proved."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for all p, which share their compiled programs; smoke has p = 2 alone."""
    smoke = scale is Scale.SMOKE
    settings = {
        "problems": {Scale.SMOKE: 1, Scale.QUICK: 3, Scale.PAPER: 8}[scale],
        "starts": {Scale.SMOKE: 1, Scale.QUICK: 3, Scale.PAPER: 12}[scale],
        "width": 0.02,
        GLOBAL: (2.0, *SHOWN) if smoke else RADII[GLOBAL],
        LOCAL: SHOWN if smoke else RADII[LOCAL],
    }
    return (Cell({"exponents": (2.0,) if smoke else EXPONENTS, **settings}),)


class _Problems(NamedTuple):
    """Problems with their globally optimal tokens and another, locally optimal choice."""

    data: TokenSelection
    best: np.ndarray
    local: np.ndarray


def _on_sphere(array: np.ndarray) -> np.ndarray:
    return array / np.linalg.norm(array, axis=-1, keepdims=True)


def _problems(seed: int, count: int, n: int = 2, T: int = 3, d: int = 3) -> _Problems:
    """The problems of a pool on which a local path can be seen best."""
    draw = np.random.default_rng(seed)
    X, z = (_on_sphere(draw.normal(size=(POOL, n, *shape))) for shape in ((T, d), (d,)))
    v, y = _on_sphere(draw.normal(size=(POOL, d))), draw.choice([-1.0, 1.0], (POOL, n))
    scores = y[:, :, None] * np.einsum("bntd,bd->bnt", X, v)
    choices = np.array(list(itertools.product(range(T), repeat=n)))
    tokens = np.tile(choices, (POOL, 1))
    owner = np.repeat(np.arange(POOL), len(choices))
    chosen = np.take_along_axis(scores[owner], tokens[:, :, None], axis=2)
    better = scores[owner] > chosen
    usable, room = better.any(axis=(1, 2)), np.full(len(tokens), np.inf)
    for p in EXPONENTS:
        svm = attention_svm_batch(X[owner], z[owner], tokens, p)
        behind = np.where(better, svm.certificate["margins"], np.inf).min(axis=(1, 2)) - 1
        room = np.minimum(room, behind / svm.certificate["norm_upper"])
        # Locally optimal: no better token is a support token, whose margin is 1.
        usable &= np.asarray(svm.converged) & (behind > 1e-6)
        usable &= np.asarray(attention_svm_batch(X, z, scores.argmax(2), p).converged)[owner]
    room = np.where(usable, room, -np.inf)
    each = room.reshape(POOL, -1)
    members = np.argsort(-each.max(axis=1))[:count]
    members = members[np.isfinite(each.max(axis=1)[members])]
    data = TokenSelection(*(jnp.asarray(a[members]) for a in (X, y, z, v)))
    return _Problems(data, scores.argmax(2)[members], choices[each.argmax(axis=1)[members]])


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """The global and the local path of every problem, measured against the SVMs of every p."""
    problems = _problems(cell.seed, cell.settings["problems"])
    return {
        f"{name}_{p:g}": array
        for p in cell.settings["exponents"]
        for name, array in _both_paths(cell, problems, p).items()
    }


def _both_paths(cell: Cell, problems: _Problems, p: float) -> dict[str, np.ndarray]:
    """What is recorded of one p."""
    apart = jax.jit(jax.vmap(jax.vmap(partial(direction_divergence, p=p), (0, None))))
    found: dict[str, np.ndarray] = {}
    for scope, tokens in ((GLOBAL, problems.best), (LOCAL, problems.local)):
        svms = {q: _solved(problems.data, tokens, q) for q in EXPONENTS}
        paths = _paths(cell, scope, problems.data, svms[p], p)
        W = jnp.stack([path.value for path in paths])
        certified = np.stack([path.converged for path in paths])

        def measured(goal: Array, W: Array = W, certified: np.ndarray = certified) -> np.ndarray:
            return np.where(certified, np.asarray(apart(W, goal)), np.nan)

        curves = [measured(svm.value) for svm in svms.values()]
        excess = np.stack([path.certificate["cone_excess"] for path in paths])
        agreeing = np.stack([path.certificate["starts_agreeing"] for path in paths])
        found |= {
            f"{scope}_radius": np.asarray(cell.settings[scope]),
            f"{scope}_divergence": np.stack(curves, axis=1),
            f"{scope}_certified": certified,
            f"{scope}_gap": np.stack([path.certificate["relative_gap"] for path in paths]),
            f"{scope}_agreeing": agreeing,
            f"{scope}_tokens": tokens,
            f"{scope}_svm_norm": svms[p].certificate["norm_upper"],
        }
        if scope == LOCAL:
            best = _solved(problems.data, problems.best, p)
            found["local_to_global"] = measured(best.value)
            found["local_on_border"] = np.abs(excess) <= CONE_SLACK
    return found


def _solved(data: TokenSelection, tokens: np.ndarray, q: float) -> Solution:
    """The attention SVMs of all problems; those of the pool were chosen certified."""
    svm = attention_svm_batch(data.X, data.z, tokens, q)
    svm.unwrap()
    return svm


def _paths(cell: Cell, scope: str, data: TokenSelection, svm: Solution, p: float) -> list[Solution]:
    """The paths of one scope, with radii in units of each SVM's norm."""
    s, found = cell.settings, []
    for e, norm in enumerate(svm.certificate["norm_upper"]):
        cone = None
        if scope == LOCAL:
            cone = Cone(svm.value[e] / norm, jnp.asarray(s["width"]))
        problem = TokenSelection(data.X[e], data.y[e], data.z[e], data.v[e])
        radii = [float(r * norm) for r in s[scope]]
        key = jax.random.key(cell.seed)
        path = regularisation_path(
            problem, radii, p, key=key, starts=s["starts"], cone=cone, tolerance=1e-6
        )
        found.append(path)
    return found


def _by_exponent(records: Sequence[Record]) -> dict[float, Mapping[str, np.ndarray]]:
    """The arrays of each p, under their names without it."""
    found = {}
    for p, record in itertools.product(EXPONENTS, records):
        if p in record.cell.settings["exponents"]:
            ending = f"_{p:g}"
            names = [name for name in record.arrays if name.endswith(ending)]
            found[p] = {name.removesuffix(ending): record.arrays[name] for name in names}
    return found


def _last(curves: np.ndarray) -> np.ndarray:
    """The last certified value of each curve, NaN if there is none."""
    finite = np.isfinite(curves)
    place = curves.shape[-1] - 1 - np.flip(finite, -1).argmax(-1)
    return np.take_along_axis(curves, place[..., None], -1)[..., 0]


def _median(values: np.ndarray) -> float:
    kept = values[np.isfinite(values)]
    return float(np.median(kept)) if len(kept) else np.nan


class _End(NamedTuple):
    """Divergences at the last certified radius of each problem: own p, nearest other p."""

    own: np.ndarray
    other: np.ndarray


def _end(a: Mapping[str, np.ndarray], p: float, scope: str) -> _End:
    last = _last(a[f"{scope}_divergence"])
    index = EXPONENTS.index(p)
    return _End(last[:, index], np.delete(last, index, axis=1).min(axis=1))


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Divergence along the paths, to the SVM of the own p and to the nearest other one."""
    rows = []
    for (p, a), scope in itertools.product(_by_exponent(records).items(), (GLOBAL, LOCAL)):
        own = a[f"{scope}_divergence"][:, EXPONENTS.index(p)]
        radius, certified = a[f"{scope}_radius"], a[f"{scope}_certified"]
        end = _end(a, p, scope)
        row = {"p": p, "path": scope, "problems": len(own)}
        for shown in SHOWN:
            row[f"D to own, R = {shown:g} norms"] = _median(own[:, radius == shown])
        row["largest R"] = float(radius.max())
        row["D to own, last"] = _median(end.own)
        row["D to the nearest other p, last"] = _median(end.other)
        row["own p nearest"] = f"{int((end.own < end.other).sum())} of {len(own)}"
        if scope == LOCAL:
            row["D to the global choice, last"] = _median(_last(a["local_to_global"]))
            row["on the border of the cone"] = int((a["local_on_border"] & certified).sum())
        row["largest gap kept"] = float(a[f"{scope}_gap"][certified].max(initial=0))
        row["not certified"] = f"{int((~certified).sum())} of {certified.size}"
        rows.append(row)
    import pandas as pd

    return pd.DataFrame(rows)


def _caption(found: dict[float, Mapping[str, np.ndarray]]) -> str:
    """What was measured, in words."""
    said = []
    for scope in (GLOBAL, LOCAL):
        ends = [_end(a, p, scope) for p, a in found.items()]
        own, other = (np.concatenate([end[i] for end in ends]) for i in range(2))
        said.append(
            f"on {int((own < other).sum())} of {own.size} {scope} paths (median divergence "
            f"{_median(own):.2g}, to the nearest other p {_median(other):.2g})"
        )
    every = [a[f"{scope}_certified"] for a in found.values() for scope in (GLOBAL, LOCAL)]
    lost, count = sum(int((~c).sum()) for c in every), sum(c.size for c in every)
    border = [a["local_on_border"] & a["local_certified"] for a in found.values()]
    return (
        "Does the path turn to the SVM of its own p? At the last certified radius that SVM is the "
        f"nearest {said[0]} and {said[1]}. {lost} of {count} points are left out because they were "
        f"not certified; {sum(int(b.sum()) for b in border)} local points lie on the border of "
        "their cone. Dotted: the power -2."
    )


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """Divergence to the three SVMs against the radius: global paths above, local ones below."""
    import matplotlib.pyplot as plt

    found = _by_exponent(records)
    count = max(1, len(found))
    figure, axes = plt.subplots(
        2,
        count,
        figsize=(1 + 3 * count, 5.6),
        sharex="row",
        sharey=True,
        layout="constrained",
        squeeze=False,
    )
    for column, (p, a) in enumerate(found.items()):
        for row, scope in enumerate((GLOBAL, LOCAL)):
            axis, radius = axes[row, column], a[f"{scope}_radius"]
            axis.set_title(f"{scope} path, p = {p:g}")
            for k, q in enumerate(EXPONENTS):
                curves = a[f"{scope}_divergence"][:, k]
                lines = axis.loglog(radius, curves.T, "o-", color=f"C{k}", ms=3, lw=1)
                if lines:
                    lines[0].set_label(f"SVM of q = {q:g}")
            axis.loglog(radius, 0.1 * (radius / radius[0]) ** -2, "k:", lw=1)
            axis.set_xticks(radius, [f"{r:g}" for r in radius])
            axis.set_xticks([], minor=True)
            axis.set_xlabel("R over norm of the SVM")
    for axis in axes[:, 0]:
        axis.set_ylabel("directional divergence")
    axes[0, 0].legend(frameon=False, fontsize=8)
    return (Panel("Regularisation paths, global and local", _caption(found), figure),)


EXPERIMENT = Experiment(
    name="path",
    paper="julistiono2024optimizing",
    title="Regularisation paths, global and local",
    question="Does the regularisation path turn to the attention SVM of its own p?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        f"{name}_{p:g}": axes
        for p in EXPONENTS
        for scope in (GLOBAL, LOCAL)
        for name, axes in {
            f"{scope}_radius": (f"{scope}_radius_{p:g}",),
            f"{scope}_divergence": ("problem", "q", f"{scope}_radius_{p:g}"),
            f"{scope}_certified": ("problem", f"{scope}_radius_{p:g}"),
            f"{scope}_gap": ("problem", f"{scope}_radius_{p:g}"),
            f"{scope}_agreeing": ("problem", f"{scope}_radius_{p:g}"),
            f"{scope}_tokens": ("problem", "sample"),
            f"{scope}_svm_norm": ("problem",),
            "local_to_global": ("problem", f"local_radius_{p:g}"),
            "local_on_border": ("problem", f"local_radius_{p:g}"),
        }.items()
    },
    note=NOTE,
)
