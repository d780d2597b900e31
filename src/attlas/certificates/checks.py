"""What examples themselves say about the assumptions of a certificate."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from attlas.certificates.predictions import Predictions
from attlas.core.errors import UserError, refuse_unreadable

ORDERS = 999
"""Random orders with which the order of a file is compared."""
SUSPICIOUS = 0.01
MOST_BLOCKS = 2**12
"""Of consecutive examples, whose means stand for them in a long file."""


class Check(NamedTuple):
    """One check of an assumption.

    Attributes:
        holds: False where the examples speak against the assumption.
        text: the sentence for the reader, with its number.
    """

    name: str
    holds: bool
    text: str


@refuse_unreadable
def checks_of(several: Sequence[Predictions]) -> tuple[Check, ...]:
    """Repeated examples, and losses that drift along the file.

    Examples:
        >>> from attlas.certificates.predictions import predictions_of
        >>> drifting = predictions_of("mine", [0.0] * 50 + [1.0] * 50)
        >>> [(check.name, check.holds) for check in checks_of([drifting])]
        [('order', False)]
    """
    repeats = [_repeated(several[0])] if several[0].examples else []
    return (*repeats, *(_order(model, len(several)) for model in several))


def require_unseen(tested: Sequence[str], trained: Sequence[str], place: str) -> Check:
    """Check that no example of the test was trained on.

    Args:
        tested: texts of the test examples.
        trained: texts of the training examples.
        place: the training file, for the message.

    Raises:
        UserError: if one was; the message counts them.

    Examples:
        >>> require_unseen(["a"], ["b"], "train.csv").text
        'none of the 1 test examples is in train.csv'
    """
    training = set(trained)
    both = [text for text in tested if text in training]
    if both:
        raise UserError(
            f"{len(both)} of {len(tested)} test examples are in {place}, such as '{both[0]:.40}': "
            "take them out of the test set"
        )
    return Check("unseen", True, f"none of the {len(tested)} test examples is in {place}")


def _repeated(model: Predictions) -> Check:
    repeats = sum(count - 1 for count in Counter(model.examples).values())
    if not repeats:
        return Check("repeats", True, f"all {len(model.examples)} examples differ")
    return Check(
        "repeats",
        False,
        f"{repeats} of {len(model.examples)} examples repeat another one: they are not "
        "independent, and the certificate counts them as if they were",
    )


def _order(model: Predictions, count: int) -> Check:
    """A permutation test of the largest partial sum of centred losses, or of means of blocks."""
    size = -(-model.losses.size // MOST_BLOCKS)
    blocks = model.losses[: model.losses.size // size * size].reshape(-1, size).mean(axis=1)
    # Orders of one seed for all samples would have the level on average over seeds only.
    rng = np.random.default_rng(np.frombuffer(blocks.tobytes(), np.uint32).tolist())
    centred = blocks - blocks.mean()
    measured = float(np.abs(np.cumsum(centred)).max())
    larger = sum(
        float(np.abs(np.cumsum(rng.permutation(centred))).max()) >= measured for _ in range(ORDERS)
    )
    value = (1 + larger) / (1 + ORDERS)
    # Each model is tested: the level is shared.
    holds = value > SUSPICIOUS / count
    verb = "does not drift" if holds else "drifts"
    return Check(
        "order",
        holds,
        f"{model.name}: the loss {verb} along the file (permutation test, p = {value:.3f})",
    )
