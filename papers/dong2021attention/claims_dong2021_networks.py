r"""Rank collapse: networks of several layers and heads.

Notation as in claims_dong2021.py. Our text of the statements is from memory and from summaries by
third parties.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from dong2021_residual import ROUNDINGS, SMALL, columns, composite, heads, layer, present

import attlas as at
from attlas.claims.claim import Sides, Source, Status

DEPTH = 3


def networks(rng, count):
    """Three layers of one head; the residual shrinks to 1e-27 and below."""
    return heads(rng, count, layers=DEPTH)


def _all_small(R, x, W, b, V, width, there):
    spreads = []
    for k in range(DEPTH):
        output = layer(R, x, W[k], b[k], V[k], width, there)
        R, x = output.R, output.x
        spreads.append(output.spread)
    return jnp.max(jnp.stack(spreads)) <= SMALL


@at.inequality(
    "Theorem 2.2 (single-head networks)",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    sample=networks,
    assumptions=[at.assume(r"$|E_{ij}-E_{ij'}|\le1.256$ in every layer", _all_small)],
    search_over=("R", "W", "V"),
    project=present,
    count=96,
    roundings=8 * ROUNDINGS,
    controls=[
        at.Control("a tenth of the constant", factor=0.1),
        at.Control("the exponent 3^L without the start's share", share=0.0),
    ],
)
def deep_network(R, x, W, b, V, width, there, *, factor=1.0, share=1.0):
    r"""$$\Big(\|{\rm res}(X^L)\|_{1,\infty}\Big/\|{\rm res}(X)\|_{1,\infty}^{3^L}\Big)^{2/(3^L-1)}
    \le\frac{4\beta}{\sqrt{d_{qk}}},\quad\beta=\max_l\|W_{QK}^l\|_1\|W_V^l\|_{1,\infty}$$

    For L = 1, 2, 3; the printed form is this to the power $(3^L-1)/2$. By induction from one layer.
    The residual is carried along by itself, so that $10^{-60}$ beside tokens of size 1 is not
    rounding.
    """
    start, rows = jnp.log(composite(R)), []
    beta = jnp.max(jax.vmap(lambda A, B: columns(A) * composite(B))(W, V))
    for k in range(DEPTH):
        output = layer(R, x, W[k], b[k], V[k], width, there)
        R, x = output.R, output.x
        exponent = 2 / (3 ** (k + 1) - 1)
        rows.append(jnp.exp(exponent * (jnp.log(composite(R)) - share * 3 ** (k + 1) * start)))
    right = 4 * factor * beta / jnp.sqrt(width)
    return jnp.stack(rows), jnp.broadcast_to(right, (DEPTH,))


def several_heads(rng, count, H=3):
    """Three heads on the same tokens; value matrices of single rows and columns among them."""
    batch = heads(rng, count, layers=H)
    d = batch["R"].shape[-1]
    for place in range(0, count, 4):
        batch["V"][place] = 0
        batch["V"][place, 0, :, 0], batch["V"][place, 1:, 0, :] = 1.0, 1.0 / d
    return batch


def _heads_small(R, x, W, b, V, width, there):
    spreads = jax.vmap(lambda A, c, B: layer(R, x, A, c, B, width, there).spread)(W, b, V)
    return jnp.max(spreads) <= SMALL


@at.inequality(
    "Theorem 2.3 (several heads), one layer",
    Source.RECALLED,
    status=Status.CORRECTED,
    sample=several_heads,
    assumptions=[at.assume(r"$|E_{ij}-E_{ij'}|\le1.256$ for every head", _heads_small)],
    search_over=("R", "W", "V"),
    project=present,
    count=96,
    roundings=ROUNDINGS,
    controls=[at.Control("a tenth of the bound", factor=0.1)],
)
def several_heads_layer(R, x, W, b, V, width, there, *, factor=1.0):
    r"""$$\|{\rm res}(SA(X))\|_{1,\infty}\le
    \frac{4H\beta}{\sqrt{d_{qk}}}\|{\rm res}(X)\|_{1,\infty}^3,
    \quad\beta=\max_h\|W_{QK,h}\|_1\sqrt{\max_h\|W_h\|_1\,\max_h\|W_h\|_\infty}$$

    As recalled $\beta=\max_h\|W_{QK,h}\|_1\|W_h\|_{1,\infty}$. But $\|\cdot\|_{1,\infty}$ has no
    triangle inequality (next claim), and a sum over heads is bounded in $\|\cdot\|_1$ and
    $\|\cdot\|_\infty$ one by one: one head may have the columns and another the rows. Our form has
    the two maxima apart.
    """
    total = jnp.sum(jax.vmap(lambda A, c, B: layer(R, x, A, c, B, width, there).R)(W, b, V), axis=0)
    column_norm, rows = (jnp.max(jax.vmap(columns)(M)) for M in (V, jnp.swapaxes(V, 1, 2)))
    beta = jnp.max(jax.vmap(columns)(W)) * jnp.sqrt(column_norm * rows)
    bound = 4 * len(W) * beta / jnp.sqrt(width) * composite(R) ** 3
    return composite(total), factor * bound


SIDE = 64


def sizes(rng, count):
    """Sizes from 2 to 64 and a factor."""
    return {"n": np.round(2 ** rng.uniform(1, 6, count)), "a": 10 ** rng.uniform(-1, 1, count)}


@at.existence(
    "The composite norm is no norm",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    sample=sizes,
    controls=[at.Control("the Frobenius norm", frobenius=1.0)],
)
def no_triangle_inequality(n, a, *, frobenius=0.0):
    r"""$$\|A\|_{1,\infty}+\|B\|_{1,\infty}\le\|A+B\|_{1,\infty},\quad
    A=a\mathbf 1e_1^\top,\ B=ae_1\mathbf 1^\top$$

    $2a\sqrt n$ against $a(n+1)$: the sum is larger by any factor. The matrices are formed in full.
    """
    inside = jnp.arange(SIDE) < n
    unit = (jnp.arange(SIDE) == 0) * 1.0
    A = a * jnp.outer(inside, unit)

    def norm(M):
        return jnp.where(frobenius > 0, jnp.linalg.norm(M), composite(M))

    # A strict inequality is meant; n is at least 2, where the two differ by 6 per cent.
    return 1.01 * (norm(A) + norm(A.T)), norm(A + A.T)


def networks_of_paths(rng, count, L=3, H=2, n=4, d=3):
    """Three layers of two heads with biases."""
    return {
        "X": rng.normal(size=(count, n, d)),
        "W": rng.normal(size=(count, L, H, d, d)),
        "b": rng.normal(size=(count, L, H, d)),
        "V": rng.normal(size=(count, L, H, d, d)) / d**0.5,
        "c": rng.normal(size=(count, L, d)),
    }


@at.identity(
    "Theorem 2.1 (path decomposition)",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    sample=networks_of_paths,
    alike=True,
    roundings=8 * ROUNDINGS,
    controls=[
        at.Control("without the paths that leave by the second head", heads=1),
        at.Control("weights multiplied in the opposite order", backwards=True),
    ],
)
def path_decomposition(X, W, b, V, c, *, heads=2, backwards=False):
    r"""$$SAN(X)=\sum_{(h_1,\dots,h_L)\in[H]^L}
    P^L_{h_L}\cdots P^1_{h_1}\,X\,W^1_{h_1}\cdots W^L_{h_L}+\mathbf 1b^\top$$

    The forward pass of three layers of two heads, with biases, beside the sum over its eight paths.
    Biases gather in one row: $b=\sum_lc_l\prod_{m>l}\sum_hW_h^m$, as $P\mathbf 1=\mathbf 1$.
    """
    L, H = W.shape[:2]
    maps, states, bias = [], X, jnp.zeros(X.shape[1])
    for k in range(L):
        logits = jnp.einsum("ia,hab,jb->hij", states, W[k], states) + (b[k] @ states.T)[:, None]
        maps.append(jax.nn.softmax(logits, axis=-1))
        states = jnp.einsum("hij,ja,hab->ib", maps[k], states, V[k]) + c[k]
        bias = bias @ jnp.sum(V[k], axis=0) + c[k]
    total = jnp.broadcast_to(bias, X.shape)
    for path in itertools.product(*(range(H),) * (L - 1), range(heads)):
        term = X
        for k, head in enumerate(path):
            term = maps[k][head] @ term
        for k, head in sorted(enumerate(path), reverse=backwards):
            term = term @ V[k, head]
        total = total + term
    return Sides(states, total, magnitude=1 + jnp.linalg.norm(states) + jnp.linalg.norm(X))
