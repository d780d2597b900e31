r"""Do softmax, ReLU and exponential networks train as fast as the spectrum of the kernel predicts?

Gradient descent on the same unit inputs and random signs at step $1/\lambda_{\max}$ of each
network's tangent kernel. Loss beside kernel regression at infinite width and beside the rate of
Theorem 4.2; how far weights and kernel move against the width.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.join import join
from attlas.experiments.panels import (
    Column,
    Lines,
    Points,
    Reference,
    geometric_mean_only,
    mean_and_range,
)
from attlas.experiments.settings import Settings
from attlas.measures.statistics.onset import onset
from attlas.measures.statistics.trend import decay_rate
from attlas.models.networks.softmax_network import Activation
from gu2024exploring.experiments.instances import NAMES, renamed
from gu2024exploring.library.kernels.regression_flow import descent_loss
from gu2024exploring.library.training.kernel_regime import KernelRegime, train_beside_own_kernel
from gu2024exploring.library.training.sign_regression import draw_network, draw_sign_regression

PAPER, ROOT = "the paper's", "sqrt(m)"
"""Prefactors; the second, of softmax alone, makes its tangent kernel of order one."""
NEAR = 0.1
"""Relative distance of two rates up to which one is said to describe the other."""
ROUNDING = 1e-24
"""A loss below this share of its start is the square of rounding errors: it has no rate."""
FURTHEST = {name: panels.reduced(name, "max", "step") for name in ("movement", "drift")}
"""The largest value along training."""
GRID = Grid(
    each={"activation": [activation.value for activation in Activation]},
    fixed={"d": lambda s: s.n // 2, "sigma": 1.0, "records": 13},
    smoke={"n": 6, "widths": [8, 32], "steps": 24, "members": 2},
    quick={"n": 16, "widths": [64, 1024, 16384], "steps": 60, "members": 3},
    paper={
        "n": 250, "widths": [4**k for k in range(3, 8)], "steps": 100, "records": 21,
        "members": 4, "block": 2,
    },
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train every width from every seed, and the two kernel regressions beside it."""
    activation, seeds = Activation(s.activation), range(s.seed, s.seed + s.members)
    problems = [draw_sign_regression(s.n, s.d, [k], s.sigma, activation) for k in seeds]
    prefactors = [PAPER, ROOT] if activation is Activation.SOFTMAX else [PAPER]
    step, widths = np.linspace(0, s.steps, s.records).astype(int), []
    for m in s.widths:
        starts = [draw_network(s.d, m, [k, 1], s.sigma, activation) for k in seeds]
        scales = [m ** (k / 2) for k in range(len(prefactors))]
        trained = train_beside_own_kernel(problems, starts, scales, s.steps, step)
        widths.append(labelled(trained).expand_dims(m=[m]))
    smallest, largest = np.array([p.eigenvalues[[0, -1]] for p in problems]).T
    results = join(widths).assign_coords(prefactor=prefactors, step=step)
    results = results.assign(
        limit=(("member", "step"), [descent_loss(p.kernel, p.y, step) for p in problems]),
        smallest=("member", smallest),
        largest=("member", largest),
        promised=("member", -np.log1p(-smallest / largest / 2)),
    )
    results["drift"] = results.drift / results.smallest
    for name, loss in (("rate", "loss"), ("own_rate", "own"), ("limit_rate", "limit")):
        values = results[loss].where(results[loss] > ROUNDING).transpose(..., "step")
        results[name] = (values.dims[:-1], decay_rate(step, values.values))
    return results


def labelled(regime: KernelRegime) -> xr.Dataset:
    """The axes by name; kernel regression knows no prefactor."""
    axes = {3: ("prefactor", "member", "step"), 2: ("member", "step"), 1: ("member",)}
    return xr.Dataset({name: (axes[v.ndim], v) for name, v in regime._asdict().items()})


def networks(data: xr.Dataset) -> Iterator[tuple[str, xr.Dataset]]:
    """What was trained, by name: each activation, and softmax with the root of its prefactor."""
    for activation in data.activation.values:
        for prefactor in data.prefactor.values:
            part = data.sel(activation=activation, prefactor=prefactor)
            if part.loss.notnull().any():
                also = "" if prefactor == PAPER else " with prefactor $\\sqrt m$"
                yield NAMES[activation] + also, part.dropna("member", how="all")


def within(part: xr.Dataset) -> xr.DataArray:
    """Which runs have a rate as near to that of infinite width as counts."""
    near = abs(part.rate / part.limit_rate - 1) <= NEAR
    return near.squeeze(set(near.dims) & {"prefactor"}).transpose("m", "member")


def since(data: xr.Dataset, holds: xr.DataArray) -> str:
    """The least width from which on something holds."""
    m = float(onset(data.m.values, holds.values))
    return f"{m:.0f}" if np.isfinite(m) else "none"


