"""From the columns of a table to losses: which columns are read, and what is made of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attlas.core.errors import UserError, refuse_misfits, refuse_unreadable

LABEL = ("label", "labels", "target", "gold", "y_true", "reference", "references")
PREDICTION = ("prediction", "predictions", "predicted", "pred", "y_pred", "output")
EXAMPLE = ("id", "doc_id", "example_id", "sample_id", "idx")
TRUE = {"1": 1.0, "1.0": 1.0, "true": 1.0, "yes": 1.0, "correct": 1.0, "c": 1.0}
FALSE = {"0": 0.0, "0.0": 0.0, "false": 0.0, "no": 0.0, "incorrect": 0.0, "i": 0.0}
GRADES = {"acc", "acc_norm", "exact_match", "correct", "is_correct", "accuracy", "em"}
"""Names of columns of a grade that is 1 where the answer is right."""

Table = Mapping[str, Sequence[object] | np.ndarray]
"""Columns of one length, by name."""


@dataclass(frozen=True)
class Columns:
    """The columns that a user names; what is None is found by its usual name.

    Attributes:
        loss: of losses in [0, 1].
        correct: of grades in [0, 1], 1 for a right answer.
        label: of the right answers.
        prediction: of the model's answers.
        score: of the probability of the label 1, compared with `threshold`.
        example: of a text that names the example.
        group: of a text by which examples are grouped.
        probability: of the probability that the answer is right or, for the column of `score`, that
            the label is 1: its calibration error and Brier score are certified, too.
        f_score: labels whose F1 scores are certified, too.
    """

    loss: str | None = None
    correct: str | None = None
    label: str | None = None
    prediction: str | None = None
    score: str | None = None
    threshold: float | None = None
    example: str | None = None
    group: str | None = None
    probability: str | None = None
    f_score: tuple[str, ...] = ()


@refuse_unreadable
def losses_of(table: Table, columns: Columns, place: str) -> tuple[np.ndarray, str]:
    """Losses and the sentence that says how they were computed.

    Args:
        place: the file, for messages.

    Returns:
        Losses of shape [n], and the sentence.

    Raises:
        UserError: if no columns, or several, could be meant; the message lists what there is.

    Examples:
        >>> table = {"label": ["a", "b"], "prediction": ["a", "a"]}
        >>> losses, sentence = losses_of(table, Columns(), "test.csv")
        >>> losses.tolist(), sentence
        ([0.0, 1.0], "error where 'prediction' is not 'label'")
    """
    if columns.loss is not None:
        return _numbers(table, columns.loss, place), f"losses in '{columns.loss}'"
    if columns.correct is not None:
        grades = _numbers(table, columns.correct, place)
        return 1 - grades, f"1 less the grade in '{columns.correct}'"
    if columns.score is not None:
        return _thresholded(table, columns, place)
    label = columns.label or _usual(table, LABEL)
    prediction = columns.prediction or _usual(table, PREDICTION)
    if label and prediction:
        answers = [_texts(table, name, place) for name in (label, prediction)]
        if len(answers[0]) != len(answers[1]):
            raise UserError(f"{place} has columns of several lengths: give each row every column")
        if None in (labels := list(table[label])) or any(value != value for value in labels):
            raise UserError(f"{place} has rows without a '{label}': leave them out or label them")
        wrong = np.array([a != b for a, b in zip(*answers, strict=True)], dtype=float)
        return wrong, f"error where '{prediction}' is not '{label}'"
    if "loss" in table:
        return _numbers(table, "loss", place), "losses in 'loss'"
    grades = sorted(GRADES & set(table))
    if len(grades) == 1:
        return 1 - _numbers(table, grades[0], place), f"1 less the grade in '{grades[0]}'"
    if grades:
        raise UserError(
            f"{place} has several grades ({', '.join(grades)}): choose one before you look at "
            f"them, with --correct {grades[0]}"
        )
    raise UserError(
        f"{place} has no column of predictions, grades or losses (it has "
        f"{', '.join(sorted(table))[:200]}): name them with --label and --prediction, --correct or "
        "--loss"
    )


@refuse_unreadable
def answers_of(table: Table, columns: Columns, place: str) -> tuple[list[str], list[str]]:
    """Right answers and answers of the model, as texts.

    Raises:
        UserError: if the table has no such columns.

    Examples:
        >>> table = {"label": [1, 0], "p": [0.75, 0.5]}
        >>> answers_of(table, Columns(score="p", threshold=0.6), "test.csv")
        (['1', '0'], ['1', '0'])
    """
    if columns.score is not None:
        labels, answers = _over_threshold(table, columns, place)
        return [_text(value) for value in labels], [_text(value) for value in answers]
    label = columns.label or _usual(table, LABEL)
    prediction = columns.prediction or _usual(table, PREDICTION)
    if label is None or prediction is None:
        raise UserError(
            f"{place} has no labels and predictions, which an F1 score needs: name their columns "
            "with --label and --prediction"
        )
    return _texts(table, label, place), _texts(table, prediction, place)


@refuse_misfits
def numbers_of(table: Table, name: str, place: str) -> np.ndarray:
    """The numbers of a column, each in [0, 1], of shape [n]; words of a grade are read.

    Raises:
        UserError: if the column is not there, or has anything else.

    Examples:
        >>> numbers_of({"p": ["0.5", "true"]}, "p", "test.csv").tolist()
        [0.5, 1.0]
    """
    return _numbers(table, name, place)


@refuse_misfits
def texts_of(table: Table, name: str | None, usual: Sequence[str], place: str) -> tuple[str, ...]:
    """The texts of a column, or of the first one with a usual name; none if there is none.

    Raises:
        UserError: if the named column is not there.

    Examples:
        >>> texts_of({"id": [1, 2]}, None, EXAMPLE, "test.csv")
        ('1', '2')
    """
    column = name or _usual(table, usual)
    return tuple(_texts(table, column, place)) if column else ()


def _usual(table: Table, names: Sequence[str]) -> str | None:
    return next((name for name in names if name in table), None)


def _column(table: Table, name: str, place: str) -> Sequence[object] | np.ndarray:
    if name not in table:
        raise UserError(f"{place} has no column '{name}': it has {', '.join(sorted(table))[:200]}")
    return table[name]


def _texts(table: Table, name: str, place: str) -> list[str]:
    return [_text(value) for value in _column(table, name, place)]


def _text(value: object) -> str:
    """A label as a text: 1, 1.0 and "1" are one label."""
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if isinstance(value, int | float | np.number) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def _numbers(table: Table, name: str, place: str) -> np.ndarray:
    values = np.empty(len(_column(table, name, place)))
    for row, value in enumerate(table[name]):
        number = _number(value)
        if number is None:
            raise UserError(
                f"{place}, example {row + 1}: '{name}' is '{str(value)[:40]}', which is no number "
                "in [0, 1]"
            )
        values[row] = number
    return values


def _number(value: object) -> float | None:
    text = str(value).strip().lower()
    if text in TRUE or text in FALSE:
        return TRUE.get(text, 0.0)
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number <= 1 else None


def _thresholded(table: Table, columns: Columns, place: str) -> tuple[np.ndarray, str]:
    labels, answers = _over_threshold(table, columns, place)
    label = columns.label or _usual(table, LABEL)
    return (labels != answers).astype(float), (
        f"error where '{columns.score}' >= {_threshold(columns):g} is not '{label}'"
    )


def _threshold(columns: Columns) -> float:
    return 0.5 if columns.threshold is None else columns.threshold


def _over_threshold(table: Table, columns: Columns, place: str) -> tuple[np.ndarray, np.ndarray]:
    """Labels, and whether the score is at least the threshold, each 0 or 1."""
    label = columns.label or _usual(table, LABEL)
    if label is None:
        raise UserError(f"{place} has no column of labels: name it with --label")
    labels = _numbers(table, label, place)
    if not np.isin(labels, (0.0, 1.0)).all():
        raise UserError(f"{place}: '{label}' has labels other than 0 and 1, which --score needs")
    scores = _numbers(table, str(columns.score), place)
    return labels, (scores >= _threshold(columns)).astype(float)
