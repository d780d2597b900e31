"""Plain mirror descent and its flow from the same starts, to norms that descent cannot reach."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from attlas.bounds.optimisation.julistiono2024_cone import julistiono2024_mu_0
from attlas.data.token_selection import TokenSelection
from attlas.measures.attention.direction import direction_divergence
from attlas.norms.entrywise import entrywise_norm
from attlas.solvers.attention_svm import attention_svm_batch
from attlas.training.trajectory import log_spaced
from julistiono2024optimizing.library.solvers.selection_geometry import selection_geometry
from julistiono2024optimizing.library.token_selection.flow import mirror_flow
from julistiono2024optimizing.library.token_selection.training import train_selection_ensemble


class LongPaths(NamedTuple):
    """Plain steps first, then the flow on each clock; NaN past the end of a path.

    Attributes:
        log_k: log of the number of plain steps, or of t / rate.
        norm: ||W||_p.
        divergence: directional Bregman divergence to the attention SVM; NaN without a certificate.
        solved: whether the SVM has one.
        svm_norm: norm of the SVM.
        cone_width: the printed mu_0.
    """

    log_k: Float[np.ndarray, "c e s"]
    norm: Float[np.ndarray, "c e s"]
    divergence: Float[np.ndarray, "c e s"]
    solved: Bool[np.ndarray, " e"]
    svm_norm: Float[np.ndarray, " e"]
    cone_width: Float[np.ndarray, " e"]


def long_paths(
    data: TokenSelection,
    start: Float[Array, "e d d"],
    p: float,
    rate: float,
    steps: int,
    clocks: Sequence[tuple[int, float]],
    records: int,
) -> LongPaths:
    """Run plain steps and the flow on each clock, and measure them against the SVM.

    Args:
        data: problems along a leading axis, with their optimal tokens.
        p: exponent, 1 < p < inf.
        rate: step size eta of the plain steps.
        clocks: number of rescaled steps of the flow, and the norm at its end.
    """
    assert data.tokens is not None
    svm = attention_svm_batch(data.X, data.z, data.tokens, p)
    plain = train_selection_ensemble(
        data, start, p=p, learning_rate=rate, steps=steps, record_at=log_spaced(steps, records),
        normalized=False,
    )  # fmt: skip
    with np.errstate(divide="ignore"):  # step 0
        log_k = [np.tile(np.log(np.asarray(plain.steps, float)), (len(start), 1))]
    points, bare = [plain.W], TokenSelection(data.X, data.y, data.z, data.v)
    # One schedule length, so that all clocks share a program.
    for count, last_norm in clocks:
        spaced = np.unique(np.geomspace(10, count, records).astype(int)).tolist()
        follow = partial(mirror_flow, p=p, steps=count, step=last_norm / count, record_at=spaced)
        flow = jax.vmap(follow)(bare, start)
        points.append(flow.W)
        log_k.append(np.asarray(flow.log_time - float(np.log(rate))))
    goal = jnp.where(svm.converged[:, None, None], svm.value, jnp.nan)
    W, ends = jnp.concatenate(points, axis=1), np.cumsum([W.shape[1] for W in points])[:-1]
    norm, divergence, width = jax.jit(jax.vmap(partial(_measured, p=p)))(data, goal, W)
    return LongPaths(
        _stacked(log_k),
        _stacked(np.split(np.asarray(norm), ends, axis=1)),
        _stacked(np.split(np.asarray(divergence), ends, axis=1)),
        np.asarray(svm.converged),
        svm.certificate["norm_upper"],
        np.asarray(width),
    )


def _measured(data: TokenSelection, target: Array, W: Array, p: float) -> tuple[Array, ...]:
    """Norm and divergence along the paths of one problem, and mu_0 of its cone."""
    assert data.tokens is not None
    geometry = selection_geometry(data, data.tokens, target, p)
    width = julistiono2024_mu_0(geometry.delta, geometry.A, p, len(target), constants="printed")
    norm = jax.vmap(partial(entrywise_norm, p=p))(W)
    return norm, jax.vmap(partial(direction_divergence, target=target, p=p))(W), width


def _stacked(paths: Sequence[np.ndarray]) -> np.ndarray:
    """Paths of several lengths, filled up with NaN."""
    longest = max(part.shape[1] for part in paths)
    stacked = np.full((len(paths), len(paths[0]), longest), np.nan)
    for row, part in zip(stacked, paths, strict=True):
        row[:, : part.shape[1]] = part
    return stacked
