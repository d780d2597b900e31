"""Guarantees pay for every choice: models, groups, comparisons, looks."""

import math
from pathlib import Path

import numpy as np
import pytest

from attlas.bounds.generalisation.held_out_bound import held_out_bound
from attlas.certificates.certify import certify
from attlas.certificates.predictions import predictions_of
from attlas.core.errors import UserError

RNG = np.random.default_rng(0)
OLD = (RNG.random(2000) < 0.08) * 1.0
NEW = OLD * (RNG.random(2000) < 0.5)
GROUPS = ["a", "b"] * 1000


def test_one_model_has_the_exact_limit():
    result = certify(OLD, at_most=0.2)
    assert result.models[0].bound.bound == held_out_bound(int(OLD.sum()), 2000, 0.05).bound
    assert (result.passes, result.comparisons) == (True, ())
    assert certify(OLD, at_most=0.05).passes is False
    assert certify(OLD).passes is None


def test_models_and_groups_share_delta():
    several = [predictions_of(n, x, groups=GROUPS) for n, x in (("old", OLD), ("new", NEW))]
    result = certify(several)
    assert len(result.guarantees) == 2 * 3
    shares = [guarantee.bound.delta for guarantee in result.guarantees]
    assert math.fsum(shares) <= 0.05
    assert min(shares) > 0.05 / 6 - 1e-12
    rows = np.array(GROUPS) == "b"
    wanted = held_out_bound(int(NEW[rows].sum()), 1000, shares[0]).bound
    assert result.guarantees[-1].bound.bound == wanted
    assert (result.guarantees[-1].model, result.guarantees[-1].group) == ("new", "b")


@pytest.mark.thorough
def test_the_best_of_twenty_equal_models_is_paid_for():
    rng = np.random.default_rng(5)
    risk, missed, unpaid = 0.1, 0, 0
    for _ in range(60):
        losses = {str(k): (rng.random(300) < risk) * 1.0 for k in range(20)}
        bounds = [model.bound.bound for model in certify(losses).models]
        missed += min(bounds) < risk
        least = min(int(x.sum()) for x in losses.values())
        unpaid += held_out_bound(least, 300, 0.05).bound < risk
    assert missed <= 6
    assert unpaid > 20


def test_comparisons_are_paired_and_name_how_many_more_examples_decide():
    (compared,) = certify({"old": OLD, "new": NEW}).comparisons
    assert (compared.baseline, compared.model, compared.verdict) == ("old", "new", "better")
    assert 0 < compared.low < compared.difference < compared.high
    assert compared.more_examples == 0
    (back,) = certify({"old": OLD, "new": NEW}, baseline="new").comparisons
    assert (back.verdict, back.low) == ("worse", -compared.high)
    close = NEW.copy()
    close[:1] = 1 - close[:1]
    (open_,) = certify({"new": NEW, "close": close}).comparisons
    assert open_.verdict == "undecided"
    assert open_.more_examples > 2000
    (equal,) = certify({"new": NEW, "same": NEW.copy()}).comparisons
    assert equal.more_examples == math.inf


def test_models_in_order_are_tested_until_one_fails():
    losses = {"a": NEW, "b": OLD, "c": NEW * 0}
    result = certify(losses, at_most=0.06, in_order=True)
    assert [model.model for model in result.models] == ["a", "b"]
    assert [model.passes for model in result.models] == [True, False]
    assert result.models[0].bound.delta == 0.05
    assert result.passes


def test_a_sequence_costs_something():
    assert certify(OLD, sequential=True).models[0].bound.bound > certify(OLD).models[0].bound.bound


@pytest.mark.parametrize(
    ("losses", "options", "said"),
    [
        ([0, 2], {}, "loss 2 of example 2"),
        ({"a": [0.0], "b": [0.0, 1.0]}, {}, "b has 2 examples and a has 1"),
        ([0.0], {"at_most": 0.0}, "at_most = 0.0"),
        ([0.0], {"in_order": True}, "give at_most, too"),
        ([0.0], {"baseline": "other"}, "baseline 'other' is no model"),
        ([0.0], {"delta": 1.0}, "delta = 1.0"),
        ({}, {}, "no models"),
        ([0.0] * 12, {"groups": ["a"] * 11 + ["b"]}, "group 'b' has 1 examples"),
        ([0.0] * 12, {"groups": ["a"] * 11}, "11 groups for 12 losses"),
    ],
)
def test_bad_input_is_one_line(losses, options, said):
    with pytest.raises(UserError, match=said):
        certify(losses, **options)


@pytest.mark.parametrize("as_path", [str, Path])
def test_paths_of_predictions_are_certified_as_the_command_does(tmp_path, as_path):
    files = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for wrong, file in zip((1, 3), files, strict=True):
        rows = [f"{n},a,{'b' if n < wrong else 'a'}" for n in range(60)]
        file.write_text("\n".join(["id,label,prediction", *rows]))
    result = certify([as_path(file) for file in files])
    assert [model.model for model in result.models] == ["one", "two"]
    assert [model.bound.empirical * 60 for model in result.models] == pytest.approx([1, 3])
    expected = certify([1] + 59 * [0]).models[0].bound.bound
    assert certify(as_path(files[0])).models[0].bound.bound == expected
    with pytest.raises(UserError, match=r"is a folder, of a model perhaps: .* by `at.certify"):
        certify(as_path(tmp_path))