def rates(data: xr.Dataset) -> dict[str, object]:
    """Rates over the predicted ones."""
    shares, near, promised, m = [], [], [], data.m.values
    for name, part in networks(data.sel(prefactor=[PAPER])):
        limit = (part.rate / part.limit_rate).mean("member")
        kernel_rate = (part.rate / part.own_rate).mean("member").values
        shares.append(
            f"{name} {limit.values[0]:.2f} (own kernel {kernel_rate[0]:.2f}) at $m = {m[0]}$ and "
            f"{limit.values[-1]:.2f} ({kernel_rate[-1]:.2f}) at $m = {m[-1]}$"
        )
        near.append(f"{since(data, within(part).all('member'))} ({name})")
        promised.append(f"{name} {float((part.rate.isel(m=-1) / part.promised).mean()):.1f}")
    parts = [*networks(data.sel(prefactor=[PAPER]))]
    wide = [name for name, part in parts if bool(within(part).all("member").values[-1])]
    return {
        "everywhere": len(wide) == len(parts),
        "nowhere": not wide,
        "wide": " and ".join(wide),
        "networks": len(parts),
        "widest": int(m[-1]),
        "shares": "; ".join(shares),
        "near": ", ".join(near),
        "percent": f"{100 * NEAR:g}",
        "promised": ", ".join(promised),
        "seeds": data.sizes["member"],
    }


def movements(data: xr.Dataset) -> dict[str, object]:
    """Slopes in the width, and from which one on the proof's condition holds."""
    within, powers = [], {"movement": [], "drift": []}
    for network, part in networks(data):
        below = (FURTHEST["drift"](part) <= 0.5).all("member")
        within.append(f"{since(part, below)} ({network})")
        for name, powers_of_name in powers.items():
            powers_of_name.append(f"{network} {panels.power_of(FURTHEST[name](part), 'm')}")
    return {
        name: ", ".join(powers_of_name)
        for name, powers_of_name in (*powers.items(), ("within", within))
    }


def against_width(name: str, ylabel: str) -> panels.Panel:
    """The largest value along training by width, of every network."""
    return Points(
        FURTHEST[name], "m", at={"prefactor": PAPER}, colour="activation", names=NAMES, line="-",
        band=panels.geometric_extremes, xscale="log2", yscale="log", xlabel="width $m$",
        ylabel=ylabel, xticks="m", width=1.3,
    ) + Points(
        FURTHEST[name], "m", at={"prefactor": ROOT, "activation": Activation.SOFTMAX.value},
        line="--", band=panels.geometric_extremes, hollow=True, marker="o", ink=panels.PALETTE[0],
        label="softmax, prefactor $\\sqrt{m}$",
    )  # fmt: skip


def answer(data: xr.Dataset) -> dict[str, object]:
    """Rates over the predicted ones at the smallest and the largest width."""
    ratios = {
        name: (part.rate / part.limit_rate).mean("member").values
        for name, part in networks(data.sel(prefactor=[PAPER]))
    }
    described = [
        ", ".join(f"{ratio[k]:.2f} ({name})" for name, ratio in ratios.items()) for k in (0, -1)
    ]
    by_network = {
        name: within(part).all("member").values
        for name, part in networks(data.sel(prefactor=[PAPER]))
    }
    return {
        "near": [name for name, near in by_network.items() if near[-1]],
        "far": [name for name, near in by_network.items() if not near[-1]],
        "early": all(near.all() for near in by_network.values()),
        "percent": f"{100 * NEAR:g}",
        "first": described[0],
        "last": described[1],
        "narrowest": int(data.m[0]),
        "widest": int(data.m[-1]),
        "n": data.attrs["n"],
        "seeds": data.sizes["member"],
    }


EXPERIMENT = Experiment(
    title="Convergence beside the spectrum of the kernel",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        {"activation": "network", "prefactor": "prefactor", "m": "m"},
        [
            Column("rate / infinite width", lambda d: d.rate / d.limit_rate, mean_and_range),
            Column("rate / own kernel", lambda d: d.rate / d.own_rate, mean_and_range),
            Column("rate / Theorem 4.2", lambda d: d.rate / d.promised, mean_and_range),
            Column("lambda of the start / limit", lambda d: d.own_smallest / d.smallest,
                   mean_and_range),
            Column("max_r |w_r - w_r(0)|", FURTHEST["movement"], mean_and_range),
            Column("|H - H(0)|_F / lambda", FURTHEST["drift"], mean_and_range),
        ],
        where=lambda row: row["prefactor"] == PAPER or row["activation"] == "softmax",
        of=renamed,
    ),
    figures=[
        panels.Plot(
            "Loss and the kernel's prediction",
            Lines(
                "loss", "step", at={"prefactor": PAPER}, colour="m", band=geometric_mean_only,
                names="network of width {m}",
                panel="activation", title=NAMES, yscale="log", xlabel="training step",
                ylabel="loss / loss at the start (lower: faster)", width=1.2,
            )
            + Lines("limit", "step", band=geometric_mean_only, style="--",
                    label="predicted by the kernel of infinite width")
            + Lines(lambda data: np.exp(-data.promised.mean("member") * data.step), "step",
                    style="-.", ink="#888888",
                    label="rate that theory promises (Theorem 4.2)"),
            rates, height=1.2,
        ),
        panels.Plot(
            "Movement of the weights and drift of the kernel",
            [
                against_width("movement", "largest |weights of a unit − their start|"),
                against_width("drift", "change of the kernel / least eigenvalue")
                + Reference(y=0.5, style="--", label="what the proof allows"),
            ],
            movements,
        ),
    ],
)  # fmt: skip
