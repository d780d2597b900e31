"""Level deep puts its parts together: removals, scores, and numbers of the model."""

import numpy as np
import pytest
from random_transformer import random_transformer

from attlas.audit.deep_level.ablation import ablate_heads
from attlas.audit.deep_level.deep_level import CURVATURE_QUANTITIES, DEEP_QUANTITIES, deep_level
from attlas.audit.deep_level.head_importance import head_importance
from attlas.audit.sequence_loss import judged_batch

MODEL = random_transformer(3)
DRAW = np.random.default_rng(3)
BATCH = judged_batch(MODEL, [DRAW.integers(11, size=size) for size in (5, 7, 4)])


@pytest.fixture(scope="module")
def found():
    return deep_level(MODEL, BATCH, curvature=False)


@pytest.mark.thorough
def test_removals_are_mean_changes_in_their_intervals(found):
    table, facts = found
    ablation = ablate_heads(MODEL, BATCH)
    change = (ablation.removed - ablation.base).mean(axis=-1)
    for place, name in enumerate(("zero", "mean", "uniform")):
        np.testing.assert_allclose(table[f"removal_{name}"], change[:, :, place], rtol=1e-10)
        assert np.all(table[f"removal_{name}_low"] <= table[f"removal_{name}_high"])
    assert np.isclose(facts["loss"], ablation.base.mean(), rtol=1e-12)
    assert facts["loss_low"] <= facts["loss"] <= facts["loss_high"]


def test_scores_have_length_one_within_a_layer(found):
    table, facts = found
    np.testing.assert_allclose(np.linalg.norm(table.michel_score, axis=1), 1, rtol=1e-12)
    slopes = head_importance(MODEL, BATCH).mean(axis=0)
    assert np.all(np.argsort(slopes, axis=1) == np.argsort(table.michel_score.values, axis=1))
    assert -1 <= facts["rank_correlation"] <= 1


def test_curvature_is_left_out_and_everything_else_described(found):
    table, _ = found
    assert {quantity.name for quantity in DEEP_QUANTITIES} <= set(table.data_vars)
    assert not {quantity.name for quantity in CURVATURE_QUANTITIES} & set(table.data_vars)
    assert table.michel_score.attrs["standing"] == "heuristic"
