r"""What error is attention on the patches of digits certified at, against n and a held-out set?

Multi-head attention learns odd against even digits. PAC-Bayes bounds its error from the training
images, with a prior at the untrained weights or at weights trained on the first half of the images;
the error on test images and its exact binomial bound stand beside it.
"""

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
    PRIORS,
    DigitCertificate,
    DigitDescent,
    certify_digits,
)

IMAGES = {"source": "mnist", "samples": [1000, 3000, 10_000]}
GRID = Grid(
    each={"prior": list(PRIORS)},
    fixed={
        "source": "digits", "samples": [300, 1000], "heads": 2, "records": [300],
        "rate": 0.03, "draws": 600, "R": 2.0, "delta": 0.05, "dtype": "float32",
    },
    smoke={"samples": [20], "heads": 1, "records": [2], "draws": 20},
    paper=lambda: (IMAGES if is_present(MNIST) else {"samples": [125, 250, 500, 1000]})
    | {"heads": 4, "records": [30, 100, 300, 1000]},
    data=lambda s: MNIST if s.source == "mnist" else DIGITS,
    choices={"source": ("digits", "mnist")},
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train on the first n images, for each n, and certify."""
    data = load_digit_pairs(None, "patches", R=s.R, source=s.source, seed=s.seed, dtype=jnp.float32)
    descent = DigitDescent(s.heads, tuple(s.records), s.rate, s.draws)
    certificates = [certify_digits(key, data, n, s.prior, descent, s.delta) for n in s.samples]
    return xr.Dataset(
        {name: ("n", np.array([getattr(certificate, name) for certificate in certificates]))
         for name in DigitCertificate._fields},
        {"n": list(s.samples)},
    ).assign(test_images=len(data.y_test), majority=float(jnp.mean(data.y_test > 0)))  # fmt: skip


def percent(share: object) -> str:
    """Two significant digits, without an exponent."""
    return f"{100 * float(share):.2g}" if float(share) < 0.995 else "100"  # pyright: ignore[reportArgumentType]


def texts(data: xr.Dataset, prior: str, at: int = -1) -> dict[str, str]:
    """One certificate in words."""
    certificate = data.sel(prior=prior).isel(n=at)
    names = ("certified", "held_out", "held_out_bound", "train_error")
    return {name: percent(certificate[name]) for name in names} | {"n": f"{int(certificate.n)}"}


def answer(data: xr.Dataset) -> dict[str, object]:
    """What the largest n certifies, with the better prior."""
    last = data.certified.isel(n=-1)
    prior = str(last.idxmin("prior").values)
    captions = texts(data, prior)
    return {
        "n": captions["n"], "certified": captions["certified"], "held_out": captions["held_out"],
        "held_out_bound": captions["held_out_bound"], "half": prior == PRIORS[1],
        "vacuous": bool(last.min() >= 0.5), "mnist": data.attrs["source"] == "mnist",
    }  # fmt: skip


def against_n(data: xr.Dataset) -> dict[str, object]:
    """Every n with both priors, and whether the posterior left its prior."""
    priors = [
        {"prior": prior, "cases": [texts(data, prior, k) for k in range(data.sizes["n"])]}
        for prior in data.prior.values
    ]
    nats = data.divergence.isel(n=-1)
    return {
        "each": priors,
        "nats": ", ".join(f"{float(nats.sel(prior=p)):.1f} ({p})" for p in data.prior.values),
        "tested": int(data.test_images.max()),
    }


LOOK = {"colour": "prior", "xscale": "log", "xlabel": "training images $n$", "dodge": 0.04}
EXPERIMENT = Experiment(
    title="Digits in patches: PAC-Bayes beside a held-out set",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["prior", "n"],
        [
            Column("certified error", "certified"),
            Column("error of the draws, images of the bound", "train_error"),
            Column("divergence (nats)", "divergence"),
            Column("scale of the posterior", "scale"),
            Column("held-out error", "held_out"),
            Column("held-out bound", "held_out_bound"),
        ],
    ),
    figures=[
        panels.Plot(
            "Certified error of digits",
            Points("certified", "n", line="-", names="PAC-Bayes, prior {prior}", width=1.8,
                   ylabel="error", **LOOK)
            + Points("held_out_bound", "n", line="--", names="exact held-out bound, {prior}",
                     hollow=True, marker="s", **LOOK)
            + Points("held_out", "n", line=":", names="held-out error, {prior}", marker="x", **LOOK)
            + Reference(y=0.5, label="guessing"),
            against_n,
        ),
    ],
)  # fmt: skip
