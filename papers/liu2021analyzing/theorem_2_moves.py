"""Theorem 2, how far learned attention moves between points of the cover."""

import math

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Status
from attlas.claims.statement import inequality
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP

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
    search_over=("x", "W_V", "W_Q", "W_K", "W_Q_n", "W_K_n"),
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
    model = SelfAttentionMLP(W_Q, W_K, W_V, layer, layer[0])
    there = SelfAttentionMLP(W_Q_n, W_K_n, W_V, layer, layer[0])
    gap = jnp.max(jnp.sum(jnp.abs(model.attention(x) - there.attention(x)), axis=0))
    values = norm(model.attended(x) - there.attended(x))
    C_x = jnp.max(jnp.abs(x))
    distance = norm(W_Q_n - W_Q) * norm(W_K_n) + norm(W_Q) * norm(W_K_n - W_K)
    right = distance * t * C_x**2 / math.sqrt(_Q)
    length = norm(W_V) * C_x * math.sqrt(_P * t)
    # Weights are rounded to eps, and their difference may be small.
    magnitude = jnp.stack([1 + right, length * (1 + gap)])
    return Sides(jnp.stack([gap, values]), jnp.stack([right, length * gap]), magnitude)
