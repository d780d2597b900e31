"""A program that writes and may be killed, and what a reader sees then."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attlas._files.plain_file import Damaged
from attlas.core.errors import UserError

Notes = list[str]
DAMAGED = "damaged"


@dataclass(frozen=True)
class Writer:
    """A program that writes, and one that reads what it wrote.

    Attributes:
        write: what one run does in a folder with the number it writes; returns lines that it says.
        read: what a reader sees: something that JSON can hold, `DAMAGED` if the reader says so.
        starts: what is in the folder before, by name.
        is_quiet: whether the run goes on without a line if nothing can be written.
        is_single: whether no second writer may be beside it.
    """

    name: str
    write: Callable[[Path, int], Notes | None]
    read: Callable[[Path], Any]
    starts: dict[str, Callable[[Path], Any]] = field(default_factory=dict)
    is_quiet: bool = False
    is_single: bool = False


def seen(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (Damaged, UserError):
        return DAMAGED


def with_value(write: Callable[[Path, int], Any], value: int = 1) -> Callable[[Path], Any]:
    return lambda root: write(root, value)


def one(name: str, write: Callable, read: Callable, **kinds: bool) -> Writer:
    starts = {"an old one": with_value(write), "nothing": lambda root: None}
    return Writer(name, write, read, starts, **kinds)
