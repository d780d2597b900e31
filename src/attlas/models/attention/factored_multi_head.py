r"""The multi-head model with separate query, key, value and output matrices.

deora2023optimization merges W = W_Q W_K' and U = W_O W_V'; here the factors themselves are the
parameters, as practitioners train them. The outputs are the same, the gradients are not.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.errors import UserError
from attlas.models.attention.multi_head import Decoder, MultiHead


class FactoredMultiHead(eqx.Module):
    r"""Phi(X) = H^(-1/2) sum_h <W_O W_V', softmax(X W_Q W_K' X') X>, all four head by head.

    Attributes:
        W_Q: query matrices, (H, d, m).
        W_K: key matrices, (H, d, m).
        W_V: value matrices, (H, d, v).
        W_O: output matrices; (H, T, v) for `Decoder.FULL`, (H, v) for the two others.
        decoder: what the decoders read.

    Examples:
        >>> one = jnp.ones((1, 1, 1))
        >>> model = FactoredMultiHead(0 * one, one, 2 * one, jnp.array([[[1.0], [3.0]]]))
        >>> float(model(jnp.array([[0.0], [2.0]])))
        8.0
    """

    # The axes are not named: shapes that do not fit are refused below, with words.
    W_Q: Float[Array, "_ _ _"]
    W_K: Float[Array, "_ _ _"]
    W_V: Float[Array, "_ _ _"]
    W_O: Float[Array, "..."]
    decoder: Decoder = eqx.field(static=True, default=Decoder.FULL)

    def __check_init__(self) -> None:
        """Refuses factors that do not fit together; shapes are known before any computation."""
        if self.W_Q.shape != self.W_K.shape:
            raise UserError(
                f"W_Q has shape {self.W_Q.shape} and W_K {self.W_K.shape}: make them the same"
            )
        if self.W_V.shape[:2] != self.W_Q.shape[:2]:
            raise UserError(
                f"W_V has shape {self.W_V.shape} and W_Q {self.W_Q.shape}: heads and embedding "
                "dimension, the first two, must be the same"
            )
        if (self.W_O.shape[0], self.W_O.shape[-1]) != (self.W_V.shape[0], self.W_V.shape[2]):
            raise UserError(
                f"W_O has shape {self.W_O.shape} and W_V {self.W_V.shape}: heads and value "
                "dimension, the first and the last, must be the same"
            )
        expected = 3 if self.decoder is Decoder.FULL else 2
        if self.W_O.ndim != expected:
            raise UserError(
                f"W_O has {self.W_O.ndim} axes but the {self.decoder} decoder needs {expected}: "
                "(H, T, v) for full, (H, v) for pooled and last"
            )

    def __call__(self, X: Float[Array, "T d"]) -> Float[Array, ""]:
        """The output on one sample, without forming the merged matrices.

        Args:
            X: tokens, one per row.

        Returns:
            The scalar Phi(X).
        """
        queries = X[-1:] if self.decoder is Decoder.LAST else X
        turned = jnp.einsum("td,hdm->htm", queries, self.W_Q)
        keys = jnp.einsum("sd,hdm->hsm", X, self.W_K)
        attention = jax.nn.softmax(jnp.einsum("htm,hsm->hts", turned, keys), axis=-1)
        mixed = jnp.einsum("hts,sd,hdv->htv", attention, X, self.W_V)
        if self.decoder is not Decoder.FULL:
            mixed = jnp.sum(mixed, axis=1)
        total = jnp.sum(self.W_O * mixed)
        return total / jnp.sqrt(jnp.asarray(self.heads, total.dtype))

    @property
    def heads(self) -> int:
        """The number of heads H."""
        return self.W_Q.shape[0]

    def merged(self) -> MultiHead:
        """The same function in the paper's parameters: W = W_Q W_K' and U = W_O W_V'.

        Returns:
            The merged model.
        """
        U = jnp.einsum("h...v,hdv->h...d", self.W_O, self.W_V)
        W = jnp.einsum("hdm,hem->hde", self.W_Q, self.W_K)
        return MultiHead(U, W, self.decoder)
