r"""How far are the bounds of Theorem 5.1 from the true gap of masked-word prediction?

Small Transformers of section 2.6 learn to predict a masked word among K, on sentences of the
Portuguese-English data where they are at hand and on generated ones elsewhere. The gap between
test and training loss is compared with every bound on the trained weights.
"""

import math
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.data.portuguese_english import PORTUGUESE_ENGLISH
from attlas.data.sources import is_present
from attlas.display.bound_names import bound_in_words
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
    mean_only,
    median_only,
)
from attlas.experiments.settings import Settings
from trauger2023sequence.library.data.masked_words import (
    MaskedWords,
    frequency_baseline,
    load_masked_words,
)
from trauger2023sequence.library.training.masked_word_bounds import (
    COVERS,
    FROM_ONE_SCORE,
    masked_tokens,
    masked_word_bounds,
)
from trauger2023sequence.library.training.masked_words import (
    MaskedWordSettings,
    make_word_inputs,
    masked_word_losses,
    train_masked_words,
)

DELTA = 0.05
SETS = {"train": "training loss", "test": "test loss"}
TEXTS = {"pt_en": "English sentences", "generated": "Generated sentences (a stand-in for text)"}


def quick() -> dict[str, Any]:
    """Real sentences where they are in the data folder."""
    if is_present(PORTUGUESE_ENGLISH):
        return {
            "text": "pt_en", "heads": 4, "batch": 128, "train": 20_000, "test": 2000, "steps": 800,
        }  # fmt: skip
    return {}


