"""Two checkpoints: a small step is linear, a large one is not."""

import dataclasses

import jax
import numpy as np
import pytest
from random_transformer import random_transformer

from attlas.audit.deep_level.tangent_drift import TangentDrift, require_comparable, tangent_drift
from attlas.audit.sequence_loss import judged_batch
from attlas.core.errors import UserError
from attlas.transformers.canonical import Readout

RNG = np.random.default_rng(6)
SEQUENCES = [RNG.integers(11, size=size) for size in (5, 4, 6)]
FIRST = random_transformer(layers=1)
OTHER = random_transformer(layers=1, seed=1)


def between(share):
    """The model whose weights are moved by a share of the way to the other's."""

    def mix(a, b):
        return jax.tree.map(lambda x, y: x + share * (y - x), a, b)

    return dataclasses.replace(
        FIRST,
        read_layer=lambda k: mix(FIRST.layer(k), OTHER.layer(k)),
        read_embedding=lambda: mix(FIRST.embedding, OTHER.embedding),
        read_readout=lambda: mix(FIRST.readout, OTHER.readout),
    )


@pytest.mark.thorough
def test_a_small_step_is_explained_by_the_linear_model_up_to_its_square():
    batch = judged_batch(FIRST, SEQUENCES)
    errors = []
    for share in (1e-2, 1e-3):
        found = tangent_drift(FIRST, between(share), batch)
        errors.append(abs(found.loss_linear - found.loss_after))
        np.testing.assert_allclose(found.explained, 1, atol=20 * share)
        assert share > 1e-3 or found.lazy == "yes"
    # the remainder is of second order
    assert 50 < errors[0] / errors[1] < 200


@pytest.mark.thorough
def test_a_model_is_itself():
    found = tangent_drift(FIRST, FIRST, judged_batch(FIRST, SEQUENCES))
    assert found.drift == 0
    assert found.distance == 0
    assert found.lazy == "not told"
    np.testing.assert_allclose(found.alignment, 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("linear", "lazy"),
    [(1.05, "yes"), (1.11, "no"), (0.89, "no"), (2.0, "no"), (0.0, "no"), (0.95, "yes")],
)
def test_lazy_is_what_the_linear_model_explains_all_but_a_tenth_of(linear, lazy):
    found = TangentDrift(2.0, 1.0, linear, 0.3, 0.9, 0.1)
    assert found.lazy == lazy
    assert np.isclose(found.explained, 2.0 - linear)


def test_a_loss_against_the_model_itself_compares_no_checkpoints():
    bare = dataclasses.replace(FIRST, read_readout=Readout)
    with pytest.raises(UserError, match="compares its hidden states"):
        require_comparable(FIRST, bare, judged_batch(bare, SEQUENCES))


def test_other_shapes_are_refused():
    other = random_transformer(layers=1, H=4)
    with pytest.raises(UserError, match="shapes"):
        tangent_drift(FIRST, other, judged_batch(FIRST, SEQUENCES))
