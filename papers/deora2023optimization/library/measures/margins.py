r"""Margins of a scalar model, and three ways to make their scale comparable."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.arrays import ArrayInput, own_precision
from attlas.core.errors import UserError
from attlas.core.trees import require_finite_tree
from attlas.models.attention.multi_head import MultiHead


def margins(model: Callable[[Array], Array], X: ArrayInput, y: ArrayInput) -> Float[Array, " n"]:
    r"""Margins y_i Phi(X_i).

    Args:
        model: maps one sample to its scalar output.
        X: samples along the first axis; a list, or an array of NumPy, JAX or torch, traced or
            not, as y.
        y: labels +-1, [n].

    Returns:
        One margin a sample; positive where the sign of the output is right, infinite where it
        overflows.

    A `UserError` names an array, of the model or not, that is not finite or does not fit.

    Examples:
        >>> margins(jnp.sum, jnp.array([[1.0, 2.0], [0.0, -1.0]]), jnp.array([1.0, -1.0])).tolist()
        [3.0, 1.0]
    """
    require_finite_tree(model, "model")
    with own_precision("n *shape, n", X=X, y=y) as (X, y):
        return _margins(model, X, y)


def _margins(model: Callable[[Array], Array], X: Array, y: Array) -> Array:
    try:
        outputs = jax.vmap(model)(X)
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise UserError(
            f"X has shape {X.shape}, of which the model takes no sample "
            f"({str(error).partition(chr(10))[0]}): give samples as it reads them"
        ) from error
    if outputs.shape != y.shape:
        raise UserError(f"the model's outputs have shape {outputs.shape}: give one of scalars")
    return y * outputs


def normalised_margin(
    model: Any, X: ArrayInput, y: ArrayInput, norm: float = math.sqrt(2)
) -> Float[Array, ""]:
    r"""Smallest margin of the model whose parameters are rescaled to one norm.

    min_i y_i Phi(X_i; r theta / ||theta||), with r = sqrt(2) as in section 7 of
    deora2023optimization, where the maximum over theta is the global margin. Attention is not
    homogeneous in its weights, so the model is evaluated afresh at the rescaled parameters;
    dividing its margin by a power of ||theta|| gives another number.

    Args:
        model: a pytree of parameters that maps one sample to a scalar.
        X: samples along the first axis, as for `margins`.
        y: labels +-1, [n].
        norm: r, the Euclidean norm of all floating arrays together.

    Returns:
        The margin; NaN where all parameters are zero.

    Raises:
        UserError: if norm is not positive, and as `margins`.

    Examples:
        >>> from attlas.models.attention.multi_head import Decoder
        >>> model = MultiHead(3 * jnp.ones((1, 1)), jnp.zeros((1, 1, 1)), Decoder.LAST)
        >>> X, y = jnp.array([[[5.0]], [[-1.0]]]), jnp.array([1.0, -1.0])
        >>> print(f"{float(normalised_margin(model, X, y, norm=2.0)):.6f}")
        2.000000
    """
    if not norm > 0:
        raise UserError(f"norm = {norm}: parameters are rescaled to a positive norm")
    require_finite_tree(model, "model")
    moved, fixed = eqx.partition(model, eqx.is_inexact_array)
    with own_precision("n *shape, n", X=X, y=y) as (X, y):
        length = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(moved)))
        scaled = jax.tree.map(lambda leaf: leaf * (norm / length), moved)
        return jnp.min(_margins(eqx.combine(scaled, fixed), X, y))


def decoder_margin(model: MultiHead, X: ArrayInput, y: ArrayInput) -> Float[Array, ""]:
    r"""Smallest margin over the decoders' norm, min_i y_i Phi(X_i) / ||U||_F.

    The model is 1-homogeneous in U, so this does not depend on the scale of U; the attention
    weights W stay as they are. Where W = 0 and the margin is positive it is
    at most the linear margin gamma_lin of deora2023optimization (appendix F).

    Args:
        y: labels +-1, [n].

    Returns:
        The margin; NaN where U, or the sum of its squares, is zero.

    A `UserError` refuses what `margins` refuses.

    Examples:
        >>> from attlas.models.attention.multi_head import Decoder
        >>> model = MultiHead(3 * jnp.ones((1, 1)), jnp.ones((1, 1, 1)), Decoder.LAST)
        >>> float(decoder_margin(model, jnp.array([[[5.0]], [[-1.0]]]), jnp.array([1.0, -1.0])))
        1.0
    """
    return jnp.min(margins(model, X, y)) / jnp.sqrt(jnp.sum(model.U**2))


def homogeneous_margin(model: Any, X: ArrayInput, y: ArrayInput, order: float) -> Float[Array, ""]:
    r"""Smallest margin over a power of the parameters' norm, min_i y_i Phi(X_i) / ||theta||^k.

    Free of scale only where the model is k-homogeneous: attention is so in no k, and then the
    number depends on ||theta||; `normalised_margin` does not.

    Args:
        model: a pytree of parameters that maps one sample to a scalar.
        X: samples along the first axis, as for `margins`.
        y: labels +-1, [n].
        order: the stated homogeneity k.

    Returns:
        The margin; NaN where all parameters are zero.

    A `UserError` refuses what `margins` refuses.

    Examples:
        >>> model = MultiHead(3 * jnp.ones((1, 1, 1)), 4 * jnp.ones((1, 1, 1)))
        >>> float(homogeneous_margin(model, jnp.ones((1, 1, 1)), jnp.ones(1), 1.0))
        0.6
    """
    require_finite_tree(model, "model")
    moved = eqx.filter(model, eqx.is_inexact_array)
    square = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(moved))
    return jnp.min(margins(model, X, y)) / square ** (order / 2)
