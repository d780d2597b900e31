r"""Figures 1-3: weights, gaps and accuracy against T, with every bound on the trained weights.

Sparse majority as released, five runs a length as one program. Beside the measured gap stand the
bounds for the class that the trained weights are put in, the samples each would need to say
anything, and how many runs it takes to tell a gap that grows with log T from one that does not.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np

from attlas.data.sparse_majority import MajorityDesign
from attlas.measures.statistics.trend_power import trend_power
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.tasks.sparse_majority.lengths import train_majority_lengths
from attlas.tasks.sparse_majority.training import MajoritySettings
from attlas.tasks.sparse_majority.trauger2023_bounds import (
    BALLS,
    ROWS,
    majority_bounds,
    majority_norms,
)

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

RELEASED_EPOCHS, RELEASED_LENGTHS = 200_000, tuple(range(20, 201, 20))
BOUNDS = ROWS[:-3]
"""All rows but the printed ones."""
COLOURS: dict[str, str] = dict(
    zip(
        (*BALLS, "log T", "log m", "parameters"),
        ("#0072b2", "#56b4e9", "#009e73", "#d55e00", "#e69f00", "#cc79a7"),
        strict=True,
    )
)
NAMES: dict[str, str] = dict(
    zip(
        COLOURS,
        ("(1,1)", r"(1,$\infty$)", "(2,1)", "log T, Edelman et al.", "log m, the same at [CLS]",
         "parameter counting"),
        strict=True,
    )
)  # fmt: skip
GUESS = float(np.log(2))
"""Loss of guessing: a bound on the gap above it says nothing that a user wants to know."""
GRID = np.geomspace(1e2, 1e26, 73)
"""Samples at which the bounds are evaluated, to see where they begin to say something."""
NOTE = (
    "Released settings: 300 sequences, s = 9, d = 64, two heads of width 64, SGD, stop at training "
    "accuracy 1, weights of least validation loss. The trained weights are put in the class of "
    "Theorem 4.1 as r'relu(sum_h V_h'X' softmax(X M_h x_cls) + b) + c for each of the two logits: "
    "dense layer and readout are multiplied out, as are values and output, keys and queries of a "
    "head. [CLS] is the same token in every sequence, so that the bias of the queries goes into "
    "M_h as a matrix of rank one and all scores stay; that of the keys does nothing. The ReLU acts "
    "on the sum of the heads: contraction first, then heads add up as in section 4.2; b and c add "
    "terms in 1 / sqrt(m). The released loss averages logistic losses of two logits: so do "
    "complexity and range. Norms are those after training, which would cost a union bound that is "
    "left out in favour of all bounds alike. Positions make B_x about 6; Theorem 4.2 asks for 1. "
    "Sharp: softmax constant 1 and the chain; corrected: 2 and Dudley's integral, 2.41 and 8.24."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each length."""
    lengths, epochs, validation = {
        Scale.SMOKE: ((6,), 4, 20),
        Scale.QUICK: ((20, 60, 200), 500, 1000),
        Scale.PAPER: (RELEASED_LENGTHS, RELEASED_EPOCHS, 10_000),
    }[scale]
    small, released = scale is Scale.SMOKE, scale is Scale.PAPER
    settings = {"runs": 2 if small else 5, "epochs": epochs, "validation": validation}
    settings |= {"train": 24 if small else 300, "indices": 3 if small else 9}
    settings |= {"d": 6 if small else 64, "delta": 0.05}
    # SGD leaves the start after thousands of epochs only: Adam shows trained weights in seconds.
    settings |= {"optimizer": "sgd" if released else "adam", "rate": 0.01 if released else 0.001}
    # The longest first: workers end together.
    return tuple(Cell({"T": T, **settings}, dtype="float32") for T in reversed(lengths))


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Train the runs of one length and evaluate all bounds on their weights."""
    s = cell.settings
    design = MajorityDesign(s["train"], s["validation"], s["indices"], s["d"])
    settings = MajoritySettings(rate=s["rate"], floor=s["rate"] / 10, optimizer=s["optimizer"])
    key, chunk = jax.random.key(cell.seed), min(500, s["epochs"])
    found = train_majority_lengths(
        key, [s["T"]], s["runs"], s["epochs"], design, settings, chunk=chunk
    )
    data, training = found[s["T"]]
    state = training.state
    host = jax.tree.map(np.asarray, (state.selected, data.embedding))
    each = [majority_norms(*jax.tree.map(lambda a, k=k: a[k], host)) for k in range(s["runs"])]
    norms = jax.tree.map(lambda *parts: np.stack(parts), *each)
    m = np.concatenate([[float(s["train"])], GRID])
    with jax.enable_x64(True):
        bound, spread = majority_bounds(
            jax.tree.map(jax.device_put, norms), jax.device_put(m), s["T"], s["d"], s["delta"]
        )
    epochs = np.unique(np.geomspace(1, training.history.shape[1], 80).astype(int))
    return {
        "m": m,
        "bound": np.asarray(bound),
        "loss_range": np.asarray(spread),
        "epoch": epochs,
        "validation_loss": training.history[:, epochs - 1, 2],
        "selected": training.selected,
        "selected_epoch": np.asarray(state.selected_epoch),
        "epochs_trained": np.asarray(state.epoch),
        "stopped": np.asarray(state.stopped),
        **norms._asdict(),
    }


class _Length(NamedTuple):
    """The runs of one length."""

    T: int
    arrays: Mapping[str, np.ndarray]

    @property
    def shown(self) -> dict[str, np.ndarray]:
        """The numbers of Figures 1-3, by run."""
        train_loss, train_right, loss, right, weight = self.arrays["selected"].T.astype(float)
        return {
            "weight": weight,
            "loss gap": loss - train_loss,
            "accuracy gap": train_right - right,
            "accuracy": right,
        }

    def bound(self, row: tuple[str, str]) -> np.ndarray:
        """Bounds on the gap by run and m."""
        return self.arrays["bound"][:, ROWS.index(row)]

    def needed(self, row: tuple[str, str]) -> np.ndarray:
        """log10 of the m from which on a bound is below the loss of guessing, by run."""
        return _crossing(np.log10(self.arrays["m"][1:]), np.log(self.bound(row)[:, 1:] / GUESS))


def _crossing(x: np.ndarray, height: np.ndarray) -> np.ndarray:
    """Where each row falls below 0 for good, by interpolation; NaN where it does not."""
    above = height >= 0
    last = np.where(above.any(1), above.shape[1] - 1 - np.argmax(above[:, ::-1], axis=1), -1)
    k = np.clip(last, 0, len(x) - 2)
    own = np.arange(len(height))
    drop = height[own, k] - height[own, k + 1]
    share = height[own, k] / np.where(drop == 0, 1, drop)
    found = np.where(last < 0, x[0], x[k] + share * (x[k + 1] - x[k]))
    return np.where(last == len(x) - 1, np.nan, found)


def _gathered(records: Sequence[Record]) -> list[_Length]:
    return [_Length(r.cell.settings["T"], r.arrays)
            for r in sorted(records, key=lambda r: r.cell.settings["T"])]  # fmt: skip


def _spread(values: np.ndarray, digits: str = ".3g") -> str:
    """Mean and range of the runs."""
    return f"{values.mean():{digits}} ({values.min():{digits}} to {values.max():{digits}})"


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Figures 1-3 in numbers, with the samples that each bound would need."""
    import pandas as pd

    s, rows = records[0].cell.settings, []
    for each in _gathered(records):
        a, shown = each.arrays, each.shown
        at_m = {row: each.bound(row)[:, 0] for row in ROWS}
        best = min(BOUNDS, key=lambda row: at_m[row].mean())
        rows.append(
            {
                "T": each.T,
                "optimizer": s["optimizer"],
                "epochs": f"{a['epochs_trained'].min()} to {a['epochs_trained'].max()}",
                "stopped at training accuracy 1": f"{a['stopped'].sum()} of {len(a['stopped'])}",
                "sum of |weights|": _spread(shown["weight"], ".0f"),
                "loss gap": _spread(shown["loss gap"]),
                "accuracy gap": _spread(shown["accuracy gap"]),
                "accuracy": _spread(shown["accuracy"]),
                "range of the loss": _spread(a["loss_range"]),
                f"least bound, m = {s['train']}": _spread(at_m[best]),
                "Theorem 4.1 printed, c = 1": _spread(at_m["1,1", "printed"]),
                **{
                    f"log10 m needed, {name}": _spread(each.needed((name, constants)))
                    for name, constants in BOUNDS
                    if constants == "sharp"
                },
                f"corrected: {' / '.join(BALLS)}": " / ".join(
                    f"{each.needed((ball, 'corrected')).mean():.3g}" for ball in BALLS
                ),
            }
        )
    return pd.DataFrame(rows)


