"""Settings: the values of one cell by name, and parsing of the user's text."""

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attlas.core.errors import UserError

KINDS = {bool: "yes or no", int: "whole numbers", float: "numbers", str: "names"}
_WORDS = {"yes": True, "true": True, "no": False, "false": False}


class Settings(Mapping[str, Any]):
    """The values of one cell; `s.rate` and `s["rate"]` are the same.

    Lists become tuples. Besides the settings of its grid a cell has `seed`, `dtype` and, if the
    grid has members, `members`: the number of members in this cell, the first being `seed`.

    Examples:
        >>> s = Settings({"p": 1.75, "sizes": [6, 8]}, seed=3)
        >>> s.p, s["sizes"], s.seed
        (1.75, (6, 8), 3)
        >>> s.q
        Traceback (most recent call last):
            ...
        AttributeError: no setting 'q' among p, sizes, seed
    """

    def __init__(self, values: Mapping[str, Any], **also: Any):
        self._values = {name: _frozen(value) for name, value in {**values, **also}.items()}

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__.get("_values", {})
        if name not in values:
            raise AttributeError(f"no setting '{name}' among {', '.join(values)}")
        return values[name]

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{n}={v!r}' for n, v in self._values.items())})"


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def checked(name: str, value: object, like: object, choices: Sequence[str] = ()) -> Any:
    """Convert a user's value to the type of the grid's values.

    Args:
        value: the user's value, as text or of the right type.
        like: a value of the grid; integers become floats if it is a float.
        choices: allowed names; any if empty.

    Raises:
        UserError: if it is of another type, not finite, or not among the choices.

    Examples:
        >>> checked("rate", "1e-3", 0.1), checked("sizes", ["6", "8"], (2, 2))
        (0.001, [6, 8])
        >>> checked("members", "2.5", 20)
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: setting members = 2.5: it takes whole numbers, such as 20
    """
    if isinstance(like, list | tuple):
        items = value if isinstance(value, list | tuple) else [value]
        if not items:
            raise UserError(f"setting {name} is empty: name at least one value")
        return [checked(name, item, like[0], choices) for item in items]
    kind = next(kind for kind in KINDS if isinstance(like, kind))
    try:
        parsed = _read(value, kind)
    except ValueError:
        raise UserError(
            f"setting {name} = {value}: it takes {KINDS[kind]}, such as {_as_text(like)}"
        ) from None
    if kind is str and choices and parsed not in choices:
        near = difflib.get_close_matches(parsed, choices, n=1)
        hint = f"did you mean {near[0]}? It takes" if near else "it takes"
        between = "; " if any("," in choice for choice in choices) else ", "
        raise UserError(f"setting {name} = {parsed}: {hint} {between.join(choices)}")
    return parsed


def _read(value: object, kind: type) -> Any:
    """The value as a kind; raises ValueError if it is not one."""
    if isinstance(value, str):
        text = value.strip()
        if kind is bool:
            if text.lower() not in _WORDS:
                raise ValueError(text)
            return _WORDS[text.lower()]
        parsed = kind(text)
    else:
        parsed = value.item() if isinstance(value, np.generic) else value
        same = isinstance(parsed, kind) and isinstance(parsed, bool) == (kind is bool)
        if kind is float and isinstance(parsed, int) and not isinstance(parsed, bool):
            parsed, same = float(parsed), True
        if not same:
            raise ValueError(value)
    if isinstance(parsed, float) and not math.isfinite(parsed):
        raise ValueError(value)
    return parsed


def _as_text(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def split_assignments(texts: Sequence[str]) -> dict[str, list[str]]:
    """Split texts NAME=VALUE,VALUE,... into the texts of the values by name.

    Raises:
        UserError: if a text is not an assignment or a name comes twice.

    Examples:
        >>> split_assignments(["p=1.5,2", "members=200"])
        {'p': ['1.5', '2'], 'members': ['200']}
    """
    assignments: dict[str, list[str]] = {}
    for text in texts:
        name, sign, values = text.partition("=")
        if not (name.strip() and sign and values.strip()):
            raise UserError(f"'{text}' sets nothing: write NAME=VALUE or NAME=VALUE,VALUE,...")
        if name.strip() in assignments:
            raise UserError(f"{name.strip()} is set twice: write its values once, with commas")
        assignments[name.strip()] = [value.strip() for value in values.split(",")]
    return assignments
