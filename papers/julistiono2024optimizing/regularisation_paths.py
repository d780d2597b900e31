r"""The regularisation-path theorems for a fixed value head, global and local.

Our `multiples` are R / ||W_mm||_{p,p}. Points of the path are stationary on the sphere of radius R
to a relative Frank-Wolfe gap of 1e-12 and no worse than W_mm scaled to it; that the lowest of
several is the minimiser is supported by the starts, not proved.
"""

from functools import partial
from itertools import product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Source, assume
from attlas.claims.sampling import in_turn, shared
from attlas.claims.statement import limit
from attlas.losses.margin_loss import margin_loss
from attlas.measures.attention.direction import direction_divergence
from attlas.norms.entrywise import entrywise_norm
from attlas.solvers.attention_svm import attention_svm_batch
from attlas.solvers.token_optimality import attention_margins, is_locally_optimal
from julistiono2024optimizing.cone_instances import cone_divergence
from julistiono2024optimizing.flow_instances import (
    OTHER,
    best_tokens,
    gaussian_selections,
)
from julistiono2024optimizing.library.solvers.regularisation_path import LogExcessLoss
from julistiono2024optimizing.library.token_selection.ball import descend_in_ball

SIZES = ((2, 3, 3), (3, 4, 2), (5, 3, 4))
"""Samples, tokens and dimensions of the problems; each is a program of its own."""
EACH, STARTS, STEPS = 7, 4, (500, 100)
MULTIPLES = np.array([1000.0, 2000.0, 4000.0, 8000.0])
"""Least radii over ||W_mm||_{p,p}: the gaps at the minimiser are about these."""
NEAREST, PAST = 1.5e-3, 15.0
"""Least excess of a token off the margin, and that excess times the least radius, or more."""
GAP = 1e-12
"""Relative Frank-Wolfe gap that counts as stationary."""
CLOSE = 1.02
"""Factor of the other exponent, whose attention SVM is a control."""
CONE = 0.1
"""Width of the cone in which the local path is sought."""


def error_of(divergence, gap):
    r"""By how much a divergence D of a point with a relative gap is wrong: $2\sqrt{D\,gap}+gap$.

    The gap is the divergence of the point from the one that its gradient points to. The path's
    point lies between them where the log excess is convex, and the root of D is a distance at
    $p = 2$ (at other $p$ to first order).
    """
    return 2 * jnp.sqrt(divergence * gap) + gap


def sides_of(divergence, gap, multiples):
    """A divergence of points with relative gaps and zero, with its error.

    A hundredth of R^-2 is added, R in multiples of ||W_mm||: a path may turn into its direction so
    fast that four numbers would be roundings, which have no trend.
    """
    # Directions are rounded: a divergence is one minus a sum of 16 terms at most.
    one, error = jnp.ones_like(gap), error_of(divergence, gap)
    return Sides(divergence + 0.01 / multiples**2, 0 * one, magnitude=one, error=error)


def from_all_starts(point, radii, *starts):
    """What a function gives at each radius from each start, [radius, start]; traced over one axis.

    Over two axes JAX traces all of it twice, which takes longer than running it.
    """
    count = len(starts[0])
    every = [jnp.tile(start, (len(radii), *(1,) * (start.ndim - 1))) for start in starts]
    ends = jax.vmap(point)(jnp.repeat(radii, count), *every)
    return jax.tree.map(lambda end: end.reshape(len(radii), count, *end.shape[1:]), ends)


