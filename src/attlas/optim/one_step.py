r"""One randomised gradient step from zero: the first phase of deora2023optimization (sec. 5.1)."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.core.argument_validation import validate_arguments
from attlas.core.errors import UserError
from attlas.core.memory import require_memory
from attlas.core.ranges import require_positive
from attlas.data.labelled_tokens import require_labelled_tokens
from attlas.models.attention.multi_head import Decoder, MultiHead


def first_phase_steps(
    key: PRNGKeyArray, heads: int, scale: float = 1.0, dtype: Any = None
) -> Float[Array, " H"]:
    r"""Step sizes alpha_h of the first phase, +scale or -scale at equal odds (Proposition 2).

    Args:
        heads: H, at least 1.
        scale: size of every alpha_h.
        dtype: floating type, JAX's default when None.

    Returns:
        One step size a head; `one_step_initialisation` with the same key uses these.

    Raises:
        UserError: if there is no head, or the scale is not positive and finite.

    Examples:
        >>> set(abs(first_phase_steps(jax.random.key(0), 5, scale=3.0)).tolist())
        {3.0}
    """
    if heads < 1:
        raise UserError(f"heads = {heads}: a model needs at least one head")
    require_positive(scale=scale)
    require_memory(heads, f"a step size of each of {heads} heads", "take fewer")
    signs = jax.random.bernoulli(key, 0.5, (heads,))
    return jnp.where(signs, scale, -scale).astype(jnp.result_type(dtype or float))


@validate_arguments
def one_step_initialisation(
    key: PRNGKeyArray,
    X: Float[Array, "n T d"],
    y: Float[Array, " n"],
    heads: int,
    decoder: Decoder = Decoder.FULL,
    scale: float = 1.0,
) -> MultiHead:
    r"""theta_h^(1) = -alpha_h sqrt(H) grad_{theta_h} L(0), in closed form.

    At zero the attention is uniform, l'(0) = -1/2 for the logistic loss and W_h has no gradient.
    With the mean token m_i of sample i the step is
    U_h^(1) = (alpha_h / 2) 1 ((1/n) sum_i y_i m_i)', W_h^(1) = 0; a pooled decoder gains a factor
    T. On (DM1) its mean is alpha_h (zeta / 4) 1 (mu_+ - mu_-)': Lemma 2 prints zeta / 2.

    Args:
        key: random key of the signs, see `first_phase_steps`.
        X: samples of the first phase.
        y: labels, +1 or -1.
        heads: H, at least 1.
        decoder: "full", "pooled" or "last", the tokens that are decoded.
        scale: size of every alpha_h.

    Examples:
        >>> X = jnp.array([[[3.0], [1.0]], [[-1.0], [-1.0]]])
        >>> model = one_step_initialisation(jax.random.key(0), X, jnp.array([1.0, -1.0]), 1)
        >>> abs(model.U).tolist(), model.W.tolist()
        ([[[0.75], [0.75]]], [[[0.0]]])
    """
    require_labelled_tokens(X, y)
    _, T, d = X.shape
    alpha = first_phase_steps(key, heads, scale, X.dtype)
    read = jnp.mean(y[:, None] * jnp.mean(X, axis=1), axis=0) / 2
    if decoder is Decoder.POOLED:
        read = T * read
    U = alpha[:, None] * read[None, :]
    if decoder is Decoder.FULL:
        U = jnp.broadcast_to(U[:, None, :], (heads, T, d))
    return MultiHead(U, jnp.zeros((heads, d, d), X.dtype), decoder)