GRID = Grid(
    each={"T": [8, 16]},
    fixed={
        "text": "generated", "K": 40, "d": 32, "heads": 2, "k": 16, "layers": 1, "batch": 64,
        "train": 3000, "test": 1000, "steps": 500, "decay": [0.0, 0.1, 0.3],
        "exponents": list(range(3, 18, 2)), "members": 1, "block": 1,
    },
    smoke={
        "T": [8], "K": 20, "d": 8, "k": 4, "exponents": [5, 15],
        "train": 100, "test": 50, "steps": 20, "decay": [0.0, 0.1],
    },
    quick=quick,
    paper={
        "T": [8, 16, 32], "text": "pt_en", "K": 400, "d": 64, "heads": 4, "k": 16, "layers": 2,
        "train": 6000, "test": 600, "steps": 2000, "decay": [0.0, 0.1, 0.3], "members": 5,
    },
    data=lambda s: PORTUGUESE_ENGLISH if s.text == "pt_en" else None,
    choices={"text": list(TEXTS)},
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train with every decay; losses and all bounds, at the samples given and at more."""
    data = load_masked_words(s.text, s.K, s.T, s.train, s.test, s.seed)
    first, second = jax.random.split(key)
    inputs = make_word_inputs(first, s.K, s.T, s.d)
    names = ("d", "heads", "k", "layers", "steps", "batch")
    settings = MaskedWordSettings(**{name: s[name] for name in names})
    decay = jax.device_put(np.array(s.decay, "float32"))
    models = train_masked_words(second, data.train, inputs, decay, settings)
    # One program for both sets.
    all_samples = MaskedWords(*(np.concatenate(splits) for splits in zip(*data[:2], strict=True)))
    measured = masked_word_losses(models, inputs, all_samples, 2 * math.log(s.K))
    splits = [np.split(np.asarray(numbers), [s.train], axis=1) for numbers in measured]
    loss, right = (np.stack([part.mean(axis=1) for part in halves]) for halves in splits)
    baseline = frequency_baseline(data.train.targets, data.test.targets, s.K)
    best, samples = int(loss[1].argmin()), 10.0 ** np.array(s.exponents)
    X = masked_tokens(inputs, data.train)
    bounds = masked_word_bounds(models, best, X, samples, s.K, DELTA).rename(model="decay")
    return bounds.assign(
        loss=(("set", "decay"), loss),
        accuracy=(("set", "decay"), right),
        readout=("decay", np.linalg.norm(np.asarray(models.readout, float), axis=2).max(axis=1)),
        best=s.decay[best],
        gap=loss[1, best] - loss[0, best],
        unigram=baseline.loss,
        frequent=baseline.accuracy,
    ).assign_coords(set=list(SETS), decay=list(s.decay))


def ceiling(data: xr.Dataset) -> float:
    """The largest loss, the vacuous bound."""
    return 2 * math.log(data.attrs["K"])


def at_best(data: xr.Dataset) -> xr.Dataset:
    """At the decay of least test loss, means over members."""
    return data.where(data.decay == data.best).mean("decay").mean("member")


def least(data: xr.Dataset) -> xr.DataArray:
    """The least bound at the training samples, of the model that was compared."""
    bounds = data.bound.isel(samples=-1).min("cover")
    return bounds.where(data.decay == data.best)


def learnt(data: xr.Dataset) -> dict[str, object]:
    """What is learnt, and the true gap."""
    rows = []
    for T in data["T"].values:
        cell = at_best(data[["loss", "accuracy", "unigram", "frequent", "best", "gap"]].sel(T=T))
        loss, right = (float(cell[name].sel(set="test")) for name in ("loss", "accuracy"))
        rows.append(
            f"at T = {T} test loss {loss:.2f} against {float(cell.unigram):.2f} by frequency, "
            f"accuracy {right:.2f} against {float(cell.frequent):.2f}, gap {float(cell.gap):.2f}"
        )
    s = data.attrs
    best = at_best(data[["loss", "unigram", "best"]]).isel(T=-1)
    return {
        "text": TEXTS[s["text"]],
        "K": s["K"],
        "m": f"{s['train']:,}",
        "rows": "; ".join(rows),
        "T": int(data["T"][-1]),
        "test": f"{float(best.loss.sel(set='test')):.2f}",
        "frequency": f"{float(best.unigram):.2f}",
    }


def needed(data: xr.Dataset) -> dict[str, object]:
    """The samples that each bound needs, beside the gap."""
    rows = []
    for T in data["T"].values:
        cell = data.sel(T=T)
        covers = cell.needed.where(cell.decay == cell.best).mean("decay").transpose("cover", ...)
        samples = [*covers.values, *cell.score_needed.transpose("score", ...).values]
        texts = [
            f"{bound_in_words(name)} "
            + (large_number(np.nanmedian(m)) if np.isfinite(np.nanmedian(m)) else "over $10^{17}$")
            for name, m in zip((*COVERS, *FROM_ONE_SCORE), samples, strict=True)
        ]
        rows.append(
            f"T = {T}: gap {float(cell.gap.mean()):.2f}, "
            f"least bound {float(least(cell).mean()):.1f}; {', '.join(texts)}"
        )
    facts = answer(data)
    return {
        "ceiling": f"{ceiling(data):.1f}",
        "rows": ". ".join(rows),
        **{name: facts[name] for name in ("gap", "bound", "m", "vacuous")},
    }


def samples_text(m: xr.DataArray) -> str:
    """A number of samples."""
    return f"{float(m.median()):.0e}"


def curve(name: str, **labels: Any) -> panels.Formula:
    """Bounds at all sample sizes but that of the training."""
    return lambda data: data[name].isel(samples=slice(None, -1)).sel(**labels)


def least_by_norms(data: xr.Dataset) -> xr.DataArray:
    """The least bound that does not count parameters, but at the samples of the training."""
    covers = [cover for cover in COVERS if cover != "parameters"]
    return curve("bound", cover=covers)(data).min("cover")


def answer(data: xr.Dataset) -> dict[str, object]:
    """The true gap, the least bound, and which of them needs the fewest samples."""
    needed_samples = data.needed.where(data.decay == data.best).mean("decay")
    medians = needed_samples.median([dim for dim in needed_samples.dims if dim != "cover"])
    name = str(medians.cover.values[int(medians.argmin("cover"))])
    bound = least(data).max("decay").mean("member")
    return {
        "vacuous": bool((bound >= ceiling(data)).all()),
        "m": f"{data.attrs['train']:,}",
        "T": ", ".join(map(str, data["T"].values)),
        "gap": ", ".join(f"{gap:.2f}" for gap in data.gap.mean("member").values),
        "bound": ", ".join(f"{value:.1f}" for value in bound.values),
        "ceiling": f"{ceiling(data):.1f}",
        "name": {"parameters": "parameter counting"}.get(name, f"the bound '{name}'"),
        "needed": large_number(float(medians.min())),
        "text": "English sentences" if data.attrs["text"] == "pt_en" else "generated sentences",
        "K": data.attrs["K"],
    }


EXPERIMENT = Experiment(
    title="Masked words: bounds beside the true gap",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["T", "decay"],
        [
            *(Column(f"loss, {name}", "loss", at={"set": name}) for name in SETS),
            Column("by frequency", "unigram"),
            Column("accuracy, test", "accuracy", at={"set": "test"}),
            Column("most frequent", "frequent"),
            Column("true gap", lambda data: data.loss.sel(set="test") - data.loss.sel(set="train")),
            Column("largest |W_i|", "readout"),
            *(Column(f"m, {name}", "needed", samples_text, at={"cover": name}) for name in COVERS),
            Column("least bound", least),
        ],
    ),
    figures=[
        panels.Plot(
            "Loss of masked words",
            Lines(
                "loss", "decay", colour="set", names=SETS, band=mean_only, style="o-", panel="T",
                title="windows of {T} words", xlabel="weight decay",
                ylabel="mean of −log(probability of the hidden word)",
                width=1.3,
            )
            + Reference(y=lambda data: data["unigram"], style="--",
                        label="guessing by frequency alone")
            + Reference(y=lambda data: xr.DataArray(ceiling(data) / 2),
                        label="guessing all words alike"),
            learnt,
        ),
        panels.Plot(
            "Bounds and true gap of masked words",
            Lines(
                least_by_norms, "samples", ink=PALETTE[0], label="least of the bounds by norms",
                band=median_only, panel="T", title="windows of {T} words", xscale="log",
                yscale="log", ylim=(0.02, None), xlabel="training samples $m$",
                ylabel="test minus training loss, or a bound on it", width=1.4,
            )
            + Lines(curve("bound", cover="parameters"), "samples", band=median_only,
                    ink=PALETTE[1], label="bound by counting parameters")
            + Lines(curve("score_bound", score="printed order"), "samples", band=median_only,
                    ink=PALETTE[2], style=":",
                    label="bound as printed, its constant set to 1 (Theorem 5.1)")
            + Lines(curve("score_bound", score="contraction"), "samples", band=median_only,
                    ink=PALETTE[3], style="--", label="bound from the complexity of one score")
            + Reference(
                y=lambda data: xr.DataArray(ceiling(data)),
                to=lambda data: 3 * data["score_bound"].max(),
                label="above the largest loss: a bound is vacuous",
            )
            + Points(
                lambda data: data["gap"].clip(min=1e-3),
                lambda data: xr.DataArray(float(data.attrs["train"])),
                marker="*", ink=PALETTE[6], band=panels.quartiles,
                label="measured, at the samples trained on",
            ),
            needed,
        ),
    ],
)  # fmt: skip
