import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.sparse_majority import (
    BitEmbedding,
    MajorityDesign,
    SparseMajority,
    make_sparse_majority,
)
from attlas.norms.balls import ball_norm
from attlas.training.sparse_majority.outputs import majority_outputs
from attlas.training.sparse_majority.projected import ProjectedSettings, train_projected

RADII = np.array([0.0, 3.0, 12.0])
SETTINGS = ProjectedSettings(steps=300, batch=32)


@pytest.fixture(scope="module")
def decisive():
    """One deciding bit of four, tokens e_t and a sign."""
    T, d = 4, 6
    draw = make_sparse_majority(jax.random.key(3), T, MajorityDesign(64, 200, 1, d), "float64")
    eye, half = np.eye(d), np.sqrt(0.5)
    places = np.concatenate([half * eye[:T], np.zeros((1, d))])
    parts = (-half * eye[T], half * eye[T], eye[-1], places)
    embedding = BitEmbedding(*(jax.device_put(a) for a in parts))
    return SparseMajority(draw.bits, draw.labels, draw.validation_bits, draw.validation_labels,
                          embedding, draw.indices)  # fmt: skip


@pytest.fixture(scope="module")
def models(decisive):
    return train_projected(jax.random.key(4), decisive, jnp.asarray(RADII), SETTINGS)


@pytest.mark.thorough
def test_all_norms_stay_in_their_balls(models):
    # a projection ends within a rounding of each entry
    room = 1 + 100 * np.finfo(float).eps
    assert np.all(np.asarray(ball_norm(models.query_key[:, 0], "1,1")) <= RADII * room)
    assert np.all(np.asarray(jnp.abs(models.w).sum(axis=1)) <= room)
    for kernel in (models.value, models.output):
        assert np.all(np.asarray(ball_norm(kernel[:, 0], "1,inf")) <= room)


@pytest.mark.thorough
def test_attention_learns_which_bit_decides(decisive, models):
    found = jax.vmap(majority_outputs, in_axes=(0, None, None))(
        models, decisive.embedding, decisive.validation_bits
    )
    right = (np.asarray(found) > 0) == (np.asarray(decisive.validation_labels) > 0)
    accuracy = right.mean(axis=1)
    # uniform attention takes the majority of all four bits, ties broken somehow
    assert accuracy[0] < 0.9
    assert accuracy[2] == 1.0
    assert np.abs(np.asarray(models.query_key)[2]).sum() > RADII[1]


def test_nothing_to_train_is_refused(decisive):
    with pytest.raises(UserError, match="must be at least 1"):
        train_projected(jax.random.key(0), decisive, jnp.ones(1), ProjectedSettings(steps=0))
    with pytest.raises(UserError, match="negative"):
        train_projected(jax.random.key(0), decisive, -jnp.ones(1))
