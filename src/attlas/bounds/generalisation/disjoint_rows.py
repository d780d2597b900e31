"""Whether a held-out set is one: no row of it may have been trained on."""

from hashlib import blake2b

import numpy as np

from attlas.core.arrays import ArrayInput, read_array
from attlas.core.errors import UserError


def require_disjoint(training: ArrayInput, held_out: ArrayInput) -> None:
    """Check that no held-out row is in the training set.

    Rows are compared by a hash of their numbers in float64. Where inputs are drawn independently
    from a finite set, repetitions are part of the law: there, this is not to be asked.

    Args:
        training: examples [n, ...], all that belongs to one in its row.

    Raises:
        UserError: naming the first row that is in both, and how many are.

    Examples:
        >>> require_disjoint([[1, 2], [3, 4]], [[5, 6]])
        >>> require_disjoint([[1, 2], [3, 4]], [[5, 6], [3, 4]])
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: held_out: row 1 is in the training set, 1 of 2 are: ...
    """
    seen = set(_digests(training, "training"))
    digests = _digests(held_out, "held_out")
    copies = [k for k, digest in enumerate(digests) if digest in seen]
    if copies:
        raise UserError(
            f"held_out: row {copies[0]} is in the training set, {len(copies)} of {len(digests)} "
            "are: remove them"
        )


def _digests(rows: ArrayInput, name: str) -> list[bytes]:
    array = read_array(rows, name)
    if array.ndim == 0:
        raise UserError(f"{name} is one number: give examples along the first axis")
    # Minus zero is zero; the type in which a number is stored is not part of it.
    wide = np.ascontiguousarray(array.astype(np.float64) + 0.0)
    size = blake2b(str(wide.shape[1:]).encode(), digest_size=16).digest()
    return [blake2b(size + row.tobytes(), digest_size=16).digest() for row in wide]
