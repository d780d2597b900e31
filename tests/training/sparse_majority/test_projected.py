import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas._jax.device_arrays import generator
from attlas.core.errors import UserError
from attlas.data.sparse_majority import (
    BitEmbedding,
    MajorityDesign,
    SparseMajority,
    make_sparse_majority,
)
from attlas.models.networks.single_layer_transformer import SingleLayerTransformer
from attlas.norms.balls import ball_norm
from attlas.training.sparse_majority.outputs import majority_outputs
from attlas.training.sparse_majority.projected import (
    ProjectedSettings,
    project_single_layer,
    train_projected,
)

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


def onto_l1_ball(v, radius):
    """The nearest vector of l_1 norm at most the radius, its threshold by bisection."""
    low, high = 0.0, np.abs(v).max()
    if np.abs(v).sum() <= radius:
        return v
    for _ in range(100):
        middle = (low + high) / 2
        inside = np.maximum(np.abs(v) - middle, 0).sum() <= radius
        low, high = (low, middle) if inside else (middle, high)
    return np.sign(v) * np.maximum(np.abs(v) - high, 0)


def onto_balls(parts, radius):
    w, query_key, value, output = parts
    return [
        onto_l1_ball(w, 1.0),
        onto_l1_ball(query_key.ravel(), radius).reshape(query_key.shape),
        np.apply_along_axis(onto_l1_ball, 0, value, 1.0),
        np.apply_along_axis(onto_l1_ball, 0, output, 1.0),
    ]


@pytest.mark.thorough
def test_each_matrix_is_projected_onto_its_ball():
    draw = np.random.default_rng(2)
    parts = [2 * draw.normal(size=shape) for shape in ((5,), (5, 5), (5, 3), (3, 5))]
    heads = (jnp.asarray(a[None]) for a in parts[1:])
    model = SingleLayerTransformer(jnp.asarray(parts[0]), *heads)
    found = project_single_layer(model, 1.7)
    for projected, exact in zip(jax.tree.leaves(found), onto_balls(parts, 1.7), strict=True):
        np.testing.assert_allclose(projected.reshape(exact.shape), exact, rtol=0, atol=1e-14)


def plain_loss(parts, X, signs, temperature, linear):
    """The mean of tau log(1 + exp(-y f / tau)) on tokens [n, S, d], for complex parameters too."""
    w, query_key, value, output = parts
    losses = []
    for tokens, sign in zip(X, signs, strict=True):
        powers = np.exp(tokens @ query_key @ tokens[-1])
        hidden = (powers @ tokens / powers.sum()) @ value
        hidden = hidden if linear else np.where(hidden.real > 0, hidden, 0)
        losses.append(temperature * np.log1p(np.exp(-sign * (hidden @ output @ w) / temperature)))
    return np.mean(losses)


@pytest.mark.parametrize(("linear", "k"), [(False, 3), (True, 4)])
def test_two_steps_of_projected_momentum_from_the_documented_start(linear, k):
    T, d, rate, momentum, temperature = 4, 5, 0.7, 0.8, 0.3
    data = make_sparse_majority(jax.random.key(5), T, MajorityDesign(9, 1, 1, d), "float64")
    settings = ProjectedSettings(2, 6, rate, momentum, temperature, k, "1,1", linear)
    radii = [0.05, 30.0]
    found = train_projected(jax.random.key(6), data, jnp.asarray(radii), settings)

    # Columns of W_v and rows of W_c in pairs of opposite sign, a third without its partner.
    draw = generator(jax.random.key(6))
    w, query_key = 0.3 / d * draw.normal(size=d), 0.01 * draw.normal(size=(d, d))
    value, output = 0.3 * draw.normal(size=(d, 2)), 0.3 * draw.normal(size=(2, d))
    value, output = np.c_[value, -value][:, :k], np.r_[output, -output][:k]
    rows = draw.integers(0, 9, (2, 6))
    tokens = np.array([data.embedding(bits) for bits in data.bits])
    signs = np.where(np.asarray(data.labels) == 1, 1, -1)
    for member, radius in enumerate(radii):
        parts = onto_balls([w, query_key, value, output], radius)
        velocity = [np.zeros_like(a) for a in parts]
        for batch in rows:
            for index, part in enumerate(parts):
                velocity[index] *= momentum
                for at in np.ndindex(part.shape):
                    moved = [a.astype(complex) for a in parts]
                    moved[index][at] += 1e-30j
                    loss = plain_loss(moved, tokens[batch], signs[batch], temperature, linear)
                    velocity[index][at] += loss.imag / 1e-30
            steps = [a - rate * v for a, v in zip(parts, velocity, strict=True)]
            parts = onto_balls(steps, radius)
        for trained, exact in zip(jax.tree.leaves(found), parts, strict=True):
            np.testing.assert_allclose(
                trained[member].reshape(exact.shape), exact, rtol=0, atol=1e-13
            )
