"""Ramp risks, complexities in balls, and bounds on the error at the best margin."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.covering.parameter_counting import parameter_counting_single
from attlas.data.sparse_majority import BitEmbedding
from attlas.models.networks.single_layer_transformer import SingleLayerTransformer
from attlas.training.sparse_majority.certified_error import (
    FAMILIES,
    ball_complexities,
    certified_error,
    ramp_risks,
)
from attlas.training.sparse_majority.outputs import majority_outputs


def test_ramp_risk_is_that_of_the_outputs_and_above_the_error():
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> jax.Array:
        return jnp.asarray(rng.normal(size=shape))

    embedding = BitEmbedding(normal(4), normal(4), normal(4), normal(7, 4))
    shapes = ((4,), (1, 4, 4), (1, 4, 3), (1, 3, 4))
    each = [SingleLayerTransformer(*(normal(*shape) for shape in shapes)) for _ in range(2)]
    # Outputs of zero count half, and their ramp is one.
    each.append(SingleLayerTransformer(jnp.zeros(4), *jax.tree.leaves(each[0])[1:]))
    models = jax.tree.map(lambda *parts: jnp.stack(parts), *each)
    bits = jnp.asarray(rng.integers(0, 2, (50, 6)), jnp.int8)
    labels, margins = jnp.asarray(rng.integers(0, 2, 50)), jnp.array([0.05, 0.5, 5.0])
    accuracy, ramp = ramp_risks(models, embedding, bits, labels, margins)
    for k in range(3):
        out = np.asarray(majority_outputs(each[k], embedding, bits))
        signed = out * np.where(np.asarray(labels) > 0, 1, -1)
        risks = [np.clip(1 - signed / margin, 0, 1).mean() for margin in (0.05, 0.5, 5.0)]
        np.testing.assert_allclose(ramp[k], risks, rtol=1e-12)
        assert float(accuracy[k]) == pytest.approx(np.mean(signed > 0) if k < 2 else 0.5)
    assert np.all(np.diff(ramp, axis=1) >= 0)
    assert np.all(np.asarray(ramp)[:, 0] >= 1 - np.asarray(accuracy))


def test_parameters_alone_are_counted_in_every_ball_and_a_vacuous_bound_is_one():
    radii, samples, d = np.array([0.0, 0.3, 7.0]), np.array([1e2, 1e8]), 6
    found = np.asarray(ball_complexities(radii, samples, 5, d))
    counted = dict(zip(FAMILIES, np.moveaxis(found, 2, 0), strict=True))
    for r, radius in enumerate((1e-9, *radii[1:])):
        bound = parameter_counting_single(1.0, radius, 1.0, d, d, samples[1])
        assert counted["parameters, fixed [CLS]"][r, 1] == pytest.approx(float(bound), rel=1e-12)
        assert found[r, 0].max() == 1.0


@pytest.mark.thorough
def test_complexity_falls_with_samples_and_order_of_covers_holds():
    radii, samples = np.array([1e-9, 4.0, 16.0]), np.geomspace(1e3, 1e13, 11)
    R = np.asarray(ball_complexities(radii, samples, 8, 10))
    assert np.all(np.diff(R, axis=1) <= 1e-12)
    at = {name: k for k, name in enumerate(FAMILIES)}
    for larger, smaller in (
        ("Theorem 4.1 corrected", "Theorem 4.1 sharp"),
        ("Theorem 4.1 sharp", "Theorem 4.1, fixed [CLS]"),
        ("log T", "Theorem 4.1 sharp"),
        ("parameters", "parameters, fixed [CLS]"),
    ):
        assert np.all(R[1:, :, at[larger]] >= R[1:, :, at[smaller]]), (larger, smaller)
    alone = min(float(parameter_counting_single(1.0, 4.0, 1.0, 10, 10, samples[4])), 1.0)
    assert R[1, 4, at["parameters, fixed [CLS]"]] == pytest.approx(alone, rel=1e-12)


def test_the_best_margin_is_that_of_a_search():
    rng = np.random.default_rng(1)
    margins, samples = np.array([0.1, 0.2, 0.4]), np.array([1e3, 1e5])
    ramp, R = np.sort(rng.random((4, 3)), axis=1), rng.random((4, 2, 2)) / 10
    found = certified_error(ramp, R, samples, margins, 0.05)
    for r, m, f in np.ndindex(4, 2, 2):
        tail = 3 * np.sqrt(np.log(2 * 12 / 0.05) / (2 * samples[m]))
        values = ramp[r] + 2 * R[r, m, f] / margins + tail
        assert found.error[r, m, f] == pytest.approx(values.min(), rel=1e-12)
        assert found.margin[r, m, f] == values.argmin()
