r"""Errors of late directions against the law that is proved for them, and where they are read.

grad psi(W) = s (grad psi(W_mm) + epsilon) with s = <grad psi(W), W_mm>. Where a law has several
terms, D_psi divided by it crosses one at some norm, and four scales about it decide nothing; the
length of epsilon - law hardly does, and it bounds |sqrt(D_psi / law) - 1| up to terms of order
|epsilon|. The larger of both is taken, and of that the supremum over all records from a norm on.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Sides
from attlas.optim.mirror_descent import bregman_sum, potential_gradient
from julistiono2024optimizing.cone_instances import plain_norm
from julistiono2024optimizing.direction_metric import half_square
from julistiono2024optimizing.flow_instances import GROWTH

CLEAR = 8.0
"""Times its error that a distance is at the last norm at which it is read."""
LEADS = 300.0
"""The norm from which the leading of two terms leads, where four later norms are to decide."""
FIRST = 160.0
"""The least first norm, where implicit steps begin: distances below their errors are read there."""
APART, BACK = 28, 84
"""Records between two scales, and between the first and the last."""


class Late(NamedTuple):
    """The last records of stacked flows, at each of which a distance is read.

    Attributes:
        W: points, shape (problems, 85, d, d).
        norm: their norms.
        unsolved: what is left of the equations of each implicit step, in the logarithm.
    """

    W: np.ndarray
    norm: np.ndarray
    unsolved: np.ndarray


def _distance(law, W, W_mm, p):
    """The larger of |epsilon - law| / |law| and |sqrt(D_psi / (|law|^2 / 2)) - 1|."""
    u, aim = potential_gradient(W, p), potential_gradient(W_mm, p)
    left = half_square(u / jnp.sum(u * W_mm) - aim - law, W_mm, p)
    size = half_square(law, W_mm, p)
    D = bregman_sum(W_mm / plain_norm(W_mm, p), W / plain_norm(W, p), p)
    return jnp.maximum(jnp.sqrt(left / size), jnp.abs(jnp.sqrt(D / size) - 1))


def roundings_of(law, W_mm, C, gram, p, older=True):
    """Roundings of grad psi(W) and of all <C_i, W>, seen in epsilon, over |law|.

    Of grad psi(W) 4, and those of older steps, which add up to 1 / (2 - 2 GROWTH^(1 - p)) of the
    last; of <C_i, W> one for each term and 6 more.
    """
    terms = jnp.einsum("ide,de->i", jnp.abs(C), jnp.abs(W_mm)) * (jnp.sum(W_mm != 0) + 6)
    aim = jnp.sqrt(2 * half_square(potential_gradient(W_mm, p), W_mm, p))
    aim = aim * (4 + older / (2 - 2 * GROWTH ** (1 - p)))
    return (aim + _in_span(terms, gram)) / jnp.sqrt(2 * half_square(law, W_mm, p))


def leads_early(lag, memory, p):
    """Whether of two squared lengths at norm one the leading term leads from `LEADS` on."""
    # Their ratio is that of x^|2 p - 4| at the norm from which the leading term leads.
    logs = jnp.where(p < 2, -1, 1) * jnp.log(memory / lag)
    return (p == 2) | (logs < jnp.abs(2 * p - 4) * jnp.log(LEADS))


def _in_span(gaps, gram):
    """The largest length of sum b_i C_i where H b is gaps with any signs."""
    return jnp.sqrt(gaps @ jnp.abs(jnp.linalg.inv(gram)) @ gaps)


def _seen(laws, W, norm, unsolved, W_mm, C, gram, p):
    """Distances of points from their laws, their roundings, and the errors of the steps."""

    def at(law, W, x, left):
        support = jnp.any(C != 0, axis=(1, 2))
        length = jnp.sqrt(2 * half_square(law, W_mm, p))
        error = _in_span(left * support, gram) / x / length
        return _distance(law, W, W_mm, p), roundings_of(law, W_mm, C, gram, p), error

    return jax.vmap(at)(laws, W, norm, unsolved)


_seen_along = jax.jit(jax.vmap(_seen))


def suprema(distance):
    """Where the largest of 85 distances lies from each of four on."""
    return jnp.stack([k + jnp.argmax(distance[k:]) for k in range(0, BACK + 1, APART)])


def sides(laws, late, W_mm, C, gram, p):
    """That the suprema of the distances from four norms on go to zero, with their errors."""
    distance, *errors = _seen(laws, late.W, late.norm, late.unsolved, W_mm, C, gram, p)
    at = suprema(distance)
    rounding, error = (array[at] for array in errors)
    return Sides(distance[at], jnp.zeros(len(at)), magnitude=rounding, error=error)


def late_records(paths, laws, W_mm, C, gram, p, steep, first=FIRST):
    """Records of late paths until the last at which distances are clear of their errors.

    Norms grow by 64 in all, and by 8 where distances are steep and fall soon to rounding, as at
    p = 2 like x^-2.
    """
    norm, unsolved = paths.norm, paths.unsolved
    arrays = (laws, paths.W, norm, unsolved, W_mm, C, gram, p)
    distance, rounding, error = (
        np.asarray(a) for a in _seen_along(*(jnp.asarray(a) for a in arrays))
    )
    allowed = np.finfo(float).eps * rounding + error
    span = np.where(np.asarray(steep), 8.0, 64.0)[:, None]
    hidden = ~(distance > CLEAR * allowed) & (norm > first * span)
    end = np.sum(np.isfinite(norm), axis=1) - 1
    last = np.where(hidden.any(axis=1), np.argmax(hidden, axis=1), end)
    aims = norm[np.arange(len(last)), last][:, None] * span ** (np.arange(-BACK, 1) / BACK)
    solved_norm = np.where(np.isfinite(norm), norm, np.inf)
    at = np.argmin(np.abs(np.log(solved_norm[:, None] / aims[..., None])), axis=2)
    rows = np.arange(len(last))[:, None]
    return Late(*(np.asarray(array)[rows, at] for array in (paths.W, norm, unsolved)))
