"""Public statements of the benchmark: how many, whether they hold, and how they are searched."""

import jax
import pytest
from benchmarks.statements.__main__ import statements
from benchmarks.statements.methods import HALVES

import attlas as at
from attlas.verify.challenge import challenge

with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
    # They are written as users write.
    ALL = {claim.name: (truth, claim) for half in HALVES for truth, claim in statements(half)}
TRUE = [pytest.param(claim, id=name) for name, (truth, claim) in ALL.items() if truth]


@pytest.fixture(autouse=True)
def _promotion_of_users():
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def test_there_are_enough_of_each_kind_and_in_each_half():
    false = {half: sum(not truth for truth, _ in statements(half)) for half in HALVES}
    assert sum(false.values()) >= 60
    assert len(TRUE) >= 40
    assert min(false.values()) >= 25


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["Hypothesis", "differential evolution", "CMA-ES", "L-BFGS-B"])
def test_a_peer_finds_what_is_false_and_is_stopped_where_a_statement_is_true(name):
    if name == "CMA-ES":
        pytest.importorskip("cma")
    peers = pytest.importorskip("benchmarks.statements.peers")
    false = peers.searched(name, ALL["false_norms/norm-of-the-reversed-product"][1], 60.0)
    assert false.found
    true = peers.searched(name, ALL["true_learning/swish"][1], 0.2)
    assert not true.found
    assert true.evaluations > 1


@pytest.mark.thorough
@pytest.mark.parametrize("claim", TRUE)
def test_a_true_statement_stands_and_its_control_falls(claim):
    report = at.check(claim, challenge=0)
    assert not report.defects, str(report)
    assert not challenge(claim, seed=1, effort=0.5).violated
