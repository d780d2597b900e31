r"""Bounds on the generalisation gap of a trained Transformer, and which function they are about."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from attlas.bounds.comparison.compare import compare_bounds
from attlas.bounds.comparison.comparison import Comparison
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
from attlas.bounds.generalisation.occam import occam_gap, occam_samples
from attlas.transformers.folding import folded_attention
from attlas.transformers.trained_transformer import TrainedTransformer

OF_THE_MODEL = (
    "The first row is about the model as it is: it counts the bits of its stored numbers, shared "
    "ones once. The other rows are about another function: the heads alone, layer after layer, "
    "each row projected on the unit ball, one row read by equal weights. Of the model they keep "
    "the query, key, value and output matrices with the gains of the norms, and drop residual "
    "connections, the norms themselves, feedforward units, all biases, positions (added, rotary or "
    "in the logits), norms of queries and keys, soft caps, masks and the model's own readout: the "
    "norm-based theorems of these papers are not about such a model. Each row bounds, with "
    "probability 0.95, how far the expectation of a loss in [0, 1] exceeds its mean over "
    "independent samples, as many as are stated at the top."
)
"""What a table of bounds says first."""

_LARGEST = 5_000_000
_DELTA = 0.05


def model_bounds(
    model: TrainedTransformer, tokens: int, m: int, *, bits: int = 32
) -> tuple[Mapping[str, Any], ...]:
    """The table of bounds of a model, each row with what it is about.

    Args:
        tokens: length of a sequence.
        m: samples that the bounds are evaluated at.
        bits: bits of a stored number.

    Returns:
        Rows: name, the gap at m, whether it is vacuous, from how many samples it is not, and the
        function it is about. Norm-based rows are left out beyond five million numbers.
    """
    needed = occam_samples(model.parameters, bits, _DELTA)
    gap = occam_gap(model.parameters, bits, m, _DELTA)
    rows: list[Mapping[str, Any]] = [
        {
            "name": f"bits of the file, {bits} per number",
            "gap": gap,
            "vacuous": gap >= 1,
            "samples_until_nonvacuous": needed,
            "about": "the model",
        }
    ]
    if model.parameters <= _LARGEST:
        rows.extend(
            {
                "name": entry.name,
                "gap": entry.gap,
                "vacuous": entry.vacuous,
                "samples_until_nonvacuous": entry.samples_until_nonvacuous,
                "about": "heads alone",
            }
            for entry in _heads_alone(model, tokens, m).entries
            if entry.is_bound and entry.name != "trivial"
        )
    return tuple(rows)


def _heads_alone(model: TrainedTransformer, tokens: int, m: int) -> Comparison:
    """The norm-based bounds of the heads with the norms folded in, tokens on the unit sphere."""
    layers = []
    for index in range(model.layers):
        norm, projection = model.input_norm(index)
        # a norm of the embedding's own width stands before another space
        norm = norm if projection is None else None
        with jax.enable_x64(True):
            heads = folded_attention(model.layer(index).attention, norm)
        matrices = [
            np.asarray(matrix, np.float64)
            for matrix in (heads.W_Q, heads.W_K, heads.W_V, heads.W_O)
        ]
        # tokens of length sqrt(d) on the unit sphere: the factor goes into the matrices
        size = float(matrices[0].shape[1])
        layers.append(
            tuple(
                Head(
                    (heads.scale * size * matrices[0][h], matrices[1][g]),
                    np.sqrt(size) * matrices[2][g],
                    matrices[3][h],
                )
                for h, g in enumerate(heads.group)
            )
        )
    d = model.width
    readout = np.full(d, d**-0.5)
    sample = np.zeros((1, tokens, d))
    sample[..., 0] = 1.0
    return compare_bounds(TransformerWeights(tuple(layers), readout), sample, m, _DELTA)
