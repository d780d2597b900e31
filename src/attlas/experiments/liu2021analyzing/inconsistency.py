r"""Does a network without attention keep an error floor, and what lowers the error?

After Theorem 2 liu2021analyzing says that a baseline is inconsistent where attention makes the
labels: its error should keep a floor as n grows. Section 5 advises penalties, low temperature and
many query dimensions: each is swept at one n, in pairs with the plain student.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.data.standardised_task import StandardisedTask, standardised_task
from attlas.measures.statistics.loglog_slope import loglog_slope
from attlas.measures.statistics.trend import extrapolated_limit
from attlas.models.attention.gaussian_self_attention import gaussian_self_attention, tempered_output
from attlas.models.attention.self_attention_mlp import SelfAttentionMLP
from attlas.models.networks.two_layer import TwoLayer
from attlas.panels.lines import Lines
from attlas.panels.palette import PALETTE
from attlas.panels.plot import Plot
from attlas.panels.points import Points
from attlas.panels.reference import Reference
from attlas.panels.summary import geometric_interval, interval, mean_only, only
from attlas.panels.table import Column, Table
from attlas.runs.experiment import Experiment
from attlas.runs.grid import Grid
from attlas.runs.join import join
from attlas.runs.settings import Settings
from attlas.tasks.least_squares_students import on_all_words, student_errors

NOISE = 0.5
"""Deviation of the labels' noise; that of the truth is 1."""
SHARP = 1.7
"""Entries of the teacher's query and key matrices: its logits have a deviation of about 3."""
ATTENTION, BASELINE, WIDER = "self-attention", "no attention", "no attention, wider"
CHANGE = "test error over the plain student's"
SWEEPS = {
    "d_q": "query dimension $d_q$", "temperature": "temperature",
    "l1": "$\\ell_1$ penalty", "l2": "$\\ell_2$ penalty",
}  # fmt: skip
PLAIN = {"temperature": 1.0, "l1": 0.0, "l2": 0.0}
NOTE = (
    "Teacher: $w_2'(W_1'\\mathrm{vec}(W_V x A))_+$ on p words with t entries, uniform in "
    "$[-1, 1]$, labels with noise of deviation .5, truth centred and of deviation 1. Students "
    "have an output bias; of several starts the one of least training risk is taken, each by "
    "damped Gauss-Newton steps. The network without attention reads all words as one vector; it "
    "has the teacher's d hidden units, or four times as many (wider). Penalties are on $W_V$, "
    "$W_1$ and $w_2$: on $W_1$ and $w_2$ alone, as the paper says, they could be moved into $W_V$ "
    "without a change of the function. Temperature is that of the student, whose $W_Q$ and $W_K$ "
    "are free, so that it changes the start and the path and not what can be learned. The same "
    "teachers, samples, noise and test inputs serve every setting, so that settings are compared "
    "in pairs."
)
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
        "student": [ATTENTION, BASELINE, WIDER], "members": 20, "starts": 8, "steps": 200,
        "fresh": 20_000, "at_once": 16, "sizes": [64, 128, 256, 512, 1024, 2048, 4096, 8192],
        "n": 256, "queries": [1, 2, 3, 4, 8, 16, 32], "temperatures": [0.1, 0.2, 0.5, 2.0, 5.0],
        "l1": [0.0003, 0.001, 0.003, 0.01, 0.03], "l2": [0.0003, 0.001, 0.003, 0.01, 0.03],
    },
    where=lambda s: s.varied == "samples" or s.student == ATTENTION,
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Errors by sample size or by setting, and member."""
    one = by_size if s.varied == "samples" else by_setting
    errors = np.stack([one(s, seed) for seed in range(s.seed, s.seed + s.members)], axis=1)
    if s.varied == "advice":
        sweep, level = (np.array(each) for each in zip(*levels(s), strict=True))
        labels = [name if name == "plain" else f"{name} = {at:g}" for name, at in levels(s)]
        own = {"setting": labels, "sweep": ("setting", sweep), "level": ("setting", level)}
        return xr.Dataset({"swept": (("setting", "member"), errors)}, own)
    found = xr.Dataset({"error": (("n", "member"), errors)}, {"n": list(s.sizes)})
    if len(s.sizes) >= 3:
        found["limit"] = "member", np.asarray(extrapolated_limit(jnp.asarray(errors[-3:].T)))
    return found


def task_of(s: Settings, seed: int, n: int) -> StandardisedTask:
    """A teacher with sharp attention, and its samples."""
    rng = np.random.default_rng([seed, 11])
    teachers = gaussian_self_attention(rng, 1, s.p, s.t, s.d_q, s.d_v, s.d, size=SHARP)
    teacher = jax.tree.map(lambda a: a[0], teachers)
    return standardised_task(rng, teacher, n, s.fresh, (s.t, s.p), NOISE)


def effort(s: Settings) -> dict[str, int]:
    """Starts and steps of each student."""
    return {"repeats": s.starts, "max_steps": s.steps, "at_once": s.at_once}


def by_size(s: Settings, seed: int) -> np.ndarray:
    """Errors of one student on one task by sample size."""
    sizes, rng = np.array(s.sizes), np.random.default_rng([seed, 12])
    task, count = task_of(s, seed, int(sizes[-1])), len(sizes) * s.starts
    weights = (np.arange(sizes[-1]) < np.repeat(sizes, s.starts)[:, None]).astype(float)
    if s.student == ATTENTION:
        starts = gaussian_self_attention(rng, count, s.p, s.t, s.d_q, s.d_v, s.d)
        return student_errors(task, SelfAttentionMLP.__call__, starts, weights=weights, **effort(s))
    W1 = np.sqrt(3 / (s.p * s.t)) * rng.standard_normal((count, s.p * s.t, s.units))
    w2 = rng.standard_normal((count, s.units)) / np.sqrt(s.units)
    make = jax.vmap(lambda W1, w2, b2: TwoLayer(W1, w2, b2=b2))
    starts = make(*jax.device_put((W1, w2, np.zeros(count))))
    return student_errors(task, on_all_words, starts, weights=weights, **effort(s))


def levels(s: Settings) -> list[tuple[str, float | int]]:
    """What is set and its level: the plain student first."""
    swept = zip(SWEEPS, (s.queries, s.temperatures, s.l1, s.l2), strict=True)
    pairs = [(name, level) for name, own in swept for level in own]
    return [("plain", s.d_q), *(pair for pair in pairs if pair != ("d_q", s.d_q))]


def by_setting(s: Settings, seed: int) -> np.ndarray:
    """Errors on one task by setting; those of one d_q share a program with more rows of zeros."""
    task, settings = task_of(s, seed, s.n), levels(s)
    found = np.empty(len(settings))
    for wide in (False, True):
        own = [k for k, (name, _) in enumerate(settings) if (name == "d_q") == wide]
        if not own:
            continue
        rows = max(int(settings[k][1]) for k in own) if wide else s.d_q
        parts, l1, l2, factors = [], [], [], []
        for name, level in (settings[k] for k in own):
            d_q, plain = int(level) if wide else s.d_q, {**PLAIN, name: level}
            rng = np.random.default_rng([seed, 13])  # the same starts for all
            shape = (s.p, s.t, d_q, s.d_v, s.d)
            parts.append(gaussian_self_attention(rng, s.starts, *shape, rows=rows))
            # Of W_Q, W_K, W_V, W1, w2 and b2 those in the middle have penalties.
            sizes = [leaf[0].size for leaf in jax.tree.leaves(parts[-1])]
            on = np.repeat([0.0, 0.0, 1.0, 1.0, 1.0, 0.0], sizes)
            l1 += [plain["l1"] * on] * s.starts
            l2 += [plain["l2"] * on] * s.starts
            factors += [np.sqrt(rows / d_q) / plain["temperature"]] * s.starts
        starts = jax.tree.map(lambda *each: np.concatenate(each), *parts)
        found[own] = student_errors(
            task, tempered_output, starts, np.array(factors), l1=np.array(l1), l2=np.array(l2),
            **effort(s),
        )  # fmt: skip
    return found


def told(values: xr.DataArray, digits: str = ".2f") -> str:
    """Geometric mean of ratios with its interval."""
    band = geometric_interval(values, list(map(str, values.dims)))
    return "{} [{}, {}]".format(*(format(float(end), digits) for end in band))


def changes(data: xr.Dataset) -> xr.DataArray:
    """Errors over those of the plain student, in pairs."""
    swept = data["swept"].sel(student=ATTENTION, varied="advice")
    return swept / swept.sel(setting="plain", drop=True)


def by_level(data: xr.Dataset) -> xr.Dataset:
    """The same by sweep, the plain student among the levels."""
    found, parts = changes(data), []
    for name in SWEEPS:
        own = found.isel(setting=np.isin(found.sweep.values, [name, "plain"]))
        plain = own.sweep.values == "plain"
        level = np.where(plain, PLAIN.get(name, data.attrs["d_q"]), own.level.values)
        order = np.argsort(level)
        part = xr.Dataset({
            "change": (("place", "member"), own.transpose("setting", "member").values[order]),
            "at": ("place", [f"{each:g}" for each in level[order]]),
            "plain": ("place", plain[order]),
        })  # fmt: skip
        parts.append(part.expand_dims("sweep").assign_coords(sweep=[name]))
    return join(parts)


def floor_caption(data: xr.Dataset) -> str:
    """Errors, slopes and limits by student."""
    if "error" not in data:
        return "Not computed yet."
    errors, n, texts = data["error"].sel(varied="samples"), data["n"].values, []
    for student in data["student"].values:
        own = errors.sel(student=student).transpose("n", "member").values
        if not np.isfinite(own).all() or len(n) < 2:
            continue
        slope = loglog_slope(n[-3:], own[-3:], jax.random.key(0), samples=500)
        text = f"{student} {own[-1].mean():.3g}, slope {slope.slope:.2f} "
        text += f"[{slope.low:.2f}, {slope.high:.2f}]"
        if "limit" in data and student != ATTENTION:
            limit = (float(limit_of(student, k)(data)) for k in range(3))
            text += ", limit extrapolated {:.2f} [{:.2f}, {:.2f}]".format(*limit)
        texts.append(text)
    if {ATTENTION, BASELINE} <= set(data["student"].values):
        last = errors.isel(n=-1)
        ratio = told(last.sel(student=BASELINE) / last.sel(student=ATTENTION), ".3g")
        texts.append(f"without attention {ratio} times that of self-attention, in pairs")
    return (
        f"Does a network without attention keep an error as n grows? Mean test error at $n = "
        f"{n[-1]}$ on self-attention teachers: {'; '.join(texts)} (95 %). Thin lines: "
        f"{data.sizes['member']} teachers; band: the limit."
    )


def sweep_caption(data: xr.Dataset) -> str:
    """What lowers the error, and what raises it."""
    if "swept" not in data:
        return "Not computed yet."
    found = changes(data).isel(setting=slice(1, None))
    _, low, high = geometric_interval(found, ["member"])
    better, worse = (", ".join(found.setting.values[cut]) for cut in (high < 1, low > 1))
    queries = found.isel(setting=found.sweep.values == "d_q")
    each = "; ".join(f"{int(own.level)}: {told(own)}" for own in queries.transpose("setting", ...))
    return (
        "Does the advice of section 5 help? Test error over that of the plain student (open "
        f"marks), at $n = {data.attrs['n']}$, geometric means over {data.sizes['member']} teachers "
        f"in pairs, bars 95 %. Clearly smaller: {better or 'none'}; clearly larger: "
        f"{worse or 'none'}. Query dimensions against the teacher's own {data.attrs['d_q']}: "
        f"{each}. Only $W_K'W_Q$ enters, t by t whatever $d_q$ is: beyond $d_q = t = "
        f"{data.attrs['t']}$ nothing is added to what can be learned."
    )


def limit_of(student: str, end: int) -> Callable[[xr.Dataset], xr.DataArray]:
    """The extrapolated limit of a student's error, or an end of its interval."""
    at = {"student": student, "varied": "samples"}
    return lambda data: interval(data["limit"].sel(at), ["member"])[end]


