import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.comparison.compare import Comparison
from attlas.bounds.generalisation.binomial_tail import binomial_upper_limit
from attlas_bounds.library.addition import certified_adder as module
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


@pytest.mark.thorough
def test_wrong_places_of_a_few_sums_and_all_of_those_that_tie():
    data = draw_additions(np.random.default_rng(2), 37, digits=2)
    adder = make_adder(jax.random.key(0), 2, 3)
    logits = np.asarray(adder(jnp.asarray(data.operands)))
    expected = np.ones((37, 3), bool)
    for n in range(37):
        for place in range(3):
            others = np.delete(logits[n, place], data.sums[n, place])
            expected[n, place] = not logits[n, place, data.sums[n, place]] > others.max()
    np.testing.assert_array_equal(wrong_places(adder, data), expected)
    assert 0 < expected.sum() < expected.size
    assert np.asarray(wrong_places(jax.tree.map(jnp.zeros_like, adder), data)).all()


@pytest.mark.thorough
def test_a_certificate_with_errors_counts_a_sum_once():
    rng = np.random.default_rng(3)
    data, fresh = draw_additions(rng, 3000, digits=2), draw_additions(rng, 90, digits=2)
    adder = make_adder(jax.random.key(4), 1, 2)
    on_grid, numbers = rounded_weights(adder, 0.5)
    told = np.asarray(jnp.argmax(on_grid(jnp.asarray(data.operands)), -1)).astype(np.int8)
    told[:7, 0] = (told[:7, 0] + 1) % 10
    told[:4, 2] = (told[:4, 2] + 3) % 10
    found = certify_adder(adder, Additions(data.operands, told), fresh, 0.5, 5, 0.05)
    bits = whole_number_bits(numbers) + 3
    assert (found.train_error, found.bits, found.parameters) == (7 / 3000, bits, numbers.size)
    assert found.certified == binomial_upper_limit(7, 3000, 0.05, bits)


@pytest.mark.parametrize("start", [0.4, 9.0])
def test_the_heads_are_those_of_the_adder_on_tokens_in_the_unit_ball(start, monkeypatch):
    asked = []
    monkeypatch.setattr(
        module, "compare_bounds", lambda *given: asked.append(given) or Comparison((), 1, 0.5, 1.0)
    )
    data = draw_additions(np.random.default_rng(0), 20, digits=3)
    adder = make_adder(jax.random.key(0), 2, 3, 3)
    adder = eqx.tree_at(lambda a: (a.start, a.fall), adder, (adder.start * start, jnp.array(1.7)))
    adder_norm_bounds(adder, data, 700, 0.03)
    (weights, sample, m, delta) = asked[0]
    assert (m, delta, len(weights.layers)) == (700, 0.03, 3)
    digits = np.asarray(adder.digits)[data.operands].sum(axis=2)
    lengths = [np.linalg.norm([*np.asarray(adder.start), 1, 0])]
    lengths.append(max(np.linalg.norm([*row, 1, 3]) for x in digits for row in x))
    assert (lengths[0] > lengths[1]) == (start == 9.0)
    for heads in weights.layers:
        (head,) = heads
        first, second = head.query_key
        for t, j, k in ((1, 0, 3), (2, 1, 5), (3, 2, 8)):
            z_t, z_j = (np.array([*digits[k, place], 1, place]) / max(lengths) for place in (t, j))
            score = digits[k, j] @ np.asarray(adder.key) + 1.7 * j
            assert z_t @ first @ second.T @ z_j == pytest.approx(score, rel=1e-12)
            expected = [*(digits[k, j] @ np.asarray(adder.value)), 0, 0]
            np.testing.assert_allclose(z_j @ head.value @ head.output, expected, rtol=1e-12)
    assert np.linalg.norm(weights.readout) == pytest.approx(1)
    assert len(set(weights.readout)) == 1
    assert sample.shape == (1, 4, 4)
    np.testing.assert_array_equal(np.linalg.norm(sample, axis=2), 1)


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
    assert np.isnan([*vars(found).values()][:-1]).all()


@pytest.mark.thorough
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
