"""Level deep puts its parts together: removals, scores, and numbers of the model."""

import dataclasses

import numpy as np
import pytest
from random_transformer import random_transformer

from attlas.audit.deep_level.ablation import ROUNDING, ablate_heads, perturbed_weights
from attlas.audit.deep_level.deep_level import CURVATURE_QUANTITIES, DEEP_QUANTITIES, deep_level
from attlas.audit.deep_level.head_importance import head_importance
from attlas.audit.sequence_loss import judged_batch
from attlas.core.errors import UserError
from attlas.transformers.canonical import Readout

MODEL = random_transformer(3)
DRAW = np.random.default_rng(3)
SEQUENCES = [DRAW.integers(11, size=size) for size in (5, 7, 4)]
BATCH = judged_batch(MODEL, SEQUENCES)


@pytest.fixture(scope="module")
def found():
    return deep_level(MODEL, BATCH, curvature=False)


@pytest.mark.thorough
def test_removals_are_mean_changes_in_their_intervals(found):
    table, facts, _ = found
    ablation = ablate_heads(MODEL, BATCH)
    change = (ablation.ablated - ablation.base).mean(axis=-1)
    for place, name in enumerate(("zero", "mean", "uniform")):
        np.testing.assert_allclose(table[f"removal_{name}"], change[:, :, place], rtol=1e-10)
        assert np.all(table[f"removal_{name}_low"] <= table[f"removal_{name}_high"])
    assert np.isclose(facts["loss"], ablation.base.mean(), rtol=1e-12)
    assert facts["loss_low"] <= facts["loss"] <= facts["loss_high"]


@pytest.mark.thorough
def test_scores_have_length_one_within_a_layer(found):
    table, facts, _ = found
    np.testing.assert_allclose(np.linalg.norm(table.michel_score, axis=1), 1, rtol=1e-12)
    slopes = head_importance(MODEL, BATCH).mean(axis=0)
    assert np.all(np.argsort(slopes, axis=1) == np.argsort(table.michel_score.values, axis=1))
    assert -1 <= facts["rank_correlation"] <= 1


@pytest.mark.thorough
def test_what_chooses_heads_has_no_part_of_the_sequences_that_test_them():
    sequences = [DRAW.integers(11, size=size) for size in (5, 7, 4, 6)]
    batch = judged_batch(MODEL, sequences)
    table, _, choosing = deep_level(MODEL, batch, curvature=False)
    ablation = ablate_heads(MODEL, batch)
    change = (ablation.ablated - ablation.base)[..., [0, 2]].mean(axis=-1)
    for place, name in enumerate(("zero", "mean", "uniform")):
        np.testing.assert_allclose(choosing[f"removal_{name}"], change[:, :, place], rtol=1e-10)
        assert not np.allclose(choosing[f"removal_{name}"], table[f"removal_{name}"])


def test_curvature_is_left_out_and_everything_else_described(found):
    table, *_ = found
    assert {quantity.name for quantity in DEEP_QUANTITIES} <= set(table.data_vars)
    assert not {quantity.name for quantity in CURVATURE_QUANTITIES} & set(table.data_vars)
    assert table.michel_score.attrs["standing"] == "heuristic"


def test_removals_have_the_unit_of_the_loss_and_its_reference(found):
    table, facts, _ = found
    assert facts["loss_unit"] == table.removal_mean.attrs["unit"] == "nats"
    assert table.removal_mean.attrs["null"] == "removal_mean_null"
    null = table.removal_mean_null.values
    ablation = ablate_heads(MODEL, BATCH)
    change = ablation.rounded - ablation.base
    assert np.all(null == null.flat[0])
    # the end of the interval lies beyond the mean, and no further than the largest change
    assert abs(change.mean()) <= null.flat[0] <= np.abs(change).max()
    # a change of every weight by at most 1/256 is a small one here, and one there is
    assert 0 < null.flat[0] < 0.1 * np.abs(table.removal_zero).max()


def test_a_loss_against_the_model_itself_has_no_slopes():
    """Rounding of slopes that are 0 was told as scores of length 1 once."""
    model = dataclasses.replace(MODEL, read_readout=Readout)
    table, facts, _ = deep_level(model, judged_batch(model, SEQUENCES), curvature=False)
    assert facts["loss_unit"] == table.removal_zero.attrs["unit"] == "squared state lengths"
    assert np.all(table.removal_zero > 0)
    assert np.all(table.removal_zero_null > 0)
    assert np.isnan(table.michel_score).all()
    assert np.isnan(table.locally_optimal).all()
    assert not {"rank_correlation", "selection_rows"} & facts.keys()
    with pytest.raises(UserError, match="loss on tokens"):
        head_importance(model, judged_batch(model, SEQUENCES))


def test_rounding_moves_every_weight_of_a_layer_a_little():
    layer = random_transformer(rotary=True, H=2, k=3).layer(0)
    moved = perturbed_weights(layer, 1)
    assert moved.attention.rotary is layer.attention.rotary
    share = np.asarray(moved.attention.W_Q / layer.attention.W_Q) - 1
    assert np.all(np.abs(share) <= ROUNDING)
    assert np.abs(share).max() > 0.8 * ROUNDING
    assert np.unique(share).size == share.size


@pytest.mark.thorough
def test_a_sign_is_told_where_the_interval_excludes_zero():
    table, *_ = deep_level(MODEL, BATCH, curvature_sequences=1)
    for name in ("smallest", "largest"):
        low, high, sign = (table[f"{name}_{end}"].values for end in ("low", "high", "sign"))
        assert np.array_equal(sign == 0, (low <= 0) & (high >= 0))
        assert np.all(np.sign(table[name].values)[sign != 0] == sign[sign != 0])
        assert table[f"{name}_sign"].attrs == {"of": name}
    assert np.all(table.largest_sign.values[table.largest_low.values > 0] == 1)
