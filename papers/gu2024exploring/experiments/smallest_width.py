r"""Does a softmax network need fewer units than a ReLU or an exponential one, as Table 1 compares?

Gradient descent on unit inputs and random signs at step $1/\lambda_{\max}$ of the tangent kernel
at the start. The smallest width with which the loss falls to a hundredth within the steps that
the rate of Theorem 4.2 gives for the kernel of infinite width, against the number of samples.
"""

import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.bounds.optimisation.gu2024_convergence import gu2024_steps, gu2024_table_1_log10
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import (
    Column,
    Lines,
    Points,
    geometric_extremes,
    geometric_interval,
    geometric_mean,
)
from attlas.experiments.settings import Settings
from attlas.measures.statistics.onset import onset
from attlas.models.networks.softmax_network import Activation
from gu2024exploring.experiments.instances import NAMES, renamed
from gu2024exploring.library.training.padded_starts import (
    PaddedStart,
    even_divisors,
    padded_start,
    relative_losses,
)
from gu2024exploring.library.training.sign_regression import draw_network, draw_sign_regression

PREFACTORS = {
    "m": {"softmax": "m", "relu": "1", "exponential": "1"},
    "1": {"softmax": "\\sqrt{m}", "relu": "1/\\sqrt{m}", "exponential": "1/\\sqrt{m}"},
}
"""Of the network, that give its tangent kernel a scale of m, and of 1."""
LEGENDS = {
    scale: {name: f"{NAMES[name]}, prefactor ${c}$" for name, c in prefactors.items()}
    for scale, prefactors in PREFACTORS.items()
}
GRID = Grid(
    each={"activation": [name.value for name in Activation], "samples": [[12, 20, 32]]},
    fixed={"epsilon": 0.01, "sigma": 1.0, "dtype": "float32"},
    smoke={"samples": [[8, 12]], "fixed_d": 8, "widths": even_divisors(12), "members": 2},
    quick={"fixed_d": 12, "widths": even_divisors(192), "members": 4},
    paper={
        "samples": [[n] for n in (16, 32, 64, 128)], "fixed_d": 32,
        "widths": even_divisors(1536), "members": 12, "block": 4,
    },
)  # fmt: skip


