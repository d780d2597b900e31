"""How far the first randomised step is from its mean on the tokenized mixture."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.data.tokenized_mixture import TokenizedMixture
from attlas.models.attention.multi_head import MultiHead
from deora2023optimization.library.bounds.deora2023_mixture import deora2023_first_step_slope


def first_step_error(start: MultiHead, mixture: TokenizedMixture) -> Float[Array, ""]:
    r"""The norm of p in U_h = alpha_h 1 (zeta/4 u_star + p)', u_star = mu_+ - mu_-.

    Lemma 2 of deora2023optimization bounds it by P.

    Args:
        start: one randomised step from zero with |alpha_h| = 1, full decoders.
        mixture: the law of its samples.

    Returns:
        ||p||, the same for every head.

    Examples:
        >>> import jax
        >>> from attlas.data.tokenized_mixture import make_tokenized_mixture
        >>> mixture = make_tokenized_mixture(jax.random.key(0), d=3, M=1, zeta=0.5)
        >>> row = -0.125 * (mixture.patterns[0] - mixture.patterns[1]) + jnp.array([0.0, 0.3, 0.4])
        >>> start = MultiHead(jnp.tile(row, (1, 2, 1)), jnp.zeros((1, 3, 3)))
        >>> print(f"{first_step_error(start, mixture):.6f}")
        0.500000
    """
    signal = deora2023_first_step_slope(mixture.zeta) * (mixture.patterns[0] - mixture.patterns[1])
    row = start.U[0, 0]
    return jnp.minimum(jnp.linalg.norm(row - signal), jnp.linalg.norm(row + signal))
