r"""Theorems 2 and 6 with every constant: how far learned weights move, and what the samples leave.

The proof is that of docs/proofs/liu2021_sample_size.md, with a block for each matrix besides w.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.bounds.generalisation.liu2021_corrected import (
    Conditions,
    liu2021_learned_attention,
    liu2021_learned_recurrence,
)
from attlas.bounds.generalisation.liu2021_sample_size import (
    liu2021_recurrent,
    liu2021_self_attention,
)
from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.models.attention.self_attention_mlp import SelfAttentionMLP

_PAPER = "liu2021analyzing"
_T, _P, _Q = 3, 2, 2

_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "status": Status.CORRECTED,
    "provenance": Provenance.DERIVED,
    "count": 48,
}


def _moves(key: PRNGKeyArray, count: int) -> Instance:
    """Two words and two pairs of queries and keys; in half of them opposite words, and a move."""
    rng = generator(key)
    near = 10 ** rng.uniform(-3, 0, (count, 1, 1))
    x = rng.uniform(-1, 1, (count, _T, _P)) * 10 ** rng.uniform(-1, 0.5, (count, 1, 1))
    W_Q, W_K, d_Q, d_K = rng.standard_normal((4, count, _Q, _T))
    W_V = rng.standard_normal((count, 1, _T))
    even = slice(None, None, 2)
    # Opposite words of equal entries, and matrices along them: one query moves away from zero.
    x[even] = np.array([1.0, -1.0]) * np.abs(x[even, :1, :1])
    W_K[even], d_Q[even], W_V[even] = 1.0, 1.0, 1.0
    W_Q[even], d_K[even] = 0.0, 0.0
    parts = {"x": x, "W_V": W_V, "W_Q": W_Q, "W_K": W_K}
    parts |= {"W_Q_n": W_Q + near * d_Q, "W_K_n": W_K + near * d_K}
    return {name: jnp.asarray(value) for name, value in parts.items()}


def _network(instance: Instance, end: str = "") -> SelfAttentionMLP:
    first = jnp.ones((_P, 1), instance["x"].dtype)
    matrices = instance[f"W_Q{end}"], instance[f"W_K{end}"], instance["W_V"]
    return SelfAttentionMLP(*matrices, first, first[0])


def _moved(instance: Instance, words: float = float(_T)) -> Sides:
    """Largest l1 move of a word's weights, and the move of the attended values."""
    x, norm = instance["x"], jnp.linalg.norm
    here, there = _network(instance), _network(instance, "_n")
    gap = jnp.max(jnp.sum(jnp.abs(here.attention(x) - there.attention(x)), axis=0))
    values = norm(here.attended(x) - there.attended(x))
    queries = norm(instance["W_Q_n"] - instance["W_Q"]) * norm(instance["W_K_n"])
    keys = norm(instance["W_Q"]) * norm(instance["W_K_n"] - instance["W_K"])
    C_x = jnp.max(jnp.abs(x))
    right = (queries + keys) * words * C_x**2 / math.sqrt(_Q)
    length = norm(instance["W_V"]) * C_x * math.sqrt(_P * words)
    # Weights are rounded to eps, and their difference may be small.
    scale = jnp.stack([1 + right, length * (1 + gap)])
    return Sides(jnp.stack([gap, values]), jnp.stack([right, length * gap]), scale=scale)


MOVES = Claim(
    name=f"{_PAPER}/theorem-2-moves",
    locator="Proof of Theorem 2, attention between points of the cover",
    statement=(
        r"\max_z \|a^{(z)} - a'^{(z)}\|_1 \le \frac{t C_x^2}{\sqrt{d_q}} \left( "
        r"\|w_Q - w_Q'\| \|w_K'\| + \|w_Q\| \|w_K - w_K'\| \right), \quad "
        r"\|w_V x (a - a')\|_F \le C_7 C_x \sqrt{pt} \max_z \|a^{(z)} - a'^{(z)}\|_1"
    ),
    instances=_moves,
    sides=_moved,
    control=Control("without t", sides=partial(_moved, words=1.0)),
    note=(
        "With the distance that the print drops from t (C_5 + C_6) C_x^2, and without the sqrt(p) "
        "of its softmax. Both parts are attained, the first as the move goes to zero, by two "
        "opposite words whose weights were equal. What moves values by B rho moves features so."
    ),
    **_COMMON,
)


def _conditions(rng: np.random.Generator, gamma: float, C_2: float) -> Conditions:
    smallest, noise = (float(v) for v in 10 ** rng.uniform(-2, 1, 2))
    residual = float(rng.uniform(0, 0.9)) * (gamma / C_2) ** 2
    return Conditions(smallest, residual, noise, float(rng.uniform(0.01, 0.5)))


def _row(
    n: tuple[float, float],
    B: float,
    d: int,
    blocks: tuple[tuple[int, float], ...],
    rest: tuple[float, float, Conditions],
) -> tuple[float, ...]:
    """Sample sizes with the logarithm of the cover, the exponent a draw, and what may fail."""
    gamma, C_2, known = rest
    M = max(2 * C_2 * B**2, known.noise * B)
    level = known.smallest * (gamma**2 - C_2**2 * known.residual)
    rho = min(1.0, math.sqrt(level) / ((4 + 12 * len(blocks)) * M))
    entropy = d * math.log(3 / rho)
    entropy += sum(count * math.log(3 * max(1.0, L) / rho) for count, L in blocks)
    return (n[0], max(n[1], 0.0), entropy, level / (128 * M**2), known.failure)


