"""The steps for H heads: training on the mixture does not depend on H."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.tokenized_mixture import make_tokenized_mixture, sample_mixture
from attlas.losses.empirical_risk import empirical_risk
from attlas.models.attention.multi_head import MultiHead
from attlas.optim.one_step import one_step_initialisation
from deora2023optimization.library.optim.head_scaling import head_scaled_descent, head_scaling


def curve(heads, scaled):
    """Risks of equally many heads of both signs on eight samples, in 40 steps."""
    mixture = make_tokenized_mixture(
        jax.random.key(0), d=6, M=2, S=2.0, zeta=0.5, Z_mu=0.1, Z_nu=0.1, Z=1.0
    )
    data = sample_mixture(jax.random.key(1), mixture, 8, 4)
    scaling = head_scaling(0.4, heads)
    start = scaling.start if scaled else 1.0
    one = one_step_initialisation(jax.random.key(2), data.X, data.y, 1, scale=start)
    signs = jnp.where(jnp.arange(heads) % 2, 1.0, -1.0)[:, None, None]
    model = MultiHead(signs * one.U, signs * one.W)
    descent = head_scaled_descent(0.4, heads if scaled else 1)
    slope = jax.jit(jax.value_and_grad(lambda m: empirical_risk(m, data.X, data.y)))
    state, risks = descent.init(model), []
    for _ in range(40):
        risk, down = slope(model)
        change, state = descent.update(down, state)
        model = jax.tree.map(jnp.add, model, change)
        risks.append(float(risk))
    return np.array(risks)


@pytest.mark.thorough
def test_curves_of_different_numbers_of_heads_coincide():
    few, many = curve(2, scaled=True), curve(16, scaled=True)
    assert few[-1] < 0.2 * few[0]
    np.testing.assert_allclose(many, few, rtol=1e-11)


def test_at_a_fixed_step_they_do_not():
    few, many = curve(2, scaled=False), curve(16, scaled=False)
    assert np.max(np.abs(many / few - 1)) > 0.01


@pytest.mark.parametrize(("step", "heads"), [(0.0, 1), (0.1, 0), (float("nan"), 2)])
def test_what_cannot_be_used_is_refused(step, heads):
    with pytest.raises(UserError):
        head_scaled_descent(step, heads)
