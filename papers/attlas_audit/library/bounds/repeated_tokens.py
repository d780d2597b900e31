r"""How much attention one position can get when all tokens are the same word."""

import jax.numpy as jnp
from jaxtyping import Array

from attlas.bounds.attention.entropy_floor import Number
from attlas.bounds.closed_form import closed_form


@closed_form
def repeated_token_ceiling(radius: Number, tokens: Number) -> Array:
    r"""An upper value of a weight among t logits of absolute value at most xi.

    $$P_{tj}\le\frac{e^{2\xi}}{e^{2\xi}+t-1}$$

    With one token repeated and rotary positions all logits are q' R_m k, so that xi = s |q| |k|.
    Without positions xi counts as 0 and the weight is 1/t exactly.

    Args:
        radius: xi, at least every |logit|; of any shape.
        tokens: t, how many tokens the row sees.

    Returns:
        The ceiling, rounded up.

    Source: Propositions on repeated tokens of gu2025attention (found in a transcription).

    Examples:
        >>> print(f"{float(repeated_token_ceiling(0.0, 8)):.6f}")
        0.125000
    """
    xi, t = (jnp.asarray(each, dtype=jnp.result_type(float)) for each in (radius, tokens))
    value = 1 / (1 + (t - 1) * jnp.exp(-2 * xi))
    return value * (1 + 24 * float(jnp.finfo(value.dtype).eps))
