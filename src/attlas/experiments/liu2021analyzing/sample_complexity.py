r"""Does known attention to $s_0$ of p inputs need fewer samples, and $(p/s_0)^2$ times fewer?

Teachers with attention weights f of norm one: equal ones, s0 of a fixed support, and s0 that move
with the input. Students of the teacher's width that know f, and students without attention.
Theorem 1 and Corollary 1 of liu2021analyzing promise the factor.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.data.attended_regression import layer_outputs
from attlas.data.attended_tasks import attended_tasks
from attlas.measures.statistics.loglog_slope import loglog_slope
from attlas.measures.statistics.ratio_of_means import ratio_of_means
from attlas.models.networks.two_layer import TwoLayer
from attlas.panels.lines import Lines
from attlas.panels.palette import PALETTE
from attlas.panels.panel import Panel
from attlas.panels.plot import Plot
from attlas.panels.points import Points
from attlas.panels.reference import Reference
from attlas.panels.summary import stated
from attlas.panels.table import Derived, Table
from attlas.runs.experiment import Experiment
from attlas.runs.grid import Grid
from attlas.runs.settings import Settings
from attlas.solvers.levenberg_marquardt import best_starts, levenberg_marquardt

NOISE = 0.5
"""Deviation of the labels' noise; that of the truth is 1."""
WEIGHTS = ("equal", "fixed", "moving")
STUDENTS = ("attention", "no attention")
COMPARED = ("own tasks, fixed", "one task, fixed", "own tasks, moving", "one task, moving")
"""Two students that know f, each on its own task; or two students, one without f, on one task."""
NOTE = (
    "x uniform in $[-1, 1]^p$, y = teacher$(x \\circ f(x))$ + noise of deviation .5, truth of "
    "deviation 1. f has Euclidean norm 1, as the paper asks: all weights $p^{-1/2}$, or $s_0$ "
    "weights $s_0^{-1/2}$ and $\\tau = 0$. The $s_0$ places are the first ones, or those where "
    "$M|x|$ is largest, M Gaussian. All have the same two layers, hence one $C_1$, $C_2$ and "
    "$C_x$. Teachers are balanced (half the units are the others with signs of their inputs "
    "changed, opposite in the output), so that labels have mean 0. Students have the teacher's "
    "width and no biases; of several starts the one of least training loss is taken, each run to "
    "the end by damped Gauss-Newton steps. The test error is the mean square distance from the "
    "truth over fresh inputs. Ratios of errors at one n are ratios of sample sizes as far as "
    "errors fall as 1/n; the table has the slopes, some of whose intervals do not hold -1. "
    "Guides: $\\sigma^2$ times parameters over n, for pd and $s_0 d$ "
    "parameters (a ReLU unit has one redundant scale)."
)
GRID = Grid(
    each={"p": [8, 16]},
    fixed={"s0": [2, 4]},
    smoke={"p": [4], "s0": [2], "d": 2, "multiples": [8, 16], "members": 2, "starts": 1,
           "steps": 10, "fresh": 100, "at_once": 4},
    quick={"d": 2, "multiples": [16, 32, 64], "members": 10, "starts": 4, "steps": 20,
           "fresh": 2000, "at_once": 8},
    # Powers of two up to p / 2.
    paper={"p": [8, 16, 32], "s0": lambda s: [2**k for k in range(1, s.p.bit_length() - 1)],
           "d": 4, "multiples": [8, 16, 32, 64, 128], "members": 20, "starts": 4, "steps": 150,
           "fresh": 10_000, "at_once": 16},
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Test errors of all students on all tasks, by n and member."""
    found = [one(s, seed) for seed in range(s.seed, s.seed + s.members)]
    axes = ("weights", "s0", "student", "multiple", "member")
    whole = {}
    for name, values in zip(("error", "reached"), zip(*found, strict=True), strict=True):
        each = np.stack(values, axis=-1).astype(float)
        # A student of equal weights is one without attention.
        whole[name] = np.full((3, len(s.s0), 2, *each.shape[1:]), np.nan)
        whole[name][0, :, 0] = each[0]
        whole[name][1:] = each[1:].reshape(2, *whole[name].shape[1:])
    return xr.Dataset(
        {name: (axes, values) for name, values in whole.items()},
        {
            "weights": list(WEIGHTS), "s0": list(s.s0), "student": list(STUDENTS),
            "multiple": list(s.multiples), "n": ("multiple", np.array(s.multiples) * s.p),
        },
    ).reset_coords("n")  # fmt: skip


def one(s: Settings, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Errors by task and n, and which students end at most at the truth's own training loss."""
    sizes, p, d = np.array(s.multiples) * s.p, s.p, s.d
    n, rng = int(sizes[-1]), np.random.default_rng([seed, p, 1])
    each = list(attended_tasks(np.random.default_rng([seed, p]), p, d, s.s0, n, s.fresh))
    noise = NOISE * rng.standard_normal(n)
    shape = (len(each), len(sizes), s.starts)
    W1 = rng.standard_normal((*shape, p * d))
    W1 /= np.sqrt([np.sum(u[:n] ** 2) / n for u, _ in each])[:, None, None, None]
    w2 = rng.standard_normal((*shape, d)) / np.sqrt(d)
    x, y = (np.stack(a) for a in zip(*((u[:n], t[:n] + noise) for u, t in each), strict=True))
    mask, repeated = (np.arange(n) < sizes[:, None]).astype(float), len(sizes) * s.starts
    ends = levenberg_marquardt(
        TwoLayer.__call__,
        jax.vmap(TwoLayer)(*jax.device_put((W1.reshape(-1, p, d), w2.reshape(-1, d)))),
        *(np.repeat(a, repeated, axis=0) for a in (x, y)),
        weights=np.tile(np.repeat(mask, s.starts, axis=0), (len(each), 1)),
        max_steps=s.steps,
        at_once=s.at_once,
    )
    best = best_starts(ends, s.starts)
    layers = best.value.W1.reshape(*shape[:2], p, d), best.value.w2.reshape(*shape[:2], d)
    errors = [
        [np.mean((layer_outputs(u[n:], *pair) - truth[n:]) ** 2) for pair in zip(*own, strict=True)]
        for (u, truth), *own in zip(each, *layers, strict=True)
    ]
    teacher = mask @ noise**2 / (2 * sizes)
    return np.array(errors), best.stats["risk"].reshape(shape[:2]) <= teacher


def ratios(data: xr.Dataset) -> xr.DataArray:
    """Errors times n at the two largest n, without f over with f, and the interval."""
    scaled = (data.error * data.n).isel(multiple=slice(-2, None)).mean("multiple", skipna=False)
    equal, parts = scaled.sel(weights="equal", student="attention", drop=True), []
    for compared in COMPARED:
        own = scaled.sel(weights=compared.split(", ")[1], drop=True)
        other = equal if compared.startswith("own") else own.sel(student="no attention", drop=True)
        known = own.sel(student="attention", drop=True)
        parts.append(
            xr.apply_ufunc(
                lambda a, b: np.array(ratio_of_means(a, b)), other, known, vectorize=True,
                input_core_dims=[["member"], ["member"]], output_core_dims=[["end"]],
            )
        )  # fmt: skip
    return xr.concat(parts, "compared").assign_coords(compared=list(COMPARED))


def pairs(data: xr.Dataset) -> xr.DataArray:
    """The same by $p / s_0$, without the floor of one task that moves."""
    found = ratios(data).isel(compared=slice(3)).stack(pair=["p", "s0"]).dropna("pair", how="all")
    return found.reset_index("pair").assign_coords(factor=found.p / found.s0)


def told(value: float, low: float, high: float) -> str:
    """An interval, as text."""
    return f"{value:.2f} [{low:.2f}, {high:.2f}]" if np.isfinite(value) else "not available"


def slope(errors: xr.DataArray) -> str:
    """From 16 samples a feature on, below which students fit the noise."""
    multiples, values = errors["multiple"].values, errors.transpose("multiple", "member").values
    first = max(min(np.searchsorted(multiples, 16), len(multiples) - 2), 0)
    if len(multiples) < 2 or not np.isfinite(values).all():
        return "not available"
    found = loglog_slope(multiples[first:], values[first:], jax.random.key(0), samples=500)
    return told(found.slope, found.low, found.high)


def entries(row: xr.Dataset) -> tuple[object, ...]:
    """What the table says of one comparison."""
    compared = str(row.compared.values)
    weights, factor = compared.split(", ")[1], float(row.p / row.s0)
    corrected = "a floor, no ratio of n" if compared == COMPARED[3] else "1"
    errors = row.error.sel(weights=weights)
    return (
        told(*row.ratio.values),
        factor**2,
        f"{factor:g}" if weights == "fixed" else corrected,
        slope(errors.sel(student="attention")),
        int(row.n[-1]),
        float(errors.sel(student="no attention").isel(multiple=-1).mean()),
    )


def largest(data: xr.Dataset) -> xr.Dataset:
    """The largest p with the smallest s0."""
    return data.isel(p=-1, s0=0)


def curves_caption(data: xr.Dataset) -> str:
    """Slopes, and the errors with and without attention."""
    own = largest(data)
    known = own.error.sel(student="attention")
    slopes = "; ".join(f"{name} {slope(known.sel(weights=name))}" for name in WEIGHTS)
    fixed, moving = own.error.isel(multiple=-1).mean("member").sel(weights=["fixed", "moving"])
    reached = own.reached.sel(student="attention").mean()
    return (
        f"Does attention need fewer samples? $p = {int(own.p)}$, $s_0 = {int(own.s0)}$, width "
        f"{data.attrs['d']}. Slopes of the error in n (95 %): {slopes}. At $n = {int(own.n[-1])}$ "
        f"the error with attention and without is {fixed[0]:.3g} and {fixed[1]:.3g} where the "
        f"support is fixed, {moving[0]:.3g} and {moving[1]:.3g} where it moves: there a network "
        "without attention of this width has a floor. Dashed and dotted: $\\sigma^2$ times pd or "
        f"$s_0d$ parameters over n. {100 * reached:.0f} % of the students that know f ended at or "
        "below the training loss of the truth. Bars: 95 % of the mean over "
        f"{data.sizes['member']} members."
    )


def factor_caption(data: xr.Dataset) -> str:
    """The measured factors, and whether the paper's is among them."""
    found = pairs(data)
    texts = {
        name: "; ".join(
            f"{told(*each.values)} for $p = {int(each.p)}$, $s_0 = {int(each.s0)}$"
            for each in found.sel(compared=name).transpose("pair", "end")
        )
        for name in COMPARED[:3]
    }
    high = found.isel(end=2)
    beyond = [
        f"$p = {int(at.p)}$, $s_0 = {int(at.s0)}$"
        for at in high.max("compared").transpose("pair")
        if at >= at.factor**2
    ]
    verdict = f"It is within reach for {', '.join(beyond)}" if beyond else "No interval reaches it"
    return (
        f"By which factor? The paper says $(p/s_0)^2$. {verdict}. Measured, with 95 % intervals "
        f"over paired members: a support that moves {texts[COMPARED[2]]}; a fixed one "
        f"{texts[COMPARED[0]]} on tasks of their own, and {texts[COMPARED[1]]} on one task. "
        "Corrected: no factor from the weights' norms, and $p/s_0$ where a known fixed support "
        "leaves $s_0d$ of pd parameters. A support that moves leaves a network without attention "
        "at its floor on the same task: no ratio there."
    )


def curves(student: str, weights: Sequence[str], named: str = "", **options: Any) -> Points:
    """Errors of some students against n."""
    return Points(
        lambda data: largest(data).error.sel(student=student, weights=list(weights)),
        lambda data: largest(data).n,
        colour="weights", names="{weights} weights" + named,
        xscale="log2", yscale="log", xlabel="samples $n$", **options,
    )  # fmt: skip


def guide(parameters: str, style: str, label: str) -> Panel:
    """The variance of so many parameters times d."""
    return Lines(
        lambda data: NOISE**2 * largest(data)[parameters] * data.attrs["d"] / largest(data).n,
        lambda data: largest(data).n,
        style=style, ink="#999999", label=label,
    )  # fmt: skip


def ends(data: xr.Dataset) -> xr.DataArray:
    """Where the lines of the theory begin and end."""
    return xr.DataArray([1.7, 1.2 * float(pairs(data).factor.max())], dims="side")


GUIDES = guide("p", "--", "$\\sigma^2pd/n$"), guide("s0", ":", "$\\sigma^2s_0d/n$")
EXPERIMENT = Experiment(
    title="Sample complexity with known attention",
    question=__doc__,
    grid=GRID,
    run=run,
    table=Table(
        ["p", "s0", "compared"],
        [
            Derived(
                ("ratio of errors", "paper (p/s0)^2", "corrected", "slope with attention",
                 "largest n", "error without"),
                entries,
            )
        ],
        where=lambda row: row["s0"] < row["p"],
        of=lambda data: data.assign(ratio=ratios(data)),
    ),
    figures=[
        Plot(
            "Test error against the sample size",
            [
                curves(
                    "attention", WEIGHTS, line="-", width=1.2,
                    title="knowing $f$, each on its own task",
                    ylabel=r"test error $E(\hat y-E(y|x))^2$",
                )
                + GUIDES[0] + GUIDES[1],
                curves(
                    "attention", WEIGHTS[1:], ", attention", line="-", width=1.2,
                    title="the same tasks with and without $f$",
                )
                + curves("no attention", WEIGHTS[1:], ", no attention", line=":", marker="D")
                + GUIDES[0] + GUIDES[1],
            ],
            curves_caption,
            height=1.2,
        ),
        Plot(
            "How many times fewer samples",
            Points(
                pairs, "factor", colour="compared", band=stated, dodge=0.12, width=1.8,
                names={name: f"measured: {name}" for name in COMPARED}, xscale="log2",
                yscale="log2", xlabel="$p/s_0$", ylabel="samples without / with attention",
            )
            + Lines(lambda data: ends(data) ** 2, ends, label="Theorem 1: $(p/s_0)^2$")
            + Lines(ends, ends, style="--", ink=PALETTE[0], label="corrected, fixed: $p/s_0$")
            + Reference(y=1.0, style="--", ink=PALETTE[2], label="corrected, moving: 1"),
            factor_caption,
            height=1.2,
        ),
    ],
    note=NOTE,
)  # fmt: skip
