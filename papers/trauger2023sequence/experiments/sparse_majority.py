r"""Do bounds on trained weights explain the gap of sparse majority, and would runs show a log T?

Figures 1-3: sparse majority as released, five runs per length as one program. Beside the measured
gap are the bounds for the class of the trained weights, the samples from which each is
non-vacuous, and how many runs it takes to detect a gap that grows with log T.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.data.sparse_majority import MajorityDesign
from attlas.display.bound_names import WORDS, bound_in_words
from attlas.display.numbers import large_number
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import (
    PALETTE,
    Band,
    Column,
    Lines,
    Points,
    Reference,
    mean_and_range,
    taken,
)
from attlas.experiments.settings import Settings
from trauger2023sequence.library.measures.growth_factor import factor_of_line
from trauger2023sequence.library.measures.trend_power import TrendPower, trend_power
from trauger2023sequence.library.sparse_majority.bound_dataset import (
    COVERS,
    VERSIONS,
    majority_bound_dataset,
)
from trauger2023sequence.library.sparse_majority.lengths import train_majority_lengths
from trauger2023sequence.library.sparse_majority.training import MEASURED, MajoritySettings
from trauger2023sequence.library.sparse_majority.trauger2023_bounds import (
    BALLS,
    ROWS,
    majority_ensemble_norms,
)

RELEASED_EPOCHS, RELEASED_LENGTHS = 200_000, list(range(20, 201, 20))
WEIGHTS, LOSS_GAP, ACCURACY_GAP, ACCURACY = QUANTITIES = (
    "sum of $|$weights$|$", "validation minus training loss",
    "training minus validation accuracy", "validation accuracy",
)  # fmt: skip
GAPS = {"loss gap": LOSS_GAP, "accuracy gap": ACCURACY_GAP}
GROWTH = np.sqrt(np.log(64 * 300 * (np.array(RELEASED_LENGTHS) + 1)))
r"""$\sqrt{\log(d m T)}$ at the paper's lengths, in the released settings."""
RISE = f"{100 * (GROWTH[-1] / GROWTH[0] - 1):.1f}"
"""By how many percent that grows from the first length to the last."""
BOUNDS = {"version": list(VERSIONS[:2])}
"""All but the printed rows, which are no bounds."""
NAMES = {
    **{ball: f"{WORDS[ball]} (Theorem 4.1)" for ball in ("1,1", "1,inf", "2,1")},
    "log T": "log of the length (Edelman et al.)",
    "log m": "one token, any length (Edelman et al.)",
    "parameters": "parameter counting",
}  # fmt: skip
GUESS = float(np.log(2))
"""Loss of guessing: a bound on the gap above it tells a user nothing."""
SAMPLES = np.geomspace(1e2, 1e26, 73)
"""Where the bounds are evaluated, to see from where on they are non-vacuous."""
# SGD leaves the start after thousands of epochs only: Adam shows trained weights in seconds.
GRID = Grid(
    each={"T": [200, 60, 20]},  # the longest first: workers end together
    fixed={
        "members": 5, "train": 300, "validation": 1000, "indices": 9, "d": 64, "delta": 0.05,
        "epochs": 500, "optimizer": "adam", "rate": 0.001, "validate_every": 1,
        "dtype": "float32",
    },
    smoke={"T": [6], "members": 2, "train": 24, "validation": 20, "indices": 3, "d": 6,
           "epochs": 4},
    paper={"T": RELEASED_LENGTHS[::-1], "validation": 10_000, "epochs": RELEASED_EPOCHS,
           # Every epoch would cost five times as much, nearly all of it for the 10,000 sequences.
           "optimizer": "sgd", "rate": 0.01, "validate_every": 20},
    work=lambda s: (
        s.members * s.epochs * (3 * s.train + s.validation / s.validate_every) * (s.T + s.d)
    ),
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train the runs of one length and evaluate all bounds on their weights."""
    design = MajorityDesign(s.train, s.validation, s.indices, s.d)
    settings = MajoritySettings(
        rate=s.rate, floor=s.rate / 10, optimizer=s.optimizer, validate_every=s.validate_every
    )
    data, training = train_majority_lengths(
        key, [s.T], s.members, s.epochs, design, settings, chunk=min(500, s.epochs)
    )[s.T]
    norms = majority_ensemble_norms(training.state.selected, data.embedding)
    bounds = majority_bound_dataset(norms, s.train, SAMPLES, s.T, s.d, s.delta, GUESS)
    epochs = np.geomspace(1, training.history.shape[1], 80).astype(int)
    epochs = np.unique(epochs - (epochs - 1) % s.validate_every)  # those that were validated
    train_loss, train_right, loss, right, weights = training.selected.T.astype(float)
    quantities = [weights, loss - train_loss, train_right - right, right]
    return bounds.assign(
        shown=(("quantity", "member"), quantities),
        selected=(("member", "measured"), training.selected),
        selected_epoch=("member", training.state.selected_epoch),
        epochs_trained=("member", training.state.epoch),
        stopped=("member", training.state.stopped),
        validation_loss=(("member", "epoch"), training.history[:, epochs - 1, 2]),
    ).assign_coords(epoch=epochs, quantity=list(QUANTITIES), measured=list(MEASURED))


def of(quantity: str) -> panels.Formula:
    """One of the numbers of Figures 1-3."""
    return taken("shown", {"quantity": quantity})


def at_m(data: xr.Dataset) -> xr.DataArray:
    """The bounds at the number of samples that were trained on."""
    return data["bound"].sel(m=float(data.attrs["train"]))


def departures(data: xr.Dataset) -> dict[str, object]:
    """What this scale does otherwise than the released program."""
    s = data.attrs
    departing = s if s["epochs"] != RELEASED_EPOCHS else dict.fromkeys(s, "")
    names = ("epochs", "optimizer", "rate", "validation")
    return {**{name: departing[name] for name in names}, "released": RELEASED_EPOCHS}


def learnt(data: xr.Dataset) -> dict[str, object]:
    """How many learnt, and how well."""
    accuracy = of(ACCURACY)(data).mean("member")
    ends = [f"{accuracy.values[k]:.2f} at length {data['T'].values[k]}" for k in (0, -1)]
    return {
        **departures(data), "grows": growth(data)["grows"],
        "largest": f"{float(abs(of(LOSS_GAP)(data)).max()):.2g}", "accuracies": " and ".join(ends),
        "members": data.sizes["member"],
        "stopped": int(data.stopped.sum()), "runs": data.stopped.size,
        "validate_every": data.attrs["validate_every"],
        "trends": trends(data) if data.sizes["T"] > 2 else "",
        "largest_runs": trend_of_largest(data),
    }  # fmt: skip


def trends(data: xr.Dataset) -> str:
    """Spearman's correlation of each quantity with the length, over all runs, and its p-value."""
    texts = []
    for name, quantity in {"weights": WEIGHTS, **GAPS}.items():
        runs = of(quantity)(data)
        if not runs.max() > runs.min():  # constant, or nothing there
            continue
        lengths, values = (a.values.ravel() for a in xr.broadcast(data["T"], runs))
        texts.append(f"{_rank_text(*_rank_test(lengths, values, 'omit'))} for the {name}")
    return ", ".join(texts)


def growth(data: xr.Dataset) -> dict[str, object]:
    """How the loss gap changes with T over all runs, and without the shortest length."""
    if data.sizes["T"] < 3:
        names = ("grows", "grows_later", "shortest", "trend", "later", "factor")
        return dict.fromkeys(names, "")
    gaps = of(LOSS_GAP)(data).transpose("T", "member")
    lengths = np.broadcast_to(data["T"].values[:, None], gaps.shape)
    every, later = _trend(lengths, gaps.values), _trend(lengths[1:], gaps.values[1:])
    return {
        "grows": every["p"] < 0.05 and every["correlation"] > 0,
        "grows_later": later["p"] < 0.05 and later["correlation"] > 0,
        "shortest": int(data["T"][0]),
        "trend": _rank_text(every["correlation"], every["p"]),
        "later": _rank_text(later["correlation"], later["p"]),
        "factor": factor_of_line(lengths, gaps.values),
    }


def trend_of_largest(data: xr.Dataset) -> str:
    """The rank correlation of the largest gap of each length, which the paper's figure shows."""
    if data.sizes["T"] < 3:
        return ""
    largest = of(LOSS_GAP)(data).max("member")
    return _rank_text(*_rank_test(data["T"].values, largest.values))


def _rank_text(correlation: Any, p: Any) -> str:
    return f"{correlation:.2f} ($p$ = {p:.1g})"


def _trend(lengths: np.ndarray, gaps: np.ndarray) -> dict[str, float]:
    """Spearman's correlation with its p-value."""
    finite = np.isfinite(gaps)
    correlation, p = _rank_test(lengths[finite], gaps[finite])
    return {"correlation": correlation, "p": p}


def _rank_test(
    lengths: np.ndarray, values: np.ndarray, missing: str = "propagate"
) -> tuple[float, float]:
    """Spearman's correlation with its p-value."""
    from scipy.stats import spearmanr  # takes half a second, and all papers are listed without it

    ranks: Any = spearmanr(lengths, values, nan_policy=missing)
    return float(ranks.statistic), float(ranks.pvalue)


def samples_in_words(power: float) -> str:
    """Ten to a power, which may be beyond what a float holds, as a number of samples."""
    return large_number(10.0**power if power < 300 else np.inf)


def sizes(data: xr.Dataset) -> dict[str, object]:
    """Whether any bound is non-vacuous, and what each would need."""
    below = at_m(data).sel(BOUNDS) < data.loss_range
    sharp = data.log10_needed.sel(version="sharp")
    needed = {cover: float(np.nanmedian(sharp.sel(cover=cover))) for cover in COVERS}
    best = min(BALLS, key=lambda ball: needed[ball])
    printed = at_m(data).sel(cover="1,1", version="printed")
    medians = {cover.replace(" ", "_"): samples_in_words(at) for cover, at in needed.items()}
    return {
        **{name: medians[name] for name in ("log_T", "log_m", "parameters")},
        "best": bound_in_words(best),
        "least": medians[best], "costly": needed[best] > needed["log T"],
        "trained": data.attrs["train"], "largest": f"{float(abs(of(LOSS_GAP)(data)).max()):.2g}",
        "below": int(below.any(["T", "member"]).sum()), "bounds": len(ROWS) - 3,
        "printed_least": large_number(float(printed.min())), "printed_count": printed.size,
        "printed_most": large_number(float(printed.max())), "negative": int((printed < 0).sum()),
    }  # fmt: skip


def detected(data: xr.Dataset, gap: str) -> TrendPower:
    """Power to detect that growth in a gap, from the spread of the runs within a length."""
    runs = of(GAPS[gap])(data).transpose("T", "member").values
    return trend_power([run[np.isfinite(run)] for run in runs], GROWTH)


def power(data: xr.Dataset) -> xr.DataArray:
    """The power by number of runs, with the 95 % limits of the spread."""
    runs = np.geomspace(2, 1e6, 300)
    values = [detected(data, gap).limits(runs) for gap in GAPS]
    return xr.DataArray(values, {"gap": list(GAPS), "limit": list(Band._fields), "runs": runs})


def limits(values: xr.DataArray, over: Sequence[str]) -> Band:
    """The power as a band."""
    return Band(*(values.sel(limit=name, drop=True) for name in Band._fields))


def runs_needed(data: xr.Dataset) -> dict[str, object]:
    """How many runs would show the growth."""
    texts, counts = [], []
    for name in GAPS:
        needed, low, high = detected(data, name).runs()
        count = f"{needed:,.0f} [{low:,.0f}, {high:,.0f}]"
        counts.append(large_number(needed))
        texts.append(f"{count if np.isfinite(needed) else 'infinitely many'} for the {name}")
    first, *_, last = RELEASED_LENGTHS
    released = {"rise": RISE, "first": first, "last": last}
    return {
        **departures(data),
        **released,
        "needed": " and ".join(texts),
        "counts": " and ".join(counts),
    }


def mean_and_range_text(values: xr.DataArray) -> str:
    """Mean and range without decimals."""
    return f"{values.mean():.0f} ({values.min():.0f} to {values.max():.0f})"


def least(data: xr.Dataset) -> str:
    """The bound of least mean at the trained number of samples."""
    rows = at_m(data).sel(BOUNDS).stack(row=["cover", "version"]).dropna("row", how="all")
    return mean_and_range(rows.isel(row=int(rows.mean("member").argmin("row"))))


def least_at_m(data: xr.Dataset) -> xr.DataArray:
    """The least of all bounds at the samples trained on."""
    return at_m(data).sel(version="sharp").min("cover")


def sample_sizes(covers: Sequence[str]) -> panels.Formula:
    """The samples from which the least of some bounds is below the loss of guessing."""
    return lambda data: (
        10.0 ** data["log10_needed"].sel(version="sharp", cover=list(covers)).min("cover")
    )


def samples_by(covers: Sequence[str], label: str, ink: str, **axes: Any) -> Points:
    """The samples that a kind of bounds needs, by length."""
    return Points(
        sample_sizes(covers), "T", marker="o", line="-", ink=ink, label=label, band=panels.extremes,
        dodge=0.05, **axes,
    )  # fmt: skip


def stopped(reached: bool, **look: Any) -> Lines:
    """The runs that reached training accuracy 1, or the others."""
    return Lines(
        lambda data: data["shown"].where(data["stopped"] == reached), "T", band=None, style="o",
        panel="quantity", shared=False, xlabel="length $T$ in bits", ylabel="{quantity}", **look,
    )  # fmt: skip


def of_some_lengths(data: xr.Dataset) -> xr.DataArray:
    """The validation losses of every second length, so that each has a colour."""
    return data["validation_loss"].isel(T=slice(None, None, 2)).rename(T="shown")


def answer(data: xr.Dataset) -> dict[str, object]:
    """The bound that needs the fewest samples, and whether the gap grows with T."""
    sharp = data.log10_needed.sel(version="sharp")
    needed = {cover: float(np.nanmedian(sharp.sel(cover=cover))) for cover in COVERS}
    cover = min(needed, key=lambda name: needed[name])
    fewest = {"name": NAMES[cover], "fewest": samples_in_words(needed[cover])}
    return sizes(data) | growth(data) | fewest | {"rise": RISE}


LN_2 = Reference(y=GUESS, style="-.", label="loss of guessing, $\\ln 2$")
EXPERIMENT = Experiment(
    title="Sparse majority: weights, gap and bounds",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["T"],
        [
            Column("epochs", "epochs_trained", lambda n: f"{n.min():.0f} to {n.max():.0f}"),
            Column("stopped at training accuracy 1", "stopped",
                   lambda done: f"{int(done.sum())} of {done.size}"),
            Column("sum of |weights|", of(WEIGHTS), mean_and_range_text),
            *(Column(name, of(quantity), mean_and_range) for name, quantity in GAPS.items()),
            Column("accuracy", of(ACCURACY), mean_and_range),
            Column("range of the loss", "loss_range", mean_and_range),
            panels.Derived("least bound at the m trained on", least),
            Column("Theorem 4.1 printed, c = 1", at_m, mean_and_range,
                   at={"cover": "1,1", "version": "printed"}),
            *(
                Column(f"log10 m needed, {cover}{'' if version == 'sharp' else ', ' + version}",
                       "log10_needed", mean_and_range, at={"cover": cover, "version": version})
                for cover, version in ROWS[: -len(BALLS)]
            ),
        ],
    ),
    figures=[
        panels.Plot(
            "Weights, gaps and accuracy by the length of the sequences",
            stopped(True, ink=PALETTE[2], label="stopped at training accuracy 1")
            + stopped(False, ink=PALETTE[0], label="stopped by the limit of epochs")
            + Lines(lambda data: data["shown"].max("member"), "T", ink=PALETTE[1],
                    label="largest of the runs, as the paper shows")
            + Reference(y={LOSS_GAP: 0.0, ACCURACY_GAP: 0.0, ACCURACY: 0.5},
                        label="gap zero, or accuracy of guessing"),
            learnt,
        ),
        panels.Plot(
            "Bounds on the trained weights",
            [
                Points(least_at_m, "T", band=panels.extremes, marker="o", line="-",
                       ink=PALETTE[0], label=f"least of {len(COVERS)} bounds", width=1.6,
                       yscale="log", xlabel="length $T$ in bits",
                       ylabel="test minus training loss, or bound",
                       title="with the samples trained on")
                + Lines(of(LOSS_GAP), "T", band=None, style="o",
                        label="measured difference of the losses")
                + Lines(lambda data: -of(LOSS_GAP)(data), "T", band=None, style="o", ink="#aaaaaa",
                        label="measured difference, negative: its size")
                + Lines("loss_range", "T", band=panels.mean_only, style="--",
                        label="range of the loss: a bound above is vacuous")
                + LN_2,
                samples_by(BALLS, "least bound by a norm (Theorem 4.1)", PALETTE[0], width=1.6,
                           xlabel="length $T$ in bits", ylabel="training samples needed",
                           yscale="log", title="samples until a bound is below $\\ln 2$")
                + samples_by(["log T"], NAMES["log T"], PALETTE[1])
                + samples_by(["log m"], NAMES["log m"], PALETTE[2])
                + samples_by(["parameters"], NAMES["parameters"], PALETTE[3])
                + Reference(y=lambda data: xr.DataArray(float(data.attrs["train"])),
                            style="-.", label="samples trained on"),
            ],
            sizes,
        ),
        panels.Plot(
            "Training reached, and the power to detect log T",
            [
                Lines(of_some_lengths, "epoch", colour="shown", names="{shown} bits", band=None,
                      xscale="log",
                      xlabel="epoch", ylabel="validation loss (lower is better)", width=1.5) + LN_2,
                Lines(power, "runs", colour="gap", band=limits, xscale="log", ylim=(0, 1.02),
                      spread="power and its 95 % limits",
                      xlabel="training runs per length", ylabel="probability to detect the growth",
                      width=1.5)
                + Reference(y=0.8, style="-.", label="probability 0.8")
                + Reference(x=5, label="five runs, as in the paper"),
            ],
            runs_needed,
        ),
    ],
)  # fmt: skip