EXPERIMENT = Experiment(
    title="Without attention on an attention teacher, and the advice of section 5",
    question=__doc__,
    grid=GRID,
    run=run,
    table=[
        Table(["student", "n"], [Column("test error", "error", at={"varied": "samples"})]),
        Table(
            ["student", "setting"],
            [
                Column("n", lambda data: xr.DataArray(data.attrs["n"]), only),
                Column("test error", "swept", at={"varied": "advice"}),
                Column(CHANGE, changes, told, where=lambda row: row["setting"] != "plain"),
            ],
            where=lambda row: row["student"] == ATTENTION,
        ),
    ],
    figures=[
        Plot(
            "A floor without attention",
            Lines(
                "error", "n", at={"varied": "samples"}, colour="student", band=None, legend=False,
                xscale="log2", yscale="log", xlabel="samples $n$", width=1.6,
                ylabel=r"test error $E(\hat y-E(y|x))^2$",
            )
            + Lines(
                "error", "n", at={"varied": "samples"}, colour="student", band=mean_only,
                style="o-",
            )
            + Reference(
                y=limit_of(BASELINE, 1), to=limit_of(BASELINE, 2),
                label="limit without attention, extrapolated",
            ),
            floor_caption,
            height=1.3,
        ),
        Plot(
            "Advice of section 5 at one sample size",
            Points(
                lambda data: by_level(data).change.where(by_level(data).plain == 0),
                lambda data: by_level(data)["at"],
                band=geometric_interval, panel="sweep", title=SWEEPS, ink=PALETTE[0], marker="o",
                yscale="log2", ylabel=CHANGE, width=0.8,
            )
            + Reference(y=1.0)
            + Points(
                lambda data: by_level(data).change.where(by_level(data).plain == 1),
                lambda data: by_level(data)["at"],
                band=mean_only, marker="o", hollow=True, label="plain student",
            ),
            sweep_caption,
        ),
    ],
    note=NOTE,
)  # fmt: skip
