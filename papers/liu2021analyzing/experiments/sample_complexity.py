r"""Does known attention to $s_0$ of p inputs need fewer samples, and $(p/s_0)^2$ times fewer?

Teachers with attention weights f of norm one: equal ones, s0 of a fixed support, and s0 that move
with the input. Students of the teacher's width that know f, and students without attention.
Theorem 1 and Corollary 1 of liu2021analyzing promise the factor.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import PALETTE, Lines, Points, Reference, power_of
from attlas.experiments.settings import Settings
from liu2021analyzing.library.measures.samples_saved import SamplesSaved, samples_saved
from liu2021analyzing.library.training.attended_students import train_attended_students

NOISE = 0.5
"""Deviation of the labels' noise; that of the truth is 1."""
WEIGHTS = ("equal", "fixed", "moving")
STUDENTS = ("attention", "no attention")
COMPARED = ("own tasks, fixed", "one task, fixed", "own tasks, moving", "one task, moving")
"""Two students that know f, each on its own task; or two students, one without f, on one task."""
SPELLED = {
    COMPARED[0]: "fixed support against equal weights, two tasks",
    COMPARED[1]: "fixed support known against unknown, one task",
    COMPARED[2]: "moving support against equal weights, two tasks",
}
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
    n = np.array(s.multiples) * s.p
    students = [
        train_attended_students(
            seed, s.s0, s.p, s.d, n.tolist(), NOISE, s.fresh, s.starts, s.steps, s.at_once
        )
        for seed in range(s.seed, s.seed + s.members)
    ]
    axes, arrays = ("weights", "s0", "student", "multiple", "member"), {}
    for name in ("error", "reached"):
        stacked = np.stack([getattr(student, name) for student in students], axis=-1).astype(float)
        # A student of equal weights is one without attention.
        arrays[name] = np.full((3, len(s.s0), 2, *stacked.shape[1:]), np.nan)
        arrays[name][0, :, 0] = stacked[0]
        arrays[name][1:] = stacked[1:].reshape(2, *arrays[name].shape[1:])
    labels = (list(WEIGHTS), list(s.s0), list(STUDENTS), list(s.multiples))
    arrays = {name: (axes, values) for name, values in arrays.items()}
    return xr.Dataset({**arrays, "n": ("multiple", n)}, dict(zip(axes, labels, strict=False)))


def saving_factors(data: xr.Dataset) -> xr.DataArray:
    """Times by which the student that knows f needs fewer samples, its interval, if censored."""
    equal, by_comparison = data.error.sel(weights="equal", student="attention", drop=True), []
    for compared in COMPARED:
        task = data.error.sel(weights=compared.split(", ")[1], drop=True)
        plain = equal if compared.startswith("own") else task.sel(student="no attention", drop=True)
        known_f = task.sel(student="attention", drop=True)
        core = ["multiple", "member"]
        by_comparison.append(
            xr.apply_ufunc(
                lambda a, b, n: np.array(samples_saved(a, b, n), dtype=float),
                plain, known_f, data.n.astype(float), vectorize=True,
                input_core_dims=[core, core, ["multiple"]], output_core_dims=[["end"]],
            )
        )  # fmt: skip
    table = xr.concat(by_comparison, "compared").assign_coords(compared=list(COMPARED))
    return table.where(np.isfinite(table.isel(end=0)))


def pairs(data: xr.Dataset) -> xr.DataArray:
    """The same by $p / s_0$, without one task that moves: there no attention has a floor."""
    table = (
        saving_factors(data)
        .isel(compared=slice(3))
        .stack(pair=["p", "s0"])
        .dropna("pair", how="all")
    )
    return table.reset_index("pair").assign_coords(factor=table.p / table.s0)


def factors_in_figure(data: xr.Dataset) -> xr.DataArray:
    """The factors with their intervals; one without a limit ends at what the grid of n spans."""
    span = float(data["multiple"][-1] / data["multiple"][0])
    return pairs(data).isel(end=slice(3)).clip(max=span)


def factor_text(ends: xr.DataArray) -> str:
    """A ratio of numbers of samples with its interval, as text."""
    value, low, high, censored = ends.values
    return SamplesSaved(value, low, high, censored=censored == 1).text()


