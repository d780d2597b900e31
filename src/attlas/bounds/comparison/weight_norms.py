"""The norms of all matrices of a Transformer, which define the classes of the bounds."""

from typing import NamedTuple

import numpy as np

from attlas.bounds.comparison.transformer_weights import (
    MatrixNorms,
    TransformerWeights,
    matrix_norms,
    query_key_norms,
)
from attlas.bounds.covering.norm_grid import round_up_norm


class HeadNorms(NamedTuple):
    """Norms of one head.

    Attributes:
        output: of W_c^T.
        value: of W_v^T.
        query_key: of W_QK, in its better orientation but for `column_sum`.
    """

    output: MatrixNorms
    value: MatrixNorms
    query_key: MatrixNorms


class WeightNorms(NamedTuple):
    """Norms of all matrices.

    Attributes:
        readout: of the readout as a matrix of one row per token of the vocabulary.
        masked: whether the readout has a row for each token of a vocabulary.
    """

    layers: tuple[tuple[HeadNorms, ...], ...]
    readout: MatrixNorms
    masked: bool

    def rounded(self, resolution: int) -> "WeightNorms":
        """Every norm raised to the next point of a grid, `attlas.bounds.covering.norm_grid`."""
        layers = tuple(
            tuple(HeadNorms(*(_rounded(norms, resolution) for norms in head)) for head in heads)
            for heads in self.layers
        )
        return WeightNorms(layers, _rounded(self.readout, resolution), self.masked)


def _rounded(norms: MatrixNorms, resolution: int) -> MatrixNorms:
    """The sizes and the rank are known in advance; the norms are rounded up."""
    raised = round_up_norm(np.array(norms[3:]), resolution)
    return MatrixNorms(norms.rows, norms.columns, norms.rank, *raised.tolist())


def weight_norms(weights: TransformerWeights) -> WeightNorms:
    """Measure every matrix once.

    Examples:
        >>> from attlas.bounds.comparison.transformer_weights import Head
        >>> head = Head(np.eye(2), 2 * np.eye(2), np.eye(2))
        >>> norms = weight_norms(TransformerWeights(((head,),), np.ones(2)))
        >>> f"{norms.layers[0][0].value.spectral:.3f} {norms.readout.total:.3f}"
        '2.000 2.000'
    """
    layers = tuple(
        tuple(
            HeadNorms(
                matrix_norms(head.output.T),
                matrix_norms(head.value.T),
                query_key_norms(head.query_key),
            )
            for head in heads
        )
        for heads in weights.layers
    )
    readout = matrix_norms(np.atleast_2d(weights.readout))
    return WeightNorms(layers, readout, weights.readout.ndim == 2)
