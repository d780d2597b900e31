"""The losses of one model on examples that it was not trained on, and where they come from."""

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from attlas.certificates.measures import Measure
from attlas.core.arrays import ArrayInput, read_arrays
from attlas.core.errors import UserError, refuse_unreadable


@dataclass(frozen=True, eq=False)
class Predictions:
    """The losses of one model, in the order of the examples.

    Attributes:
        name: of the model, as in tables.
        losses: of shape [n], in [0, 1].
        measured: how the losses were computed from the file, for the reader.
        examples: a text for each example, the same in all files of one set of examples; empty
            where the files have none.
        groups: a text for each example, or empty.
        measures: what is certified beside the mean loss.
    """

    name: str
    losses: np.ndarray
    measured: str
    examples: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    measures: tuple[Measure, ...] = ()

    @property
    def counted(self) -> bool:
        """Whether every loss is 0 or 1, so that errors are counted."""
        return bool(np.isin(self.losses, (0.0, 1.0)).all())

    @property
    def digest(self) -> str:
        """The SHA-256 of the losses and of their examples."""
        content = hashlib.sha256(self.losses.astype("<f8").tobytes())
        content.update("\0".join(self.examples).encode("utf-8", "surrogatepass"))
        return content.hexdigest()


def predictions_of(
    name: str,
    losses: ArrayInput,
    measured: str = "losses as they are",
    examples: Sequence[str] = (),
    groups: Sequence[str] = (),
    measures: Sequence[Measure] = (),
) -> Predictions:
    """Predictions from losses, which are read and must lie in [0, 1].

    Args:
        losses: of shape [n].

    Raises:
        UserError: if they do not, or texts are not as many.

    Examples:
        >>> predictions_of("mine", [0, 1, 0]).counted
        True
        >>> predictions_of("mine", [0, 2])
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: mine: loss 2 of example 2: scale or clip into [0, 1]
    """
    (values,) = read_arrays("n", np.float64, losses=losses)
    outside = np.flatnonzero((values < 0) | (values > 1))
    if outside.size:
        place = int(outside[0])
        raise UserError(
            f"{name}: loss {values[place]:g} of example {place + 1}: scale or clip into [0, 1]"
        )
    for what, texts in (("examples", examples), ("groups", groups)):
        if texts and len(texts) != values.size:
            raise UserError(f"{name}: {len(texts)} {what} for {values.size} losses: give one each")
    return Predictions(name, values, measured, tuple(examples), tuple(groups), tuple(measures))


@refuse_unreadable
def require_one_set(several: Sequence[Predictions]) -> None:
    """Check that models were evaluated on the same examples, in the same order.

    Raises:
        UserError: naming the file that differs and where.

    Examples:
        >>> require_one_set([predictions_of("a", [0, 1]), predictions_of("b", [1])])
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: b has 1 examples and a has 2: give files of one test set
    """
    first = several[0]
    for other in several[1:]:
        if other.losses.size != first.losses.size:
            raise UserError(
                f"{other.name} has {other.losses.size} examples and {first.name} has "
                f"{first.losses.size}: give files of one test set"
            )
        pairs = zip(first.examples, other.examples, strict=False)
        unequal = next((k for k, (a, b) in enumerate(pairs) if a != b), None)
        if unequal is not None:
            raise UserError(
                f"example {unequal + 1} is '{first.examples[unequal]:.40}' in {first.name} and "
                f"'{other.examples[unequal]:.40}' in {other.name}: give files of one test set in "
                "one order"
            )


@refuse_unreadable
def baseline_name(
    file: Hashable | None, files: Sequence[Hashable], several: Sequence[Predictions], option: str
) -> str | None:
    """The name of the predictions that others are compared with; None without a file.

    Args:
        file: the file of the baseline.
        files: all files, in the order of the predictions.
        several: predictions of each file, equally many, such as those at several thresholds.
        option: name of this choice in messages.

    Raises:
        UserError: if the file is none of the files.

    Examples:
        >>> several = [predictions_of("first", [0.0]), predictions_of("second", [1.0])]
        >>> baseline_name("b.csv", ["a.csv", "b.csv"], several, "baseline")
        'second'
    """
    if file is None:
        return None
    if file not in files:
        raise UserError(f"{option} {file} is none of the files: name one of them")
    return several[list(files).index(file) * (len(several) // len(files))].name
