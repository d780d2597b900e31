"""The rows on one layer against the formulas called by hand."""

import jax
import numpy as np

from attlas.bounds.comparison.bound_table import Inputs
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
from attlas.bounds.comparison.unnormalised import unnormalised
from attlas.bounds.comparison.weight_norms import weight_norms
from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.trauger2023_single import trauger2023_single

HEAD = Head(
    np.diag([0.5, 0.25]), np.array([[1.0, 2.0], [0.5, 0.0]]), np.array([[1.0, -1.0], [0, 3]])
)
INPUTS = Inputs(7, 1.0, 1.2, 0.9)
SAMPLES = 10**4


def rows(weights: TransformerWeights) -> dict[str, float]:
    with jax.enable_x64(True):
        table = unnormalised([(weight_norms(weights), None)], INPUTS, SAMPLES, 1.0)
        values = table.values(np.full(len(table.bounds), float(SAMPLES)))[0]
    return dict(zip([bound.label for bound in table.bounds], values.tolist(), strict=True))


def test_one_head_by_hand_and_heads_add_up():
    w = np.array([0.25, -0.5])
    C = trauger2023_cover("1,1", 0.75, 1.0, 2, 2)
    # ||w||_1 = 3/4, columns of W_c have l_1 norm 4 at most, those of W_v 2
    value = float(trauger2023_single(0.75 * 4 * 2, C, 1.0, 2, SAMPLES, largest_entry=0.9))
    for heads in (1, 3):
        found = rows(TransformerWeights(((HEAD,) * heads,), w))
        np.testing.assert_allclose(found["1,1 sharp"], heads * value, rtol=1e-12)
        np.testing.assert_allclose(found["trivial"], heads * 6 * 0.9, rtol=1e-12)