def _shown_panel(records: Sequence[Record], lengths: list[_Length]) -> Panel:
    """Figures 1-3, with the gap of accuracies."""
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    s = records[0].cell.settings
    figure, axes = plt.subplots(1, 4, figsize=(12.5, 3.3), layout="constrained")
    titles = (r"sum of $|$weights$|$", "validation minus training loss",
              "training minus validation accuracy", "validation accuracy")  # fmt: skip
    for axis, name, title in zip(axes, lengths[0].shown, titles, strict=True):
        values = [each.shown[name] for each in lengths]
        for each, own in zip(lengths, values, strict=True):
            learnt = each.arrays["stopped"]
            for mask, face in ((learnt, "#0072b2"), (~learnt, "none")):
                axis.plot(np.full(mask.sum(), each.T), own[mask], "o", ms=5, color="#0072b2",
                          mfc=face, alpha=0.8)  # fmt: skip
        axis.plot([each.T for each in lengths], [own.max() for own in values], "-", lw=1.3,
                  color="#d55e00")  # fmt: skip
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("bits T")
        axis.set_xticks([each.T for each in lengths][:: max(1, len(lengths) // 5)])
    axes[1].axhline(0, color="0.7", lw=0.8)
    axes[2].axhline(0, color="0.7", lw=0.8)
    axes[3].axhline(0.5, color="0.7", lw=0.8)
    marks = [
        Line2D([], [], marker="o", ls="", color="#0072b2", label="stopped at accuracy 1"),
        Line2D([], [], marker="o", ls="", color="#0072b2", mfc="none", label="epochs ran out"),
        Line2D([], [], color="#d55e00", label="largest run, as in the paper"),
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=3, frameon=False, fontsize=8.5)
    ends = [f"{own.mean():.2f} at T = {each.T}" for each in (lengths[0], lengths[-1])
            for own in [each.shown["accuracy"]]]  # fmt: skip
    done = sum(int(each.arrays["stopped"].sum()) for each in lengths)
    caption = (
        f"Do weights and gap grow with T? {s['runs']} runs a length, at the epoch of least "
        f"validation loss; {done} of {s['runs'] * len(lengths)} reached training accuracy 1. Mean "
        f"accuracy {' and '.join(ends)}.{_deviations(s)} Where accuracy is one half, a flat norm "
        "and a gap near 0 are those of a start, and no evidence about T."
    )
    return Panel("Figures 1-3: weights, gaps and accuracy against T", caption, figure)


def _deviations(s: Mapping) -> str:
    """What this scale does otherwise than the released program."""
    if s["epochs"] == RELEASED_EPOCHS:
        return ""
    rates = " at rate .01" if s["optimizer"] == "adam" else ""
    return (
        f" NOT the released training: at most {s['epochs']} epochs"
        + (f" of Adam at rate {s['rate']:g}" if s["optimizer"] == "adam" else "")
        + f" in place of {RELEASED_EPOCHS} of SGD{rates}, {s['validation']} validation sequences "
        "in place of 10000."
    )


def _bounds_panel(records: Sequence[Record], lengths: list[_Length]) -> Panel:
    """Measured gap and bounds at the paper's m, and the samples that bounds would need."""
    import matplotlib.pyplot as plt

    s, T = records[0].cell.settings, np.array([each.T for each in lengths])
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.2), layout="constrained")
    step = 0.08 * (np.diff(T).min() if len(T) > 1 else 10)
    for each in lengths:
        gap = each.shown["loss gap"]
        for mask, face in ((gap > 0, "0.2"), (gap <= 0, "none")):
            left.plot(np.full(mask.sum(), each.T), np.abs(gap[mask]), "o", ms=4.5, color="0.2",
                      mfc=face)  # fmt: skip
    for k, (name, constants) in enumerate(BOUNDS):
        at_m = np.array([each.bound((name, constants))[:, 0].mean() for each in lengths])
        trivial = np.array([each.arrays["loss_range"].mean() for each in lengths])
        needed = np.array([each.needed((name, constants)) for each in lengths])
        reach = np.abs(np.stack([needed.min(1), needed.max(1)]) - np.median(needed, axis=1))
        x, style = T + (k % 6 - 2.5) * step, {"color": COLOURS[name], "ms": 5, "lw": 1.3}
        mark, ls = ("o", "-") if constants == "sharp" else ("s", ":")
        label = NAMES[name] + (", corrected" if mark == "s" else "")
        right.errorbar(x, np.median(needed, axis=1), reach, marker=mark, ls=ls, elinewidth=0.8,
                       label=label, **style)  # fmt: skip
        for mask, face in ((at_m >= trivial, "none"), (at_m < trivial, COLOURS[name])):
            left.plot(x[mask], at_m[mask], mark, mfc=face, **style)
    trivial = [each.arrays["loss_range"].mean() for each in lengths]
    left.plot(T, trivial, "k--", lw=1.2, label="range of the loss in the class")
    left.axhline(GUESS, color="0.5", ls="-.", lw=1.2, label="loss of guessing, ln 2")
    left.plot([], [], "o", color="0.2", label=r"measured $|$gap$|$ (open: negative)")
    left.plot([], [], "o", color="0.5", mfc="none", label="bounds (open: vacuous)")
    left.set(yscale="log", xlabel="bits T", ylabel="gap of the loss", xticks=T)
    left.set_title(f"bounds on the trained weights, m = {s['train']}", fontsize=10)
    right.axhline(np.log10(s["train"]), color="0.5", ls="-.", lw=1.2, label=f"m = {s['train']}")
    right.yaxis.set_major_formatter(lambda value, _: f"$10^{{{value:g}}}$")
    right.set(xlabel="bits T", ylabel="samples m", xticks=T)
    right.set_title("samples from which a bound is below ln 2", fontsize=10)
    of_both = [axis.get_legend_handles_labels() for axis in (left, right)]
    handles, labels = (first + last for first, last in zip(*of_both, strict=True))
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=8)
    return Panel("Bounds on the trained weights", _bounds_caption(s, lengths), figure)


