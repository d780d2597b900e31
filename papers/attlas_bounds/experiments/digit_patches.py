r"""Does PAC-Bayes certify attention on digits better than a held-out half of the same images?

Multi-head attention learns odd against even digits from n images. Either half of them are held out
and the exact binomial bound judges the weights of the other half; or PAC-Bayes, with its prior from
a tenth, judges posteriors that were trained on all.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.data.digit_pairs import load_digit_pairs
from attlas.data.digits import DIGITS
from attlas.data.mnist import MNIST
from attlas.data.sources import is_present
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import Column, Points, Reference
from attlas.experiments.settings import Settings
from attlas_bounds.library.training.digit_certificates import (
    GUESSING,
    PRIOR_PART,
    DigitDescent,
    certify_digits,
)

IMAGES = {"source": "mnist", "n": [1000, 3000, 10_000]}
GRID = Grid(
    each={"n": [300, 1000]},
    fixed={
        "source": "digits", "heads": 2, "records": [1, 10, 100, 300], "rate": 0.03,
        "tuning": 0.003, "draws": 4, "R": 2.0, "delta": 0.05, "dtype": "float32",
    },
    smoke={"n": [40], "heads": 1, "records": [1, 2], "draws": 1},
    paper=lambda: (IMAGES if is_present(MNIST) else {"n": [125, 250, 500, 1000]}) | {"heads": 4},
    data=lambda s: MNIST if s.source == "mnist" else DIGITS,
    choices={"source": ("digits", "mnist")},
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train on the first n images, and certify in every way."""
    data = load_digit_pairs(None, "patches", R=s.R, source=s.source, seed=s.seed, dtype=jnp.float32)
    descent = DigitDescent(s.heads, tuple(s.records), s.rate, s.tuning, s.draws)
    found = certify_digits(key, data, s.n, descent, s.delta)
    return xr.Dataset(
        {name: (("step",) if np.ndim(value) else (), value) for name, value in vars(found).items()},
        {"step": list(s.records)},
    ).assign(test_images=len(data.y_test))


def percent(share: xr.DataArray) -> str:
    """Two significant digits, without an exponent."""
    return f"{100 * float(share):.2g}" if float(share) < 0.995 else "100"


def listed(values: xr.DataArray) -> str:
    """Percentages of all steps."""
    return ", ".join(percent(value) for value in values)


def nats(value: float) -> str:
    """A divergence in words."""
    return f"{value:,.0f}".replace(",", "{,}") if value >= 10 else f"{value:.2g}"


def texts(one: xr.Dataset) -> dict[str, object]:
    """All certificates from one number of images in words."""
    return {
        "n": f"{int(one.n):,}".replace(",", "{,}"),
        "half": percent(one.half),
        "half_alone": percent(one.half_alone),
        "half_error": percent(one.half_error),
        "half_test": percent(one.half_test),
        "posterior": listed(one.posterior),
        "posterior_test": listed(one.posterior_test),
        "nats": ", ".join(nats(float(value)) for value in one.nats.values),
        "certified": percent(one.certified),
    }


def answer(data: xr.Dataset) -> dict[str, object]:
    """Whether a posterior certifies less error than the half, at which n, and what is certified."""
    by_images = data.sortby("n")
    gains = by_images.posterior.min("step") < by_images.half
    last = by_images.isel(n=-1)
    least = last.isel(step=int(last.posterior.argmin("step")))
    moved = last.sortby("nats").posterior
    return texts(last) | {
        "always": bool(gains.all()), "never": not bool(gains.any()),
        "at": ", ".join(str(int(n)) for n in by_images.n[gains]),
        "sizes": data.sizes["n"], "count": 1 + data.sizes["step"],
        "vacuous": bool(last.certified >= GUESSING),
        "by_half": bool(last.half <= least.posterior),
        "least": percent(least.posterior), "least_nats": nats(float(least.nats)),
        "grows": bool((moved.diff("step") > 0).all()) and moved.size > 1,
        "held_out": percent(last.half_test if last.half <= least.posterior
                            else least.posterior_test),
        "part": PRIOR_PART, "mnist": data.attrs["source"] == "mnist",
    }  # fmt: skip


def against_n(data: xr.Dataset) -> dict[str, object]:
    """Every certificate at every n."""
    by_images = data.sortby("n")
    return {
        "each": [texts(by_images.isel(n=k)) for k in range(data.sizes["n"])],
        "best": percent(by_images.posterior.isel(n=-1).min("step")),
        "steps": ", ".join(str(step) for step in data.step.values),
        "tested": f"{int(data.test_images.max()):,}".replace(",", "{,}"),
        "count": 1 + data.sizes["step"],
    }


LOOK: dict[str, Any] = {
    "xscale": "log",
    "xlabel": "training images $n$",
    "ylabel": "certified error (lower is better)",
}
EXPERIMENT = Experiment(
    title="Digits in patches: PAC-Bayes against a held-out half",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    revision=2,
    table=panels.Table(
        ["n"],
        [
            Column("least of all, in the union", "certified"),
            Column("held-out half, in the union", "half"),
            Column("held-out half alone", "half_alone"),
            Column("error on the half", "half_error"),
            Column("error of the half on test images", "half_test"),
            *(
                Column(f"{title}, {place} posterior", name, at={"step": k})
                for k, place in ((0, "first"), (-1, "last"))
                for title, name in (
                    ("PAC-Bayes, in the union", "posterior"), ("divergence (nats)", "nats"),
                    ("error of the draws on test images", "posterior_test"),
                )
            ),
        ],
    ),
    figures=[
        panels.Plot(
            "Certified error of digits",
            Points("posterior", "n", colour="step", line="-", dodge=0.04, width=1.8,
                   names="PAC-Bayes, weights after step {step}", **LOOK)
            + Points("half", "n", line="--", label="held-out half", hollow=True, marker="s", **LOOK)
            + Points("half_test", "n", line=":", label="error of the half on test images",
                     marker="x", **LOOK)
            + Reference(y=GUESSING, label="error of guessing"),
            against_n,
        ),
    ],
)  # fmt: skip
