"""The records that attlas publishes: its own runs at the papers' sizes, and what was not run.

They are a results folder of their own, `records/` of the repository, of at most `LARGEST` bytes.
Beside them `estimates.json` says of each experiment what is left of its grid and what that would
cost, from the records of smaller cells on the machine that computed the others.
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
from attlas.experiments.cell import Scale, canonical_json
from attlas.experiments.cost import Estimate, estimate
from attlas.experiments.environment import environment
from attlas.experiments.experiment import Experiment
from attlas.experiments.find import find_experiments
from attlas.experiments.load import of_scale
from attlas.experiments.pair import remove_pair
from attlas.experiments.record import record_key
from attlas.experiments.store import PUBLISHED, Store
from attlas.experiments.text_file import write_text_file

ESTIMATES = "estimates.json"
LARGEST = 20 * 10**6
"""Bytes of all published files."""
_LARGEST_TEXT = 2**20


def publish(results: Path | str, folder: Path | str = PUBLISHED) -> int:
    """Copy the records of a results folder that are of paper scale, and estimate what is missing.

    Args:
        results: a results folder with records of paper scale, and smaller ones to estimate from.
        folder: where to; the published records by default.

    Returns:
        The bytes of all published files.

    Raises:
        UserError: if they are more than may be published, a file cannot be written, or published
            records would go while a data set is absent, without which a grid is another one.
    """
    source, target, device = Store(results), Store(folder), environment()["device"]
    found = {}
    for experiment in find_experiments():
        keys = {
            record_key(experiment.name, experiment.revision, cell)
            for cells in experiment.grid.layouts(Scale.PAPER)
            for cell in cells
        }
        _copy(source, target, experiment.name, keys)
        found[experiment.name] = _left(estimate(experiment, Scale.PAPER, source, device=device))
    whole = {"kind": "estimates", "scale": str(Scale.PAPER), **_made(), "experiments": found}
    write_text_file(target.root / ESTIMATES, json.dumps(whole, indent=1, sort_keys=True), "--out")
    size = sum(path.stat().st_size for path in target.root.rglob("*") if path.is_file())
    if size > LARGEST:
        raise UserError(f"the published records have {size} bytes, of at most {LARGEST}")
    return size


def _copy(source: Store, target: Store, name: str, keys: set[str]) -> None:
    """The records of some cells; those of other cells, such as of an earlier revision, go."""
    gone = [key for key in target.keys(name) if key not in keys]
    absent = [each.name for each in list_sets() if not is_present(each)] if gone else []
    if absent:
        raise UserError(
            f"records of {name} would go, perhaps because data are absent "
            f"({', '.join(absent)}): name their folder with ATTLAS_DATA=DIR"
        )
    for key in gone:
        remove_pair(target.root / name, key)
    for key in sorted(keys):
        record = source.read(name, key)
        if record is not None:
            target.write(record)


def _left(found: Estimate) -> dict[str, Any]:
    names = ("cells", "finished", "seconds", "longest", "memory", "beyond")
    return {name: getattr(found, name) for name in names}


def _made() -> dict[str, Any]:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    known = environment()
    return {name: known[name] for name in ("commit", "device", "platform")} | {"finished": now}


def not_run(store: Store) -> Mapping[str, str]:
    """What a folder of published records says of the cells that it does not have.

    Args:
        store: the published records.

    Returns:
        A sentence by name of experiment, for those of which a cell is missing.
    """
    path = store.root / ESTIMATES
    try:
        text = read_plain_file(path, _LARGEST_TEXT)
        whole = json.loads(text or b"{}")
        canonical_json(whole)
        experiments, platform = whole.get("experiments", {}), whole.get("platform", "this machine")
        return {
            name: _sentence(one, platform) for name, one in experiments.items() if _is_left(one)
        }
    except (Damaged, ValueError, TypeError, KeyError, AttributeError, UserError) as error:
        store.note(f"{path} is not a file of estimates ({error}): left out")
        return {}


def _is_left(one: Mapping[str, Any]) -> bool:
    return one["finished"] < one["cells"]


def _sentence(one: Mapping[str, Any], platform: str) -> str:
    done, cells = int(one["finished"]), int(one["cells"])
    verb = "was" if cells - done == 1 else "were"
    begun = f"{cells - done} of {cells} cells {verb} not run" if done else "not run"
    if one["seconds"] is not None:
        cost = f"estimated {duration(float(one['seconds']))} in one process on {platform}"
    elif one["beyond"] is not None:
        times = plain_number(float(one["beyond"]), 2)
        cost = (
            f"no estimate, as its largest cell has {times} times the work of the largest measured "
            "one"
        )
    else:
        cost = "no estimate, as no cell was measured"
    return f"Paper scale: {begun}, {cost}."


def lines_of(store: Store, experiment: Experiment) -> tuple[str, str]:
    """How much of an experiment is published, and where it was computed.

    Args:
        store: the records.
        experiment: which.

    Returns:
        "6 of 6 cells" of paper scale; day, commit and platform of the last one, or a dash.
    """
    by_key = {record.key: record for record in store.records(experiment.name)}
    there, total = of_scale(experiment, Scale.PAPER, by_key)
    if not there:
        return f"0 of {total}", "-"
    last = max(there, key=lambda record: record.metadata["finished"])
    return f"{len(there)} of {total}", last.whence
