r"""Does the Rademacher complexity of attention grow with T, and how far above it are the bounds?

Projected ascent over the class of Theorem 4.1, a lower estimate, on prefixes of the same sequences,
for keys and queries in three balls; above it Theorem 4.1, the log T bound and parameter counting.
Sum pooling, which averages nothing, is the contrast that grows.
"""

from functools import partial

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.bounds.comparison.single_layer_class import norms_in_ball, single_layer_bounds
from attlas.display.bound_names import bound_in_words, bound_label
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.join import join
from attlas.experiments.panels import INK, PALETTE, Column, Lines, Points, Reference
from attlas.experiments.part_cache import cached_part
from attlas.experiments.settings import Settings
from attlas.measures.complexity.rademacher import draw_signs, rademacher_complexity
from attlas.measures.statistics.student_interval import student_interval
from trauger2023sequence.library.data.unit_sequences import make_unit_sequences, repeat_tokens
from trauger2023sequence.library.measures.norm_ball_classes import AttentionClass, Sequences
from trauger2023sequence.library.measures.paired_ratio import paired_ratio
from trauger2023sequence.library.measures.sum_pooling import sum_pooling_suprema

LAWS = ("own centre", "independent")
LAW_NAMES = {"own centre": "tokens near one centre", "independent": "independent tokens"}
POOLINGS = ("softmax", "sum pooling")
BOUNDS = {
    "Theorem 4.1, sharp": (INK, "-"),
    "Theorem 4.1, corrected": (INK, ":"),
    "log T": (PALETTE[2], "-"),
    "parameter counting": (PALETTE[3], "-"),
}
"""Bounds with ink and style."""
BALLS = {
    "1,1": "bounded sum of |entries|",
    "2,1": "bounded sum of column lengths",
    "1,inf": "bounded largest column sum",
}
SHARED = 100
"""Tokens of the program that lengths dividing it share."""
GRID = Grid(
    each={"ball": list(BALLS)},
    fixed={"repeats": 2**16, "radius": 2.0, "dtype": "float32"},
    smoke={"ball": ["1,1"], "lengths": [2, 4], "n": 6, "d": 2, "sign_vectors": 2, "starts": 2,
           "steps": 2},
    quick={
        "lengths": [10, 100, 1000], "n": 64, "d": 4, "sign_vectors": 16, "starts": 6, "steps": 24,
    },
    paper={
        "lengths": [10, 100, 1000, 10_000], "n": 64, "d": 8,
        "sign_vectors": 32, "starts": 6, "steps": 50,
    },
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Suprema by pooling, token law, length and sign vector, and the bounds by length."""
    cells = [cached_part(of_length, s, key, law, T) for law in LAWS for T in s.lengths]
    suprema = join(cells).suprema.transpose("pooling", "law", "length", "sign_vector")
    with jax.enable_x64(True):
        norms, points = norms_in_ball(s.ball, s.radius, s.d), [float(s.n * T) for T in s.lengths]
        bounds = jax.jit(
            partial(single_layer_bounds, norms, d=s.d, m=s.n * s.repeats),
            static_argnames=("covers", "constants"),
        )
        sharp, *log_T, counted = np.asarray(bounds(covers=(s.ball, *points, "parameters")))
        (corrected,) = np.asarray(bounds(covers=(s.ball,), constants="corrected"))
    values = [np.broadcast_to(a, len(points)) for a in (sharp, corrected, log_T, counted)]
    return xr.Dataset(
        {"suprema": suprema, "value": (("bound", "length"), np.minimum(values, 1.0))},
        {"bound": list(BOUNDS)},
    )


def of_length(s: Settings, key: Array, law: str, T: int) -> xr.Dataset:
    """Suprema of one token law at one length, by pooling and sign vector."""
    unit, radius = (jax.device_put(np.float32(a)) for a in (1.0, s.radius))
    attention = AttentionClass(s.ball, radius, unit, unit, unit)
    effort = {name: s[name] for name in ("sign_vectors", "starts", "steps", "repeats")}
    signs = draw_signs(key, s.sign_vectors, s.n, s.repeats) / s.repeats
    tokens, queries = make_unit_sequences(s.n, max(s.lengths), s.d, law == LAWS[0], s.seed)
    sample = Sequences(*map(jax.device_put, (repeat_tokens(tokens[:, :T], SHARED), queries)))
    suprema = [
        rademacher_complexity(key, attention, sample, **effort, chunk=1).suprema,
        sum_pooling_suprema(signs, tokens[:, :T]),
    ]
    data = xr.Dataset({"suprema": (("pooling", "sign_vector"), np.array(suprema))})
    data = data.assign_coords(pooling=list(POOLINGS))
    return data.expand_dims(["law", "length"]).assign_coords(law=[law], length=[T])


def above(data: xr.Dataset) -> xr.DataArray:
    """Theorem 4.1 over the larger of the two estimates of attention."""
    estimate = data.suprema.sel(pooling="softmax").mean("sign_vector").max("law")
    return data.value.sel(bound="Theorem 4.1, sharp") / estimate


def three_digits(suprema: xr.DataArray) -> str:
    """Mean over sign vectors with its interval."""
    mean, half_width = student_interval(suprema.values)
    return f"{mean:.3g} [{mean - half_width:.3g}, {mean + half_width:.3g}]"


def change(suprema: xr.DataArray) -> tuple[float, float]:
    """Last length over the first, in pairs of sign vectors, and half its interval."""
    ratio, half_width = paired_ratio(suprema.values[0], suprema.values[-1])
    return float(ratio), float(half_width)


def growth(data: xr.Dataset) -> dict[str, object]:
    """Whether the complexity grows, and how far above it the bounds are."""
    factors, changes, loose, grew = above(data), [], [], []
    for ball in data["ball"].values:
        of_ball = data.sel(ball=ball)
        ratios = [change(suprema) for suprema in of_ball.suprema.sel(pooling="softmax")]
        spans = [f"{ratio:.3g} ± {half_width:.2g}" for ratio, half_width in ratios]
        changes.append(f"{bound_in_words(ball)} {' and '.join(spans)}")
        grew += [bound_in_words(ball) for ratio, half_width in ratios if ratio - half_width > 1]
        log_T = of_ball.value.sel(bound="log T").values
        rise, factor = 100 * log_T[-1] / log_T[0] - 100, factors.sel(ball=ball).isel(length=-1)
        loose.append(f"{bound_in_words(ball)} {factor:.0f} (log T changes by {rise:.1f} %)")
    crossed = [
        bound_in_words(ball) for ball in data["ball"].values if (factors.sel(ball=ball) < 1).any()
    ]
    summed = data.suprema.sel(pooling="sum pooling").isel(ball=0)
    settings = {name: data.attrs[name] for name in ("n", "d", "sign_vectors", "starts", "steps")}
    return settings | {
        "shortest": data.length.values[0],
        "longest": data.length.values[-1],
        "changes": "; ".join(changes),
        "grew": ", ".join(grew),
        "summed": " and ".join("{:.3g} ± {:.2g}".format(*change(suprema)) for suprema in summed),
        "factors": "; ".join(loose),
        "crossed": ", ".join(crossed),
        "m": f"{data.attrs['n'] * data.attrs['repeats']:,}",
        "repeats": f"{data.attrs['repeats']:,}",
        "radius": f"{data.attrs['radius']:g}",
    }


def pooled(name: str) -> Points:
    """Estimates of one pooling by length."""
    softmax = name == "softmax"
    return Points(
        "suprema", "length", at={"pooling": name}, colour="law",
        names={law: f"{name}, {LAW_NAMES[law]}" for law in LAWS},
        marker="o" if softmax else "^", line="-" if softmax else ":", hollow=not softmax,
        panel="ball", title=BALLS, xscale="log", yscale="log", xlabel="length $T$ of the sequences",
        ylabel="Rademacher complexity: mean of the largest correlation with signs",
    )  # fmt: skip


def answer(data: xr.Dataset) -> dict[str, object]:
    """The range of the changes, and of the bound over the estimate."""
    softmax = data.suprema.sel(pooling="softmax")
    ratios = [change(suprema) for ball in softmax.transpose("ball", ...) for suprema in ball]
    lowest, highest = min(ratios), max(ratios)
    factors = above(data).isel(length=-1)
    return growth(data) | {
        "least": "{:.2f} ± {:.2f}".format(*lowest),
        "most": "{:.2f} ± {:.2f}".format(*highest),
        "low": f"{float(factors.min()):.0f}",
        "high": f"{float(factors.max()):.0f}",
    }


LAYERS = (
    *(Lines("value", "length", at={"bound": name}, label=bound_label(name), ink=ink, style=style)
      for name, (ink, style) in BOUNDS.items()),
    Reference(y=1.0, style="-.", label="largest value in the class"),
)  # fmt: skip
EXPERIMENT = Experiment(
    title="Rademacher complexity against the length",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        {"ball": "ball of W", "length": "T"},
        [
            *(
                Column(f"{name}, {law}", "suprema", three_digits, at={"pooling": name, "law": law})
                for law in LAWS
                for name in POOLINGS
            ),
            *(Column(name, "value", at={"bound": name}) for name in BOUNDS),
            Column("Theorem 4.1 / estimate", above),
        ],
    ),
    figures=[
        panels.Plot(
            "Rademacher complexity against the length",
            sum((pooled("sum pooling"), *LAYERS), pooled("softmax")),
            growth,
        )
    ],
)
