"""The rows on normalised layers: what enters them."""

import jax
import numpy as np
import pytest

from attlas.bounds.comparison.bound_table import BALLS, Inputs
from attlas.bounds.comparison.normalised import normalised
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
from attlas.bounds.comparison.weight_norms import weight_norms

HEAD = Head(
    np.diag([0.5, 0.25]), np.array([[1.0, 2.0], [0.5, 0.0]]), np.array([[1.0, -1.0], [0, 3]])
)
INPUTS = Inputs(7, 1.0, 1.2, 0.9)
SAMPLES = 10**9


def test_length_enters_the_logarithm_alone():
    weights = TransformerWeights(((HEAD,),), np.array([1e-3, 1e-3]))

    def rows(tokens: Inputs) -> dict[str, float]:
        with jax.enable_x64(True):
            table = normalised([(weight_norms(weights), None)], tokens, SAMPLES, 1.0, 1.0)
            values = table.values(np.full(len(table.bounds), float(SAMPLES)))[0]
        names = [bound.label for bound in table.bounds]
        return dict(zip(names, values.tolist(), strict=True))

    short, long = rows(INPUTS), rows(INPUTS._replace(T=10**6))
    for name, value in short.items():
        if name.startswith("log T"):
            assert value < long[name] < 2 * value
        elif name.startswith(("trivial", *BALLS, "parameters")):
            assert long[name] == value


@pytest.mark.parametrize("size", [1.0, 1e-4])
def test_shares_are_parts_of_one(size):
    head = Head(*(size * part for part in HEAD))
    weights = TransformerWeights(((head, head),), size * np.array([0.3, 0.2]))
    with jax.enable_x64(True):
        table = normalised([(weight_norms(weights), None)], INPUTS, SAMPLES, 1.0, 1.0)
    sums = np.sum(table.shares, axis=1)
    assert np.all(np.isclose(sums, 1, rtol=1e-13) | (sums == 0))
    assert sums[0] == 0
    assert np.all(sums[1:] > 0)