def slope(errors: xr.DataArray) -> str:
    """The log-log slope from 16 samples a feature on, below which students fit the noise."""
    multiples = errors["multiple"].values
    first = max(min(np.searchsorted(multiples, 16), len(multiples) - 2), 0)
    return power_of(errors.isel(multiple=slice(first, None)), "multiple")


def entries(row: xr.Dataset) -> tuple[object, ...]:
    """What the table says of one comparison."""
    compared = str(row.compared.values)
    weights, factor = compared.split(", ")[1], float(row.p / row.s0)
    corrected = "none: a floor without f" if compared == COMPARED[3] else "1"
    errors = row.error.sel(weights=weights)
    return (
        factor_text(row.factor_of_samples),
        factor**2,
        f"{factor:g}" if weights == "fixed" else corrected,
        slope(errors.sel(student="attention")),
        int(row.n[-1]),
        float(errors.sel(student="no attention").isel(multiple=-1).mean()),
    )


def largest(data: xr.Dataset) -> xr.Dataset:
    """The largest p with the smallest s0."""
    return data.dropna("p", how="all", subset=["error"]).isel(p=-1, s0=0)


def share_left(data: xr.Dataset) -> xr.DataArray:
    """The error at the largest n over that at the n before, where the support moves."""
    means = largest(data).error.sel(weights="moving").mean("member").isel(multiple=slice(-2, None))
    return means.isel(multiple=1, drop=True) / means.isel(multiple=0, drop=True)


def errors(data: xr.Dataset) -> dict[str, object]:
    """Slopes, and the errors with and without attention."""
    case = largest(data)
    known_f = case.error.sel(student="attention")
    ends = case.error.isel(multiple=-1).mean("member")
    left = share_left(data)
    return {
        "p": int(case.p), "s0": int(case.s0), "d": data.attrs["d"], "n": int(case.n[-1]),
        "slopes": "; ".join(f"{name} {slope(known_f.sel(weights=name))}" for name in WEIGHTS),
        **{f"{k}_known": f"{ends.sel(weights=k)[0]:.3g}" for k in WEIGHTS[1:]},
        **{f"{k}_unknown": f"{ends.sel(weights=k)[1]:.3g}" for k in WEIGHTS[1:]},
        "left_known": f"{100 * float(left.sel(student='attention')):.0f}",
        "left_unknown": f"{100 * float(left.sel(student='no attention')):.0f}",
        "reached": f"{100 * case.reached.sel(student='attention').mean():.0f}",
        "members": data.sizes["member"],
    }  # fmt: skip


def factors(data: xr.Dataset) -> dict[str, object]:
    """The measured factors, and whether the paper's is among them."""

    def place(at: xr.DataArray) -> str:
        return f"$p = {int(at.p)}$, $s_0 = {int(at.s0)}$"

    separate, shared, moving = (
        "; ".join(f"{factor_text(row)} for {place(row)}" for row in rows.transpose("pair", "end"))
        for rows in pairs(data).transpose("compared", ...)
    )
    fixed = pairs(data).sel(compared=list(COMPARED[:2])).isel(end=2).transpose("pair", ...)
    upper = pairs(data).isel(end=2)
    bounded = np.isfinite(upper)
    reached = [ends for ends in fixed if (ends >= ends.factor**2).any()]
    within = [place(ends) for ends in reached if np.isfinite(ends).all()]
    unresolved = [place(ends) for ends in reached if not np.isfinite(ends).all()]
    span = float(data["multiple"][-1] / data["multiple"][0])
    return {
        "own": separate, "one": shared, "moving": moving, "within": ", ".join(within),
        "below": bool(((upper < upper.factor**2) | ~bounded).all()), "bounded": int(bounded.sum()),
        "resolved": bool(bounded.all()),
        "unresolved": ", ".join(unresolved), "span": f"{span:g}",
        "left": f"{100 * float(share_left(data).sel(student='no attention')):.0f}",
    }  # fmt: skip


def curves(student: str, weights: Sequence[str], named: str = "", **options: Any) -> Points:
    """Errors of some students against n."""
    return Points(
        lambda data: largest(data).error.sel(student=student, weights=list(weights)),
        lambda data: largest(data).n, colour="weights", names="{weights} weights" + named,
        xscale="log2", yscale="log", xlabel="samples $n$", **options,
    )  # fmt: skip


