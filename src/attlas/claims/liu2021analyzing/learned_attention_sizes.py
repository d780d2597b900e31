r"""Theorems 2 and 6 with every constant: how far learned weights move, and what the samples leave.

The proof is that of docs/proofs/liu2021_sample_size.md, with a block for each matrix besides w.
"""

import math
from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.bounds.generalisation.liu2021_sample_size import (
    liu2021_recurrent,
    liu2021_self_attention,
)
from attlas.bounds.generalisation.liu2021_union_bound import Conditions
from attlas.claims.liu2021analyzing.union_bound import batch, terms, what_fails
from attlas.core.claim import Control, Sides, Status
from attlas.core.statement import inequality
from attlas.models.attention.self_attention_mlp import SelfAttentionMLP

_T, _P, _Q = 3, 2, 2


def moves(rng, count):
    """Two words and two pairs of queries and keys; in half of them opposite words, and a move."""
    near = 10 ** rng.uniform(-3, 0, (count, 1, 1))
    x = rng.uniform(-1, 1, (count, _T, _P)) * 10 ** rng.uniform(-1, 0.5, (count, 1, 1))
    W_Q, W_K, d_Q, d_K = rng.standard_normal((4, count, _Q, _T))
    W_V = rng.standard_normal((count, 1, _T))
    even = slice(None, None, 2)
    # Opposite words of equal entries, and matrices along them: one query moves away from zero.
    x[even] = np.array([1.0, -1.0]) * np.abs(x[even, :1, :1])
    W_K[even], d_Q[even], W_V[even] = 1.0, 1.0, 1.0
    W_Q[even], d_K[even] = 0.0, 0.0
    moved = {"W_Q_n": W_Q + near * d_Q, "W_K_n": W_K + near * d_K}
    return {"x": x, "W_V": W_V, "W_Q": W_Q, "W_K": W_K, **moved}


@inequality(
    "Proof of Theorem 2, attention between points of the cover",
    sample=moves,
    status=Status.CORRECTED,
    count=48,
    controls=[Control("without $t$", t=1.0)],
)
def theorem_2_moves(x, W_V, W_Q, W_K, W_Q_n, W_K_n, *, t=float(_T)):
    r"""$$\max_z \|a^{(z)} - a'^{(z)}\|_1 \le \frac{t C_x^2}{\sqrt{d_q}} \left(
    \|w_Q - w_Q'\| \|w_K'\| + \|w_Q\| \|w_K - w_K'\| \right), \quad
    \|w_V x (a - a')\|_F \le C_7 C_x \sqrt{pt} \max_z \|a^{(z)} - a'^{(z)}\|_1$$

    With the distance that the print drops from $t (C_5 + C_6) C_x^2$, and without the $\sqrt{p}$ of
    its softmax. Both parts are attained, the first as the move goes to zero, by two opposite words
    whose weights were equal. What moves values by $B \rho$ moves features so.
    """
    norm, layer = jnp.linalg.norm, jnp.ones((_P, 1))
    here = SelfAttentionMLP(W_Q, W_K, W_V, layer, layer[0])
    there = SelfAttentionMLP(W_Q_n, W_K_n, W_V, layer, layer[0])
    gap = jnp.max(jnp.sum(jnp.abs(here.attention(x) - there.attention(x)), axis=0))
    values = norm(here.attended(x) - there.attended(x))
    C_x = jnp.max(jnp.abs(x))
    distance = norm(W_Q_n - W_Q) * norm(W_K_n) + norm(W_Q) * norm(W_K_n - W_K)
    right = distance * t * C_x**2 / math.sqrt(_Q)
    length = norm(W_V) * C_x * math.sqrt(_P * t)
    # Weights are rounded to eps, and their difference may be small.
    magnitude = jnp.stack([1 + right, length * (1 + gap)])
    return Sides(jnp.stack([gap, values]), jnp.stack([right, length * gap]), magnitude)


def conditions(rng, gamma, C_2):
    """What the theorems assume, with a residual below what the error allows."""
    smallest, noise = (float(v) for v in 10 ** rng.uniform(-2, 1, 2))
    residual = float(rng.uniform(0, 0.9)) * (gamma / C_2) ** 2
    return Conditions(smallest, residual, noise, float(rng.uniform(0.01, 0.5)))


