r"""The joint regularisation-path theorem: value head and attention in two growing balls.

Two or three samples of two or three tokens. The tokens alpha are those of the largest label margin
1 / ||v_mm||_p. The theorem's condition on mixtures is certified by duality: with the SVM's
multipliers lambda (of sum one) the label margin of mixed tokens is at most
h = ||sum lambda_i y_i x_i||_q, convex in the shares of the tokens, so that h below the margin at
all other corners is enough.
"""

from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Source, Status, assume
from attlas.claims.sampling import in_turn, shared
from attlas.claims.statement import limit, probability
from attlas.data.token_selection import TokenSelection
from attlas.losses.margin_loss import margin_loss
from attlas.measures.attention.direction import direction_divergence
from attlas.norms.entrywise import entrywise_norm
from attlas.solvers.attention_svm import attention_svm_batch
from attlas.solvers.lp_svm import lp_svm_batch
from julistiono2024optimizing.flow_instances import (
    OTHER,
    converges,
    gaussian_selections,
)
from julistiono2024optimizing.library.solvers.regularisation_path import LogJointLoss
from julistiono2024optimizing.library.token_selection.ball import descend_in_ball
from julistiono2024optimizing.library.token_selection.training import train_selection_ensemble
from julistiono2024optimizing.regularisation_paths import (
    CLOSE,
    GAP,
    PASSED,
    STEPS,
    error_of,
    from_all_starts,
    least_excess,
    radii_past,
)

SIZES = ((2, 3, 2), (3, 2, 4))
"""Samples, tokens and dimensions of the problems; each is a program of its own."""
_DRAWN, _EACH, _STARTS = 240, 16, 3
"""Problems drawn per p and size, and those of them kept where the theorem's condition holds."""
_RECORDS = (1000, 2000, 4000, 8000)


def _path(data, aim, starts, multiples, p):
    """The lowest point of all starts at each multiple of both norms, and its gap.

    Whether it is a minimiser's: it must be stationary and no worse than the pair of SVMs scaled to
    the radii, and points that rounding does not tell from it must have its directions.
    """
    loss = LogJointLoss(data, margin_loss("logistic"))
    sizes = entrywise_norm(aim[0], p), entrywise_norm(aim[1], p)

    def point(multiple, v0, W0):
        begun, (r, R) = TokenSelection(data.X, data.y, data.z, v0), (multiple * a for a in sizes)
        lowest_point = descend_in_ball(
            begun, W0, p=p, radius=R, head_radius=r, steps=STEPS[0], implicit_steps=STEPS[1]
        )
        return (
            (lowest_point.v, lowest_point.W),
            lowest_point.relative_gap,
            loss(lowest_point.v, lowest_point.W),
        )

    points, gap, height = from_all_starts(point, multiples, *starts)
    lowest, row = jnp.argmin(height, axis=1), jnp.arange(len(multiples))
    scaled = jax.vmap(lambda multiple: loss(multiple * aim[0], multiple * aim[1]))(multiples)
    rounded = 2**10 * jnp.finfo(height.dtype).eps * jnp.abs(scaled)
    tied = (height <= height[row, lowest][:, None] + rounded[:, None]) & (gap <= GAP)
    one = [_agree(away, tied) for away in _away_from(points, aim, p)]
    reached = (height[row, lowest] <= scaled + rounded) & (gap[row, lowest] <= GAP)
    path = tuple(a[row, lowest] for a in points)
    return path, gap[row, lowest], jnp.all(reached & one[0] & one[1])


def _agree(away, tied):
    """Whether the divergences [radius, start] of tied points are equal up to their gaps."""
    most = jnp.max(jnp.where(tied, away, 0), axis=1)
    return most - jnp.min(jnp.where(tied, away, jnp.inf), axis=1) <= error_of(most, GAP)


def _away_from(points, aim, p):
    """Divergences of both blocks of points [radius, start] from a pair of SVMs."""
    along = jax.vmap(jax.vmap(direction_divergence, (0, None, None)), (0, None, None))
    return [along(a, to, p) for a, to in zip(points, aim, strict=True)]


def _away(path, aims, p):
    """Divergences of both blocks of a path from pairs of SVMs, [pair, block, point]."""
    along = jax.vmap(direction_divergence, (0, None, None))
    return jnp.stack([
        jnp.stack([along(a, to, p) for a, to in zip(path, pair, strict=True)]) for pair in aims
    ])  # fmt: skip


_excesses = jax.jit(jax.vmap(least_excess))
_paths = jax.jit(jax.vmap(_path, in_axes=(0, 0, 0, 0, None)))
_all_away = jax.jit(jax.vmap(_away, in_axes=(0, 0, None)))


