r"""Does training move the attention onto the relevant tokens, and from which start?

Attention on the relevant tokens of the tokenized mixture during gradient descent, from zero, from
one randomised step and from Gaussian weights of two sizes; and what the sign of the random step
makes of each head.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.join import join
from attlas.experiments.panels import Column, Lines, mean_and_interval, taken
from attlas.experiments.settings import Settings
from attlas.optim.one_step import first_phase_steps
from attlas.training.gradient_descent import gradient_descent_ensemble
from attlas.training.trajectory import log_spaced
from deora2023optimization.experiments.instances import draw_phases, member_keys
from deora2023optimization.library.measures.token_attention import QUERIES, queried_attention
from deora2023optimization.library.optim.attention_starts import attention_starts

RECORDS = 25
SIGNS = {1: "alpha_h > 0", -1: "alpha_h < 0"}
SIGN_NAMES = {
    "alpha_h > 0": "heads that start on the right label",
    "alpha_h < 0": "heads that start on the wrong label",
}
GRID = Grid(
    each={"zeta": [0.1, 0.3, 0.5], "H": [4]},
    fixed={"T": 10, "d": 6, "M": 2, "S": 2.0, "rate": 0.3, "deviations": [0.1, 0.5]},
    smoke={"zeta": [0.3], "H": [2], "n": 12, "steps": 30, "first": 100, "members": 2},
    quick={"n": 24, "steps": 800, "first": 1000, "members": 4},
    paper={
        "zeta": [0.1, 0.3, 0.5, 0.7], "H": [1, 4, 16], "n": 48, "steps": 8000,
        "first": 10_000, "members": 8,
    },
)  # fmt: skip


def trained(s: Settings, member: int) -> xr.Dataset:
    """Train one member from every start, with the attention of every head."""
    data_key, sign_key = member_keys(member)
    _, train, first = draw_phases(s, data_key)
    starts = attention_starts(sign_key, first.X, first.y, s.H, s.deviations, [0, member])
    path = gradient_descent_ensemble(
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts), train.X, train.y,
        step_size=s.rate, steps=s.steps, record_at=log_spaced(s.steps, RECORDS),
    )  # fmt: skip
    mass = queried_attention(path.params, train.X, train.relevant)
    largest = jnp.linalg.norm(path.params.W, axis=(-2, -1)).max(axis=-1)
    along = ("start", "step")
    return xr.Dataset(
        {
            "mass": (("query", *along, "head"), mass),
            "loss": (along, path.loss),
            "largest_W": (along, largest),
            "sign": ("head", jnp.sign(first_phase_steps(sign_key, s.H))),
        },
        {
            "query": list(QUERIES),
            "start": ["zero", "one step", *(f"Gaussian {size:g}" for size in s.deviations)],
            "step": np.asarray(path.steps),
            "member": member,
        },
    )


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train every member from every start."""
    members = range(s.seed, s.seed + s.members)
    return join([trained(s, member).expand_dims("member") for member in members])


def mass(query: str, **at: int) -> panels.Formula:
    """Attention on the relevant tokens, mean over heads; at one record or along all."""
    return lambda data: taken("mass", {"query": query}, at)(data).mean("head")


def by_sign(data: xr.Dataset) -> xr.DataArray:
    """Attention after one step, the mean over the heads of one sign of that step."""
    masses = data["mass"].sel(query="all", start="one step", drop=True)
    signs = xr.DataArray(list(SIGNS), {"way": list(SIGNS.values())})
    return masses.where(data["sign"] == signs).mean("head")


def growth(data: xr.Dataset) -> dict[str, object]:
    """In how many trainings the mass has left its start, and how far it came."""
    first, last = mass("all", step=0)(data), mass("all", step=-1)(data)
    gain = last / data.zeta
    sentences = [
        f"from {start} in {int((last > first).sel(start=start).sum())} of "
        f"{int(last.sel(start=start).count())} trainings, by a factor of "
        f"{float(gain.sel(start=start).median()):.1f} over uniform attention in the median"
        for start in data.start.values
    ]
    facts = {name: answer(data)[name] for name in ("grown", "runs", "most", "best")}
    return {"steps": data.attrs["steps"], "starts": "; ".join(sentences), **facts}


