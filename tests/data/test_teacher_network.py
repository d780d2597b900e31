"""Teacher data: norms, noise, centring, attention teachers, bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.teacher_network import make_teacher, make_teacher_data
from attlas.models.attention.fixed_attention import (
    EuclideanAttention,
    SoftmaxAttention,
    TopAttention,
)
from attlas.models.attention.self_attention_mlp import make_self_attention_mlp

KEY = jax.random.key(3)


def test_labels_are_the_teachers_own_by_hand():
    teacher = make_teacher(KEY, 4, 3, norms=(2.0, 5.0))
    data = make_teacher_data(KEY, teacher, 50, (4,), bound=0.5)
    x, W1, w2 = (np.asarray(part) for part in (data.x, teacher.W1, teacher.w2))
    assert np.linalg.norm(W1) == pytest.approx(2)
    assert np.linalg.norm(w2) == pytest.approx(5)
    assert 0.4 < np.abs(x).max() <= 0.5
    np.testing.assert_allclose(data.truth, np.maximum(x @ W1, 0) @ w2 - data.centre, atol=1e-14)
    np.testing.assert_array_equal(data.y, data.truth)


@pytest.mark.parametrize("kind", ["gaussian", "signs", "uniform"])
def test_noise_is_sub_gaussian_with_its_proxy(kind):
    teacher = make_teacher(KEY, 4, 2)
    data = make_teacher_data(KEY, teacher, 20_000, (4,), noise=0.3, kind=kind, centre=0.0)
    noise = np.asarray(data.y - data.truth) / 0.3
    assert noise.std() == pytest.approx(1, abs=5 / np.sqrt(20_000))
    for t in (-1.0, 0.5, 1.0):
        moments = np.exp(t * noise)
        error = 5 * moments.std() / np.sqrt(20_000)
        assert moments.mean() <= np.exp(t**2 / 2) + error


def test_labels_are_centred_up_to_the_error_that_is_said():
    teacher = make_teacher(KEY, 4, 3)
    data = make_teacher_data(jax.random.key(9), teacher, 20_000, (4,))
    spread = float(jnp.std(data.truth)) / np.sqrt(20_000)
    assert abs(float(jnp.mean(data.truth))) < 5 * np.hypot(spread, data.centre_error)
    assert 0 < data.centre_error < spread
    # A test set has the same truth.
    assert make_teacher_data(KEY, teacher, 5, (4,)).centre == data.centre


def test_balanced_teachers_have_mean_zero_and_are_not_linear():
    teacher = make_teacher(KEY, 4, 6, balanced=True)
    data = make_teacher_data(KEY, teacher, 5, (4,))
    assert abs(data.centre) < 5 * data.centre_error
    # Over all sign patterns of one input the outputs cancel exactly.
    signs = np.array(np.meshgrid(*[[-1, 1]] * 4)).reshape(4, -1).T
    outputs = jax.vmap(teacher)(jnp.asarray(signs * np.array([0.3, 0.7, 0.2, 0.9])))
    assert abs(float(jnp.mean(outputs))) < 1e-15
    assert float(jnp.max(jnp.abs(outputs + outputs[::-1]))) > 1e-2


@pytest.mark.thorough
def test_attention_teachers_of_both_kinds():
    draw = np.random.default_rng(0)
    weights = SoftmaxAttention(jnp.asarray(draw.standard_normal((4, 4))))
    known = make_teacher(KEY, 4, 3, attention=EuclideanAttention(TopAttention(weights, 2)))
    data = make_teacher_data(KEY, known, 20, (4,))
    f = jax.vmap(known.attention)(data.x)
    assert np.all(np.sum(np.asarray(f) != 0, axis=1) == 2)
    np.testing.assert_allclose(
        data.truth, jax.vmap(known.network)(data.x * f) - data.centre, atol=1e-14
    )
    learned = make_self_attention_mlp(KEY, 3, 2, 2, 2, 4)
    words = make_teacher_data(KEY, learned, 20, (2, 3), noise=0.1)
    assert words.x.shape == (20, 2, 3)
    np.testing.assert_allclose(words.truth, jax.vmap(learned)(words.x) - words.centre, atol=1e-14)


def test_equal_keys_give_equal_data_and_the_dtype_is_kept():
    teacher = make_teacher(KEY, 4, 3, dtype="float32")
    one, other = (
        make_teacher_data(KEY, teacher, 7, (4,), noise=1.0, centre=0.0, dtype="float32")
        for _ in range(2)
    )
    np.testing.assert_array_equal(one.y, other.y)
    assert one.x.dtype == one.y.dtype == one.truth.dtype == jnp.float32


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_teacher(KEY, 3, 3, balanced=True), "an even d if balanced"),
        (lambda: make_teacher(KEY, 0, 3), "p = 0"),
        (lambda: make_teacher_data(KEY, lambda x: x[0], 0, (2,)), "n = 0"),
        (lambda: make_teacher_data(KEY, lambda x: x[0], 5, (2,), noise=-1.0), "C_3 = -1"),
    ],
)
def test_bad_sizes_are_refused(call, message):
    with pytest.raises(UserError, match=message):
        call()
