r"""Do the printed rates describe how fast mirror descent finds its attention SVM?

Un-normalised steps, as in the theory, on constructed problems on which every other token is a
support token (delta = 1/4): 10^6 steps, then the flow that they follow, in log time up to
log k of about 10^3, and once more with a finer clock up to a norm of 300.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.bounds.optimisation.julistiono2024_cone import julistiono2024_mu_0
from attlas.bounds.optimisation.julistiono2024_rate import julistiono2024_rate
from attlas.core.norms.entrywise import entrywise_norm
from attlas.data.token_selection import TokenSelection, make_support_selection
from attlas.measures.attention.direction import direction_divergence
from attlas.measures.statistics.path_exponents import (
    PathExponents,
    end_gap,
    entry_times,
    interpolated,
    path_exponents,
)
from attlas.panels.lines import Lines
from attlas.panels.palette import PALETTE
from attlas.panels.panel import Panel, Quantity
from attlas.panels.plot import Plot
from attlas.panels.summary import largest, least, mean_and_interval, median, total
from attlas.panels.table import Column, Table
from attlas.runs.experiment import Experiment
from attlas.runs.grid import Grid
from attlas.runs.join import join
from attlas.runs.settings import Settings
from attlas.solvers.attention_svm import attention_svm_batch
from attlas.solvers.selection_geometry import selection_geometry
from attlas.tasks.token_selection.flow import mirror_flow
from attlas.tasks.token_selection.training import train_selection_ensemble
from attlas.training.trajectory import log_spaced

REACH = {1.5: 2000.0, 2.0: 1400.0, 3.0: 1000.0}
"""Norm at which log k is about 10^3 (log k tends to ||W|| / ||W_mm||)."""
RECORDS = 48
KINDS = ("plain", "flow", "fine")
RANGES = {"plain": (5.0, 13.0), "flow": (100.0, 700.0)}
"""The values of log k between which exponents are fitted, past the transient of the start."""
NOTE = (
    "Not in the paper, whose plots use normalised steps, to which its rates do not apply. Rate "
    "$\\eta = 1$, $W(0)$ Gaussian, logistic loss, score gaps of one. 'Flow' is "
    "$d\\nabla\\psi(W)/dt = -\\nabla L(W)$ in rescaled steps, with $k = t / \\eta$ accumulated as "
    "a logarithm: it is not discrete descent; the table says how far apart the two are where both "
    "were run, and how much a finer clock changes. The printed exponent is that of the printed "
    "rate fitted at the same norms. The problems have no token behind the support tokens: errors "
    "of other tokens, exponentially small in the norm, are absent, and $W_{mm}$ has no zero entry. "
    "Two errors of the direction compete, each squared in D: the memory of $W(0)$, of order "
    "$\\|W\\|^{-(p-1)}$, and what the samples lag behind one another, $\\|W\\|^{-1}$. At p = 3 "
    "plain steps see only the first, power -4."
)
GRID = Grid(
    each={"n": [2], "p": [1.5, 2.0, 3.0]},
    fixed={
        "T": lambda s: s.n,
        "d": lambda s: 2 * s.n,
        "rate": 1.0,
        "steps": 1_000_000,
        "flow_steps": 10_000,
        "flow_reach": lambda s: REACH.get(s.p, 1400.0),
        "fine_steps": 12_000,
        "fine_reach": 300.0,
    },
    smoke={"p": [2.0], "members": 2, "steps": 5_000, "flow_steps": 500, "fine_steps": 600},
    quick={"members": 3},
    paper={"n": [2, 3], "members": 24},
)


def run(s: Settings, key: Array) -> xr.Dataset:
    """Plain steps, the flow and the flow on a finer clock, from the same starts."""
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(s.members))
    data = jax.jit(jax.vmap(partial(make_support_selection, n=s.n, T=s.T, d=s.d)))(keys)
    # Drawn on the host: each JAX draw of its own costs a second of compilation.
    draws = [np.random.default_rng([s.seed, e]).normal(size=(s.d, s.d)) for e in range(s.members)]
    start = jnp.asarray(np.stack(draws))
    svm = attention_svm_batch(data.X, data.z, data.tokens, s.p)
    at = log_spaced(s.steps, RECORDS)
    plain = train_selection_ensemble(
        data, start, p=s.p, learning_rate=s.rate, steps=s.steps, record_at=at, normalized=False
    )
    bare, flows = TokenSelection(data.X, data.y, data.z, data.v), []
    # One schedule length, so that both clocks share a program.
    for steps, reach in ((s.flow_steps, s.flow_reach), (s.fine_steps, s.fine_reach)):
        spaced = np.unique(np.geomspace(10, steps, RECORDS).astype(int)).tolist()
        follow = partial(mirror_flow, p=s.p, steps=steps, step=reach / steps, record_at=spaced)
        flows.append(jax.vmap(follow)(bare, start))
    with np.errstate(divide="ignore"):  # step 0
        log_k = np.tile(np.log(np.asarray(plain.steps, float)), (s.members, 1))
    paths = [plain.W, *(flow.W for flow in flows)]
    W, ends = jnp.concatenate(paths, axis=1), np.cumsum([W.shape[1] for W in paths])[:-1]
    goal = jnp.where(svm.converged[:, None, None], svm.value, jnp.nan)
    norm, divergence, width = jax.jit(jax.vmap(partial(measured, p=s.p)))(data, goal, W)
    found = [
        xr.Dataset(
            {n: (("kind", "member", "record"), [np.asarray(a)]) for n, a in each.items()}
        ).assign_coords(kind=[kind])
        for kind, *arrays in zip(
            KINDS,
            (log_k, *(flow.log_time - float(np.log(s.rate)) for flow in flows)),
            *(np.split(np.asarray(a), ends, axis=1) for a in (norm, divergence)),
            strict=True,
        )
        for each in [dict(zip(("log_k", "norm", "divergence"), arrays, strict=True))]
    ]
    known = {
        "solved": svm.converged,
        "svm_norm": svm.certificate["norm_upper"],
        "cone_width": width,
    }
    whole = join(found).assign({name: ("member", np.asarray(a)) for name, a in known.items()})
    return whole.merge(compared(whole, s))


def measured(data: TokenSelection, target: Array, W: Array, p: float) -> tuple[Array, Array, Array]:
    """Norm and divergence along the paths of one problem, and the printed mu_0 of its cone."""
    assert data.tokens is not None
    geometry = selection_geometry(data, data.tokens, target, p)
    d = target.shape[0]
    width = julistiono2024_mu_0(geometry.delta, geometry.A, p, d, constants="printed")
    norm = jax.vmap(partial(entrywise_norm, p=p))(W)
    return norm, jax.vmap(partial(direction_divergence, target=target, p=p))(W), width


def compared(paths: xr.Dataset, s: Settings) -> xr.Dataset:
    """Exponents beside the printed ones, entry into the cone, and how far the kinds are apart."""
    log_k, norm, D = (paths[name].values for name in ("log_k", "norm", "divergence"))
    rate = partial(julistiono2024_rate, p=s.p)
    fits = [path_exponents(log_k[k], norm[k], D[k], rate, b) for k, b in enumerate(RANGES.values())]
    reach = np.nanmax(norm[1:], axis=2).min()
    clocks = [interpolated(np.array([reach]), norm[k], log_k[k], False)[:, 0] for k in (1, 2)]
    # The printed rate and the proved power through the median at the first fitted point.
    x = np.geomspace(float(paths.svm_norm.mean()) * RANGES["flow"][0], s.flow_reach, 30)
    first = np.nanmedian(interpolated(x[:1], norm[1], D[1]))
    return xr.Dataset(
        {
            "exponents": (("fit", "exponent", "member"), fits),
            "entered": ("member", entry_times(log_k[1], D[1], paths.cone_width.values)),
            "norm_gap": ("member", end_gap(log_k[0], norm[0], log_k[2], norm[2])),
            "divergence_gap": ("member", end_gap(log_k[0], D[0], log_k[2], D[2])),
            "clock_reach": reach,
            "clock_log_k": (("clock", "member"), clocks),
            "guide_norm": ("point", x),
            "guide_printed": ("point", first * rate(x) / rate(x)[0]),
            "guide_power": ("point", first * (x / x[0]) ** -min(2.0, 2 * (s.p - 1))),
        },
        {"fit": list(RANGES), "exponent": list(PathExponents._fields), "clock": list(KINDS[1:])},
    )


def exponent(name: str, fit: str = "flow") -> Callable[[xr.Dataset], xr.DataArray]:
    """One of the fitted numbers; growth in norms of the SVM."""

    def chosen(data: xr.Dataset) -> xr.DataArray:
        found = data.exponents.sel(fit=fit, exponent=name)
        return found / data.svm_norm if name == "growth" else found

    return chosen


def smallest(name: str, over: str = "") -> Callable[[xr.Dataset], xr.DataArray]:
    """A quantity, or its ratio to another, of the smallest problems: every scale has them."""
    return lambda data: (data[name] / data[over] if over else data[name]).isel(n=0)


def growth_caption(data: xr.Dataset) -> str:
    """The norm's slope in log k."""
    slopes = exponent("growth")(data).isel(n=0).mean("member")
    pairs = zip(data.p.values, slopes.values, strict=True)
    told = [f"{slope:.3f} at p = {p:g}" for p, slope in pairs if np.isfinite(slope)]
    low, high = RANGES["flow"]
    return (
        f"Does the norm grow like $\\log k$ (Lemma 30)? Its slope in $\\log k$ over {low:g} to "
        f"{high:g}, in units of the norm of the SVM, is "
        f"{', '.join(told) or 'not available at this scale'}. Dots are plain steps; lines are "
        "the flow, not discrete descent."
    )


