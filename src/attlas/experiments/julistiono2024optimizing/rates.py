r"""Do the printed rates describe how fast mirror descent finds its attention SVM?

Un-normalised steps, as in the theory, on constructed problems on which every other token is a
support token (delta = 1/4): 10^6 steps, then the flow that they follow, in log time up to
log k of about 10^3, and once more with a finer clock up to a norm of 300.
"""

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.bounds.julistiono2024_cone import julistiono2024_mu_0
from attlas.core.norms import entrywise_norm
from attlas.data.token_selection import TokenSelection, make_support_selection
from attlas.measures.direction import direction_divergence
from attlas.measures.trend import Slope, log_slope
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.solvers.attention_svm import attention_svm_batch
from attlas.solvers.selection_geometry import selection_geometry
from attlas.tasks.token_selection.flow import mirror_flow
from attlas.tasks.token_selection.training import train_selection_ensemble
from attlas.training.trajectory import Trajectory, log_spaced

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

EXPONENTS = (1.5, 2.0, 3.0)
REACH = {1.5: 2000.0, 2.0: 1400.0, 3.0: 1000.0}
"""Norm at which log k is about 10^3 (log k tends to ||W|| / ||W_mm||)."""
FINE_REACH = 300.0
RECORDS = 48
PLAIN, FLOW, FINE = KINDS = "plain", "flow", "fine"
RANGES = {PLAIN: (5.0, 13.0), FLOW: (100.0, 700.0)}
"""The values of log k between which exponents are fitted, past the transient of the start."""
POINTS = 16
NOTE = (
    "Not in the paper, whose plots use normalised steps, to which its rates do not apply. Rate "
    "eta = 1, W(0) Gaussian, logistic loss, score gaps of one. 'Flow' is d/dt grad psi(W) = "
    "-grad L(W) in rescaled steps, with k = t / eta accumulated as a logarithm: it is not discrete "
    "descent; the table says how far apart the two are where both were run, and how much a "
    "finer clock changes. The printed exponent is that of the printed rate fitted at the same "
    "norms. The problems have no token behind the support tokens: errors of other tokens, "
    "exponentially small in the norm, are absent, and W_mm has no zero entry. Two errors of the "
    "direction compete, each squared in D: the memory of W(0), of order ||W||^-(p-1), and what the "
    "samples lag behind one another, ||W||^-1. At p = 3 plain steps see only the first, power -4."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each p (smoke: p = 2 alone), and for each size of problem at paper scale."""
    sizes = [(2, 2, 4), (3, 3, 6)] if scale is Scale.PAPER else [(2, 2, 4)]
    smoke = scale is Scale.SMOKE
    seeds = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.PAPER: 24}[scale]
    short = 20 if smoke else 1
    return tuple(
        Cell(
            {
                **dict(zip(("n", "T", "d"), size, strict=True)),
                "p": p,
                "seeds": seeds,
                "rate": 1.0,
                "steps": 5_000 if smoke else 1_000_000,
                "flow_steps": 10_000 // short,
                "flow_reach": REACH[p],
                "fine_steps": 12_000 // short,
                "fine_reach": FINE_REACH,
            }
        )
        for size, p in itertools.product(sizes, (2.0,) if smoke else EXPONENTS)
    )


@partial(jax.jit, static_argnames=("n", "T", "d"))
def _problems(seed: Array, members: Array, n: int, T: int, d: int) -> TokenSelection:
    """Constructed problems; member e is the same whatever their number."""

    def draw(member: Array) -> TokenSelection:
        key = jax.random.fold_in(jax.random.key(seed), member)
        return make_support_selection(key, n, T, d)

    return jax.vmap(draw)(members)


def _starts(seed: int, count: int, d: int) -> Array:
    """Gaussian W(0), drawn on the host: each JAX draw of its own costs a second of compilation."""
    draws = [np.random.default_rng([seed, e]).normal(size=(d, d)) for e in range(count)]
    return jnp.asarray(np.stack(draws))


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Plain steps, the flow and the flow on a finer clock, from the same starts."""
    s, p = cell.settings, cell.settings["p"]
    members = jnp.arange(s["seeds"])
    data = _problems(jnp.asarray(cell.seed), members, s["n"], s["T"], s["d"])
    start = _starts(cell.seed, s["seeds"], s["d"])
    assert data.tokens is not None
    svm = attention_svm_batch(data.X, data.z, data.tokens, p)
    plain = train_selection_ensemble(
        data,
        start,
        p=p,
        learning_rate=s["rate"],
        steps=s["steps"],
        record_at=log_spaced(s["steps"], RECORDS),
        normalized=False,
    )
    flow = _followed(data, start, p, s["flow_steps"], s["flow_reach"])
    fine = _followed(data, start, p, s["fine_steps"], s["fine_reach"])
    W = jnp.concatenate([plain.W, flow.W, fine.W], axis=1)
    norm, divergence, width = jax.jit(jax.vmap(partial(_measured, p=p)))(data, svm.value, W)
    found = {"solved": np.asarray(svm.converged), "svm_norm": svm.certificate["norm_upper"]}
    found["cone_width"] = np.asarray(width)
    ends = np.cumsum([len(plain.steps), flow.W.shape[1]])
    for measured, values in (("norm", norm), ("divergence", divergence)):
        for kind, part in zip(KINDS, np.split(np.asarray(values), ends, axis=1), strict=True):
            found[f"{kind}_{measured}"] = part
    with np.errstate(divide="ignore"):  # step 0
        log_k = np.log(np.asarray(plain.steps, float))
    found["plain_log_k"] = np.tile(log_k, (s["seeds"], 1))
    found["flow_log_k"] = np.asarray(flow.log_time - float(np.log(s["rate"])))
    found["fine_log_k"] = np.asarray(fine.log_time - float(np.log(s["rate"])))
    return found


def _followed(data: TokenSelection, start: Array, p: float, steps: int, reach: float) -> Trajectory:
    """Flows up to about a norm; one schedule length, so that both clocks share a program."""
    spaced = np.unique(np.geomspace(10, steps, RECORDS).astype(int))
    bare = TokenSelection(data.X, data.y, data.z, data.v)
    flow = partial(mirror_flow, p=p, steps=steps, step=reach / steps, record_at=spaced.tolist())
    return jax.vmap(flow)(bare, start)


def _measured(
    data: TokenSelection, target: Array, W: Array, p: float
) -> tuple[Array, Array, Array]:
    """Norm and divergence along the paths of one problem, and the printed mu_0 of its cone."""
    assert data.tokens is not None
    geometry = selection_geometry(data, data.tokens, target, p)
    width = julistiono2024_mu_0(geometry.delta, geometry.A, p, target.shape[0])
    norm = jax.vmap(partial(entrywise_norm, p=p))(W)
    return norm, jax.vmap(partial(direction_divergence, target=target, p=p))(W), width


def printed_rate(x: np.ndarray, p: float) -> np.ndarray:
    """Lemma 29's rate in the norm x, and with x = log k that of the rate theorem.

    Args:
        x: norm ||W||_p, above 1.
        p: exponent of the training.

    Returns:
        log x / x for p > 2, (log x)^2 / x for p = 2, x^-(p-1) for p < 2.

    Examples:
        >>> printed_rate(np.array([100.0]), 1.5).tolist()
        [0.1]
    """
    if p < 2:
        return x ** -(p - 1)
    return np.log(x) ** (2 if p == 2 else 1) / x


def _between(grid: np.ndarray, axis: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values at the points of a grid, linear in both logarithms, one row a problem."""
    found = []
    for a, v in zip(axis, values, strict=True):
        kept = a > 0
        found.append(np.exp(np.interp(np.log(grid), np.log(a[kept]), np.log(v[kept]))))
    return np.stack(found)


class _Fit(NamedTuple):
    """Exponents in the norm over a range of log k, by problem.

    Attributes:
        measured: exponent of the divergence.
        printed: exponent of the printed rate at the same norms.
        falls: divergence over printed rate, first over last.
        growth: norm per unit of log k, over the norm of the SVM.
    """

    measured: Slope
    printed: Slope
    falls: np.ndarray
    growth: np.ndarray


def _fit(a: Mapping[str, np.ndarray], p: float, kind: str) -> _Fit | None:
    """The fit over the certified problems, if all of them go far enough."""
    kept = a["solved"]
    log_k = a[f"{kind}_log_k"][kept]
    low, high = RANGES[kind]
    if not len(log_k) or log_k[:, -1].min() < high:
        return None
    grid = np.geomspace(low, high, POINTS)
    x = _between(grid, log_k, a[f"{kind}_norm"][kept])
    D = _between(grid, log_k, a[f"{kind}_divergence"][kept])
    rate = printed_rate(x, p)
    share = D / rate
    growth = (x[:, -1] - x[:, 0]) / (high - low) / a["svm_norm"][kept]
    return _Fit(log_slope(x, D), log_slope(x, rate), share[:, 0] / share[:, -1], growth)


def _interval(found: Slope) -> str:
    return f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _agreement(a: Mapping[str, np.ndarray]) -> dict[str, float]:
    """How far plain steps and the flow, and the two clocks of the flow, are apart."""
    kept = a["solved"]
    if not kept.any():
        return {}
    at = {name: values[kept] for name, values in a.items() if values.ndim == 2}
    last = at["plain_log_k"][0, -1:]
    norm, divergence = (
        _between(last, at["fine_log_k"], at[f"fine_{name}"])[:, 0]
        for name in ("norm", "divergence")
    )
    reach = min(at["fine_norm"][:, -1].min(), at["flow_norm"][:, -1].min())
    clocks = [
        np.array([np.interp(reach, x, k) for x, k in zip(norms, log_k, strict=True)])
        for norms, log_k in ((at[f"{f}_norm"], at[f"{f}_log_k"]) for f in (FLOW, FINE))
    ]
    apart_norm = np.abs(norm / at["plain_norm"][:, -1] - 1)
    apart_D = np.abs(divergence / at["plain_divergence"][:, -1] - 1)
    return {
        "fine flow against plain steps at the last one: norm": float(apart_norm.max()),
        "fine flow against plain steps at the last one: D": float(apart_D.max()),
        "fine clock: norm": float(reach),
        "fine clock: log k there": float(np.mean(clocks[1])),
        "fine clock: change of log k": float(np.abs(clocks[0] - clocks[1]).max()),
    }


def _in_cone(a: Mapping[str, np.ndarray]) -> float:
    """Median log k from which the flow stays in the printed cone, infinite if never."""
    inside = a["flow_divergence"] <= a["cone_width"][:, None]
    stays = np.flip(np.logical_and.accumulate(np.flip(inside, 1), 1), 1)
    first = np.take_along_axis(a["flow_log_k"], stays.argmax(1)[:, None], 1)[:, 0]
    return float(np.median(np.where(stays.any(1), first, np.inf)))


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Exponents of the divergence in the norm beside the printed ones, and the norm's growth."""
    rows = []
    for record in records:
        s, a = record.cell.settings, record.arrays
        p, kept = s["p"], a["solved"]
        row = {"p": p, "n, T, d": f"{s['n']}, {s['T']}, {s['d']}", "seeds": int(kept.sum())}
        for kind in (PLAIN, FLOW):
            fit = _fit(a, p, kind)
            low, high = RANGES[kind]
            name = f"{kind}, log k {low:g} to {high:g}: exponent"
            row[name] = _interval(fit.measured) if fit else "not reached"
            row[f"{kind}: printed"] = fit.printed.mean if fit else np.nan
            if kind == FLOW:
                row["D / printed rate falls by"] = fit.falls.min() if fit else np.nan
                row["d norm / d log k, over norm of SVM"] = (
                    float(np.mean(fit.growth)) if fit else np.nan
                )
        row["log k reached"] = float(a["flow_log_k"][kept, -1].min()) if kept.any() else np.nan
        row["in the cone of (8) from log k (infinite: never)"] = _in_cone(a)
        row |= _agreement(a)
        row["SVMs unsolved"] = int((~kept).sum())
        rows.append(row)
    import pandas as pd

    return pd.DataFrame(rows)


def _first_of_each(records: Sequence[Record]) -> dict[float, Mapping[str, np.ndarray]]:
    """The records of the smallest problems, which every scale has, by p."""
    found = {r.cell.settings["p"]: r.arrays for r in reversed(records)}
    return {p: found[p] for p in EXPONENTS if p in found}


def _growth_panel(found: dict[float, Mapping[str, np.ndarray]]) -> Panel:
    """Norm over that of the SVM against log k."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
    growth = []
    for index, (p, a) in enumerate(found.items()):
        kept = a["solved"]
        for kind, style in ((PLAIN, "o"), (FLOW, "-")):
            log_k = a[f"{kind}_log_k"][kept]
            size = (a[f"{kind}_norm"] / a["svm_norm"][:, None])[kept]
            lines = axis.loglog(
                np.where(log_k >= 1, log_k, np.nan).T,
                size.T,
                style,
                color=f"C{index}",
                ms=3,
                lw=1,
            )
            if lines:
                lines[0].set_label(f"p = {p:g}, {'plain steps' if kind == PLAIN else 'flow'}")
        fit = _fit(a, p, FLOW)
        growth += [f"{np.mean(fit.growth):.3f} at p = {p:g}"] if fit else []
    reference = np.array([1.0, 1000.0])
    axis.loglog(reference, reference, "k:", lw=1, label="log k (slope 1)")
    axis.set_xlabel("log k")
    axis.set_ylabel("norm of W over norm of its SVM")
    axis.legend(frameon=False, fontsize=8)
    caption = (
        "Does the norm grow like log k (Lemma 30)? Its slope in log k over "
        f"{RANGES[FLOW][0]:g} to {RANGES[FLOW][1]:g}, in units of the norm of the SVM, is "
        f"{', '.join(growth) or 'not available at this scale'}. Dots are plain steps; lines are "
        "the flow, not discrete descent."
    )
    return Panel("Norm against log time", caption, figure)


def _rate_panel(found: dict[float, Mapping[str, np.ndarray]]) -> Panel:
    """Divergence against the norm, the printed rate through the first fitted point."""
    import matplotlib.pyplot as plt

    count = max(1, len(found))
    figure, axes = plt.subplots(
        1, count, figsize=(1 + 3 * count, 3.4), layout="constrained", squeeze=False
    )
    said, bound = [], []
    for axis, (p, a) in zip(axes[0], found.items(), strict=False):
        kept = a["solved"]
        for kind, style in ((PLAIN, "o"), (FLOW, "-")):
            norm, D = a[f"{kind}_norm"][kept], a[f"{kind}_divergence"][kept]
            lines = axis.loglog(norm.T, D.T, style, color="C0", ms=3, lw=1, alpha=0.7)
            if lines:
                lines[0].set_label("plain steps" if kind == PLAIN else "flow")
        fit = _fit(a, p, FLOW)
        if fit and kept.any():
            x = np.geomspace(a["svm_norm"][kept].mean() * RANGES[FLOW][0], REACH[p], 30)
            middle = np.median(_between(x[:1], a["flow_norm"][kept], a["flow_divergence"][kept]))
            rate = printed_rate(x, p)
            axis.loglog(x, middle * rate / rate[0], "k--", lw=1, label="printed rate (Lemma 29)")
            power = -min(2.0, 2 * (p - 1))
            axis.loglog(x, middle * (x / x[0]) ** power, "C3:", label=f"power {power:g}")
            said.append(f"{fit.measured.mean:.2f} instead of {fit.printed.mean:.2f} at p = {p:g}")
            bound.append(fit.falls.min() > 1)
        axis.set_title(f"p = {p:g}")
        axis.set_xlabel("norm of W")
        axis.legend(frameon=False, fontsize=8, loc="lower left")
    axes[0, 0].set_ylabel("directional Bregman divergence")
    answer = "not available at this scale"
    if said:
        kind = "falls faster than" if all(bound) else "does not always fall as fast as"
        answer = f"the divergence {kind} they say, with the exponents {', '.join(said)}"
    caption = (
        f"Do the printed rates describe what happens? On the flow up to log k = "
        f"{RANGES[FLOW][1]:g}: {answer}. Dashed: the printed rate through the first fitted point; "
        "dotted: the power -min(2, 2(p - 1)). Dots: plain steps, whose range is too short to "
        "tell the rates apart."
    )
    return Panel("Divergence against the norm", caption, figure)


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """Norm against log time, and divergence against the norm with the printed rates."""
    found = _first_of_each(records)
    return _growth_panel(found), _rate_panel(found)


EXPERIMENT = Experiment(
    name="rates",
    paper="julistiono2024optimizing",
    title="Rates of plain mirror descent and of its flow",
    question="Do the printed rates describe how fast mirror descent finds its attention SVM?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        "solved": ("member",),
        "svm_norm": ("member",),
        "cone_width": ("member",),
        **{
            f"{kind}_{name}": ("member", f"{kind}_record")
            for kind in KINDS
            for name in ("norm", "divergence", "log_k")
        },
    },
    note=NOTE,
)
