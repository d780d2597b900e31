r"""Does training move the attention onto the relevant tokens, and from which start?

Attention on the relevant tokens of the tokenized mixture during gradient descent, from zero, from
one randomised step and from Gaussian weights of two sizes; and what the sign of the random step
makes of each head.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.experiments.deora2023optimization.instances import draw_phases, member_keys
from attlas.measures.attention.queried_attention import QUERIES, queried_attention
from attlas.optim.attention_starts import attention_starts
from attlas.optim.one_step import first_phase_steps
from attlas.panels.lines import Lines
from attlas.panels.plot import Plot
from attlas.panels.reference import Reference
from attlas.panels.summary import geometric_mean, interval, mean_and_interval, mean_only
from attlas.panels.table import Column, Table
from attlas.runs.experiment import Experiment
from attlas.runs.grid import Grid
from attlas.runs.join import join
from attlas.runs.settings import Settings
from attlas.training.gradient_descent import gradient_descent_ensemble
from attlas.training.trajectory import log_spaced

RECORDS = 25
SIGNS = {1: "alpha_h > 0", -1: "alpha_h < 0"}
SIGN_NAMES = {name: f"heads with $\\{name}$" for name in SIGNS.values()}
NOTE = (
    "Mass: share of a query's attention on the tokens that equal the label's pattern, mean over "
    "queries, heads and samples; $\\zeta$ without attention weights. Every seed draws patterns, "
    "samples and starts. From zero all heads stay equal, and $W$ has no gradient before $U$ has "
    "moved; no symmetry needs breaking. Gaussian: independent entries $N(0, \\sigma^2)$ in $U$ "
    "and $W$. Noise: $Z_\\mu = Z_\\nu = .02 S^2$, $Z = .2 S$."
)
GRID = Grid(
    each={"zeta": [0.1, 0.3, 0.5], "H": [4]},
    fixed={"T": 10, "d": 6, "M": 2, "S": 2.0, "rate": 0.3, "deviations": [0.1, 0.5]},
    smoke={"zeta": [0.3], "H": [2], "n": 12, "steps": 30, "first": 100, "members": 2},
    quick={"n": 24, "steps": 800, "first": 1000, "members": 4},
    paper={
        "zeta": [0.1, 0.3, 0.5, 0.7], "H": [1, 4, 16], "n": 100, "steps": 20_000,
        "first": 10_000, "members": 10,
    },
)  # fmt: skip


def trained(s: Settings, member: int) -> xr.Dataset:
    """Train one member from every start, with the attention of every head."""
    data_key, sign_key = member_keys(member)
    _, train, first = draw_phases(s, data_key)
    starts = attention_starts(sign_key, first.X, first.y, s.H, s.deviations, [0, member])
    path = gradient_descent_ensemble(
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts),
        train.X,
        train.y,
        step_size=s.rate,
        steps=s.steps,
        record_at=log_spaced(s.steps, RECORDS),
    )
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


def mass(query: str, step: int | None = None) -> Callable[[xr.Dataset], xr.DataArray]:
    """Attention on the relevant tokens, mean over heads; at one record or along all."""

    def taken(data: xr.Dataset) -> xr.DataArray:
        found = data["mass"].sel(query=query).mean("head")
        return found if step is None else found.isel(step=step)

    return taken


def by_sign(data: xr.Dataset) -> xr.DataArray:
    """Attention of each head after one step, apart by the sign of that step."""
    found = data["mass"].sel(query="all", start="one step", drop=True)
    signs = xr.DataArray(list(SIGNS), {"way": list(SIGNS.values())})
    return found.where(data["sign"] == signs)


def after(data: xr.Dataset) -> xr.DataArray:
    """Steps from 1 on."""
    return data.step + 1


def mass_caption(data: xr.Dataset) -> str:
    """In how many trainings the mass has left its start, and how far it came."""
    first, last = mass("all", 0)(data), mass("all", -1)(data)
    gain = last / data.zeta
    found = [
        f"from {start} in {int((last > first).sel(start=start).sum())} of "
        f"{int(last.sel(start=start).count())} trainings, by a factor of "
        f"{float(gain.sel(start=start).median()):.1f} over uniform attention in the median"
        for start in data.start.values
    ]
    return (
        "Does training move the attention onto the relevant tokens? The mass has grown after "
        f"{data.attrs['steps']} steps {'; '.join(found)}. Bands: 95 % intervals of the mean over "
        "the seeds."
    )


def sign_caption(data: xr.Dataset) -> str:
    """Where heads end that start on the right label, and on the wrong one."""
    ends = by_sign(data).isel(step=-1).mean(["member", "head"])
    found = []
    for at in ends.stack(cell=["zeta", "H"]).transpose("cell", "way"):
        right, wrong = (f"{m:.2f}" if np.isfinite(m) else "(no such head)" for m in at.values)
        heads = f", $H = {int(at.H)}$" if data.H.size > 1 else ""
        found.append(f"{right} and {wrong} at $\\zeta = {float(at.zeta):g}${heads}")
    return (
        "What does the sign of the random first step make of a head? Heads with $\\alpha_h = 1$, "
        "whose decoders start on the right label, and heads with $\\alpha_h = -1$, which start on "
        f"the wrong one, end at the mean mass {', '.join(found)}. Dotted: uniform attention. The "
        "separator of Proposition 2 has the same signs in $W$: it turns half of the heads away."
    )


UNIFORM = Reference(y=lambda data: data.zeta, label="uniform attention, $\\zeta$")
FROM_STARTS = Lines(
    mass("all"), after, colour="start", names="from {start}", band=interval, panel="zeta",
    row="H", title="$\\zeta = {zeta:g}$, $H = {H}$", xscale="log", ylim=(0, 1),
    xlabel="step $k + 1$", ylabel="attention on relevant tokens",
) + UNIFORM  # fmt: skip
BY_SIGN = Lines(
    by_sign, after, colour="way", names=SIGN_NAMES, band=mean_only, panel="zeta",
    row="H", title="$\\zeta = {zeta:g}$, $H = {H}$", xscale="log", ylim=(0, 1),
    xlabel="step $k + 1$", ylabel="attention on relevant tokens",
) + UNIFORM  # fmt: skip
EXPERIMENT = Experiment(
    title="Attention on the relevant tokens",
    question=__doc__,
    grid=GRID,
    run=run,
    table=Table(
        ["zeta", "H", "start"],
        [
            Column("mass at the start", mass("all", 0), mean_and_interval),
            Column("mass at the end", mass("all", -1), mean_and_interval),
            Column("queried by relevant tokens", mass("relevant", -1), mean_and_interval),
            Column("queried by others", mass("irrelevant", -1), mean_and_interval),
            *(
                Column(
                    f"mass of heads with {way}", lambda data: by_sign(data).isel(step=-1),
                    at={"way": way}, where=lambda row: row["start"] == "one step",
                )
                for way in SIGNS.values()
            ),
            Column("training loss", lambda data: data["loss"].isel(step=-1), geometric_mean),
            Column("largest ||W_h||", lambda d: d.largest_W.isel(step=-1), mean_and_interval),
        ],
    ),
    figures=[
        Plot("Attention on the relevant tokens", FROM_STARTS, mass_caption),
        Plot("Heads of the one-step start", BY_SIGN, sign_caption),
    ],
    note=NOTE,
)  # fmt: skip
