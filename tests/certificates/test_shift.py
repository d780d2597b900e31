"""The shift test: its p-values by other means, its level, and what it says."""

import numpy as np
import pytest
from scipy import stats

from attlas.certificates.columns import Columns
from attlas.certificates.shift import MOST_CELLS, answer_shift, number_shift, shift_checks
from attlas.core.errors import UserError


def test_p_values_are_those_of_permutations():
    rng = np.random.default_rng(0)
    X, Y = rng.random(60), rng.random(80) ** 1.2
    wanted = stats.permutation_test(
        (X, Y), stats.energy_distance, vectorized=False, n_resamples=1500, alternative="greater",
        rng=rng,
    ).pvalue  # fmt: skip
    assert 0.01 < wanted < 0.9
    assert abs(number_shift(X, Y) - wanted) < 5 * np.sqrt(2 * wanted * (1 - wanted) / 1000)
    # With answers a and b alone the sum decides as Fisher's exact test does, of equal samples.
    a, b = ["a"] * 30 + ["b"] * 70, ["a"] * 42 + ["b"] * 58
    exact = stats.fisher_exact([[30, 70], [42, 58]]).pvalue
    assert abs(answer_shift(a, b) - exact) < 5 * np.sqrt(exact * (1 - exact) / 1000)


@pytest.mark.thorough
@pytest.mark.parametrize("many", [40, 3000])
def test_it_errs_at_its_level_and_sees_a_shift(many):
    rng = np.random.default_rng(1)
    times = 200 if many < MOST_CELLS else 20
    values = [number_shift(rng.random(many), rng.random(many // 2)) for _ in range(times)]
    share = np.mean(np.array(values) <= 0.1)
    assert share <= 0.1 + 3 * np.sqrt(0.09 / times)
    assert np.mean(values) > 0.3
    assert number_shift(rng.random(many), 0.7 * rng.random(many)) < 0.05


def test_rare_answers_count_together():
    rng = np.random.default_rng(2)
    X, Y = ([f"{k}" for k in rng.integers(0, 10**6, 3000)] for _ in range(2))
    assert answer_shift(X, Y) > 0.01
    assert answer_shift([*X, *["no answer"] * 300], Y) == 0.001


def test_an_empty_sample_is_refused():
    with pytest.raises(UserError, match="give at least one of each"):
        answer_shift([], ["a"])


def test_each_named_column_is_compared_at_one_level():
    rng = np.random.default_rng(3)
    here = {"p": rng.random(200), "sure": rng.random(200), "prediction": ["a", "b"] * 100}
    there = {"p": rng.random(100), "sure": rng.random(100) / 2, "prediction": ["b", "a"] * 50}
    checks = shift_checks(here, there, Columns(probability="sure"), "a.csv", "b.csv")
    assert [check.holds for check in checks] == [False, True]
    assert "'sure' shifts from a.csv to b.csv" in checks[0].text
    assert "no shift of 'prediction' is seen" in checks[1].text
    (of_score,) = shift_checks(here, there, Columns(score="p"), "a.csv", "b.csv")
    assert of_score.holds


@pytest.mark.parametrize(
    ("table", "other", "columns", "said"),
    [
        ({"p": [0.5]}, {"q": [0.5]}, Columns(score="p"), "b.csv has no column 'p'"),
        ({"p": [0.5]}, {"p": [0.5]}, Columns(), "a.csv has no column that --shift compares"),
        ({"p": [0.5]}, {"p": [2]}, Columns(score="p"), "b.csv, example 1"),
        ({"p": [0.5]}, {"p": []}, Columns(score="p"), "b.csv has no rows"),
        ({"prediction": []}, {"prediction": ["a"]}, Columns(), "a.csv has no rows"),
    ],
)
def test_bad_input_is_one_line(table, other, columns, said):
    with pytest.raises(UserError, match=said):
        shift_checks(table, other, columns, "a.csv", "b.csv")