def rate_caption(data: xr.Dataset) -> str:
    """Measured beside printed exponents."""
    measured, printed, falls = (
        exponent(name)(data).isel(n=0) for name in ("measured", "printed", "falls")
    )
    means = zip(data.p.values, measured.mean("member"), printed.mean("member"), strict=True)
    told = [f"{a:.2f} instead of {b:.2f} at p = {p:g}" for p, a, b in means if np.isfinite(a)]
    kind = "falls faster than" if falls.min() > 1 else "does not always fall as fast as"
    answer = f"the divergence {kind} they say, with the exponents {', '.join(told)}"
    return (
        "Do the printed rates describe what happens? On the flow up to $\\log k$ = "
        f"{RANGES['flow'][1]:g}: {answer if told else 'not available at this scale'}. Dashed: the "
        "printed rate through the first fitted point; dotted: the power $-\\min(2, 2(p - 1))$. "
        "Dots: plain steps, whose range is too short to tell the rates apart."
    )


def each_path(y: Quantity, x: Quantity, colour: str = "", **axes: Any) -> Panel:
    """The paths of every problem in logarithms: dots are plain steps, lines the flow."""
    look = {"colour": colour, "band": None, "ink": PALETTE[0]}
    flow = Lines(
        y, x, at={"kind": "flow"}, label="flow", xscale="log", yscale="log", **look, **axes
    )
    plain = Lines(y, x, at={"kind": "plain"}, label="plain steps", style="o", **look)
    return flow + (replace(plain, legend=False) if colour else plain)


