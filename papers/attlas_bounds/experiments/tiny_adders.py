r"""What error is a Transformer certified at that was trained on n sums, from those sums alone?

One- and two-layer Transformers of tens to thousands of parameters learn ten-digit addition from n
independent sums. Their weights end on a grid, and Occam's bound holds for all adders on it; the
exact bound of a held-out set and the norm-based ones stand beside it.
"""

from dataclasses import fields

import equinox as eqx
import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas._jax.device_arrays import entry, generator
from attlas.core.errors import UserError
from attlas.display.bound_names import bound_in_words
from attlas.display.numbers import large_number
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import PALETTE, Column, Lines, Points, Reference, mean_only
from attlas.experiments.settings import Settings
from attlas_bounds.library.addition.adder import Adder
from attlas_bounds.library.addition.certified_adder import (
    AdderCertificate,
    adder_norm_bounds,
    certify_adder,
)
from attlas_bounds.library.addition.sums import Additions, draw_additions
from attlas_bounds.library.addition.training import AdderDescent, AdderSize, train_adders

SIZES = {
    "69 parameters": AdderSize(layers=1, width=2, hidden=2),
    "187 parameters": AdderSize(layers=1, width=4, hidden=8),
    "387 parameters, 2 layers": AdderSize(layers=2, width=8, hidden=8),
    "455 parameters, 2 layers": AdderSize(layers=2, width=8, hidden=12),
    "1675 parameters, 2 layers": AdderSize(layers=2, width=16, hidden=32),
    "3467 parameters, 2 layers": AdderSize(layers=2, width=24, hidden=48),
}
"""Among these and the starts the best is chosen, at every scale."""
GRID = Grid(
    each={"size": ["387 parameters, 2 layers"]},
    fixed={
        "samples": [10_000, 100_000], "starts": 2, "steps": 8000, "batch": 16, "rate": 0.02,
        "spacing": 1 / 32, "fresh": 10_000, "digits": 10, "delta": 0.05, "dtype": "float32",
    },
    smoke={
        "size": ["69 parameters"], "samples": [40, 80], "starts": 1, "steps": 5, "batch": 4,
        "fresh": 50, "digits": 3,
    },
    paper={
        "size": list(SIZES), "samples": [1000, 10_000, 100_000, 1_000_000], "starts": 4,
        "steps": 60_000, "batch": 32, "fresh": 100_000,
    },
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train from every start on every n, certify all, and bound the best by norms."""
    train, draw = jax.random.split(key)
    rng = generator(draw)
    data = draw_additions(rng, max(s.samples), s.digits)
    fresh = draw_additions(rng, s.fresh, s.digits)
    descent = AdderDescent(s.steps, s.batch, s.rate, s.spacing)
    models = train_adders(train, data, s.samples, s.starts, SIZES[s.size], descent)
    choices, certificates, gaps, needed = s.starts * len(SIZES), [], [], []
    for k, n in enumerate(s.samples):
        sums = Additions(*(part[:n] for part in data))
        by_start = [
            certify_adder(member(models, k, i), sums, fresh, s.spacing, choices, s.delta)
            for i in range(s.starts)
        ]
        certified = np.array([certificate.certified for certificate in by_start])
        if np.isnan(certified).all():
            raise UserError(f"all {s.starts} starts diverged at n = {n}: lower the rate")
        best = int(np.nanargmin(certified))
        table = adder_norm_bounds(member(models, k, best), sums, n, s.delta)
        rows = [entry for entry in table.entries if entry.is_bound and entry.name != "trivial"]
        certificates.append(by_start)
        gaps.append([entry.gap for entry in rows])
        needed.append([entry.samples_until_nonvacuous for entry in rows])
    axes = ("n", "start")
    return xr.Dataset(
        {
            **{name: (axes, np.array([[getattr(certificate, name) for certificate in by_start]
                                      for by_start in certificates]))
               for name in (field.name for field in fields(AdderCertificate))},
            "norm_gap": (("n", "bound"), np.array(gaps)),
            "norm_needed": (("n", "bound"), np.array(needed)),
        },
        {"n": list(s.samples), "start": np.arange(s.starts),
         "bound": [entry.name for entry in rows]},
    )  # fmt: skip


def member(models: Adder, *place: int) -> Adder:
    """One of stacked adders."""
    arrays, static = eqx.partition(models, eqx.is_array)
    return eqx.combine(jax.tree.map(lambda a: entry(a, place), arrays), static)


def best_adder(data: xr.Dataset) -> xr.Dataset:
    """At each n the adder with the least certified error, of all sizes and starts."""
    stacked = data.stack(adder=("size", "start"))
    return stacked.isel(adder=stacked.certified.fillna(np.inf).argmin("adder"))


def least(name: str) -> panels.Formula:
    """A quantity of the chosen adder."""
    return lambda data: best_adder(data)[name].reset_coords(drop=True)


def least_norm(of: str) -> panels.Formula:
    """The least over the norm-based bounds, those that count parameters or not."""
    counts = of == "parameters"

    def least_gap(data: xr.Dataset) -> xr.DataArray:
        rows = [name for name in data.bound.values if (name.startswith("parameters")) == counts]
        return data.norm_gap.sel(bound=rows).min(["bound", "size"])

    return least_gap


def percent(share: float) -> str:
    """Two significant digits, without an exponent."""
    return f"{100 * share:.2g}" if share < 0.995 else "100"


def answer(data: xr.Dataset) -> dict[str, object]:
    """What the largest n certifies."""
    last, by_norms = best_adder(data).isel(n=-1), norms(data)
    return {
        "n": f"{int(last.n):,}".replace(",", "{,}"), "certified": percent(float(last.certified)),
        "held_out": percent(float(last.held_out)), "vacuous": bool(last.certified >= 1),
        "held_out_bound": percent(float(last.held_out_bound)),
        "parameters": f"{float(last.parameters):.0f}", "bits": f"{float(last.bits):.0f}",
        "digits": data.attrs["digits"], "places": data.attrs["digits"] + 1,
        "norm_gap": by_norms["gap"], "norms_vacuous": by_norms["vacuous"],
    }  # fmt: skip


def certificates(data: xr.Dataset) -> dict[str, object]:
    """How the certified error falls with n."""
    best = best_adder(data)
    cases = [
        {"n": f"{int(n):,}".replace(",", "{,}"), "certified": percent(float(c)),
         "held_out": percent(float(h)), "bound": percent(float(b)), "size": str(size)}
        for n, c, h, b, size in zip(
            best.n.values, best.certified.values, best.held_out.values,
            best.held_out_bound.values, best["size"].values, strict=True)
    ]  # fmt: skip
    return {
        "each": cases,
        "starts": data.sizes["start"],
        "sizes": data.sizes["size"],
        "fresh": data.attrs["fresh"],
    }


def norms(data: xr.Dataset) -> dict[str, object]:
    """From where on the norm-based bounds would be below one."""
    needed = data.norm_needed.isel(n=-1).min("size")
    by_norm = [name for name in data.bound.values if not name.startswith("parameters")]
    least_needed = float(needed.sel(bound=by_norm).min())
    gap = float(least_norm("norms")(data).isel(n=-1))
    counted = float(needed.drop_sel(bound=by_norm).min())
    return {
        "gap": f"{gap:.2f}",
        "vacuous": gap >= 1,
        "needed": large_number(least_needed),
        "finite": bool(np.isfinite(least_needed)),
        "counted": large_number(counted),
    }


def shown_gaps(data: xr.Dataset) -> xr.DataArray:
    """The bounds on the heads, by names in words."""
    names = [bound_in_words(name) for name in data.bound.values.tolist()]
    return data.norm_gap.min("size").assign_coords(bound=names)


CERTIFIED = (
    Lines(least("certified"), "n", ink=PALETTE[0],
          label="certified from the training sums alone (Occam)",
          xscale="log", yscale="log", xlabel="training sums $n$", width=1.6,
          ylabel="share of wrong sums (lower is better)", title="the best size and start",
          band=mean_only)
    + Lines(least("held_out_bound"), "n", ink=PALETTE[1], style="--", band=mean_only,
            label="certified with fresh sums (exact binomial)")
    + Lines(least("held_out"), "n", ink=PALETTE[1], style="o", band=mean_only,
            label="measured on fresh sums")
    + Lines(least_norm("norms"), "n", ink=PALETTE[2], style="-.", band=mean_only,
            label="best norm-based bound, attention heads alone")
    + Lines(least_norm("parameters"), "n", ink=PALETTE[3], style=":", band=mean_only,
            label="parameter counting, attention heads alone")
    + Reference(y=1.0, label="all sums wrong: a bound above is vacuous")
)  # fmt: skip
EACH = Points(
    "certified", "n", colour="size", band=panels.extremes, dodge=0.06, line="-", xscale="log",
    yscale="log", xlabel="training sums $n$", ylabel="certified share of wrong sums", width=1.6,
    title="each size, all starts",
) + Reference(y=1.0, label="all sums wrong: a bound above is vacuous")  # fmt: skip
EXPERIMENT = Experiment(
    title="Tiny adders: certified from the sums they were trained on",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["size", "n"],
        [
            Column("parameters", "parameters", panels.only),
            Column("diverged", lambda data: data.certified.isnull().sum("start"), panels.only),
            Column("bits", "bits", panels.mean_and_range),
            Column("certified error", "certified", panels.mean_and_range),
            Column("error on the training sums", "train_error", panels.mean_and_range),
            Column("held-out error", "held_out", panels.mean_and_range),
            Column("held-out bound", "held_out_bound", panels.mean_and_range),
            Column("wrong digits, held-out", "digit_error", panels.mean_and_range),
            Column("least norm-based gap, heads alone",
                   lambda data: data.norm_gap.where(data.bound != "parameters").min("bound"),
                   panels.only),
            Column("samples it needs",
                   lambda data: data.norm_needed.where(data.bound != "parameters").min("bound"),
                   panels.only),
        ],
    ),
    figures=[
        panels.Plot("Certified error against n", [CERTIFIED, EACH], certificates),
        panels.Plot(
            "Norm-based bounds of the heads",
            Points(
                shown_gaps, "bound", colour="n", names="{n:,} training sums",
                across=True, width=2.4, xscale="log", ylabel="bound, with its constants",
                xlabel="bound on test minus training error (lower is better)",
            )
            + Reference(x=1.0, label="largest possible error: a bound above is vacuous"),
            norms,
        ),
    ],
)  # fmt: skip
