r"""Do more heads help, as the head condition of Corollary 2 makes one expect?

Gradient descent from the one-step initialisation on the tokenized mixture (DM1), the same step
size for every number of heads. After the first step a head is known by its sign, so H heads are
two groups of equal ones: even the number of heads that Corollary 2 asks for is trained exactly.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.bounds.optimisation.deora2023_corollary_2 import VERSIONS, deora2023_corollary_2
from attlas.data.tokenized_mixture import (
    MixtureSamples,
    TokenizedMixture,
    make_tokenized_mixture,
    sample_mixture,
)
from attlas.measures.complexity.repeated_start import sign_excess, start_constants, uniform_outputs
from attlas.measures.statistics.trend import log_slope
from attlas.models.attention.multi_head import MultiHead
from attlas.models.attention.repeated_heads import repeat_signed_heads
from attlas.optim.one_step import one_step_initialisation
from attlas.panels.lines import Lines
from attlas.panels.palette import PALETTE
from attlas.panels.plot import Plot
from attlas.panels.points import Points
from attlas.panels.reference import Reference
from attlas.panels.summary import (
    at_most,
    geometric_interval,
    geometric_mean,
    geometric_mean_only,
    mean_only,
    median,
    median_only,
)
from attlas.panels.table import Column, Table
from attlas.runs.experiment import Experiment
from attlas.runs.grid import Grid
from attlas.runs.settings import Settings
from attlas.tasks.repeated_training import train_repeated_heads
from attlas.training.trajectory import log_spaced

HORIZONS = tuple(10.0**k for k in range(1, 21))
"""The K at which Corollary 2 is evaluated, each with its own step size and number of heads."""
MOST_HEADS = 2.0**62
NOTE = (
    "The paper's own plots could not be recovered: sizes are ours. $\\gamma$ is the NTK margin of "
    "the start, solved with a certificate, for a direction of norm $\\sqrt 2$ as in (P3), so the "
    "bounds have the factor 2 that Corollary 2 lacks; $B_2$ and $B_\\Phi$ are measured and at "
    "least 1. Right after the first step the NTK is the same for every number of heads and all "
    "signs, hence so is $\\gamma$. 'Demanded' is the number of heads of Corollary 2 with the "
    "sharpest constants, trained with the common step size and with the certified one."
)
GRID = Grid(
    fixed={
        "T": 4, "d": 8, "M": 3, "S": 2.0, "zeta": 0.25, "Z": 3.0, "Z_mu": 0.5, "Z_nu": 0.5,
        "n": 24, "first": 64, "test": 500, "steps": 400, "rate": 0.1,
    },
    smoke={
        "n": 8, "first": 16, "test": 16, "steps": 20, "heads": [1, 2, 4], "members": 2, "block": 2,
    },
    quick={"heads": [2**k for k in range(9)], "members": 6, "block": 6},
    paper={"heads": [2**k for k in range(11)], "members": 64, "block": 16},
)  # fmt: skip


def draw(
    s: Settings, member: int
) -> tuple[TokenizedMixture, MixtureSamples, MixtureSamples, MultiHead]:
    """Mixture, training and test samples, and the head after the first step."""
    keys = [jax.random.fold_in(jax.random.key(member), k) for k in range(4)]
    bounds = {name: s[name] for name in ("d", "M", "S", "zeta", "Z", "Z_mu", "Z_nu")}
    mixture = make_tokenized_mixture(keys[0], **bounds)
    first, train, test = (
        sample_mixture(key, mixture, size, s.T)
        for key, size in zip(keys[1:], (s.first, s.n, s.test), strict=True)
    )
    return mixture, train, test, one_step_initialisation(keys[0], first.X, first.y, 1)


def stacked(trees: Sequence[Any]) -> Any:
    """Trees of one structure as one tree."""
    return jax.tree.map(lambda *a: np.stack(a), *trees)


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train every number of heads on every problem; Corollary 2 from the real NTK margin."""
    members, few = range(s.seed, s.seed + s.members), len(s.heads)
    mixtures, trains, tests, heads = zip(*(draw(s, member) for member in members), strict=True)
    train, test = stacked(trains), stacked(tests)
    keys = [jax.random.fold_in(jax.random.key(member), 4) for member in members]
    pairs = list(zip(keys, heads, strict=True))
    models = stacked([repeat_signed_heads(*pair, s.heads) for pair in pairs])
    constants = start_constants(heads, train.X, train.y, models.copies)
    sizes = tuple(map(float, (s.T, s.d, max(1.0, float(mixtures[0].R)))))
    K = jnp.asarray(sorted({float(s.steps), *HORIZONS}))
    corollary = deora2023_corollary_2(*sizes, *constants, float(s.n), K)
    demanded, rate = (np.asarray(a)[:, -1, list(K).index(s.steps)] for a in corollary[:2])
    counts = np.minimum(np.nan_to_num(demanded, nan=MOST_HEADS), MOST_HEADS).astype(int)
    twice = [(H, H) for H in counts.tolist()]
    crowd = stacked(
        [repeat_signed_heads(*p, H, first=few) for p, H in zip(pairs, twice, strict=True)]
    )
    largest = [uniform_outputs(h, X).max() for h, X in zip(heads, train.X, strict=True)]
    start = sign_excess(crowd.copies)[:, -1] * largest
    rates = np.full((s.members, few + 2), s.rate)
    rates[:, -1] = np.where(np.isfinite(rate), rate, s.rate)
    models = jax.tree.map(lambda *a: np.concatenate(a, axis=1), models, crowd)
    schedule = log_spaced(s.steps, 32)
    found = train_repeated_heads(models, rates, train, test, schedule)
    loss, along = np.stack([found.train, found.test]), ("set", "member", "heads", "step")
    by_K, by_rate = ("member", "version", "K"), ("set", "member", "rate", "step")
    return xr.Dataset(
        {
            "loss": (along, loss[:, :, :few]),
            "error": (along[1:], found.error[:, :few]),
            "relevant": (along[1:3], found.relevant[:, :few]),
            "crowd_loss": (by_rate, loss[:, :, few:]),
            "crowd_error": (by_rate[1:], found.error[:, few:]),
            "crowd_relevant": (by_rate[1:3], found.relevant[:, few:]),
            "certified": ("member", (demanded <= MOST_HEADS) & (start <= constants.B_Phi)),
        }
        | {f"corollary_{name}": (by_K, a) for name, a in corollary._asdict().items()}
        | {name: ("member", a) for name, a in constants._asdict().items()},
        {
            "set": ["training", "test"],
            "heads": list(s.heads),
            "rate": ["common", "certified"],
            "step": list(schedule),
            "version": list(VERSIONS),
            "K": K,
        },
    )


