"""Training against a plain loop of optax steps, chunks, codes and the printed toy problem."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.data.token_selection import (
    TokenSelection,
    make_infeasible_selection,
    make_separable_selection,
    make_token_selection,
)
from attlas.norms.entrywise import dual_exponent, entrywise_norm
from attlas.optim.mirror_descent import mirror_descent
from attlas.training.fit import fit
from julistiono2024optimizing.library.measures.selection import selected_tokens
from julistiono2024optimizing.library.token_selection.gradient import (
    selection_gradient,
    selection_loss,
)
from julistiono2024optimizing.library.token_selection.training import (
    train_selection,
    train_selection_ensemble,
)

EPS = np.finfo(np.float64).eps


@pytest.mark.thorough
@pytest.mark.parametrize(("p", "normalized"), [(1.75, True), (3.0, False)])
def test_the_kernel_is_fit_with_mirror_descent(p, normalized):
    data = make_separable_selection(jax.random.key(0), n=3, T=4, d=5)
    W, schedule = jax.random.normal(jax.random.key(1), (5, 5)), (0, 1, 40)
    path = train_selection(
        data, W, p=p, learning_rate=0.1, steps=40, record_at=schedule, normalized=normalized
    )
    plain = fit(selection_loss, mirror_descent(0.1, p, normalized), W, data, record_at=schedule)
    # 40 steps, each with the rounding of sums of about 50 terms.
    assert jnp.allclose(path.W, plain.params, rtol=0, atol=40 * 50 * EPS)
    assert jnp.allclose(path.loss, plain.loss, atol=1e4 * EPS)
    slope = jax.grad(selection_loss)(path.W[1], data)
    assert jnp.allclose(
        path.gradient_norm[1], entrywise_norm(slope, dual_exponent(p)), rtol=1e3 * EPS
    )
    assert int(path.result) == int(plain.result) == Result.MAX_STEPS


@pytest.mark.thorough
def test_closed_form_gradient_far_out():
    """Where autodiff still has digits; beyond, see the scaled gradient's example."""
    data = make_separable_selection(jax.random.key(2), n=3, T=4, d=5)
    for size in (0.1, 3.0):
        W = size * data.separator
        expected = jax.grad(selection_loss)(W, data)
        assert jnp.allclose(selection_gradient(W, data), expected, rtol=0, atol=256 * EPS)


@pytest.mark.thorough
def test_chunks_do_not_change_results():
    keys = jax.random.split(jax.random.key(0), 5)
    data = jax.vmap(lambda k: make_separable_selection(k, n=3, T=4, d=5))(keys)
    W0 = jax.random.normal(jax.random.key(1), (5, 5, 5))
    settings = {"p": 1.75, "learning_rate": 0.1, "steps": 100, "record_at": (100,)}
    whole = train_selection_ensemble(data, W0, **settings)
    parts = train_selection_ensemble(data, W0, chunk=2, **settings)
    assert jnp.allclose(whole.W, parts.W, rtol=0, atol=100 * 50 * EPS)
    assert jnp.array_equal(selected_tokens(whole.attention), selected_tokens(parts.attention))
    assert whole.W.shape == parts.W.shape == (5, 1, 5, 5)


@pytest.mark.thorough
def test_normalised_steps_stop_where_the_gradient_is_noise():
    data = make_infeasible_selection(jax.random.key(0), n=2, T=2, d=3)
    rest = train_selection(
        data, jnp.zeros((3, 3)), p=2.0, learning_rate=0.1, steps=10, record_at=(10,)
    )
    assert int(rest.result) == Result.GRADIENT_BELOW_ROUNDING
    assert int(rest.stopped_at) == 0
    assert not jnp.any(rest.W)


@pytest.mark.thorough
def test_single_precision_stays_single():
    data = make_token_selection(jax.random.key(0), n=2, T=3, d=4, dtype=jnp.float32)
    path = train_selection(
        data, jnp.zeros((4, 4), jnp.float32), p=3.0, learning_rate=0.1, steps=5, record_at=(5,)
    )
    assert path.W.dtype == path.loss.dtype == jnp.float32


@pytest.mark.parametrize(("p", "steps", "chosen"), [(1.75, 1500, [1, 0]), (3.0, 20000, [0, 0])])
def test_joint_descent_switches_tokens(p, steps, chosen):
    """The paper's toy problem (section 1.6): different p pick different tokens."""
    X = jnp.array([[[-2.7, 1.2], [1.4, 2.1], [1.3, -0.1]], [[0.4, -2.2], [-1.1, -0.4], [0.9, 0.1]]])
    data = TokenSelection(X, jnp.array([1.0, -1.0]), X[:, 0], jnp.zeros(2))
    path = train_selection(
        data, jnp.zeros((2, 2)), p=p, learning_rate=0.1, steps=steps, record_at=(steps,), joint=True
    )
    assert selected_tokens(path.attention[0]).tolist() == chosen
    assert path.v is not None
    assert jnp.all(path.v != 0)


def test_settings_that_cannot_be_used_are_refused():
    data = make_token_selection(jax.random.key(0), n=2, T=3, d=4)
    good = {"p": 2.0, "learning_rate": 0.1, "steps": 10}
    for bad, message in (
        ({"p": 1.0}, "no mirror map"),
        ({"steps": 0}, "must be at least 1"),
        ({"record_at": (5, 5)}, "increasing"),
        ({"loss": "hinge"}, "unknown loss"),
    ):
        with pytest.raises(UserError, match=message):
            train_selection(data, jnp.zeros((4, 4)), **(good | bad))
    with pytest.raises(UserError, match="W0 has shape"):
        train_selection(data, jnp.zeros((3, 3)), **good)
