"""Problems with a choice of tokens that is locally but not globally optimal."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from attlas.data.token_selection import TokenSelection
from attlas.solvers.attention_svm import attention_svm_batch

OPTIMALITY_ROOM = 1e-6
"""Relative distance below the margin beyond which a token is not a support token."""


class LocalSelection(NamedTuple):
    """Problems with their globally optimal tokens and another, locally optimal choice."""

    data: TokenSelection
    best: Int[np.ndarray, "b n"]
    local: Int[np.ndarray, "b n"]


def draw_local_selection(
    seed: int,
    count: int,
    exponents: Sequence[float],
    pool: int = 40,
    n: int = 2,
    T: int = 3,
    d: int = 3,
) -> LocalSelection:
    """Those problems of a pool whose better tokens lie farthest below the margin.

    Taken are problems with a choice that is locally but not globally optimal for every exponent:
    no better token is a support token of its SVM. Distances are in units of the norm of the SVM.

    Args:
        count: largest number of problems.
        exponents: p of the SVMs.
        pool: number of problems drawn, with tokens, queries and value heads uniform on the unit
            sphere.

    Returns:
        The problems, the best one first; all SVMs of both choices have certificates.

    Examples:
        >>> found = draw_local_selection(0, count=1, exponents=[2.0], pool=20)
        >>> found.best.shape, bool((found.best != found.local).any())
        ((1, 2), True)
    """
    draw = np.random.default_rng(seed)
    X, z = (_on_sphere(draw.normal(size=(pool, n, *shape))) for shape in ((T, d), (d,)))
    v, y = _on_sphere(draw.normal(size=(pool, d))), draw.choice([-1.0, 1.0], (pool, n))
    scores = y[:, :, None] * np.einsum("bntd,bd->bnt", X, v)
    choices = np.array(list(itertools.product(range(T), repeat=n)))
    tokens = np.tile(choices, (pool, 1))
    owner = np.repeat(np.arange(pool), len(choices))
    selected = np.take_along_axis(scores[owner], tokens[:, :, None], axis=2)
    better = scores[owner] > selected
    usable, room = better.any(axis=(1, 2)), np.full(len(tokens), np.inf)
    for p in exponents:
        svm = attention_svm_batch(X[owner], z[owner], tokens, p)
        behind = np.where(better, svm.certificate["margins"], np.inf).min(axis=(1, 2)) - 1
        room = np.minimum(room, behind / svm.certificate["norm_upper"])
        # A support token has margin 1.
        usable &= np.asarray(svm.converged) & (behind > OPTIMALITY_ROOM)
        usable &= np.asarray(attention_svm_batch(X, z, scores.argmax(2), p).converged)[owner]
    room_of_choice = np.where(usable, room, -np.inf).reshape(pool, -1)
    members = np.argsort(-room_of_choice.max(axis=1))[:count]
    members = members[np.isfinite(room_of_choice.max(axis=1)[members])]
    data = TokenSelection(*(jnp.asarray(a[members]) for a in (X, y, z, v)))
    return LocalSelection(
        data, scores.argmax(2)[members], choices[room_of_choice.argmax(axis=1)[members]]
    )


def _on_sphere(array: np.ndarray) -> np.ndarray:
    return array / np.linalg.norm(array, axis=-1, keepdims=True)
