"""What became of a violation that was evaluated again in digits."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Confirmation:
    """One instance, evaluated again in 60 and in 90 digits.

    Attributes:
        violates: whether the instance violates the statement; None where that is undecided.
        digits: digits to which both precisions agree on the excess, from the first that is not
            zero; 0 where nothing was evaluated in digits.
        left: the left side at the entry that decides, in decimal.
        right: the right side there.
        reason: one line on how this was decided, or why it was not.

    Examples:
        >>> Confirmation(True, 60, "2.5", "2", "in 60 digits").violates
        True
    """

    violates: bool | None
    digits: int
    left: str
    right: str
    reason: str