def _path(data, tokens, target, others, starts, multiples, p, cone):
    """The lowest point of all starts in the cone at each radius, and whether it is a minimiser's.

    It must be stationary and no worse than W_mm scaled to the radius, which is in the ball as well:
    descent that loses W_mm missed the minimiser. In a cone (a finite width) alpha leads.
    """
    loss, norm = LogExcessLoss(data, margin_loss("logistic")), entrywise_norm(target, p)

    def point(radius, W0):
        lowest_point = descend_in_ball(
            data, W0, p=p, radius=radius, steps=STEPS[0], implicit_steps=STEPS[1]
        )
        leads = jnp.all(attention_margins(data.X, data.z, tokens, lowest_point.W) >= 0)
        inside = (cone_divergence(target, lowest_point.W, p) <= cone) & (leads | jnp.isinf(cone))
        return (
            lowest_point.W,
            lowest_point.relative_gap,
            jnp.where(inside, loss(lowest_point.W), jnp.inf),
        )

    radii = norm * multiples
    W, gap, height = from_all_starts(point, radii, starts)
    lowest, row = jnp.argmin(height, axis=1), jnp.arange(len(radii))
    scaled = jax.vmap(lambda radius: loss(radius * target / norm))(radii)
    # Near a local choice the loss is its limit up to a rounding of its sums.
    rounded = 2**10 * jnp.finfo(norm.dtype).eps * jnp.abs(scaled)
    reached = height[row, lowest] <= scaled + rounded
    along = jax.vmap(jax.vmap(direction_divergence, (0, None, None)), (0, None, None))
    right = along(W, target, p)
    wrong = jax.vmap(lambda other: along(W, other, p)[row, lowest])(others)
    # Points that rounding does not tell from the lowest one must be the same.
    tied = (height <= height[row, lowest][:, None] + rounded[:, None]) & (gap <= GAP)
    spread = jnp.max(jnp.where(tied, right, 0), 1) - jnp.min(jnp.where(tied, right, jnp.inf), 1)
    right = right[row, lowest]
    one = spread <= error_of(right, GAP)
    good = jnp.all(reached & one & (gap[row, lowest] <= GAP))
    return good, gap[row, lowest], right, wrong


def least_excess(data, tokens, W_mm):
    """The least excess of a token off the margin, at W_mm; infinite where all lie on it.

    A token at 1 + e has the weight exp(-R e / ||W_mm||), beside the support tokens' of exp(-R).
    """
    beyond = attention_margins(data.X, data.z, tokens, W_mm) - 1
    return jnp.min(jnp.where(beyond > 1e-6, beyond, jnp.inf))


def radii_past(excess):
    """Multiples of the norm of W_mm at which tokens of that excess have stopped, [problem, 4]."""
    times = np.maximum(1, PAST / (np.maximum(excess, NEAREST) * MULTIPLES[0]))
    return times[:, None] * MULTIPLES


_excesses = eqx.filter_jit(jax.vmap(least_excess))
_paths = eqx.filter_jit(jax.vmap(_path, in_axes=(0, 0, 0, 0, 0, 0, None, None)))
_are_local = eqx.filter_jit(jax.vmap(is_locally_optimal))


def _compared(data, tokens, svm, others, starts, p, cone=np.inf):
    """Paths of stacked problems, and how far they are from their SVM and from other ones."""
    excess = np.asarray(_excesses(data, jnp.asarray(tokens), svm.value))
    multiples = radii_past(excess)
    directions = np.stack([other.value for other in others], axis=1)
    problem = tokens, svm.value, directions, starts, multiples
    arguments = map(jnp.asarray, (*problem, p, cone))
    solved = (svm, *others)
    svm_gap = np.max([np.asarray(each.certificate["gap"]) for each in solved], axis=0)
    reached, gap, right, wrong = map(np.asarray, _paths(data, *arguments))
    gap = np.maximum(gap, np.finfo(gap.dtype).eps) + np.maximum(svm_gap, 0)[:, None]
    batch = {
        "certified": np.all([each.result == 0 for each in solved], axis=0) & reached,
        "multiples": multiples,
        "excess": excess,
        "own": right,
        "wrong": wrong,
        "gap": gap,
    }
    # Paths whose distance from their SVM is within its own gap cannot show a limit.
    resolved = np.all((error_of(right, gap) <= right / 10) | (right <= 1e-14), axis=1)
    return {name: array[resolved | ~batch["certified"]] for name, array in batch.items()}


@shared
def _global(rng):
    batches = []
    for p, size in product(OTHER, SIZES):
        data = gaussian_selections(rng, EACH, *size)
        tokens = best_tokens(data)
        svm = attention_svm_batch(data.X, data.z, tokens, p)
        compared = attention_svm_batch(data.X, data.z, tokens, CLOSE * p)
        random = rng.normal(size=(EACH, STARTS - 1, size[2], size[2]))
        starts = np.concatenate([svm.value[:, None], random], axis=1)
        # Twice, so that global and local paths share their programs.
        batches.append(_compared(data, tokens, svm, [compared, compared], starts, p))
    return batches


def _local_choices(rng, p, size):
    """Problems whose second best token of the first sample is locally optimal."""
    data = gaussian_selections(rng, 24 * EACH, *size)
    tokens = best_tokens(data)
    scores = np.asarray(data.y)[..., None] * np.einsum("bntd,bd->bnt", data.X, data.v)
    tokens[:, 0] = np.argsort(scores[:, 0], axis=-1)[:, -2]
    svms = attention_svm_batch(data.X, data.z, tokens, p)
    local = _are_local(data, jnp.asarray(tokens), svms.value)
    rows = np.flatnonzero(np.asarray(local) & (np.asarray(svms.result) == 0))[:EACH]
    return jax.tree.map(lambda a: a[rows], data), tokens[rows]


