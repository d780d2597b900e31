"""Training of many repeated heads on many problems, and what it learnt."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.data.tokenized_mixture import MixtureSamples
from attlas.losses.logistic import logistic
from attlas.measures.attention.token_attention import relevant_attention
from attlas.models.attention.repeated_heads import RepeatedHeads
from attlas.training.ensemble import in_chunks
from attlas.training.gradient_descent import gradient_descent
from attlas.training.risk_gradient import model_outputs


class RepeatedTraining(NamedTuple):
    """Losses along training, by problem, model and recorded step.

    Attributes:
        train: training loss.
        test: test loss.
        error: share of test samples with margin at most 0.
        relevant: attention on the relevant test tokens after the last step, mean over heads.
    """

    train: Float[np.ndarray, "e k s"]
    test: Float[np.ndarray, "e k s"]
    error: Float[np.ndarray, "e k s"]
    relevant: Float[np.ndarray, "e k"]


def train_repeated_heads(
    models: RepeatedHeads,
    rates: Float[np.ndarray, "e k"],
    train: MixtureSamples,
    test: MixtureSamples,
    schedule: tuple[int, ...],
) -> RepeatedTraining:
    """Gradient descent of every model on the samples of its problem.

    Args:
        models: starts, by problem and model.
        rates: step sizes.
        train: training samples, stacked by problem.
        test: test samples, stacked by problem.
        schedule: recorded steps, the last one the end.

    Returns:
        Losses and attention; problems are trained one after another.
    """
    batch = (models, rates, train, test)
    found = in_chunks(lambda part: _trained(part, schedule), batch, 1)
    return RepeatedTraining(*map(np.asarray, found))


@partial(jax.jit, static_argnames=("schedule",))
def _trained(batch: tuple[Any, ...], schedule: tuple[int, ...]) -> tuple[Array, ...]:
    def one(
        model: RepeatedHeads, rate: Array, train: MixtureSamples, test: MixtureSamples
    ) -> tuple[Array, ...]:
        path = gradient_descent(
            model, train.X, train.y, step_size=rate, steps=schedule[-1], record_at=schedule
        )

        def measured(U: Array, W: Array) -> tuple[Array, ...]:
            margins = test.y * model_outputs(RepeatedHeads(U, W, model.copies), test.X)
            return jnp.mean(logistic(margins)), jnp.mean((margins <= 0).astype(margins.dtype))

        losses, errors = jax.vmap(measured)(path.params.U, path.params.W)
        focus = relevant_attention(path.at(-1).distinct, test.X, test.relevant).mean(axis=0)
        share = model.copies / jnp.sum(model.copies)
        return path.loss, losses, errors, jnp.sum(share.astype(focus.dtype) * focus)

    return jax.vmap(jax.vmap(one, (0, 0, None, None)))(*batch)
