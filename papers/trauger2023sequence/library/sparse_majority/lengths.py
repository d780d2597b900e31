r"""Figures 1-3 of trauger2023sequence as one call: runs at lengths, one program per length."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from attlas.core.errors import UserError
from attlas.data.sparse_majority import (
    RELEASED,
    MajorityDesign,
    SparseMajority,
    make_sparse_majorities,
)
from trauger2023sequence.library.models.majority_attention import make_majority_attention
from trauger2023sequence.library.sparse_majority.training import RELEASED as RELEASED_TRAINING
from trauger2023sequence.library.sparse_majority.training import (
    MajoritySettings,
    MajorityState,
    MajorityTraining,
    train_majority,
)


class MajorityRuns(NamedTuple):
    """The runs at one length.

    Attributes:
        data: training data of every run.
        training: the trained ensemble.
    """

    data: SparseMajority
    training: MajorityTraining


def train_majority_lengths(
    key: PRNGKeyArray,
    lengths: Sequence[int],
    runs: int,
    epochs: int,
    design: MajorityDesign = RELEASED,
    settings: MajoritySettings = RELEASED_TRAINING,
    chunk: int = 500,
    resume: dict[int, MajorityState] | None = None,
) -> dict[int, MajorityRuns]:
    r"""Train `runs` models at every length, each on data of its own, from heads of width d.

    The draws of a length depend on the key and the length alone, so that lengths can be trained
    apart, and resumed: all that has to be kept is the state.

    Args:
        runs: trainings per length.
        epochs: largest number of epochs of this call.
        chunk: epochs between two checks that all members have stopped.
        resume: states of an earlier call with the same key, for the lengths that continue.

    Examples:
        >>> design = MajorityDesign(train=8, validation=20, indices=1, dimension=4)
        >>> result = train_majority_lengths(jax.random.key(0), (2, 3), 2, 3, design, chunk=3)
        >>> {T: runs.training.history.shape for T, runs in result.items()}
        {2: (2, 3, 5), 3: (2, 3, 5)}
    """
    if not lengths or runs < 1:
        raise UserError(f"{len(lengths)} lengths and {runs} runs: give at least one of each")
    runs_of_length = {}
    for T in lengths:
        draws, starts, orders = jax.random.split(jax.random.fold_in(key, T), (3, runs))
        data = make_sparse_majorities(draws, T, design)
        state = (resume or {}).get(T)
        if state is None:
            d = design.dimension
            models = [make_majority_attention(start, d, key_dim=d) for start in starts]
            state = jax.tree.map(lambda *leaves: jnp.stack(leaves), *models)
        runs_of_length[T] = MajorityRuns(
            data, train_majority(state, data, orders, epochs, settings, chunk)
        )
    return runs_of_length
