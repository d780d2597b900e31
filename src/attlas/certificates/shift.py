"""Whether two samples of a model's answers look alike: a permutation test at its exact level.

A certificate holds for examples of the law that its own came from. Answers need no labels, so that
those on other examples can be compared with those on the test set.
"""

from collections.abc import Sequence

import numpy as np

from attlas.certificates.checks import ORDERS, SUSPICIOUS, Check
from attlas.certificates.columns import (
    PREDICTION,
    Columns,
    Table,
    numbers_of,
    texts_of,
)
from attlas.core.arrays import ArrayInput, read_arrays
from attlas.core.errors import UserError, refuse_unreadable

MOST_CELLS = 2**10
"""Of numbers next to each other, or of answers: rarer ones are counted together."""


def number_shift(numbers: ArrayInput, others: ArrayInput) -> float:
    r"""The p-value of a permutation test of the energy distance of two samples of numbers.

    $$2\int(F_n-G_m)^2\,dx,\qquad p=\frac{1+\#\{\text{orders with a distance as large}\}}{1+O}$$

    Args:
        numbers: sample of shape [n].
        others: sample of shape [m].

    Returns:
        A number that is at most a with probability at most a if both are one law's. Of more than
        `MOST_CELLS` different numbers, neighbours in the order of both samples are taken together.

    Source: Szekely and Rizzo (2004).

    Examples:
        >>> X = np.arange(100) / 100
        >>> number_shift(X, X), number_shift(X, X / 2)
        (1.0, 0.001)
    """
    X, Y = read_arrays("n, m", np.float64, numbers=numbers, others=others)
    values, place, counts = np.unique(
        np.concatenate([X, Y]), return_inverse=True, return_counts=True
    )
    if values.size > MOST_CELLS:
        cell = (np.cumsum(counts) - 1) * MOST_CELLS // (X.size + Y.size)
        _, first, cell = np.unique(cell, return_index=True, return_inverse=True)
        values, place = values[first], cell[place]
    here, both = _counts(place, X.size)
    return _value(here, both, np.append(np.diff(values), 0.0), ordered=True)


@refuse_unreadable
def answer_shift(answers: Sequence[str], others: Sequence[str]) -> float:
    r"""The p-value of a permutation test of the shares of answers in two samples.

    $$\sum_a(\hat p_a-\hat q_a)^2,\qquad p=\frac{1+\#\{\text{orders with a sum as large}\}}{1+O}$$

    Args:
        answers: texts that the model gave on n examples.
        others: texts that it gave on m others.

    Returns:
        A number that is at most a with probability at most a if both are one law's. All but the
        `MOST_CELLS` most frequent answers of both samples are one answer.

    Raises:
        UserError: if a sample is empty.

    Examples:
        >>> answer_shift(["a", "b"] * 50, ["a"] * 100)
        0.001
    """
    if not answers or not others:
        raise UserError("answers of one sample are none: give at least one of each")
    values, place, counts = np.unique(
        np.array([*answers, *others], dtype=object), return_inverse=True, return_counts=True
    )
    if values.size > MOST_CELLS:
        rank = np.empty(values.size, dtype=int)
        rank[np.argsort(-counts, kind="stable")] = np.arange(values.size)
        place = np.minimum(rank, MOST_CELLS)[place]
    here, both = _counts(place, len(answers))
    return _value(here, both, np.ones(both.size), ordered=False)


