"""The rows of a comparison at given m: Rademacher bounds on the two classes of trauger2023sequence.

Norms are those of the weights handed in, as if they had been fixed before; `compare` adds what it
costs that they were not.
"""

import math
from typing import NamedTuple

import jax
import numpy as np

from attlas.bounds.bound_rows import BoundRows, Inputs
from attlas.bounds.deep_rows import deep_rows
from attlas.bounds.plain_rows import plain_rows
from attlas.bounds.transformer_weights import TransformerWeights
from attlas.bounds.weight_norms import weight_norms


class Row(NamedTuple):
    """A bound on the Rademacher complexity, with its story.

    `log10_samples` is log10 of the m at which a deep bound falls below its trivial value, NaN for
    rows that do not scale with D / m alone.
    """

    name: str
    value: float
    is_bound: bool
    constants: str
    reason: str
    log10_samples: float = math.nan


def _at(rows: BoundRows, m: int) -> list[Row]:
    """The rows at the norms of the first grid."""
    values = rows.values(np.full(len(rows.labels), float(m)))[0].tolist()
    triples = zip(rows.labels, values, rows.log10_samples.tolist(), strict=True)
    return [
        Row(label.name, value, label.is_bound, label.constants, label.reason, needed)
        for label, value, needed in triples
    ]


def plain_bounds(
    weights: TransformerWeights, tokens: Inputs, m: int, lipschitz: float, loss_range: float
) -> list[Row]:
    """Rows for one layer without normalisation, heads added up.

    Args:
        weights: one layer, readout (d,).
        tokens: norms of the inputs.
        m: samples.
        lipschitz: L_sigma.
        loss_range: unused; both classes share the signature.

    Returns:
        The rows.

    Examples:
        >>> from attlas.bounds.transformer_weights import Head
        >>> head = Head(np.eye(2), np.eye(2), np.eye(2))
        >>> weights = TransformerWeights(((head,),), np.ones(2))
        >>> row = plain_bounds(weights, Inputs(2, 1.0, 1.0, 1.0), 100, 1.0, 1.0)[0]
        >>> row.name, f"{row.value:.4f}"
        ('trivial', '2.0000')
    """
    del loss_range
    with jax.enable_x64(True):
        return _at(plain_rows([(weight_norms(weights), None)], tokens, m, lipschitz), m)


def normalised_bounds(
    weights: TransformerWeights, tokens: Inputs, m: int, lipschitz: float, loss_range: float
) -> list[Row]:
    """Rows for layers with normalisation; of the losses where the readout has K rows.

    Args:
        weights: the Transformer.
        tokens: norms of the inputs.
        m: samples.
        lipschitz: L_sigma.
        loss_range: length of the interval of the losses, for a readout of K rows.

    Returns:
        The rows.

    Examples:
        >>> from attlas.bounds.transformer_weights import Head
        >>> head = Head(np.eye(2), np.eye(2), np.eye(2))
        >>> weights = TransformerWeights(((head,),), np.ones(2))
        >>> row = normalised_bounds(weights, Inputs(2, 1.0, 1.0, 1.0), 100, 1.0, 1.0)[0]
        >>> row.name, f"{row.value:.4f}"
        ('trivial', '1.4142')
    """
    with jax.enable_x64(True):
        norms = weight_norms(weights)
        return _at(deep_rows([(norms, None)], tokens, m, lipschitz, loss_range), m)
