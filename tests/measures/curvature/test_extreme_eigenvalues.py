"""Hessian extremes against prescribed spectra, degenerate ones, and an attention risk."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import NotConverged, Result
from attlas.losses.empirical_risk import empirical_risk
from attlas.measures.curvature._krylov_space import ritz_pairs
from attlas.measures.curvature.extreme_eigenvalues import hessian_extremes
from attlas.models.attention.multi_head import Decoder, MultiHead

SIZE = 150
SPECTRA = {
    "five equal at the top": np.r_[np.linspace(-1, 1, SIZE - 5), np.full(5, 3.0)],
    "three ends close together": np.r_[-2 - 1e-9, -2, np.linspace(0, 1, SIZE - 5), 2, 2, 2 + 1e-9],
    "all negative": -(np.linspace(1, 2, SIZE) ** 4),
    "rank three": np.r_[np.zeros(SIZE - 3), 1, 2, 3],
    "multiple of the identity": np.full(SIZE, 2.0),
    "zero": np.zeros(SIZE),
}


def quadratic(x, matrix):
    """A function whose Hessian is the matrix."""
    return x @ (matrix @ x) / 2


def with_spectrum(values, dtype=float):
    """A symmetric matrix of prescribed eigenvalues."""
    draws = np.random.default_rng(5)
    basis = np.linalg.qr(draws.standard_normal((values.size, values.size)))[0]
    return jnp.asarray((basis * values) @ basis.T, dtype)


@pytest.mark.thorough
@pytest.mark.parametrize("name", SPECTRA)
def test_prescribed_ends_are_found_and_enclosed(name):
    values = np.sort(SPECTRA[name])
    found = hessian_extremes(
        quadratic, jnp.zeros(SIZE), with_spectrum(values), count=3, exact_below=0
    )
    truth = np.stack([values[:3], values[::-1][:3]])
    enclosure, scale = found.certificate["enclosure"], np.abs(values).max()
    assert not found.stats["exact"]
    assert found.certificate["residual"].max() <= 1e-6 * scale
    assert np.allclose(np.stack(found.unwrap()), truth, rtol=0, atol=1e-6 * scale)
    # The matrix itself has its spectrum up to the rounding of forming it.
    width = SIZE * np.finfo(float).eps * scale
    assert np.all(enclosure[..., 0] <= truth + width)
    assert np.all(enclosure[..., 1] >= truth - width)


def test_copies_that_one_krylov_space_misses_are_found():
    values = SPECTRA["five equal at the top"]
    matrix, start = with_spectrum(values), np.random.default_rng(0).standard_normal(SIZE)
    one = ritz_pairs(quadratic, jnp.zeros(SIZE), (matrix,), start, np.zeros((6, SIZE)), 0.0, 20)
    # Converged, certified by its residual, and yet the second is not the second eigenvalue.
    assert one.bounds[-1] < 1e-6
    assert one.values[-2] < 1.5
    found = hessian_extremes(quadratic, jnp.zeros(SIZE), matrix, count=3, exact_below=0)
    assert np.allclose(found.unwrap().largest, 3.0, rtol=0, atol=1e-6)
    assert found.stats["starts"] > 1


def test_enclosures_on_a_cluster_are_as_narrow_as_asked():
    # Eight eigenvalues within 1 % of the top, and no gap below: rank three lies among them.
    values = np.concatenate([np.linspace(-1, 0.9, SIZE - 8), 1 + 1e-3 * np.arange(8)])
    matrix = with_spectrum(values)
    truth = np.sort(values)[::-1][:3]

    def enclosure(width):
        found = hessian_extremes(
            quadratic, jnp.zeros(SIZE), matrix, count=3, width=width, exact_below=0
        )
        return found.certificate["enclosure"][1].T, found.stats["products"]

    (low, high), narrow = enclosure(0.02)
    assert np.all((low <= truth + 1e-12) & (truth <= high + 1e-12))
    assert (high - low).max() <= 0.02 * np.abs(values).max()
    _, wide = enclosure(1.0)
    assert wide <= narrow


def test_vectors_repeat_the_residuals():
    matrix = with_spectrum(SPECTRA["five equal at the top"])
    found = hessian_extremes(quadratic, jnp.zeros(SIZE), matrix, count=3, exact_below=0)
    vectors, values = found.certificate["vectors"], np.stack(found.value)
    misses = np.linalg.norm(vectors @ np.asarray(matrix) - values[..., None] * vectors, axis=-1)
    floor = SIZE * np.finfo(float).eps * 3
    assert np.allclose(misses, found.certificate["residual"], rtol=1e-6, atol=floor)


def test_steps_that_run_out_give_no_number():
    values = np.linspace(-1, 1, SIZE)
    found = hessian_extremes(
        quadratic, jnp.zeros(SIZE), with_spectrum(values), exact_below=0, max_steps=12
    )
    assert int(found.result) == Result.MAX_STEPS
    assert found.certificate["residual"].max() > 1e-6
    with pytest.raises(NotConverged, match="max_steps"):
        found.unwrap()


@pytest.mark.thorough
@pytest.mark.parametrize("exact_below", [0, 600])
def test_float32_cannot_certify_a_tolerance_of_float64(exact_below):
    matrix = with_spectrum(np.r_[np.linspace(-1, 1, SIZE - 2), 3, 4], jnp.float32)
    x = jnp.zeros(SIZE, jnp.float32)

    def extremes(tolerance):
        return hessian_extremes(quadratic, x, matrix, tolerance=tolerance, exact_below=exact_below)

    assert int(extremes(1e-12).result) == Result.PRECISION
    loose = extremes(1e-4)
    assert abs(float(loose.unwrap().largest[0]) - 4) <= 4e-4
    assert loose.certificate["vectors"].dtype == np.float32


@pytest.mark.parametrize("exact_below", [0, 600])
def test_a_hessian_that_is_not_finite_is_told(exact_below):
    matrix = with_spectrum(np.linspace(-1, 1, SIZE)).at[3, 3].set(jnp.nan)
    found = hessian_extremes(quadratic, jnp.zeros(SIZE), matrix, exact_below=exact_below)
    assert int(found.result) == Result.NOT_FINITE


@pytest.mark.thorough
def test_attention_risk_by_lanczos_and_by_the_whole_hessian():
    draws = np.random.default_rng(2)
    model = MultiHead(
        jnp.asarray(draws.standard_normal((2, 3, 3))), jnp.asarray(draws.standard_normal((2, 3, 3)))
    )
    X = jnp.asarray(draws.standard_normal((6, 3, 3)))
    y = jnp.asarray([1.0, -1.0, 1.0, 1.0, -1.0, -1.0])
    whole = hessian_extremes(empirical_risk, model, X, y, count=2)
    krylov = hessian_extremes(empirical_risk, model, X, y, count=2, exact_below=0)
    assert whole.stats["exact"]
    assert not krylov.stats["exact"]
    reach = 1e-6 * np.abs(np.stack(whole.value)).max()
    assert np.allclose(np.stack(whole.unwrap()), np.stack(krylov.unwrap()), rtol=0, atol=reach)
    inside = krylov.certificate["enclosure"]
    assert np.all(inside[..., 0] <= np.stack(whole.value))
    assert np.all(inside[..., 1] >= np.stack(whole.value))


@pytest.mark.parametrize(
    "settings", [{"count": 0}, {"count": 4}, {"tolerance": 0.0}, {"max_steps": 2}, {"failure": 1.0}]
)
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(UserError, match="choose"):
        hessian_extremes(lambda x: jnp.sum(x**2), jnp.zeros(3), **settings)


def attention_risk(dtype):
    """A model of 800 parameters, its data, and the risk."""
    draws = np.random.default_rng(0)
    U, W = draws.normal(size=(4, 10, 10)), draws.normal(size=(4, 10, 10))
    X, y = draws.normal(size=(20, 10, 10)), np.resize([1.0, -1.0], 20)

    def risk(parameters, X, y):
        outputs = jax.vmap(MultiHead(*parameters, Decoder.FULL))(X)
        return jnp.mean(jax.nn.softplus(-y * outputs))

    U, W, X, y = (jnp.asarray(a, dtype) for a in (U, W, X, y))
    return risk, (U, W), X, y


@pytest.mark.thorough
@pytest.mark.parametrize("exact_below", [0, 1000])
def test_float32_converges_by_default_and_encloses_what_float64_finds(exact_below):
    found = hessian_extremes(*attention_risk("float32"), exact_below=exact_below)
    wide = hessian_extremes(*attention_risk("float64"))
    assert found.stats["steps"] <= 80
    values, enclosure = np.concatenate(wide.unwrap()), found.certificate["enclosure"][:, 0]
    assert found.certificate["vectors"].dtype == np.float32
    assert np.all((enclosure[:, 0] <= values) & (values <= enclosure[:, 1]))
    scale = np.abs(values).max()
    # four roundings of a product of 800 terms
    assert found.certificate["residual"].max() <= 4 * np.sqrt(800) * np.finfo("f4").eps * scale


def test_a_tolerance_below_the_rounding_of_float32_is_told_without_a_long_search():
    found = hessian_extremes(*attention_risk("float32"), tolerance=1e-12, exact_below=0)
    assert int(found.result) == Result.PRECISION
    assert found.stats["steps"] <= 80


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (jnp.ones(3, jnp.bfloat16), "parameters are bfloat16, in which no eigenvalue is certified"),
        (np.ones(3, np.float16), "parameters are float16"),
        ({"name": "W"}, "parameters hold no floating array"),
        (jnp.ones(3, complex), "parameters has dtype complex128"),
    ],
)
def test_what_has_no_certified_spectrum_is_refused_at_once(parameters, message):
    with pytest.raises(UserError, match=message):
        hessian_extremes(lambda x: jnp.sum(x**2), parameters)


def test_lists_and_tensors_are_parameters(torch_like):
    def risk(x):
        return (3 * x[0] ** 2 - x[1] ** 2) / 2

    for parameters in ([1.0, 2.0], torch_like(np.ones(2)), np.ones(2)):
        assert hessian_extremes(risk, parameters).unwrap().largest.tolist() == [3.0]
