"""Measures beside the mean loss: their limits, shares, gates and refusals."""

import json
import math

import jsonschema
import numpy as np
import pytest

from attlas.bounds.generalisation.calibration_limit import calibration_upper_limit
from attlas.bounds.generalisation.f_score_limit import f_score_lower_limit
from attlas.bounds.generalisation.mean_bound import mean_bound
from attlas.certificates.certify import certify
from attlas.certificates.columns import Columns
from attlas.certificates.document import (
    certification_json,
    certification_schema,
    measure_rows,
    sentences,
)
from attlas.certificates.measures import measures_of
from attlas.certificates.prediction_file import table_predictions
from attlas.core.errors import UserError

RNG = np.random.default_rng(3)
SCORE = RNG.random(1200)
SPAM = (RNG.random(1200) < SCORE) * 1
TABLE = {
    "label": ["spam" if one else "ham" for one in SPAM],
    "prediction": ["spam" if p >= 0.5 else "ham" for p in SCORE],
    "sure": np.maximum(SCORE, 1 - SCORE),
    "p": SCORE,
    "spam": SPAM,
    "half": ["a", "b"] * 600,
}


def _model(name="mine", **columns):
    return table_predictions(TABLE, Columns(**columns), name, "mine.csv")


def test_each_measure_has_the_limit_of_its_formula_at_its_share():
    result = certify(_model(f_score=("spam",), probability="sure"))
    f_score, brier, calibration = result.measures
    share = result.guarantees[0].bound.delta
    assert {each.share for each in result.measures} == {share}
    assert 4 * share <= 0.05 < 4.000001 * share
    predicted = SCORE >= 0.5
    both, errors = int((predicted & (SPAM == 1)).sum()), int((predicted != (SPAM == 1)).sum())
    assert f_score.limit.limit == f_score_lower_limit(both, errors, share)
    assert math.isclose(f_score.limit.measured, 2 * both / (2 * both + errors))
    right = (predicted == (SPAM == 1)) * 1.0
    sure = TABLE["sure"]
    assert brier.limit.limit == mean_bound((sure - right) ** 2, share).bound
    assert calibration.limit.limit == calibration_upper_limit(sure, right, share).limit


def test_of_a_score_the_event_is_the_label():
    result = certify(_model(score="p", label="spam", probability="p", f_score=("1",)))
    of_score = {each.measure: each.limit for each in result.measures}
    share = result.guarantees[0].bound.delta
    wanted = calibration_upper_limit(SCORE, SPAM * 1.0, share)
    assert of_score["calibration error"].limit == wanted.limit
    assert of_score["calibration error"].noise == wanted.noise > 0
    assert of_score["F1 of '1'"].limit == certify(
        _model(probability="sure", f_score=("spam",))
    ).measures[0].limit.limit  # fmt: skip


def test_groups_and_models_share_delta_with_measures():
    several = [_model(name, f_score=("spam",), group="half") for name in ("a", "b")]
    result = certify(several)
    assert (len(result.guarantees), len(result.measures)) == (6, 6)
    shares = [g.bound.delta for g in result.guarantees] + [m.share for m in result.measures]
    assert 0.0499 < math.fsum(shares) <= 0.05
    document = json.loads(json.dumps(certification_json(result), allow_nan=False))
    jsonschema.validate(document, certification_schema())
    headings, rows = measure_rows(result)
    assert {len(row) for row in rows} == {len(headings)}
    assert "At once, the F1 of 'spam' of 'b' is at least" in " ".join(sentences(result))


def test_a_score_is_a_gate():
    model = _model(f_score=("spam", "ham"))
    low = min(measure.limit.limit for measure in certify(model).measures)
    assert certify(model, at_least=low - 1e-6).passes is True
    assert certify(model, at_least=low + 1e-6).passes is False
    assert certify(model, at_least=low - 1e-6, at_most=0.1).passes is False
    assert certify(model, at_least=low - 1e-6, in_order=True).passes is True
    jsonschema.validate(certification_json(certify(model, at_least=0.5)), certification_schema())


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ({"f_score": ("eggs",)}, {}, "no example of class 'eggs': its labels are ham, spam"),
        ({"f_score": ("spam",), "prediction": "no"}, {}, "no column 'no'"),
        ({"loss": "p", "probability": "sure"}, {}, "certify errors"),
        ({"probability": "label"}, {}, "no number in"),
        ({"probability": "sure"}, {"sequential": True}, "leave --sequential or --calibration out"),
        ({"f_score": ("spam",)}, {"share": 0.5}, "a ledger prices counts of errors"),
        ({"f_score": ("spam",)}, {"at_least": 1.5}, "at_least = 1.5"),
        ({}, {"at_least": 0.5}, "name a class with --f-score"),
    ],
)
def test_bad_input_is_one_line(columns, options, said):
    with pytest.raises(UserError, match=said):
        certify(_model(**columns), **options)


def test_a_group_without_the_class_is_refused():
    table = {**TABLE, "half": ["a" if one else "b" for one in (SPAM | (SCORE >= 0.5))]}
    model = table_predictions(table, Columns(f_score=("spam",), group="half"), "mine", "mine.csv")
    with pytest.raises(UserError, match="group 'b' has no example for F1 of 'spam'"):
        certify(model)


@pytest.mark.parametrize("name", ["label", "prediction", "p"])
def test_columns_of_several_lengths_are_refused(name):
    table = {"label": ["a", "b"], "prediction": ["a", "a"], "p": [0.5, 1.0]}
    table[name] = 2 * table[name]
    with pytest.raises(UserError, match="has columns of several lengths"):
        measures_of(table, Columns(probability="p", f_score=("a",)), np.zeros(2), "a.csv")
