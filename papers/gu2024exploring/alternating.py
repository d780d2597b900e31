r"""Appendix H.1: optimising the softmax term and the value term of attention in turn.

Symbols: sequences X_s (T x d), W = Q K' (d x d), V (d x k); targets are the outputs of a teacher of
the same form. The value term is solved exactly, the softmax term moved by descent.
"""

import jax
import jax.numpy as jnp

from attlas.claims.claim import Control, Status
from attlas.claims.statement import probability

_SEQUENCES, _T, _D, _K = 12, 4, 2, 2
_ROUNDS, _MOVES = 20, 5


def teachers(rng, count):
    """Twelve sequences of four tokens, a teacher, and a small start of the softmax term."""
    return {
        "X": rng.normal(size=(count, _SEQUENCES, _T, _D)),
        "W_true": 1.5 * rng.normal(size=(count, _D, _D)),
        "V_true": rng.normal(size=(count, _D, _K)),
        "W": 0.1 * rng.normal(size=(count, _D, _D)),
    }


def _attended(X, W):
    """Rows D^{-1} exp(X W X') X of all sequences, in which the value term is linear."""
    rows = jax.vmap(lambda X: jax.nn.softmax(X @ W @ X.T, axis=1) @ X)(X)
    return rows.reshape(-1, _D)


def _alternate(X, W, Y, moves):
    """The loss before and after every round, V being the least squares solution in each."""

    def values(W):
        rows = _attended(X, W)
        return jnp.linalg.solve(rows.T @ rows, rows.T @ Y)

    def loss(W, V):
        return 0.5 * jnp.sum((_attended(X, W) @ V - Y) ** 2)

    def descend(W, V):
        slope = jax.grad(loss)(W, V)
        # The longest of twelve steps that decreases the loss enough.
        steps = 0.5 ** jnp.arange(12.0)
        tried = jax.vmap(lambda step: loss(W - step * slope, V))(steps)
        enough = tried <= loss(W, V) - 0.25 * steps * jnp.sum(slope**2)
        return W - jnp.where(jnp.any(enough), steps[jnp.argmax(enough)], 0.0) * slope

    def step(W, _):
        V = values(W)
        W = jax.lax.fori_loop(0, moves, lambda _, W: descend(W, V), W)
        return W, loss(W, values(W))

    first = loss(W, values(W))
    return jnp.concatenate((first[None], jax.lax.scan(step, W, None, length=_ROUNDS)[1]))


@probability(
    "Appendix H.1, alternating optimisation",
    status=Status.NEW,
    level=0.7,
    sample=teachers,
    independent="data, teacher and start",
    count=192,
    controls=[
        Control("the softmax term is not moved", moves=0),
        Control("a loss of $10^{-24}$ of its start", least=1e-24),
    ],
)
def alternating_optimisation(X, W, W_true, V_true, *, moves=_MOVES, least=0.01):
    r"""$$P\Big( L_{j+1} \le L_j \;\forall j,\ L_{20} \le \tfrac{1}{100} L_0 \Big) \ge 0.7,\quad
    L_j = \min_V \tfrac12 \sum_s \| D_s^{-1} \exp(X_s W_j X_s^\top) X_s V - Y_s \|_F^2$$

    What the paper leaves as future work, on 12 sequences of a teacher in the plane: 20 rounds of an
    exact value term and five steps of descent of the softmax term, from $W_0$ of size 0.1. The loss
    falls in every round.
    """
    Y = _attended(X, W_true) @ V_true
    path = _alternate(X, W, Y, moves)
    falls = jnp.all(path[1:] <= path[:-1] * (1 + 1e-9))
    return falls & (path[-1] <= least * path[0])
