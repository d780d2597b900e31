"""A part of a run, by which jobs that know nothing of each other share a grid."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from attlas.core.errors import UserError

MOST_PARTS = 100_000


@dataclass(frozen=True)
class Part:
    """One of several parts of equal size, up to one cell.

    Cells belong to parts in turn, in the order of their keys. A key is a hash, so that neighbours
    in a grid, which take about equally long, come into different parts. Which cells have been
    computed already makes no difference: jobs that start at different times divide them alike.

    Attributes:
        number: from 1 to `of`.

    Raises:
        UserError: if there is no such part.

    Examples:
        >>> [sorted(Part(number, 2).of_keys(["c", "a", "b"])) for number in (1, 2)]
        [['a', 'c'], ['b']]
        >>> Part(3, 2)
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: there is no part 3/2: name one from 1/2 to 2/2
    """

    number: int
    of: int

    def __post_init__(self) -> None:
        """Check that there is such a part."""
        if not 1 <= self.of <= MOST_PARTS:
            raise UserError(f"{self.of} parts are not from 1 to {MOST_PARTS}: name fewer")
        if not 1 <= self.number <= self.of:
            raise UserError(
                f"there is no part {self.number}/{self.of}: name one from 1/{self.of} to "
                f"{self.of}/{self.of}"
            )

    def of_keys(self, keys: Iterable[str]) -> frozenset[str]:
        """The keys of the cells that belong to this part, of those of the whole run."""
        return frozenset(sorted(set(keys))[self.number - 1 :: self.of])


WHOLE = Part(1, 1)
"""All cells."""


def read_part(text: str) -> Part:
    """The part that a text such as "2/16" names.

    Raises:
        UserError: if it names none.

    Examples:
        >>> read_part("2/16")
        Part(number=2, of=16)
        >>> read_part("2")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: '2' is not a part: write the number and ...
    """
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if match is None:
        raise UserError(
            f"'{text:.40}' is not a part: write the number and how many there are, such as 2/16"
        )
    return Part(int(match[1]), int(match[2]))
