import jax
import numpy as np

from attlas_bounds.library.addition.norm_bounds import adder_norm_bounds
from attlas_bounds.library.data.addition import draw_additions
from attlas_bounds.library.models.adder import make_adder


def test_bounds_are_of_all_layers_and_grow_with_the_norms():
    data = draw_additions(np.random.default_rng(0), 20, digits=2)
    one, two = (make_adder(jax.random.key(0), 2, 2, layers) for layers in (1, 2))

    def gaps(adder):
        return {e.name: e.gap for e in adder_norm_bounds(adder, data, 10**14, 0.05).entries}

    small, deep = gaps(one), gaps(two)
    large = gaps(jax.tree.map(lambda a: 4 * a, one))
    assert small.keys() == deep.keys() == large.keys()
    assert deep["1,1 sharp"] > small["1,1 sharp"]
    assert large["1,1 sharp"] > small["1,1 sharp"]
