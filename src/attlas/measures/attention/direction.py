r"""Distances between the directions of two matrices."""

from jaxtyping import Array, Float

from attlas.core.arrays import ArrayInput, own_precision
from attlas.norms.entrywise import entrywise_norm
from attlas.optim.arguments import require_mirror_exponent
from attlas.optim.mirror_descent import bregman_sum


def direction_divergence(
    W: ArrayInput, target: ArrayInput, p: float | Float[Array, ""]
) -> Float[Array, ""]:
    r"""Directional Bregman divergence D_psi(target / ||target||_p, W / ||W||_p).

    psi = (1/p) ||.||_p^p; section 1.6 of julistiono2024optimizing, with psi of the training p.
    For unit norms it equals 1 - <grad psi(W), target> (section 1.2), but that difference
    loses all digits below the rounding unit; summed entry by entry with `bregman` each term is
    non-negative, so that small divergences are relatively accurate up to the
    rounding of the directions themselves (about eps^2).

    Args:
        W: trained matrix; a list, or an array of NumPy, JAX or torch, traced or not.
        target: direction to compare with, such as the attention SVM's, of the shape of W. The
            computation uses the wider of the two types.
        p: exponent of the potential.

    Returns:
        Divergence, 0 for equal directions; NaN if either matrix is zero.

    A `UserError` names an array that cannot be read or is not finite, or unequal shapes.

    Examples:
        >>> import jax.numpy as jnp
        >>> W = jnp.array([[1.0, 2.0], [0.0, -1.0]])
        >>> float(direction_divergence(2 * W, W, 3.0)) < 1e-30
        True
        >>> print(f"{float(direction_divergence(-W, W, 2.0)):.6f}")
        2.000000
    """
    require_mirror_exponent(p)
    with own_precision("*s, *s", W=W, target=target) as (W, target):
        return bregman_sum(target / entrywise_norm(target, p), W / entrywise_norm(W, p), p)
