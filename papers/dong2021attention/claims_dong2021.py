r"""Rank collapse (Dong, Cordonnier and Loukas 2021): attention alone makes all tokens equal.

Our text of the statements is from memory and from summaries by third parties. X = 1 x' + R, where R
is the residual, and a layer is P X W_V with P the softmax of the rows of (X W_QK X' + 1 b'
X')/sqrt(d_qk). ||M||_1 is the largest column sum of absolute values, ||M||_inf the largest row sum,
and ||M||_{1,inf} = sqrt(||M||_1 ||M||_inf). With E = R W_QK R'/sqrt(d_qk), P is the softmax of E +
1 r'.

The residual of a layer is taken about x_new = W_V'(x + R'q) with q the softmax of r. The statements
hold for every x; so they hold for the residuals of the paper, which are smallest over x on both
sides.
"""

import jax
import jax.numpy as jnp
import numpy as np
from dong2021_residual import ROUNDINGS, SMALL, columns, composite, heads, layer, present

import attlas as at
from attlas.claims.claim import Source, Status


def _small(R, x, W, b, V, width, there):
    return layer(R, x, W, b, V, width, there).spread <= SMALL


CONDITION = at.assume(r"$|E_{ij}-E_{ij'}|\le1.256$", _small)


def laws(rng, count):
    """Rows of 8 logits and differences up to 1.256; in a half one rare entry is raised."""
    r = 10 ** rng.uniform(-1, 1, (count, 1)) * rng.normal(size=(count, 8))
    E = rng.uniform(-0.5, 0.5, (count, 8))
    r[::2, 0], r[::2, 1:] = -rng.uniform(15, 25, len(r[::2])), 0
    E[::2] = rng.choice([-0.5, 0.5], (len(E[::2]), 1)) * np.where(np.arange(8) == 0, 1.0, -1.0)
    size = np.ptp(E, axis=1, keepdims=True)
    aim = SMALL * np.where(rng.random((count, 1)) < 0.5, 1.0, rng.random((count, 1)))
    return {"r": r, "E": E / size * aim * (1 - 1e-12)}


@at.inequality(
    "Lemma on the softmax (appendix)",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    sample=laws,
    assumptions=[at.assume(r"$D\le1.256$", lambda E: jnp.max(E) - jnp.min(E) <= SMALL)],
    search_over=("r", "E"),
    controls=[
        at.Control("1.9 D above", above=1.9),
        at.Control("half of D below", below=0.5),
    ],
)
def softmax_lemma(r, E, *, above=2.0, below=1.0):
    r"""$$(1-D)\,\tilde P_j\le P_j\le(1+2D)\,\tilde P_j,\quad\tilde P={\rm softmax}(r),\
    P={\rm softmax}(r+E),\ D=\max_{j,j'}|E_j-E_{j'}|$$

    Proof: $P_j/\tilde P_j=e^{E_j}/\sum_k\tilde P_ke^{E_k}$ lies between $e^{-D}$ and $e^D$, and
    $e^D\le1+2D$ up to D = 1.2564, where the equation of the two has its root.
    """
    q, P = jax.nn.softmax(r), jax.nn.softmax(r + E)
    D = jnp.max(E) - jnp.min(E)
    low, high = jnp.max((1 - below * D) * q / P), jnp.max(P / ((1 + above * D) * q))
    return jnp.stack([low, high]), jnp.ones(2)


@at.inequality(
    "Single head, one layer",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    sample=heads,
    assumptions=[CONDITION],
    search_over=("R", "W", "V"),
    project=present,
    count=96,
    roundings=ROUNDINGS,
    controls=[
        at.Control("a tenth of the bound", factor=0.1),
        at.Control("a fifth power in place of the cube", power=5.0),
    ],
)
def one_layer(R, x, W, b, V, width, there, *, factor=1.0, power=3.0):
    r"""$$\|{\rm res}(SA(X))\|_{1,\infty}\le
    \frac{4\,\|W_{QK}\|_1\|W_V\|_{1,\infty}}{\sqrt{d_{qk}}}\,\|{\rm res}(X)\|_{1,\infty}^3$$

    Later versions have a factor $\gamma$ that depends on the weights; where no two logits of a row
    of E differ by more than 1.256, it is not needed: the next claim proves the bound with 2.56 for
    4. Where they do, it is: see the last claim.
    """
    output = layer(R, x, W, b, V, width, there)
    scale = columns(W) * composite(V) / jnp.sqrt(width)
    return composite(output.R), 4 * factor * scale * composite(R) ** power


