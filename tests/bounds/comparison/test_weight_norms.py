"""Norms of a Transformer and of the class on the grid above it."""

import numpy as np

from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
from attlas.bounds.comparison.weight_norms import weight_norms


def test_the_class_on_the_grid_holds_the_weights_and_keeps_the_sizes():
    rng = np.random.default_rng(0)
    head = Head(
        (rng.normal(size=(4, 2)), rng.normal(size=(4, 2))),
        rng.normal(size=(4, 3)),
        rng.normal(size=(3, 4)),
    )
    norms = weight_norms(TransformerWeights(((head,),), rng.normal(size=(6, 4))))
    assert norms.masked
    assert norms.readout.row_length >= np.linalg.norm(norms.readout.row_length) * (1 - 1e-12)
    class_ = norms.rounded(4)
    for measured, raised in zip(
        (norms.readout, *norms.layers[0][0]), (class_.readout, *class_.layers[0][0]), strict=True
    ):
        assert measured[:3] == raised[:3]
        ratio = np.array(raised[3:]) / np.array(measured[3:])
        assert np.all((ratio >= 1) & (ratio <= 1 + 2.0**-4))
