"""Settings: the values of one cell by name, and how a user's text becomes such values."""

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

    Lists are tuples. Besides the settings of its grid a cell has `seed`, `dtype` and, where the
    grid counts members, `members`: how many of them this cell holds, the first being `seed`.

    Args:
        values: by name.
        also: further ones.

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
    """A value of a setting's type, which is that of the grid's values.

    Args:
        name: of the setting.
        value: what a user gave: text, or a value of the type.
        like: a value of the grid.
        choices: the names that may stand there; any where empty.

    Returns:
        The value; whole numbers become numbers where the grid has numbers.

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
        found = _read(value, kind)
    except ValueError:
        raise UserError(
            f"setting {name} = {value}: it takes {KINDS[kind]}, such as {_shown(like)}"
        ) from None
    if kind is str and choices and found not in choices:
        near = difflib.get_close_matches(found, choices, n=1)
        hint = f"did you mean {near[0]}? It takes" if near else "it takes"
        between = "; " if any("," in choice for choice in choices) else ", "
        raise UserError(f"setting {name} = {found}: {hint} {between.join(choices)}")
    return found


def _read(value: object, kind: type) -> Any:
    """The value as a kind; ValueError where it is none."""
    if isinstance(value, str):
        text = value.strip()
        if kind is bool:
            if text.lower() not in _WORDS:
                raise ValueError(text)
            return _WORDS[text.lower()]
        found = kind(text)
    else:
        found = value.item() if isinstance(value, np.generic) else value
        same = isinstance(found, kind) and isinstance(found, bool) == (kind is bool)
        if kind is float and isinstance(found, int) and not isinstance(found, bool):
            found, same = float(found), True
        if not same:
            raise ValueError(value)
    if isinstance(found, float) and not math.isfinite(found):
        raise ValueError(value)
    return found


def _shown(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def split_assignments(texts: Sequence[str]) -> dict[str, list[str]]:
    """Texts NAME=VALUE,VALUE,... as values by name.

    Args:
        texts: as a user writes them.

    Returns:
        The texts of the values by name.

    Raises:
        UserError: if a text is not an assignment or a name comes twice.

    Examples:
        >>> split_assignments(["p=1.5,2", "members=200"])
        {'p': ['1.5', '2'], 'members': ['200']}
    """
    found: dict[str, list[str]] = {}
    for text in texts:
        name, sign, values = text.partition("=")
        if not (name.strip() and sign and values.strip()):
            raise UserError(f"'{text}' sets nothing: write NAME=VALUE or NAME=VALUE,VALUE,...")
        if name.strip() in found:
            raise UserError(f"{name.strip()} is set twice: write its values once, with commas")
        found[name.strip()] = [value.strip() for value in values.split(",")]
    return found