def self_attention(rng):
    """Constants of Theorem 2 with the sample sizes of the library."""
    p, t, d, d_v, d_q = (int(k) for k in rng.integers(1, 9, 5))
    C_x, C_1, C_2, C_5, C_6, C_7, gamma = (float(v) for v in 10 ** rng.uniform(-1, 1, 7))
    known = conditions(rng, gamma, C_2)
    # For the print C_8 is as large as C_7, and one weight counts.
    setting = ((p, t, d, d_v, d_q), gamma, (C_x, C_1, C_2, C_5, C_6, C_7, C_7))
    n = liu2021_self_attention(*setting, known)
    printed = liu2021_self_attention(*setting, s0=1, constants="printed")
    L = C_5 * C_6 * t * C_x**2 / math.sqrt(d_q)
    blocks = [(p * d_v * d, 1.0), (d_v * t, 1.0), (t * d_q, L), (t * d_q, L)]
    B = C_1 * C_7 * C_x * math.sqrt(p * t)
    return n, printed, terms(B, C_2, d, blocks, gamma, known)


@inequality(
    "Theorem 2, with every constant",
    sample=partial(batch, self_attention),
    status=Status.CORRECTED,
    count=48,
    controls=[Control("the printed sample size with the constant one", as_printed=True)],
)
def theorem_2_size(n, printed, entropy, exponent, failure, *, as_printed=False):
    r"""$$n \ge n(p, t, d, d_v, d_q, \gamma, \lambda, \delta),\ B = C_1 C_7 C_x \sqrt{pt}: \quad
    \left( \frac{3}{\rho} \right)^d \prod_{k} \left( \frac{3 L_k}{\rho} \right)^{P_k}
    \left( 2 e^{-a} + \sqrt{e} e^{-2a} \right) + e^{-n/2} \le \delta, \quad
    a = \frac{n s^2}{128 M^2}$$

    As lemma-1, with the blocks $w^{(1)}$, $w_V$, $w_Q$ and $w_K$; the last two have the stretch
    $L = C_5 C_6 t C_x^2 / \sqrt{d_q}$ of theorem-2-moves, in the logarithm alone. $d_q$ counts
    $2 t d_q$ parameters. No concentration of the weights changes $n$.
    """
    return what_fails(printed if as_printed else n, entropy, exponent, failure)


def recurrence(rng):
    """Constants of Theorem 6 with the sample sizes of the library."""
    t, d, d_a, d_f = (int(k) for k in rng.integers(1, 30, 4))
    C_x, C_1, C_2, C_8, C_9, gamma = (float(v) for v in 10 ** rng.uniform(-1, 1, 6))
    known = conditions(rng, gamma, C_2)
    setting = ((t, d, d_a, d_f), gamma, (C_x, C_1, C_2), (C_8, C_9))
    n = liu2021_recurrent(*setting, known)
    printed = liu2021_recurrent(*setting, constants="printed")
    blocks = [(t * d, 1.0), (d_a, C_8), (d_f, C_9)]
    return n, printed, terms(C_1 * C_x * math.sqrt(t), C_2, d, blocks, gamma, known)


@inequality(
    "Theorem 6, with every constant",
    sample=partial(batch, recurrence),
    status=Status.CORRECTED,
    count=48,
    controls=[Control("the printed sample size with the constant one", as_printed=True)],
)
def theorem_6_size(n, printed, entropy, exponent, failure, *, as_printed=False):
    r"""$$n \ge n(t, d, d_a, d_f, \gamma, \lambda, \delta),\ B = C_1 C_x \sqrt{t}: \quad
    \left( \frac{3}{\rho} \right)^d \prod_{k} \left( \frac{3 L_k}{\rho} \right)^{P_k}
    \left( 2 e^{-a} + \sqrt{e} e^{-2a} \right) + e^{-n/2} \le \delta, \quad
    a = \frac{n s^2}{128 M^2}$$

    Blocks $w^{(1)}$, score and update. The stretches of the last two are given: how far a
    recurrence moves its weights depends on its score and grows with the number of steps, where the
    print has $C_8 C_9$.
    """
    return what_fails(printed if as_printed else n, entropy, exponent, failure)
