"""The rows of a comparison against the formulas called by hand."""

import numpy as np

from attlas.bounds.compare_classes import Inputs, normalised_bounds, plain_bounds
from attlas.bounds.transformer_weights import Head, TransformerWeights
from attlas.bounds.trauger2023_cover import trauger2023_cover
from attlas.bounds.trauger2023_single import trauger2023_single

HEAD = Head(
    np.diag([0.5, 0.25]), np.array([[1.0, 2.0], [0.5, 0.0]]), np.array([[1.0, -1.0], [0, 3]])
)
INPUTS = Inputs(7, 1.0, 1.2, 0.9)


def test_one_head_by_hand_and_heads_add_up():
    w = np.array([0.25, -0.5])
    C = trauger2023_cover("1,1", 0.75, 1.0, 2, 2)
    # ||w||_1 = 3/4, columns of W_c have l_1 norm 4 at most, those of W_v 2
    value = float(trauger2023_single(0.75 * 4 * 2, C, 1.0, 2, 10**4, "sharp", 0.9))
    for heads in (1, 3):
        rows = plain_bounds(TransformerWeights(((HEAD,) * heads,), w), INPUTS, 10**4, 1.0, 1.0)
        found = {row.name: row.value for row in rows}
        np.testing.assert_allclose(found["1,1 sharp"], heads * value, rtol=1e-12)
        np.testing.assert_allclose(found["trivial"], heads * 6 * 0.9, rtol=1e-12)


def test_length_enters_the_logarithm_alone():
    weights = TransformerWeights(((HEAD,),), np.array([1e-3, 1e-3]))
    short, long = (
        {row.name: row.value for row in normalised_bounds(weights, tokens, 10**9, 1.0, 1.0)}
        for tokens in (INPUTS, INPUTS._replace(T=10**6))
    )
    for name, value in short.items():
        if name.startswith("log T"):
            assert value < long[name] < 2 * value
        elif name != "mixed sharp":
            assert long[name] == value
