r"""The joint regularisation-path theorem: value head and attention in two growing balls.

Two samples of two tokens. The tokens alpha are those of the largest label margin 1 / ||v_mm||_p.
The theorem's condition on mixtures is certified by duality: with the SVM's multipliers lambda
(of sum one) the label margin of mixed tokens is at most h = ||sum lambda_i y_i x_i||_q, convex in
the shares 1 - s_i,alpha, so that h below the margin at the three other corners is enough.
"""

from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.julistiono2024optimizing.flow_instances import (
    OTHER,
    divergences,
    gaussian_selections,
    joined,
)
from attlas.core.claim import Control, Sides, Source, Status, assume
from attlas.core.sampling import shared
from attlas.core.statement import limit
from attlas.data.token_selection import TokenSelection
from attlas.losses.margin_loss import margin_loss
from attlas.solvers.attention_svm import attention_svm_batch
from attlas.solvers.lp_svm import lp_svm_batch
from attlas.solvers.regularisation_path import LogJointLoss
from attlas.tasks.token_selection.ball import descend_in_ball
from attlas.tasks.token_selection.training import train_selection_ensemble

_EACH, _STARTS, _STEPS = 56, 3, 1000
_MULTIPLES = np.array([15.0, 30.0, 60.0, 120.0])
_RECORDS = (1000, 2000, 4000, 8000)
_CORNERS = np.array(list(product((0, 1), repeat=2)))


def _point(data, v0, W0, radii, p):
    begun = TokenSelection(data.X, data.y, data.z, v0)
    found = descend_in_ball(begun, W0, p=p, radius=radii[1], head_radius=radii[0], steps=_STEPS)
    loss = LogJointLoss(data, margin_loss("logistic"))(found.v, found.W)
    return found.v, found.W, found.relative_gap, loss


_points = jax.jit(
    jax.vmap(
        jax.vmap(
            jax.vmap(_point, in_axes=(None, 0, 0, None, None)), in_axes=(None, None, None, 0, None)
        ),
        in_axes=(0, 0, 0, 0, None),
    )
)


def _choices(data, p):
    """Label margins of all four choices, certified, with their SVMs; the condition."""
    X, y = np.asarray(data.X), np.asarray(data.y)
    tokens = np.repeat(_CORNERS[None], len(X), axis=0)
    picked = np.take_along_axis(X[:, None], tokens[..., None, None], axis=3)[..., 0, :]
    flat, labels = picked.reshape(-1, 2, 2), np.repeat(y, 4, axis=0)
    found = lp_svm_batch(flat, labels, p)
    margin = (1 / np.asarray(found.certificate["norm_upper"])).reshape(-1, 4)
    margin = np.where((np.asarray(found.result) == 0).reshape(-1, 4), margin, 0)
    best = np.argmax(margin, axis=1)
    rows = np.arange(len(X))
    share = np.asarray(found.certificate["dual"]).reshape(-1, 4, 2)[rows, best]
    share = share / share.sum(axis=1, keepdims=True)
    pulled = np.einsum("bi,bi,bcid->bcd", share, y, picked)
    q = p / (p - 1)
    bound = (np.abs(pulled) ** q).sum(axis=-1) ** (1 / q)
    bound[rows, best] = 0
    # nu is at least a fiftieth of the margin.
    holds = (margin[rows, best] > 0) & (bound.max(axis=1) <= 0.98 * margin[rows, best])
    heads = np.asarray(found.value).reshape(-1, 4, 2)
    return best, _other_choice(margin, best), heads, holds


def _other_choice(margin, best):
    """The feasible choice of second largest label margin."""
    rest = margin.copy()
    rest[np.arange(len(best)), best] = -1
    return np.argmax(rest, axis=1)


class _Problems(NamedTuple):
    """Random problems of one p with the SVMs of the best choice of tokens and of the second one."""

    data: TokenSelection
    aims: tuple[np.ndarray, np.ndarray]
    others: tuple[np.ndarray, np.ndarray]
    radii: np.ndarray
    condition: np.ndarray
    solved: np.ndarray


@shared
def _problems(rng, p):
    data = gaussian_selections(rng, _EACH, 2, 2, 2)
    best, second, heads, holds = _choices(data, p)
    rows = np.arange(_EACH)
    own = attention_svm_batch(data.X, data.z, _CORNERS[best], p)
    wrong = attention_svm_batch(data.X, data.z, _CORNERS[second], p)
    v_mm, other = (np.nan_to_num(heads[rows, at], nan=1.0) for at in (best, second))
    size = (np.abs(v_mm) ** p).sum(axis=1) ** (1 / p)
    radii = np.stack([size, np.asarray(own.certificate["norm_upper"])], axis=1)
    aims, others = (v_mm, np.asarray(own.value)), (other, np.asarray(wrong.value))
    solved = np.asarray((own.result == 0) & (wrong.result == 0))
    return _Problems(data, aims, others, radii, holds, solved)


def _compared(problems, p, v, W):
    """Divergences of both paths from the SVMs of both choices, with the conditions."""
    own, wrong = (
        np.stack([divergences(a, jnp.asarray(to), p) for a, to in zip((v, W), aim, strict=True)], 1)
        for aim in (problems.aims, problems.others)
    )
    return {"p": np.full(_EACH, p), "condition": problems.condition, "own": own, "wrong": wrong}


