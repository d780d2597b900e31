"""Spectra of products against the dense matrix, and known matrices."""

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.measures.attention.product_spectrum import (
    ProductSpectrum,
    product_norm,
    product_spectrum,
)

DRAW = np.random.default_rng(5)


@pytest.mark.parametrize("shape", [(7, 7, 3), (7, 5, 3), (4, 6, 5), (2, 2, 4)])
def test_agrees_with_the_dense_product(shape):
    d, e, k = shape
    L, R = DRAW.normal(size=(3, d, k)), DRAW.normal(size=(3, e, k))
    found, dense = product_spectrum(L, R), L @ np.swapaxes(R, 1, 2)
    expected = np.linalg.svd(dense, compute_uv=False)
    rank = found.singular.shape[-1]
    assert rank == min(shape)
    # the dense values are off by as much: each route has its own rounding
    assert np.all(np.abs(found.singular - expected[:, :rank]) <= 2 * found.error[:, None])
    assert np.all(expected[:, rank:] <= found.error[:, None])
    np.testing.assert_allclose(found.frobenius, np.linalg.norm(dense, axis=(1, 2)), rtol=1e-12)
    np.testing.assert_allclose(found.nuclear, expected.sum(axis=1), rtol=1e-11)
    if d == e:
        symmetric = (dense + np.swapaxes(dense, 1, 2)) / 2
        share = (
            np.linalg.norm(symmetric, axis=(1, 2)) ** 2 / np.linalg.norm(dense, axis=(1, 2)) ** 2
        )
        np.testing.assert_allclose(found.symmetric_share, share, rtol=1e-10)
        values = np.linalg.eigvals(dense)
        positivity = values.sum(axis=1).real / np.abs(values).sum(axis=1)
        # eigenvalues that vanish come out as eps^(1/1) of the norm at a simple zero
        np.testing.assert_allclose(found.positivity, positivity, rtol=1e-6, atol=1e-8)
    else:
        assert np.isnan(found.positivity).all()
        assert np.isnan(found.symmetric_share).all()


def test_known_matrices():
    eye = np.eye(4)[:, :3]
    copying = product_spectrum(eye, eye)
    for name, value in (("stable_rank", 3), ("effective_rank", 3), ("nuclear_share", 1)):
        assert np.isclose(getattr(copying, name), value), name
    assert copying.positivity == copying.symmetric_share == 1
    assert product_spectrum(eye, -eye).positivity == -1
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    assert np.isclose(product_spectrum(turn, np.eye(2)).symmetric_share, 0)
    single = product_spectrum(eye * [5.0, 0.0, 0.0], eye)
    assert np.isclose(single.stable_rank, 1)
    assert np.isclose(single.effective_rank, 1)


def test_only_the_product_matters():
    L, R, S = (DRAW.normal(size=s) for s in ((6, 3), (6, 3), (3, 3)))
    one, two = product_spectrum(L, R), product_spectrum(L @ S, R @ np.linalg.inv(S).T)
    np.testing.assert_allclose(one.singular, two.singular, rtol=1e-9)
    assert np.isclose(one.positivity, two.positivity)


def test_a_head_of_zeros_has_no_ratios():
    found = product_spectrum(np.zeros((4, 2)), np.ones((4, 2)))
    assert found.frobenius == 0
    ratios = (found.stable_rank, found.effective_rank, found.nuclear_share, found.positivity)
    assert np.isnan(ratios).all()


def test_factors_of_different_inner_sizes_are_refused():
    with pytest.raises(UserError, match="right"):
        product_spectrum(np.ones((4, 2)), np.ones((4, 3)))


@pytest.mark.parametrize("shape", [(7, 7, 3), (7, 5, 3), (4, 6, 5), (2, 2, 4)])
def test_the_norm_alone_is_that_of_the_dense_product(shape):
    d, e, k = shape
    L, R = DRAW.normal(size=(3, d, k)), DRAW.normal(size=(3, e, k))
    L[1] = 0  # a product without any size
    L[2, :, 1:] = 0  # one of rank 1
    dense = L @ np.swapaxes(R, 1, 2)
    np.testing.assert_allclose(
        product_norm(L, R), np.linalg.norm(dense, 2, axis=(1, 2)), rtol=1e-12
    )


def test_every_share_of_a_spectrum_by_hand():
    singular, eigenvalues = np.array([[5.0, 3, 1, 0]]), np.array([[2 + 1j, 2 - 1j, -1, 0]])
    found = ProductSpectrum(singular, eigenvalues, np.zeros(1))
    entropy = -sum(s / 9 * np.log(s / 9) for s in (5, 3, 1))
    moduli = 2 * np.sqrt(5) + 1
    expected = {
        "frobenius": np.sqrt(35),
        "nuclear": 9,
        "stable_rank": 35 / 25,
        "effective_rank": np.exp(entropy),
        "nuclear_share": 9 / (2 * np.sqrt(35)),
        # The squares of the eigenvalues: 3 + 4i, 3 - 4i and 1.
        "symmetric_share": (1 + 7 / 35) / 2,
        "positivity": 3 / moduli,
    }
    assert {name: getattr(found, name) for name in expected} == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("shape", [(7, 5, 3), (4, 6, 5)])
def test_the_error_is_that_of_factors_product_and_core(shape):
    d, e, k = shape
    L, R = DRAW.normal(size=(2, d, k)), DRAW.normal(size=(2, e, k))
    sizes = [np.sqrt(np.sum(a**2) * np.sum(b**2)) for a, b in zip(L, R, strict=True)]
    bound = 4 * (max(d, e) + k) * k**0.5 * 2.0**-52 * np.array(sizes)
    np.testing.assert_allclose(product_spectrum(L, R).error, bound, rtol=1e-14)


def test_ratios_do_not_depend_on_the_scale_of_a_product():
    draws = np.random.default_rng(11)
    L, R = draws.standard_normal((2, 3, 6, 2))
    found, small = product_spectrum(L, R), product_spectrum(1e-2 * L, 1e-2 * R)
    for name in ("stable_rank", "effective_rank", "nuclear_share", "symmetric_share", "positivity"):
        np.testing.assert_allclose(getattr(small, name), getattr(found, name), rtol=1e-10)
    assert product_spectrum(L, R[:, :5]).eigenvalues.shape == (3, 2)
