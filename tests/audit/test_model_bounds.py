"""The table of bounds: parameters once, by the formula, and what each row is about."""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
import pytest
from random_transformer import random_norm, random_transformer

from attlas.audit.model_bounds import OF_THE_MODEL, model_bounds
from attlas.bounds.generalisation.occam import occam_gap
from attlas.transformers.canonical import Dense


@pytest.mark.thorough
def test_a_bound_is_vacuous_until_its_samples():
    model = random_transformer(0, layers=1)
    (row, *others) = model_bounds(model, 4, 10)
    assert row["about"] == "the model"
    assert row["vacuous"]
    assert row["gap"] > 1
    needed = math.ceil(row["samples_until_nonvacuous"])
    assert (
        occam_gap(model.parameters, 32, needed, 0.05)
        <= 1
        < occam_gap(model.parameters, 32, needed - 1, 0.05)
    )
    assert others
    assert {each["about"] for each in others} == {"heads alone"}
    (half, *_) = model_bounds(model, 4, 10, bits=16)
    assert half["samples_until_nonvacuous"] < 0.51 * needed


@pytest.mark.parametrize(
    "dropped",
    ["residual", "norms", "feedforward", "bias", "rotary", "queries and keys", "masks", "readout"],
)
def test_what_heads_alone_drop_is_named(dropped):
    assert dropped in OF_THE_MODEL.partition("and drop ")[2]


@pytest.mark.thorough
def test_shared_numbers_are_counted_once_and_large_models_have_one_row():
    model = random_transformer(0, layers=1)
    shared = dataclasses.replace(model, stored_layer=(0, 0))
    (row, *_), (other, *_) = model_bounds(model, 4, 10), model_bounds(shared, 4, 10)
    assert row == other
    large = dataclasses.replace(model, parameters=5_000_001)
    assert len(model_bounds(large, 4, 10)) == 1


@pytest.mark.thorough
def test_an_embedding_of_another_width_has_bounds_of_its_heads():
    model = random_transformer(0, layers=1, norm_placement="post-norm")
    draw = np.random.default_rng(0)
    projection = Dense(jnp.asarray(draw.normal(size=(4, 6))), jnp.zeros(6))
    narrow = dataclasses.replace(
        model.embedding,
        tokens=jnp.ones((11, 4)),
        positions=None,
        norm=random_norm(draw, 4),
        projection=projection,
    )
    rows = model_bounds(dataclasses.replace(model, read_embedding=lambda: narrow), 4, 10)
    assert len(rows) > 1
    assert all(not np.isnan(row["gap"]) for row in rows)


@pytest.mark.parametrize("m", [1_000, 1_000_000])
def test_the_gap_falls_with_the_root_of_the_samples(m):
    assert np.isclose(occam_gap(100, 32, m, 0.05) / occam_gap(100, 32, 4 * m, 0.05), 2, rtol=1e-12)
