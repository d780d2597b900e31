"""Experiment pages: figures, table and answer from the records of one experiment."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from textwrap import shorten
from typing import NamedTuple, TypeVar

import matplotlib.pyplot as plt
from markupsafe import Markup
from matplotlib.figure import Figure

from attlas._files.plain_file import printable
from attlas.core.errors import UserError
from attlas.display.terminal import plain
from attlas.experiments.experiment import CaptionedFigure, Draw, Experiment
from attlas.experiments.load import ScaleRecords, of_scale
from attlas.experiments.record import Record
from attlas.experiments.short_caption import split_caption
from attlas.projects.loading import source_digest
from attlas.site.claim_entry import Source
from attlas.site.content import Drawing, ExperimentEntry
from attlas.site.figure_data import figure_csv
from attlas.site.figure_terms import listed_items, question_of, texts_of
from attlas.site.figures import embed, pixels_per_point
from attlas.site.links import anchor
from attlas.site.readable import enlarge_small_text
from attlas.site.tables import table_html
from attlas.site.thumbnails import thumbnail

LONGEST_REASON = 300
MOST_ROWS = 1000
"""Most rows of a table that are shown; more take seconds to compute, and nobody reads them."""
MOST_VALUES = 12
"""Most values of a setting that are listed; of more only the number is given."""

Result = TypeVar("Result")


class ExperimentRecords(NamedTuple):
    """The arguments of `experiment_entry`."""

    experiment: Experiment
    records: Sequence[Record]
    source: Source


def experiment_entry(
    experiment: Experiment,
    records: Sequence[Record],
    source: Source,
    code: str,
    pictures: bool = True,
) -> ExperimentEntry:
    """Figures, table and answer of the most complete grid, the largest of equally complete ones.

    Missing cells, and figures or tables that fail, are reported on the page; the rest is shown.

    Args:
        records: records of any scale and revision.
        code: hash of the running code; records from other code are counted.
        pictures: whether to draw figures and fill the table, nine tenths of the time.
    """
    problems: list[str] = []
    by_key = {record.key: record for record in records}
    scale, layout = _largest(experiment, by_key, problems)
    shown_records, total = layout.records, len(layout.cells)
    if not shown_records:
        return ExperimentEntry(experiment, source, problems=tuple(problems))
    problems += _gaps(experiment.part, shown_records)
    # Joined once; each function gets a shallow copy, which it may extend.
    data = cache(partial(experiment.dataset, *layout))
    drawn = [
        _computed(f"figure {k}", lambda d=draw: experiment.captioned(d, data().copy()), problems)
        for k, draw in enumerate(experiment.figures if pictures else (), 1)
    ]
    drawings = _drawings(experiment.name, filter(None, drawn), problems)
    cut, frame = MOST_ROWS + 1, None
    if pictures:
        frame = _computed("the table", lambda: experiment.tabulated(data().copy(), cut), problems)
    if frame is not None and len(frame) > MOST_ROWS:
        frame = frame.head(MOST_ROWS)
        problems.append(f"The table shows its first {MOST_ROWS} rows; `attlas.load` returns all.")
    answered = _computed("the answer", lambda: experiment.answered_with_values(data()), problems)
    answer, values = answered or ("", {})
    return ExperimentEntry(
        experiment,
        source,
        scale=scale,
        done=len(shown_records),
        total=total,
        other_code=_made_by_others(experiment, shown_records, code),
        seconds=float(sum(record.metadata.get("seconds", 0.0) for record in shown_records)),
        drawings=drawings,
        table=None if frame is None else table_html(frame, f"{experiment.title}: the numbers"),
        settings=_settings(shown_records),
        problems=tuple(problems),
        answer=answer,
        values=values,
        thumbnail=next((each.thumbnail for each in drawings if each.thumbnail), ""),
        whence=max(
            shown_records, key=lambda record: str(record.metadata.get("finished", ""))
        ).whence,
    )


def small_picture(inputs: ExperimentRecords) -> str:
    """The picture of a card: the first figure that can be drawn, small, a data URL.

    It takes a tenth of the time of `experiment_entry`; empty where no figure can be drawn.
    """
    experiment, problems = inputs.experiment, list[str]()
    _, layout = _largest(experiment, {record.key: record for record in inputs.records}, problems)
    if not layout.records:
        return ""
    data = cache(partial(experiment.dataset, *layout))

    def drawn(draw: Draw) -> str:
        figure = experiment.captioned(draw, data().copy()).figure
        try:
            figure.draw_without_rendering()
            return thumbnail(figure)
        finally:
            plt.close(figure)

    pictures = (_computed("it", partial(drawn, draw), problems) for draw in experiment.figures)
    return next(filter(None, pictures), "")


def _made_by_others(experiment: Experiment, records: Sequence[Record], code: str) -> int:
    """The number of records from other code of attlas, or other sources of the experiment."""
    now = source_digest(experiment.source[0], experiment.home)
    return sum(
        record.metadata.get("code") != code
        or record.metadata.get("source", {}).get("sha256", now) != now
        for record in records
    )


def _largest(
    experiment: Experiment, by_key: Mapping[str, Record], problems: list[str]
) -> tuple[str, ScaleRecords]:
    """The scale to show: the most complete grid, of equally complete ones the largest."""
    layouts: dict[str, ScaleRecords] = {}
    for scale in experiment.grid.largest_first:
        try:
            layout = of_scale(experiment, scale, by_key)
        except UserError as error:
            problems.append(f"The {scale} grid could not be laid out: {error}")
            continue
        layouts[str(scale)] = layout
        # The keys of a large grid take seconds, and there is no other record.
        if layout.complete and len(layout.cells) == len(by_key):
            break
    best = max(layouts, key=lambda scale: layouts[scale].share, default="")
    shown = layouts.get(best, ScaleRecords())
    for scale, layout in layouts.items():
        done, total = len(layout.records), len(layout.cells)
        if len(shown.records) < done < total and scale != best:
            problems.append(f"Not shown: {done} of {total} cells of the {scale} grid.")
    return best, shown


def _drawings(
    name: str, figures: Iterable[CaptionedFigure], problems: list[str]
) -> tuple[Drawing, ...]:
    """The figures that can be drawn, with their numbers and small pictures."""
    drawings: list[Drawing] = []
    for captioned in figures:
        what, figure = f"the figure '{captioned.title}'", captioned.figure
        alt = f"{captioned.title}. {captioned.caption}"
        picture = _computed(what, partial(_picture, figure, alt), problems)
        if picture is not None:
            fragment = anchor("figure", f"{name} {plain(captioned.title)}")
            fragment += (
                f"-{len(drawings) + 1}"
                if fragment in {drawing.anchor for drawing in drawings}
                else ""
            )
            caption, remark = split_caption(captioned.caption)
            texts = [captioned.title, caption, *texts_of(figure)]
            data = _computed(f"the data of {what}", partial(figure_csv, figure), problems)
            small = _computed(f"a thumbnail of {what}", partial(thumbnail, figure), problems)
            drawings.append(
                Drawing(
                    captioned.title,
                    caption,
                    Markup(picture),
                    fragment,
                    remark=remark,
                    question=question_of(captioned.reading),
                    items=tuple(listed_items(captioned.reading, texts)),
                    thumbnail=small or "",
                    data=data or "",
                )
            )
        # Figures from pyplot stay in its registry, and in memory, until they are closed.
        plt.close(figure)
    return tuple(drawings)


def _picture(figure: Figure, alt: str) -> Markup:
    enlarge_small_text(figure, pixels_per_point(figure))
    return embed(figure, alt)


def _computed(what: str, make: Callable[[], Result], problems: list[str]) -> Result | None:
    """The result of `make`, or None with the reason added to the problems."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001 (a user's code; the page shows the error)
        message = shorten(printable(str(error)), LONGEST_REASON, placeholder=" ...")
        problems.append(f"Could not make {what}: {type(error).__name__}: {message}")
        return None


