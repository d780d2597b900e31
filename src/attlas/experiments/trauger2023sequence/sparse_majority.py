r"""Do bounds on trained weights see the gap of sparse majority, and would runs show a log T in it?

Figures 1-3: sparse majority as released, five runs per length as one program. Beside the measured
gap are the bounds for the class of the trained weights, the samples from which each is
non-vacuous, and how many runs it takes to detect a gap that grows with log T.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.data.sparse_majority import MajorityDesign
from attlas.measures.statistics.trend_power import TrendPower, trend_power
from attlas.panels.lines import Lines
from attlas.panels.palette import PALETTE
from attlas.panels.panel import Panel
from attlas.panels.plot import Plot
from attlas.panels.points import Points
from attlas.panels.reference import Reference
from attlas.panels.summary import Band, extremes, mean_and_range, mean_only
from attlas.panels.table import Column, Derived, Table
from attlas.runs.experiment import Experiment
from attlas.runs.grid import Grid
from attlas.runs.settings import Settings
from attlas.tasks.sparse_majority.bound_dataset import COVERS, VERSIONS, majority_bound_dataset
from attlas.tasks.sparse_majority.lengths import train_majority_lengths
from attlas.tasks.sparse_majority.training import MEASURED, MajoritySettings
from attlas.tasks.sparse_majority.trauger2023_bounds import BALLS, ROWS, majority_ensemble_norms

RELEASED_EPOCHS, RELEASED_LENGTHS = 200_000, list(range(20, 201, 20))
WEIGHTS, LOSS_GAP, ACCURACY_GAP, ACCURACY = QUANTITIES = (
    "sum of $|$weights$|$", "validation minus training loss",
    "training minus validation accuracy", "validation accuracy",
)  # fmt: skip
GAPS = {"loss gap": LOSS_GAP, "accuracy gap": ACCURACY_GAP}
GROWTH = np.sqrt(np.log(64 * 300 * (np.array(RELEASED_LENGTHS) + 1)))
r"""$\sqrt{\log(d m T)}$ at the paper's lengths, in the released settings."""
BOUNDS = {"version": list(VERSIONS[:2])}
"""All but the printed rows, which are no bounds."""
NAMES = {
    "1,1": "(1,1)", "1,inf": r"(1,$\infty$)", "2,1": "(2,1)", "log T": "log T, Edelman et al.",
    "log m": "log m, the same at [CLS]", "parameters": "parameter counting",
}  # fmt: skip
GUESS = float(np.log(2))
"""Loss of guessing: a bound on the gap above it tells a user nothing."""
SAMPLES = np.geomspace(1e2, 1e26, 73)
"""Where the bounds are evaluated, to see from where on they are non-vacuous."""
NOTE = (
    "Released settings: 300 sequences, s = 9, d = 64, two heads of width 64, SGD, stop at training "
    "accuracy 1, weights of least validation loss. The trained weights are put in the class of "
    r"Theorem 4.1 as $r^\top\mathrm{relu}(\sum_h V_h^\top X^\top "
    r"\mathrm{softmax}(X M_h x_{\rm CLS}) + b) + c$ "
    "for each of the two logits: dense layer and readout are multiplied out, as are "
    "values and output, keys and queries of a head. [CLS] is the same token in every sequence, so "
    "that the bias of the queries goes into $M_h$ as a matrix of rank one and all scores stay; "
    "that of the keys does nothing. The ReLU acts on the sum of the heads: contraction first, then "
    r"heads add up as in section 4.2; b and c add terms in $1/\sqrt m$. The released loss averages "
    "logistic losses of two logits: so do complexity and range. Norms are those after training, "
    "which would cost a union bound that is left out in favour of all bounds alike. Positions make "
    "$B_x$ about 6; Theorem 4.2 asks for 1. Sharp: softmax constant 1 and the chain; corrected: 2 "
    "and Dudley's integral, 2.41 and 8.24."
)
# SGD leaves the start after thousands of epochs only: Adam shows trained weights in seconds.
GRID = Grid(
    each={"T": [200, 60, 20]},  # the longest first: workers end together
    fixed={
        "members": 5, "train": 300, "validation": 1000, "indices": 9, "d": 64, "delta": 0.05,
        "epochs": 500, "optimizer": "adam", "rate": 0.001, "dtype": "float32",
    },
    smoke={"T": [6], "members": 2, "train": 24, "validation": 20, "indices": 3, "d": 6,
           "epochs": 4},
    paper={"T": RELEASED_LENGTHS[::-1], "validation": 10_000, "epochs": RELEASED_EPOCHS,
           "optimizer": "sgd", "rate": 0.01},
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train the runs of one length and evaluate all bounds on their weights."""
    design = MajorityDesign(s.train, s.validation, s.indices, s.d)
    settings = MajoritySettings(rate=s.rate, floor=s.rate / 10, optimizer=s.optimizer)
    found = train_majority_lengths(
        key, [s.T], s.members, s.epochs, design, settings, chunk=min(500, s.epochs)
    )
    data, training = found[s.T]
    norms = majority_ensemble_norms(training.state.selected, data.embedding)
    bounds = majority_bound_dataset(norms, s.train, SAMPLES, s.T, s.d, s.delta, GUESS)
    epochs = np.unique(np.geomspace(1, training.history.shape[1], 80).astype(int))
    train_loss, train_right, loss, right, weights = training.selected.T.astype(float)
    shown = [weights, loss - train_loss, train_right - right, right]
    return bounds.assign(
        shown=(("quantity", "member"), shown),
        selected=(("member", "measured"), training.selected),
        selected_epoch=("member", training.state.selected_epoch),
        epochs_trained=("member", training.state.epoch),
        stopped=("member", training.state.stopped),
        validation_loss=(("member", "epoch"), training.history[:, epochs - 1, 2]),
    ).assign_coords(epoch=epochs, quantity=list(QUANTITIES), measured=list(MEASURED))


def of(quantity: str) -> Callable[[xr.Dataset], xr.DataArray]:
    """One of the numbers of Figures 1-3."""
    return lambda data: data["shown"].sel(quantity=quantity)


def at_m(data: xr.Dataset) -> xr.DataArray:
    """The bounds at the number of samples that were trained on."""
    return data["bound"].sel(m=float(data.attrs["train"]))


def departures(data: xr.Dataset) -> str:
    """What this scale does otherwise than the released program."""
    s = data.attrs
    if s["epochs"] == RELEASED_EPOCHS:
        return ""
    adam = f" of Adam at rate {s['rate']:g}" if s["optimizer"] == "adam" else ""
    return (
        f" NOT the released training: at most {s['epochs']} epochs{adam} in place of "
        f"{RELEASED_EPOCHS} of SGD{' at rate .01' if adam else ''}, {s['validation']} validation "
        "sequences in place of 10000."
    )


def figures_1_to_3(data: xr.Dataset) -> str:
    """How many learnt, and how well."""
    accuracy = of(ACCURACY)(data).mean("member")
    ends = [f"{accuracy.values[k]:.2f} at T = {data['T'].values[k]}" for k in (0, -1)]
    return (
        f"Do weights and gap grow with T? {data.sizes['member']} runs per length, at the epoch of "
        f"least validation loss; {int(data.stopped.sum())} of {data.stopped.size} reached training "
        f"accuracy 1. Mean accuracy {' and '.join(ends)}.{departures(data)} Where accuracy is one "
        "half, a constant norm and a gap near 0 are those of the start, and no evidence about T."
    )


def bounds_caption(data: xr.Dataset) -> str:
    """Whether any bound is non-vacuous, and what each would need."""
    trained, below = data.attrs["train"], at_m(data).sel(BOUNDS) < data.loss_range
    count = int(below.any(["T", "member"]).sum())
    answer = f"{count} of {len(ROWS) - 3} bounds are below the range of the loss somewhere"
    if not count:
        answer = f"every bound at m = {trained} is vacuous: above the range of the loss"
    sharp = data.log10_needed.sel(version="sharp")
    needed = {c: float(np.nanmedian(sharp.sel(cover=c))) for c in COVERS}
    best = min(BALLS, key=lambda ball: needed[ball])
    others = {"log T": "log T", "log m": "log m", "parameters": "parameter counting"}
    rest = [f"$10^{{{needed[name]:.1f}}}$ for {words}" for name, words in others.items()]
    printed = at_m(data).sel(cover="1,1", version="printed")
    cost = " The larger norm that replaces log T costs more than log T does."
    return (
        f"Does any bound see the gap? The largest measured one is "
        f"{float(abs(of(LOSS_GAP)(data)).max()):.2g}, and {answer}. All are cut at what the norms "
        "alone allow and coincide there, so the right side asks how many samples would bring each "
        f"below the loss of guessing, for weights of these norms: medians "
        f"$10^{{{needed[best]:.1f}}}$ for Theorem 4.1 with its best norm, ({best}), "
        f"{', '.join(rest)}.{cost if needed[best] > needed['log T'] else ''} Theorem 4.1 as "
        f"printed, with its constant set to 1, gives {float(printed.min()):.1e} to "
        f"{float(printed.max()):.1e}: {int((printed < 0).sum())} of {printed.size} are negative. "
        "Bars: mean and range of the runs; squares: constants corrected only."
    )


def detected(data: xr.Dataset, gap: str) -> TrendPower:
    """Power to detect that growth in a gap, from the spread of the runs within a length."""
    runs = of(GAPS[gap])(data).transpose("T", "member").values
    return trend_power([own[np.isfinite(own)] for own in runs], GROWTH)


def power(data: xr.Dataset) -> xr.DataArray:
    """The power by number of runs, with the 95 % limits of the spread."""
    runs = np.geomspace(2, 1e6, 300)
    values = [detected(data, gap).limits(runs) for gap in GAPS]
    return xr.DataArray(values, {"gap": list(GAPS), "limit": list(Band._fields), "runs": runs})


def limits(values: xr.DataArray, over: Sequence[str]) -> Band:
    """The power as a band."""
    return Band(*(values.sel(limit=name, drop=True) for name in Band._fields))


def power_caption(data: xr.Dataset) -> str:
    """How many runs would show the growth."""
    told = []
    for name in GAPS:
        needed, low, high = detected(data, name).runs()
        count = f"{needed:,.0f} [{low:,.0f}, {high:,.0f}]"
        told.append(f"{count if np.isfinite(needed) else 'infinitely many'} for the {name}")
    return (
        rf"Could five runs detect it? A gap that grew as $\sqrt{{\log(dmT)}}$ would rise by "
        f"{100 * (GROWTH[-1] / GROWTH[0] - 1):.1f} % from T = 20 to 200. With the spread of these "
        f"runs within a length, the paper's ten lengths need {' and '.join(told)} runs per length "
        "to detect it with power .8 at level 5 % (brackets: 95 % of the spread; the mean gap taken "
        "as it is)."
        f"{departures(data)} Left: runs at $\\ln 2$ have learnt nothing yet."
    )


def whole(values: xr.DataArray) -> str:
    """Mean and range without decimals."""
    return f"{values.mean():.0f} ({values.min():.0f} to {values.max():.0f})"


def least(data: xr.Dataset) -> str:
    """The bound of least mean at the trained number of samples."""
    own = at_m(data).sel(BOUNDS).stack(row=["cover", "version"]).dropna("row", how="all")
    return mean_and_range(own.isel(row=int(own.mean("member").argmin("row"))))


def covers(of_data: Callable[[xr.Dataset], xr.DataArray], legend: bool, **axes: Any) -> Panel:
    """Every bound by length: sharp constants as dots, those corrected only as squares."""
    look: dict[str, Any] = {"colour": "cover", "band": extremes, "dodge": 0.05, "legend": legend}
    corrected = {ball: f"{NAMES[ball]}, corrected" for ball in BALLS}
    return Points(
        of_data, "T", at={"version": "sharp"}, names=NAMES, marker="o", line="-", **look, **axes
    ) + Points(
        lambda data: of_data(data).sel(version="corrected", cover=list(BALLS)), "T",
        names=corrected, marker="s", line=":", hollow=True, **look,
    )  # fmt: skip


def stopped(reached: bool, ink: str, label: str) -> Lines:
    """The runs that reached training accuracy 1, or the others."""
    return Lines(
        lambda data: data["shown"].where(data["stopped"] == reached), "T", band=None, style="o",
        ink=ink, label=label, panel="quantity", title="{quantity}", shared=False, xlabel="bits $T$",
    )  # fmt: skip


LN_2 = Reference(y=GUESS, style="-.", label="loss of guessing, $\\ln 2$")
EXPERIMENT = Experiment(
    title="Sparse majority: weights, gap and bounds",
    question=__doc__,
    grid=GRID,
    run=run,
    table=Table(
        ["T"],
        [
            Column("epochs", "epochs_trained", lambda n: f"{n.min():.0f} to {n.max():.0f}"),
            Column("stopped at training accuracy 1", "stopped",
                   lambda done: f"{int(done.sum())} of {done.size}"),
            Column("sum of |weights|", of(WEIGHTS), whole),
            *(Column(name, of(quantity), mean_and_range) for name, quantity in GAPS.items()),
            Column("accuracy", of(ACCURACY), mean_and_range),
            Column("range of the loss", "loss_range", mean_and_range),
            Derived("least bound at the m trained on", least),
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
        Plot(
            "Figures 1-3: weights, gaps and accuracy against T",
            stopped(True, PALETTE[2], "stopped at accuracy 1")
            + stopped(False, PALETTE[0], "epochs ran out")
            + Lines(lambda data: data["shown"].max("member"), "T", ink=PALETTE[1],
                    label="largest run, as in the paper")
            + Reference(y={LOSS_GAP: 0.0, ACCURACY_GAP: 0.0, ACCURACY: 0.5}),
            figures_1_to_3,
        ),
        Plot(
            "Bounds on the trained weights",
            [
                covers(at_m, False, width=1.6, yscale="log", xlabel="bits $T$",
                       ylabel="gap of the loss", title="at the $m$ trained on, marks as right")
                + Lines(of(LOSS_GAP), "T", band=None, style="o", label="measured gap")
                + Lines(lambda data: -of(LOSS_GAP)(data), "T", band=None, style="o", ink="#aaaaaa",
                        label="measured gap, negative")
                + Lines("loss_range", "T", band=mean_only, style="--",
                        label="range of the loss: vacuous above")
                + LN_2,
                covers(lambda data: data["log10_needed"], True, width=1.6, xlabel="bits $T$",
                       ylabel=r"samples $\log_{10} m$",
                       title="samples from which a bound is below $\\ln 2$")
                + Reference(y=lambda data: np.log10(xr.DataArray(data.attrs["train"])),
                            style="-.", label="trained on"),
            ],
            bounds_caption,
        ),
        Plot(
            "Training reached, and the power to detect log T",
            [
                Lines("validation_loss", "epoch", colour="T", band=None, xscale="log",
                      xlabel="epoch", ylabel="validation loss", width=1.5) + LN_2,
                Lines(power, "runs", colour="gap", band=limits, xscale="log", ylim=(0, 1.02),
                      xlabel="runs per length", ylabel=r"power to detect $\log T$", width=1.5)
                + Reference(y=0.8, style="-.", label="power .8")
                + Reference(x=5, label="five runs, as in the paper"),
            ],
            power_caption,
        ),
    ],
    note=NOTE,
)  # fmt: skip
