r"""The normalised L-layer Transformer of section 2.6 of trauger2023sequence.

Tokens are rows. With f(X) = RowSoftmax(X W_QK X') X W_v, one layer is

    g(X) = Pi_norm(sum_h sigma(Pi_norm(f_h(X))) W_c,h),

where Pi_norm projects every row on the Euclidean unit ball. There are no residual connections. The
paper states the normalised layer for one head, and for several heads their sum without Pi_norm;
the sum stands inside the outer Pi_norm here, as its order of operations for one head asks.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attlas.core.errors import UserError

Position = int | Int[Array, ""]


def pi_norm(rows: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
    r"""Rows projected on the Euclidean unit ball, Pi_norm of section 2.6 of trauger2023sequence.

    y / max(1, ||y||_2): a row inside the ball stays as it is, hence Pi_norm has Lipschitz
    constant one; scaling every row to length one would have none at zero.

    Returns:
        The projections; of length at most one up to rounding.

    Examples:
        >>> pi_norm(jnp.array([[3.0, 0.0], [0.0, 0.5]])).tolist()
        [[1.0, 0.0], [0.0, 0.5]]
    """
    square = jnp.sum(rows**2, axis=-1, keepdims=True)
    outside = square > 1
    # The inner `where` keeps the derivative at a zero row finite.
    return rows / jnp.where(outside, jnp.sqrt(jnp.where(outside, square, 1)), 1)


class Layer(eqx.Module):
    r"""One layer g of H heads.

    Attributes:
        query_key: W_QK = W_Q W_K' of each head; token t attends with the logits X W_QK' x_t.
        value: W_v of each head.
        output: W_c of each head.
        activation: sigma, elementwise, L_sigma-Lipschitz and zero at zero.
    """

    query_key: Float[Array, "H d d"]
    value: Float[Array, "H d k"]
    output: Float[Array, "H k d"]
    activation: Callable[[Array], Array] = eqx.field(static=True, default=jax.nn.relu)

    def __call__(self, queries: Float[Array, "S d"], X: Float[Array, "T d"]) -> Float[Array, "S d"]:
        """The rows of the output that belong to some of the tokens.

        Args:
            queries: the tokens whose rows are wanted; X itself for all.

        Returns:
            One row per query.
        """
        logits = jnp.einsum("sd,hde,te->hst", queries, self.query_key, X)
        values = jnp.einsum("td,hdk->htk", X, self.value)
        mixed = jnp.einsum("hst,htk->hsk", jax.nn.softmax(logits, axis=-1), values)
        hidden = self.activation(pi_norm(mixed))
        return pi_norm(jnp.einsum("hsk,hkd->sd", hidden, self.output))


class Transformer(eqx.Module):
    r"""The block g_block^(L+1) of section 2.6 of trauger2023sequence, on one example.

    Attributes:
        layers: the layers, in order; none gives X itself.

    Examples:
        >>> eye = jnp.eye(2)[None]
        >>> model = Transformer((Layer(0 * eye, eye, eye),))
        >>> model(jnp.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
        [[0.5, 0.5], [0.5, 0.5]]
        >>> float(scalar_readout(model, jnp.array([1.0, 3.0]), jnp.eye(2)))
        2.0
    """

    layers: tuple[Layer, ...]

    def __call__(self, X: Float[Array, "T d"]) -> Float[Array, "T d"]:
        """All rows of the output.

        Returns:
            Hidden states, in the unit ball if there is a layer.
        """
        for layer in self.layers:
            X = layer(X, X)
        return X

    def row(self, X: Float[Array, "T d"], position: Position) -> Float[Array, " d"]:
        """One row of the output; the last layer is computed for it alone.

        Args:
            position: row number, not negative.
        """
        for layer in self.layers[:-1]:
            X = layer(X, X)
        query = jax.lax.dynamic_slice_in_dim(X, position, 1)
        return self.layers[-1](query, X)[0] if self.layers else query[0]


def scalar_readout(
    model: Transformer, w: Float[Array, " d"], X: Float[Array, "T d"], position: Position = 0
) -> Float[Array, ""]:
    r"""The scalar output w' Y_[CLS] of section 2.6 of trauger2023sequence.

    Args:
        X: tokens, the [CLS] token among them.
        position: place of the [CLS] token; the released code of Section 6 puts it last.

    Examples:
        >>> float(scalar_readout(Transformer(()), jnp.array([1.0, 2.0]), jnp.eye(2), 1))
        2.0
    """
    return w @ model.row(X, position)


def masked_word_readout(
    model: Transformer,
    W: Float[Array, "K d"],
    mask: Float[Array, " d"],
    X: Float[Array, "T d"],
    position: Position,
) -> Float[Array, " K"]:
    r"""The scores W (Y)_tau of all K words at a masked position tau, section 5.

    Section 5 of trauger2023sequence replaces row tau of the input by a fixed vector and maps row
    tau of the output linearly to the vocabulary; softmax and cross-entropy follow.

    Args:
        W: one row per word.
        X: tokens; row `position` is not read.
        position: tau, of the masked word.

    Raises:
        UserError: if the position is a number outside the sequence.

    Examples:
        >>> X, mask = jnp.eye(2), jnp.array([0.5, 0.0])
        >>> masked_word_readout(Transformer(()), 2 * jnp.eye(2), mask, X, 1).tolist()
        [1.0, 0.0]
    """
    if isinstance(position, int) and not 0 <= position < X.shape[0]:
        raise UserError(f"position {position} is outside 0..{X.shape[0] - 1}: mask a token of X")
    hidden = jax.lax.dynamic_update_slice_in_dim(X, mask[None, :], position, 0)
    return W @ model.row(hidden, position)
