r"""Points of the regularisation path, by descent in balls of growing radius from several starts."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.julistiono2024optimizing.flow_instances import (
    OTHER,
    best_tokens,
    divergences,
    gaussian_selections,
    joined,
)
from attlas.core.sampling import shared
from attlas.losses.margin_loss import margin_loss
from attlas.solvers.attention_svm import attention_svm_batch
from attlas.solvers.regularisation_path import LogExcessLoss
from attlas.solvers.token_optimality import is_locally_optimal
from attlas.tasks.token_selection.ball import descend_in_ball

EACH, STARTS, STEPS = 20, 4, 1000
MULTIPLES = np.array([15.0, 30.0, 60.0, 120.0])
"""Radii over ||W_mm||_{p,p}: the gaps at the minimiser are about these."""
GAP = 1e-6
"""Relative Frank-Wolfe gap that counts as stationary, a tenth of the divergences measured."""


def _point(data, W0, radius, p):
    found = descend_in_ball(data, W0, p=p, radius=radius, steps=STEPS)
    excess = LogExcessLoss(data, margin_loss("logistic"))(found.W)
    return found.W, found.relative_gap, excess


_over_starts = jax.vmap(_point, in_axes=(None, 0, None, None))
_over_radii = jax.vmap(_over_starts, in_axes=(None, None, 0, None))
_points = eqx.filter_jit(jax.vmap(_over_radii, in_axes=(0, 0, 0, None)))


def _paths(data, W_mm, norm, starts, p):
    """The lowest point of all starts at each radius; its gap."""
    radii = jnp.asarray(norm[:, None] * MULTIPLES)
    W, gap, excess = _points(data, starts, radii, jnp.asarray(p))
    excess = np.where(np.asarray(gap) <= GAP, np.asarray(excess), np.inf)
    lowest = np.argmin(excess, axis=2)
    best = np.take_along_axis(np.asarray(W), lowest[:, :, None, None, None], axis=2)[:, :, 0]
    return jnp.asarray(best), np.isfinite(excess.min(axis=2)).all(axis=1)


@shared
def _global(rng):
    parts = []
    for p, other in OTHER.items():
        data = gaussian_selections(rng, EACH, 2, 3, 3)
        tokens = best_tokens(data)
        found = attention_svm_batch(data.X, data.z, tokens, p)
        compared = attention_svm_batch(data.X, data.z, tokens, other)
        random = rng.normal(size=(EACH, STARTS - 1, 3, 3))
        starts = jnp.concatenate([found.value[:, None], jnp.asarray(random)], axis=1)
        W, stationary = _paths(data, found.value, found.certificate["norm_upper"], starts, p)
        solved = np.asarray((found.result == 0) & (compared.result == 0))
        parts.append(
            {
                "p": np.full(EACH, p),
                "certified": solved & stationary,
                "multiples": np.tile(MULTIPLES, (EACH, 1)),
                "own": np.asarray(divergences(W, found.value, jnp.asarray(p))),
                "wrong": np.asarray(divergences(W, compared.value, jnp.asarray(p))),
            }
        )
    return joined(parts)


def _local_choices(rng, p):
    """Problems whose second best token of the first sample is locally optimal."""
    data = gaussian_selections(rng, 16 * EACH, 2, 3, 3)
    tokens = best_tokens(data)
    scores = np.asarray(data.y)[..., None] * np.einsum("bntd,bd->bnt", data.X, data.v)
    second = np.argsort(scores[:, 0], axis=-1)[:, -2]
    tokens = np.stack([second, tokens[:, 1]], axis=1)
    found = attention_svm_batch(data.X, data.z, tokens, p)
    local = jax.vmap(is_locally_optimal)(data, jnp.asarray(tokens), found.value)
    kept = np.flatnonzero(np.asarray(local) & (np.asarray(found.result) == 0))[:EACH]
    return jax.tree.map(lambda a: a[kept], data), tokens[kept]


@shared
def _local(rng):
    parts = []
    for p in 2 * list(OTHER):  # batches of one size share a program
        data, tokens = _local_choices(rng, p)
        found = attention_svm_batch(data.X, data.z, tokens, p)
        best = attention_svm_batch(data.X, data.z, best_tokens(data), p)
        shaken = 1 + 0.01 * rng.normal(size=(len(tokens), STARTS, 3, 3))
        starts = found.value[:, None] * jnp.asarray(shaken)
        W, stationary = _paths(data, found.value, found.certificate["norm_upper"], starts, p)
        parts.append(
            {
                "p": np.full(len(tokens), p),
                "certified": np.asarray((found.result == 0) & (best.result == 0)) & stationary,
                "multiples": np.tile(MULTIPLES, (len(tokens), 1)),
                "own": np.asarray(divergences(W, found.value, jnp.asarray(p))),
                "wrong": np.asarray(divergences(W, best.value, jnp.asarray(p))),
            }
        )
    return joined(parts)


def _interleaved(found, count):
    """Every third instance first, so that a few have every p."""
    order = np.argsort(np.argsort(found["p"], kind="stable") % len(OTHER), kind="stable")
    return {name: value[order[:count]] for name, value in found.items()}


def global_paths(rng, count):
    """The path of random problems: lowest stationary points of W_mm and three random starts.

    `certified`, `multiples` = R / ||W_mm||, and the divergences from the attention SVM of this p,
    `own`, and of another, `wrong`; at most 60.
    """
    return _interleaved(_global(rng), count)


def local_paths(rng, count):
    """The path near a choice of tokens that is locally but not globally optimal; at most 120.

    As `global_paths`; `wrong` is the divergence from the globally optimal SVM.
    """
    return _interleaved(_local(rng), count)