def at_steps(data: xr.Dataset, name: str) -> xr.DataArray:
    """Corollary 2 at the number of steps that were trained."""
    return data[f"corollary_{name}"].sel(K=float(data.attrs["steps"]))


def grid(data: xr.Dataset) -> xr.Dataset:
    """The rows of the table for the numbers of heads of the grid."""
    return data[["loss", "error", "relevant"]].assign(step_size=data.attrs["rate"])


def crowd(data: xr.Dataset) -> xr.Dataset:
    """Those for as many heads as demanded, at both step sizes."""
    found = data[["crowd_loss", "crowd_error", "crowd_relevant"]]
    certified = at_steps(data, "step_size").sel(version="sharp", drop=True)
    size = xr.where(found.rate == "common", data.attrs["rate"], certified)
    heads = [f"demanded, {rate} step size" for rate in found.rate.values]
    found = found.rename({f"crowd_{name}": name for name in ("loss", "error", "relevant")})
    return found.assign(step_size=size).assign_coords(rate=heads).rename(rate="heads")


def promised(data: xr.Dataset) -> xr.Dataset:
    """Those for what Corollary 2 demands and promises."""
    loss, gap, size, needed = (
        at_steps(data, name) for name in ("training", "gap", "step_size", "heads")
    )
    medians = needed.median("member").values
    heads = [f"{H:.1e} ({v})" for H, v in zip(medians, needed.version.values, strict=True)]
    bounds = xr.concat([loss, loss + gap], "set").assign_coords(set=data.set)
    found = xr.Dataset({"loss": bounds, "step_size": size})
    return found.assign_coords(version=heads).rename(version="heads")


def losses_caption(data: xr.Dataset) -> str:
    """Whether losses rise or fall with the number of heads."""
    few = data.loss.isel(step=-1).sel(heads=data.heads >= 2)
    found = [log_slope(few.heads.values.astype(float), own.values) for own in few]
    answer = "no trend is resolved"
    for way, each in (("rise", [s.low > 0 for s in found]), ("fall", [s.high < 0 for s in found])):
        if all(each):
            answer = f"both losses {way} with H"
        elif any(each):
            answer = f"only the {data.set.values[each.index(True)]} loss is seen to {way}"
    powers = " and ".join(f"{s.mean:.2f} [{s.low:.2f}, {s.high:.2f}]" for s in found)
    best = np.log(data.loss.sel(set="test").isel(step=-1)).mean("member").idxmin("heads")
    mass, most = data.relevant.mean("member").values, data.heads.values[-1]
    needed = float(at_steps(data, "heads").sel(version="sharp").median())
    return (
        f"Do more heads help? From 2 to {most} heads {answer}, like the powers {powers} of H "
        f"(training and test, 95 % over {data.sizes['member']} seeds); the lowest test loss has "
        f"H = {int(best)}. Attention on the relevant tokens ends at {mass[1]:.2f} with "
        f"{data.heads.values[1]} heads and at "
        f"{float(data.crowd_relevant.sel(rate='common').mean()):.2f} with the {needed:.0e} that "
        f"Corollary 2 demands (uniform: {data.attrs['zeta']:g}). Dotted: $\\log 2$."
    )


