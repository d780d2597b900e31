"""Logs of Inspect: a grade for each sample, averaged over its epochs."""

from collections import defaultdict
from typing import Any

from attlas._files.budget import PREDICTIONS, archived_files, parse_json
from attlas._files.plain_file import Damaged

GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Correct, partially correct, incorrect, no answer."""


def is_inspect_log(content: bytes) -> bool:
    """Whether a JSON document begins as a log of Inspect does.

    Examples:
        >>> is_inspect_log(b'{"version": 2, "status": "success", "eval": {}}')
        True
    """
    return b'"eval"' in content[:4096] and b'"status"' in content[:4096]


def inspect_table(content: bytes) -> dict[str, list[Any]]:
    """A column for each scorer of a log, an example for each sample.

    The grades of a single scorer are the column "correct".

    Raises:
        Damaged: if it is no such log, or a grade is not a number.

    Examples:
        >>> log = b'{"eval": {}, "status": "success", "samples": [{"id": 1, "epoch": 1, "scores": '
        >>> inspect_table(log + b'{"match": {"value": "C"}}}]}')
        {'correct': [1.0], 'id': ['1']}
    """
    samples = _zipped(content) if content[:2] == b"PK" else _samples(content)
    grades: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        if not isinstance(sample, dict) or not isinstance(sample.get("scores"), dict):
            raise Damaged("has a sample without scores: evaluate it again, or take it out")
        name = str(sample.get("id"))
        for scorer, score in sample["scores"].items():
            value = score.get("value") if isinstance(score, dict) else None
            grades[scorer][name].append(_grade(value, scorer))
    if not grades:
        raise Damaged("has no graded samples")
    ids = list(next(iter(grades.values())))
    if any(list(by_id) != ids for by_id in grades.values()):
        raise Damaged("has scorers that graded different samples")
    # Epochs repeat a sample and are no further examples.
    means = {
        scorer: [sum(by_id[name]) / len(by_id[name]) for name in ids]
        for scorer, by_id in grades.items()
    }
    if len(means) == 1:
        means = {"correct": next(iter(means.values()))}
    return {**means, "id": ids}


def _samples(content: bytes) -> list[Any]:
    document = parse_json(content, PREDICTIONS)
    samples = document.get("samples") if isinstance(document, dict) else None
    if not isinstance(samples, list):
        raise Damaged("has no samples: write the log with them")
    return samples


def _zipped(content: bytes) -> list[Any]:
    try:
        files = archived_files(content, "samples/", PREDICTIONS.bytes)
    except Damaged as damage:
        raise Damaged(f"{damage}: write it as JSON with `inspect log dump`") from None
    return [parse_json(file, PREDICTIONS) for file in files]


def _grade(value: object, scorer: str) -> float:
    if isinstance(value, str) and value in GRADES:
        return GRADES[value]
    if isinstance(value, bool | int | float) and 0 <= value <= 1:
        return float(value)
    raise Damaged(f"has a grade {str(value)[:40]!r} of '{scorer}', which is no number in [0, 1]")