@shared
def _joint_paths(rng):
    parts = []
    for p in OTHER:
        problems, exponent = _problems(rng, p), jnp.asarray(p)
        W_start = rng.normal(size=(_EACH, _STARTS, 2, 2))
        v_start = rng.normal(size=(_EACH, _STARTS, 2))
        v_start[:, 0], W_start[:, 0] = problems.aims
        grown = jnp.asarray(problems.radii[:, None, :] * _MULTIPLES[None, :, None])
        v, W, gap, loss = _points(
            problems.data, jnp.asarray(v_start), jnp.asarray(W_start), grown, exponent
        )
        loss = np.where(np.asarray(gap) <= 1e-6, np.asarray(loss), np.inf)
        lowest = np.argmin(loss, axis=2)
        v = np.take_along_axis(np.asarray(v), lowest[..., None, None], axis=2)[:, :, 0]
        W = np.take_along_axis(np.asarray(W), lowest[..., None, None, None], axis=2)[:, :, 0]
        found = {
            "certified": problems.solved & np.isfinite(loss.min(axis=2)).all(axis=1),
            "multiples": np.tile(_MULTIPLES, (_EACH, 1)),
        }
        parts.append({**_compared(problems, p, v, W), **found})
    return joined(parts)


@shared
def _joint_descents(rng):
    parts = []
    for p in OTHER:
        problems = _problems(rng, p)
        v_start, W_start = (
            jnp.asarray(aim * (1 + 0.1 * rng.normal(size=aim.shape))) for aim in problems.aims
        )
        path = train_selection_ensemble(
            problems.data,
            W_start,
            v0=v_start,
            p=p,
            # Norms of about 100 in the end, where gradients are still above rounding.
            learning_rate=100 ** (p - 1) / _RECORDS[-1],
            steps=_RECORDS[-1],
            record_at=_RECORDS,
            joint=True,
        )
        found = _compared(problems, p, path.params["v"], path.params["W"])
        steps = np.tile(np.array(_RECORDS, float), (_EACH, 1))
        parts.append({**found, "certified": problems.solved, "steps": steps})
    return joined(parts)


def joint_paths(rng, count):
    """Divergences of both directions from the SVMs of the best and of another choice of tokens."""
    return {name: value[:count] for name, value in _joint_paths(rng).items()}


def joint_descents(rng, count):
    """The same divergences along joint descent from near both SVMs."""
    return {name: value[:count] for name, value in _joint_descents(rng).items()}


CONDITIONS = [
    assume(
        "SVMs certified to a relative gap of 1e-8, points of a path stationary to 1e-6",
        lambda certified: certified,
    ),
    assume(
        r"mixing tokens lowers the label margin by at least $\nu \max_i (1 - s_{i\alpha_i})$",
        lambda condition: condition,
    ),
]


@limit(
    "Joint regularisation-path theorem",
    Source.RECALLED,
    scales="multiples",
    sample=joint_paths,
    assumptions=CONDITIONS,
    controls=[
        Control(
            "label margin condition broken: the choice of second largest label margin", other=True
        )
    ],
    count=3 * _EACH,
)
def joint_regularisation_path(own, wrong, *, other=False):
    r"""$$(v^{(r)},W^{(R)})=\arg\min_{\|v\|_p\le r,\,\|W\|_{p,p}\le R}\mathcal L(v,W):\quad
    \frac{v^{(r)}}{r}\to\frac{v_{mm}}{\|v_{mm}\|_p},\quad
    \frac{W^{(R)}}{R}\to\frac{W_{mm}}{\|W_{mm}\|_{p,p}}\quad (r,R\to\infty)$$

    The sum of both divergences. Logistic loss, $p = 1.5, 2, 3$; $r$ and $R$ grow together at fixed
    multiples of the two SVMs' norms. The point is the lowest stationary one of three starts.
    """
    # Each divergence is one of directions that are rounded.
    distance = jnp.sum(wrong if other else own, axis=0)
    return Sides(distance, jnp.zeros_like(distance), magnitude=jnp.ones_like(distance))


@limit(
    r"$\ell_p$-JointGD",
    Source.DERIVED,
    status=Status.NEW,
    scales="steps",
    sample=joint_descents,
    assumptions=CONDITIONS,
    controls=[Control("the choice of second largest label margin", other=True)],
    count=3 * _EACH,
)
def joint_descent(own, wrong, *, other=False):
    r"""$$\lim_{k\to\infty}\frac{v(k)}{\|v(k)\|_p}=\frac{v_{mm}}{\|v_{mm}\|_p},\quad
    \lim_{k\to\infty}\frac{W(k)}{\|W(k)\|_{p,p}}=\frac{W_{mm}}{\|W_{mm}\|_{p,p}}$$

    The paper proves the path alone and runs the descent: normalised steps on $v$ and $W$, here from
    within a tenth of both SVMs, $p = 1.5, 2, 3$, 1000 to 8000 steps. The sum of both divergences,
    on most problems: one of 1618 left for another choice of tokens at these steps, at $p = 3$, and
    not at a twelfth of them.
    """
    return joint_regularisation_path(own, wrong, other=other)
