"""One table for one Transformer: order of the bounds, the gap and its terms, bad input."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from attlas.bounds.comparison import compare as comparison
from attlas.bounds.comparison.compare import compare_bounds
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
from attlas.bounds.covering.norm_grid import RESOLUTIONS, norm_grid_cost, round_up_norm
from attlas.core.errors import UserError

RNG = np.random.default_rng(0)


def weights(layers=1, heads=2, d=4, k=3, words=None, size=0.1):
    def head():
        return Head(*(size * RNG.normal(size=shape) for shape in ((d, d), (d, k), (k, d))))

    readout = size * RNG.normal(size=(d,) if words is None else (words, d))
    return TransformerWeights(
        tuple(tuple(head() for _ in range(heads)) for _ in range(layers)), readout
    )


X = RNG.normal(size=(5, 6, 4)) / 10


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["normalised", "plain"])
def test_sharp_is_below_corrected_is_below_trivial(model):
    table = compare_bounds(weights(), X, 10**6, 0.05, model=model)
    value = {entry.name: entry.rademacher for entry in table.entries}
    for ball in ("1,1", "1,inf", "2,1"):
        assert (
            value[f"{ball} sharp"] <= value[f"{ball} corrected"] <= value["trivial"] * (1 + 1e-12)
        )
    assert table.best.is_bound
    assert min(entry.gap for entry in table.entries if entry.is_bound) == table.best.gap
    if model == "plain":
        assert value["log m"] <= value["log T"] * 1.3
    else:
        assert value["mixed sharp"] <= min(value["1,1 sharp"], value["log T sharp"])


@pytest.mark.thorough
def test_masked_words_and_uneven_layers():
    one, two = weights(1, 1, words=7), weights(1, 2, words=7)
    deep = TransformerWeights((one.layers[0], two.layers[0]), one.readout)
    table = compare_bounds(deep, X, 10**8, 0.05, loss_range=5.0)
    value = {entry.name: entry.rademacher for entry in table.entries}
    assert value["trivial"] == 2.5
    assert 0 < value["mixed sharp"] < 2.5
    assert table.best.trivial == 5.0


@pytest.mark.thorough
def test_the_table_says_which_function_it_is_about():
    for model, said in (("normalised", "each row projected"), ("plain", "heads of one layer")):
        table = compare_bounds(weights(), X, 10**6, 0.05, model=model)
        for text in (repr(table), table._repr_html_()):
            assert said in text
            assert "residual connections, norms, feedforward units, biases" in text


def test_more_samples_and_smaller_weights_help():
    few, many = (compare_bounds(weights(size=0.2), X, m, 0.05).best.gap for m in (10**4, 10**8))
    assert many < few


def test_bad_input_is_one_line():
    w = weights()
    headless = TransformerWeights(((X[0],),), w.readout)
    ragged = TransformerWeights(((w.layers[0][0]._replace(value=[[1.0], []]),),), w.readout)
    cases = [
        (lambda: compare_bounds(w, X, 100, 1.5), "delta = 1.5"),
        (lambda: compare_bounds(w, X, 3, 0.1, model="plain"), "Theorem 4.1 requires more"),
        (lambda: compare_bounds(w, X, 0, 0.1), "m = 0"),
        (lambda: compare_bounds(w, X, 100, 0.1, B_x=1e-3), "B_x = 0.001, but a token"),
        (lambda: compare_bounds(w, X[..., :3], 100, 0.1), "inputs have shape"),
        (lambda: compare_bounds(w, X * np.nan, 100, 0.1), "inputs are not finite"),
        (lambda: compare_bounds(weights(2), X, 100, 0.1, model="plain"), "one layer"),
        (
            lambda: compare_bounds(w._replace(readout=np.array([np.nan] * 4)), X, 9, 0.1),
            "readout is not",
        ),
        (
            lambda: compare_bounds(TransformerWeights((([X],),), w.readout), X, 9, 0.1),
            "give a Head",
        ),
        (lambda: compare_bounds(headless, X, 9, 0.1), "layer 1, head 1 is not made of .* a Head"),
        (lambda: compare_bounds(ragged, X, 9, 0.1), "layer 1, head 1: value has rows of different"),
        (lambda: compare_bounds(w, [[["a"] * 4]], 9, 0.1), "inputs has dtype <U1"),
    ]
    for call, words in cases:
        with pytest.raises(UserError, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_plain_bounds_never_exceed_the_trivial_one():
    table = compare_bounds(weights(size=3.0), X, 10, 0.05, model="plain")
    value = {entry.name: entry.rademacher for entry in table.entries if entry.is_bound}
    assert max(value.values()) == value["trivial"]
    assert table.best.vacuous


@pytest.mark.parametrize("model", ["normalised", "plain"])
def test_weights_that_are_zero_give_zero_and_no_nan(model):
    dead = Head(np.zeros((4, 4)), np.zeros((4, 3)), np.zeros((3, 4)))
    table = compare_bounds(TransformerWeights(((dead,),), np.zeros(4)), X, 100, 0.05, model=model)
    assert all(abs(entry.rademacher) < 1e-200 for entry in table.entries)


@pytest.mark.thorough
def test_samples_needed_are_where_the_bound_leaves_the_trivial_one():
    deep = weights(2, size=0.6)
    table = compare_bounds(deep, X, 10**6, 0.05)
    for name in ("1,1 corrected", "1,inf sharp"):
        needed = 10 ** next(e.log10_samples for e in table.entries if e.name == name)
        around = [compare_bounds(deep, X, int(f * needed), 0.05) for f in (0.98, 1.02)]
        below = [next(e for e in t.entries if e.name == name).rademacher for t in around]
        trivial = table.entries[0].rademacher
        assert below[1] < trivial * (1 - 1e-6)
        assert below[0] == pytest.approx(trivial, rel=1e-12)


@pytest.mark.parametrize("model", ["normalised", "plain"])
def test_the_gap_is_the_sum_of_its_terms_and_norms_fixed_in_advance_cost_nothing(model):
    w = weights()
    measured, fixed = (
        compare_bounds(w, X, 10**5, 0.05, model=model, norms=norms, loss_lipschitz=1.5)
        for norms in ("measured", "fixed")
    )
    tail = 3 * math.sqrt(math.log(2 / 0.05) / (2 * 10**5))
    for one, other in zip(measured.entries, fixed.entries, strict=True):
        assert one.rademacher == other.rademacher
        assert other.union == other.union_cost == 0
        assert one.confidence == pytest.approx(tail, rel=1e-14)
        assert one.gap == pytest.approx(3 * one.rademacher + tail + one.union, rel=1e-14)
        assert one.union > 0 if one.is_bound else one.union == 0
    for one in measured.entries:
        assert (one.union > 0, one.union_cost > 0) == (one.is_bound, one.is_bound)
        for word in ("union bound over norm grids", "confidence", "largest:"):
            assert (word in one.reason) == one.is_bound
        assert "\n" not in one.reason


def test_a_readout_of_rows_bounds_the_losses_themselves():
    table = compare_bounds(
        weights(words=3), X, 10**5, 0.05, norms="fixed", loss_lipschitz=1.5, loss_range=2.0
    )
    tail = 6 * math.sqrt(math.log(2 / 0.05) / (2 * 10**5))
    for entry in table.entries:
        assert entry.gap == pytest.approx(2 * entry.rademacher + tail, rel=1e-14)


def test_guessing_is_vacuous_for_every_number_of_samples():
    """At 1e250 samples its gap is the range of the loss but for what a float forgets."""
    table = compare_bounds(weights(words=3), X, 10**5, 0.05, norms="fixed", loss_range=2.0)
    assert table.entries[0].rademacher == 1.0
    assert table.entries[0].samples_until_nonvacuous == math.inf


def test_a_chain_that_stops_at_its_radius_says_nothing_but_for_rounding():
    values = 2.0 * np.array([1, 1, 1 - 1e-12, 1 - 0.9e-9, 1 - 1.2e-9, 0.5])
    gaps = comparison._Gaps(*[values] * 5)
    found = comparison._informed(gaps).tolist()
    assert found == [True, False, False, False, True, True]


def test_the_union_term_by_hand_for_the_trivial_entry():
    """One norm, the length of the readout: the smallest of four grids for each of the bounds."""
    w = weights()
    entries = compare_bounds(w, X, 1000, 0.05).entries
    entry = entries[0]
    length = np.linalg.norm(w.readout, keepdims=True)
    gaps = []
    for resolution in RESOLUTIONS:
        union_cost = norm_grid_cost(length, resolution).item() + math.log(4 * len(entries))
        radius = round_up_norm(length, resolution).item()
        gaps.append(2 * radius + 3 * math.sqrt((math.log(2 / 0.05) + union_cost) / 2000))
    assert entry.gap == pytest.approx(min(gaps), rel=1e-12)


@pytest.mark.thorough
def test_at_the_samples_needed_an_entry_becomes_non_vacuous():
    w = weights(size=0.6)
    tables = {
        model: compare_bounds(w, X, 10**4, 0.05, model=model) for model in ("normalised", "plain")
    }
    for model, table in tables.items():
        limit = table.entries[0].rademacher
        for index, entry in enumerate(table.entries):
            if not entry.is_bound or entry.name not in ("1,1 sharp", "log T sharp", "parameters"):
                continue
            assert 100 < entry.samples_until_nonvacuous < math.inf
            before, after = (
                compare_bounds(
                    w, X, math.ceil(f * entry.samples_until_nonvacuous), 0.05, model=model
                ).entries[index]
                for f in (0.99, 1.0)
            )
            assert not after.vacuous
            assert after.rademacher < limit
            assert before.vacuous or before.rademacher > limit * (1 - 1e-9)


def test_samples_needed_of_a_deep_entry_is_the_threshold_of_its_entropy():
    """Where the complexity decides; 67.95 is rounded to four digits."""
    table = compare_bounds(weights(2, size=0.6), X, 10**6, 0.05, loss_range=10.0)
    entry = next(e for e in table.entries if e.name == "1,1 sharp")
    assert math.log10(entry.samples_until_nonvacuous) == pytest.approx(
        entry.log10_samples, abs=1e-3
    )


@pytest.mark.thorough
def test_single_precision_by_default_changes_nothing_and_overflows_nowhere():
    deep = weights(8, size=4.0)
    wide = compare_bounds(deep, X, 10**4, 0.05)
    with jax.enable_x64(False):
        narrow = compare_bounds(deep, X, 10**4, 0.05)
    assert all(math.isfinite(entry.gap) for entry in wide.entries)
    assert [e.gap for e in narrow.entries] == [e.gap for e in wide.entries]


def test_samples_until_nonvacuous_are_searched_for_when_they_are_asked_for(monkeypatch):
    searches = []

    def search(informative, least, count):
        searches.append(count)
        return np.full(count, 10.0)

    monkeypatch.setattr(comparison, "samples_until_nonvacuous", search)
    entries = compare_bounds(weights(), X, 10**4, 0.05).entries
    assert searches == []
    assert [entry.samples_until_nonvacuous for entry in entries] == [10.0] * len(entries)
    assert searches == [len(entries)]
    assert "m = 10" in entries[0].reason


@pytest.mark.thorough
@pytest.mark.parametrize(
    "read",
    [lambda a: a.tolist(), np.float32, lambda a: jnp.asarray(a, "bfloat16"), "torch"],
    ids=["lists", "float32", "bfloat16", "torch"],
)
def test_weights_and_inputs_of_any_array(read, torch_like):
    read = torch_like if read == "torch" else read
    # sixteenths, which every type holds exactly
    w = jax.tree.map(lambda a: np.round(16 * a) / 16, weights(size=0.5))
    inputs = np.round(16 * X) / 16
    heads = [Head(*(read(M) for M in head)) for head in w.layers[0]]
    given = TransformerWeights((tuple(heads),), read(w.readout))
    found = compare_bounds(given, read(inputs), 10**6, 0.05)
    wide = compare_bounds(w, inputs, 10**6, 0.05)
    pd.testing.assert_frame_equal(found.to_pandas(), wide.to_pandas(), check_exact=True)
