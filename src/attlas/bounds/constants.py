"""The one keyword for whose constants a bound has: `constants=`.

"printed" are the paper's, a hidden one set to an argument; "corrected" are those that its proof
gives once its errors are fixed; "sharp" are the best that are proved, and the default everywhere.
Where nothing sharper than the correction is proved, the two are one.
"""

from typing import Literal, get_args

from attlas.core.errors import UserError

Constants = Literal["printed", "corrected", "sharp"]


def require_constants(constants: str, *available: str) -> None:
    """Check that a bound has these constants.

    Args:
        *available: those that there are; all three when none is named.

    Examples:
        >>> require_constants("sharp")
        >>> require_constants("exact", "printed", "sharp")
        Traceback (most recent call last):
        attlas.core.errors.UserError: constants = 'exact': choose one of printed, sharp
    """
    choices = available or get_args(Constants)
    if constants not in choices:
        raise UserError(f"constants = {constants!r}: choose one of {', '.join(choices)}")