def _choices(data, p):
    """The choices of largest label margin and of the next, and whether the condition holds."""
    X, y = np.asarray(data.X), np.asarray(data.y)
    count, n, T, d = X.shape
    corners = np.array(list(product(range(T), repeat=n)))
    tokens = np.broadcast_to(corners, (count, *corners.shape))
    picked = np.take_along_axis(X[:, None], tokens[..., None, None], axis=3)[..., 0, :]
    svms = lp_svm_batch(picked.reshape(-1, n, d), np.repeat(y, len(corners), axis=0), p)
    shape = (count, len(corners))
    margin = (1 / np.asarray(svms.certificate["norm_upper"])).reshape(shape)
    margin = np.where((np.asarray(svms.result) == 0).reshape(shape), margin, 0)
    second, best = np.argsort(margin, axis=1)[:, -2:].T
    rows = np.arange(count)
    share = np.asarray(svms.certificate["dual"]).reshape(*shape, n)[rows, best]
    share = share / share.sum(axis=1, keepdims=True)
    pulled = np.einsum("bi,bi,bcid->bcd", share, y, picked)
    q = p / (p - 1)
    bound = (np.abs(pulled) ** q).sum(axis=-1) ** (1 / q)
    bound[rows, best] = 0
    # nu is at least a fiftieth of the margin.
    holds = (margin[rows, best] > 0) & (bound.max(axis=1) <= 0.98 * margin[rows, best])
    return [corners[at] for at in (best, second)], holds


class _Problems(NamedTuple):
    """Problems of one p that meet the condition, with SVMs of both blocks for three choices.

    Of the best tokens at p, of the next best, and of the best at another p.
    """

    data: TokenSelection
    svms: list[tuple[np.ndarray, ...]]
    condition: np.ndarray
    solved: np.ndarray
    svm_gap: np.ndarray
    excess: np.ndarray


def _pair_of_svms(data, tokens, p):
    """Both solutions for the tokens: of the value head, and of attention."""
    X = np.asarray(data.X)
    picked = np.take_along_axis(X, np.asarray(tokens)[:, :, None, None], axis=2)[:, :, 0]
    return lp_svm_batch(picked, data.y, p), attention_svm_batch(data.X, data.z, tokens, p)


@shared
def _problems(rng, p, size):
    problems = gaussian_selections(rng, _DRAWN, *size)
    (best, second), holds = _choices(problems, p)
    rows = np.flatnonzero(holds)[:_EACH]
    data = jax.tree.map(lambda a: a[rows], problems)
    best, second = best[rows], second[rows]
    pairs = [_pair_of_svms(data, *choice) for choice in ((best, p), (second, p), (best, CLOSE * p))]
    solved = np.all([svm.result == 0 for pair in pairs for svm in pair], axis=0)
    gap = np.max([np.asarray(svm.certificate["gap"]) for pair in pairs for svm in pair], axis=0)
    svms = [tuple(np.nan_to_num(np.asarray(svm.value), nan=1.0) for svm in pair) for pair in pairs]
    excess = np.asarray(_excesses(data, jnp.asarray(best), jnp.asarray(svms[0][1])))
    return _Problems(data, svms, holds[rows], solved, np.maximum(gap, 0), excess)


@shared
def _joint_paths(rng):
    batches = []
    for p, size in product(OTHER, SIZES):
        problems, d = _problems(rng, p, size), size[2]
        count, aim = len(problems.solved), problems.svms[0]
        v, W = rng.normal(size=(count, _STARTS, d)), rng.normal(size=(count, _STARTS, d, d))
        v[:, 0], W[:, 0] = aim
        multiples = radii_past(problems.excess)
        arguments = problems.data, aim, (v, W), jnp.asarray(multiples), jnp.asarray(p)
        there, gap, reached = _paths(*arguments)
        gap = np.maximum(gap, np.finfo(float).eps) + problems.svm_gap[:, None]
        batch = _compared(problems, p, there, reached)
        own = batch["away"][:, 0]
        error = error_of(own, gap[:, None]).sum(axis=1)
        # Paths whose distance from their SVMs is within their own gaps cannot show a limit.
        distance = own.sum(axis=1)
        resolved = np.all((error <= distance / 10) | (distance <= 1e-14), axis=1)
        batch |= {"multiples": multiples, "gap": gap, "excess": problems.excess}
        keep = resolved | ~batch["certified"]
        batches.append({name: array[keep] for name, array in batch.items()})
    return batches


