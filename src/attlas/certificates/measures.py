"""What is certified beside the mean loss: F1 scores, Brier scores, calibration errors.

Each is kept by what its limit needs of every example, so that a group of examples has its own.
"""

from dataclasses import dataclass

import numpy as np

from attlas.bounds.generalisation.calibration_limit import BINS, calibration_upper_limit
from attlas.bounds.generalisation.f_score_limit import f_score_lower_limit
from attlas.bounds.generalisation.mean_bound import mean_bound
from attlas.certificates.columns import Columns, Table, answers_of, numbers_of
from attlas.core.errors import UserError, refuse_unreadable


@dataclass(frozen=True)
class Limit:
    """The limit of a measure on the examples that it was computed from.

    Attributes:
        limit: what new examples have at least, for a score, or at most, for an error.
        noise: what `measured` would be on average if the true value were 0; 0 where it is unbiased.
        examples: number of those that the limit rests on.
    """

    measured: float
    limit: float
    examples: int
    method: str
    noise: float = 0.0


@dataclass(frozen=True, eq=False)
class FScore:
    """The F1 score of one label.

    Attributes:
        label: the class.
        labelled: of shape [n], True where it is the right answer.
        predicted: of shape [n], True where it is the answer of the model.
    """

    label: str
    labelled: np.ndarray
    predicted: np.ndarray
    is_score = True

    @property
    def name(self) -> str:
        """As in tables."""
        return f"F1 of '{self.label:.40}'"

    def limit(self, rows: np.ndarray, delta: float, anytime: bool) -> Limit:
        """The exact limit of the score on some examples."""
        labelled, predicted = self.labelled[rows], self.predicted[rows]
        hits = int((labelled & predicted).sum())
        errors = int((labelled != predicted).sum())
        return Limit(
            measured=2 * hits / (2 * hits + errors) if hits else 0.0,
            limit=f_score_lower_limit(hits, errors, delta, anytime=anytime),
            examples=hits + errors,
            method="exact binomial, given the examples of the class or predicted to be",
        )


@dataclass(frozen=True, eq=False)
class Brier:
    """The mean square of probability less event.

    Attributes:
        losses: of shape [n], in [0, 1].
    """

    losses: np.ndarray
    name = "Brier score"
    is_score = False

    def limit(self, rows: np.ndarray, delta: float, anytime: bool) -> Limit:
        """The bettor's limit of the mean on some examples."""
        bound = mean_bound(self.losses[rows], delta, anytime=anytime)
        return Limit(bound.empirical, bound.bound, bound.n, bound.name)


@dataclass(frozen=True, eq=False)
class Calibration:
    """The expected calibration error.

    Attributes:
        probabilities: of shape [n], in [0, 1].
        events: of shape [n], 1 where what had the probability came.
    """

    probabilities: np.ndarray
    events: np.ndarray
    name = "calibration error"
    is_score = False

    def limit(self, rows: np.ndarray, delta: float, anytime: bool) -> Limit:
        """Bernstein's limit over all signs of the bins, on some examples."""
        if anytime:
            raise UserError(
                "a calibration error has no limit that holds at any time: leave --sequential or "
                "--calibration out"
            )
        found = calibration_upper_limit(self.probabilities[rows], self.events[rows], delta)
        method = f"empirical Bernstein, {BINS} bins of equal width"
        return Limit(found.measured, found.limit, len(rows), method, found.noise)


Measure = FScore | Brier | Calibration
"""Each has a name, says whether more of it is better, and has a limit on any of its examples."""


@refuse_unreadable
def measures_of(
    table: Table, columns: Columns, losses: np.ndarray, place: str
) -> tuple[Measure, ...]:
    """The measures that a user asked for, from the columns of a table.

    Args:
        losses: array of shape [n], 1 for an error: what a probability is about if it is no score.
        place: the file, for messages.

    Raises:
        UserError: if the table does not have what they need.

    Examples:
        >>> table = {"label": ["spam", "ham"], "prediction": ["spam", "spam"], "p": [0.9, 0.6]}
        >>> columns = Columns(probability="p", f_score=("spam",))
        >>> [measure.name for measure in measures_of(table, columns, np.array([0.0, 1]), "a.csv")]
        ["F1 of 'spam'", 'Brier score', 'calibration error']
    """
    of_score = columns.probability is not None and columns.probability == columns.score
    labels, answers = np.empty(0), np.empty(0)
    if columns.f_score or of_score:
        texts = answers_of(table, columns, place)
        labels, answers = (np.array(each, dtype=object) for each in texts)
        _require_rows(place, labels, answers)
    scores = tuple(_f_score(label, labels, answers, place) for label in columns.f_score)
    if columns.probability is None:
        return scores
    probabilities = numbers_of(table, columns.probability, place)
    _require_rows(place, losses, probabilities, *([labels] if of_score else []))
    events = labels.astype(float) if of_score else 1 - losses
    if not np.isin(events, (0.0, 1.0)).all():
        raise UserError(
            f"{place}: '{columns.probability}' is a probability of being right, and losses "
            "between 0 and 1 are neither: certify errors, or leave --calibration out"
        )
    return (
        *scores,
        Brier((probabilities - events) ** 2),
        Calibration(probabilities, events),
    )


def _require_rows(place: str, *columns: np.ndarray) -> None:
    """Refuse columns that are not of one length."""
    if len({len(column) for column in columns}) > 1:
        raise UserError(f"{place} has columns of several lengths: give each row every column")


def _f_score(label: str, labels: np.ndarray, answers: np.ndarray, place: str) -> FScore:
    labelled, predicted = labels == label, answers == label
    if not (labelled | predicted).any():
        known = ", ".join(sorted({str(text)[:40] for text in labels}))[:200]
        raise UserError(f"{place} has no example of class '{label:.40}': its labels are {known}")
    return FScore(label, labelled, predicted)
