"""The ledger on a trained layer: outputs of the layer, every step, and refusal of nothing else."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.generalisation.held_out_bound import held_out_bound
from attlas.data.sparse_majority import MajorityDesign, make_sparse_majority
from attlas.data.unit_bit_embedding import one_hot_bits
from attlas.models.networks.single_layer_transformer import SingleLayerTransformer
from attlas.training.sparse_majority.outputs import majority_outputs
from attlas.training.sparse_majority.projected import ProjectedSettings, train_projected
from attlas_bounds.library.sparse_majority import margin_ledger as module
from attlas_bounds.library.sparse_majority.margin_ledger import STEPS, _sample, margin_ledger

SETTINGS = ProjectedSettings(steps=150, batch=32)


def drawn():
    data = make_sparse_majority(jax.random.key(0), 3, MajorityDesign(3000, 200, 1, 5))
    return eqx.tree_at(lambda own: own.embedding, data, one_hot_bits(3))


@pytest.mark.thorough
def test_margins_are_those_of_the_trained_layer():
    data = drawn()
    own = SETTINGS._replace(linear=True)
    models = train_projected(jax.random.key(1), data, jnp.asarray([4.0], jnp.float32), own)
    model = jax.tree.map(lambda a: a[0], models)
    sample = _sample(model, data, data.bits[:50], data.labels[:50])
    out = np.asarray(majority_outputs(model, data.embedding, data.bits[:50]), float)
    signs = 2.0 * np.asarray(data.labels[:50]) - 1
    np.testing.assert_allclose(sample.margins, signs * out, atol=1e-5)


def layer(seed=4):
    """One head of dimension 5 with values of width 2, in float64."""
    draw = np.random.default_rng(seed)
    shapes = ((5,), (2, 5, 5), (2, 5, 3), (2, 3, 5))
    return SingleLayerTransformer(
        *(jnp.asarray(draw.normal(size=shape)) for shape in shapes), lambda z: z
    )


def plain_margins(model, data, bits, labels):
    """Sums over heads of w' W_c' W_v' X' softmax(X W_QK x_cls), a sequence at a time."""
    found = []
    for row, label in zip(bits, labels, strict=True):
        X = np.asarray(data.embedding(row), float)
        cls = np.asarray(data.embedding.cls + data.embedding.positions[-1], float)
        out = 0.0
        for W, V, C in zip(
            *map(np.asarray, (model.query_key, model.value, model.output)), strict=True
        ):
            weights = np.exp(X @ W @ cls)
            out += np.asarray(model.w) @ C.T @ V.T @ X.T @ (weights / weights.sum())
        found.append(out if label else -out)
    return np.array(found)


def one_is_zero(sample):
    return sample._replace(margins=np.where(np.arange(len(sample.margins)) == 3, 0, sample.margins))


def test_a_ledger_counts_the_errors_of_both_sets_and_bounds_those_of_the_first(monkeypatch):
    data, model, asked = drawn(), layer(), {}
    data = eqx.tree_at(
        lambda d: (d.bits, d.labels, d.validation_bits, d.validation_labels),
        data,
        (data.bits[:30], data.labels[:30], data.validation_bits[:20], data.validation_labels[:20]),
    )
    levels = {0.03: 0.0, 0.03 / 9: 0.05}

    def train(key, data, radii, settings):
        asked.update(radii=radii, linear=settings.linear)
        return jax.tree.map(lambda a: jnp.stack([a, 7 * a]), model)

    def ledger(sample, B_x, delta):
        asked.update(sample=sample, B_x=B_x)
        return tuple(
            replace(held_out_bound(0, 10, delta), bound=1 - 0.1 * k + levels[delta],
                    at=lambda m, k=k: 1 - m / (1000 * (10 - k)))
            for k in range(10)
        )  # fmt: skip

    monkeypatch.setattr(module, "train_projected", train)
    monkeypatch.setattr(module, "_ledger_bounds", ledger)
    # an output of zero is an error
    measure = module._sample
    monkeypatch.setattr(module, "_sample", lambda *given: one_is_zero(measure(*given)))
    found = margin_ledger(jax.random.key(1), data, 3.5, SETTINGS, 0.03)
    own = plain_margins(model, data, data.bits, data.labels)
    fresh = plain_margins(model, data, data.validation_bits, data.validation_labels)
    own[3], fresh[3] = 0, 0
    np.testing.assert_allclose(asked["sample"].margins, own, rtol=1e-6)
    assert (asked["radii"].tolist(), asked["linear"]) == ([3.5], True)
    assert asked["B_x"] == 1.0
    np.testing.assert_allclose(found.certified, 1 - 0.1 * np.arange(10), rtol=1e-15)
    expected = [np.nan, *(1.05 - 0.1 * np.arange(1, 10))]
    np.testing.assert_allclose(found.shared, expected, rtol=1e-14)
    assert found.least == found.shared[-1]
    np.testing.assert_array_equal(found.needed, [np.nan, *np.ones(9)])
    wrong = int((fresh <= 0).sum())
    assert 0 < wrong < 20
    assert found.train_error == pytest.approx((own <= 0).mean())
    assert (found.held_out, found.held_out_bound) == (
        wrong / 20,
        held_out_bound(wrong, 20, 0.03).bound,
    )
    readouts = [
        V @ C @ np.asarray(model.w)
        for V, C in zip(np.asarray(model.value), np.asarray(model.output), strict=True)
    ]
    assert found.margin == pytest.approx(own.min() / np.abs(readouts).sum(), rel=1e-6)


@pytest.mark.thorough
def test_every_step_has_its_number_and_the_last_one_needs_fewest():
    found = margin_ledger(jax.random.key(1), drawn(), 4.0, SETTINGS, 0.05)
    assert len(found.certified) == len(found.needed) == len(STEPS)
    assert np.isnan(found.needed[0])
    assert np.all(np.diff(found.needed[1:-2]) < 0)
    # the entropy of attention leaves localisation a rate of m^(-1/2)
    assert found.needed[-2] > 10 * found.needed[-3]
    assert found.needed[-1] < found.needed[5] / 10
    assert found.held_out <= found.certified[1:].min()
    assert found.certified[1:].min() < found.least == np.nanmin(found.shared)
