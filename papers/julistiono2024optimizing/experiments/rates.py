r"""Do the recalled rates describe how fast mirror descent finds its attention SVM?

Un-normalised steps, as in the theory, on constructed problems on which every other token is a
support token (delta = 1/4): 10^6 steps, then the flow that they follow, in log time up to
log k of about 10^3, and once more with a finer clock up to a norm of 300.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.data.token_selection import make_support_selection
from attlas.display.numbers import large_number
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import Column, Lines, largest, taken
from attlas.experiments.settings import Settings
from attlas.measures.statistics.power_law import power_law
from julistiono2024optimizing.library.measures.path_exponents import interpolated
from julistiono2024optimizing.library.token_selection.julistiono2024_rate import julistiono2024_rate
from julistiono2024optimizing.library.token_selection.long_paths import LongPaths, long_paths
from julistiono2024optimizing.library.token_selection.rate_comparison import (
    EXPONENTS,
    compare_with_rate,
)

REACH = {1.5: 2000.0, 2.0: 1400.0, 3.0: 1000.0}
"""Norm at which log k is about 10^3 (log k tends to ||W|| / ||W_mm||)."""
KINDS = ("plain", "flow", "fine")
RANGES = {"plain": (5.0, 13.0), "flow": (100.0, 700.0)}
"""The values of log k between which exponents are fitted, past the transient of the start."""
FITTED = 16
"""Points of each path between which local slopes are taken."""
CLEARLY = 0.1
"""By how much an exponent exceeds that of a power if we say that it is slower."""
GRID = Grid(
    each={"n": [2], "p": [1.5, 2.0, 3.0]},
    fixed={
        "T": lambda s: s.n, "d": lambda s: 2 * s.n, "rate": 1.0, "steps": 1_000_000,
        "flow_steps": 10_000, "flow_reach": lambda s: REACH.get(s.p, 1400.0),
        "fine_steps": 12_000, "fine_reach": 300.0,
    },
    smoke={"p": [2.0], "members": 2, "steps": 5_000, "flow_steps": 500, "fine_steps": 600},
    quick={"members": 3},
    paper={"n": [2, 3], "members": 24},
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Plain steps, the flow and the flow on a finer clock, from the same starts."""
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(s.members))
    data = jax.jit(jax.vmap(partial(make_support_selection, n=s.n, T=s.T, d=s.d)))(keys)
    # Drawn on the host: each JAX draw of its own costs a second of compilation.
    draws = [np.random.default_rng([s.seed, e]).normal(size=(s.d, s.d)) for e in range(s.members)]
    clocks = (s.flow_steps, s.flow_reach), (s.fine_steps, s.fine_reach)
    long = long_paths(data, jnp.asarray(np.stack(draws)), s.p, s.rate, s.steps, clocks, records=48)
    axes = {3: ("kind", "member", "record"), 1: ("member",)}
    named = {name: (axes[np.ndim(values)], values) for name, values in long._asdict().items()}
    paths = xr.Dataset(named, {"kind": list(KINDS)})
    return paths.merge(compared(paths, s))


def compared(paths: xr.Dataset, s: Settings) -> xr.Dataset:
    """Exponents beside the printed ones, entry into the cone, and how far the kinds are apart."""
    measured = LongPaths(*(paths[name].values for name in LongPaths._fields))
    comparison = compare_with_rate(measured, s.p, list(RANGES.values()), s.flow_reach)
    axes = dict.fromkeys(comparison._fields, ("member",)) | {
        "exponents": ("fit", "exponent", "member"), "clock_log_k": ("clock", "member"),
        "clock_reach": (), **dict.fromkeys(("guide_norm", "guide_printed", "guide_power"), "point"),
    }  # fmt: skip
    return xr.Dataset(
        {name: (axes[name], values) for name, values in comparison._asdict().items()},
        {"fit": list(RANGES), "exponent": list(EXPONENTS), "clock": list(KINDS[1:])},
    )