@shared
def _joint_descents(rng):
    batches = []
    for p, size in product(OTHER, SIZES):
        problems = _problems(rng, p, size)
        v, W = (
            jnp.asarray(aim * (1 + 0.1 * rng.normal(size=aim.shape))) for aim in problems.svms[0]
        )
        path = train_selection_ensemble(
            problems.data,
            W,
            v0=v,
            p=p,
            # Norms of about 100 in the end, where gradients are still above rounding.
            learning_rate=100 ** (p - 1) / _RECORDS[-1],
            steps=_RECORDS[-1],
            record_at=_RECORDS,
            joint=True,
        )
        there = path.params["v"], path.params["W"]
        batches.append(_compared(problems, p, there))
    return batches


def _compared(problems, p, there, reached=True):
    """Divergences of paths from the SVMs of the three choices, with the conditions."""
    away = np.asarray(_all_away(there, problems.svms, jnp.asarray(p)))
    certified = problems.solved & np.asarray(reached)
    return {"condition": problems.condition, "away": away, "certified": certified}


def joint_paths(rng, count):
    """Divergences `away` of both directions from SVMs: [choice of tokens and p, block, radius]."""
    return in_turn(_joint_paths(rng), count)


def joint_descents(rng, count):
    """The same divergences along joint descent from near both SVMs."""
    return in_turn(_joint_descents(rng), count)


SOLVED = assume(
    "SVMs certified to a relative gap of 1e-8, the lowest points of a path stationary to 1e-12 "
    "and no worse than the SVMs at their radii",
    lambda certified: certified,
)
CONDITION = assume(
    r"mixing tokens lowers the label margin by at least $\nu \max_i (1 - s_{i\alpha_i})$",
    lambda condition: condition,
)


@limit(
    "Joint regularisation-path theorem",
    Source.RECALLED,
    scales="multiples",
    sample=joint_paths,
    not_attacked="its sampler solves all paths at once",
    assumptions=[SOLVED, CONDITION, PASSED],
    controls=[
        Control(
            "label margin condition broken: the choice of second largest label margin", other=1
        ),
        Control("the SVMs of $1.02\\,p$", other=2),
    ],
    count=3 * len(SIZES) * _EACH,
)
def joint_regularisation_path(away, gap, *, other=0):
    r"""$$(v^{(r)},W^{(R)})=\arg\min_{\|v\|_p\le r,\,\|W\|_{p,p}\le R}\mathcal L(v,W):\quad
    \frac{v^{(r)}}{r}\to\frac{v_{mm}}{\|v_{mm}\|_p},\quad
    \frac{W^{(R)}}{R}\to\frac{W_{mm}}{\|W_{mm}\|_{p,p}}\quad (r,R\to\infty)$$

    The sum of both divergences. Logistic loss, $p = 1.5, 2, 3$; $n, T, d$ of $2, 3, 2$ and of
    $3, 2, 4$; $r$ and $R$ are 1000 to 8000 times the two SVMs' norms, and more where a token lies
    less than 0.015 beyond the margin. The point is the lowest reached from the SVMs and two random
    starts.
    """
    distance, error = away[other].sum(axis=0), error_of(away[other], gap).sum(axis=0)
    # Each divergence is one of directions that are rounded.
    return Sides(distance, 0 * gap, magnitude=jnp.ones_like(gap), error=error)


@probability(
    r"$\ell_p$-JointGD",
    Source.DERIVED,
    level=3 / 4,
    status=Status.NEW,
    sample=joint_descents,
    independent="tokens, queries, labels and both starts",
    assumptions=[SOLVED, CONDITION],
    controls=[Control("the choice of second largest label margin", other=1)],
    count=3 * len(SIZES) * _EACH,
)
def joint_descent(away, *, other=0):
    r"""$$\Pr\Big(\lim_{k\to\infty}\frac{v(k)}{\|v(k)\|_p}=\frac{v_{mm}}{\|v_{mm}\|_p},\
    \lim_{k\to\infty}\frac{W(k)}{\|W(k)\|_{p,p}}=\frac{W_{mm}}{\|W_{mm}\|_{p,p}}\Big)\ge\tfrac34$$

    The paper proves the path alone and runs the descent: normalised steps on $v$ and $W$, here from
    within a tenth of both SVMs, Gaussian problems that meet the theorem's condition, $p = 1.5, 2,
    3$. A run converges if the sum of both divergences falls from 1000 to 2000, 4000 and 8000 steps
    and ends below 0.05. Others leave for another choice of tokens. The level is a choice, well
    above one half.
    """
    return converges(away[other].sum(axis=0))
