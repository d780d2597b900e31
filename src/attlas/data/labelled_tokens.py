r"""Requirements of binary problems on sequences of tokens: shapes, labels +-1, bounded tokens."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.core.errors import UserError
from attlas.core.ranges import require_at_least


def require_labelled_tokens(X: Array, y: Array, R: float | None = None) -> None:
    r"""Check samples; an error names the value and its position.

    Inside a transformation such as `jax.vmap` only the shapes are known and checked.

    Args:
        X: tokens (n, T, d), or (m, n, T, d) for m data sets.
        y: labels (n,), or (m, n).
        R: bound of the tokens' norms (Assumption 1 of deora2023optimization), none when None.

    Raises:
        UserError: if they are no arrays of real numbers, shapes do not fit, there is no sample, an
            entry is not finite, a label is not +1 or -1, or a token is longer than R.

    Examples:
        >>> import jax.numpy as jnp
        >>> require_labelled_tokens(2 * jnp.ones((1, 2, 4)), jnp.ones(1), R=3.0)
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: token X[0, 0] has norm 4 above R = 3: scale the tokens ...
    """
    _require_real(X, "X")
    _require_real(y, "y")
    if X.ndim not in (3, 4) or 0 in X.shape:
        raise UserError(f"X has shape {X.shape}: give samples x tokens x dimensions, none empty")
    if y.shape != X.shape[:-2]:
        raise UserError(
            f"y has shape {y.shape} where X of shape {X.shape} needs {X.shape[:-2]}: make them "
            "agree"
        )
    try:
        tokens, labels = np.asarray(X), np.asarray(y)
    except jax.errors.TracerArrayConversionError:
        return
    bad = np.argwhere(~np.isfinite(tokens))
    if bad.size:
        where = tuple(int(i) for i in bad[0])
        raise UserError(f"X[{_place(where)}] = {tokens[where]} is not finite: remove the sample")
    wrong = np.argwhere(np.abs(labels) != 1)
    if wrong.size:
        where = tuple(int(i) for i in wrong[0])
        raise UserError(
            f"label y[{_place(where)}] = {labels[where]} is not +1 or -1: map the two classes to "
            "-1 and +1"
        )
    if R is None:
        return
    require_at_least(0, R=R)
    # NumPy has no norms of bfloat16, and those of whole numbers may leave their range.
    norms = np.linalg.norm(tokens.astype(float), axis=-1)
    is_floating = jnp.issubdtype(tokens.dtype, jnp.floating)
    unit = float(jnp.finfo(tokens.dtype if is_floating else float).eps)
    # A norm of d rounded squares may exceed its bound by d / 2 units.
    long = np.argwhere(norms > R * (1 + X.shape[-1] * unit))
    if long.size:
        where = tuple(int(i) for i in long[0])
        raise UserError(
            f"token X[{_place(where)}] has norm {norms[where]:.6g} above R = {R:.6g}: scale the "
            "tokens or raise R"
        )


def _require_real(array: Any, name: str) -> None:
    dtype = getattr(array, "dtype", None)
    if dtype is None or not (
        jnp.issubdtype(dtype, jnp.floating) or jnp.issubdtype(dtype, jnp.integer)
    ):
        what = f"a {type(array).__name__}" if dtype is None else f"of the type {dtype}"
        raise UserError(f"{name} is {what}: give an array of real numbers, of JAX or NumPy")


def _place(where: tuple[int, ...]) -> str:
    return ", ".join(map(str, where))
