r"""Multi-head self-attention with a linear decoder, the model of deora2023optimization.

Phi(X) = H^(-1/2) sum_h <U_h, softmax(X W_h X') X>, eq. (2): H heads, key-query matrices W_h,
and decoders U_h that read all tokens, their sum, or the last token only.
"""

from enum import StrEnum
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.arrays import is_real
from attlas.core.errors import UserError, refuse_unreadable
from attlas.core.memory import require_memory


class Decoder(StrEnum):
    """The tokens that a head's decoder reads: footnote * of deora2023optimization."""

    FULL = "full"
    POOLED = "pooled"
    LAST = "last"


class MultiHead(eqx.Module):
    r"""Phi(X) = H^(-1/2) sum_h <U_h, softmax(X W_h X') X>, eq. (2) of deora2023optimization.

    Attributes:
        U: decoders; (H, T, d) for `Decoder.FULL`, (H, d) for the two others: u_h is then read
            at every token (U_h = 1 u_h') or at the last one.
        W: key-query matrices W_h = W_Q W_K'.

    Examples:
        >>> model = MultiHead(jnp.ones((1, 2, 2)), jnp.zeros((1, 2, 2)))
        >>> float(model(jnp.array([[1.0, 0.0], [0.0, 3.0]])))
        4.0
    """

    U: Float[Array, "H *tokens d"]
    W: Float[Array, "H d d"]
    decoder: Decoder = eqx.field(static=True, default=Decoder.FULL)

    def __call__(self, X: Float[Array, "T d"]) -> Float[Array, ""]:
        """The output on one sample."""
        mixed = self.attention(X) @ X
        if self.decoder is Decoder.FULL:
            total = jnp.sum(self.U * mixed)
        elif self.decoder is Decoder.POOLED:
            total = jnp.sum(self.U * jnp.sum(mixed, axis=1))
        else:
            total = jnp.sum(self.U * mixed[:, -1])
        return total / jnp.sqrt(jnp.asarray(self.heads, total.dtype))

    @property
    def heads(self) -> int:
        """The number of heads H."""
        return self.W.shape[0]

    def attention(self, X: Float[Array, "T d"]) -> Float[Array, "H T T"]:
        """Attention matrices softmax(X W_h X'), row by row.

        Returns:
            One row-stochastic matrix per head; row t belongs to the query x_t.
        """
        return jax.nn.softmax(jnp.einsum("td,hde,se->hts", X, self.W, X), axis=-1)

    def require_tokens(self, T: int, d: int) -> None:
        """Check that the parameters fit samples of T tokens of dimension d, traced or not.

        Raises:
            UserError: naming the parameter.

        Examples:
            >>> make_multi_head(1, 3, 5).require_tokens(3, 4)
            Traceback (most recent call last):
                ...
            attlas.core.errors.UserError: the model has U of shape (1, 3, 5) where ... (1, 3, 4)...
        """
        for name, array in (("U", self.U), ("W", self.W)):
            if not is_real(getattr(array, "dtype", object)):
                raise UserError(f"the model's {name} is no array of real numbers: give one")
        H = self.W.shape[0] if self.W.ndim else 0
        wanted = (H, T, d) if self.decoder is Decoder.FULL else (H, d)
        if H < 1 or self.U.shape != wanted or self.W.shape != (H, d, d):
            raise UserError(
                f"the model has U of shape {self.U.shape} where samples of shape {(T, d)} and "
                f"{H} heads need {wanted}: make them agree"
            )

    def token_decoders(self, tokens: int) -> Float[Array, "H T d"]:
        """The decoders as matrices U_h over all tokens, as the full form of the model has them."""
        if self.decoder is Decoder.FULL:
            return self.U
        read = jnp.ones(tokens, self.U.dtype)
        if self.decoder is Decoder.LAST:
            read = read.at[:-1].set(0)
        return read[None, :, None] * self.U[:, None, :]


def make_multi_head(
    heads: int,
    tokens: int,
    d: int,
    decoder: Decoder = Decoder.FULL,
    dtype: Any = None,
) -> MultiHead:
    """The model with all parameters zero: the start of the paper's first phase.

    Args:
        heads: H, at least 1.
        tokens: T, at least 1.
        d: embedding dimension, at least 1.
        dtype: floating type, JAX's default when None.

    Raises:
        UserError: if a size is below 1.

    Examples:
        >>> make_multi_head(3, 2, 5).U.shape
        (3, 2, 5)
        >>> make_multi_head(0, 2, 5)
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: heads = 0: a model needs at least one head
    """
    if heads < 1:
        raise UserError(f"heads = {heads}: a model needs at least one head")
    if tokens < 1 or d < 1:
        raise UserError(f"tokens = {tokens}, d = {d}: both must be at least 1")
    require_memory(4 * heads * d * (tokens + d), f"{heads} heads", "make them fewer or smaller")
    shape = (heads, tokens, d) if decoder is Decoder.FULL else (heads, d)
    return MultiHead(jnp.zeros(shape, dtype), jnp.zeros((heads, d, d), dtype), decoder)


@refuse_unreadable
def head_norms(model: MultiHead) -> Float[Array, " H"]:
    r"""Euclidean norms ||theta_h|| of the heads' parameters theta_h = (U_h, W_h).

    Their maximum is ||theta||_{2,inf} of deora2023optimization.

    Args:
        model: the parameters, or a difference of parameters.

    Examples:
        >>> model = MultiHead(3 * jnp.ones((1, 1)), 4 * jnp.ones((1, 1, 1)), Decoder.LAST)
        >>> head_norms(model).tolist()
        [5.0]
    """
    squares = jnp.sum(model.U.reshape(model.heads, -1) ** 2, axis=1)
    return jnp.sqrt(squares + jnp.sum(model.W**2, axis=(1, 2)))


@refuse_unreadable
def parameter_norm(model: MultiHead) -> Float[Array, ""]:
    r"""Euclidean norm ||theta|| of all parameters.

    Examples:
        >>> parameter_norm(make_multi_head(2, 2, 2)).tolist()
        0.0
    """
    return jnp.sqrt(jnp.sum(model.U**2) + jnp.sum(model.W**2))
