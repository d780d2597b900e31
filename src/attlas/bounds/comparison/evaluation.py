"""Errors of a trained model on labelled examples, and the bounds that follow from them alone."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from attlas.bounds.comparison.certificate_entries import Certificates
from attlas.bounds.comparison.transformer_weights import TransformerWeights
from attlas.bounds.generalisation.compression_bound import compression_bound
from attlas.bounds.generalisation.disjoint_rows import require_disjoint
from attlas.bounds.generalisation.held_out_bound import held_out_bound
from attlas.bounds.generalisation.occam_code import decode, encode
from attlas.bounds.generalisation.risk_bound import RiskBound
from attlas.core.arrays import ArrayInput, read_array
from attlas.core.errors import UserError

LEVELS = (3, 15, 63, 255)
"""Of the files that are written; levels are in the file, so that the best may be taken."""


class Evaluation(NamedTuple):
    """A model with the examples that it was trained on, and others.

    Attributes:
        predict: from weights and inputs (n, T, d) to n labels.
        training: inputs and labels of all m training examples.
        held_out: inputs and labels that no choice has seen, or None.
    """

    predict: Callable[[TransformerWeights, np.ndarray], Any]
    training: tuple[ArrayInput, ArrayInput]
    held_out: tuple[ArrayInput, ArrayInput] | None = None


def evaluate(
    weights: TransformerWeights, evaluation: Evaluation, m: int, delta: float
) -> Certificates:
    r"""Count errors, write the weights as files that decode, and bound both.

    Args:
        delta: probability of failure of each bound.

    Returns:
        The best compression bound of four precisions, with the errors of the decoded weights; the
        exact binomial bound where examples are held out; the training error.

    Raises:
        UserError: if examples are not m, do not fit, are in both sets or get no label.

    Examples:
        >>> from attlas.bounds.comparison.transformer_weights import Head
        >>> weights = TransformerWeights(((Head(*[np.eye(2)] * 3),),), np.ones(2))
        >>> def sign(weights, X):
        ...     return np.sign(X[:, 0] @ weights.readout)
        >>> X = np.array([[[1.0, 0.0]], [[0.0, -1.0]], [[0.5, 0.5]]])
        >>> found = evaluate(weights, Evaluation(sign, (X[:2], [1, -1]), (X[2:], [-1])), 2, 0.1)
        >>> found.training_risk, found.held_out.empirical, found.bounds[0].empirical
        (0.0, 1.0, 0.0)
    """
    if callable(getattr(evaluation.predict, "named_parameters", None)):
        raise UserError(
            "evaluation.predict is a torch.nn.Module: give a function of weights and inputs, which "
            "returns labels of the weights that it is given"
        )
    X, y = _examples(evaluation.training, "training")
    if len(y) != m:
        raise UserError(f"evaluation.training has {len(y)} examples and m = {m}: give all of them")
    wrong = _errors(evaluation, weights, X, y)
    coded = _best_file(evaluation, weights, X, y, delta)
    tested = None
    if evaluation.held_out is not None:
        Z, z = _examples(evaluation.held_out, "held_out")
        if Z.shape[1:] == X.shape[1:]:
            require_disjoint(X, Z)
        tested = held_out_bound(_errors(evaluation, weights, Z, z), len(z), delta)
    return Certificates((coded,), tested, wrong / m)


def _examples(pair: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    if not (isinstance(pair, tuple | list) and len(pair) == 2):
        raise UserError(f"evaluation.{name} is not a pair: give inputs and labels")
    X, y = read_array(pair[0], f"{name} inputs"), read_array(pair[1], f"{name} labels")
    if X.ndim < 1 or y.ndim != 1 or len(X) != len(y) or len(y) == 0:
        raise UserError(
            f"evaluation.{name}: inputs {X.shape} and labels {y.shape} do not fit: give n of each"
        )
    return X, y


def _errors(evaluation: Evaluation, weights: Any, X: np.ndarray, y: np.ndarray) -> int:
    guess = read_array(evaluation.predict(weights, X), "what predict returns")
    if guess.shape != y.shape:
        raise UserError(f"predict returns {guess.shape} for labels {y.shape}: give one per example")
    return int(np.sum(guess != y))


def _best_file(
    evaluation: Evaluation, weights: TransformerWeights, X: np.ndarray, y: np.ndarray, delta: float
) -> RiskBound:
    leaves, structure = jax.tree.flatten(weights)
    bounds = []
    for levels in LEVELS:
        file = encode(leaves, levels)
        decoded = jax.tree.unflatten(structure, decode(file))
        loss = _errors(evaluation, decoded, X, y) / len(y)
        bounds.append(compression_bound(loss, len(y), 8 * len(file), delta, form="binomial"))
    return min(bounds, key=lambda bound: bound.bound)
