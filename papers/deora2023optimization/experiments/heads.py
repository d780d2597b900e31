r"""Do more heads help, as the head condition of Corollary 2 makes one expect?

Gradient descent from the one-step initialisation on the tokenized mixture (DM1), the same step
size for every number of heads, and with the steps of
`deora2023optimization.library.optim.head_scaling`. After the first step a head is known by its
sign, so H heads are two groups of equal ones: even the number of heads
that Corollary 2 asks for is trained exactly.
"""

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.display.numbers import large_number
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import (
    PALETTE,
    Column,
    Lines,
    Points,
    Reference,
    Table,
    median_only,
    taken,
)
from attlas.experiments.settings import Settings
from attlas.measures.statistics.power_law import PowerLaw, power_law
from attlas.optim.one_step import one_step_initialisation
from deora2023optimization.experiments.instances import MIXTURE, draw_mixture
from deora2023optimization.library.bounds.deora2023_corollary_2 import VERSIONS
from deora2023optimization.library.training.demanded_heads import (
    SECOND,
    stacked,
    train_demanded_heads,
)

HORIZONS = tuple(10.0**k for k in range(1, 21))
"""The K at which Corollary 2 is evaluated, each with its own step size and number of heads."""
NAMES = [version.replace("_", "-") for version in VERSIONS]
"""How the constants of Corollary 2 are called where they are read."""
GRID = Grid(
    fixed=MIXTURE | {"n": 24, "first": 64, "test": 500, "steps": 400, "rate": 0.1},
    smoke={
        "n": 8, "first": 16, "test": 16, "steps": 20, "heads": [1, 2, 4, 8, 16], "members": 2,
        "block": 2,
    },
    quick={"heads": [2**k for k in range(9)], "members": 6, "block": 6},
    paper={"heads": [2**k for k in range(11)], "members": 64, "block": 16},
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train every number of heads on every problem; Corollary 2 from the real NTK margin."""
    members = [jax.random.key(member) for member in range(s.seed, s.seed + s.members)]
    heads, trains, tests, bounds = [], [], [], []
    for member in members:
        keys = [jax.random.fold_in(member, k) for k in range(4)]
        mixture, (first, train, test) = draw_mixture(s, keys, (s.first, s.n, s.test))
        heads.append(one_step_initialisation(keys[0], first.X, first.y, 1))
        trains.append(train)
        tests.append(test)
        bounds.append(float(mixture.R))  # the same for all mixtures
    sizes = float(s.T), float(s.d), max(1.0, bounds[0])
    signs = [jax.random.fold_in(member, 4) for member in members]
    trained = train_demanded_heads(
        signs, heads, stacked(trains), stacked(tests), s.heads, sizes, s.rate, s.steps, HORIZONS
    )
    few, ruled, crowd, by_K = trained.few, trained.ruled, trained.crowd, ("member", "version", "K")
    by_heads, by_rule, by_rate = (
        ("member", axis, "step") for axis in ("heads", "ruled_heads", "rate")
    )
    return xr.Dataset(
        {
            "loss": (("set", *by_heads), np.stack([few.train, few.test])),
            "error": (by_heads, few.error),
            "relevant": (by_heads[:2], few.relevant),
            "ruled_loss": (("set", *by_rule), np.stack([ruled.train, ruled.test])),
            "ruled_error": (by_rule, ruled.error),
            "ruled_relevant": (by_rule[:2], ruled.relevant),
            "crowd_loss": (("set", *by_rate), np.stack([crowd.train, crowd.test])),
            "crowd_error": (by_rate, crowd.error),
            "crowd_relevant": (by_rate[:2], crowd.relevant),
            "certified": ("member", trained.certified),
        }
        | {f"corollary_{name}": (by_K, a) for name, a in trained.corollary._asdict().items()}
        | {name: ("member", a) for name, a in trained.constants._asdict().items()},
        {"set": ["training", "test"], "heads": list(s.heads),
         "ruled_heads": list(s.heads)[::SECOND], "rate": ["common", "certified"],
         "step": list(trained.schedule), "version": NAMES, "K": trained.K},
    )  # fmt: skip


def at_steps(data: xr.Dataset, name: str) -> xr.DataArray:
    """Corollary 2 at the number of steps that were trained."""
    return data[f"corollary_{name}"].sel(K=float(data.attrs["steps"]))


def grid(data: xr.Dataset) -> xr.Dataset:
    """The rows of the table for the numbers of heads of the grid."""
    return data[["loss", "error", "relevant"]].assign(step_size=data.attrs["rate"])


def ruled(data: xr.Dataset) -> xr.Dataset:
    """Those with the steps of `head_scaling`; the step size is that of the decoders."""
    names = ("loss", "error", "relevant")
    rows = data[[f"ruled_{name}" for name in names]]
    rows = rows.rename({f"ruled_{name}": name for name in names} | {"ruled_heads": "heads"})
    rule = [f"{H}, scaled steps" for H in rows.heads.values]
    return rows.assign(step_size=data.attrs["rate"]).assign_coords(heads=rule)


def crowd(data: xr.Dataset) -> xr.Dataset:
    """Those for as many heads as demanded, at both step sizes."""
    rows = data[["crowd_loss", "crowd_error", "crowd_relevant"]]
    certified = at_steps(data, "step_size").sel(version="sharp", drop=True)
    size = xr.where(rows.rate == "common", data.attrs["rate"], certified)
    heads = [f"demanded, {rate} step size" for rate in rows.rate.values]
    rows = rows.rename({f"crowd_{name}": name for name in ("loss", "error", "relevant")})
    return rows.assign(step_size=size).assign_coords(rate=heads).rename(rate="heads")


def promised(data: xr.Dataset) -> xr.Dataset:
    """Those for what Corollary 2 demands and promises."""
    loss, gap, size, needed = (
        at_steps(data, name) for name in ("training", "gap", "step_size", "heads")
    )
    medians = needed.median("member").values
    heads = [f"{H:.1e} ({v})" for H, v in zip(medians, needed.version.values, strict=True)]
    bounds = xr.concat([loss, loss + gap], "set").assign_coords(set=data.set)
    rows = xr.Dataset({"loss": bounds, "step_size": size})
    return rows.assign_coords(version=heads).rename(version="heads")


def rule_law(data: xr.Dataset) -> PowerLaw:
    """The slope of the last test loss under the rule in the number of heads, from two heads on."""
    losses = data.ruled_loss.sel(set="test").isel(step=-1).sel(ruled_heads=data.ruled_heads >= 2)
    return power_law(losses.ruled_heads.values, losses.transpose("member", "ruled_heads").values)


def rule_power(data: xr.Dataset) -> dict[str, object]:
    """The test loss under the rule against H, and the attention with the most heads."""
    most = int(data.ruled_heads[-1])
    plain = data.relevant.sel(heads=most)
    return {
        "rule_power": rule_law(data).text(),
        "rule_most": most,
        "rule_mass": f"{float(data.ruled_relevant.isel(ruled_heads=-1).mean()):.2f}",
        "plain_mass": f"{float(plain.mean()):.2f}",
    }


def laws(data: xr.Dataset) -> dict[str, PowerLaw]:
    """The slopes of the last losses in the number of heads, from two heads on."""
    few = data.loss.isel(step=-1).sel(heads=data.heads >= 2)
    return {
        str(name): power_law(
            few.heads.values, few.sel(set=name).transpose("member", "heads").values
        )
        for name in few["set"].values
    }


def powers(data: xr.Dataset) -> dict[str, object]:
    """Whether losses rise or fall with the number of heads."""
    slopes, answer = laws(data), "no trend is resolved"
    for way, clear in (
        ("rise", [name for name, law in slopes.items() if law.low > 0]),
        ("fall", [name for name, law in slopes.items() if law.high < 0]),
    ):
        if len(clear) == len(slopes):
            answer = f"both losses {way} with their number"
        elif clear:
            answer = f"only the {clear[0]} loss is seen to {way}"
    best = np.log(data.loss.sel(set="test").isel(step=-1)).mean("member").idxmin("heads")
    return rule_power(data) | {
        "most": data.heads.values[-1],
        "answer": answer,
        "powers": " and ".join(f"{law.text()} ({name})" for name, law in slopes.items()),
        "curved": [name for name, law in slopes.items() if not law.straight],
        "seeds": data.sizes["member"],
        "best": int(best),
        "mass": f"{data.relevant.mean('member').values[1]:.2f}",
        "second": data.heads.values[1],
        "crowd_mass": f"{float(CROWD_ATTENTION(data).mean()):.2f}",
        "demanded": f"{float(at_steps(data, 'heads').sel(version='sharp').median()):.0e}",
        "uniform": f"{data.attrs['zeta']:g}",
    }


def promises(data: xr.Dataset) -> dict[str, object]:
    """From which K the bound is below log 2, and what certified steps do."""
    bounds = data.corollary_training.median("member")
    first = bounds.K.where(bounds < LOG_2).min("K").values
    useful = [
        large_number(float(K)) if np.isfinite(K) else f"over {large_number(HORIZONS[-1])}"
        for K in first
    ]
    met = data.certified == 1
    loss = data.crowd_loss.sel(set="training", rate="certified").where(met)
    removed = float((1 - loss.isel(step=-1) / loss.isel(step=0)).max())
    return {
        "useful": ", ".join(useful),
        "versions": ", ".join(NAMES),
        "steps": data.attrs["steps"],
        "demanded": ", ".join(
            large_number(float(H)) for H in at_steps(data, "heads").median("member").values
        ),
        "met": int(met.sum()),
        "seeds": met.size,
        "removed": f"{100 * removed:.2g} %" if np.isfinite(removed) else "",
    }


def after(data: xr.Dataset) -> xr.DataArray:
    """Steps from 1 on."""
    return data.step + 1


def ends(data: xr.Dataset) -> xr.DataArray:
    """Last losses with as many heads as demanded, drawn over the whole grid."""
    return data.crowd_loss.sel(rate="common").isel(step=-1) * xr.ones_like(data.heads)


def answer(data: xr.Dataset) -> dict[str, object]:
    """Whether the test loss rises or falls with the number of heads."""
    law = laws(data)["test"]
    return powers(data) | {
        "helps": law.high < 0,
        "hurts": law.low > 0,
        "rule_hurts": rule_law(data).low > 0,
        "power": law.text(),
        "fewest": int(data.heads[data.heads >= 2][0]),
        "n": data.attrs["n"],
        "steps": data.attrs["steps"],
    }


def of_few(data: xr.Dataset) -> xr.DataArray:
    """The losses of every second number of heads, so that each has a colour."""
    return data.loss.isel(heads=slice(None, None, 2)).rename(heads="shown")


LOG_2, CROWD = float(np.log(2)), "as many heads as theory demands (Corollary 2)"
CROWD_ATTENTION = taken("crowd_relevant", {"rate": "common"})
STEP_SIZE = Column("step size", "step_size", panels.median)
LAST = {name: taken("loss", {"set": name}, at={"step": -1}) for name in ("training", "test")}
TRAINED = [
    STEP_SIZE,
    *(Column(f"{name} loss", loss, panels.geometric_mean) for name, loss in LAST.items()),
    Column("test error", taken("error", at={"step": -1})),
    Column("attention", "relevant"),
]
BOUNDS = [STEP_SIZE, *(Column(f"{n} loss", loss, panels.at_most) for n, loss in LAST.items())]
CURVES = (
    Lines(
        of_few, after, colour="shown", names="heads: {shown:g}", band=panels.geometric_mean_only,
        panel="set",
        title="{set} loss", xscale="log", yscale="log", xlabel="training step + 1",
        ylabel="mean logistic loss of a sequence",
    )
    + Lines("crowd_loss", after, at={"rate": "common"}, band=panels.geometric_mean_only, style="--",
            label=CROWD)
    + Reference(y=LOG_2, label="loss of guessing")
)  # fmt: skip
ENDS = Points(
    taken("loss", at={"step": -1}), "heads", colour="set", band=panels.geometric_interval,
    xscale="log2", yscale="log", xlabel="number of heads",
    ylabel="mean logistic loss after training",
) + Points(
    taken("ruled_loss", at={"step": -1}), "ruled_heads", colour="set", hollow=True, marker="s",
    band=panels.geometric_interval, names="{set}, step of attention times heads",
) + Lines(
    ends, "heads", colour="set", band=panels.geometric_mean_only, style="--",
    names="{set}, " + CROWD,
)  # fmt: skip
PROMISES = (
    Lines(
        "corollary_training", "K", colour="version", names="bound, {version}", band=median_only,
        xscale="log", yscale="log", xlabel="training steps",
        ylabel="mean training loss, or bound on it",
        width=1.4,
    )
    + Lines(taken("loss", {"set": "training"}, at={"heads": -1}), after, band=median_only,
            label="measured, with the most heads")
    + Reference(y=LOG_2, to=lambda data: data.corollary_training.median("member").max(),
                label="above the loss of guessing: a bound is vacuous")
)  # fmt: skip
ATTENTION = (
    Points(
        "relevant", "heads", band=median_only, members=True, line="-", hollow=True,
        ink=PALETTE[0], label="trained, median of the runs", xscale="log2",
        xlabel="number of heads",
        ylabel="share of attention on relevant tokens", width=1.4,
    )
    + Points("ruled_relevant", "ruled_heads", band=median_only, hollow=True, marker="s",
             line="-", ink=PALETTE[2], label="step of attention times heads")
    + Reference(y=CROWD_ATTENTION, style="--", label=CROWD)
    + Reference(y=lambda data: data.attrs["zeta"], ink=PALETTE[1], label="uniform attention")
)  # fmt: skip
EXPERIMENT = Experiment(
    title="Number of heads",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    revision=3,
    table=[
        Table(["heads"], TRAINED, of=grid),
        Table(["heads"], TRAINED, of=ruled),
        Table(["heads"], TRAINED, of=crowd),
        Table(["heads"], BOUNDS, of=promised),
    ],
    figures=[
        panels.Plot("Loss by number of heads", [CURVES, ENDS], powers),
        panels.Plot("Corollary 2 beside training", [PROMISES, ATTENTION], promises),
    ],
)