def unit(data: xr.Dataset) -> xr.DataArray:
    """Two points of the line of slope 1."""
    return xr.DataArray([1.0, 1000.0], dims="end")


PLAIN, FLOW = (f"{kind}, log k {low:g} to {high:g}" for kind, (low, high) in RANGES.items())
EXPERIMENT = Experiment(
    title="Rates of plain mirror descent and of its flow",
    question=__doc__,
    grid=GRID,
    run=run,
    table=Table(
        ["p", "n"],
        [
            Column("seeds", "solved", total),
            Column(f"{PLAIN}: exponent", exponent("measured", "plain"), mean_and_interval),
            Column("plain: printed", exponent("printed", "plain")),
            Column(f"{FLOW}: exponent", exponent("measured"), mean_and_interval),
            Column("flow: printed", exponent("printed")),
            Column("D / printed rate falls by", exponent("falls"), least),
            Column("d norm / d log k, over norm of SVM", exponent("growth")),
            Column("log k reached", lambda data: data.log_k.sel(kind="flow").max("record"), least),
            Column("in the cone of (8) from log k (infinite: never)", "entered", median),
            Column("fine flow against plain steps at the last one: norm", "norm_gap", largest),
            Column("fine flow against plain steps at the last one: D", "divergence_gap", largest),
            Column("fine clock: norm", "clock_reach"),
            Column("fine clock: log k there", "clock_log_k", at={"clock": "fine"}),
            Column(
                "fine clock: change of log k", lambda d: abs(d.clock_log_k.diff("clock")), largest
            ),
            Column("SVMs unsolved", lambda data: data.solved == 0, total),
        ],
    ),
    figures=[
        Plot(
            "Norm against log time",
            each_path(
                smallest("norm", over="svm_norm"),
                smallest("log_k"),
                colour="p",
                xlim=(0.9, None),
                ylim=(0.5, None),
                xlabel="$\\log k$",
                ylabel="norm of $W$ over norm of its SVM",
                width=1.6,
            )
            + Lines(unit, unit, style=":", label="$\\log k$ (slope 1)"),
            growth_caption,
        ),
        Plot(
            "Divergence against the norm",
            each_path(
                smallest("divergence"),
                smallest("norm"),
                panel="p",
                title="$p = {p:g}$",
                xlabel="norm of $W$",
                ylabel="directional Bregman divergence",
            )
            + Lines(
                smallest("guide_printed"),
                smallest("guide_norm"),
                style="--",
                label="printed rate (Lemma 29)",
            )
            + Lines(
                smallest("guide_power"),
                smallest("guide_norm"),
                style=":",
                ink=PALETTE[1],
                label="power $-\\min(2, 2(p-1))$",
            ),
            rate_caption,
        ),
    ],
    note=NOTE,
)
