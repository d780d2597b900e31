import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.generalisation.held_out_bound import held_out_bound
from attlas.data.sparse_majority import MajorityDesign, make_sparse_majority
from attlas.data.unit_bit_embedding import one_hot_bits
from attlas.models.networks.single_layer_transformer import SingleLayerTransformer
from attlas.training.sparse_majority.certified_error import (
    ball_complexities,
    certified_error,
    ramp_risks,
)
from attlas.training.sparse_majority.projected import ProjectedSettings, train_projected
from attlas_bounds.library.sparse_majority import measured_crossing as module
from attlas_bounds.library.sparse_majority.measured_crossing import measured_crossing

RADII, MARGINS = np.array([2.0, 4.0]), np.array([0.2, 0.6])
SETTINGS = ProjectedSettings(steps=60, batch=16)


def drawn():
    data = make_sparse_majority(jax.random.key(0), 3, MajorityDesign(400, 60, 1, 5))
    return eqx.tree_at(lambda own: own.embedding, data, one_hot_bits(3))


@pytest.mark.thorough
def test_each_size_is_the_bound_on_its_own_sequences(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 100)
    monkeypatch.setattr(module, "READ", 150)
    data = drawn()
    found = measured_crossing(jax.random.key(1), data, [100, 400], RADII, MARGINS, SETTINGS, 0.05)
    sizes = np.array([100.0, 400.0])
    complexity = np.asarray(ball_complexities(RADII, sizes, 3, 5))
    for k, (m, read) in enumerate(((100, 100), (400, 150))):
        part = eqx.tree_at(
            lambda d: (d.bits, d.labels), data, (data.bits[:read], data.labels[:read])
        )
        models = train_projected(jax.random.key(1), part, jnp.asarray(RADII, "float32"), SETTINGS)
        ramp = ramp_risks(
            models, data.embedding, data.bits[:m], data.labels[:m], jnp.asarray(MARGINS)
        )[1]
        own = slice(k, k + 1)
        whole = certified_error(
            np.asarray(ramp, float), complexity[:, own], sizes[own], MARGINS, 0.05
        )
        # means of float32 numbers in [0, 1], in blocks or not
        np.testing.assert_allclose(found.certified[k], whole.error[:, 0].min(0), atol=1e-5)
    assert (found.held_out <= found.held_out_bound).all()


def layers():
    """Three members with one head of dimension 5 and no activation."""
    draw = np.random.default_rng(4)
    shapes = ((5,), (1, 5, 5), (1, 5, 5), (1, 5, 5))
    members = [
        SingleLayerTransformer(
            *(jnp.asarray(0.5 * draw.normal(size=shape), "float32") for shape in shapes),
            jnp.positive,
        )
        for _ in range(3)
    ]
    return jax.tree.map(lambda *parts: jnp.stack(parts), *members)


def outputs_of(models, member, data, bits):
    model = jax.tree.map(lambda a: a[member], models)
    cls = data.embedding.cls + data.embedding.positions[-1]
    return np.array([float(model(data.embedding(row), cls)) for row in bits])


@pytest.mark.thorough
def test_ramp_risks_and_held_out_errors_by_the_plain_layer(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 8)
    models, data = layers(), drawn()
    bits, labels, margins = data.bits[:24], data.labels[:24], np.array([0.3, 1.1])
    found = module._ramp(models, data, bits, labels, margins)
    for member in range(3):
        own = (2 * np.asarray(labels) - 1) * outputs_of(models, member, data, bits)
        expected = [np.clip(1 - own / margin, 0, 1).sum() / 24 for margin in margins]
        np.testing.assert_allclose(found[member], expected, rtol=1e-4)
    signs = 2 * np.asarray(data.validation_labels[:21]) - 1
    right = signs * outputs_of(models, 2, data, data.validation_bits[:21])
    wrong = int((right <= 0).sum())
    assert np.any((right > 0) & (right < 0.9))
    assert 0 < wrong < 21
    error, limit = module._held_out(models, data, 2, 21, 0.04)
    assert (error, limit) == (wrong / 21, held_out_bound(wrong, 21, 0.04).bound)
    silent = eqx.tree_at(lambda m: m.w, models, 0 * models.w)
    assert module._held_out(silent, data, 2, 21, 0.04)[0] == 1.0


def test_each_size_reads_what_it_may_and_has_its_own_bounds(monkeypatch):
    """Training is shared by sizes above `READ`; risks fall with size and differ by radius."""
    monkeypatch.setattr(module, "READ", 40)
    trained, held, models, radii = [], [], layers(), np.array([1.5, 2.0, 4.0])

    def train(key, part, balls, settings):
        trained.append((len(part.bits), len(part.labels), balls.tolist()))
        return models

    def risks(m):
        grid = np.array([[0.3, 0.2], [0.05, 0.1], [0.08, 0.02]]) if m < 50 else np.zeros((3, 2))
        return grid + np.arange(3)[:, None] * (0.001 if m > 50 else 0.0)

    monkeypatch.setattr(module, "train_projected", train)
    monkeypatch.setattr(module, "_ramp", lambda m, d, bits, labels, g: risks(len(labels)))
    monkeypatch.setattr(
        module, "_held_out", lambda models, data, *given: held.append(given) or (0.25, 0.5)
    )
    sizes = [20, 40, 70]
    with jax.enable_x64(True):
        complexity = np.asarray(ball_complexities(radii, 1e6 * np.array(sizes, float), 3, 5))
    monkeypatch.setattr(module, "ball_complexities", lambda *given: complexity)
    found = measured_crossing(jax.random.key(1), drawn(), sizes, radii, MARGINS, SETTINGS, 0.05)
    assert trained == [(20, 20, radii.tolist()), (40, 40, radii.tolist())]
    for k, m in enumerate(sizes):
        at = slice(k, k + 1)
        errors = certified_error(
            risks(m), complexity[:, at], np.array([float(m)]), MARGINS, 0.05
        ).error[:, 0]
        np.testing.assert_allclose(found.certified[k], errors.min(axis=0), rtol=1e-13)
        np.testing.assert_array_equal(found.radius[k], radii[errors.argmin(axis=0)])
        best = errors.argmin(axis=0)[errors.min(axis=0).argmin()]
        assert held[k] == (best, m, 0.05)
    np.testing.assert_array_equal(found.held_out, [0.25] * 3)
    np.testing.assert_array_equal(found.held_out_bound, [0.5] * 3)


@pytest.mark.thorough
def test_labels_that_are_noise_are_never_certified():
    data = drawn()
    noise = jnp.asarray(np.random.default_rng(0).integers(0, 2, 400).astype(np.int32))
    false = eqx.tree_at(lambda d: d.labels, data, noise)
    found = measured_crossing(jax.random.key(1), false, [400], RADII, MARGINS, SETTINGS, 0.05)
    assert found.certified.min() > 0.5
