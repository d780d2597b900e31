import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.generalisation.binomial_tail import binomial_upper_limit
from attlas_bounds.library.addition.adder import make_adder
from attlas_bounds.library.addition.certified_adder import (
    adder_norm_bounds,
    certify_adder,
    wrong_places,
)
from attlas_bounds.library.addition.sums import Additions, draw_additions
from attlas_bounds.library.bounds.whole_number_prior import whole_number_bits
from attlas_bounds.library.training.weight_grid import rounded_weights


@pytest.mark.thorough
def test_wrong_places_are_those_where_another_digit_is_as_large():
    data = draw_additions(np.random.default_rng(0), 1234, digits=3)
    adder = make_adder(jax.random.key(0), 3, 4, 2)
    found = np.asarray(wrong_places(adder, data))
    told = np.asarray(jnp.argmax(adder(jnp.asarray(data.operands)), -1))
    assert (found == (told != data.sums)).all()
    assert 0 < found.sum() < found.size
    broken = jax.tree.map(lambda a: a * jnp.nan, adder)
    assert np.asarray(wrong_places(broken, data)).all()


def test_the_certificate_counts_the_errors_of_the_rounded_adder_and_pays_for_the_choice():
    rng = np.random.default_rng(1)
    data, fresh = draw_additions(rng, 3000, digits=1), draw_additions(rng, 200, digits=1)
    adder = make_adder(jax.random.key(2), 1, 2)
    on_grid, numbers = rounded_weights(adder, 0.25)
    # the same adder as labels: no error on the grid
    told = np.asarray(jnp.argmax(on_grid(jnp.asarray(data.operands)), -1)).astype(np.int8)
    made = Additions(data.operands, told)
    found = certify_adder(adder, made, fresh, 0.25, 8, 0.05)
    assert found.train_error == 0
    assert found.bits == whole_number_bits(numbers) + 3
    assert found.certified == binomial_upper_limit(0, 3000, 0.05, found.bits)
    wrong = np.asarray(wrong_places(on_grid, fresh))
    assert found.held_out == wrong.any(1).mean()
    assert found.digit_error == wrong.mean()
    assert found.held_out_bound == binomial_upper_limit(int(wrong.any(1).sum()), 200, 0.05)
    assert certify_adder(adder, made, fresh, 0.25, 9, 0.05).certified > found.certified


def test_an_adder_whose_training_diverged_has_no_certificate():
    data = draw_additions(np.random.default_rng(0), 9, digits=2)
    adder = make_adder(jax.random.key(0), 1, 1)
    broken = eqx.tree_at(lambda a: a.fall, adder, jnp.array(jnp.inf))
    found = certify_adder(broken, data, data, 0.5, 4, 0.05)
    assert found.parameters == 37
    assert np.isnan(found[:-1]).all()


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
