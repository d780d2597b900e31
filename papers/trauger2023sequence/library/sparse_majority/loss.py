r"""Cross-entropies of two logits: the released one, and the one that the paper's text names."""

from enum import StrEnum

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attlas.losses.logistic import logistic


class MajorityLoss(StrEnum):
    """Which cross-entropy of a pair of logits is meant."""

    BINARY = "binary"
    SOFTMAX = "softmax"


def majority_loss(
    logits: Float[Array, "n 2"], labels: Int[Array, " n"], kind: MajorityLoss
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    r"""Loss and correctness of each sequence.

    `BINARY`: (1/2) sum_c log(1 + exp(-s_c z_c)) with s_c = 1 for the class and -1 for the other,
    Keras' BinaryCrossentropy on one-hot labels; `SOFTMAX`: log(1 + exp(-(z_y - z_{1-y}))).

    Args:
        logits: z, one row per sequence.
        labels: y, classes 0 and 1.

    Returns:
        The losses, and 1 where the class has the larger logit (the first one where tied) or 0.

    Examples:
        >>> logits, labels = jnp.array([[0.0, 2.0], [0.0, 2.0]]), jnp.array([1, 0])
        >>> loss, right = majority_loss(logits, labels, MajorityLoss.BINARY)
        >>> [f"{float(a):.3f}" for a in loss], right.tolist()
        (['0.410', '1.410'], [1.0, 0.0])
        >>> [f"{float(a):.3f}" for a in majority_loss(logits, labels, MajorityLoss.SOFTMAX)[0]]
        ['0.127', '2.127']
    """
    signs = 2 * jax.nn.one_hot(labels, 2, dtype=logits.dtype) - 1
    right = ((logits[:, 1] > logits[:, 0]) == (labels > 0)).astype(logits.dtype)
    if kind == MajorityLoss.BINARY:
        return jnp.mean(logistic(signs * logits), axis=1), right
    return logistic(jnp.sum(signs * logits, axis=1)), right
