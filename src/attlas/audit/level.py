"""The levels of an audit, without what measures them: a command line reads this before JAX."""

from typing import Any, Literal

from attlas.core.errors import UserError

Level = Literal["weights", "data", "deep"]
LEVELS: tuple[Level, ...] = ("weights", "data", "deep")


def require_level(level: str) -> None:
    """Check the name of a level.

    Raises:
        UserError: if there is no such level.

    Examples:
        >>> require_level("deep")
    """
    if level not in LEVELS:
        raise UserError(f"level = {level!r} is unknown: choose weights, data or deep")


def default_level(sequences: Any) -> Level:
    """The level of an audit for which none was named: "data" where there are sequences.

    Examples:
        >>> default_level(None), default_level([[1, 2], [3]])
        ('weights', 'data')
    """
    return "weights" if sequences is None else "data"
