"""The pictures of README and of the findings, drawn from the published records.

`python docs/pictures.py` writes all of them to `docs/pictures`. Each names the records that it was
drawn from by a digest, which a test compares with the records.
"""

import hashlib
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
BLUE, GREY, INK = "#1f5fa8", "#a0a0a0", "#222222"
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "attlas",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def digest(experiment: str) -> str:
    """What the published records of an experiment are, in twelve letters.

    Args:
        experiment: its name.

    Returns:
        The beginning of the SHA-256 of the records, which seal their arrays.
    """
    files = sorted((RECORDS / experiment).glob("*.json"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


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


def _plain(axis: Axis, ticks: Sequence[float]) -> None:
    """Label a logarithmic axis at these places alone, without powers of ten."""
    axis.set_ticks(ticks, [f"{tick:,g}" for tick in ticks])
    axis.set_minor_formatter(NullFormatter())


PICTURES: dict[str, Callable[[], Figure]] = {"direction": direction, "heads": heads}
"""By the experiment that they show."""


def draw(experiment: str, folder: Path = FOLDER) -> Path:
    """Draw one picture.

    Args:
        experiment: one of `PICTURES`.
        folder: where to.

    Returns:
        The SVG.
    """
    folder.mkdir(exist_ok=True)
    file = folder / f"{experiment}.svg"
    with mpl.rc_context(STYLE):
        source = f"published records of {experiment}, digest {digest(experiment)}"
        metadata = {"Date": None, "Creator": None, "Source": source}
        PICTURES[experiment]().savefig(file, metadata=metadata)
    return file


if __name__ == "__main__":
    for chosen in sys.argv[1:] or PICTURES:
        draw(chosen)