def exponent(name: str, fit: str = "flow") -> panels.Formula:
    """One of the fitted numbers; growth in norms of the SVM."""
    over = "svm_norm" if name == "growth" else ""
    return taken("exponents", {"fit": fit, "exponent": name}, over_name=over)


def smallest(name: str, over: str = "") -> panels.Formula:
    """A quantity, or its ratio to another, of the smallest problems: every scale has them."""
    return taken(name, at={"n": 0}, over_name=over)


def growth(data: xr.Dataset) -> dict[str, object]:
    """The norm's slope in log k, for each size of the problems."""
    slopes = exponent("growth")(data).mean("member")
    low, high = RANGES["flow"]
    texts = [
        (n, ", ".join(f"{slope:.3f} at $p = {p:g}$" for p, slope in pairs if np.isfinite(slope)))
        for n in data.n.values
        for pairs in [zip(data.p.values, slopes.sel(n=n).values, strict=True)]
    ]
    finite = slopes.values[np.isfinite(slopes.values)]
    least, most = (
        (f"{end:.3f}" for end in (finite.min(), finite.max())) if finite.size else ("", "")
    )
    return {
        "low": f"{low:g}", "high": f"{high:g}", "slopes": by_size(texts), "least": least,
        "most": most, **drawn(data),
    }  # fmt: skip


def exponents(data: xr.Dataset) -> dict[str, object]:
    """Measured beside recalled exponents, for each size of the problems."""
    measured, printed, falls = (exponent(name)(data) for name in ("measured", "printed", "falls"))
    means = measured.mean("member"), printed.mean("member")
    texts = [(n, powers(data.p.values, *(mean.sel(n=n).values for mean in means)))
             for n in data.n.values]  # fmt: skip
    return {
        "high": f"{RANGES['flow'][1]:g}",
        "exponents": by_size(texts),
        "faster": bool(falls.min() > 1),
    }


