"""The two steps of the margin ledger that need no new cover: a linear readout, and the ramp."""

import jax
import numpy as np

from attlas.claims.claim import Control, Kind, Status
from attlas.claims.statement import computed
from attlas_bounds.library.bounds.linear_attention import LinearAttention, measure_margins
from attlas_bounds.library.bounds.margin_bounds import ramp_margin_bound
from attlas_bounds.library.bounds.sample_complexity import sample_complexity, tokens_met

_m = 9


def _heads(rng, d, radius):
    """Sixty functions of one to three heads: readouts of l_1 norm 1, every M in the ball."""
    H = int(rng.integers(1, 4))
    signs = (rng.choice([-1, 1], (60, H * size)) for size in (d, d * d))
    a, M = (
        rng.dirichlet(np.full(H * d, 0.1), 60),
        rng.dirichlet(np.full(d * d, 0.3), (60, H)).reshape(60, -1) * radius,
    )
    a, M = (array * sign for array, sign in zip((a, M), signs, strict=True))
    return a.reshape(60, H, d), M.reshape(60, H, d, d)


@computed(
    Kind.INEQUALITY,
    "A linear readout",
    status=Status.NEW,
    count=60,
    evaluations=600,
    roundings=1024,
    controls=[Control("a third of the bound", factor=1 / 3)],
)
def linear_readout(rng, count, *, factor=1.0):
    r"""$$\sum_h\|a_h\|_1\le1,\ \|M_h\|_{1,1}\le r:\quad
    \frac1m\mathbb E_\sigma\sup\sum_i\sigma_if(X_i)\le\frac12\hat R,\quad
    \hat R:\ \text{Theorem 4.1, softmax constant 1}$$

    The class is the hull of the entries of one average and of their negatives: a sign costs no
    factor 2, and heads cost nothing. All $2^9$ sign vectors; 60 functions of one to three heads, a
    value from below. One token in one dimension reaches two fifths of the bound.
    """
    left, right = np.empty((2, count))
    signs = 1 - 2.0 * ((np.arange(2**_m)[:, None] >> np.arange(_m)) & 1)
    tokens, cls = rng.normal(size=(count, _m, 3, 3)), rng.normal(size=(count, 3))
    radii = 10 ** rng.uniform(-1, 1.5, count)
    for e, radius in enumerate(radii.tolist()):
        d, T = (1, 1) if e % 4 == 0 else (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
        X = tokens[e, :, :T, :d]
        X = X / np.linalg.norm(X, axis=2, keepdims=True)
        X, x = (np.ones((_m, 1, 1)), np.ones(1)) if e % 4 == 0 else (X, cls[e, :d])
        a, M = _heads(rng, d, radius)
        logits = np.einsum("ntd,khde,e->khnt", X, M, x)
        f = np.einsum("khnt,ntd,khd->kn", jax.nn.softmax(logits), X, a)
        f = np.concatenate([f, -f])
        left[e] = (signs @ f.T).max(axis=1).mean() / _m
        head = LinearAttention(a[0], M[0])
        met = tokens_met(measure_margins(head, X, x, np.ones(_m)))
        right[e] = factor * sample_complexity(met, radius, float(_m), step="linear")
    return left, right


@computed(
    Kind.INEQUALITY,
    "The ramp in place of the hinge",
    status=Status.NEW,
    count=32,
    evaluations=320,
    roundings=1024,
    controls=[Control("nine tenths of the hinge", factor=0.9)],
)
def ramp_below_hinge(rng, count, *, factor=1.0):
    r"""$$\min_\gamma\frac1m\sum_i\min(1,\ell_i)+\frac{2\hat R}\gamma+3t\le\min_\gamma\frac1m\sum_i
    \ell_i+\frac{2\hat R}\gamma+3\Big(1+\frac\beta\gamma\Big)t,\quad
    \ell_i=\max\Big(0,1-\frac{y_if(X_i)}\gamma\Big)$$

    Both count every error, both have slope $1/\gamma$; $t=\sqrt{\ln(2K/\delta)/2m}$. Samples of 40
    to 400 sequences, as if they were $10^6$ to $10^{15}$, with shares of errors up to a tenth.
    Near equality where the norms are large and no sequence is wrong.
    """
    left, right = np.empty((2, count))
    for e in range(count):
        n = int(rng.integers(40, 400))
        y = np.where(rng.random(n) < rng.choice([0.0, 0.03, 0.1]), -1.0, 1.0)
        head = LinearAttention([1.0, 0.0], np.array([[0.0, 0.0], [0.0, 10 ** rng.uniform(-2, 2)]]))
        X = np.broadcast_to(np.array([[rng.uniform(0.1, 1), 0.0]]), (n, 1, 2))
        sample, m = measure_margins(head, X, [0.0, 1.0], y), 10 ** rng.uniform(6, 15)
        left[e], hinge = (
            ramp_margin_bound(sample, 0.05, step="linear", loss=loss).at(m)
            for loss in ("ramp", "hinge")
        )
        right[e] = factor * hinge
    return left, right
