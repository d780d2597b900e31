r"""How far an average by softmax moves when its logits do: attained, and without a derivative."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form


@closed_form
def perturbed_softmax(
    span: Float[Array, "*s"] | float, oscillation: Float[Array, "*s"] | float
) -> Float[Array, "*s"]:
    r"""The largest change of an average of values by softmax.

    $$\Big|\sum_t(p'_t-p_t)v_t\Big|\le(\max v-\min v)\tanh\frac{\max h-\min h}4,\qquad
    p={\rm softmax}(z),\ p'={\rm softmax}(z+h)$$

    Args:
        span: max v - min v, one number or of the shape of the other.
        oscillation: max h - min h.

    Returns:
        The bound; two tokens at logits -h/2 attain it.

    Source: derived, papers/attlas_bounds/proofs/bounds.md.

    Examples:
        >>> v, h = jnp.array([1.0, -1.0]), jnp.array([0.5, -0.5])
        >>> import jax; p, q = jax.nn.softmax(-h / 2), jax.nn.softmax(h / 2)
        >>> print(f"{float((q - p) @ v):.6f} {float(perturbed_softmax(2.0, 1.0)):.6f}")
        0.489837 0.489837
    """
    return jnp.asarray(span) * jnp.tanh(jnp.asarray(oscillation) / 4)