def _bounds_caption(s: Mapping, lengths: list[_Length]) -> str:
    below = [
        row
        for row in BOUNDS
        if any((each.bound(row)[:, 0] < each.arrays["loss_range"]).any() for each in lengths)
    ]
    said = f"{len(below)} of {len(BOUNDS)} bounds fall below the range of the loss somewhere"
    if not below:
        said = f"every bound at m = {s['train']} is vacuous: above the range of the loss"
    needed = {row: np.nanmedian([each.needed(row) for each in lengths]) for row in BOUNDS[:6]}
    best = min(BALLS, key=lambda ball: needed[ball, "sharp"])
    others = {"log T": "log T", "log m": "log m", "parameters": "parameter counting"}
    rest = [f"10^{needed[name, 'sharp']:.1f} for {words}" for name, words in others.items()]
    worst = max(np.abs(each.shown["loss gap"]).max() for each in lengths)
    printed = np.concatenate([each.bound(("1,1", "printed"))[:, 0] for each in lengths])
    paid = ""
    if needed[best, "sharp"] > needed["log T", "sharp"]:
        paid = " The larger norm that replaces log T costs more than log T does."
    return (
        f"Does any bound see the gap? The largest measured one is {worst:.2g}, and {said}. All are "
        "cut at what the norms alone allow and coincide there, so the right side asks how many "
        "samples would bring each below the loss of guessing, for weights of these norms: medians "
        f"10^{needed[best, 'sharp']:.1f} for Theorem 4.1 with its best norm, ({best}), "
        f"{', '.join(rest)}.{paid} Theorem 4.1 as printed, with its constant set to 1, says "
        f"{printed.min():.1e} to {printed.max():.1e}: {int((printed < 0).sum())} of {len(printed)} "
        f"are negative. Bars: range of the runs; dotted: constants corrected only."
    )


