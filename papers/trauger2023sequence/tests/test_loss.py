import jax
import jax.numpy as jnp
import numpy as np

from trauger2023sequence.library.sparse_majority.loss import MajorityLoss, majority_loss

EPS = float(np.finfo(float).eps)
LOGITS = jnp.asarray(np.random.default_rng(0).normal(size=(9, 2)) * 3)
LABELS = jnp.asarray(np.arange(9) % 2)


def test_binary_is_the_mean_of_two_sigmoid_cross_entropies():
    loss, right = majority_loss(LOGITS, LABELS, MajorityLoss.BINARY)
    chance = 1 / (1 + np.exp(-np.asarray(LOGITS)))
    target = np.eye(2)[np.asarray(LABELS)]
    entropy = -(target * np.log(chance) + (1 - target) * np.log(1 - chance)).mean(axis=1)
    # 1 - chance of a logit of 9 has lost four digits.
    np.testing.assert_allclose(loss, entropy, rtol=1e5 * EPS)
    assert np.array_equal(right, np.argmax(LOGITS, axis=1) == np.asarray(LABELS))


def test_softmax_is_the_negative_log_probability():
    loss, _ = majority_loss(LOGITS, LABELS, MajorityLoss.SOFTMAX)
    chosen = jax.nn.log_softmax(LOGITS)[np.arange(9), LABELS]
    np.testing.assert_allclose(loss, -chosen, rtol=1e2 * EPS, atol=1e2 * EPS)


def test_of_two_equal_logits_the_first_class_is_chosen():
    logits, labels = jnp.array([[1.5, 1.5], [1.5, 1.5], [0.5, 0.25]]), jnp.array([0, 1, 1])
    assert majority_loss(logits, labels, MajorityLoss.BINARY)[1].tolist() == [1.0, 0.0, 0.0]
