r"""How many bits per character is a language model certified at on the text it was trained on?

Small Transformers of a few hundred to some thousand parameters read the first n characters of a
stream of texts. Their weights end on a grid, and a martingale bound holds for all models on it,
though characters are not independent; other texts and the uniform law stand beside it.
"""

from dataclasses import fields
from functools import lru_cache

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.data.imdb import IMDB
from attlas.data.sources import is_present
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import PALETTE, Column, Lines, Points, Reference, mean_only
from attlas.experiments.settings import Settings
from attlas_bounds.library.training.character_certificates import (
    CharacterCertificate,
    CharacterDescent,
    CharacterSize,
    certify_characters,
    train_characters,
)
from attlas_bounds.library.training.character_stream import load_character_stream

SIZES = {
    "491 parameters": CharacterSize(width=4, heads=3, context=8, hidden=8),
    "1093 parameters": CharacterSize(width=6, heads=4, context=12, hidden=16),
    "2519 parameters": CharacterSize(width=8, heads=5, context=12, hidden=32),
    "6519 parameters": CharacterSize(width=12, heads=6, context=16, hidden=60),
}
"""Among these the best is chosen, at every scale."""
UNIFORM = float(np.log2(27))
DRAW = 0
"""Seed of the texts: all sizes read the same ones."""
GRID = Grid(
    each={"size": ["491 parameters", "2519 parameters"]},
    fixed={
        "text": "generated", "samples": [10_000, 100_000, 1_000_000], "steps": 1200, "batch": 192,
        "rate": 0.03, "spacing": 1 / 8, "fresh": 100_000, "delta": 0.05, "dtype": "float32",
    },
    smoke={
        "size": ["491 parameters"], "samples": [200, 400], "steps": 5, "batch": 4, "fresh": 100,
    },
    quick=lambda: {"text": "imdb"} if is_present(IMDB) else {},
    paper=lambda: ({"text": "imdb", "samples": [10_000, 100_000, 1_000_000, 10_000_000]}
                   if is_present(IMDB) else {})
    | {"size": list(SIZES), "steps": 20_000, "batch": 512, "fresh": 1_000_000},
    data=lambda s: IMDB if s.text == "imdb" else None,
    choices={"text": ("generated", "imdb")},
)  # fmt: skip

read_once = lru_cache(1)(load_character_stream)
"""Reading the reviews takes seconds; shorter streams are the beginning of the longest."""


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train on the first n characters, for each n, and certify."""
    data = read_once(s.text, max(s.samples), s.fresh, DRAW)
    descent = CharacterDescent(s.steps, s.batch, s.rate, s.spacing)
    certificates = []
    for size_key, n in zip(jax.random.split(key, len(s.samples)), s.samples, strict=True):
        model = train_characters(size_key, data.train, n, SIZES[s.size], descent)
        certificates.append(
            certify_characters(model, data.train, n, data.held_out, s.spacing, len(SIZES), s.delta)
        )
    return xr.Dataset(
        {name: ("n", np.array([getattr(certificate, name) for certificate in certificates]))
         for name in (field.name for field in fields(CharacterCertificate))},
        {"n": list(s.samples)},
    )  # fmt: skip


def best_size(data: xr.Dataset) -> xr.Dataset:
    """At each n the model with the least certified bits."""
    return data.isel(size=data.certified.fillna(np.inf).argmin("size"))


def least(name: str) -> panels.Formula:
    """A quantity of the chosen model."""
    return lambda data: best_size(data)[name].reset_coords(drop=True)


def texts(certificate: xr.Dataset) -> dict[str, object]:
    """One certificate in words."""
    return {
        **{name: f"{float(certificate[name]):.2f}" for name in ("certified", "train", "held_out")},
        "n": f"{int(certificate.n):,}".replace(",", "{,}"),
        "parameters": int(certificate.parameters),
        "vacuous": bool(certificate.certified >= UNIFORM),
    }


def answer(data: xr.Dataset) -> dict[str, object]:
    """What the largest n certifies."""
    return {
        **texts(best_size(data).isel(n=-1)), "uniform": f"{UNIFORM:.2f}",
        "real": data.attrs["text"] == "imdb",
    }  # fmt: skip


def against_n(data: xr.Dataset) -> dict[str, object]:
    """How the certificate falls with n."""
    best = best_size(data)
    sizes = best.parameters.values
    return {
        "each": [texts(best.isel(n=k)) for k in range(data.sizes["n"])],
        "uniform": f"{UNIFORM:.2f}",
        "fresh": f"{data.attrs['fresh']:,}".replace(",", "{,}"),
        "pays": bool((sizes[1:] >= sizes[:-1]).all() and sizes[-1] > sizes[0]),
    }


EXPERIMENT = Experiment(
    title="A small language model: certified bits per character",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["size", "n"],
        [
            Column("certified bits per character", "certified", panels.mean_and_range),
            Column("mixed with the uniform law, on the stream", "smoothed", panels.mean_and_range),
            Column("on the stream", "train", panels.mean_and_range),
            Column("other texts", "held_out", panels.mean_and_range),
            Column("bits of the model", "bits", panels.mean_and_range),
            Column("parameters", "parameters", panels.only),
        ],
    ),
    figures=[
        panels.Plot(
            "Certified bits per character against n",
            [
                Lines(least("certified"), "n", ink=PALETTE[0],
                      label="certified, from these characters alone",
                      xscale="log", xlabel="training characters $n$",
                      ylabel="bits per character (lower is better)",
                      title="the best size", width=1.6, band=mean_only)
                + Lines(least("train"), "n", ink=PALETTE[0], style=":", band=mean_only,
                        label="measured on these characters")
                + Lines(least("held_out"), "n", ink=PALETTE[1], style="--", band=mean_only,
                        label="measured on other texts")
                + Reference(y=UNIFORM, label="guessing all 27 signs alike"),
                Points("certified", "n", colour="size", line="-", xscale="log", dodge=0.05,
                       xlabel="training characters $n$", ylabel="certified bits per character",
                       width=1.6,
                       title="each size")
                + Reference(y=UNIFORM, label="guessing all 27 signs alike"),
            ],
            against_n,
        ),
    ],
)  # fmt: skip
