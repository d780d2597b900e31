r"""Attention with few weights: tau = 0, what A.1 counts, and what (A2.1) asks of logits."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Source, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import erratum, identity, inequality
from liu2021analyzing.library.bounds.liu2021_regions import liu2021_regions
from liu2021analyzing.library.models.fixed_attention import EuclideanAttention, TopAttention

_P, _KEPT = 7, 3


def logits(rng, count):
    """Logits of seven words, from flat to far apart."""
    return {"z": rng.normal(size=(count, _P)) * six_decades(rng, count, -2, 1)[:, None]}


def sparsemax(z):
    """The nearest point of the simplex (Martins and Astudillo, 2016)."""
    falling, k = jnp.sort(z)[::-1], jnp.arange(1.0, z.size + 1)
    support = jnp.sum((1 + k * falling > jnp.cumsum(falling)).astype(float))
    threshold = (jnp.sum(jnp.where(k <= support, falling, 0.0)) - 1) / support
    return jnp.maximum(z - threshold, 0.0)


def local(z):
    """A softmax over a window of the words (Luong et al., 2015)."""
    return jnp.append(jax.nn.softmax(z[:_KEPT]), jnp.zeros(z.size - _KEPT))


@identity(
    "Section 3.2, sparsemax and local attention 'with tau = 0'",
    Source.FOUND,
    sample=logits,
    status=Status.CORRECTED,
    controls=[
        Control("weights that sum to one, as these do", euclidean=False),
        Control("one weight fewer", fewer=1),
    ],
)
def assumption_a4_sparse(z, *, euclidean=True, fewer=0):
    r"""$$f = \frac{a}{\|a\|_2},\ s_0 = \|a\|_0: \quad \|f_{(1..s_0)}\|_2 = 1 = 1 - \tau,
    \quad a \in \{\mathrm{sparsemax}(z), \mathrm{local}(z), \mathrm{top}_{s_0}(z)\}$$

    With the weights themselves, which sum to one, the norm is 1 at one-hot weights alone, and
    $\tau = 1 - \|a\|_2$ reaches $1 - 1/\sqrt{s_0}$ where $s_0$ weights are equal.
    """
    norms = []
    for attention in (sparsemax, local, TopAttention(jax.nn.softmax, _KEPT)):
        f = EuclideanAttention(attention)(z) if euclidean else attention(z)
        support = jnp.sum(f > 0) - fewer
        first = jnp.where(jnp.arange(_P) < support, -jnp.sort(-f), 0.0)
        norms.append(jnp.linalg.norm(first))
    return Sides(jnp.stack(norms), jnp.ones(3), jnp.ones(3))


@identity(
    "(A4), the largest weights of a softmax alone",
    sample=logits,
    status=Status.NEW,
    controls=[Control("of the softmax itself", dense=True)],
)
def assumption_a4_top(z, *, dense=False):
    r"""$$\mathrm{top}_{s_0}(\mathrm{softmax}(z)) = \mathrm{softmax}(z_{(1..s_0)})$$

    The sum stays one, whatever is left out.
    """
    a = TopAttention(jax.nn.softmax, _KEPT)(z)
    falling = -jnp.sort(-z)
    leading = jax.nn.softmax(falling)[:_KEPT] if dense else jax.nn.softmax(falling[:_KEPT])
    return -jnp.sort(-a)[:_KEPT], leading


def low_logits():
    """Logits of three words, all -L, with L up to 64."""
    return {"beta": -np.outer([4.0, 16.0, 64.0], np.ones(3))}


@erratum(
    "Proof of Theorem 2, 'has a lower bound, which is satisfied by (A2.1)'",
    witness=low_logits,
    reason="logits far below 0 have a large norm and small exponentials",
    corrected=Control("logits less their largest, which softmax does not see", shifted=True),
)
def assumption_a2_1_below(beta, *, shifted=False):
    r"""$$\|\beta\|_2 \ge C_9 = 4: \quad 10^{-3} \le \sum_{i=1}^p e^{\beta_i}$$

    $10^{-3}$ stands for any constant. (A2.1)'s $\|Q^z K^\top\|_2 \ge C_9$ bounds nothing from
    below, and excludes equal weights, $w_Q = 0$. Neither is needed: softmax depends on
    differences, one exponential is 1, and the Lipschitz constant is that of theorem-2-softmax.
    """
    moved = beta - jnp.max(beta, axis=1)[:, None] if shifted else beta
    return jnp.full(3, 1e-3), jnp.sum(jnp.exp(moved), axis=1)


def layers(rng, count):
    """First layers of two units or more with biases, samples, and the most cells they can have."""
    p, d, n = (rng.integers(*ends, count) for ends in ((1, 4), (2, 8), (1, 40)))
    seen = []
    for inputs, units, samples in zip(p, d, n, strict=True):
        x, W, b = (rng.normal(size=s) for s in ((samples, inputs), (inputs, units), units))
        seen.append(len(np.unique(x @ W + b > 0, axis=0)))
    most = [math.log(liu2021_regions(int(k), int(j))) for k, j in zip(d, p, strict=True)]
    numbers = {"p": p, "d": d, "n": n, "seen": seen}
    return {**{k: np.asarray(v, float) for k, v in numbers.items()}, "most": np.array(most)}


@inequality(
    r"Appendix A.1, 'up to $2^d$ number of linear regions over n samples'",
    sample=layers,
    status=Status.SHARPENED,
    controls=[Control("$d - 1$ in place of $d$", lost=1.0)],
    evaluations=512,
)
def appendix_a_1_regions(seen, most, p, d, n, *, lost=0.0):
    r"""$$\#\{\mathrm{patterns\ on\ } n \mathrm{\ samples}\} \le \min\left( n, \sum_{j \le p}
    \binom{d}{j} \right), \quad \sum_{j \le p} \binom{d}{j} \le 2^d$$

    In logarithms. Equal to $2^d$ for $d \le p$ alone; an overparameterised network, $d > p$, has
    fewer, of the order $d^p$, and $n$ samples see at most $n$ of them.
    """
    cells, all_ = most - lost * jnp.log(2.0), (d - lost) * jnp.log(2.0)
    left = jnp.stack([jnp.log(seen), most])
    return Sides(left, jnp.stack([jnp.minimum(jnp.log(n), cells), all_]), 1 + left)
