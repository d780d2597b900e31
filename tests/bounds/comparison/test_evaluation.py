"""Bounds from examples: counted errors, a file that decodes, what is refused."""

import math

import numpy as np
import pytest

from attlas.bounds.comparison.compare import compare_bounds
from attlas.bounds.comparison.evaluation import LEVELS, Evaluation, evaluate
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights, read_weights
from attlas.bounds.generalisation.held_out_bound import held_out_bound
from attlas.bounds.generalisation.occam_code import decode, encode
from attlas.core.errors import UserError

RNG = np.random.default_rng(0)
HEAD = Head((RNG.normal(size=(3, 2)), RNG.normal(size=(3, 2))), np.eye(3), np.eye(3))
WEIGHTS = read_weights(TransformerWeights(((HEAD,),), np.array([1.0, -0.51, 0.26])))
X = RNG.normal(size=(900, 1, 3))
# the readout in full decides the labels, so that a coarse file errs
Y = np.sign(X[:, 0] @ WEIGHTS.readout)
FLIPPED = np.where(np.arange(900) % 10 == 9, -Y, Y)


def sign(weights, X):
    return np.sign(X[:, 0] @ weights.readout)


def own(**changes):
    known = {"predict": sign, "training": (X[:600], Y[:600]), "held_out": (X[600:], FLIPPED[600:])}
    return Evaluation(**(known | changes))


def test_errors_are_counted_and_the_decoded_weights_are_judged():
    found = evaluate(WEIGHTS, own(), 600, 0.05)
    assert found.training_risk == 0
    assert found.held_out == held_out_bound(30, 300, 0.05)
    leaves = [*WEIGHTS.layers[0][0].query_key, np.eye(3), np.eye(3), WEIGHTS.readout]
    (coded,) = found.bounds
    each = {}
    for levels in LEVELS:
        file = encode(leaves, levels)
        each[8 * len(file)] = np.mean(np.sign(X[:600, 0] @ decode(file)[-1]) != Y[:600])
    # the weights as they are make no error
    assert coded.empirical == each[round(coded.complexity / math.log(2))] > 0


@pytest.mark.thorough
def test_all_stand_in_the_table_with_the_true_gap_and_their_sizes():
    table = compare_bounds(WEIGHTS, X[:600], 600, 0.05, evaluation=own())
    coded, tested = table.entries[-2:]
    assert (coded.name, tested.name) == ("compression, exact binomial", "exact binomial, held-out")
    np.testing.assert_allclose(table.true_gap, 0.1, rtol=1e-12)
    assert table.best is tested
    assert table.best_gap <= 1
    assert all(e.samples_until_nonvacuous >= 1 for e in (coded, tested))
    np.testing.assert_allclose(table.delta, 0.15, rtol=1e-12)
    alone = compare_bounds(WEIGHTS, X[:600], 600, 0.05, evaluation=own(held_out=None))
    assert alone.entries[-1].name == coded.name
    assert math.isnan(alone.true_gap)


@pytest.mark.parametrize(
    ("changes", "m", "message"),
    [
        ({}, 599, "evaluation.training has 600 examples and m = 599"),
        ({"held_out": (X[590:], Y[590:])}, 600, "row 0 is in the training set, 10 of 310 are"),
        ({"training": X}, 600, "evaluation.training is not a pair"),
        ({"training": (X[:600], Y)}, 600, r"labels \(900,\) do not fit"),
        ({"held_out": (X[:0], Y[:0])}, 600, "evaluation.held_out: inputs"),
        ({"predict": lambda weights, X: X}, 600, r"predict returns \(600, 1, 3\) for labels"),
    ],
)
def test_what_is_refused(changes, m, message):
    with pytest.raises(UserError, match=message):
        evaluate(WEIGHTS, own(**changes), m, 0.05)


def test_errors_are_not_given_twice():
    with pytest.raises(UserError, match="leave out held_out and training_risk"):
        compare_bounds(WEIGHTS, X[:600], 600, 0.05, evaluation=own(), training_risk=0.1)
