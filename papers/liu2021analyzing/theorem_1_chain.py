r"""The proof of Theorem 1 with every constant, step by step: `proofs/sample_size.md`.

z stands for x o f(x), of norm at most C_x; B = C_1 max ||z|| bounds the features. The bounds of
the features themselves are the first two steps, in `feature_norms`; sizes of covers are in
`lemma_1_2`, the sample size in `proved_sizes`, and the step from the gradient to the error
in `theorem_1_points`.
"""

import math

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, ProofStep, Sides, Status
from attlas.claims.statement import inequality, probability
from liu2021analyzing.library.models.rectifier import rectify
from liu2021analyzing.stationary_runs import features

_CHAIN = "liu2021analyzing/theorem-1"
_P, _D = 4, 3
_CENTRES, _SAMPLES, _ATOMS = 20, 100, 24
_FAILURE = 0.2


def pairs(rng, count):
    """A teacher and two students; in every other instance both layers shrink towards zero."""
    z = np.abs(rng.normal(size=(count, _P)))
    W, W_t = rng.normal(size=(2, count, _P, _D))
    w, w_t = rng.normal(size=(2, count, _D))
    rho = 10 ** rng.uniform(-4, -0.3, count)
    W_n = W + rho[:, None, None] * rng.normal(size=W.shape)
    w_n = w + rho[:, None] * rng.normal(size=w.shape)
    even = slice(None, None, 2)
    W[even] = W_t[even] = z[even, :, None] * np.ones((1, 1, _D))
    w[even], w_t[even] = 1.0, -1.0
    W_n[even], w_n[even] = (1 - rho[even, None, None]) * W[even], (1 - rho[even, None]) * w[even]
    return {"z": z, "W": W, "w": w, "W_n": W_n, "w_n": w_n, "W_t": W_t, "w_t": w_t}


@inequality(
    "Theorem 1, the gradient between points of the cover",
    sample=pairs,
    status=Status.CORRECTED,
    proof_step=ProofStep(_CHAIN, 3),
    search_over=("z", "W", "w", "W_n", "w_n", "W_t", "w_t"),
    controls=[Control("3 in place of 4", factor=3.0)],
)
def theorem_1_lipschitz(z, W, w, W_n, w_n, W_t, w_t, *, factor=4.0):
    r"""$$\|W - W'\|_F \le \rho C_1,\ \|w - w'\|_2 \le \rho C_2 \quad \Rightarrow \quad
    \|u \Phi - u' \Phi'\|_2 \le 4 C_2 B^2 \rho$$

    Approached as $\rho$ goes to zero, both layers shrinking and the teacher of opposite sign. The
    paper takes one $\epsilon$ for two balls of different radii. The claim lemma-1-2-lipschitz has
    the same with a mask as third block.
    """
    norm = jnp.linalg.norm

    def gradient(W, w):
        phi = rectify(z @ W)
        return (phi @ w - rectify(z @ W_t) @ w_t) * phi

    C_1 = jnp.maximum(jnp.maximum(norm(W), norm(W_n)), norm(W_t))
    C_2 = jnp.maximum(jnp.maximum(norm(w), norm(w_n)), norm(w_t))
    rho = jnp.maximum(norm(W - W_n) / C_1, norm(w - w_n) / C_2)
    size = C_2 * (C_1 * norm(z)) ** 2
    return Sides(norm(gradient(W, w) - gradient(W_n, w_n)), factor * size * rho, size)


def deviations(rng, count):
    """Largest distance of a sample's mean of u Phi from the population's, over random centres."""
    largest, bound, mean = np.empty((3, count))
    for place in range(count):
        z = rng.normal(size=(_ATOMS, _P))
        target = features(z, rng.normal(size=(_P, _D))) @ rng.normal(size=_D)
        shares = rng.multinomial(_SAMPLES, np.full(_ATOMS, 1 / _ATOMS)) / _SAMPLES
        W = rng.normal(size=(_CENTRES, _P, _D))
        phi = features(z[None], W)
        u = np.einsum("cad,cd->ca", phi, rng.normal(size=(_CENTRES, _D))) - target[None]
        v = u[:, :, None] * phi
        gaps = np.linalg.norm(np.einsum("a,cad->cd", shares - 1 / _ATOMS, v), axis=1)
        norms = np.linalg.norm(v, axis=2)
        largest[place], bound[place], mean[place] = gaps.max(), norms.max(), norms.mean()
    return {"largest": largest, "bound": bound, "mean": mean}


@probability(
    "Theorem 1, all centres at once",
    sample=deviations,
    independent="network, centres and sample",
    level=1 - _FAILURE,
    proof_step=ProofStep(_CHAIN, 4),
    controls=[Control(r"the mean of $\|v\| / \sqrt{n}$, no logarithm", union=False)],
)
def theorem_1_union(largest, bound, mean, *, union=True):
    r"""$$P\left( \max_{j \le N} \left\| \tfrac1n \sum_i v_i^{(j)} - E v^{(j)} \right\|_2
    \le V \sqrt{\tfrac8n \log \tfrac{2N}{\delta}} \right) \ge 1 - \delta$$

    20 random networks, 100 draws from 24 inputs, $\delta = .2$. $V$ bounds $\|v\|$, twice $V$ the
    centred vectors; the deviations are far below what is allowed, for $V$ is the largest norm and
    not a standard deviation.
    """
    # What the union bound allows: 2 N exp(-n r^2 / 8 V^2) = delta.
    spread = math.sqrt(8 * math.log(2 * _CENTRES / _FAILURE)) * bound if union else mean
    return largest <= spread / math.sqrt(_SAMPLES)