def _counts(place: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Counts in each cell, of the first sample and of both."""
    both = np.bincount(place)
    return np.bincount(place[:first], minlength=both.size), both


def _value(here: np.ndarray, both: np.ndarray, weights: np.ndarray, *, ordered: bool) -> float:
    """The p-value; orders of both samples give the first one hypergeometric counts."""
    n, m = int(here.sum()), int(both.sum() - here.sum())
    # Draws of one seed for all samples would have the level on average over seeds only.
    rng = np.random.default_rng([*here.tolist(), *both.tolist()])
    drawn = rng.multivariate_hypergeometric(both, n, size=ORDERS, method="marginals")
    # Whole numbers, so that equal distances are equal: n m (p - q) = (n + m) here - n both.
    differences = (n + m) * np.vstack([here, drawn]) - n * both
    if ordered:
        differences = np.cumsum(differences, axis=1)
    distances = (differences / (n * m)) ** 2 @ weights
    larger = int((distances[1:] >= distances[0] * (1 - 2.0**-40)).sum())
    return (1 + larger) / (1 + ORDERS)


@refuse_unreadable
def shift_checks(
    table: Table, other: Table, columns: Columns, place: str, elsewhere: str
) -> tuple[Check, ...]:
    """Whether a model's answers on other examples look like those on the test set.

    Args:
        table: columns of the test set.
        other: columns of the other examples; labels are not needed.
        columns: named ones; scores, probabilities and predictions are compared.
        place: the file of the test set, for messages.
        elsewhere: the file of the others.

    Returns:
        A check for each column, at one level together.

    Raises:
        UserError: if the tables share no such column.

    Examples:
        >>> here, there = {"prediction": ["a", "b"] * 50}, {"prediction": ["a"] * 100}
        >>> (check,) = shift_checks(here, there, Columns(), "test.csv", "new.csv")
        >>> check.holds, check.text[:44]
        (False, "'prediction' shifts from test.csv to new.csv")
    """
    numbers = [
        name
        for name in dict.fromkeys((columns.score, columns.probability, columns.loss))
        if name is not None
    ]
    usual = columns.prediction or next((name for name in PREDICTION if name in table), None)
    answers = [usual] if usual is not None and columns.score is None else []
    for name in (*numbers, *answers):
        if name not in other:
            raise UserError(
                f"{elsewhere} has no column '{name}', which --shift compares: it has "
                f"{', '.join(sorted(other))[:200]}"
            )
    for file, sample in ((place, table), (elsewhere, other)):
        if any(name in sample and not len(sample[name]) for name in (*numbers, *answers)):
            raise UserError(f"{file} has no rows, which --shift compares: give at least one")
    if not numbers and not answers:
        raise UserError(
            f"{place} has no column that --shift compares: name one with --prediction, --score or "
            "--calibration"
        )
    level = SUSPICIOUS / (len(numbers) + len(answers))
    places = (place, elsewhere)
    return (
        *(_of_numbers(table, other, name, places, level) for name in numbers),
        *(_of_answers(table, other, name, places, level) for name in answers),
    )


def _of_numbers(
    table: Table, other: Table, name: str, places: tuple[str, str], level: float
) -> Check:
    X, Y = numbers_of(table, name, places[0]), numbers_of(other, name, places[1])
    means = f"mean {X.mean():.3g} here, {Y.mean():.3g} there"
    return _check(name, places, number_shift(X, Y), level, means)


def _of_answers(
    table: Table, other: Table, name: str, places: tuple[str, str], level: float
) -> Check:
    X, Y = texts_of(table, name, (), places[0]), texts_of(other, name, (), places[1])
    shares = {
        answer: (X.count(answer) / len(X), Y.count(answer) / len(Y)) for answer in _most(X, Y)
    }
    answer = max(shares, key=lambda text: abs(shares[text][0] - shares[text][1]))
    here, there = shares[answer]
    text = f"'{answer:.40}' is {100 * here:.3g} % here, {100 * there:.3g} % there"
    return _check(name, places, answer_shift(X, Y), level, text)


def _most(X: Sequence[str], Y: Sequence[str]) -> list[str]:
    """The most frequent answers of both samples."""
    values, counts = np.unique(np.array([*X, *Y], dtype=object), return_counts=True)
    return list(values[np.argsort(-counts, kind="stable")[:20]])


def _check(name: str, places: tuple[str, str], p: float, level: float, seen: str) -> Check:
    here, there = places
    evidence = f"(permutation test, p = {p:.3f}; {seen})"
    if p > level:
        return Check(
            "shift",
            True,
            f"no shift of '{name}' is seen from {here} to {there} {evidence}, a small one may be",
        )
    return Check(
        "shift",
        False,
        f"'{name}' shifts from {here} to {there} {evidence}: the certificate does not hold there",
    )
