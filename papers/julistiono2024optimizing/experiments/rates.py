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
from attlas.display.numbers import plain_number
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import Column, Lines, largest, mean_and_interval, taken
from attlas.experiments.settings import Settings
from attlas.measures.statistics.power_law import PowerLaw, power_law
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
    """The norm's slope in log k with its interval, for each size of the problems."""
    measured = exponent("growth")(data)
    low, high = RANGES["flow"]
    texts = []
    for n in data.n.values.tolist():
        runs = {p: measured.sel(n=n, p=p).dropna("member") for p in data.p.values.tolist()}
        known = [f"{mean_and_interval(each)} at $p = {p:g}$" for p, each in runs.items()
                 if each.size > 1]  # fmt: skip
        texts.append((n, ", ".join(known)))
    means = measured.mean("member").values
    finite = means[np.isfinite(means)]
    least, most = (
        (f"{end:.3f}" for end in (finite.min(), finite.max())) if finite.size else ("", "")
    )
    return {
        "low": f"{low:g}", "high": f"{high:g}", "slopes": by_size(texts), "least": least,
        "most": most, **drawn(data),
    }  # fmt: skip


def exponents(data: xr.Dataset) -> dict[str, object]:
    """Measured slopes on the flow for each size of the problems, and those of the recalled rates.

    A slope is one number only where no bend is resolved; of a rate that bends, which is a formula,
    the text has the range of its local slopes.
    """
    falls = exponent("falls")(data)
    texts, recalled = [], []
    for p in data.p.values.tolist():
        laws = {n: slopes(data.sel(n=n, p=p), "flow") for n in data.n.values.tolist()}
        known = {n: pair for n, pair in laws.items() if pair is not None}
        texts += [(n, f"{measured.text()} at $p = {p:g}$") for n, (measured, _) in known.items()]
        ends = [end.mean for _, rate in known.values() for end in (rate.first, rate.last)]
        if ends:
            recalled.append(f"{spread(max(ends), min(ends))} at $p = {p:g}$")
    sizes = data.n.values.tolist()
    joined = [(n, ", ".join(text for size, text in texts if size == n)) for n in sizes]
    return {
        "sizes": " and ".join(map(str, sizes)),
        "low": f"{RANGES['flow'][0]:g}",
        "high": f"{RANGES['flow'][1]:g}",
        "exponents": by_size(joined),
        "recalled": ", ".join(recalled),
        "least": plain_number(float(falls.min()), 2),
        "most": plain_number(float(falls.max()), 2),
        "faster": bool(falls.min() > 1),
    }


def spread(high: float, low: float) -> str:
    """The ends of a range, or its one number."""
    ends = list(dict.fromkeys(f"{end:.2f}" for end in (high, low)))
    return " to ".join(ends)


def slopes(row: xr.Dataset, kind: str) -> tuple[PowerLaw, PowerLaw] | None:
    """The log-log slopes in the norm of the divergence and of the recalled rate.

    They are None where no path of the kind reaches the end of its range with growing norms.
    """
    low, high = RANGES[kind]
    path = row.sel(kind=kind)
    reached = path.log_k.max("record") >= high
    path = path.isel(member=np.flatnonzero(reached & path.divergence.notnull().any("record")))
    if not path.sizes["member"]:
        return None
    grid, axes = np.geomspace(low, high, FITTED), ("member", "record")
    log_k, norm, D = (path[n].transpose(*axes).values for n in ("log_k", "norm", "divergence"))
    x, y = interpolated(grid, log_k, norm), interpolated(grid, log_k, D)
    complete = (np.isfinite(y) & (y > 0) & (x > 1)).all(axis=1) & (np.diff(x) > 0).all(axis=1)
    if not complete.any():
        return None
    rate = julistiono2024_rate(x[complete], float(row.p))
    return power_law(x[complete], y[complete]), power_law(x[complete], rate)


def local_slopes(row: xr.Dataset) -> list[str]:
    """The log-log slopes in the norm of the divergence and of the recalled rate, by kind."""
    pairs = [slopes(row, kind) for kind in RANGES]
    return [text for laws in pairs for text in (
        ["not available"] * 2 if laws is None else [law.text() for law in laws]
    )]  # fmt: skip


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
        **{name: text for name, text in exponents(data).items() if name != "sizes"},
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
    answer=exponents,
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
                xlabel="norm of the weights", ylabel="distance $D$ of direction from the SVM",
            )
            + Lines(smallest("guide_printed"), smallest("guide_norm"), style="--",
                    label="recalled rate (Lemma 29)")
            + Lines(smallest("guide_power"), smallest("guide_norm"), style=":",
                    ink=panels.PALETTE[1], label="power $-\\min(2, 2(p-1))$"),
            beside_the_power,
        ),
    ],
)  # fmt: skip
