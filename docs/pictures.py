"""The pictures of README, the findings and the guides, drawn from the published records.

`python docs/pictures.py` writes all of them to `docs/pictures`. Each names what it was drawn from,
the records of an experiment or the example of an audit, by a digest that a test compares.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

import attlas as at

FOLDER = Path(__file__).parent / "pictures"
RECORDS = Path(__file__).parents[1] / "records"
AUDIT = Path(__file__).parent / "example_audit.json"
BLUE, GREY, INK = "#1f5fa8", "#a0a0a0", "#222222"
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "attlas",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def source(picture: str) -> str:
    """What a picture is drawn from, with the beginning of its SHA-256; records seal their arrays.

    Args:
        picture: one of `PICTURES`.
    """
    if picture == head_costs.__name__:
        files, name = [AUDIT], "example of an audit"
    else:
        files = sorted((RECORDS / picture).glob("*.json"))
        name = f"published records of {picture}"
    content = b"".join(file.read_bytes() for file in files)
    return f"{name}, digest {hashlib.sha256(content).hexdigest()[:12]}"


def published(experiment: str) -> xr.Dataset:
    """The published records of an experiment.

    Args:
        experiment: its name.

    Returns:
        One labelled data set.
    """
    return at.load(experiment, results="published")


def direction() -> Figure:
    """Where training with each exponent ends, beside the max-margin solutions of all of them."""
    data = published("direction").sel(start="gaussian")
    figure = Figure((8.4, 2.9), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, data.sizes["p"], sharey=True))
    for axes, p in zip(panels, data.p.values, strict=True):
        for q in sorted(data.q.values, key=lambda q: q == p):
            line = data.divergence.sel(p=p, q=q).median("member").dropna("step")
            ink, width = (BLUE, 2.4) if p == q else (GREY, 1.3)
            axes.loglog(line.step + 1, line, color=ink, linewidth=width)
            end = float(line[-1])
            axes.annotate(
                f"p = {q:g}: {end:.2g}", (float(line.step[-1]) + 1, end), xytext=(4, 0),
                textcoords="offset points", color=INK if p == q else "#707070",
                va="center", weight="bold" if p == q else "normal", fontsize=9,
            )  # fmt: skip
        axes.set_title(f"training with p = {p:g}", color=INK)
        axes.set_xlabel("training step")
        axes.margins(x=0.02)
        axes.set_xlim(right=axes.get_xlim()[1] * 12)
        _plain(axes.xaxis, [1, 100, 10_000])
    _plain(panels[0].yaxis, [0.001, 0.01, 0.1, 1])
    panels[0].set_ylabel("distance to the\nmax-margin solution")
    return figure


def heads() -> Figure:
    """Training and test loss after training, by the number of heads."""
    data = published("heads")
    figure = Figure((5.2, 3), layout="constrained")
    axes = figure.subplots()
    last = np.exp(np.log(data.loss.isel(step=-1)).mean("member"))
    for name, ink in (("training", GREY), ("test", BLUE)):
        axes.loglog(
            last.heads, last.sel(set=name), "o-", color=ink, markersize=4, linewidth=1.8,
            label=f"{name} loss",
        )  # fmt: skip
    axes.legend(frameon=False)
    _plain(axes.xaxis, [1, 4, 16, 64, 256, 1024])
    _plain(axes.yaxis, [0.005, 0.01, 0.02, 0.05])
    axes.set_xlabel("number of heads")
    axes.set_ylabel("loss after training")
    return figure


def rates() -> Figure:
    """How the distance to the max-margin solution falls, beside the rates of the paper."""
    data = published("rates").isel(n=0)
    flow = data.sel(kind="flow")
    figure = Figure((8.4, 2.9), layout="constrained")
    for axes, p in zip(figure.subplots(1, data.sizes["p"]), data.p.values, strict=True):
        at_p = flow.sel(p=p)
        length = (at_p.norm / at_p.svm_norm).median("member")
        axes.loglog(length, at_p.divergence.median("member"), color=BLUE, linewidth=2.4,
                    label="training with small steps")  # fmt: skip
        guide = data.sel(p=p)
        axes.loglog(guide.guide_norm / float(at_p.svm_norm.median()), guide.guide_printed, "--",
                    color=GREY, linewidth=1.8, label="slope of the paper's rate")  # fmt: skip
        axes.set_title(f"p = {p:g}", color=INK)
        axes.set_xlabel("length of the weights /\nlength of the solution")
        _plain(axes.xaxis, [3, 30, 300])
    figure.axes[0].set_ylabel("distance to the\nmax-margin solution")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2,
                  frameon=False, fontsize=9)  # fmt: skip
    return figure


def factored() -> Figure:
    """Keys and queries trained apart, and their product trained as one matrix."""
    data = published("factored").apart.median("member")
    figure = Figure((7.2, 2.9), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, 2, sharey=True))
    titles = {"factored": "keys and queries apart", "merged": "their product as one matrix"}
    for axes, (trained, title) in zip(panels, titles.items(), strict=True):
        for norm, ink in (("nuclear", BLUE), ("Frobenius", GREY)):
            line = data.sel(trained=trained, norm=norm)
            axes.loglog(line.step + 1, line, color=ink, linewidth=2, label=f"of the {norm} norm")
        axes.set_title(title, color=INK)
        axes.set_xlabel("training step")
        _plain(axes.xaxis, [1, 100, 10_000])
    _plain(panels[0].yaxis, [0.00001, 0.0001, 0.001, 0.01, 0.1, 1])
    panels[0].set_ylabel("distance to the\nmax-margin solution")
    panels[0].legend(frameon=False, loc="lower left")
    return figure


def convergence() -> Figure:
    """The rate at which networks train, divided by that of kernel regression."""
    data = published("convergence").isel(prefactor=0)
    ratio = (data.rate / data.limit_rate).mean("member")
    figure = Figure((5.2, 3), layout="constrained")
    axes = figure.subplots()
    inks = {"relu": GREY, "softmax": BLUE, "exponential": INK}
    for activation, ink in inks.items():
        line = ratio.sel(activation=activation)
        axes.semilogx(line.m, line, "o-", color=ink, markersize=4, linewidth=1.8,
                      label={"relu": "ReLU"}.get(activation, activation))  # fmt: skip
    axes.axhline(1, color=GREY, linestyle="--", linewidth=1)
    axes.legend(frameon=False)
    axes.set_ylim(bottom=0)
    _plain(axes.xaxis, data.m.values.tolist())
    axes.set_xlabel("hidden units")
    axes.set_ylabel("training rate / rate of\nkernel regression")
    return figure


def rademacher_length() -> Figure:
    """The complexity of attention and of sums, by the length of the sequence."""
    mean = published("rademacher_length").suprema.mean("sign_vector")
    change = (mean / mean.isel(length=0)).stack(case=("ball", "law"))
    figure = Figure((5.2, 3), layout="constrained")
    axes = figure.subplots()
    for pooling, ink, label in (
        ("sum pooling", GREY, "sums over the tokens"), ("softmax", BLUE, "attention"),
    ):  # fmt: skip
        lines = axes.loglog(
            change.length, change.sel(pooling=pooling), "o-", color=ink, markersize=4
        )
        lines[0].set_label(label)
    axes.legend(frameon=False)
    _plain(axes.xaxis, change.length.values.tolist())
    _plain(axes.yaxis, [0.5, 1, 10, 100, 1000])
    axes.set_xlabel("tokens")
    axes.set_ylabel("complexity / complexity\nat 10 tokens")
    return figure


def sparse_saving(data: xr.Dataset) -> list[tuple[float, float, bool]]:
    """How many times fewer samples attention to known, fixed inputs needs.

    Its n is the one at which it has the error that no attention has at the largest n, read along
    falling errors.

    Args:
        data: the published records of `sample_complexity`.

    Returns:
        For each setting the ratio of all inputs to relevant ones, the factor, and whether the
        factor is only a lower bound, as the smallest n of the grid has a smaller error.
    """
    error, settings = data.error.mean("member").sel(weights="fixed"), []
    for p in data.p.values:
        for s0 in data.s0.values[data.s0.values < p]:
            known, plain = (
                error.sel(p=p, s0=s0, student=name).values for name in ("attention", "no attention")
            )
            n = data.n.sel(p=p).values.astype(float)
            reached = np.exp(np.interp(-np.log(plain[-1]), -np.log(known), np.log(n)))
            settings.append((float(p / s0), float(n[-1] / reached), bool(known[0] < plain[-1])))
    return settings


def sample_complexity() -> Figure:
    """How many times fewer samples known attention needs, by the share of relevant inputs."""
    figure = Figure((4.6, 3.2), layout="constrained")
    axes = figure.subplots()
    ends = np.array([1.8, 18])
    axes.loglog(ends, ends**2, "--", color=GREY, label="the square (paper)")
    axes.loglog(ends, ends, "-", color=GREY, label="the ratio itself")
    measured = sparse_saving(published("sample_complexity"))
    for ratio, factor, least in measured:
        axes.loglog(ratio, factor, "^" if least else "o", color=BLUE, markersize=6)
    axes.plot([], [], "o", color=BLUE, label="measured")
    if any(least for _, _, least in measured):
        axes.plot([], [], "^", color=BLUE, label="measured, at least")
    axes.legend(frameon=False, fontsize=9)
    _plain(axes.xaxis, [2, 4, 8, 16])
    _plain(axes.yaxis, [2, 4, 16, 64, 256])
    axes.set_xlabel("all inputs / relevant inputs")
    axes.set_ylabel("times fewer samples\nwith attention")
    return figure


def inconsistency() -> Figure:
    """The test error of students of teachers with attention, by the number of samples."""
    error = published("inconsistency").error.sel(varied="samples").mean("member")
    figure = Figure((5.2, 3), layout="constrained")
    axes = figure.subplots()
    for student, ink, label in (
        ("no attention, wider", INK, "no attention, four times wider"),
        ("no attention", GREY, "no attention"), ("self-attention", BLUE, "attention"),
    ):  # fmt: skip
        axes.loglog(error.n, error.sel(student=student), "o-", color=ink, markersize=4, label=label)
    axes.legend(frameon=False, fontsize=9)
    _plain(axes.xaxis, error.n.values[::2].tolist())
    _plain(axes.yaxis, [0.02, 0.1, 0.5, 2])
    axes.set_xlabel("samples")
    axes.set_ylabel("test error")
    return figure


def landscape() -> Figure:
    """The errors of all stationary points that were reached, by the number of samples."""
    data = published("landscape").sel(task="attention")
    points = data.error.where(data.distinct & (data.kind != "not stationary"))
    figure = Figure((5.2, 3), layout="constrained")
    axes = figure.subplots()
    for number in data.n.values:
        values = points.sel(n=number).values
        values = values[np.isfinite(values)]
        axes.loglog(np.full(values.size, number), values, "o", color=BLUE, alpha=0.5, markersize=7,
                    markeredgewidth=0)  # fmt: skip
    axes.axhline(0.5, color=GREY, linestyle="--", linewidth=1)
    _plain(axes.xaxis, data.n.values.tolist())
    _plain(axes.yaxis, [0.001, 0.01, 0.1, 0.5, 1])
    axes.set_xlabel("samples")
    axes.set_ylabel("error / variance\nof the truth")
    return figure


def tiny_adders() -> Figure:
    """What is certified of small adders without a test set, and what they do on fresh sums."""
    data = published("tiny_adders").sel(size="455 parameters, 2 layers")
    best = data.isel(start=data.certified.argmin("start"))
    figure = Figure((5.2, 3), layout="constrained")
    axes = figure.subplots()
    for name, ink, label in (
        ("certified", BLUE, "certified by training sums"), ("held_out", GREY, "on fresh sums"),
    ):  # fmt: skip
        axes.loglog(data.n, 100 * best[name], "o-", color=ink, markersize=4, label=label)
    axes.legend(frameon=False)
    _plain(axes.xaxis, data.n.values.tolist())
    _plain(axes.yaxis, [0.01, 0.1, 1, 10, 100])
    axes.set_xlabel("sums for training")
    axes.set_ylabel("wrong sums, %")
    return figure


def attention() -> Figure:
    """Attention on the relevant tokens along training, for each start and number of heads."""
    data = published("attention")
    mass = data.mass.sel(query="all").mean("head")  # heads that a model lacks are NaN
    figure = Figure((8.4, 2.9), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, data.sizes["H"], sharey=True))
    for axes, heads_of_model in zip(panels, data.H.values, strict=True):
        for number, start in enumerate(data.start.values):
            line = mass.sel(H=heads_of_model, start=start).median(("zeta", "member"))
            ink = BLUE if start == "zero" else INK if start == "one step" else GREY
            style = "--" if number == data.sizes["start"] - 1 else "-"
            axes.semilogx(line.step + 1, line, style, color=ink, label=start)
        axes.set_title("1 head" if heads_of_model == 1 else f"{heads_of_model} heads")
        axes.set_xlabel("training step")
        _plain(axes.xaxis, [1, 100, 10_000])
    panels[0].set_ylabel("attention on\nrelevant tokens")
    panels[0].legend(frameon=False, fontsize=9, title="start")
    return figure


def head_costs() -> Figure:
    """By how much the loss of the next token rises without each head of the example."""
    costs = 1000 * np.array(json.loads(AUDIT.read_text(encoding="utf-8"))["costs"])
    figure = Figure((5.2, 2.9), layout="constrained")
    axes = figure.subplots()
    limit = np.abs(costs).max()
    shown = axes.imshow(costs, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto")
    for (layer, head), cost in np.ndenumerate(costs):
        ink = "white" if abs(cost) > 0.7 * limit else INK
        axes.text(head, layer, f"{round(cost)}", ha="center", va="center", color=ink, fontsize=9)
    axes.set_xticks(range(costs.shape[1]))
    axes.set_yticks(range(costs.shape[0]))
    axes.set_xlabel("head")
    axes.set_ylabel("layer")
    figure.colorbar(shown, label="rise of the loss,\nthousandths of a nat")
    return figure


def _plain(axis: Axis, ticks: Sequence[float]) -> None:
    """Label a logarithmic axis at these places alone, without powers of ten."""
    axis.set_ticks(ticks, [f"{tick:,.6f}".rstrip("0").rstrip(".") for tick in ticks])
    axis.set_minor_formatter(NullFormatter())


PICTURES: dict[str, Callable[[], Figure]] = {
    picture.__name__: picture
    for picture in (
        direction, heads, rates, factored, convergence, rademacher_length, sample_complexity,
        inconsistency, landscape, tiny_adders, attention, head_costs,
    )
}  # fmt: skip
"""By the experiment that they show, or by what they show of the example of an audit."""


def draw(picture: str, folder: Path = FOLDER) -> Path:
    """Draw one picture.

    Args:
        picture: one of `PICTURES`.
        folder: where to.

    Returns:
        The SVG.
    """
    folder.mkdir(exist_ok=True)
    file = folder / f"{picture}.svg"
    with mpl.rc_context(STYLE):
        metadata = {"Date": None, "Creator": None, "Source": source(picture)}
        PICTURES[picture]().savefig(file, metadata=metadata)
    return file


if __name__ == "__main__":
    for chosen in sys.argv[1:] or PICTURES:
        draw(chosen)
