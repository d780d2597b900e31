r"""Synthetic token selection: samples of tokens with a query each, and a fixed value head.

Section 1.1 of julistiono2024optimizing: sample i has tokens X_it (rows of X_i), a query z_i and
a label y_i = +-1; the token score is gamma_it = y_i v' X_it, and the optimal token of a sample
is the one of largest score.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from attlas.core.errors import UserError, refuse_unreadable
from attlas.core.memory import require_memory
from attlas.core.ranges import is_finite


class TokenSelection(eqx.Module):
    r"""Samples with their value head, and the planted solution.

    An ensemble of problems is the same object with a leading axis on every array.

    Attributes:
        y: labels, +1 or -1.
        v: value head, fixed while W is trained.
        tokens: the tokens that the construction makes optimal, where it states them.
        separator: a matrix with (X_ia - X_it)' W z_i >= 1 for these tokens, where planted.
    """

    X: Float[Array, "*e n T d"]
    y: Float[Array, "*e n"]
    z: Float[Array, "*e n d"]
    v: Float[Array, "*e d"]
    tokens: Int[Array, "*e n"] | None = None
    separator: Float[Array, "*e d d"] | None = None


@refuse_unreadable
def token_scores(data: TokenSelection) -> Float[Array, "n T"]:
    r"""Token scores gamma_it = y_i v' X_it.

    Examples:
        >>> token_scores(make_support_selection(jax.random.key(0))).shape
        (1, 2)
    """
    return data.y[:, None] * (data.X @ data.v)


@refuse_unreadable
def optimal_tokens(data: TokenSelection) -> Int[Array, " n"]:
    r"""Globally optimal tokens, opt_i = argmax_t gamma_it; the first one where tied.

    Examples:
        >>> data = make_separable_selection(jax.random.key(0), n=3, T=4, d=5)
        >>> bool(jnp.all(optimal_tokens(data) == data.tokens))
        True
    """
    return jnp.argmax(token_scores(data), axis=1)


def _on_sphere(array: Array) -> Array:
    return array / jnp.linalg.norm(array, axis=-1, keepdims=True)


def make_token_selection(
    key: PRNGKeyArray, n: int = 6, T: int = 8, d: int = 10, dtype: Any | None = None
) -> TokenSelection:
    r"""Gaussian tokens, queries and value head on the unit sphere, random labels.

    The synthetic data of julistiono2024optimizing (section 1.6), as in its released code.

    Args:
        dtype: floating type; JAX's default when None.

    Returns:
        Samples; the optimal tokens are almost surely unique, separability is not promised.

    Raises:
        UserError: if n or d is below 1, or T below 2.

    Examples:
        >>> data = make_token_selection(jax.random.key(0))
        >>> data.X.shape, bool(jnp.allclose(jnp.linalg.norm(data.v), 1.0))
        ((6, 8, 10), True)
    """
    _require_sizes(n, T, d)
    tokens, queries, head, labels = jax.random.split(key, 4)
    v = _on_sphere(jax.random.normal(head, (d,), dtype))
    y = jax.random.rademacher(labels, (n,), v.dtype)
    X = _on_sphere(jax.random.normal(tokens, (n, T, d), dtype))
    return TokenSelection(X, y, _on_sphere(jax.random.normal(queries, (n, d), dtype)), v)


def make_separable_selection(
    key: PRNGKeyArray,
    n: int = 6,
    T: int = 8,
    d: int = 10,
    margin: float = 1.0,
    dtype: Any | None = None,
) -> TokenSelection:
    r"""Samples whose attention SVM at the optimal tokens is feasible by construction.

    Starting from `make_token_selection` and a Gaussian matrix W, every token that is not optimal
    moves along the part of u_i = W z_i orthogonal to v until (X_ia - X_it)' W z_i >= margin. The
    scores and hence the optimal tokens do not change; moved tokens leave the sphere.

    Args:
        d: embedding dimension, at least 2.
        margin: margin of the planted matrix on every constraint.
        dtype: floating type; JAX's default when None.

    Returns:
        Samples with `tokens` and with `separator`, the planted matrix over the margin.

    Raises:
        UserError: if a size or the margin leaves nothing to separate.

    Examples:
        >>> data = make_separable_selection(jax.random.key(0))
        >>> h = jnp.einsum("ntd,de,ne->nt", data.X, data.separator, data.z)
        >>> gap = jnp.take_along_axis(h, data.tokens[:, None], 1) - h
        >>> bool(jnp.min(jnp.sort(gap, axis=1)[:, 1:]) > 1 - 1e-5)
        True
    """
    if d < 2:
        raise UserError(f"d = {d} leaves no direction beside v: give at least 2 dimensions")
    if not (margin > 0 and is_finite(margin)):
        raise UserError(f"margin = {margin} is not positive and finite: choose another")
    draw, plant = jax.random.split(key)
    data = make_token_selection(draw, n, T, d, dtype)
    W = jax.random.normal(plant, (d, d), data.X.dtype)
    u = data.z @ W.T
    along = u - (u @ data.v)[:, None] * data.v[None, :]
    step_gain = jnp.sum(along * u, axis=1)
    h = jnp.einsum("ntd,nd->nt", data.X, u)
    best = optimal_tokens(data)
    upper_bound = jnp.take_along_axis(h, best[:, None], 1) - margin
    shift = jnp.minimum(upper_bound - h, 0) / step_gain[:, None]
    shift = jnp.where(jnp.arange(T)[None, :] == best[:, None], 0, shift)
    X = data.X + shift[:, :, None] * along[:, None, :]
    return TokenSelection(X, data.y, data.z, data.v, best, W / margin)


def make_infeasible_selection(
    key: PRNGKeyArray, n: int = 2, T: int = 2, d: int = 10, dtype: Any | None = None
) -> TokenSelection:
    r"""Pairs of samples with opposite features and equal score gaps.

    In a pair X_2 = -X_1, z_2 = z_1 and y_2 = -y_1: the scores and the optimal tokens are equal and
    the constraints of the attention SVM opposite, so that it is infeasible; for T = 2 and a
    convex loss the attention stays finite (by Jensen the best weight on a pair is 1/2).

    Raises:
        UserError: if n is odd.

    Examples:
        >>> data = make_infeasible_selection(jax.random.key(0))
        >>> bool(jnp.all(data.X[0] == -data.X[1])), data.tokens[0] == data.tokens[1]
        (True, Array(True, dtype=bool))
    """
    if n % 2 or n < 2:
        raise UserError(f"n = {n} samples do not form pairs: choose an even n")
    half = make_token_selection(key, n // 2, T, d, dtype)

    def paired(first: Array, second: Array) -> Array:
        return jnp.stack([first, second], axis=1).reshape(n, *first.shape[1:])

    X, y, z = paired(half.X, -half.X), paired(half.y, -half.y), paired(half.z, half.z)
    return TokenSelection(X, y, z, half.v, jnp.repeat(optimal_tokens(half), 2))


def make_support_selection(
    key: PRNGKeyArray, n: int = 1, T: int = 2, d: int = 4, dtype: Any | None = None
) -> TokenSelection:
    r"""Samples on which every other token is a support token, for every p in (1, inf).

    Then delta = 1/4 in julistiono2024optimizing (no token is left outside the support), and the
    cone claims can be evaluated: R_delta is about 2 to 10 for n = 1, T = 2.

    Queries have disjoint coordinates, so that the attention SVM splits into one problem a sample.
    There the differences are D_it = X_ia - X_it = g_i + e_it, with e_it of sum zero over t and on
    other coordinates than g_i; with equal multipliers the SVM's gradient condition holds and all
    its constraints are active. All score gaps equal one: y_i v' g_i = 1 and v' e_it = 0.

    Args:
        n: samples, at most d.
        d: embedding dimension, at least 2 and at least 4 if T > 2.
        dtype: floating type; JAX's default when None.

    Raises:
        UserError: if n or T do not fit into d dimensions.

    Examples:
        >>> data = make_support_selection(jax.random.key(1))
        >>> print(f"{float(jnp.ptp(token_scores(data))):.4f}")
        1.0000
    """
    _require_room(n, T, d)
    draw, labels, place = jax.random.split(key, 3)
    # One draw for all Gaussian numbers: each draw of its own costs a second of compilation.
    rows = jax.random.normal(draw, (1 + n * (T + 2), d), dtype)
    v, blocks = rows[0], rows[1:].reshape(n, T + 2, d)
    # Without other tokens nothing is spread, and g may use all coordinates.
    front = (jnp.arange(d) < (d if T == 2 else d // 2)).astype(jnp.result_type(dtype or float))
    in_front, in_back = v * front / jnp.linalg.norm(v * front), v * (1 - front)
    y = jax.random.rademacher(labels, (n,), v.dtype)
    noise = blocks[:, 0] * front[None, :]
    noise = noise - (noise @ in_front)[:, None] * in_front[None, :]
    g = y[:, None] * in_front[None, :] + 0.5 * noise / d**0.5
    e = blocks[:, 3:] * (1 - front)[None, None, :] / d**0.5
    e = e - jnp.mean(e, axis=1, keepdims=True)
    back = in_back / jnp.where(T > 2, jnp.linalg.norm(in_back), 1)
    e = e - (e @ back)[:, :, None] * back[None, None, :]
    offset = 0.25 * _on_sphere(blocks[:, 1:2])
    best = g[:, None, :] / 2 + offset
    X = jnp.concatenate([best, offset - g[:, None, :] / 2 - e], axis=1)
    tokens = jax.random.randint(place, (n,), 0, T)
    order = (jnp.arange(T)[None, :] - tokens[:, None]) % T
    X = jnp.take_along_axis(X, order[:, :, None], axis=1)
    owner = jnp.arange(d)[None, :] % n == jnp.arange(n)[:, None]
    z = _on_sphere(jnp.where(owner, blocks[:, 2], 0))
    return TokenSelection(X, y, z, in_front + in_back, tokens)


@refuse_unreadable
def validate(data: TokenSelection, ensemble: bool = False) -> None:
    """Check the data; an error names the value and its position.

    Inside a transformation such as `jax.vmap` only the shapes are known and checked.

    Args:
        ensemble: whether there are many problems, along one leading axis.

    Raises:
        UserError: if a field is not an array of floating numbers, shapes do not fit, there is no
            sample or only one token, an entry is not finite, or a label is not +1 or -1.

    Examples:
        >>> X, y, z, v = jnp.ones((1, 2, 3)), jnp.zeros(1), jnp.ones((1, 3)), jnp.ones(3)
        >>> validate(TokenSelection(X, y, z, v))
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: label y[0] = 0.0 is not +1 or -1: map the two classes ...
    """
    for name in ("X", "y", "z", "v"):
        field = getattr(data, name)
        if not isinstance(field, jax.Array | np.ndarray):
            kind = type(field).__name__
            raise UserError(f"{name} is of type {kind}: give TokenSelection arrays, jnp.asarray")
        if not jnp.issubdtype(field.dtype, jnp.floating):
            raise UserError(f"{name} has dtype {field.dtype}: give floating numbers")
        require_memory(8 * field.size, f"{name} of shape {field.shape}", "give a part of it")
    if data.X.ndim != 3 + ensemble:
        axes = "(e, n, T, d)" if ensemble else "(n, T, d)"
        raise UserError(f"X has shape {data.X.shape}: give samples x tokens x dimensions, {axes}")
    *e, n, T, d = data.X.shape
    for name, shape in {"y": (*e, n), "z": (*e, n, d), "v": (*e, d)}.items():
        if getattr(data, name).shape != shape:
            raise UserError(
                f"{name} has shape {getattr(data, name).shape} where X of shape {data.X.shape} "
                f"needs {shape}: make them agree"
            )
    _require_sizes(n, T, d)
    try:
        arrays = {name: np.asarray(getattr(data, name)) for name in ("X", "y", "z", "v")}
    except jax.errors.TracerArrayConversionError:
        return
    for name, array in arrays.items():
        bad = np.argwhere(~np.isfinite(array))
        if bad.size:
            where = tuple(int(i) for i in bad[0])
            place = ", ".join(map(str, where))
            raise UserError(
                f"{name}[{place}] = {array[where]} is not finite: remove or replace the sample"
            )
    wrong = np.argwhere(np.abs(arrays["y"]) != 1)
    if wrong.size:
        where = tuple(int(i) for i in wrong[0])
        place = ", ".join(map(str, where))
        raise UserError(
            f"label y[{place}] = {arrays['y'][where]} is not +1 or -1: map the two classes to -1 "
            "and +1"
        )


def _require_sizes(n: int, T: int, d: int) -> None:
    if n < 1:
        raise UserError(f"the data hold no sample (n = {n}): give at least one")
    if T < 2:
        raise UserError(f"T = {T} token per sample leaves nothing to select: give at least 2")
    if d < 1:
        raise UserError(f"d = {d} dimensions hold no token: give at least 1")


def _require_room(n: int, T: int, d: int) -> None:
    """What `make_support_selection` needs."""
    _require_sizes(n, T, d)
    if n > d or d < (4 if T > 2 else 2):
        raise UserError(
            f"n = {n}, T = {T} do not fit into d = {d} dimensions: choose n <= d and d >= 2 "
            "(d >= 4 when T > 2)"
        )
