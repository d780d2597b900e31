"""The risk's Hessian in closed form against automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.losses.empirical_risk import empirical_risk
from attlas.losses.exponential import exponential
from attlas.losses.logistic import logistic
from attlas.measures.curvature.exact_spectrum import hessian_matrix, hessian_spectra
from attlas.models.attention.multi_head import Decoder, MultiHead
from liu2021analyzing.library.measures.attention_hessian import attention_risk_hessian

DRAWS = np.random.default_rng(10)
X = jnp.asarray(DRAWS.standard_normal((4, 3, 2)))
y = jnp.array([1.0, -1.0, -1.0, 1.0])


def model(decoder):
    """A model of two heads."""
    shape = (2, 3, 2) if decoder is Decoder.FULL else (2, 2)
    return MultiHead(
        jnp.asarray(DRAWS.standard_normal(shape)),
        jnp.asarray(DRAWS.standard_normal((2, 2, 2))),
        decoder,
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("decoder", "loss"),
    [(Decoder.FULL, logistic), (Decoder.POOLED, exponential), (Decoder.LAST, logistic)],
)
def test_closed_form_is_the_hessian(decoder, loss):
    start = model(decoder)
    closed = np.asarray(attention_risk_hessian(start, X, y, loss))
    found = np.asarray(hessian_matrix(empirical_risk, start, X, y, loss))
    # Sums over 4 samples, 3 queries and 3 keys of products of at most ten rounded factors.
    reach = 4 * 3 * 3 * 10 * np.finfo(float).eps * np.abs(found).max()
    assert np.allclose(closed, found, rtol=0, atol=reach)


@pytest.mark.thorough
def test_spectra_take_the_closed_form():
    one = model(Decoder.FULL)
    stack = jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf]), one)
    by_products = hessian_spectra(empirical_risk, stack, X, y)
    closed = hessian_spectra(empirical_risk, stack, X, y, hessian=attention_risk_hessian)
    # The two matrices differ by the rounding that the test above allows; LAPACK adds its own.
    largest = np.abs(by_products.unwrap()).max()
    reach = 4 * 3 * 3 * 10 * np.finfo(float).eps * largest * 20  # ||E||_2 <= P max |E|
    assert np.allclose(closed.unwrap(), by_products.unwrap(), rtol=0, atol=reach)


def test_decoders_of_another_kind_are_one_line():
    wrong = MultiHead(jnp.ones((1, 3, 2)), jnp.ones((1, 2, 2)), Decoder.LAST)
    with pytest.raises(UserError, match=r"^model\.U has shape \(1, 3, 2\): expected axes \[H d\]$"):
        attention_risk_hessian(wrong, X, y)


def risks(theta, decoder, X, y):
    """(1/n) sum_i l(y_i Phi(X_i)) for each row of theta, three heads, from the definition."""
    (T, d), H = X.shape[1:], 3
    shape = (H, T, d) if decoder is Decoder.FULL else (H, d)
    U, W = np.split(theta, [int(np.prod(shape))], axis=1)
    U, W = U.reshape(-1, *shape), W.reshape(-1, H, d, d)
    queries = X[:, -1:] if decoder is Decoder.LAST else X
    weights = np.exp(np.einsum("ntd,bhde,nse->bnhts", queries, W, X))
    mixed = np.einsum("bnhts,nsd->bnhtd", weights / weights.sum(-1, keepdims=True), X)
    axes = "bnhtd,bhtd->bn" if decoder is Decoder.FULL else "bnhtd,bhd->bn"
    margins = y * np.einsum(axes, mixed, U) / np.sqrt(H)
    losses = np.exp(-margins) if decoder is Decoder.POOLED else np.log(1 + np.exp(-margins))
    return losses.mean(axis=1)


@pytest.mark.parametrize("decoder", list(Decoder))
def test_the_hessian_is_that_of_the_risk_by_differences(decoder):
    """Imaginary steps give exact gradients, fourth-order differences of those the matrix."""
    rng = np.random.default_rng(4)
    n, T, d, H = 5, 4, 2, 3
    X, y = rng.normal(size=(n, T, d)), np.array([1.0, -1.0, -1.0, 1.0, -1.0])
    shape = (H, T, d) if decoder is Decoder.FULL else (H, d)
    U, W = rng.normal(size=shape), rng.normal(size=(H, d, d))
    loss = exponential if decoder is Decoder.POOLED else logistic
    found = jax.jit(attention_risk_hessian, static_argnums=3)(
        MultiHead(jnp.asarray(U), jnp.asarray(W), decoder), jnp.asarray(X), jnp.asarray(y), loss
    )
    theta, step = np.r_[U.ravel(), W.ravel()], 1e-3
    rows, eye = [], np.eye(theta.size)
    for direction in eye:
        gradients = [
            risks(theta + k * step * direction + 1e-30j * eye, decoder, X, y).imag / 1e-30
            for k in (-2, -1, 1, 2)
        ]
        rows.append(np.array([1, -8, 8, -1]) @ gradients / (12 * step))
    np.testing.assert_allclose(found, rows, atol=1e-9 * np.abs(rows).max())
