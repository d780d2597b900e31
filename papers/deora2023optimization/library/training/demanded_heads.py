"""Training with few heads, and with as many as Corollary 2 of deora2023optimization demands."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from attlas.data.tokenized_mixture import MixtureSamples
from attlas.models.attention.multi_head import MultiHead
from attlas.training.trajectory import log_spaced
from deora2023optimization.library.bounds.deora2023_corollary_2 import (
    Corollary2,
    deora2023_corollary_2,
)
from deora2023optimization.library.measures.repeated_start import (
    StartConstants,
    sign_excess,
    start_constants,
    uniform_outputs,
)
from deora2023optimization.library.optim.head_scaling import HeadScaling, head_scaling
from deora2023optimization.library.repeated_heads import RepeatedHeads, repeat_signed_heads
from deora2023optimization.library.training.repeated_training import (
    RepeatedTraining,
    train_repeated_heads,
)

MOST_HEADS = 2.0**62
"""Largest number of heads that is trained, whatever Corollary 2 demands."""
SECOND = 2
"""The scaling rule is applied to every second number of heads."""


class DemandedHeads(NamedTuple):
    """Trainings of each problem, and what Corollary 2 demands and promises.

    Attributes:
        few: trainings with the numbers of heads of `counts`.
        ruled: trainings with `head_scaling` from the same signs, for every second of these numbers.
        crowd: trainings with the number demanded: first with the common step size, then with the
            certified one.
        schedule: the recorded steps.
        corollary: Corollary 2, by problem, version of the constants and K.
        K: numbers of steps at which Corollary 2 is evaluated.
        constants: constants of the initialisation.
        certified: whether the conditions of the corollary hold for the second crowd.
    """

    few: RepeatedTraining
    ruled: RepeatedTraining
    crowd: RepeatedTraining
    schedule: tuple[int, ...]
    corollary: Corollary2
    K: Float[Array, " K"]
    constants: StartConstants
    certified: Bool[np.ndarray, " e"]


def train_demanded_heads(
    keys: Sequence[PRNGKeyArray],
    heads: Sequence[MultiHead],
    train: MixtureSamples,
    test: MixtureSamples,
    counts: Sequence[int],
    sizes: tuple[float, float, float],
    rate: float,
    steps: int,
    horizons: Sequence[float],
    records: int = 32,
) -> DemandedHeads:
    """Train every number of heads on every problem; Corollary 2 uses the measured NTK margin.

    The number of heads demanded is that of the sharp constants at the number of training steps.

    Args:
        keys: one key per problem, for the signs of its heads.
        heads: the head after the first step, one per problem.
        train: training samples, stacked by problem.
        test: test samples, stacked by problem.
        sizes: T, d and R of the data.
        horizons: further values of K for the corollary.
        records: recorded parameters of each training.
    """
    pairs, few = list(zip(keys, heads, strict=True)), len(counts)
    models = stacked([repeat_signed_heads(*pair, counts) for pair in pairs])
    X, y = np.asarray(train.X), np.asarray(train.y)
    constants = start_constants(heads, X, y, models.copies)
    K = jnp.asarray(sorted({float(steps), *horizons}))
    corollary = deora2023_corollary_2(*sizes, *constants, float(y.shape[1]), K)
    demanded, certified_rate = (np.asarray(a)[:, -1, list(K).index(steps)] for a in corollary[:2])
    twice = zip(pairs, np.minimum(demanded, MOST_HEADS).astype(int).tolist(), strict=True)
    crowd = stacked([repeat_signed_heads(*pair, (H, H), first=few) for pair, H in twice])
    largest = [uniform_outputs(head, X).max() for head, X in zip(heads, X, strict=True)]
    start = sign_excess(crowd.copies)[:, -1] * largest
    rules = [head_scaling(rate, H) for H in counts[::SECOND]]
    groups, schedule = (models, _ruled(models, rules), crowd), log_spaced(steps, records)
    models = jax.tree.map(lambda *a: np.concatenate(a, axis=1), *groups)
    trained = train_repeated_heads(
        models,
        train=train,
        test=test,
        schedule=schedule,
        **_rates(rate, certified_rate, few, rules),
    )
    trainings = [
        RepeatedTraining(*(a[:, part] for a in trained))
        for part in (slice(few), slice(few, -2), slice(-2, None))
    ]
    conditions = (demanded <= MOST_HEADS) & (start <= constants.B_Phi)
    return DemandedHeads(
        trainings[0], trainings[1], trainings[2], schedule, corollary, K, constants, conditions
    )


def _rates(
    rate: float, certified: Float[np.ndarray, " e"], few: int, rules: Sequence[HeadScaling]
) -> dict[str, np.ndarray]:
    """The step sizes of all models, by problem; attention has its own under the rule."""
    rates = np.full((len(certified), few + len(rules) + 2), rate)
    rates[:, -1] = certified
    attention = rates.copy()
    attention[:, few:-2] = [rule.attention_step for rule in rules]
    return {"rates": rates, "attention_rates": attention}


def _ruled(models: RepeatedHeads, rules: Sequence[HeadScaling]) -> RepeatedHeads:
    """The starts of every second number of heads, with decoders of the length of the rule."""
    starts = jax.tree.map(lambda a: a[:, ::SECOND], models)
    lengths = np.array([rule.start for rule in rules], starts.U.dtype)
    return eqx.tree_at(lambda model: model.U, starts, starts.U * lengths[:, None, None, None])


def stacked(trees: Sequence[Any]) -> Any:
    """Trees of one structure as one tree.

    Returns:
        Arrays with a leading axis of trees.

    Examples:
        >>> stacked([{"x": np.zeros(2)}, {"x": np.ones(2)}])["x"].tolist()
        [[0.0, 0.0], [1.0, 1.0]]
    """
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)
