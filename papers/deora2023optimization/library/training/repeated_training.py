"""Training of many repeated heads on many problems, and what it learnt."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float

from attlas._jax.loop_jit import loop_jit
from attlas.data.tokenized_mixture import MixtureSamples
from attlas.losses.logistic import logistic
from attlas.training.ensemble import in_chunks
from attlas.training.fit import fit
from attlas.training.gradient_descent import Samples, empirical_loss
from attlas.training.risk_gradient import model_outputs
from deora2023optimization.library.measures.token_attention import relevant_attention
from deora2023optimization.library.optim.head_scaling import two_step_descent
from deora2023optimization.library.repeated_heads import RepeatedHeads

_LOSS = empirical_loss("logistic")


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
    attention_rates: Float[np.ndarray, "e k"] | None = None,
) -> RepeatedTraining:
    """Gradient descent of every model on the samples of its problem.

    Args:
        models: initial parameters, by problem and model.
        train: training samples, stacked by problem.
        test: test samples, stacked by problem.
        schedule: recorded steps, the last one the end.
        attention_rates: step sizes of the key-query matrices, as the others when None.

    Returns:
        Losses and attention; problems are trained one after another.
    """
    steps = np.stack([rates, rates if attention_rates is None else attention_rates], axis=-1)
    batch = (models, steps, train, test)
    trained = in_chunks(lambda part: _trained(part, schedule), batch, 1)
    return RepeatedTraining(*map(np.asarray, trained))


@loop_jit(static_argnames=("schedule",))
def _trained(batch: tuple[Any, ...], schedule: tuple[int, ...]) -> tuple[Array, ...]:
    def run(
        model: RepeatedHeads, rates: Array, train: MixtureSamples, test: MixtureSamples
    ) -> tuple[Array, ...]:
        X, y = train.X, train.y
        descent = Partial(two_step_descent, *rates.astype(X.dtype))
        samples = Samples(X, y, jnp.ones_like(y))
        path = fit(_LOSS, descent, model, samples, record_at=schedule)

        def measured(U: Array, W: Array) -> tuple[Array, ...]:
            margins = test.y * model_outputs(RepeatedHeads(U, W, model.copies), test.X)
            return jnp.mean(logistic(margins)), jnp.mean((margins <= 0).astype(margins.dtype))

        losses, errors = jax.vmap(measured)(path.params.U, path.params.W)
        focus = relevant_attention(path.at(-1).distinct, test.X, test.relevant).mean(axis=0)
        share = model.copies / jnp.sum(model.copies)
        return path.loss, losses, errors, jnp.sum(share.astype(focus.dtype) * focus)

    return jax.vmap(jax.vmap(run, (0, 0, None, None)))(*batch)