@at.inequality(
    "Single head, one layer, sharpened",
    sample=heads,
    status=Status.SHARPENED,
    search_over=("R", "W", "V"),
    project=present,
    count=96,
    roundings=ROUNDINGS,
    controls=[
        at.Control("0.7 of the bound", factor=0.7),
        at.Control("the bound at D = 0 for every D, halved", growth=0.0, factor=0.5),
    ],
)
def one_layer_sharpened(R, x, W, b, V, width, there, *, factor=1.0, growth=1.0):
    r"""$$\|{\rm res}(SA(X))\|_{1,\infty}\le\sqrt{g(D)}\,\frac{\|W_{QK}\|_1\|W_V\|_{1,\infty}}
    {\sqrt{d_{qk}}}\,\max_{ic}|R_{ic}|\,\|R\|_\infty\,\|R\|_{1,\infty},\quad
    g(D)=\frac{e^D-1}D+\frac{e^{2D}-1}{2D}$$

    For any logits, D the largest difference within a row of E; $g(0)=2$, $g(1.256)=6.5$, and
    $\max|R_{ic}|\|R\|_\infty\le\|R\|_{1,\infty}^2$. Proof: along $E\to tE$ row i moves by
    $\sum_jq_{ij}(t)(E_{ij}-\bar E_i)R_j$, with $q_{ij}(t)\le e^{tD}q_j$. Rows: the mean deviation
    is at most $D/2\le\max|E|$. Columns: $\sum_iq_{ij}|E_{ij}-\bar E_i|\le
    e^{tD}q_j(1+e^{tD})\|E\|_1$. And $\|E\|_1\le\|W\|_1\|R\|_1\|R\|_\infty$,
    $\max|E|\le\|W\|_1\max|R|\,\|R\|_\infty$, over $\sqrt{d_{qk}}$.
    """
    output = layer(R, x, W, b, V, width, there)
    D = jnp.maximum(growth * output.spread, 1e-12)
    g = jnp.expm1(D) / D + jnp.expm1(2 * D) / (2 * D)
    scale = columns(W) * composite(V) / jnp.sqrt(width)
    largest = jnp.max(jnp.abs(R)) * jnp.max(jnp.sum(jnp.abs(R), axis=1))
    return composite(output.R), factor * jnp.sqrt(g) * scale * largest * composite(R)


SHRINK = 8.0 ** np.arange(2, 8)


@at.rate(
    "Cubic rate",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    sample=heads,
    scales=SHRINK,
    roundings=ROUNDINGS,
    controls=[
        at.Control("a power more", power=4.0),
        at.Control("a little more than the cube", power=3.1),
    ],
)
def cubic_rate(R, x, W, b, V, width, there, *, power=3.0):
    r"""$$\|{\rm res}(SA(\mathbf 1x^\top+R/s))\|_{1,\infty}=O(s^{-3})$$

    One factor of the residual is what is averaged, two are in the logits. With positions or other
    logits that do not depend on the residual it would be linear. s = 64 to 2,097,152: near s = 1
    some ratios rise before they settle.
    """

    def norm(s):
        return composite(layer(R / s, x, W, b, V, width, there).R)

    return jax.vmap(norm)(jnp.asarray(SHRINK)), composite(R) * jnp.asarray(SHRINK) ** -power


def many_tokens(rng, count, low=2.0**13, high=2.0**20):
    """Numbers of movers, and logits a little above those that are needed."""
    N = np.round(np.exp(rng.uniform(np.log(low), np.log(high), count)))
    return {"N": N, "lead": rng.uniform(0.5, 1.5, count), "more": rng.uniform(1.5, 2.5, count)}


def few_movers(rng, count):
    """The same with 4 to 256 movers."""
    return many_tokens(rng, count, low=4.0, high=256.0)


def collapse_without_small_logits(N, lead, more):
    r"""4 beta ||R||^3 and a lower value of the residual of the layer about any x, for one design.

    One token has value e_0, N keys have e_k, N movers have e_{N+k} and W_QK one entry that lets
    mover k ask for key k by the logit e; d_qk = 1, W_V = I. By b the value's logit is 0 for all,
    those of keys -G, those of movers -60. So N + 1 tokens read the value, and N movers their own
    keys.
    """
    G = jnp.log(N) + lead
    e = G + more
    keys, remainder = jnp.exp(-G), N * jnp.exp(-60.0)
    still = 1 + N * keys + remainder
    moved = still + keys * jnp.expm1(e)
    read, left = 1 / still, 1 / moved
    apart = (read - left) * (1 + (N - 1) * keys + remainder) + keys * (jnp.exp(e) * left - read)
    # Column 0 of N movers against N others; two rows that are this far apart, from any x.
    return 4 * e, jnp.sqrt(N * (read - left) * apart / 2)


@at.existence(
    "Single head, one layer, for large logits",
    sample=many_tokens,
    status=Status.NEW,
    controls=[at.Control("no more than 256 movers", sample=few_movers)],
)
def gamma_is_needed(N, lead, more):
    r"""$$\frac{4\|W_{QK}\|_1\|W_V\|_{1,\infty}}{\sqrt{d_{qk}}}\|{\rm res}(X)\|_{1,\infty}^3
    \le\min_y\|SA(X)-\mathbf 1y^\top\|_{1,\infty}$$

    Without a condition on the logits the constant 4 does not suffice, and no constant does: 2N + 1
    tokens at unit vectors, a residual of norm 1, $\|W_{QK}\|_1=e=\ln N+O(1)$, and an output whose
    residual is of order $\sqrt N$. So the factor $\gamma$ of the later versions cannot be a
    constant.
    """
    return collapse_without_small_logits(N, lead, more)