def starts(s: Settings, seed: int, n: int, d: int) -> tuple[list[PaddedStart], int, float]:
    """Both scales of every width on one data set; the steps allowed, and lambda of the limit."""
    activation = Activation(s.activation)
    shape = (max(s.widths), max(s.samples), max(s.fixed_d, max(s.samples) // 2))
    problem = draw_sign_regression(n, d, [seed], s.sigma, activation)
    smallest, largest = problem.eigenvalues[[0, -1]]
    allowed = int(gu2024_steps(n, 1, float(smallest / largest / 2), s.epsilon, start=1.0))
    steep = activation is Activation.SOFTMAX  # the scale of the paper's own prefactor
    prefactors = [m ** (0.5 if steep else -0.5) for m in s.widths]
    networks = [draw_network(d, m, [seed, 1], s.sigma, activation) for m in s.widths]
    trainings = [
        padded_start(network, problem, 1.0 if wanted == steep else scale, shape)
        for wanted in (True, False)
        for network, scale in zip(networks, prefactors, strict=True)
    ]
    return trainings, allowed, float(smallest)


def run(s: Settings, key: Array) -> xr.Dataset:
    """The loss over its start at the allowed time, and the smallest width, by seed and data."""
    sizes, fixed = s.samples, s.fixed_d
    rules = {"d = n/2": [n // 2 for n in sizes], f"d = {fixed}": [fixed] * len(sizes)}
    problems = [
        starts(s, seed, n, d)
        for seed in range(s.seed, s.seed + s.members)
        for dimensions in rules.values()
        for n, d in zip(sizes, dimensions, strict=True)
    ]
    groups, allowed, smallest = zip(*problems, strict=True)
    dims, shape = ("member", "dimension", "n"), (s.members, len(rules), len(sizes))
    left = relative_losses(groups, allowed).reshape(*shape, 2, len(s.widths))
    return xr.Dataset(
        {
            "left": ((*dims, "scale", "m"), left),
            # A training that diverged has no loss below epsilon either.
            "smallest_width": ((*dims, "scale"), onset(s.widths, left <= s.epsilon)),
            "eigenvalue": (dims, np.reshape(smallest, shape)),
            "steps_allowed": (dims, np.reshape(allowed, shape)),
        },
        {"dimension": list(rules), "n": list(sizes), "scale": ["m", "1"], "m": list(s.widths)},
    )


def printed(data: xr.Dataset) -> xr.Dataset:
    """Table 1 at the mean eigenvalue, with constants one: log10 of width and steps."""
    dims, epsilon = ("activation", "dimension", "n"), data.attrs["epsilon"]
    least = data.eigenvalue.mean("member").transpose(*dims).values
    fitted = {name: np.full(least.shape, np.nan) for name in ("width", "steps")}
    for at in map(tuple, np.argwhere(np.isfinite(least))):
        activation, n = Activation(data.activation.values[at[0]]), int(data.n.values[at[2]])
        row = gu2024_table_1_log10(activation, n, float(least[at]), epsilon * n)
        for name, values in fitted.items():
            values[at] = row[name]
    return data.assign({f"table_1_{name}": (dims, values) for name, values in fitted.items()})


def rise(data: xr.Dataset) -> xr.DataArray:
    """How the width of Table 1 for ReLU grows, from the lowest mean on."""
    name = "relu" if "relu" in data.activation else data.activation.values[0]
    width = printed(data).table_1_width.sel(activation=name)
    first = geometric_extremes(data.smallest_width.isel(n=0), ["member"]).middle
    return first.min(["activation", "scale"]) * 10 ** (width - width.isel(n=0))


def units_over(data: xr.Dataset, scale: str, reference: str) -> xr.DataArray:
    """Units of softmax over those of another activation, by seed: geometric means over the data."""
    logs = np.log(data.smallest_width.sel(scale=scale))
    apart = logs.sel(activation="softmax") - logs.sel(activation=reference)
    return np.exp(apart.mean(["dimension", "n"]))


def ratio(data: xr.Dataset, scale: str, reference: str) -> str:
    """Units of softmax over those of another activation on the same data, with its interval."""
    if not {"softmax", reference} <= set(data.activation.values):
        return f"not known for {NAMES[reference]}"
    return f"{geometric_mean(units_over(data, scale, reference))} of {NAMES[reference]}"


def power(data: xr.Dataset, rule: str, name: str) -> str:
    """The slope in n of the smallest width with the paper's prefactor."""
    labels = {"dimension": rule, "activation": name, "scale": "m" if name == "softmax" else "1"}
    return f"{NAMES[name]} {panels.power_of(data.smallest_width.sel(labels), 'n')}"


def comparison(data: xr.Dataset) -> dict[str, object]:
    """Ratios of widths, and slopes in n."""
    ratios = {
        scale: " and ".join(ratio(data, scale, reference) for reference in ("relu", "exponential"))
        for scale in data.scale.values
    }
    powers = [
        f"${rule}$: " + ", ".join(power(data, rule, name) for name in data.activation.values)
        for rule in data.dimension.values
    ]
    done = data.eigenvalue.notnull()
    return {
        "seeds": data.sizes["member"],
        "ratios": ratios,
        "powers": "; ".join(powers),
        "epsilon": f"{data.attrs['epsilon']:g}",
        "lost": int((data.smallest_width.isnull() & done).sum()),
        "cases": 2 * int(done.sum()),
        "widest": data.m.values[-1],
    }


def answer(data: xr.Dataset) -> dict[str, object]:
    """Ratios of widths, and whether all of them are clearly below or above one."""
    pairs = [
        (scale, reference) for scale in data.scale.values for reference in ("relu", "exponential")
    ]
    bands = [geometric_interval(units_over(data, *pair), ["member"]) for pair in pairs]
    return comparison(data) | {
        "fewer": all(float(band.high) < 1 for band in bands),
        "more": all(float(band.low) > 1 for band in bands),
        "n": data.n.values[[0, -1]],
    }


EXPERIMENT = Experiment(
    title="The smallest width that converges",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["activation", "dimension", "n"],
        [
            Column("lambda", "eigenvalue"),
            *(Column(f"smallest width, kernel of scale {scale}", "smallest_width", geometric_mean,
                     at={"scale": scale}) for scale in ("m", "1")),
            Column("seeds without", lambda d: d.smallest_width.isnull().any("scale"), panels.total),
            Column("Table 1: log10 width", "table_1_width"),
            Column("steps allowed", "steps_allowed"),
            Column("Table 1: log10 steps", "table_1_steps"),
        ],
        of=lambda data: renamed(printed(data)),
    ),
    figures=[
        panels.Plot(
            "The smallest width that converges in time",
            Points(
                "smallest_width", "n", at={"scale": "m"}, colour="activation", line="-",
                names=LEGENDS["m"], band=geometric_extremes, dodge=0.08,
                panel="dimension", title="${dimension}$", xscale="log2", yscale="log2",
                xticks="n", xlabel="samples $n$ of dimension $d$", width=1.4,
                ylabel="smallest width $m$ that converges in time",
            )
            + Points("smallest_width", lambda data: 1.04 * data.n, at={"scale": "1"}, line="--",
                     hollow=True, colour="activation", names=LEGENDS["1"], dodge=0.08,
                     band=geometric_extremes, xscale="log2")
            + Lines(rise, "n", style=":", label="growth of Table 1 for ReLU, shifted"),
            comparison,
        )
    ],
)  # fmt: skip
