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
