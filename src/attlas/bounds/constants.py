"""Which constants a bound has: the paper's, those that its proof gives, or the best ones proved."""

from typing import Literal

from attlas.core.errors import UserError

Constants = Literal["printed", "corrected", "sharp"]


def refuse_unknown(constants: str, *known: Constants) -> None:
    """Refuse constants that a bound does not have.

    Args:
        constants: as the caller wrote it.
        *known: those that there are.

    Raises:
        UserError: if it is none of them.

    Examples:
        >>> refuse_unknown("sharp", "printed", "sharp")
        >>> refuse_unknown("exact", "printed", "sharp")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: constants='exact': choose 'printed' or 'sharp'
    """
    if constants not in known:
        choices = " or ".join(f"'{name}'" for name in known)
        raise UserError(f"constants='{constants}': choose {choices}")