def answer(data: xr.Dataset) -> dict[str, object]:
    """The exponents, and by which factor ten times the norm brings the distance down at one p."""
    middle = data.isel(n=0, p=data.sizes["p"] // 2)
    measured, recalled = (
        large_number(10.0 ** -float(exponent(name)(middle).mean("member")))
        for name in ("measured", "printed")
    )
    typical = {"p": f"{float(middle.p):g}", "measured": measured, "recalled": recalled}
    return exponents(data) | {"typical": typical}


def powers(p: np.ndarray, measured: np.ndarray, recalled: np.ndarray) -> str:
    """Powers of the norm that were measured, and those of the recalled rates, for each p."""
    known = np.isfinite(measured)
    if not known.any():
        return ""
    ours, theirs = (
        ", ".join(f"{each:.2f}" for each in side[known]) for side in (measured, recalled)
    )
    places = ", ".join(f"{each:g}" for each in p[known])
    return f"{ours} at $p = {places}$, beside {theirs} of the recalled rates"


def local_slopes(row: xr.Dataset) -> list[str]:
    """The log-log slopes in the norm of the divergence and of the recalled rate, by kind."""
    texts = []
    for kind, (low, high) in RANGES.items():
        path = row.sel(kind=kind)
        reached = path.log_k.max("record") >= high
        path = path.isel(member=np.flatnonzero(reached & path.divergence.notnull().any("record")))
        if not path.sizes["member"]:
            texts += ["not available"] * 2
            continue
        grid, axes = np.geomspace(low, high, FITTED), ("member", "record")
        log_k, norm, D = (path[n].transpose(*axes).values for n in ("log_k", "norm", "divergence"))
        x = interpolated(grid, log_k, norm)
        for values in (interpolated(grid, log_k, D), julistiono2024_rate(x, float(row.p))):
            texts.append(power_law(x, values).text())
    return texts


def beside_the_power(data: xr.Dataset) -> dict[str, object]:
    """Which exponents are clearly above that of the dotted power, and which could not be fitted."""
    measured = exponent("measured")(data)
    fitted = measured.notnull()
    slower = measured > CLEARLY - np.minimum(2.0, 2 * (data.p - 1))
    counts = [
        f"{int(slow)} of {int(fits)} at $n = {n}$, $p = {p:g}$"
        for n in data.n.values
        for p in data.p.values
        for slow, fits in [(slower.sel(n=n, p=p).sum(), fitted.sel(n=n, p=p).sum())]
        if slow
    ]
    return {
        "clearly": f"{CLEARLY:g}",
        "slower": ", ".join(counts),
        "short": int((~fitted & (data.solved == 1)).sum()),
        **exponents(data),
        **drawn(data),
    }


def by_size(texts: Sequence[tuple[int, str]]) -> str:
    """Texts of each number of samples, without those that are empty."""
    return "; ".join(f"{text} ($n = {n}$)" for n, text in texts if text)


def drawn(data: xr.Dataset) -> dict[str, object]:
    """The number of samples of the problems that the panels show."""
    return {"shown": int(data.n[0])}


def each_path(
    y: panels.Quantity, x: panels.Quantity, colour: str = "", **axes: Any
) -> panels.Panel:
    """The paths of every problem in logarithms: dots are plain steps, lines the flow."""
    look = {"colour": colour, "band": None, "ink": panels.PALETTE[0]}
    flow = Lines(
        y,
        x,
        at={"kind": "flow"},
        label="flow: infinitely small steps",
        xscale="log",
        yscale="log",
        **look,
        **axes,
    )
    plain = Lines(y, x, at={"kind": "plain"}, label="steps of mirror descent", style="o", **look)
    return flow + (replace(plain, legend=False) if colour else plain)


def unit(data: xr.Dataset) -> xr.DataArray:
    """Two points of the line of slope 1."""
    return xr.DataArray([1.0, 1000.0], dims="end")


SLOPES = tuple(
    head
    for kind, (low, high) in RANGES.items()
    for head in (f"{kind}, log k {low:g} to {high:g}: slope", f"{kind}: slope recalled")
)
EXPERIMENT = Experiment(
    title="Rates of plain mirror descent and of its flow",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["p", "n"],
        [
            Column("seeds", "solved", panels.total),
            panels.Derived(SLOPES, local_slopes),
            Column("D / recalled rate falls by", exponent("falls"), panels.least),
            Column("d norm / d log k, over norm of SVM", exponent("growth")),
            Column("log k reached", lambda d: d.log_k.sel(kind="flow").max("record"), panels.least),
            Column("in the cone of (8) from log k (infinite: never)", "entered", panels.median),
            Column("fine flow against plain steps at the last one: norm", "norm_gap", largest),
            Column("fine flow against plain steps at the last one: D", "divergence_gap", largest),
            Column("fine clock: norm", "clock_reach"),
            Column("fine clock: log k there", "clock_log_k", at={"clock": "fine"}),
            Column(
                "fine clock: change of log k", lambda d: abs(d.clock_log_k.diff("clock")), largest
            ),
            Column("SVMs unsolved", lambda data: data.solved == 0, panels.total),
        ],
    ),
    figures=[
        panels.Plot(
            "Norm against log time",
            each_path(
                smallest("norm", over="svm_norm"), smallest("log_k"), colour="p", xlim=(0.9, None),
                names="exponent $p = {p:g}$",
                ylim=(0.5, None), xlabel="logarithm of the training step $k$",
                ylabel="norm of the weights / norm of the SVM",
                width=1.6,
            )
            + Lines(unit, unit, style=":", label="$\\log k$ (slope 1)"),
            growth,
        ),
        panels.Plot(
            "Divergence against the norm",
            each_path(
                smallest("divergence"), smallest("norm"), panel="p", title="exponent $p = {p:g}$",
                xlabel="norm of the weights", ylabel="distance of direction from the SVM",
            )
            + Lines(smallest("guide_printed"), smallest("guide_norm"), style="--",
                    label="recalled rate (Lemma 29)")
            + Lines(smallest("guide_power"), smallest("guide_norm"), style=":",
                    ink=panels.PALETTE[1], label="power $-\\min(2, 2(p-1))$"),
            beside_the_power,
        ),
    ],
)  # fmt: skip
