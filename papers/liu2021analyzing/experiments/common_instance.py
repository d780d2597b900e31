r"""What do the measures and bounds of five papers find in one trained head, and what is its gap?

One head that reads the last token, $f(X) = u^\top X^\top \mathrm{softmax}(X W^\top x_T)$, is
trained by gradient descent on a tokenized mixture. Every measurement of the five papers is taken
on the same parameters.
"""

import re
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.display.bound_names import bound_in_words
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import PALETTE, Formula, Lines, Panel, Points, Reference
from attlas.experiments.settings import Settings
from liu2021analyzing.library.audit.audit_dataset import audit_arrays, audit_dataset
from liu2021analyzing.library.audit.head_audit import AuditSettings, audit_heads
from liu2021analyzing.library.audit.head_rows import head_rows, theorem_2_applies
from liu2021analyzing.library.audit.ranked_bounds import ranked_bounds, ranked_dataset
from liu2021analyzing.library.audit.trained_heads import (
    Descent,
    sample_mixtures,
    train_heads,
    training_facts,
)

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

DELTA = 0.05
GRID = Grid(
    each={"n": [32]},
    fixed={
        "T": 8, "d": 8, "M": 3, "Z": 1.0, "Z_mu": 0.4, "deviation": 0.2, "tau": 0.1, "gamma": 0.5,
        "fresh": 2000, "left_out": 2, "radius": 8.0, "steps": 45_000, "records": 15,
        "searches": 5, "climb": 100, "members": 5,
    },
    smoke={
        "n": [12], "fresh": 80, "radius": 6.0, "steps": 200, "records": 5, "searches": 3,
        "climb": 5, "members": 2,
    },
    paper={
        "n": [32, 128, 512], "fresh": 10_000, "left_out": 4, "radius": 10.0, "steps": 60_000,
        "records": 20, "searches": 8, "climb": 500, "members": 5,
    },
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train, measure as each paper does, and evaluate every bound."""
    mixture = {name: s[name] for name in ("T", "d", "M", "Z_mu", "Z")}
    samples = sample_mixtures(key, s.members, (s.n, s.fresh), **mixture)
    descent = Descent(s.radius, s.steps, s.records, s.left_out, s.deviation)
    heads = train_heads(samples, descent, s.seed)
    settings = AuditSettings(s.tau, s.gamma, DELTA, s.searches, s.climb, s.seed)
    audit = training_facts(heads, samples, s.radius) | dict(audit_heads(heads, settings))
    return audit_dataset(audit, heads.steps)


def table(data: xr.Dataset) -> "pandas.DataFrame":
    """One row per measurement: paper, quantity, its spread over the members, a remark."""
    import pandas as pd

    rows = []
    for n in data.n.values.tolist():
        for row in head_rows(audit_arrays(data.sel(n=n)), n, data.attrs["gamma"]):
            spread = dict(zip(("median", "least", "largest"), row.spread, strict=True))
            named = {"samples": n, "paper": row.paper, "quantity": row.quantity}
            rows.append({**named, **spread, "remark": row.remark})
    return pd.DataFrame(rows)


def gap_of(name: str) -> Formula:
    """A risk on fresh samples minus that on the training samples."""
    return lambda data: data[name].sel(set="fresh") - data[name].sel(set="training")


def on(name: str, part: str) -> Formula:
    """A risk on one of the two sets."""
    return panels.taken(name, {"set": part})


def along_training(
    title: str, ylabel: str, *lines: tuple[str | Formula, str, str], **axes: Any
) -> Panel:
    """Quantities along the training on the largest sample; no logarithm shows the start."""

    def line(k: int, y: str | Formula, label: str, style: str) -> Lines:
        def trained(data: xr.Dataset) -> xr.DataArray:
            values = data[y] if isinstance(y, str) else y(data)
            return values.isel(n=-1, step=slice(1, None))

        return Lines(trained, "step", label=label, style=style, ink=PALETTE[k])

    first, *others = (line(k, *quantity) for k, quantity in enumerate(lines))
    panel = replace(
        first, title=title, xscale="log", xlabel="training step", ylabel=ylabel, width=1.3, **axes,
    )  # fmt: skip
    return reduce(Panel.__add__, others, panel)


def best_reached(data: xr.Dataset) -> xr.DataArray:
    """The largest margin found at the norm of the last record, over the norm of u."""
    norm = data.norms.sel(part="u").isel(step=-1)
    return (data.margin_reachable / norm).isel(n=-1).median("member")


PATHS = [
    along_training(
        "errors",
        "share of sequences classified wrongly",
        (on("error", "training"), "training sequences", "--"),
        (on("error", "fresh"), "fresh sequences", "-"),
    ),
    along_training(
        "attention margin (Julistiono et al.)",
        "attention margin / largest possible",
        (lambda data: data.selection / data.svm_margin, "attention margin / largest possible", "-"),
        ylim=(-1.05, 1.05),
    )
    + Reference(y=0, label="zero: the tokens are level"),
    along_training(
        "output margin (Deora et al.)", "least margin / norm of the readout",
        ("decoder", "least margin / norm of the readout", "-")
    )
    + Reference(y=best_reached, label="best found at this norm", style="--", ink=PALETTE[0]),
    along_training(
        "tangent kernel (Gu et al.)",
        "change of the kernel / its size",
        ("margin_drift", "change of the tangent kernel / its norm", "-"),
        yscale="log",
    )
    + Reference(y=1, label="one: no longer the kernel of the start"),
    along_training(
        "concentration (Liu et al.)",
        "share of a row's norm in its two largest weights",
        ("land_relative_top", "norm of the two largest of eight weights / norm of all", "-"),
        ylim=(0, 1.02),
    ),
    along_training(
        "test minus training loss",
        "test − training logistic loss, or bound",
        (lambda data: gap_of("risk")(data).clip(1e-9), "measured", "-"),
        ("bound_gap_sharp", "bound by Deora et al., sharp (Theorem 2)", "--"),
        ("bound_gap", "bound by Deora et al., printed (Theorem 2)", ":"),
        yscale="log", ylim=(1e-3, None),
    )
    + Reference(y=float(np.log(2)), label="loss of guessing: a bound above is vacuous"),
]  # fmt: skip


def ends(data: xr.Dataset) -> dict[str, object]:
    """How far training went, and where Theorem 2 is informative."""
    sizes = []
    for n in data.n.values.tolist():
        a = audit_arrays(data.sel(n=n))
        informative = theorem_2_applies(a) & (a["bound_gap_sharp"] < np.log(2))
        sizes.append({
            "n": n, "margin": f"{np.median(a['selection'][:, -1] / a['svm_margin']):.0%}",
            "drift": f"{np.median(a['margin_drift'][:, -1]):.1f}",
            "top": f"{np.median(a['land_relative_top'][:, -1]):.0%}",
            "informative": f"{np.mean(informative[:, 1:]):.0%}",
        })  # fmt: skip
    return {"sizes": sizes, "members": data.sizes["member"]}


PAPERS = {
    "truth": "measured", "julistiono2024": "Julistiono et al. (2024)",
    "deora2023": "Deora et al. (2023)", "gu2024": "Gu et al. (2024)",
    "trauger2023": "Trauger and Tewari (2023)", "liu2021": "Liu et al. (2021)",
}  # fmt: skip
"""Papers in the legend, by the names of the record."""
ROWS = {
    "measured stability, Lemma 3": "bound by measured stability (Lemma 3)",
    "W, selected tokens": "trained weights, selected tokens",
    "head with W = 0": "head without attention",
    "NTK at the start": "tangent kernel at the start",
    "global margin, ceiling": "global margin, upper bound",
}
"""Rows whose names in the record have symbols."""


def row_in_words(name: str) -> str:
    """The name of a row by what it says, a theorem in brackets."""
    words = bound_in_words(name).replace("cover with", "bound with")
    size, mark, bound = words.rpartition(": ")
    theorem = re.fullmatch(r"((?:Theorem|Corollary) [\d.]+), ([\w -]+)", bound)
    if theorem is not None and theorem[2].endswith("norm"):
        return f"bound by {theorem[2]} ({theorem[1]})"
    if theorem is not None:
        what = f"{size} required" if mark else "bound on the gap"
        return f"{what}, {theorem[2]} ({theorem[1]})"
    return ROWS.get(words, f"{size} required by {bound}" if mark else words)


def on_most_samples(data: xr.Dataset) -> xr.Dataset:
    """The runs on the largest sample that has any; a part of the cells may lack the last one."""
    return data.dropna("n", how="all").isel(n=-1)


def ranked(name: str, applies: bool | None = None) -> Formula:
    """One kind of the ranked bounds on the largest sample; those whose conditions hold, or fail."""

    def values_of(data: xr.Dataset) -> xr.DataArray:
        rows_of = ranked_dataset(audit_arrays(on_most_samples(data)))
        # Before its rows have other names, by which xarray would align them.
        values = rows_of[name]
        values = values if applies is None else values.where(rows_of.applies == applies)
        for axis in {"margin", "bound", "required"} & set(values.dims):
            rows = [row_in_words(row) for row in values[axis].values.tolist()]
            values = values.assign_coords({axis: rows})
        return values

    return values_of


def with_values(name: str, axis: str, applies: bool | None = None) -> Formula:
    """Rows and papers that have a positive value, whether or not the conditions hold."""

    def values_of(data: xr.Dataset) -> xr.DataArray:
        values = ranked(name)(data)
        positive = (values > 0) & np.isfinite(values)
        places = {
            side: np.flatnonzero(positive.any([dim for dim in positive.dims if dim != side]))
            for side in (axis, "paper")
        }
        return ranked(name, applies)(data).isel(places)

    return values_of


def digits(power: xr.DataArray) -> xr.DataArray:
    """The number of decimal digits of $10^{power}$, which itself may exceed every float."""
    return power // 1 + 1


def ranks(name: str, axis: str, **axes: Any) -> Panel:
    """Median and quartiles of each row, in the colour of its paper; open where conditions fail."""
    look: dict[str, Any] = {
        "colour": "paper", "band": panels.quartiles, "across": True, "marker": "o", "names": PAPERS,
    }  # fmt: skip
    if name == "required_sizes":
        sizes = with_values(name, axis)
        return Points(lambda data: digits(sizes(data)), axis, **look, width=2.4, **axes)
    if axis != "bound":
        return Points(with_values(name, axis), axis, **look, width=2.4, **axes)
    failing = Points(with_values(name, axis, False), axis, hollow=True, **look)
    return Points(with_values(name, axis, True), axis, **look, width=2.4, **axes) + failing


def nearest(data: xr.Dataset) -> dict[str, object]:
    """Which bound is nearest, and by how much it misses."""
    sizes = []
    for n in data.n.values.tolist():
        rows = ranked_bounds(audit_arrays(data.sel(n=n))).gaps
        gap = next(row.spread[0] for row in rows if row.quantity == "true gap, ramp risk")
        bounds = [row for row in rows if row.paper != "truth" and not row.remark]
        best = min(bounds, key=lambda row: row.spread[0])
        sizes.append({
            "n": n, "gap": f"{gap:.2f}" if gap >= 0.01 else "less than 0.01",
            "least": f"{best.spread[0]:.3g}", "name": bound_in_words(best.quantity),
            "vacuous": best.spread[0] >= 1,
        })  # fmt: skip
    return {"sizes": sizes}


def required(data: xr.Dataset) -> dict[str, object]:
    """The digits of the sizes required, and the error for which one of them is."""
    sizes = with_values("required_sizes", "required")(data).median("member").max("paper")
    samples = [row.startswith("samples") for row in sizes.required.values.tolist()]
    n = int(on_most_samples(data).n)
    return {
        "n": n,
        "enough": int((sizes.isel(required=samples) <= np.log10(n)).sum()),
        "error": f"{data.attrs['gamma'] ** 2:g}",
        "fewest": int(digits(sizes).min()),
        "most": int(digits(sizes).max()),
    }


def answer(data: xr.Dataset) -> dict[str, object]:
    """What the captions say of each number of samples."""
    training = ends(data)
    return {
        "ends": training["sizes"],
        "gaps": nearest(data)["sizes"],
        "members": training["members"],
    }


EXPERIMENT = Experiment(
    title="One head through five papers",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=table,
    figures=[
        panels.Plot("One head along its training", PATHS, ends),
        panels.Plot(
            "The true gap of one head and its bounds",
            ranks("gaps", "bound", ylabel="gap, or bound on it",
                  xlabel="test minus training risk, or bound", xscale="log")
            + Reference(x=1, label="one: a bound to the right is vacuous",
                        style="--"),
            nearest, height=1.4,
        ),
        panels.Plot(
            "Sizes that the bounds of one head require",
            ranks("required_sizes", "required", ylabel="size that a bound requires",
                  xlabel="decimal digits of the size (4: thousands)")
            + Reference(x=lambda data: digits(np.log10(on_most_samples(data).n)),
                        label="digits of the samples trained on", style="--"),
            required, height=1.5,
        ),
        panels.Plot(
            "Margins of one head",
            ranks("margins", "margin", xlabel="margin (larger is better)",
                  ylabel="kind of margin", xscale="log"),
            ends, height=1.2,
        ),
    ],
)  # fmt: skip