@shared
def _local(rng):
    batches = []
    for p, size in product(2 * list(OTHER), SIZES):  # batches of one size share a program
        data, tokens = _local_choices(rng, p, size)
        svm = attention_svm_batch(data.X, data.z, tokens, p)
        compared = [
            attention_svm_batch(data.X, data.z, tokens, CLOSE * p),
            attention_svm_batch(data.X, data.z, best_tokens(data), p),
        ]
        shaken = 1 + 0.01 * (np.arange(STARTS) > 0)[:, None, None] * rng.normal(
            size=(len(tokens), STARTS, size[2], size[2])
        )
        starts = svm.value[:, None] * shaken
        batches.append(_compared(data, tokens, svm, compared, starts, p, CONE))
    return batches


def global_paths(rng, count):
    """The path of random problems: lowest points of W_mm and three random starts.

    `certified`, `multiples` = R / ||W_mm||, and the divergences from the attention SVM of this p,
    `own`, and of others, `wrong`, with the `gap` that they are wrong by and the least `excess` of
    a token off the margin; at most 63.
    """
    return in_turn(_global(rng), count)


def local_paths(rng, count):
    """The path near a choice of tokens that is locally but not globally optimal; at most 126.

    As `global_paths`; the second of `wrong` is the divergence from the globally optimal SVM.
    """
    return in_turn(_local(rng), count)


SOLVED = assume(
    "attention SVM certified to a relative gap of 1e-8, the lowest points stationary to 1e-12 and "
    "no worse than $R W_{mm} / \\|W_{mm}\\|_{p,p}$",
    lambda certified: certified,
)

PASSED = assume(
    "no token within 0.0015 beyond the margin: the path turns where $R$ times this is about 1",
    lambda excess: excess >= NEAREST,
)

_OTHER = Control("the attention SVM of $1.02\\,p$", other=1)
on_paths = partial(
    limit,
    source=Source.RECALLED,
    scales="multiples",
    not_attacked="its sampler solves all paths at once",
    assumptions=[SOLVED, PASSED],
)


@on_paths(
    "Regularisation-path theorem",
    sample=global_paths,
    count=63,
    controls=[_OTHER],
)
def regularisation_path(own, wrong, gap, multiples, *, other=0):
    r"""$$W(R)=\arg\min_{\|W\|_{p,p}\le R}\mathcal L(W):\quad \lim_{R\to\infty}\frac{W(R)}{R}
    =\frac{W^{opt}_{mm}}{\|W^{opt}_{mm}\|_{p,p}}$$

    $p = 1.5, 2, 3$; $n, T, d$ of $2, 3, 3$, of $3, 4, 2$ and of $5, 3, 4$; $R$ of 1000 to 8000
    times $\|W_{mm}\|_{p,p}$, and more where a token lies less than 0.015 beyond the margin;
    $W(R)$ is the lowest point reached from $W_{mm}$ and three random starts. Shown is its
    divergence plus $0.01 \, (\|W_{mm}\| / R)^2$.
    """
    return sides_of(wrong[other - 1] if other else own, gap, multiples)


@on_paths(
    "Local regularisation path",
    sample=local_paths,
    count=126,  # of half of them the lowest point is not stationary, or there is none in the cone
    controls=[_OTHER, Control("the globally optimal attention SVM", other=2)],
)
def local_regularisation_path(own, wrong, gap, multiples, *, other=0):
    r"""$$W(R)=\arg\min_{W\in S_{p,\mu}(W^\alpha_{mm}),\,\|W\|_{p,p}\le R}\mathcal L(W):\quad
    \lim_{R\to\infty}\frac{W(R)}{R}=\frac{W^\alpha_{mm}}{\|W^\alpha_{mm}\|_{p,p}}$$

    $\alpha_1$ is the second best token of its sample, locally and not globally optimal. The points
    are the lowest in the part of the cone of width 0.1 where every $\alpha_i$ leads, as it does for
    $\mu \le \mu_0$: another choice's direction may lie in the cone as well. They are stationary,
    so that the constraint of the cone is not active.
    """
    return sides_of(wrong[other - 1] if other else own, gap, multiples)
