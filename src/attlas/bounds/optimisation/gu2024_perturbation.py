r"""Lemma B.1 and Lemma 5.1 of gu2024exploring: how far a kernel moves with the weights.

"printed" bounds every share m S_ir by e^{2B}, and pays e^{10B}. "sharp" keeps the shares: the
logarithm of a share moves by at most 2 R ||x_i||, so that the change is relative to the overlap
kappa_ij = m sum_r S_ir S_jr, which tends to e^{sigma^2 <x_i, x_j>}. No probability is needed.
Proof, and why the constants are best: papers/gu2024exploring/proofs/kernel_perturbation.md.

R bounds how far weights move, and m is the width.
"""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.constants import require_constants
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork

Number = int | float | Float[Array, ""]


@closed_form
def gu2024_basic_bounds(B: Number, R: Number, m: Number) -> dict[int, Float[Array, ""]]:
    r"""The right sides of the thirteen parts of Lemma B.1, for weights within R of Gaussian ones.

    1: |<w, x>|. 2: |<w~, x>|. 3: |<w - w~, x>|. 4: exp<w, x>. 5: exp<w~, x>.
    6: |exp<w - w~, x> - 1|. 7: |exp<w, x> - exp<w~, x>|. 8: |alpha - alpha~|.
    9: |1/alpha - 1/alpha~|. 10: S_r. 11: S~_r. 12: |S_r - S~_r|. 13: |<z, S - S~>| / max |z|.

    Args:
        B: largest |<w_r, x_i>|, of Definition 4.1.
        R: largest ||w_r - w~_r||, below 0.01; samples have norm at most 1.

    Source: Lemma B.1 of gu2024exploring (parts found, constants derived).

    Examples:
        >>> bounds = gu2024_basic_bounds(1.0, 0.01, 10)
        >>> print(len(bounds), f"{float(bounds[9]):.5f}")
        13 0.04098
    """
    B, R, m = jnp.asarray(B), jnp.asarray(R), jnp.asarray(m)
    units = 2 * R * jnp.exp(B + R)
    shares = 4 * R * jnp.exp(4 * B + 3 * R)
    return {
        1: B,
        2: B + R,
        3: R,
        4: jnp.exp(B),
        5: jnp.exp(B + R),
        6: 2 * R,
        7: units,
        8: m * units,
        9: 2 * R / m * jnp.exp(3 * B + 2 * R),
        10: jnp.exp(2 * B) / m,
        11: jnp.exp(2 * B + 2 * R) / m,
        12: shares / m,
        13: shares,
    }


@closed_form
def gu2024_relative_bounds(R: Number) -> dict[int, Float[Array, ""]]:
    r"""Parts 7, 8, 9, 12 and 13 of Lemma B.1 for relative changes, each the best possible.

    No B is needed:

    $$\tfrac{|e^{\langle w,x\rangle}-e^{\langle\tilde w,x\rangle}|}{e^{\langle w,x\rangle}},\
    \tfrac{|\alpha-\tilde\alpha|}\alpha,\ \alpha|\alpha^{-1}-\tilde\alpha^{-1}|\le e^R-1,\qquad
    \tfrac{|S_r-\tilde S_r|}{S_r}\le e^{2R}-1,\qquad
    |\langle z,S-\tilde S\rangle|\le2\|z\|_\infty\tanh\tfrac R2$$

    Args:
        R: largest |<w_r - w~_r, x>|, any size.

    Source: Lemma B.1 of gu2024exploring (sharpened, derived).

    Examples:
        >>> print(f"{float(gu2024_relative_bounds(0.01)[13]):.6f}")
        0.010000
    """
    R = jnp.asarray(R)
    units = jnp.expm1(R)
    return {7: units, 8: units, 9: units, 12: jnp.expm1(2 * R), 13: 2 * jnp.tanh(R / 2)}