def right_and_wrong(data: xr.Dataset) -> dict[str, object]:
    """Where heads end that start on the right label, and on the wrong one."""
    ends = by_sign(data).isel(step=-1).mean("member")
    masses, pairs = [], []
    for at in ends.stack(cell=["zeta", "H"]).transpose("cell", "way"):
        right, wrong = (f"{m:.2f}" if np.isfinite(m) else "(no such head)" for m in at.values)
        heads = f", $H = {int(at.H)}$" if data.H.size > 1 else ""
        masses.append(f"{right} and {wrong} at $\\zeta = {float(at.zeta):g}${heads}")
        if np.isfinite(at.values).all():
            pairs.append((at.values[0] > at.values[1], at.values[1] < float(at.zeta)))
    higher, below = (sum(map(bool, each)) for each in zip(*pairs, strict=True)) if pairs else (0, 0)
    return {
        "ends": ", ".join(masses),
        "higher": f"{higher} of {len(pairs)}",
        "all_higher": higher == len(pairs),
        "below": f"{below} of {len(pairs)}",
    }


def over_time(y: panels.Formula, colour: str, names: Any, band: Any) -> panels.Panel:
    """Attention along training, by sparsity and number of heads."""
    return Lines(
        y, lambda data: data.step + 1, colour=colour, names=names, band=band, panel="zeta",
        row="H", title="{zeta:.0%} relevant, heads: {H}", xscale="log", ylim=(0, 1),
        xlabel="training step + 1", ylabel="share of attention on relevant tokens",
    ) + panels.Reference(y=taken("zeta"),
                         label="uniform attention: share of relevant tokens")  # fmt: skip


def answer(data: xr.Dataset) -> dict[str, object]:
    """In how many trainings the mass grows, and the starts from which it comes farthest."""
    first, last = mass("all", step=0)(data), mass("all", step=-1)(data)
    over = [dim for dim in last.dims if dim != "start"]
    grown, runs = (last > first).sum(over), last.count(over)
    gain = (last / data.zeta).median(over)
    best, worst = int(gain.argmax("start")), int(gain.argmin("start"))
    return {
        "every": bool((grown == runs).all()),
        "mostly": bool((2 * grown > runs).all()),
        "never": bool((2 * grown <= runs).all()),
        "by_start": ", ".join(
            f"{name} {int(k)}/{int(of)}"
            for name, k, of in zip(grown.start.values, grown, runs, strict=True)
        ),
        "grown": int(grown.sum()),
        "runs": int(runs.sum()),
        "most": f"{gain.values[best]:.1f}",
        "best": gain.start.values[best],
        "fewest": f"{gain.values[worst]:.1f}",
        "worst": gain.start.values[worst],
        **{name: data.attrs[name] for name in ("steps", "n", "T")},
    }


START_NAMES = {"zero": "from zero weights", "one step": "from one large step"} | {
    f"Gaussian {size:g}": f"from Gaussian weights of deviation {size:g}" for size in (0.1, 0.5)
}
FROM_STARTS = over_time(mass("all"), "start", START_NAMES, panels.interval)
BY_SIGN = over_time(by_sign, "way", SIGN_NAMES, panels.mean_only)
EXPERIMENT = Experiment(
    title="Attention on the relevant tokens",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["zeta", "H", "start"],
        [
            Column("mass at the start", mass("all", step=0), mean_and_interval),
            Column("mass at the end", mass("all", step=-1), mean_and_interval),
            Column("queried by relevant tokens", mass("relevant", step=-1), mean_and_interval),
            Column("queried by others", mass("irrelevant", step=-1), mean_and_interval),
            *(
                Column(
                    f"mass of heads with {way}", lambda data: by_sign(data).isel(step=-1),
                    at={"way": way}, where=lambda row: row["start"] == "one step",
                )
                for way in SIGNS.values()
            ),
            Column("training loss", taken("loss", at={"step": -1}),
                   panels.geometric_mean),
            Column("largest ||W_h||", taken("largest_W", at={"step": -1}), mean_and_interval),
        ],
    ),
    figures=[
        panels.Plot("Attention on the relevant tokens", FROM_STARTS, growth),
        panels.Plot("Heads of the one-step start", BY_SIGN, right_and_wrong),
    ],
)  # fmt: skip
