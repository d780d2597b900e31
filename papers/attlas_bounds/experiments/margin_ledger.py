r"""How much does each step gain from the printed norm-based theorem to the best margin bound?

One attention layer with a linear readout is trained on sparse majority in a norm ball. Every step
from Theorem 4.1 of trauger2023sequence to PAC-Bayes with a certificate of attention bounds its
error from the same sequences and margins; the gain is in sequences.
"""

import equinox as eqx
import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.data.sparse_majority import MajorityDesign, make_sparse_majority
from attlas.data.unit_bit_embedding import one_hot_bits
from attlas.display.numbers import large_number, plain_number
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import Column, Points, Reference
from attlas.experiments.settings import Settings
from attlas.training.sparse_majority.projected import ProjectedSettings
from attlas_bounds.library.sparse_majority.margin_ledger import (
    GUESSING,
    INSTEAD,
    STEPS,
    margin_ledger,
)

GRID = Grid(
    each={"T": [4, 16]},
    fixed={
        "s": 1, "samples": 30_000, "radius": 6.0, "steps": 600, "fresh": 10_000, "delta": 0.05,
    },
    smoke={"T": [4], "samples": 60, "steps": 5, "fresh": 50},
    paper={"T": [4, 8, 16, 32], "samples": 100_000, "steps": 4000, "fresh": 100_000},
)  # fmt: skip
ROWS = (
    "bound by norms, all constants explicit (Theorem 4.1)",
    "+ softmax constant 1, not 2",
    "+ readout linear, no factor 2",
    "+ ramp loss in place of hinge",
    "+ norms of the tokens met",
    "+ one cover at half the margin",
    "+ deviations relative to the risk",
    "instead: local Rademacher",
    "instead: PAC-Bayes, certified",
)
"""What each bound after the printed one changes: "+" on the one above, "instead" of the cover."""


def run(s: Settings, key: Array) -> xr.Dataset:
    """Draw, train, and evaluate every step."""
    start, draw = jax.random.split(key)
    data = make_sparse_majority(draw, s.T, MajorityDesign(s.samples, s.fresh, s.s, s.T + 2))
    data = eqx.tree_at(lambda sequences: sequences.embedding, data, one_hot_bits(s.T))
    bounds = margin_ledger(start, data, s.radius, ProjectedSettings(steps=s.steps), s.delta)
    return xr.Dataset(
        {name: (("step",) if np.ndim(value) else (), value)
         for name, value in vars(bounds).items()},
        {"step": list(STEPS)},
    )  # fmt: skip


def gains(needed: xr.DataArray) -> list[dict[str, str]]:
    """The sequences that each step needs, and what it gains on the bound it stands for."""
    rows = []
    for k, step in enumerate(STEPS):
        size = float(needed.isel(step=k))
        reference = INSTEAD.get(step, STEPS[max(k - 1, 0)])
        before = float(needed.sel(step=reference)) if k else float("nan")
        factor = before / size
        rows.append({
            "name": step,
            "needed": large_number(size) if np.isfinite(size) else "(no number)",
            "factor": plain_number(factor) if np.isfinite(factor) else "",
        })  # fmt: skip
    return rows


def answer(data: xr.Dataset) -> dict[str, object]:
    """The ends of the ledger at the fewest bits, and what is certified."""
    fewest = data.isel(T=0)
    first, best = (
        float(fewest.needed.isel(step=1)),
        float(fewest.needed.isel(step=slice(1, None)).min()),
    )
    shared = fewest.shared.isel(step=slice(1, None))
    return {
        "T": int(fewest["T"]), "n": f"{data.attrs['samples']:,}".replace(",", "{,}"),
        "certified": f"{100 * float(fewest.least):.4g}", "vacuous": bool(fewest.least >= GUESSING),
        "name": str(shared.idxmin("step").values), "count": shared.size,
        "held_out": percent(fewest.held_out), "held_out_bound": percent(fewest.held_out_bound),
        "first": large_number(first), "needed": large_number(best),
        "finite": bool(np.isfinite(first / best)), "falls": best < first,
        "delta": f"{data.attrs['delta']:g}", "factor": large_number(first / best),
    }  # fmt: skip


def percent(share: xr.DataArray) -> str:
    """Two significant digits."""
    return f"{100 * float(share):.2g}"


def explained(data: xr.Dataset) -> xr.DataArray:
    """The sequences needed by the bounds, their names spelled out; the first is no bound."""
    return data.needed.isel(step=slice(1, None)).assign_coords(step=list(ROWS))


def ledger(data: xr.Dataset) -> dict[str, object]:
    """Every step with its factor, at the fewest and at the most bits."""
    ends = [data.isel(T=0)] + ([data.isel(T=-1)] if data.sizes["T"] > 1 else [])
    return {
        **{name: answer(data)[name] for name in ("first", "needed", "factor", "finite", "falls")},
        "fewest": int(data["T"][0]),
        "n": answer(data)["n"],
        "each": [{"T": int(case["T"]), "rows": gains(case.needed)} for case in ends],
        "margins": ", ".join(f"{float(m):.2g} for $T = {int(m['T'])}$" for m in data.margin),
    }


EXPERIMENT = Experiment(
    title="The ledger of margin bounds, on a trained layer",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["T"],
        [
            *(Column(f"{step}: sequences", "needed", at={"step": step}) for step in STEPS[1:]),
            *(Column(f"{step}: certified", "certified", at={"step": step}) for step in STEPS),
            Column("least of all bounds, in their union", "least"),
            Column("held-out error", "held_out"),
            Column("held-out bound", "held_out_bound"),
            Column("least margin", "margin"),
        ],
    ),
    revision=3,
    figures=[
        panels.Plot(
            "Sequences until each bound is below guessing",
            Points(explained, "step", colour="T", names="sequences of {T} bits",
                   across=True, width=3.0, xscale="log", ylabel="bound (+: adds to the one above)",
                   xlabel="training sequences until the bound on the error is below 1/2")
            + Reference(x=lambda data: xr.DataArray(data.attrs["samples"]),
                        label="size of this sample"),
            ledger,
        ),
    ],
)  # fmt: skip
