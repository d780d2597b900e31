"""The closed-form gradient against the risk written out, automatic differentiation and decimals."""

import decimal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.data.token_selection import TokenSelection, token_scores
from attlas.losses.margin_loss import margin_loss
from julistiono2024optimizing.library.token_selection.gradient import (
    scaled_gradient,
    selection_gradient,
    selection_loss,
)

rng = np.random.default_rng(5)
X, z, v, W = (rng.normal(size=shape) for shape in ((3, 4, 5), (3, 5), (5,), (5, 5)))
DATA = TokenSelection(*(jnp.asarray(a) for a in (X, np.array([1.0, -1, -1]), z, v)))


def margin_of(W, i):
    h = X[i] @ W @ z[i]
    s = np.exp(h - h.max()) / np.exp(h - h.max()).sum()
    return float(DATA.y[i]) * s @ X[i] @ v


def test_the_risk_is_the_mean_loss_of_the_margins():
    margins = [margin_of(W, i) for i in range(3)]
    expected = np.mean([np.log1p(np.exp(-m)) for m in margins])
    assert float(selection_loss(jnp.asarray(W), DATA)) == pytest.approx(expected, rel=1e-13)
    expected = np.mean([np.exp(-m) for m in margins])
    found = selection_loss(jnp.asarray(W), DATA, "exponential")
    assert float(found) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_gradient_is_that_of_the_risk(loss):
    at, step = jnp.asarray(W), np.random.default_rng(6).normal(size=(5, 5))
    expected = jax.grad(selection_loss)(at, DATA, loss)
    found = selection_gradient(at, DATA, loss)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    name = {"logistic": lambda m: np.log1p(np.exp(-m)), "exponential": lambda m: np.exp(-m)}[loss]
    rise = [np.mean([name(margin_of(W + t * step, i)) for i in range(3)]) for t in (1e-5, -1e-5)]
    # A central difference: its error is about 1e-10 of the third derivative, and rounding.
    assert np.sum(np.asarray(found) * step) == pytest.approx((rise[0] - rise[1]) / 2e-5, rel=1e-6)


def test_gradient_far_out_has_all_digits():
    """Logits in the thousands, and margins of about 8."""
    far = 1000 * W
    G, log_scale = scaled_gradient(
        jnp.asarray(far), DATA.X, DATA.z, 4 * token_scores(DATA), margin_loss("logistic")
    )
    exact = np.vectorize(decimal.Decimal, otypes=[object])
    with decimal.localcontext(decimal.Context(prec=300)):
        expected = exact(np.zeros((5, 5)))
        for i in range(3):
            h = exact(X[i]) @ (exact(far) @ exact(z[i]))
            raised = np.array([each.exp() for each in h - max(h)])
            s, score = raised / sum(raised), exact(4 * float(DATA.y[i]) * (X[i] @ v))
            m = sum(s * score)
            slope = -1 / (1 + m.exp()) / 3
            pull = (slope * s * (score - m)) @ exact(X[i])
            expected += np.outer(pull, exact(z[i]))
        scaled = (expected / decimal.Decimal(float(log_scale)).exp()).astype(float)
    assert float(log_scale) < -30
    assert float(jnp.max(jnp.abs(G))) > 1e-3
    # Logits of several thousand carry that many roundings into the weights.
    np.testing.assert_allclose(G, scaled, rtol=1e-10, atol=1e-15)
