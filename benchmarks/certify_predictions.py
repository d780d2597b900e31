"""`attlas certify` on the predictions for 25,000 test reviews of IMDB, as a whole process.

A naive Bayes classifier of binary word counts is fitted to the 25,000 training reviews. Its answers
for the test reviews, with identifier, label, prediction and probability, are written as CSV, JSON
lines, .npz and Parquet. Times are seconds of the processor, start of Python and all threads
included, as medians of interleaved rounds; `additions seconds` are those of ten million additions
of Python at the same moment, some 0.8 on a quiet machine. `error` is the share of wrong answers,
and `certified` its limit at 95 %, both of which every format must give alike.

`python -m benchmarks.certify_predictions` needs ATTLAS_DATA, and pyarrow for Parquet.
"""

import json
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from attlas.data.imdb import IMDB
from attlas.data.sources import read_verified
from benchmarks.interleave import write_results
from benchmarks.machine import additions_seconds

ROUNDS, GOAL_SECONDS = 5, 5.0


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z']+", text.lower()))


def predictions() -> dict[str, list]:
    """Identifier, label, prediction and probability of the label 1, of each test review."""
    reviews = read_verified(IMDB, None)
    counts = (Counter(), Counter())
    for _, label, _, text in reviews["train"]:
        counts[label].update(_words(text))
    weights = {
        word: float(np.log((counts[1][word] + 1) / (counts[0][word] + 1)))
        for word in counts[0] | counts[1]
    }
    scores = [sum(weights.get(w, 0.0) for w in _words(text)) for *_, text in reviews["test"]]
    return {
        "id": [review[0] for review in reviews["test"]],
        "label": [review[1] for review in reviews["test"]],
        "prediction": [int(score > 0) for score in scores],
        "probability": [float(1 / (1 + np.exp(-np.clip(score, -30, 30)))) for score in scores],
    }


def _csv(path: Path, columns: dict[str, list]) -> None:
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join(",".join(map(str, row)) for row in (tuple(columns), *rows)))


def _json_lines(path: Path, columns: dict[str, list]) -> None:
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join(json.dumps(dict(zip(columns, row, strict=True))) for row in rows))


def _npz(path: Path, columns: dict[str, list]) -> None:
    arrays: dict[str, Any] = {name: np.array(values) for name, values in columns.items()}
    np.savez_compressed(path, **arrays)


def _parquet(path: Path, columns: dict[str, list]) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), path)


WRITERS: dict[str, Callable[[Path, dict[str, list]], None]] = {
    "csv": _csv,
    "jsonl": _json_lines,
    "npz": _npz,
    "parquet": _parquet,
}


def certified(file: Path) -> tuple[float, float, float]:
    """Processor seconds of one process, the error and its limit."""
    result = file.with_suffix(".json")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "attlas", "certify", str(file), "--json", str(result)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    (model,) = json.loads(result.read_text())["guarantees"]
    taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return taken, model["empirical"], model["bound"]


def main() -> None:
    """Measure and write `results/certify_predictions.json`."""
    columns = predictions()
    rows: dict[str, list[tuple[float, float, float]]] = {suffix: [] for suffix in WRITERS}
    with tempfile.TemporaryDirectory() as folder:
        files = {suffix: Path(folder) / f"{suffix}/reviews.{suffix}" for suffix in WRITERS}
        for suffix, file in files.items():
            file.parent.mkdir()
            WRITERS[suffix](file, columns)
        loads = []
        for _ in range(ROUNDS):
            loads.append(additions_seconds())
            for suffix, file in files.items():
                rows[suffix].append(certified(file))
    seen = {row[1:] for measured in rows.values() for row in measured}
    if len(seen) != 1:
        raise SystemExit(f"the formats give different certificates: {sorted(seen)}")
    ((error, limit),) = seen
    cases = [
        {
            "case": f"25,000 predictions, .{suffix}",
            "seconds": statistics.median(row[0] for row in measured),
            "seconds_range": [min(row[0] for row in measured), max(row[0] for row in measured)],
            "goal": GOAL_SECONDS,
            "error": error,
            "certified": limit,
            "additions_seconds": statistics.median(loads),
        }
        for suffix, measured in rows.items()
    ]
    print(cases)
    write_results("certify_predictions", cases)


if __name__ == "__main__":
    main()
