"""What the benchmark of accelerators would run on one runs here, on the processor at tiny sizes."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="the extra attlas[torch] is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from benchmarks import accelerator_audit
from benchmarks.attention_problems import feasible
from benchmarks.removal_products import Shape, removal_operations

from attlas.solvers.attention_svm import attention_svm_batch


def test_every_case_runs_and_both_sides_agree(capsys):
    limit, svm, *removals = accelerator_audit.cases("cpu", 8, 4, 64, 1)
    assert limit["precisions"]["highest"]["teraflops"] > 0
    (row,) = svm["peers"].values()
    assert row["difference"] <= 1e-8
    assert len(removals) == 2
    for case in removals:
        (row,) = case["peers"].values()
        assert row["difference"] <= 1e-4
        assert 0 < case["teraflops"] < case["loop_teraflops"] * row["ratio"]
        assert case["share_of_a_large_product"] > 0
    assert capsys.readouterr().out.count('"case"') == 4


def test_norms_of_the_peer_are_those_of_other_numbers_where_a_constraint_moves():
    X, z, tokens = (a[None] for a in feasible(3, 5, 6, 4))
    exact = attention_svm_batch(X, z, tokens, 2.0).certificate["norm_upper"]
    np.testing.assert_allclose(accelerator_audit.least_norms(X, z, tokens, "cpu"), exact, rtol=1e-9)
    moved = X.copy()
    moved[0, :, 0] *= 1.05
    other = accelerator_audit.least_norms(moved, z, tokens, "cpu")
    assert np.isnan(other[0]) or abs(other[0] / exact[0] - 1) > 1e-6


def test_operations_count_the_products_behind_the_removed_head():
    # One head of width 2 over 4 tokens: 4 products of 4 x 2 x 2 and two maps of 4 x 2 x 2.
    shape = Shape(2, 1, 1, 2, ((2, 3), (3, 2)), 5, 1, 4)
    attention, feedforward, readout = 6 * 32, 2 * 48, 80
    least, passes = removal_operations(shape, 10)
    assert least == 10 * (feedforward + 0.5 * (attention + feedforward) + readout)
    assert passes == 10 * (2 * (attention + feedforward) + readout)
