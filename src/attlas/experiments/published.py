"""The published records: runs at the papers' sizes, or small ones, and what missing cells cost.

They are the results folder `records/` of the repository, of at most `LARGEST` bytes.
`estimates.json` in it lists the missing cells of each experiment and their cost, estimated from
smaller cells on the same machine.
"""

import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attlas._files.plain_file import Damaged, read_plain_file
from attlas.core.errors import UserError
from attlas.data.sources import is_present, list_sets
from attlas.display.numbers import duration, plain_number
from attlas.experiments.cell import LONG, Scale
from attlas.experiments.cost import Estimate, estimate
from attlas.experiments.environment import environment
from attlas.experiments.experiment import Experiment
from attlas.experiments.find import find_experiments
from attlas.experiments.load import of_scale
from attlas.experiments.packed import canonical_json
from attlas.experiments.pair import remove_pair
from attlas.experiments.record import record_key
from attlas.experiments.store import PUBLISHED, Store
from attlas.experiments.text_file import write_text_file

ESTIMATES = "estimates.json"
LARGEST = 20 * 10**6
"""Bytes of all published files."""
_LARGEST_TEXT = 2**20


def publish(results: Path | str, folder: Path | str = PUBLISHED) -> int:
    """Copy the records of small and paper scale, and estimate the missing cells of paper scale.

    Args:
        results: a results folder with records of both, and smaller ones to estimate from.
        folder: target; the published records by default.

    Returns:
        The bytes of all published files.

    Raises:
        UserError: if they exceed `LARGEST`, a file cannot be written, or published records would
            be deleted while a data set is absent (the grid may depend on it).
    """
    source, target, device = Store(results), Store(folder), environment()["device"]
    estimates = {}
    for experiment in find_experiments():
        keys = {
            record_key(experiment.name, experiment.revision, cell)
            for scale in experiment.grid.largest_first
            if scale in LONG
            for cells in experiment.grid.layouts(scale)
            for cell in cells
        }
        _copy(source, target, experiment.name, keys)
        estimates[experiment.name] = _left(estimate(experiment, Scale.PAPER, source, device=device))
    document = {
        "kind": "estimates",
        "scale": str(Scale.PAPER),
        **origin(),
        "experiments": estimates,
    }
    write_text_file(
        target.root / ESTIMATES, json.dumps(document, indent=1, sort_keys=True), "--out"
    )
    size = sum(path.stat().st_size for path in target.root.rglob("*") if path.is_file())
    if size > LARGEST:
        raise UserError(f"the published records have {size} bytes, of at most {LARGEST}")
    return size


def _copy(source: Store, target: Store, name: str, keys: set[str]) -> None:
    """Copy the records of some cells, and delete those of others, such as an earlier revision."""
    gone = [key for key in target.keys(name) if key not in keys]
    absent = [data_set.name for data_set in list_sets() if not is_present(data_set)] if gone else []
    if absent:
        raise UserError(
            f"records of {name} would be deleted, perhaps because data are absent "
            f"({', '.join(absent)}): name their folder with ATTLAS_DATA=DIR"
        )
    for key in sorted(keys):
        record = source.read(name, key)
        if record is not None:
            target.write(record)
    for key in gone:  # last: nothing leaves before its successor is there
        remove_pair(target.root / name, key)


def _left(estimate: Estimate) -> dict[str, Any]:
    names = ("cells", "finished", "seconds", "longest", "memory", "beyond")
    return {name: getattr(estimate, name) for name in names}


def origin() -> dict[str, Any]:
    """Commit, device, platform and time of what is published now."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    current = environment()
    return {name: current[name] for name in ("commit", "device", "platform")} | {"finished": now}


def not_run(store: Store) -> Mapping[str, str]:
    """A sentence about the missing cells of each incomplete experiment, by name."""
    path = store.root / ESTIMATES
    try:
        text = read_plain_file(path, _LARGEST_TEXT)
        document = json.loads(text or b"{}")
        canonical_json(document)
        experiments, platform = (
            document.get("experiments", {}),
            document.get("platform", "this machine"),
        )
        return {
            name: _sentence(entry, platform)
            for name, entry in experiments.items()
            if _is_left(entry)
        }
    except (Damaged, ValueError, TypeError, KeyError, AttributeError, UserError) as error:
        store.note(f"{path} is not a file of estimates ({error}): ignored")
        return {}


def _is_left(entry: Mapping[str, Any]) -> bool:
    return entry["finished"] < entry["cells"]


def _sentence(entry: Mapping[str, Any], platform: str) -> str:
    done, cells = int(entry["finished"]), int(entry["cells"])
    verb = "was" if cells - done == 1 else "were"
    begun = f"{cells - done} of {cells} cells {verb} not run" if done else "not run"
    if entry["seconds"] is not None:
        cost = f"estimated {duration(float(entry['seconds']))} in one process on {platform}"
    elif entry["beyond"] is not None:
        times = plain_number(float(entry["beyond"]), 2)
        cost = (
            f"no estimate, as its largest cell has {times} times the work of the largest measured "
            "one"
        )
    else:
        cost = "no estimate, as no cell was measured"
    return f"Paper scale: {begun}, {cost}."


def lines_of(store: Store, experiment: Experiment) -> tuple[str, str]:
    """How many cells of paper scale are published ("6 of 6"), and where the last was computed."""
    by_key = {record.key: record for record in store.records(experiment.name)}
    there, cells = of_scale(experiment, Scale.PAPER, by_key)
    if not there:
        return f"0 of {len(cells)}", "-"
    last = max(there, key=lambda record: record.metadata["finished"])
    return f"{len(there)} of {len(cells)}", last.whence
