r"""All bounds on one trained Transformer, side by side, each with the reason for its number.

The norms are those of the weights handed in. A bound speaks of a class whose norms are fixed before
the data are seen; read off after training, its confidence lacks a union bound over a grid of norms.
"""

import math
from typing import Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from attlas.bounds.compare_classes import Inputs, Row, normalised_bounds, plain_bounds
from attlas.bounds.generalisation_gap import generalisation_gap
from attlas.bounds.transformer_weights import TransformerWeights, check_weights
from attlas.core.errors import UserError

Model = Literal["normalised", "plain"]


class Entry(NamedTuple):
    """One bound.

    Attributes:
        name: which.
        rademacher: bound on the empirical Rademacher complexity of the outputs (or losses).
        gap: bound on true minus empirical risk.
        trivial: what the gap is at most anyway, the range of the loss.
        is_bound: false where a constant of the source is unknown and was set to 1.
        constants: what is used, in words.
        reason: where the number comes from.
        log10_samples: log10 of the samples at which the complexity of a deep class falls below its
            trivial value; NaN for other rows.
    """

    name: str
    rademacher: float
    gap: float
    trivial: float
    is_bound: bool
    constants: str
    reason: str
    log10_samples: float

    @property
    def vacuous(self) -> bool:
        """Whether the bound says no more than the range of the loss."""
        return not self.gap < self.trivial


class Comparison(NamedTuple):
    """The entries in order, and what they share.

    Attributes:
        entries: one a bound.
        m: samples.
        delta: probability of failure of each bound.
        B_x: largest Euclidean norm of a token used.
    """

    entries: tuple[Entry, ...]
    m: int
    delta: float
    B_x: float

    @property
    def best(self) -> Entry:
        """The smallest of the bounds whose constants are all known."""
        return min((entry for entry in self.entries if entry.is_bound), key=lambda each: each.gap)


def _inputs(X: Float[np.ndarray, "n T d"], d: int, B_x: float | None) -> Inputs:
    """Norms of the tokens, checked."""
    if X.ndim != 3 or X.shape[-1] != d:
        raise UserError(f"inputs have shape {X.shape}: they must be (samples, tokens, {d})")
    if not np.all(np.isfinite(X)):
        raise UserError("inputs are not finite: look for NaN or infinite tokens")
    two = float(np.sqrt(np.max(np.sum(X**2, axis=-1))))
    if B_x is not None and two > B_x * (1 + 1e-12):
        raise UserError(f"B_x = {B_x}, but a token has norm {two:.6g}: raise B_x or scale the data")
    one, largest = float(np.abs(X).sum(-1).max()), float(np.abs(X).max())
    if B_x is None:
        return Inputs(X.shape[1], two, one, largest)
    return Inputs(X.shape[1], B_x, min(one, math.sqrt(d) * B_x), min(largest, B_x))


def _check(weights: TransformerWeights, m: int, delta: float, model: Model) -> int:
    """The embedding dimension, after all conditions but those of the inputs."""
    d = check_weights(weights)
    if not 0 < delta < 1:
        raise UserError(f"delta = {delta} is no probability of failure: choose 0 < delta < 1")
    if m < 1:
        raise UserError(f"m = {m} samples: a bound needs at least 1")
    if model == "plain" and m <= max(d, math.log(2 * d)):
        raise UserError(f"m = {m} samples: Theorem 4.1 asks for more than d = {d}; give more data")
    if model == "plain" and (len(weights.layers) != 1 or weights.readout.ndim != 1):
        raise UserError("model 'plain' is one layer with a readout (d,): use model 'normalised'")
    return d


def _entry(row: Row, slope: float, m: int, delta: float, loss_range: float) -> Entry:
    """The gap that a bound on the complexity gives."""
    gap = generalisation_gap(jnp.asarray(slope * row.value), m, delta, loss_range)
    story = (row.is_bound, row.constants, row.reason, row.log10_samples)
    return Entry(row.name, row.value, float(gap), loss_range, *story)


def compare(
    weights: TransformerWeights,
    inputs: Float[np.ndarray, "..."],
    m: int,
    delta: float,
    *,
    model: Model = "normalised",
    B_x: float | None = None,
    lipschitz: float = 1.0,
    loss_lipschitz: float = 1.0,
    loss_range: float = 1.0,
) -> Comparison:
    r"""Every bound of this library on one Transformer.

    $${\rm gap}=2L_\ell R+3c\sqrt{\ln(2/\delta)/(2m)}$$

    Args:
        weights: the Transformer.
        inputs: samples of shape (n, T, d), for T and the norms of tokens. The complexity is that
            on the sample, so that norms may be measured on it, if these are all m samples.
        m: samples the bounds speak of.
        delta: probability of failure, in (0, 1).
        model: "normalised" is section 2.6; "plain" the one layer of Theorem 4.1.
        B_x: bound on the norm of a token known in advance; measured where not given.
        lipschitz: L_sigma of the activation.
        loss_lipschitz: of the loss in the output; a readout of K rows has cross-entropy's own 2.
        loss_range: c, length of the interval of the losses.

    Returns:
        The comparison.

    A `UserError` of one line says what is wrong: weights or inputs that do not fit or are not
    finite, a B_x that is exceeded, delta outside (0, 1), m below the condition of the theorem.

    Source: Theorems 4.1, 4.2 and 5.1 of trauger2023sequence; constants derived.

    Examples:
        >>> from attlas.bounds.transformer_weights import Head
        >>> head = Head(np.eye(2) / 8, np.eye(2) / 8, np.eye(2) / 8)
        >>> weights = TransformerWeights(((head,),), np.ones(2) / 2)
        >>> table = compare(weights, np.eye(2)[None], 10**6, 0.05)
        >>> table.best.vacuous, len(table.entries)
        (False, 11)
    """
    d = _check(weights, m, delta, model)
    tokens = _inputs(np.asarray(inputs, float), d, B_x)
    bounds = plain_bounds if model == "plain" else normalised_bounds
    slope = loss_lipschitz if weights.readout.ndim == 1 else 1.0
    rows = bounds(weights, tokens, m, lipschitz, loss_range)
    entries = tuple(_entry(row, slope, m, delta, loss_range) for row in rows)
    return Comparison(entries, m, delta, tokens.two)
