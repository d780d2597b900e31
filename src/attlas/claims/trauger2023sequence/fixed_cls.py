r"""Theorem 4.1 where the token [CLS] is the same in every sequence, as section 2.6 allows.

Attention then depends on v = W_QK x_cls alone, d numbers with ||v||_1 <= r b, b = ||x_cls||_inf:
greedy centres of that vector take the place of those of the d x d matrix.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from attlas.bounds.covering.greedy_cover import greedy_cover_centre, greedy_cover_steps
from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.claims.trauger2023sequence.cover_instances import ROUNDINGS, ball_points
from attlas.core.claim import Control, Sides, Status
from attlas.core.statement import identity, inequality

_SAMPLES, _TOKENS, _D = 4, 5, 3


def _cls(rng, index):
    """Largest entry from 1/2 to 4: a flat token, a unit vector, or a random one."""
    token = (np.ones(_D), np.eye(_D)[0], rng.normal(size=_D))[index % 3]
    return token / np.abs(token).max() * 2.0 ** rng.uniform(-1, 2)


def _ratio(rng, index):
    """Of r b and epsilon; just above 1 and at 2 one greedy step has to do."""
    return (1 + 1e-6, 2.0, rng.uniform(0.8, 7), rng.uniform(0.8, 7))[index % 4]


def _case(rng, index):
    """One matrix of the (1,1) ball, the centre of its v, and sequences to try it on."""
    cls, radius, ratio = _cls(rng, index), 10.0 ** rng.uniform(-1, 1), _ratio(rng, index)
    # all of the norm in the column that [CLS] reads best, so that ||v||_1 = r b
    W = np.zeros((_D, _D))
    W[:, np.argmax(np.abs(cls))] = radius * ball_points(rng, 1, _D, index)[0]
    if index % 5 == 4:
        W = radius * ball_points(rng, 1, _D * _D, index)[0].reshape(_D, _D)
    b, steps, v = float(np.abs(cls).max()), greedy_cover_steps(ratio), W @ cls
    centre = greedy_cover_centre(v, radius * b, steps) if steps else np.zeros(_D)
    X = rng.normal(size=(_SAMPLES, _TOKENS, _D)) * 10.0 ** rng.uniform(-2, 0.3)
    # opposite tokens along the error: short ones come near the softmax's constant 1
    gap = v - centre
    X[0] = 0.01 / radius * np.outer([1, -1, 1, -1, 0], np.sign(gap) + 1e-3 * gap)
    return {
        "W": W,
        "cls": cls,
        "centre": centre,
        "X": X,
        "radius": radius,
        "epsilon": radius * b / ratio,
        "steps": float(steps),
        "others": cls * np.array([[1.0], [-1.0], [2.0], [0.0]]),
        "added": radius * rng.normal(size=(_D, _D)),
    }


def covered_cls(rng, count):
    """Matrices of the ball with centres of v, for tokens [CLS] of three kinds."""
    rng = np.random.default_rng(rng.integers(2**31, size=2))
    cases = [_case(rng, index) for index in range(count)]
    return {name: np.stack([np.asarray(case[name]) for case in cases]) for name in cases[0]}


def _pooled(X, v):
    """Attention's averages for one v per sample."""
    return jnp.einsum("mt,mtd->md", jax.nn.softmax(jnp.einsum("mtd,md->mt", X, v), axis=1), X)


@inequality(
    "Theorem 4.1 and Corollary 4.1.1, [CLS] the same in every sequence",
    sample=covered_cls,
    search_over="X",
    status=Status.SHARPENED,
    count=60,
    roundings=ROUNDINGS,
    controls=[
        Control("another [CLS] in each sequence", shared=False),
        Control(r"$\ln(d + 1)$, the signs forgotten", signs=1.0),
        Control("$r$ in place of $r b$", reach=False),
    ],
)
def theorem_4_1_fixed_cls(
    X, W, cls, centre, others, radius, epsilon, steps, *, shared=True, signs=2.0, reach=True
):
    r"""$$\|W_{QK}\|_{1,1} \le r,\ b = \|x_{[CLS]}\|_\infty: \quad
    \max_{i,j} |e_j^\top X_{(i)}^\top (p_i - \hat p_i)| \le \|X\|_\infty B_x \epsilon,
    \quad \ln N(\epsilon) \le \frac{r^2 b^2}{\epsilon^2} \ln(2d+1)$$

    Section 2.6 lets [CLS] be constant. $C$ falls from $B_x^2 r^2 \ln(2d^2+1)$ to
    $b^2 r^2 \ln(2d+1)$, and $b$ may be far below $B_x$; the norm may be $\|W_{QK} x_{cls}\|_1$
    itself. Centres of $v = W_{QK} x_{cls}$ are built by greedy steps. Used in the experiment
    `norm_projection`.
    """
    tokens = jnp.broadcast_to(cls, X[:, 0].shape) if shared else others
    centres = jnp.broadcast_to(centre, tokens.shape)
    moved = jnp.max(jnp.abs(_pooled(X, tokens @ W.T) - _pooled(X, centres)))
    largest, B_x = jnp.max(jnp.abs(X)), jnp.max(jnp.sqrt(jnp.sum(X**2, axis=-1)))
    b = jnp.max(jnp.abs(cls)) if reach else jnp.ones(())
    C = trauger2023_cover("1,1", radius, b, 1, _D)
    share = math.log(signs * _D + 1) / math.log(2 * _D + 1)
    left = jnp.stack([moved / (largest * B_x), steps * math.log(2 * _D + 1)])
    right = jnp.stack([epsilon, share * C / epsilon**2])
    # an average of tokens is off by roundings of its logits, which are relative to them
    logits = 1 + B_x * jnp.max(jnp.abs(tokens @ W.T))
    return Sides(left, right, magnitude=jnp.stack([epsilon + logits / B_x, right[1]]))


@identity(
    "Section 2.5 on Theorem 4.1, [CLS] the same in every sequence: what is counted",
    sample=covered_cls,
    status=Status.SHARPENED,
    count=60,
    roundings=ROUNDINGS,
    controls=[Control("[CLS] moved by the first token", shared=False)],
)
def theorem_4_1_fixed_cls_numbers(X, W, cls, added, *, shared=True):
    r"""$$W x_{[CLS]} = W' x_{[CLS]} \;\Rightarrow\; X^\top {\rm softmax}(X W x_{[CLS]}) =
    X^\top {\rm softmax}(X W' x_{[CLS]})$$

    Counting parameters counts the $d$ numbers of $v$, not the $d^2$ of $W_{QK}$: the entropy is
    $d \ln(1 + 2 B_x^3 \|W_{QK}\| / \epsilon)$. $W'$ is $W$ plus a matrix that [CLS] does not see.
    Used in the experiment `norm_projection`.
    """
    other = W + added - jnp.outer(added @ cls, cls) / jnp.sum(cls**2)
    tokens = jnp.broadcast_to(cls, X[:, 0].shape)
    if not shared:
        tokens = tokens + X[:, 0]
    left, right = (_pooled(X, tokens @ M.T) for M in (W, other))
    largest = jnp.max(jnp.abs(added)) * jnp.sum(jnp.abs(cls))
    norm = jnp.max(jnp.sqrt(jnp.sum(X**2, axis=-1)))
    return Sides(left, right, magnitude=jnp.full_like(left, norm * (1 + norm * largest)))
