"""Multi-head attention trained on digits as sequences of rows: losses, attention and margins."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.core.argument_validation import validate_record_arguments
from attlas.core.solution import Solution
from attlas.data.digit_tokens import row_information
from attlas.data.token_sequences import TokenSequences
from attlas.kernels.multi_head_ntk import ntk_gram
from attlas.measures.statistics.rank_correlation import rank_correlation
from attlas.models.attention.multi_head import MultiHead
from attlas.solvers.kernel_svm import kernel_svm
from attlas.solvers.linear_margin import linear_margin
from attlas.training.gradient_descent import gradient_descent_ensemble
from attlas.training.risk_gradient import model_outputs
from deora2023optimization.library.bounds.deora2023_initialisation import SEPARATOR_NORM
from deora2023optimization.library.measures.margins import decoder_margin, normalised_margin


class DigitHeads(NamedTuple):
    """Losses, attention and margins by start; margins are those of a subsample.

    Attributes:
        loss: logistic loss on the training and the test images.
        accuracy: share of images with the right sign, in the same order.
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
        y: labels, -1 or 1.
        schedule: recorded steps, the last one the end.
        subsample: first training images, for which margins are solved in float64.
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
    first_models = [jax.tree.map(lambda a, k=k: a[k], first) for k in range(len(mass))]
    ntk = [certified_margin(kernel_svm(ntk_gram(start, part), labels)) for start in first_models]
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
        certified_margin(linear_margin(part, labels)),
        sphere,
        decoder,
    )


def certified_margin(solution: Solution) -> float:
    """The maximal margin as a number, also for data that are not separable.

    Args:
        solution: of one problem, by `kernel_svm` or `linear_margin`.

    Returns:
        The margin for norm 1; 0 for data that are not separable; NaN without a certificate.

    Examples:
        >>> import numpy as np
        >>> from attlas.solvers.linear_margin import linear_margin
        >>> X = np.array([[[1.0]], [[-2.0]]])
        >>> labels = np.array([1.0, -1.0]), np.array([1.0, 1.0])
        >>> [round(certified_margin(linear_margin(X, y)), 6) for y in labels]
        [1.0, 0.0]
    """
    if bool(solution.converged):
        return float(solution.value)
    return 0.0 if float(solution.certificate["lower"]) == 0 else float("nan")


class AttentionProfile(NamedTuple):
    """Outputs and attention, by training, record and sample.

    Attributes:
        outputs: Phi(X_i).
        mass: attention on each token, averaged over heads and queries.
        effective_tokens: exp of a query's attention entropy, averaged over heads and queries.
    """

    outputs: Float[Array, "e k n"]
    mass: Float[Array, "e k n T"]
    effective_tokens: Float[Array, "e k n"]


@jax.jit
def attention_profile(models: MultiHead, X: Float[Array, "n T d"]) -> AttentionProfile:
    """Outputs and attention of every recorded model of several trainings.

    Args:
        models: parameters with axes of trainings and of records before those of every array.

    Examples:
        >>> model = MultiHead(jnp.ones((3, 2, 4)), jnp.zeros((3, 4, 4)))
        >>> models = jax.tree.map(lambda a: a[None, None], model)
        >>> found = attention_profile(models, jnp.ones((5, 2, 4)))
        >>> found.mass[0, 0, 0].tolist(), float(found.effective_tokens[0, 0, 0])
        ([0.5, 0.5], 2.0)
    """

    def profile(model: MultiHead) -> AttentionProfile:
        attention = jax.vmap(model.attention)(X)
        entropy = jnp.sum(jax.scipy.special.entr(attention), axis=-1)
        tokens = jnp.mean(jnp.exp(entropy), axis=(1, 2))
        return AttentionProfile(model_outputs(model, X), jnp.mean(attention, axis=(1, 2)), tokens)

    return jax.vmap(lambda records: jax.lax.map(profile, records))(models)


class LogisticScores(NamedTuple):
    """Scores of the outputs on n samples.

    Attributes:
        loss: mean of log(1 + exp(-y_i Phi_i)).
        accuracy: share of y_i Phi_i > 0; an output of 0 is wrong.
    """

    loss: Float[np.ndarray, "*shape"]
    accuracy: Float[np.ndarray, "*shape"]


@validate_record_arguments
def logistic_scores(
    outputs: Float[Array | np.ndarray, "*shape n"], y: Float[Array | np.ndarray, " n"]
) -> LogisticScores:
    r"""Mean loss log(1 + exp(-y Phi)) and accuracy, in float64 whatever the outputs.

    Args:
        outputs: Phi_i, samples along the last axis.
        y: labels, -1 or 1.

    Examples:
        >>> found = logistic_scores(np.array([0.0, 800.0]), np.array([1.0, -1.0]))
        >>> print(f"{float(found.loss):.4f} {float(found.accuracy)}")
        400.3466 0.0
    """
    signed = np.asarray(y, np.float64) * np.asarray(outputs, np.float64)
    return LogisticScores(
        np.asarray(np.logaddexp(0, -signed).mean(axis=-1)), np.asarray((signed > 0).mean(axis=-1))
    )
