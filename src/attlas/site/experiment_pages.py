"""Exhibits: what the records of one experiment show."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from textwrap import shorten
from typing import TypeVar

import matplotlib.pyplot as plt
from markupsafe import Markup

from attlas._files.plain_file import printable
from attlas.core.errors import UserError
from attlas.display.prose import plain
from attlas.experiments.cell import Scale
from attlas.experiments.experiment import CaptionedFigure, Experiment
from attlas.experiments.load import of_scale
from attlas.experiments.record import Record
from attlas.projects.provenance import source_digest
from attlas.site.anchors import anchor
from attlas.site.content import Drawing, ExperimentEntry, Source
from attlas.site.figures import embed
from attlas.site.tables import table_html
from attlas.site.thumbnails import thumbnail

LONGEST_REASON = 300
MOST_ROWS = 1000
"""Rows of a table that are shown; more take seconds to make, and nobody reads them."""
MOST_VALUES = 12
"""Values of a setting that are listed before only their number is given."""

Shown = TypeVar("Shown")


def exhibit(
    experiment: Experiment, records: Sequence[Record], source: Source, code: str
) -> ExperimentEntry:
    """The figures and the table of the most complete grid, the larger one of equals.

    What is missing of it is named. A figure or a table that cannot be made is named with the
    reason: the rest of the atlas stands.

    Args:
        records: its records, of any scale and revision.
        code: hash of the code that runs now; records made by other code are counted.
    """
    problems: list[str] = []
    by_key = {record.key: record for record in records}
    scale, chosen, total = _largest(experiment, by_key, problems)
    if not chosen:
        return ExperimentEntry(experiment, source, problems=tuple(problems))
    problems += _gaps(experiment.part, chosen)
    # Joined once; each gets a shallow copy, to which a drawing may add.
    data = cache(partial(experiment.dataset, chosen))
    figures = _made("the figures", lambda: experiment.drawn(data().copy()), problems) or ()
    drawings, small = _drawings(experiment.name, figures, problems)
    cut = MOST_ROWS + 1
    frame = _made("the table", lambda: experiment.tabulated(data().copy(), cut), problems)
    if frame is not None and len(frame) > MOST_ROWS:
        frame = frame.head(MOST_ROWS)
        problems.append(f"The table shows its first {MOST_ROWS} rows; `attlas.load` gives all.")
    answer, values = "", {}
    if len(chosen) == total:  # a part of a grid answers no question
        made = _made("the answer", lambda: experiment.answered_with_values(data()), problems)
        answer, values = made or (answer, values)
    return ExperimentEntry(
        experiment,
        source,
        scale=scale,
        done=len(chosen),
        total=total,
        other_code=_made_by_others(experiment, chosen, code),
        seconds=float(sum(record.metadata.get("seconds", 0.0) for record in chosen)),
        drawings=drawings,
        table=None if frame is None else table_html(frame, f"{experiment.title}: the numbers"),
        settings=_settings(chosen),
        problems=tuple(problems),
        answer=answer,
        values=values,
        thumbnail=small,
        whence=max(chosen, key=lambda record: str(record.metadata.get("finished", ""))).whence,
    )


def _made_by_others(experiment: Experiment, records: Sequence[Record], code: str) -> int:
    """How many records other code of attlas made, or other sources of the experiment."""
    now = source_digest(experiment.source[0], experiment.home)
    return sum(
        record.metadata.get("code") != code
        or record.metadata.get("source", {}).get("sha256", now) != now
        for record in records
    )


def _largest(
    experiment: Experiment, by_key: Mapping[str, Record], problems: list[str]
) -> tuple[str, tuple[Record, ...], int]:
    """The scale to show, its records in the order of its cells, and the number of its cells."""
    found: list[tuple[str, tuple[Record, ...], int]] = []
    for scale in (Scale.PAPER, Scale.QUICK, Scale.SMOKE):
        try:
            done, total = of_scale(experiment, scale, by_key)
        except UserError as error:
            problems.append(f"The {scale} grid could not be laid out: {error}")
            continue
        found.append((str(scale), done, total))
        # To know the keys of a large grid takes seconds, and there is no other record.
        if len(done) == total == len(by_key):
            break
    # The most complete grid, the larger one of equals.
    best = max(found, key=lambda one: len(one[1]) / one[2], default=("", (), 0))
    for scale, done, total in found:
        if len(best[1]) < len(done) < total and scale != best[0]:
            problems.append(f"Not shown: {len(done)} of {total} cells of the {scale} grid.")
    return best


def _drawings(
    name: str, figures: Iterable[CaptionedFigure], problems: list[str]
) -> tuple[tuple[Drawing, ...], str]:
    """The figures that can be drawn, and the thumbnail of the first of them."""
    drawings: list[Drawing] = []
    small = ""
    for shown in figures:
        what, figure = f"the figure '{shown.title}'", shown.figure
        alt = f"{shown.title}. {shown.caption}"
        picture = _made(what, partial(embed, figure, alt), problems)
        if picture is not None:
            own = anchor("figure", f"{name} {plain(shown.title)}")
            own += f"-{len(drawings) + 1}" if own in {each.anchor for each in drawings} else ""
            drawings.append(Drawing(shown.title, shown.caption, Markup(picture), own))
            if not small:
                small = _made(f"a thumbnail of {what}", partial(thumbnail, figure), problems) or ""
        # A figure made through pyplot stays in its registry, with its memory, until it is closed.
        plt.close(figure)
    return tuple(drawings), small


def _made(what: str, make: Callable[[], Shown], problems: list[str]) -> Shown | None:
    """What `make` gives, or None with the reason among the problems."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001 (an experiment's own code; said on the page)
        told = shorten(printable(str(error)), LONGEST_REASON, placeholder=" ...")
        problems.append(f"It was not possible to make {what}: {type(error).__name__}: {told}")
        return None


def _gaps(part: str, records: Sequence[Record]) -> Iterator[str]:
    """Arrays that only some of the records of a part hold: a figure shows them as gaps."""
    given: dict[object, set[str]] = {}
    for record in records:
        given.setdefault(record.cell.settings.get(part), set()).update(record.arrays)
    lacking = Counter(
        name
        for record in records
        for name in given[record.cell.settings.get(part)] - record.arrays.keys()
    )
    for name, missing in sorted(lacking.items()):
        yield f"{missing} of {len(records)} cells have no array `{name}`: gaps are shown."


def _settings(records: Sequence[Record]) -> dict[str, str]:
    """Each setting with the values it takes, the seeds and the precision last."""
    names = dict.fromkeys(name for record in records for name in record.cell.settings)
    shown = {
        name: _values([str(r.cell.settings[name]) for r in records if name in r.cell.settings])
        for name in names
    }
    seeds = sorted({record.cell.seed for record in records})
    consecutive = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1))
    shown["seeds"] = f"{seeds[0]} to {seeds[-1]}" if consecutive else ", ".join(map(str, seeds))
    shown["precision"] = _values([record.cell.dtype for record in records])
    return shown


def _values(texts: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(texts))
    return ", ".join(distinct) if len(distinct) <= MOST_VALUES else f"{len(distinct)} values"