def bound_caption(data: xr.Dataset) -> str:
    """From which K the bound is below log 2, and what certified steps do."""
    bounds = data.corollary_training.median("member")
    first = bounds.K.where(bounds < np.log(2)).min("K").values
    useful = [f"{K:.0e}" if np.isfinite(K) else f"over {HORIZONS[-1]:.0e}" for K in first]
    needed = at_steps(data, "heads").median("member").values
    met = data.certified == 1
    loss = data.crowd_loss.sel(set="training", rate="certified").where(met)
    removed = float((1 - loss.isel(step=-1) / loss.isel(step=0)).max())
    return (
        "How far is Corollary 2 from training? Its bound is below $\\log 2$ from K = "
        f"{', '.join(useful)} ({', '.join(VERSIONS)}), each point with its own certified step "
        f"size and number of heads; at K = {data.attrs['steps']} it demands "
        f"{', '.join(f'{H:.0e}' for H in needed)} heads. With the sharpest constants met in "
        f"{int(met.sum())} of {met.size} seeds, {data.attrs['steps']} certified steps remove "
        f"{f'{removed:.1e}' if np.isfinite(removed) else 'an unknown share'} of the training "
        "loss. Right: dots are seeds, circles their mean."
    )


def at_end(name: str) -> Callable[[xr.Dataset], xr.DataArray]:
    """Training or test loss after the last step; bounds have no steps."""
    return lambda data: data.loss.sel(set=name).isel(step=-1, missing_dims="ignore")


def after(data: xr.Dataset) -> xr.DataArray:
    """Steps from 1 on."""
    return data.step + 1


def ends(data: xr.Dataset) -> xr.DataArray:
    """Last losses with as many heads as demanded, drawn over the whole grid."""
    return data.crowd_loss.sel(rate="common").isel(step=-1) * xr.ones_like(data.heads)


LOG_2, CROWD = float(np.log(2)), "$H$ demanded"
STEP_SIZE = Column("step size", "step_size", median)
TRAINED = [
    STEP_SIZE,
    Column("training loss", at_end("training"), geometric_mean),
    Column("test loss", at_end("test"), geometric_mean),
    Column("test error", lambda data: data.error.isel(step=-1)),
    Column("attention", "relevant"),
]
BOUNDS = [STEP_SIZE, *(Column(f"{n} loss", at_end(n), at_most) for n in ("training", "test"))]
CURVES = (
    Lines(
        "loss", after, colour="heads", names="$H = {heads:g}$", band=median_only, panel="set",
        title="{set} loss", xscale="log", yscale="log", xlabel="step $k + 1$",
        ylabel="median over seeds",
    )
    + Lines("crowd_loss", after, at={"rate": "common"}, band=median_only, style="--", label=CROWD)
    + Reference(y=LOG_2)
)  # fmt: skip
ENDS = Points(
    lambda data: data.loss.isel(step=-1), "heads", colour="set", band=geometric_interval,
    xscale="log2", yscale="log", xlabel="heads $H$", ylabel="loss after training",
) + Lines(
    ends, "heads", colour="set", band=geometric_mean_only, style="--", names="{set}, " + CROWD
)  # fmt: skip
PROMISES = (
    Lines(
        "corollary_training", "K", colour="version", names="bound, {version}", band=median_only,
        xscale="log", yscale="log", xlabel="steps $K$", ylabel="training loss and its bounds",
        width=1.4,
    )
    + Lines(
        lambda data: data.loss.sel(set="training").isel(heads=-1), after, band=median_only,
        label="measured, most heads",
    )
    + Reference(
        y=LOG_2, to=lambda data: data.corollary_training.median("member").max(), label="vacuous"
    )
)  # fmt: skip
ATTENTION = (
    Points(
        "relevant", "heads", band=mean_only, members=True, line="-", hollow=True, ink=PALETTE[0],
        label="mean over seeds", xscale="log2", xlabel="heads $H$",
        ylabel="attention on relevant tokens", width=1.4,
    )
    + Reference(y=lambda data: data.crowd_relevant.sel(rate="common"), style="--", label=CROWD)
    + Reference(y=lambda data: data.attrs["zeta"], ink=PALETTE[1], label="uniform attention")
)  # fmt: skip
EXPERIMENT = Experiment(
    title="Number of heads",
    question=__doc__,
    grid=GRID,
    run=run,
    table=[
        Table(["heads"], TRAINED, of=grid),
        Table(["heads"], TRAINED, of=crowd),
        Table(["heads"], BOUNDS, of=promised),
    ],
    figures=[
        Plot("Loss by number of heads", [CURVES, ENDS], losses_caption),
        Plot("Corollary 2 beside training", [PROMISES, ATTENTION], bound_caption),
    ],
    note=NOTE,
)
