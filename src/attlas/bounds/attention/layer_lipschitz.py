r"""How much the output of a layer's attention can change, from what its heads can."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form


@closed_form
def layer_lipschitz(
    heads: Float[Array, "*layers H"],
    before_output: Float[Array, "*layers H"] | None = None,
    output_norm: Float[Array, "*layers"] | float | None = None,
) -> Float[Array, "*layers"]:
    r"""An upper value of the Lipschitz constant of the sum of heads, rounded up.

    $$\|J\|\le\min\Big(\sum_h\|J_h\|,\ \|[W_O^{(1)};\dots;W_O^{(H)}]\|\sqrt{\sum_h\|J'_h\|^2}\Big)$$

    J'_h is the Jacobian of head h before its output projection: the certificate with the identity
    in the place of W_O. The second is the smaller one where heads write in different directions.

    Args:
        before_output: those before the output projection, or None for the first sum alone.
        output_norm: spectral norm of the output projections of all heads, stacked; an upper value.

    Source: derived, papers/attlas_audit/proofs/certificates.md.

    Examples:
        >>> print(f"{float(layer_lipschitz([3.0, 4.0], [3.0, 4.0], 1.0)):.6f}")
        5.000000
    """
    added = jnp.sum(heads, axis=-1)
    if before_output is not None and output_norm is not None:
        together = output_norm * jnp.sqrt(jnp.sum(before_output**2, axis=-1))
        added = jnp.minimum(added, together)
    return added * (1 + (2 * heads.shape[-1] + 16) * float(jnp.finfo(added.dtype).eps))
