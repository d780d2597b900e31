r"""Does a network without attention keep an error floor, and what lowers the error?

After Theorem 2 liu2021analyzing says that a baseline is inconsistent where attention makes the
labels: its error should keep a floor as n grows. Section 5 advises penalties, low temperature and
many query dimensions: each is swept at one n, in pairs with the plain student.
"""

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.join import join
from attlas.experiments.panels import (
    Column,
    Lines,
    Points,
    Reference,
    geometric_interval,
    geometric_mean_only,
    mean_only,
)
from attlas.experiments.settings import Settings
from attlas.measures.statistics.trend import extrapolated_limit
from liu2021analyzing.library.training.self_attention_students import (
    Setting,
    Shape,
    errors_by_setting,
    errors_by_size,
    self_attention_task,
)

NOISE = 0.5
"""Deviation of the labels' noise; that of the truth is 1."""
SHARP = 1.7
"""Entries of the teacher's query and key matrices: its logits have a deviation of about 3."""
ATTENTION, BASELINE, WIDER = "self-attention", "no attention", "no attention, wider"
MEANS = {
    ATTENTION: "mean of self-attention", BASELINE: "mean of no attention, teacher's width",
    WIDER: "mean of no attention, four times as wide",
}  # fmt: skip
CHANGE = "test error / the plain student's"
SWEEPS = {
    "d_q": "query dimension $d_q$", "temperature": "temperature",
    "l1": "$\\ell_1$ penalty", "l2": "$\\ell_2$ penalty",
}  # fmt: skip
SPELLED = {"d_q": "$d_q$", "l1": "$\\ell_1$ penalty", "l2": "$\\ell_2$ penalty"}
PLAIN = {"temperature": 1.0, "l1": 0.0, "l2": 0.0}
GRID = Grid(
    each={"student": [ATTENTION, BASELINE], "varied": ["samples", "advice"]},
    fixed={
        "p": 3, "t": 3, "d_q": 2, "d_v": 2, "d": 3,
        "units": lambda s: 4 * s.d if s.student == WIDER else s.d,
    },
    smoke={
        "members": 2, "starts": 1, "steps": 5, "fresh": 100, "at_once": 4, "sizes": [16, 32],
        "n": 24, "queries": [1, 2], "temperatures": [5.0], "l1": [0.01], "l2": [0.01],
    },
    quick={
        "members": 6, "starts": 5, "steps": 25, "fresh": 2000, "at_once": 5,
        "sizes": [64, 256, 1024], "n": 256, "queries": [1, 2, 4, 8], "temperatures": [0.2, 5.0],
        "l1": [0.001, 0.01], "l2": [0.001, 0.01],
    },
    paper={
        "student": [ATTENTION, BASELINE, WIDER], "members": 10, "starts": 6, "steps": 100,
        "fresh": 20_000, "at_once": 10, "sizes": [64, 128, 256, 512, 1024, 2048, 4096],
        "n": 256, "queries": [1, 2, 3, 4, 8, 16, 32], "temperatures": [0.1, 0.2, 0.5, 2.0, 5.0],
        "l1": [0.0003, 0.001, 0.003, 0.01, 0.03], "l2": [0.0003, 0.001, 0.003, 0.01, 0.03],
    },
    where=lambda s: s.varied == "samples" or s.student == ATTENTION,
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Errors by sample size or by setting, and member."""
    shape, by_size = Shape(s.p, s.t, s.d_q, s.d_v, s.d), s.varied == "samples"
    effort = {"repeats": s.starts, "max_steps": s.steps, "at_once": s.at_once}
    units = None if s.student == ATTENTION else s.units
    students = [
        Setting(s.d_q)._replace(**{name: x} if name in SWEEPS else {}) for name, x in levels(s)
    ]
    by_member = []
    for seed in range(s.seed, s.seed + s.members):
        n = s.sizes[-1] if by_size else s.n
        task = self_attention_task(seed, shape, n, s.fresh, NOISE, SHARP)
        if by_size:
            by_member.append(errors_by_size(task, shape, s.sizes, units, seed, **effort))
        else:
            by_member.append(errors_by_setting(task, shape, students, seed, **effort))
    errors = np.stack(by_member, axis=1)
    if not by_size:
        sweep, level = (np.array(by_member) for by_member in zip(*levels(s), strict=True))
        labels = [name if name == "plain" else f"{name} = {at:g}" for name, at in levels(s)]
        coordinates = {"setting": labels, "sweep": ("setting", sweep), "level": ("setting", level)}
        return xr.Dataset({"swept": (("setting", "member"), errors)}, coordinates)
    measured = xr.Dataset({"error": (("n", "member"), errors)}, {"n": list(s.sizes)})
    if len(s.sizes) >= 3:
        measured["limit"] = "member", np.asarray(extrapolated_limit(jnp.asarray(errors[-3:].T)))
    return measured


def levels(s: Settings) -> list[tuple[str, float | int]]:
    """What is set and its level: the plain student first."""
    swept = zip(SWEEPS, (s.queries, s.temperatures, s.l1, s.l2), strict=True)
    pairs = [(name, level) for name, values in swept for level in values]
    return [("plain", s.d_q), *(pair for pair in pairs if pair != ("d_q", s.d_q))]


def ratio_text(values: xr.DataArray, digits: str = ".2f") -> str:
    """Geometric mean of ratios with its interval."""
    band = geometric_interval(values, list(map(str, values.dims)))
    return "{} [{}, {}]".format(*(format(float(end), digits) for end in band))


def changes(data: xr.Dataset) -> xr.DataArray:
    """Errors over those of the plain student, in pairs."""
    swept = data["swept"].sel(student=ATTENTION, varied="advice")
    return swept / swept.sel(setting="plain", drop=True)


def by_level(data: xr.Dataset) -> xr.Dataset:
    """The same by sweep, the plain student among the levels."""
    ratios, sweeps = changes(data), []
    for name in SWEEPS:
        sweep = ratios.isel(setting=np.isin(ratios.sweep.values, [name, "plain"]))
        plain = sweep.sweep.values == "plain"
        level = np.where(plain, PLAIN.get(name, data.attrs["d_q"]), sweep.level.values)
        order = np.argsort(level)
        part = xr.Dataset({
            "change": (("place", "member"), sweep.transpose("setting", "member").values[order]),
            "at": ("place", [f"{number:g}" for number in level[order]]),
            "plain": ("place", plain[order]),
        })  # fmt: skip
        sweeps.append(part.expand_dims("sweep").assign_coords(sweep=[name]))
    return join(sweeps)


def ends_of_floor(data: xr.Dataset) -> dict[str, object]:
    """Whether the limit at the teacher's width lies above 0, and where a mean rises at the end."""
    limit = [float(limit_of(BASELINE, k)(data)) for k in range(3)] if "limit" in data else []
    errors = data["error"].sel(varied="samples", student=ATTENTION)
    means, last = errors.mean("member"), errors.isel(n=-1)
    return {
        "limit": "{:.2f} [{:.2f}, {:.2f}]".format(*limit) if limit else "",
        "above": bool(limit and limit[1] > 0),
        "rises": bool(means.sizes["n"] > 1 and means[-1] > means[-2]),
        "alone": bool(last.sortby(last).isel(member=slice(-1)).mean() < means[-2:][0]),
        "median": f"{float(last.median()):.2g}",
    }


def floor(data: xr.Dataset) -> dict[str, object]:
    """Errors, slopes and limits by student."""
    if "error" not in data:
        return dict.fromkeys(
            ("n", "students", "members", "limit", "above", "rises", "alone", "median"), ""
        )
    errors, texts = data["error"].sel(varied="samples"), []
    for student in data["student"].values:
        of_student = errors.sel(student=student)
        slope = panels.power_of(of_student, "n")
        if slope == "not available":
            continue
        texts.append(f"{student} {of_student.isel(n=-1).mean().item():.3g}, log-log slope {slope}")
        if "limit" in data and student != ATTENTION:
            limit = (float(limit_of(student, k)(data)) for k in range(3))
            texts[-1] += ", limit extrapolated {:.2f} [{:.2f}, {:.2f}]".format(*limit)
    if {ATTENTION, BASELINE} <= set(data["student"].values):
        last = errors.isel(n=-1)
        without, attention = last.sel(student=BASELINE), last.sel(student=ATTENTION)
        texts.append(
            f"without attention the mean is {float(without.mean() / attention.mean()):.3g} times "
            f"that of self-attention, and the geometric mean of the ratios of each teacher is "
            f"{ratio_text(without / attention, '.3g')}"
        )
    return {
        "n": data.n.values[-1], "students": "; ".join(texts), "members": data.sizes["member"],
        **ends_of_floor(data),
    }  # fmt: skip


def advice(data: xr.Dataset) -> dict[str, object]:
    """What lowers the error, and what raises it."""
    if "swept" not in data:
        return dict.fromkeys(("n", "members", "better", "worse", "d_q", "queries", "t"), "")
    ratios = changes(data).isel(setting=slice(1, None))
    _, low, high = geometric_interval(ratios, ["member"])
    better, worse = (
        ", ".join(map(typeset, ratios.setting.values[cut])) for cut in (high < 1, low > 1)
    )
    queries = ratios.isel(setting=ratios.sweep.values == "d_q").transpose("setting", ...)
    return {
        "n": data.attrs["n"], "members": data.sizes["member"], "better": better, "worse": worse,
        "d_q": data.attrs["d_q"], "t": data.attrs["t"],
        "queries": "; ".join(f"{int(query.level)}: {ratio_text(query)}" for query in queries),
    }  # fmt: skip


def typeset(setting: str) -> str:
    """A setting's name for prose."""
    name, _, level = setting.partition(" = ")
    return f"{SPELLED.get(name, name)} = {level}"


def limit_of(student: str, end: int) -> panels.Formula:
    """The extrapolated limit of a student's error, or an end of its interval."""
    at = {"student": student, "varied": "samples"}
    return lambda data: panels.interval(data["limit"].sel(at), ["member"])[end]


def change(plain: bool) -> panels.Formula:
    """The changes of the plain student, or of the others."""
    return lambda data: by_level(data).change.where(by_level(data).plain == plain)


def level(data: xr.Dataset) -> xr.DataArray:
    """What is set in each of them, as text."""
    return by_level(data)["at"]


def answer(data: xr.Dataset) -> dict[str, object]:
    """Errors at the largest n, the limits without attention, and the advice that helps.

    There is a floor where it is one of the wider network too, and not of the teacher's width alone.
    """
    ends = data["error"].sel(varied="samples").isel(n=-1).mean("member")
    # The wider network is part of larger scales only.
    present = [name for name in (BASELINE, WIDER) if name in data["student"].values]
    limits = {}
    if "limit" in data:
        limits = {name: [float(limit_of(name, k)(data)) for k in range(3)] for name in present}
    texts = {name: "{:.2f} [{:.2f}, {:.2f}]".format(*limit) for name, limit in limits.items()}
    wider = f"{float(ends.sel(student=WIDER)):.3g}" if WIDER in present else ""
    wider_limit = texts.get(WIDER, "")
    return {
        "n": int(data.n[-1]),
        "attention": f"{float(ends.sel(student=ATTENTION)):.3g}",
        "without": f"{float(ends.sel(student=BASELINE)):.3g}",
        "wider": wider,
        "error_beside": f", four times as wide {wider}" if wider else "",
        "limit": texts.get(BASELINE, ""),
        "wider_limit": wider_limit,
        "limit_beside": f", and {wider_limit} four times as wide" if wider_limit else "",
        "narrow": bool(limits and limits[BASELINE][1] > 0),
        "floor": WIDER in limits and all(low > 0 for _, low, _ in limits.values()),
        "better": advice(data)["better"],
        "members": data.sizes["member"],
    }


EXPERIMENT = Experiment(
    title="Without attention on an attention teacher, and the advice of section 5",
    question=__doc__,
    grid=GRID,
    run=run,
    part="varied",
    answer=answer,
    table=[
        panels.Table(["student", "n"], [Column("test error", "error", at={"varied": "samples"})]),
        panels.Table(
            ["student", "setting"],
            [
                Column("n", lambda data: xr.DataArray(data.attrs["n"]), panels.only),
                Column("test error", "swept", at={"varied": "advice"}),
                Column(CHANGE, changes, ratio_text, where=lambda row: row["setting"] != "plain"),
            ],
            where=lambda row: row["student"] == ATTENTION,
        ),
    ],
    figures=[
        panels.Plot(
            "A floor without attention",
            Lines(
                "error", "n", at={"varied": "samples"}, colour="student", band=None, legend=False,
                xscale="log2", yscale="log", xlabel="samples $n$", width=1.6,
                ylabel="test error: mean square / variance of the truth",
                spread="thin lines: one teacher each",
            )
            + Lines("error", "n", at={"varied": "samples"}, colour="student", band=mean_only,
                    style="o-", names=MEANS)
            + Reference(y=limit_of(BASELINE, 1), to=limit_of(BASELINE, 2),
                        label="no attention, teacher's width: extrapolated, 95 %"),
            floor, height=1.3,
        ),
        panels.Plot(
            "Advice of section 5 at one sample size",
            Points(
                change(plain=False), level, band=geometric_interval, panel="sweep", title=SWEEPS,
                ink=panels.PALETTE[0], marker="o", yscale="log2", ylabel=CHANGE,
                xlabel="value of the setting", width=0.8,
            )
            + Reference(y=1.0, label="no change")
            + Points(change(plain=True), level, band=geometric_mean_only, marker="o", hollow=True,
                     label="plain student"),
            advice,
        ),
    ],
)  # fmt: skip
