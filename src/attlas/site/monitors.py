"""Figures of the files of `attlas.torch.Monitor`, whose content is verified."""

import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from attlas._files.appended_lines import whole_lines
from attlas._files.plain_file import Damaged, printable, read_plain_file
from attlas._files.sealed_json import unsealed
from attlas.experiments.panels.palette import colours
from attlas.experiments.store import Store
from attlas.site.content import Drawing
from attlas.site.figures import embed
from attlas.site.links import anchor

SCHEMA = "attlas.monitor/2"
_WITHOUT_SEAL = "attlas.monitor/1"
SUFFIX = ".monitor.jsonl"
MOST_BYTES, MOST_LINES, MOST_FILES = 50_000_000, 100_000, 50
MOST_LAYERS, MOST_HEADS = 1000, 1000
QUANTITIES = {
    "entropy": "entropy (nats)",
    "largest_logit": "largest logit",
    "sink": "weight of the first token",
    "gap": "gap of logits (nats)",
    "margin": "margin",
}


class MonitorRun(NamedTuple):
    """The good lines of one file.

    Attributes:
        T: tokens per sequence.
        values: for each quantity, shape (steps, layers, heads), NaN for missing numbers.
    """

    steps: np.ndarray
    T: int
    layers: tuple[str, ...]
    values: dict[str, np.ndarray]
    sink_share: np.ndarray


def monitor_drawings(store: Store) -> tuple[Drawing, ...]:
    """One figure for each monitor file of a results folder; malformed files and lines are noted."""
    names = store.names("", SUFFIX)
    if len(names) > MOST_FILES:
        store.note(f"{len(names) - MOST_FILES} monitor files beyond {MOST_FILES} are ignored")
    drawings = []
    for name in names[:MOST_FILES]:
        path = store.root / f"{name}{SUFFIX}"
        try:
            content = read_plain_file(path, MOST_BYTES)
        except Damaged as damage:
            store.note(f"{damage}: ignored")
            continue
        lines = whole_lines(content or b"")
        if len(lines) < len(content or b""):
            store.note(f"{path.name} ends in an unfinished line: ignored")
        run, wrong = parse_monitor(lines)
        for line, reason in wrong[:3]:
            store.note(f"{path.name}, line {line} {reason}: ignored")
        if len(wrong) > 3:
            store.note(f"{path.name}: {len(wrong) - 3} further lines ignored")
        if run is None:
            store.note(f"{path.name} has no valid line: ignored")
            continue
        drawings.append(_drawing(printable(name), run))
    return tuple(drawings)


def parse_monitor(content: bytes) -> tuple[MonitorRun | None, list[tuple[int, str]]]:
    """Parse a monitor file: the run, None without a valid line, and errors by line number from 1.

    The first valid line determines layers and heads; a later line of the same step replaces an
    earlier one.

    Examples:
        >>> parse_monitor(b'{"schema": 3}')
        (None, [(1, 'has another schema than attlas.monitor/2')])
    """
    good: dict[int, dict[str, Any]] = {}
    wrong: list[tuple[int, str]] = []
    shape: tuple[Any, ...] | None = None
    lines = content.split(b"\n")
    for number, line in enumerate(lines[:MOST_LINES], 1):
        if not line.strip():
            continue
        record, reason = _record(line)
        if record is None:
            wrong.append((number, reason))
            continue
        record_shape = (record["T"], tuple(record["layers"]), tuple(map(len, record["entropy"])))
        shape = shape or record_shape
        if record_shape != shape:
            wrong.append((number, "has other layers, heads or T than the first line"))
            continue
        good[record["step"]] = record
    if len(lines) > MOST_LINES:
        wrong.append((MOST_LINES + 1, f"is beyond the {MOST_LINES} that are read"))
    if not good:
        return None, wrong
    steps = sorted(good)
    heads = max(len(row) for row in good[steps[0]]["entropy"])
    values = {
        name: np.array([[_padded(row, heads) for row in good[step][name]] for step in steps])
        for name in QUANTITIES
    }
    share = np.array([good[step]["sink_share"] for step in steps])
    first = good[steps[0]]
    layers = tuple(printable(name) for name in first["layers"])
    return MonitorRun(np.array(steps), first["T"], layers, values, share), wrong


def _record(line: bytes) -> tuple[dict[str, Any] | None, str]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None, "is not JSON"
    if not isinstance(record, dict) or record.get("schema") not in (SCHEMA, _WITHOUT_SEAL):
        return None, f"has another schema than {SCHEMA}"
    if record["schema"] == SCHEMA:
        try:
            record = unsealed(record)
        except Damaged as damage:
            return None, str(damage)
    step, T, layers = record.get("step"), record.get("T"), record.get("layers")
    if not (_count(step) and _count(T) and T):
        return None, "has no step or T that is a whole number"
    if not isinstance(layers, list) or not all(isinstance(name, str) for name in layers):
        return None, "has no list of layers"
    if not 0 < len(layers) <= MOST_LAYERS:
        return None, "has no list of layers"
    if not _number(record.get("sink_share")):
        return None, "has no sink_share"
    for name in QUANTITIES:
        rows = record.get(name)
        if not isinstance(rows, list) or len(rows) != len(layers):
            return None, f"has no {name} for each layer"
        if not all(isinstance(row, list) and 0 < len(row) <= MOST_HEADS for row in rows):
            return None, f"has no {name} for each head"
        if not all(value is None or _number(value) for row in rows for value in row):
            return None, f"has a {name} that is not a number"
        if [len(row) for row in rows] != [len(row) for row in record["entropy"]]:
            return None, f"has another number of heads in {name}"
    return record, ""


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 10**12


def _number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e300 and math.isfinite(value)


def _padded(row: Sequence[float | None], heads: int) -> list[float]:
    return [math.nan if value is None else float(value) for value in row] + [math.nan] * (
        heads - len(row)
    )


def _drawing(name: str, run: MonitorRun) -> Drawing:
    figure = Figure(figsize=(11, 2.6), layout="constrained")
    panels = figure.subplots(1, len(QUANTITIES))
    shades = colours(list(range(len(run.layers))))
    few = len(run.layers) <= 6
    for axes, (quantity, label) in zip(panels, QUANTITIES.items(), strict=True):
        values = run.values[quantity]
        for layer in range(len(run.layers)):
            heads = values[:, layer].T
            for head in heads[np.isfinite(heads).any(1)]:
                axes.plot(run.steps, head, color=shades[layer], lw=0.9, alpha=0.8)
        axes.set_xlabel("step")
        axes.set_title(label, fontsize=9)
        axes.tick_params(labelsize=7)
    if few:
        for layer, text in enumerate(run.layers):
            panels[0].plot([], [], color=shades[layer], label=text)
        figure.legend(loc="outside lower center", ncols=3, fontsize=7, frameon=False)
    first, last = run.sink_share[0], run.sink_share[-1]
    caption = (
        f"One line per head, coloured by layer ({len(run.layers)} layers); T = {run.T} tokens. "
        f"The share of heads with more than the threshold on the first token goes from "
        f"{100 * first:.3g} % to {100 * last:.3g} %."
    )
    picture = Markup(embed(figure, f"{name}. {caption}"))
    return Drawing(name, caption, picture, anchor("monitor", name))