def _gaps(part: str, records: Sequence[Record]) -> Iterator[str]:
    """Warnings for arrays that some records of a part lack; figures show gaps there."""
    expected: dict[object, set[str]] = {}
    for record in records:
        expected.setdefault(record.cell.settings.get(part), set()).update(record.arrays)
    lacking = Counter(
        name
        for record in records
        for name in expected[record.cell.settings.get(part)] - record.arrays.keys()
    )
    for name, missing in sorted(lacking.items()):
        yield f"{missing} of {len(records)} cells have no array `{name}`; they are shown as gaps."


def _settings(records: Sequence[Record]) -> dict[str, str]:
    """Each setting with its values; seeds and precision come last."""
    names = dict.fromkeys(name for record in records for name in record.cell.settings)
    values = {
        name: _values([str(r.cell.settings[name]) for r in records if name in r.cell.settings])
        for name in names
    }
    seeds = sorted({record.cell.seed for record in records})
    consecutive = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1))
    values["seeds"] = f"{seeds[0]} to {seeds[-1]}" if consecutive else ", ".join(map(str, seeds))
    values["precision"] = _values([record.cell.dtype for record in records])
    return values


def _values(texts: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(texts))
    return ", ".join(distinct) if len(distinct) <= MOST_VALUES else f"{len(distinct)} values"