def _attention(rng: np.random.Generator) -> tuple[float, ...]:
    p, t, d, d_v, d_q = (int(k) for k in rng.integers(1, 9, 5))
    C_x, C_1, C_2, C_5, C_6, C_7, gamma = (float(v) for v in 10 ** rng.uniform(-1, 1, 7))
    known = _conditions(rng, gamma, C_2)
    sizes, norms = (p, t, d, d_v, d_q), (C_x, C_1, C_2, C_5, C_6, C_7)
    n = liu2021_learned_attention(sizes, gamma, norms, known)
    printed = liu2021_self_attention(p, t, d, d_v, 1, 0.0, gamma, (C_1, C_2, C_5, C_6, C_7))
    L = C_5 * C_6 * t * C_x**2 / math.sqrt(d_q)
    blocks = ((p * d_v * d, 1.0), (d_v * t, 1.0), (t * d_q, L), (t * d_q, L))
    B = C_1 * C_7 * C_x * math.sqrt(p * t)
    return _row((n, printed), B, d, blocks, (gamma, C_2, known))


def _recurrence(rng: np.random.Generator) -> tuple[float, ...]:
    t, d, d_a, d_f = (int(k) for k in rng.integers(1, 30, 4))
    C_x, C_1, C_2, C_8, C_9, gamma = (float(v) for v in 10 ** rng.uniform(-1, 1, 6))
    known = _conditions(rng, gamma, C_2)
    n = liu2021_learned_recurrence((t, d, d_a, d_f), gamma, (C_x, C_1, C_2), (C_8, C_9), known)
    printed = liu2021_recurrent(t, d, d_a, d_f, gamma, (C_x, C_1, C_2, C_8, C_9))
    blocks = ((t * d, 1.0), (d_a, C_8), (d_f, C_9))
    return _row((n, printed), C_1 * C_x * math.sqrt(t), d, blocks, (gamma, C_2, known))


def _sized(
    key: PRNGKeyArray, count: int, draw: Callable[[np.random.Generator], tuple[float, ...]]
) -> Instance:
    rng = generator(key)
    names = ("n", "printed", "entropy", "exponent", "failure")
    columns = np.array([draw(rng) for _ in range(count)]).T
    return {name: jnp.asarray(column) for name, column in zip(names, columns, strict=True)}


def _failure(instance: Instance, name: str) -> Sides:
    """What the union bound leaves, over what is allowed."""
    n, entropy = instance[name], instance["entropy"]
    tail = n * instance["exponent"]
    parts: Array = jnp.stack([math.log(2) + entropy - tail, 0.5 + entropy - 2 * tail, -n / 2])
    left = jnp.sum(jnp.exp(jnp.minimum(parts, 50.0))) / instance["failure"]
    # Exponents of the size of the entropy are rounded before they are raised.
    return Sides(left, jnp.ones_like(left), scale=left * (1 + entropy))


_SUM = (
    r"\left( \frac{3}{\rho} \right)^d \prod_{k} \left( \frac{3 L_k}{\rho} \right)^{P_k} "
    r"\left( 2 e^{-a} + \sqrt{e} e^{-2a} \right) + e^{-n/2} \le \delta, \quad "
    r"a = \frac{n s^2}{128 M^2}"
)

THEOREM_2_SIZE = Claim(
    name=f"{_PAPER}/theorem-2-size",
    locator="Theorem 2, with every constant",
    statement=(
        r"n \ge n(p, t, d, d_v, d_q, \gamma, \lambda, \delta),\ B = C_1 C_7 C_x \sqrt{pt}: \quad "
        + _SUM
    ),
    instances=partial(_sized, draw=_attention),
    sides=partial(_failure, name="n"),
    control=Control(
        "the printed sample size with the constant one", sides=partial(_failure, name="printed")
    ),
    note=(
        "As lemma-1, with the blocks w1, w_V, w_Q and w_K; the last two have the stretch "
        "L = C_5 C_6 t C_x^2 / sqrt(d_q) of theorem-2-moves, in the logarithm alone. d_q counts "
        "2 t d_q parameters. No concentration of the weights changes n."
    ),
    **_COMMON,
)

THEOREM_6_SIZE = Claim(
    name=f"{_PAPER}/theorem-6-size",
    locator="Theorem 6, with every constant",
    statement=(
        r"n \ge n(t, d, d_a, d_f, \gamma, \lambda, \delta),\ B = C_1 C_x \sqrt{t}: \quad " + _SUM
    ),
    instances=partial(_sized, draw=_recurrence),
    sides=partial(_failure, name="n"),
    control=Control(
        "the printed sample size with the constant one", sides=partial(_failure, name="printed")
    ),
    note=(
        "Blocks w1, score and update. The stretches of the last two are given: how far a "
        "recurrence moves its weights depends on its score and grows with the number of steps, "
        "where the print has C_8 C_9."
    ),
    **_COMMON,
)
