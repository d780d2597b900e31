r"""Covers of a hull in any Hilbert space, by Maurey's lemma and without a ceiling."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form


@closed_form
def hilbert_cover_entropy(ratio: Float[Array, "..."], atoms: float | int) -> Float[Array, "..."]:
    r"""The entropy of the hull of 0 and N atoms of length b at distance eps.

    $$\log N(\epsilon)\le\max\Big(0,\Big\lceil\frac{b^2}{\epsilon^2}\Big\rceil-1\Big)\ln(N+1)$$

    For an inner product of the sample, b is a root mean square over the tokens that were met, and
    no worst case.

    Args:
        ratio: b^2 / eps^2.
        atoms: N, with both signs where both belong to the hull.

    Returns:
        log N.

    Source: derived from Lemma 3.1 of trauger2023sequence,
    papers/trauger2023sequence/proofs/covers.md.

    Examples:
        >>> hilbert_cover_entropy(jnp.array([0.5, 1.0, 2.5]), 2).tolist()
        [0.0, 0.0, 2.1972...]
    """
    steps = jnp.maximum(jnp.ceil(ratio) - 1, 0)
    return steps * jnp.log1p(jnp.asarray(atoms, ratio.dtype))
