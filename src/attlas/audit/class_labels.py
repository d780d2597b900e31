"""Labels of examples, by name or number of a class as the configuration of a model has them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from attlas._files.plain_file import printable
from attlas.core.errors import UserError


def class_names(config: Mapping[str, Any], count: int) -> list[str]:
    """Names of the classes, by their numbers where config.json has none.

    Args:
        config: content of config.json.
        count: number of classes.

    Raises:
        UserError: if two classes have one name.

    Examples:
        >>> class_names({"id2label": {"0": "bad", "1": "good"}}, 2), class_names({}, 2)
        (['bad', 'good'], ['0', '1'])
    """
    named = config.get("id2label")
    names = [
        str(named.get(str(k), named.get(k, k))) if isinstance(named, Mapping) else str(k)
        for k in range(count)
    ]
    if len(set(names)) < count:
        raise UserError("config.json gives two classes one name in id2label: name each apart")
    return names


def class_count(config: Mapping[str, Any]) -> int:
    """Number of classes as config.json has it, two where it names none.

    Examples:
        >>> class_count({"id2label": {"0": "a", "1": "b", "2": "c"}}), class_count({})
        (3, 2)
    """
    named, number = config.get("id2label"), config.get("num_labels")
    if isinstance(named, Mapping) and named:
        return len(named)
    return number if isinstance(number, int) and number > 0 else 2


def class_numbers(labels: Sequence[str], names: Sequence[str]) -> Int[np.ndarray, " n"]:
    """Numbers of the classes that labels name.

    Raises:
        UserError: if a label is neither the name nor the number of a class.

    Examples:
        >>> class_numbers(["good", " 0 "], ["bad", "good"]).tolist()
        [1, 0]
    """
    known = {str(k): k for k in range(len(names))} | {name: k for k, name in enumerate(names)}
    for place, label in enumerate(labels):
        if label.strip() not in known:
            listed = printable(", ".join(names))[:200]
            raise UserError(
                f"label '{printable(label.strip())[:40]}' (number {place + 1}) is no class of the "
                f"model: give {listed}, or their numbers 0 to {len(names) - 1}"
            )
    return np.array([known[label.strip()] for label in labels], np.int64)