def guide(parameters: str, style: str, label: str) -> panels.Panel:
    """The variance of so many parameters times d."""
    return Lines(
        lambda data: NOISE**2 * largest(data)[parameters] * data.attrs["d"] / largest(data).n,
        lambda data: largest(data).n, style=style, ink="#999999", label=label,
    )  # fmt: skip


def ends(data: xr.Dataset) -> xr.DataArray:
    """Where the lines of the theory begin and end."""
    return xr.DataArray([1.7, 1.2 * float(pairs(data).factor.max())], dims="side")


def answer(data: xr.Dataset) -> dict[str, object]:
    """The factors over p and s0, how they lie to $p/s_0$, and what a moving support does."""
    measured = pairs(data)
    shared = measured.sel(compared=COMPARED[1]).transpose("end", "pair")
    moving = measured.sel(compared=COMPARED[2]).transpose("end", "pair").values[0]
    resolved = shared.where(shared.isel(end=3) == 0, drop=True)
    ratio = (resolved.isel(end=0) / resolved.factor).values
    return factors(data) | {
        "clear": bool((shared.isel(end=1) > 1).all()),
        "fixed": "; ".join(
            _range_text(group, f"$p/s_0 = {factor:g}$")
            for factor, group in shared.transpose("pair", "end").groupby("factor")
        ),
        "to_ratio": f"{ratio.min():.2g} to {ratio.max():.2g}" if ratio.size else "",
        "moving": f"{moving.min():.2f} to {moving.max():.2f}",
        "saves_moving": bool((measured.sel(compared=COMPARED[2]).isel(end=1) > 1).any()),
        "members": data.sizes["member"],
    }


def _range_text(group: xr.DataArray, where: str) -> str:
    """The range of the factors at one $p/s_0$, as text."""
    value, low, _, censored = group.transpose("end", "pair").values
    if censored.any():
        return f"at least {low.min():.2g} for {where}"
    ends = sorted({f"{value.min():.2g}", f"{value.max():.2g}"}, key=float)
    return f"{' to '.join(ends)} for {where}"


GUIDES = (
    guide("p", "--", "noise × all parameters / samples"),
    guide("s0", ":", "noise × attended parameters / samples"),
)
HEADS = (
    "times fewer samples", "paper (p/s0)^2", "corrected", "slope with attention", "largest n",
    "error without",
)  # fmt: skip
EXPERIMENT = Experiment(
    title="Sample complexity with known attention",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["p", "s0", "compared"], [panels.Derived(HEADS, entries)],
        where=lambda row: row["s0"] < row["p"],
        of=lambda data: data.assign(factor_of_samples=saving_factors(data)),
    ),
    figures=[
        panels.Plot(
            "Test error against the sample size",
            [
                curves(
                    "attention", WEIGHTS, line="-", width=1.2,
                    title="known attention, each its own task",
                    ylabel="test error: mean square (lower is better)",
                )
                + GUIDES[0] + GUIDES[1],
                curves(
                    "attention", WEIGHTS[1:], ", attention", line="-", width=1.2,
                    title="same tasks with and without it",
                    ylabel="test error: mean square (lower is better)",
                )
                + curves("no attention", WEIGHTS[1:], ", no attention", line=":", marker="D")
                + GUIDES[0] + GUIDES[1],
            ],
            errors, height=1.2,
        ),
        panels.Plot(
            "How many times fewer samples",
            Points(
                factors_in_figure, "factor", colour="compared",
                band=panels.stated, dodge=0.12, width=1.8,
                names=SPELLED, xscale="log2", spread="95 % interval over pairs of runs",
                lower_limit=lambda data: pairs(data).isel(end=3, drop=True), yscale="log2",
                xlabel="inputs $p$ / attended inputs $s_0$",
                ylabel="samples without / samples with attention",
            )
            + Lines(lambda data: ends(data) ** 2, ends,
                    label="factor that the paper states, $(p/s_0)^2$ (Theorem 1)")
            + Lines(ends, ends, style="--", ink=PALETTE[0], label="our factor, fixed: $p/s_0$")
            + Reference(y=1.0, style="--", ink=PALETTE[2], label="our factor, moving: 1"),
            factors, height=1.2,
        ),
    ],
)  # fmt: skip
