r"""Does the choice of p change which tokens joint training selects?

Joint normalised mirror descent on the value head v and on W, both from zero, on the toy problem
of the paper: two samples of three tokens in the plane, each queried by its first token.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array
from scipy.special import expit

from attlas._jax.device_arrays import on_device
from attlas.data.token_selection import TokenSelection
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import Column, Derived, Lines, Printed, final
from attlas.experiments.settings import Settings
from attlas.measures.attention.direction import direction_divergence
from attlas.solvers.attention_svm import attention_svm
from attlas.solvers.lp_svm import lp_svm
from attlas.training.trajectory import log_spaced
from julistiono2024optimizing.library.measures.settling import settling_times
from julistiono2024optimizing.library.token_selection.training import train_selection

STEPS = {1.75: 1500, 2.0: 2000, 3.0: 20000}
PAPER_TOKENS = {1.75: "(1, 0)", 2.0: "(1, 0)", 3.0: "(0, 0)"}
"""Tokens that the released code selects, counted from 0."""
TOKENS = (
    ((-2.7, 1.2), (1.4, 2.1), (1.3, -0.1)),
    ((0.4, -2.2), (-1.1, -0.4), (0.9, 0.1)),
)
LABELS = (1.0, -1.0)
LEVEL = 0.9
GRID = Grid(
    each={"p": [1.75, 2.0, 3.0]},
    fixed={
        "steps": lambda s: STEPS.get(s.p, 2000 if s.p < 3 else 20_000) // s.shorter,
        "rate": 0.1, "shorter": 1,
    },
    smoke={"shorter": 10},
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train v and W together and measure both against the SVMs of the selected tokens."""
    X = np.asarray(TOKENS)
    data = TokenSelection(*map(on_device, (X, np.asarray(LABELS), X[:, 0], np.zeros(2))))
    path = train_selection(
        data,
        jnp.zeros((2, 2)),
        p=s.p,
        learning_rate=s.rate,
        steps=s.steps,
        record_at=log_spaced(s.steps, 48),
        joint=True,
    )
    assert path.v is not None
    attention = np.asarray(path.attention)
    tokens = attention[-1].argmax(axis=1)
    features = np.take_along_axis(X, tokens[:, None, None], axis=1)[:, 0]
    context = np.einsum("snt,ntd->snd", attention, X)
    margins = np.asarray(data.y) * np.einsum("snd,sd->sn", context, path.v)
    steps = np.asarray(path.steps)
    selected_weights = np.take_along_axis(attention, tokens[None, :, None], axis=2)
    attended = settling_times(steps, selected_weights[:, :, 0], LEVEL)
    probability = expit(margins)
    apart = jax.jit(jax.vmap(partial(direction_divergence, p=s.p), (0, None)))
    divergence = [
        apart(block, np.where(svm.converged, svm.value, np.nan))
        for block, svm in (
            (path.W, attention_svm(X, data.z, tokens, s.p)),
            (path.v, lp_svm(features, data.y, s.p)),
        )
    ]
    return xr.Dataset(
        {
            "attention": (("step", "sample", "token"), path.attention),
            "probability": (("step", "sample"), probability),
            "tokens": ("sample", tokens),
            "divergence": (("trained", "step"), divergence),
            "W": (("step", "row", "column"), path.W),
            "v": (("step", "row"), path.v),
            "settled": (
                "settling",
                [attended.max(), settling_times(steps, probability, LEVEL).max()],
            ),
        },
        {
            "step": steps,
            "sample": [0, 1],
            "token": [0, 1, 2],
            "trained": ["W", "v"],
            "settling": ["attention", "probability"],
        },
    )


def selected(at: xr.Dataset) -> str:
    """The selected tokens, one number per sample."""
    return str(tuple(int(token) for token in at.tokens))


def selection(data: xr.Dataset) -> dict[str, object]:
    """Which tokens each p selects."""
    ends = data.dropna("p", how="all")
    return {
        "chosen": "; ".join(f"{selected(ends.sel(p=p))} at $p = {p:g}$" for p in ends.p.values),
        "distinct": len({selected(ends.sel(p=p)) for p in ends.p.values}),
    }


def after(data: xr.Dataset) -> xr.DataArray:
    """Steps from 1 on."""
    return data.step + 1


def answer(data: xr.Dataset) -> dict[str, object]:
    """The selections, and how many of them are different."""
    return selection(data)


TRAINED = {
    "W": "key-query weights to the attention SVM", "v": "value head to the SVM of selected tokens",
}  # fmt: skip
EXPERIMENT = Experiment(
    title="Joint training of value head and attention",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["p"],
        [
            Derived("tokens", selected),
            Printed("tokens, paper", PAPER_TOKENS),
            Column("attention > 0.9 from step", "settled", at={"settling": "attention"}),
            Column("probability > 0.9 from step", "settled", at={"settling": "probability"}),
            *(
                Column(f"D({name}) to its SVM", final("divergence", by=["p"]), at={"trained": name})
                for name in ("W", "v")
            ),
        ],
    ),
    figures=[
        panels.Plot(
            "Joint training of v and W",
            [
                Lines(
                    "attention", after, colour="token", dash="sample", names="token {token}",
                    dash_names="sample {sample}", panel="p", title="exponent $p = {p:g}$",
                    xscale="log", xlabel="training step + 1",
                    ylabel="share of the attention on a token",
                ),
                Lines(
                    "divergence", after, colour="trained", names=TRAINED,
                    panel="p", title="exponent $p = {p:g}$", xscale="log", yscale="log",
                    xlabel="training step + 1", ylabel="distance $D$ of directions",
                ),
            ],
            selection,
        )
    ],
)  # fmt: skip
