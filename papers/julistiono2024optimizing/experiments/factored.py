r"""Which attention SVM does the factored pair $W = W_K W_Q'$ find, nuclear or Frobenius?

The theorems of the paper are about the merged matrix W. Here gradient descent trains the factors,
and W itself from the same start; each is measured against the nuclear-norm and the Frobenius
attention SVM of the tokens that it selected.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.data.token_selection import TokenSelection
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import Column, Derived, median, taken, total
from attlas.experiments.settings import Settings
from attlas.training.trajectory import log_spaced
from julistiono2024optimizing.library.measures.svm_shortfall import NORMS, svm_shortfall
from julistiono2024optimizing.library.token_selection.factored import (
    draw_sphere_selection,
    train_factored,
)
from julistiono2024optimizing.library.token_selection.training import train_selection_ensemble

EXPECTED = {"factored": "nuclear", "merged": "Frobenius"}
NAMES = {"factored": "key and query matrix apart", "merged": "one merged matrix"}
GRID = Grid(
    fixed={
        "n": 4, "T": 4, "d": 5, "start": 0.1, "records": 32,
        "factored_rate": 0.02, "merged_rate": 0.1,
    },
    smoke={"members": 2, "steps": 500, "records": 8},
    quick={"members": 6, "steps": 20_000},
    paper={"members": 50, "steps": 100_000},
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train the factors and the merged matrix, and measure both against both SVMs."""
    draws = [np.random.default_rng([s.seed, e]) for e in range(s.members)]
    problems = [draw_sphere_selection(draw, s.n, s.T, s.d) for draw in draws]
    data = TokenSelection(
        *(jnp.asarray(np.stack(arrays)) for arrays in zip(*problems, strict=True))
    )
    pairs = [s.start * draw.normal(size=(2, s.d, s.d)) / np.sqrt(s.d) for draw in draws]
    K, Q = jnp.asarray(np.stack(pairs, axis=1))
    schedule = log_spaced(s.steps, s.records)
    factors = partial(
        train_factored, learning_rate=s.factored_rate, steps=s.steps, record_at=schedule
    )
    merged = train_selection_ensemble(
        data,
        jnp.asarray(np.einsum("eij,ekj->eik", K, Q)),
        p=2.0,
        learning_rate=s.merged_rate,
        steps=s.steps,
        record_at=schedule,
    )
    paths = {"factored": jax.vmap(factors)(data, K, Q).W, "merged": merged.W}
    measured = [
        [svm_shortfall(*path) for path in zip(*map(np.asarray, (data.X, data.z, W)), strict=True)]
        for W in paths.values()
    ]
    axes = {
        "shortfall": ("norm", "step"),
        "apart": ("norm", "step"),
        "spread": ("step",),
        "svm_spread": ("norm",),
        "tokens": ("sample",),
        "certified": ("norm",),
    }
    return xr.Dataset(
        {
            name: (("trained", "member", *dims), [[getattr(m, name) for m in w] for w in measured])
            for name, dims in axes.items()
        },
        {"trained": list(paths), "norm": list(NORMS), "step": np.asarray(merged.steps)},
    )


def last(name: str) -> panels.Formula:
    """A quantity after the last step."""
    return taken(name, at={"step": -1})


def nearer(at: xr.Dataset) -> str:
    """On how many certified problems training ends nearer to the SVM of its own norm."""
    ends = at.shortfall.isel(step=-1).dropna("member")
    expected = ends.sel(norm=EXPECTED[str(at.trained.values)])
    return f"{int((expected <= ends.min('norm')).sum())} of {ends.sizes['member']}"


def shortfalls(data: xr.Dataset) -> dict[str, object]:
    """Median shortfalls, and how often the expected norm is nearer."""
    sentences = []
    for trained, name in NAMES.items():
        at = data.sel(trained=trained)
        ends = [median(at.shortfall.sel(norm=norm).isel(step=-1)) for norm in NORMS]
        sentences.append(
            f"{name}: shortfall {ends[0]:.2g} in the nuclear and {ends[1]:.2g} in the Frobenius "
            f"norm (the expected one smaller on {nearer(at)})"
        )
    facts = answer(data)
    return {
        "found": facts["found"], "nearer": facts["nearer"],
        "shortfalls": "; ".join(sentences), "uncertified": total(data.certified == 0),
    }  # fmt: skip


def answer(data: xr.Dataset) -> dict[str, object]:
    """Which SVM each training finds, and on how many problems."""
    nearest, ends, near = {}, {}, {}
    for trained in NAMES:
        at = data.sel(trained=trained)
        medians = {norm: median(at.shortfall.sel(norm=norm).isel(step=-1)) for norm in NORMS}
        nearest[trained] = min(medians, key=lambda norm: medians[norm])
        ends[trained] = " and ".join(f"{x:.2g} in the {norm} norm" for norm, x in medians.items())
        near[trained] = nearer(at)
    sizes = {name: data.attrs[name] for name in ("n", "T", "d")}
    return {"found": nearest, "ends": ends, "nearer": near, **sizes}


EXPERIMENT = Experiment(
    title="The factored pair and its nuclear-norm SVM",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["trained"],
        [
            Derived("problems", lambda at: at.sizes["member"]),
            Derived("last step", lambda at: int(at.step[-1])),
            *(
                Column(f"{norm}{head}", quantity, median, at={"norm": norm})
                for norm in NORMS
                for head, quantity in (
                    (": shortfall", last("shortfall")),
                    (": 1 - cosine", last("apart")),
                    (" SVM: nuclear over Frobenius norm", "svm_spread"),
                )
            ),
            Column("W: nuclear over Frobenius norm", last("spread"), median),
            Derived("expected norm has the smaller shortfall", nearer),
            Column("SVMs not certified", lambda data: data.certified == 0, total),
        ],
    ),
    figures=[
        panels.Plot(
            "Factored pair and merged matrix",
            panels.Lines(
                lambda data: data.shortfall.where((data.shortfall > 0) & (data.shortfall < 1)),
                lambda data: data.step + 1, colour="trained", names=NAMES, band=None, panel="norm",
                title="SVM of the {norm} norm", xscale="log", yscale="log",
                xlabel="training step + 1",
                ylabel="1 − margin reached / largest margin", width=1.3,
            ),
            shortfalls,
        )
    ],
)  # fmt: skip
