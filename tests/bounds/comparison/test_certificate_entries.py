"""Bounds on a risk beside the norm-based ones: gaps, delta, the best, bad input."""

import math

import numpy as np
import pytest

from attlas.bounds.comparison.certificate_entries import Certificates, certificate_entries
from attlas.bounds.comparison.compare import compare_bounds
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
from attlas.bounds.generalisation.compression_bound import compression_bound
from attlas.bounds.generalisation.held_out_bound import held_out_bound
from attlas.bounds.generalisation.token_bound import token_bound
from attlas.core.errors import UserError

RNG = np.random.default_rng(0)
HEAD = Head(*(RNG.normal(size=shape) for shape in ((4, 4), (4, 3), (3, 4))))
WEIGHTS = TransformerWeights(((HEAD,),), RNG.normal(size=4))
X = RNG.normal(size=(5, 6, 4))
CODED = compression_bound(0.02, 1000, 160, 0.05)
TESTED = held_out_bound(30, 1000, 0.05)


def table(**settings):
    return compare_bounds(WEIGHTS, X, 1000, 0.1, **settings)


@pytest.mark.thorough
def test_all_stand_in_one_table_and_the_held_out_one_is_best():
    found = table(certificates=[CODED], held_out=TESTED, training_risk=0.02)
    plain = table()
    assert [e.name for e in found.entries[:-2]] == [e.name for e in plain.entries]
    assert found.best.name == "exact binomial, held-out"
    np.testing.assert_allclose(found.best.gap, TESTED.bound - 0.02, rtol=1e-15)
    np.testing.assert_allclose(found.true_gap, 0.01, rtol=1e-12)
    np.testing.assert_allclose(found.delta, 0.2, rtol=1e-15)
    text = repr(found)
    assert "delta = 0.2 = 0.1 (norm-based) + 0.05 (compression, kl) + 0.05 (exact" in text
    assert "held-out less training risk 0.01" in text
    coded = found.entries[-2]
    assert coded.gap == CODED.gap
    assert coded.samples_until_nonvacuous == CODED.samples_until_nonvacuous
    assert "complexity (111 nats)" in coded.dominant
    assert "the code and the architecture were fixed before" in coded.reason


@pytest.mark.thorough
def test_what_is_known_is_never_above_the_trivial_value():
    """Large weights: every norm-based bound is vacuous, and so is a long code."""
    assert table().best.vacuous
    assert table().best_gap == 1.0
    guessing = compression_bound(0.0, 1000, 10**6, 0.05, trivial=0.5)
    found = table(certificates=[guessing])
    assert found.entries[-1].vacuous
    assert found.best_gap <= 1.0
    useful = compression_bound(0.3, 1000, 100, 0.05)
    assert not table(certificates=[useful]).best.vacuous


@pytest.mark.thorough
def test_without_a_training_risk_no_gap_is_called_true():
    assert math.isnan(table(held_out=TESTED).true_gap)
    assert "training risk" not in repr(table(held_out=TESTED))
    (entry,) = certificate_entries(Certificates((), TESTED, None), 1.0)
    assert entry.gap == TESTED.gap


@pytest.mark.thorough
def test_the_frame_has_one_row_for_each():
    frame = table(certificates=[CODED]).to_pandas()
    assert frame.loc["compression, kl", "gap"] == CODED.gap
    assert frame.loc["compression, kl", "samples_until_nonvacuous"] < 1000


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"certificates": [CODED], "loss_range": 2.0}, "loss_range = 2.0: certificates need"),
        ({"training_risk": 1.5}, "training_risk = 1.5: scale or clip"),
        ({"certificates": [token_bound([0.5] * 9, 50, 8, 0.1)]}, "its losses are not in"),
    ],
)
def test_bad_input_is_one_line(settings, said):
    with pytest.raises(UserError, match=said):
        table(**settings)
