"""Argument checks of a comparison, and the norms of its tokens."""

import math
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.bounds.comparison.bound_table import Inputs
from attlas.bounds.comparison.transformer_weights import (
    LARGEST_ENTRY,
    TransformerWeights,
    check_weights,
)
from attlas.core.arrays import ArrayInput, read_array, working_dtype
from attlas.core.errors import UserError
from attlas.core.ranges import is_finite
from attlas.norms.matrix import column_norm, row_norm

_INF = float("inf")


def check_comparison(
    weights: TransformerWeights,
    m: int,
    delta: float,
    model: str,
    norms: str,
    positive: Mapping[str, float],
) -> None:
    """Check what all bounds ask for; the conditions of a theorem stand in its `NormBound`.

    Args:
        positive: constants by name that must be finite and positive.

    Examples:
        >>> from attlas.bounds.comparison.transformer_weights import Head
        >>> weights = TransformerWeights(((Head(*[np.eye(2)] * 3),),), np.ones(2))
        >>> check_comparison(weights, 10, 1.5, "plain", "fixed", {})
        Traceback (most recent call last):
        attlas.core.errors.UserError: delta = 1.5: the probability of failure must lie in (0, 1)
    """
    check_weights(weights)
    if not 0 < delta < 1:
        raise UserError(f"delta = {delta}: the probability of failure must lie in (0, 1)")
    if not (m >= 1 and is_finite(m)):
        raise UserError(f"m = {m} samples: a bound needs at least 1")
    for name, choice, choices in (
        ("model", model, ("normalised", "plain")),
        ("norms", norms, ("measured", "fixed")),
    ):
        if choice not in choices:
            raise UserError(
                f"{name} = {choice!r} is unknown: choose {choices[0]!r} or {choices[1]!r}"
            )
    for name, value in positive.items():
        if not (value > 0 and is_finite(value)):
            raise UserError(f"{name} = {value}: it must be finite and above 0")


@jax.jit
def _token_norms(X: Float[Array, "N d"]) -> tuple[Array, Array, Array, Array]:
    """The largest Euclidean norm as computed, and upper values of the three norms."""
    l2, l1 = (row_norm(X, p, _INF, upper=True) for p in (2, 1))
    return row_norm(X, 2, _INF), l2, l1, column_norm(X, _INF, _INF)


def measure_inputs(inputs: ArrayInput, d: int, B_x: float | None, m: int = 1) -> Inputs:
    """Norms of the tokens, checked and certified.

    Args:
        inputs: samples of shape (n, T, d).
        B_x: bound on the Euclidean norms known in advance; None to measure it.
        m: number of samples that the norms are to hold for.

    Returns:
        The norms, upper values in the default precision or wider; B_x where it is given, raised
        by the rounding of tokens that were scaled to it, and what follows from it for the other
        norms where fewer samples than m are at hand.

    Raises:
        UserError: if the shape does not fit, an entry is not finite or B_x is exceeded.

    Examples:
        >>> measure_inputs(np.eye(2)[None], 2, 3.0).l2
        3.0
    """
    X = read_array(inputs, "inputs")
    if X.ndim != 3 or X.shape[-1] != d:
        raise UserError(f"inputs have shape {X.shape}: they must be (samples, tokens, {d})")
    if min(X.shape) < 1:
        raise UserError(f"inputs have shape {X.shape}: give at least one sample of one token")
    # rounding of each entry of a scaled token, in the precision it came in
    slack = 1 + 4 * math.sqrt(d) * float(jnp.finfo(working_dtype(X.dtype)).eps)
    wide = X.astype(np.float64, copy=False)
    plain, l2, l1, largest = map(float, _token_norms(jnp.asarray(wide.reshape(-1, d))))
    if not math.isfinite(plain + l1):
        raise UserError("inputs are not finite: check for NaN or infinite tokens")
    if largest > LARGEST_ENTRY:
        raise UserError(
            f"inputs hold {largest:.3g}, the bounds overflow above {LARGEST_ENTRY:.0e}: scale them"
        )
    if B_x is None:
        return Inputs(X.shape[1], l2, l1, largest)
    if not (B_x > 0 and is_finite(B_x)):
        raise UserError(f"B_x = {B_x}: a bound on norms must be finite and above 0")
    if plain > B_x * slack:
        raise UserError(
            f"B_x = {B_x}, but a token has norm {plain:.6g}: raise B_x or scale the data"
        )
    bound = max(B_x, l2)
    if len(X) < m:
        l1, largest = math.sqrt(d) * bound * (1 + 2**-51), bound
    return Inputs(X.shape[1], bound, l1, largest)