@closed_form
def gu2024_kernel_change(
    network: SoftmaxNetwork,
    X: Float[Array, "n d"],
    R: Number,
    *,
    B: Number | None = None,
    constants: Literal["printed", "sharp"] = "sharp",
) -> Float[Array, "kn kn"]:
    r"""Lemma 5.1: a bound on every entry of |H(W~) - H(W)|, for ||w~_r - w_r|| <= R.

    Printed, for R < 0.01 and ||x_i|| <= 1: R e^{10B} in every entry, hence R n d e^{10B} in
    Frobenius norm. The quoted lemmas for one output have 2 R (ReLU) and 3 R e^{2B} (exponential,
    there 3 R n^{o(1)}). Sharp, for every R:

    $$|\tilde H-H|\le|\langle x_i,x_j\rangle|\,\kappa_{ij}\,(1+\alpha_{\ell i})(1+\alpha_{\ell'j})
    \big(e^{2R(\|x_i\|+\|x_j\|)}-1\big),\qquad\kappa_{ij}=m\sum_rS_{i,r}S_{j,r}$$

    with alpha_li = min(1, |<a_l, S_i>| + R ||x_i||), for |a| <= 1. For exponential units
    kappa_ij = (1/m) sum_r e^{<w_r, x_i + x_j>}, the exponent is R ||x_i + x_j||, and no alpha
    stands. For ReLU kappa_ij (...) is the share of units whose sign can change in the product.

    Args:
        B: radius of Definition 4.1, for the printed bound; max(1, |<w_r, x_i>|) if None.

    Returns:
        The bounds in the layout of H: k x k blocks of n x n, row l n + i.

    Source: Lemma 5.1 and section 5 of gu2024exploring (recalled); sharp (derived).

    Examples:
        >>> network = SoftmaxNetwork(jnp.zeros((1, 2)), jnp.array([[1.0, -1.0]]))
        >>> print(f"{float(gu2024_kernel_change(network, jnp.ones((1, 1)), 0.01)[0, 0]):.6f}")
        0.041631
        >>> printed = gu2024_kernel_change(network, jnp.ones((1, 1)), 0.01, constants="printed")
        >>> print(f"{float(printed[0, 0]):.1f}")
        220.3
    """
    require_constants(constants, "printed", "sharp")
    logits = X @ network.W
    if constants == "printed":
        B = jnp.maximum(jnp.max(jnp.abs(logits)), 1) if B is None else jnp.asarray(B)
        entry = {
            Activation.SOFTMAX: jnp.exp(10 * B),
            Activation.RELU: 2.0,
            Activation.EXPONENTIAL: 3 * jnp.exp(2 * B),
        }[network.activation]
        size = network.a.shape[0] * X.shape[0]
        return jnp.full((size, size), R * entry)
    return _kernel_change(network, X, logits, jnp.asarray(R))


def _kernel_change(
    network: SoftmaxNetwork, X: Float[Array, "n d"], logits: Float[Array, "n m"], R: Array
) -> Float[Array, "kn kn"]:
    k, n = network.a.shape[0], X.shape[0]
    inner, shift = jnp.abs(X @ X.T), R * jnp.linalg.norm(X, axis=1)
    if network.activation is Activation.RELU:
        within = jnp.abs(logits) <= shift[:, None]
        unsure = _touched(logits > 0, within).astype(X.dtype)
        return jnp.tile(inner * unsure, (k, k))
    if network.activation is Activation.EXPONENTIAL:
        units = jnp.exp(logits)
        sums = R * jnp.linalg.norm(X[:, None, :] + X[None, :, :], axis=2)
        return jnp.tile(inner * (units @ units.T) / network.width * jnp.expm1(sums), (k, k))
    spread = jnp.expm1(2 * (shift[:, None] + shift[None, :]))
    shares = _shares(logits)
    entries = inner * (shares @ shares.T) / network.width * spread
    means = jnp.abs(network.a @ shares.T) / network.width + shift[None, :]
    heights = (1 + jnp.minimum(means, 1)).reshape(k * n)
    return jnp.tile(entries, (k, k)) * heights[:, None] * heights[None, :]


def _shares(logits: Float[Array, "n m"]) -> Float[Array, "n m"]:
    top = jnp.max(logits, axis=1, keepdims=True)
    units = jnp.exp(logits - top)
    return logits.shape[1] * units / jnp.sum(units, axis=1, keepdims=True)


def _touched(active: Bool[Array, "n m"], within: Bool[Array, "n m"]) -> Float[Array, "n n"]:
    """Share of units where the product of two ReLU derivatives may change."""
    # The product stays 0 where one of the two stays inactive, and 1 where both stay active.
    may = (active | within).astype(float)
    sure = (active & ~within).astype(float)
    return (may @ may.T - sure @ sure.T) / active.shape[1]
