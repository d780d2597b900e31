"""Regularisation paths of several problems, measured against the attention SVMs of every q."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from attlas.core.solution import Solution
from attlas.data.token_selection import TokenSelection
from attlas.measures.attention.direction import direction_divergence
from attlas.solvers.attention_svm import attention_svm_batch
from julistiono2024optimizing.library.solvers.ball_minimum import CONE_SLACK, Cone
from julistiono2024optimizing.library.solvers.local_selection import LocalSelection
from julistiono2024optimizing.library.solvers.regularisation_path import regularisation_path


class PathsToSvms(NamedTuple):
    """Points of the paths, NaN where they have no certificate.

    Attributes:
        divergence: directional Bregman divergence to the SVM of each q.
        to_global: divergence to the SVM of the globally optimal tokens for the path's p.
        on_border: whether a point lies on the border of its cone.
        certified: whether it has a Frank-Wolfe certificate.
        gap: its relative Frank-Wolfe gap.
        agreeing: number of starts that ended there.
        svm_norm: norm of the SVM of the path's own p, the unit of the radii.
    """

    divergence: Float[np.ndarray, "q e r"]
    to_global: Float[np.ndarray, "e r"]
    on_border: Bool[np.ndarray, "e r"]
    certified: Bool[np.ndarray, "e r"]
    gap: Float[np.ndarray, "e r"]
    agreeing: Int[np.ndarray, "e r"]
    svm_norm: Float[np.ndarray, " e"]


def paths_to_svms(
    problems: LocalSelection,
    tokens: Int[np.ndarray, "e n"],
    p: float,
    exponents: Sequence[float],
    radii: Sequence[float],
    key: PRNGKeyArray,
    starts: int,
    width: float | None = None,
) -> PathsToSvms:
    """The path of each problem, over the whole ball or in a cone around the SVM of its tokens.

    Args:
        problems: problems that state their globally optimal tokens.
        tokens: whose SVMs the paths are measured against.
        p: exponent of the balls, one of the next.
        exponents: q of the SVMs.
        radii: radii in units of the norm of the SVM of p.
        starts: number of random directions tried at every radius.
        width: cone width mu; the full ball when None.
    """
    data = problems.data
    svms = [_solved(data, tokens, q) for q in exponents]
    svm, paths = svms[list(exponents).index(p)], []
    for e, norm in enumerate(svm.certificate["norm_upper"]):
        cone = None if width is None else Cone(svm.value[e] / norm, jnp.asarray(width))
        problem = TokenSelection(data.X[e], data.y[e], data.z[e], data.v[e])
        radii_of_problem = [float(r * norm) for r in radii]
        paths.append(
            regularisation_path(
                problem, radii_of_problem, p, key=key, starts=starts, cone=cone, tolerance=1e-6
            )
        )
    certified = np.stack([path.converged for path in paths])
    W = jnp.where(certified[:, :, None, None], jnp.stack([path.value for path in paths]), jnp.nan)
    apart = jax.jit(jax.vmap(jax.vmap(partial(direction_divergence, p=p), (0, None))))
    excess, gap, agreeing = (
        np.stack([path.certificate[name] for path in paths])
        for name in ("cone_excess", "relative_gap", "starts_agreeing")
    )
    return PathsToSvms(
        np.stack([apart(W, svm.value) for svm in svms]),
        np.asarray(apart(W, _solved(data, problems.best, p).value)),
        np.abs(excess) <= CONE_SLACK,
        certified,
        gap,
        agreeing,
        svm.certificate["norm_upper"],
    )


def _solved(data: TokenSelection, tokens: np.ndarray, q: float) -> Solution[np.ndarray]:
    """The attention SVMs of all problems; those of the pool were chosen certified."""
    svm = attention_svm_batch(data.X, data.z, tokens, q)
    svm.unwrap()
    return svm
