"""The one exception that is written for the user.

Bad input raises a `UserError` whose text says what was wrong, where, and what to do. The command
line prints it as one line and exits with code 2.
"""


class UserError(ValueError):
    """Input that cannot be used, explained in one line.

    The message names the value, the place and the fix, in that order.

    Examples:
        >>> raise UserError("p = 1 is not above 1: choose 1 < p < inf")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: p = 1 is not above 1: choose 1 < p < inf
    """


def in_short(error: Exception) -> str:
    """The class of an exception and the first line of its message.

    Examples:
        >>> in_short(KeyError("x"))
        "KeyError: 'x'"
    """
    said = str(error).strip()
    return f"{type(error).__name__}: {said.splitlines()[0] if said else ''}"
