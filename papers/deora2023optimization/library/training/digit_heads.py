"""Multi-head attention trained on digits cut into rows: losses, attention and margins.

For deora2023optimization: which margins real data have, and which gradient descent reaches.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.data.digit_tokens import row_information
from attlas.data.token_sequences import TokenSequences
from attlas.kernels.multi_head_ntk import ntk_gram
from attlas.measures.statistics.rank_correlation import rank_correlation
from attlas.models.attention.multi_head import MultiHead
from attlas.solvers.kernel_svm import kernel_svm
from attlas.solvers.linear_margin import linear_margin
from attlas.training.gradient_descent import gradient_descent_ensemble
from deora2023optimization.library.bounds.deora2023_initialisation import SEPARATOR_NORM
from deora2023optimization.library.measures.attention_profile import attention_profile
from deora2023optimization.library.measures.logistic_scores import logistic_scores
from deora2023optimization.library.measures.margins import decoder_margin, normalised_margin
from deora2023optimization.library.solvers.known_margin import known_margin


class DigitHeads(NamedTuple):
    """What was found from each start; margins are those of a subsample.

    Attributes:
        loss: logistic loss on the training and the test images.
        accuracy: the same.
        mass: attention on each row, mean over training images, heads and queries.
        effective_rows: exp of a query's attention entropy, mean over training images.
        information: Fisher's discriminability of each row.
        correlation: rank correlation of the last mass with the information.
        ntk: margin of the NTK at the start, for parameters of norm sqrt(2); 0 if not separable.
        linear: margin of linear decoders of norm 1.
        sphere: margin after the last step, parameters of norm sqrt(2).
        decoder: the same, decoders of norm 1.
    """

    loss: Float[np.ndarray, "2 e s"]
    accuracy: Float[np.ndarray, "2 e s"]
    mass: Float[np.ndarray, "e s T"]
    effective_rows: Float[np.ndarray, "e s"]
    information: Float[np.ndarray, " T"]
    correlation: Float[np.ndarray, " e"]
    ntk: Float[np.ndarray, " e"]
    linear: float
    sphere: Float[np.ndarray, " e"]
    decoder: Float[np.ndarray, " e"]


def train_on_digits(
    starts: Sequence[MultiHead],
    X: Float[Array, "n T d"],
    y: Float[Array, " n"],
    X_test: Float[Array, "m T d"],
    y_test: Float[Array, " m"],
    rate: float,
    schedule: tuple[int, ...],
    subsample: int,
) -> DigitHeads:
    """Train from every start and measure losses, attention and margins.

    Args:
        starts: models of one shape; trained in the type of X.
        X: training images, rows as tokens.
        y: labels +-1.
        X_test: test images.
        y_test: their labels.
        rate: step size.
        schedule: recorded steps, the last one the end.
        subsample: first training images, for which margins are solved in float64.

    Returns:
        Losses, attention and margins.
    """
    n = len(y)
    together = jax.tree.map(lambda *leaves: jnp.stack([a.astype(X.dtype) for a in leaves]), *starts)
    path = gradient_descent_ensemble(
        together, X, y, step_size=rate, steps=schedule[-1], record_at=schedule
    )
    profile = attention_profile(path.params, jnp.concatenate([X, X_test]))
    mass, rows = (np.asarray(a[:, :, :n], np.float64).mean(axis=2) for a in profile[1:])
    test = logistic_scores(profile.outputs[..., n:], y_test)
    accuracy = logistic_scores(profile.outputs[..., :n], y).accuracy
    images = TokenSequences(
        np.asarray(X, float), np.ones(X.shape[:2], bool), np.asarray(y > 0, float)
    )
    information = row_information(images)
    part, labels = (jnp.asarray(a[:subsample], jnp.float64) for a in (X, y))
    models = jax.tree.map(lambda a: jnp.asarray(a, jnp.float64), path.params)
    first, last = (jax.tree.map(lambda a, k=k: a[:, k], models) for k in (0, -1))
    each = [jax.tree.map(lambda a, k=k: a[k], first) for k in range(len(mass))]
    ntk = [known_margin(kernel_svm(ntk_gram(start, part), labels)) for start in each]
    sphere, decoder = (
        np.asarray(jax.jit(jax.vmap(margin, (0, None, None)))(last, part, labels))
        for margin in (normalised_margin, decoder_margin)
    )
    return DigitHeads(
        np.stack([path.loss, test.loss]),
        np.stack([accuracy, test.accuracy]),
        mass,
        rows,
        information,
        rank_correlation(mass[:, -1], information),
        SEPARATOR_NORM * np.array(ntk),
        known_margin(linear_margin(part, labels)),
        sphere,
        decoder,
    )