def _power_panel(records: Sequence[Record], lengths: list[_Length]) -> Panel:
    """How far training went, and how many runs would tell log T from no T."""
    import matplotlib.pyplot as plt

    s = records[0].cell.settings
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 3.7), layout="constrained")
    shades = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(lengths)))
    for each, shade in zip(lengths, shades, strict=True):
        left.semilogx(each.arrays["epoch"], each.arrays["validation_loss"].T, color=shade, lw=1)
        left.plot([], [], color=shade, label=f"T = {each.T}")
    left.axhline(GUESS, color="0.5", ls="-.", lw=1.2, label="ln 2")
    left.set(xlabel="epoch", ylabel="validation loss")
    left.legend(frameon=False, fontsize=8)
    growth = np.sqrt(np.log(s["d"] * s["train"] * (np.array(RELEASED_LENGTHS) + 1)))
    runs, said = np.geomspace(2, 1e6, 300), []
    for name, colour in (("loss gap", "#0072b2"), ("accuracy gap", "#d55e00")):
        found = trend_power([each.shown[name] for each in lengths], growth)
        needed, low, high = found.runs()
        count = f"{needed:,.0f} [{low:,.0f}, {high:,.0f}]"
        said.append(f"{count if np.isfinite(needed) else 'infinitely many'} for the {name}")
        right.semilogx(runs, found.power(runs), color=colour, lw=1.6, label=name)
        band = [found._replace(effect=e).power(runs) for e in (found.low, found.high)]
        right.fill_between(runs, *band, color=colour, alpha=0.2, lw=0)
    right.axhline(0.8, color="0.5", lw=0.8, ls="-.", label="power .8")
    right.axvline(5, color="0.3", lw=1.2, ls=":", label="five runs, as in the paper")
    right.set(xlabel="runs a length", ylabel="chance to see log T", ylim=(0, 1.02))
    right.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0, 0.76))
    caption = (
        "Could five runs tell? A gap that grew as sqrt(log(d m T)) would rise by "
        f"{100 * (growth[-1] / growth[0] - 1):.1f} % from T = 20 to 200. With the spread of these "
        f"runs within a length, the paper's ten lengths need {' and '.join(said)} runs a length "
        "to see it with probability .8 at level 5 % (brackets: 95 % of the spread; the mean gap "
        f"taken as it is).{_deviations(s)} Left: runs at ln 2 have learnt nothing yet."
    )
    return Panel("Training reached, and the power to see log T", caption, figure)


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """Figures 1-3, the bounds, and the power."""
    lengths = _gathered(records)
    panels = (_shown_panel, _bounds_panel, _power_panel)
    return tuple(panel(records, lengths) for panel in panels)


EXPERIMENT = Experiment(
    name="sparse_majority",
    paper="trauger2023sequence",
    title="Sparse majority: weights, gap and bounds",
    question="Do the bounds see the gap of trained weights, and would runs show a log T in it?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        "m": ("m",),
        "bound": ("run", "bound_row", "m"),
        "epoch": ("epoch",),
        "validation_loss": ("run", "epoch"),
        "selected": ("run", "measured"),
        "query_key": ("run", "head", "norm"),
        "value": ("run", "head"),
        "readout": ("run", "logit"),
        "constant": ("run", "logit"),
        "tokens": ("run", "token_norm"),
        **dict.fromkeys(
            ("loss_range", "selected_epoch", "epochs_trained", "stopped", "bias"), ("run",)
        ),
    },
    note=NOTE,
)
