r"""How much does the kernel change with the weights, against what Lemma 5.1 allows?

Networks of three activations on the same inputs and with the same weights; every unit is moved
by R, at random and in the directions that change the kernel most. The change over R beside the
lemmas of the paper and of its predecessors, and beside the sharpened bound.
"""

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.bounds.optimisation.gu2024_convergence import gu2024_radius
from attlas.display.numbers import large_number
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.join import join
from attlas.experiments.panels import Column, Lines, Points, Reference, largest, least
from attlas.experiments.part_cache import cached_part
from attlas.experiments.settings import Settings
from attlas.models.networks.softmax_network import Activation
from gu2024exploring.experiments.instances import NAMES, renamed
from gu2024exploring.library.training.kernel_perturbation import perturb_kernel
from gu2024exploring.library.training.sign_regression import draw_network, draw_sign_regression

LEMMA = 0.01
"""Lemma 5.1 is stated for R below this."""
DELTA = 0.1
GRID = Grid(
    each={"sigma": [1.0]},
    fixed={
        "d": lambda s: max(2, s.n // 2), "log10_R": [-3, -2.5, -2, -1.5, -1, -0.5, 0],
        "draws": 2, "climb": 20,
    },
    smoke={"n": 3, "m": 8, "outputs": 1, "log10_R": [-3, -1], "climb": 3, "members": 1},
    quick={"n": 8, "m": 512, "outputs": 2, "members": 2},
    paper={
        "sigma": [0.5, 1.0, 2.0], "n": 32, "m": 4096, "outputs": 2, "members": 4, "block": 2,
    },
)  # fmt: skip


def measured(s: Settings, activation: Activation, seed: int) -> xr.Dataset:
    """Changes and bounds of one network."""
    inputs = draw_sign_regression(s.n, s.d, [seed], s.sigma, activation).X
    network = draw_network(s.d, s.m, [seed, 1], s.sigma, activation, s.outputs)
    R = 10.0 ** np.array(s.log10_R)
    changes = perturb_kernel(network, inputs, R, s.draws, s.climb, [seed, 2])
    return xr.Dataset(
        {
            "change": (("direction", "R"), changes.change / (R * s.n * s.outputs)),
            "relative": (("direction", "R"), changes.change / (R * changes.norm)),
            "bound": (("constants", "R"), changes.bound / (R * s.n * s.outputs)),
            "reach": changes.largest_logit,
        },
        {"direction": ["aligned", "random"], "constants": ["printed", "sharp"], "R": R},
    )


def run(s: Settings, key: Array) -> xr.Dataset:
    """Every activation with the same inputs and weights, from every seed."""
    seeds = range(s.seed, s.seed + s.members)
    return join(
        [cached_part(of_one, s, activation, seed) for activation in Activation for seed in seeds]
    )


def of_one(s: Settings, activation: Activation, seed: int) -> xr.Dataset:
    """One activation from one seed."""
    changes = measured(s, activation, seed)
    return changes.expand_dims(activation=[activation.value], member=[seed])


def small(data: xr.Dataset) -> xr.Dataset:
    """The radii for which Lemma 5.1 is stated; all of them if there is none."""
    inside = data.R.values <= LEMMA * (1 + 1e-9)
    return data.isel(R=inside) if inside.any() else data


def slack(data: xr.Dataset, constants: str) -> xr.DataArray:
    """A bound over what was found, infinite where no unit of a ReLU network changed."""
    change = data.change.sel(direction="aligned")
    over = data.bound.sel(constants=constants) / change.clip(min=np.finfo(float).tiny)
    return over.where(change != 0, np.inf)


def printed_exponent(data: xr.Dataset) -> xr.DataArray:
    """log10 of the printed constant with Definition 4.1's B, by sigma."""
    n, k = data.attrs["n"], data.attrs["outputs"]
    B = [gu2024_radius(n, k, DELTA, s, constants="printed") for s in data.sigma.values.tolist()]
    return xr.DataArray(10 * np.array(B, float) / np.log(10), {"sigma": data.sigma})


def at_one(data: xr.Dataset) -> xr.Dataset:
    """What the figure shows: sigma = 1 if it was run."""
    return data.sel(sigma=1.0 if 1.0 in data.sigma else data.sigma.values[0])


def select(name: str, **labels: Any) -> panels.Formula:
    """The largest over the seeds."""

    def selection(data: xr.Dataset) -> xr.DataArray:
        values = at_one(data)[name].sel(**labels).max("member")
        return values.where(values > 1e-12)  # a ReLU network need not change within a small R

    return selection


def printed(data: xr.Dataset) -> xr.DataArray:
    """The printed constants, the least over the seeds."""
    return at_one(data).bound.sel(constants="printed").min("member")


def constants(data: xr.Dataset) -> dict[str, object]:
    """The largest within the lemma's range, and how far the bounds are above."""
    far = float(printed(data).sel(activation="softmax").min())
    data = at_one(data).dropna("member", how="all").dropna("activation", how="all")
    near, settings = small(data), {name: data.attrs[name] for name in ("n", "outputs", "m")}
    facts, relative, loose, exceeded = [], [], [], []
    # Sums of n k terms and their norm: a bound that is attained may be passed by rounding.
    rounding = settings["n"] * settings["outputs"] * np.finfo(float).eps
    for label in data.activation.values:
        nearby, curve, name = near.sel(activation=label), data.sel(activation=label), NAMES[label]
        most = nearby[["change", "relative"]].sel(direction="aligned").max()
        facts.append(f"{name} {float(most.change):.2g}")
        relative.append(f"{name} {float(most.relative):.2g}")
        least_printed, least_sharp = (float(slack(nearby, c).min()) for c in data.constants.values)
        loose.append(f"{name} {large_number(least_printed)} and {large_number(least_sharp)}")
        exceeded += [
            f"{name} exceeds the {constants} bound"
            for constants in data.constants.values
            if float(slack(curve, constants).min()) < 1 / (1 + rounding)
        ]
    return {
        **settings,
        "lemma": f"{LEMMA:g}",
        "sigma": f"{float(data.sigma):g}",
        "found": ", ".join(facts),
        "relative": ", ".join(relative),
        "factors": "; ".join(loose),
        "far": large_number(far),
        "exceeded": ", ".join(exceeded) or "no change exceeds a bound",
    }


sharpened = select("bound", constants="sharp")


def answer(data: xr.Dataset) -> dict[str, object]:
    """The largest changes, and how far above them both constants are for softmax."""
    near = small(at_one(data).dropna("member", how="all")).sel(activation="softmax")
    least_of = {str(c): float(slack(near, c).min()) for c in data.constants.values}
    return constants(data) | {"softmax": {c: large_number(x) for c, x in least_of.items()}}


AXES: dict[str, Any] = {
    "xscale": "log", "yscale": "log", "xlabel": "radius: movement of each unit",
}  # fmt: skip
EXPERIMENT = Experiment(
    title="Change of the kernel with the weights",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["sigma", "activation"],
        [
            *(Column(name, lambda d: small(d).change, largest, at={"direction": name})
              for name in ("random", "aligned")),
            Column("aligned, relative to |H|_F", lambda d: small(d).relative, largest,
                   at={"direction": "aligned"}),
            Column("sharpened bound", lambda d: small(d).bound, largest, at={"constants": "sharp"}),
            Column("sharpened / aligned, least", lambda d: slack(small(d), "sharp"), least),
            Column("lemma, measured B", "bound", least, at={"constants": "printed"}),
            Column("log10 of e^(10 B), C = 10", printed_exponent,
                   where=lambda row: row["activation"] == "softmax"),
            Column("measured B", "reach", largest),
        ],
        of=renamed,
    ),
    figures=[
        panels.Plot(
            "Change of the kernel over the radius",
            [
                Points(
                    select("change"), "R", colour="direction", line="-",
                    panel="activation", title=NAMES,
                    names={"aligned": "measured, units moved to change most",
                           "random": "measured, units moved at random"},
                    ylabel="change of the kernel / radius", ylim=(1e-3, 1e5), **AXES,
                )
                + Lines(sharpened, "R", style="--", label="our sharper bound")
                + Lines(printed, "R", style="-.", ink="#888888",
                        label="bound of the paper, constants reconstructed (Lemma 5.1)")
                + Reference(x=lambda data: data.R[0], to=LEMMA,
                            label="radii that the paper allows (Lemma 5.1)"),
                Points(
                    select("relative", direction="aligned"), "R", colour="activation",
                    names={name: f"{text}, moved to change most" for name, text in NAMES.items()},
                    line="-", title="all, relative to the kernel",
                    ylabel="relative change / radius", **AXES,
                )
                + Points(select("relative", direction="random"), "R", colour="activation",
                         names={name: f"{text}, moved at random" for name, text in NAMES.items()},
                         line=":", hollow=True),
            ],
            constants,
        )
    ],
)  # fmt: skip
