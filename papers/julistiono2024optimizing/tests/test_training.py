"""Training against a plain loop of optax steps, chunks, codes and the printed toy problem."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.data.token_selection import (
    TokenSelection,
    make_infeasible_selection,
    make_separable_selection,
    make_token_selection,
)
from attlas.losses.margin_loss import margin_loss
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


def ensemble(e=2, n=3, T=4, d=5):
    """Problems of different size: the tokens of the first are small, those of the last large."""
    rng = np.random.default_rng(7)
    X, z, v = (rng.normal(size=(e, *shape)) for shape in ((n, T, d), (n, d), (d,)))
    X *= np.geomspace(0.05, 2, e)[:, None, None, None]
    y = np.where(rng.random((e, n)) < 0.5, -1.0, 1.0)
    y[:, :2] = [-1, 1]
    return TokenSelection(*(jnp.asarray(a) for a in (X, y, z, v)))


def risk(W, v, X, y, z, loss):
    """The mean of l(y v' X' softmax(X W z)), sample by sample."""
    margins = [y[i] * (jax.nn.softmax(X[i] @ (W @ z[i])) @ X[i]) @ v for i in range(len(y))]
    return sum(margin_loss(loss).value(m) for m in margins) / len(y)


RISK = jax.jit(jax.value_and_grad(risk, argnums=(0, 1)), static_argnums=5)


def size(a, exponent):
    return np.sum(np.abs(a) ** exponent) ** (1 / exponent)


def mirror_step(w, gradient, rate, p, normalized, eps):
    """A step of mirror descent for the potential sum |w|^p / p, in NumPy."""
    unit = gradient / (size(gradient, p / (p - 1)) + eps) if normalized else gradient
    dual = np.sign(w) * np.abs(w) ** (p - 1) - rate * unit
    return np.sign(dual) * np.abs(dual) ** (1 / (p - 1))


@pytest.mark.parametrize(
    ("p", "normalized", "joint", "eps", "loss"),
    [
        (2.0, True, True, 0.3, "logistic"),
        (4 / 3, True, False, 0.2, "exponential"),
        (1.5, True, True, 0.05, "exponential"),
        (3.0, False, True, 0.0, "logistic"),
        (4.0, True, False, 0.0, "logistic"),
    ],
)
def test_steps_and_records_are_those_of_a_loop(p, normalized, joint, eps, loss):
    data, rng = ensemble(), np.random.default_rng(1)
    W0, v0, schedule = rng.normal(size=(2, 5, 5)), rng.normal(size=(2, 5)), (0, 2, 3)
    path = train_selection_ensemble(
        data, W0, p=p, learning_rate=0.3, steps=3, record_at=schedule, loss=loss,
        normalized=normalized, eps=eps, joint=joint, v0=v0 if joint else None,
    )  # fmt: skip
    close = {"rtol": 1e-10, "atol": 1e-12}
    for e in range(2):
        X, y, z = data.X[e], data.y[e], data.z[e]
        W, v = W0[e], v0[e] if joint else np.asarray(data.v[e])
        for k in range(4):
            value, (to_W, to_v) = RISK(W, v, X, y, z, loss)
            if k in schedule:
                at = schedule.index(k)
                np.testing.assert_allclose(path.W[e, at], W, **close)
                np.testing.assert_allclose(path.loss[e, at], value, **close)
                norm = size(np.asarray(to_W), p / (p - 1))
                np.testing.assert_allclose(path.gradient_norm[e, at], norm, **close)
                attention = jax.nn.softmax(jnp.einsum("ntd,df,nf->nt", X, W, z), axis=1)
                np.testing.assert_allclose(path.attention[e, at], attention, **close)
                if joint:
                    np.testing.assert_allclose(path.v[e, at], v, **close)
            W = mirror_step(W, np.asarray(to_W), 0.3, p, normalized, eps)
            v = mirror_step(v, np.asarray(to_v), 0.3, p, normalized, eps) if joint else v
    np.testing.assert_array_equal(path.last["W"], path.W[:, -1])
    assert (path.v is not None) == joint
    assert path.steps.tolist() == list(schedule)
    assert path.result.tolist() == [Result.MAX_STEPS] * 2
    assert path.stopped_at.tolist() == [3, 3]


def test_one_problem_is_trained_as_in_an_ensemble():
    data, W0 = ensemble(), np.random.default_rng(2).normal(size=(2, 5, 5))
    given = {"p": 4.0, "learning_rate": 0.3, "steps": 3, "record_at": (0, 2, 3), "eps": 0.1}
    one = train_selection(jax.tree.map(lambda a: a[1], data), W0[1], **given)
    both = train_selection_ensemble(data, W0, **given).member(1)
    for name in ("W", "attention"):
        np.testing.assert_allclose(getattr(one, name), getattr(both, name), rtol=0, atol=1e-12)
    np.testing.assert_allclose(one.loss, both.loss, rtol=1e-12)
    assert int(one.result) == Result.MAX_STEPS
    assert int(one.stopped_at) == 3


@pytest.mark.parametrize(("joint", "p"), [(False, 1.5), (True, 1.25), (True, 3.0)])
def test_a_normalised_step_has_its_length_where_powers_of_the_gradient_underflow(joint, p):
    """Margins of 400 make slopes of 1e-174, and logits of 400 apart weights as small."""
    tokens = np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0], [0.5, 0, 1.0, 0]])
    data = TokenSelection(
        jnp.asarray(np.stack([tokens, tokens * [1, 1, -1, 1]])), jnp.ones(2),
        jnp.asarray(np.tile([0, 0, 0, 1.0], (2, 1))), jnp.array([400.0, 399, 1, 0]),
    )  # fmt: skip
    W0 = np.zeros((4, 4))
    W0[2, 3] = 400.0
    path = train_selection(
        data, W0, p=p, learning_rate=0.5, steps=1, record_at=(0, 1), loss="exponential",
        joint=joint, v0=data.v,
    )  # fmt: skip

    def dual(w):
        return np.sign(w) * np.abs(w) ** (p - 1)

    moved = [dual(np.asarray(path.W[k])) for k in (0, 1)]
    # Entries of 400^{p - 1} are rounded in the dual.
    assert size(moved[1] - moved[0], p / (p - 1)) == pytest.approx(0.5, rel=1e-9)
    if joint:
        moved = [dual(np.asarray(path.v[k])) for k in (0, 1)]
        assert size(moved[1] - moved[0], p / (p - 1)) == pytest.approx(0.5, rel=1e-9)


P_NOISE = 1.5


def noisy_problem(factor):
    """A problem whose gradient is `factor` times its rounding error as it is documented.

    All sums are of powers of two: a token of norm near 2^50 cancels exactly in the gradient, and
    enters its rounding error. The third token, 100 or 60 logits below, has no weight.
    """
    q = P_NOISE / (P_NOISE - 1)
    z = np.array([[0, 0, 1.0, 0.5], [0, 0.25, 0.6, 0]])
    large, v = 2.0 ** np.array([50, 48]), np.array([0, 0, 1.0, 0])
    apart = np.array([[0, 0, 2.0, 1.0], [0, 0, 1.0, -2.0]])

    def problem(unit):
        X = np.zeros((2, 3, 4))
        X[:, :, 0], X[:, 2, 1] = large[:, None], -1
        X[:, 1] += unit * apart
        return X

    W = np.zeros((4, 4))
    W[1, 2] = 100.0

    def ratio(X):
        gain = X[:, 1, 2] - X[:, 0, 2]
        slope = np.array([-1 / (1 + np.exp(g / 2)) for g in gain]) / 2
        c = slope * gain / 4
        G = sum(c[i] * np.outer(X[i, 1] - X[i, 0], z[i]) for i in range(2))
        tokens = sum(
            abs(c[i]) * size(X[i, t], q) * size(z[i], q) for i in range(2) for t in range(2)
        )
        return size(G, q) / (EPS * tokens * (4 + 100))

    unit = brentq(lambda unit: ratio(problem(unit)) / factor - 1, 1.0, 100.0)
    return TokenSelection(*(jnp.asarray(a) for a in (problem(unit), np.ones(2), z, v))), W


@pytest.mark.parametrize("factor", [0.999, 1.001])
def test_steps_stop_at_the_first_order_rounding_error_of_the_gradient(factor):
    data, W0 = noisy_problem(factor)
    path = train_selection(data, W0, p=P_NOISE, learning_rate=1e-3, steps=1, record_at=(0, 1))
    assert bool(jnp.all(path.W[0] == path.W[1])) == (factor < 1)
    assert int(path.stopped_at) == (factor > 1)
    ended = Result.MAX_STEPS if factor > 1 else Result.GRADIENT_BELOW_ROUNDING
    assert int(path.result) == ended


@pytest.mark.parametrize(("normalized", "joint"), [(True, True), (True, False), (False, True)])
def test_a_problem_without_any_gradient_stays_where_it_is(normalized, joint):
    data, W0 = ensemble(), np.random.default_rng(3).normal(size=(2, 5, 5))
    # The other one has tokens in a single direction, and a value head that starts at zero.
    X = data.X.at[0].set(0).at[1, :, :, jnp.array([0, 1, 3, 4])].set(0)
    data = TokenSelection(X, data.y, data.z, data.v)
    v0 = data.v.at[1].set(0)
    path = train_selection_ensemble(
        data, W0, p=2.0, learning_rate=0.3, steps=2, record_at=(2,), normalized=normalized,
        joint=joint, v0=v0 if joint else None, eps=0.1 * joint,
    )  # fmt: skip
    np.testing.assert_array_equal(path.W[0, 0], W0[0])
    assert (np.asarray(path.W[1, 0]) != W0[1]).any()
    if joint:
        np.testing.assert_array_equal(path.v[0, 0], data.v[0])
        assert np.flatnonzero(path.v[1, 0]).tolist() == [2]
    rests = Result.GRADIENT_BELOW_ROUNDING if normalized else Result.MAX_STEPS
    assert path.result.tolist() == [rests, Result.MAX_STEPS]
    assert path.stopped_at.tolist() == [0 if normalized else 2, 2]


@pytest.mark.parametrize("eps", [0.0, 0.3])
def test_a_head_without_a_gradient_stays_while_attention_moves(eps):
    """Two samples of the same tokens and opposite labels ask for the same mean token."""
    X = np.array([[[1.0, 1.0], [-1.0, 1.0]]] * 2)
    data = TokenSelection(
        jnp.asarray(X), jnp.array([1.0, -1.0]), jnp.array([[1.0, 0.0], [0.0, 2.0]]), jnp.zeros(2)
    )
    path = train_selection(
        data, np.zeros((2, 2)), p=2.0, learning_rate=0.1, steps=1, record_at=(1,), joint=True,
        v0=np.array([1.0, 0.0]), eps=eps,
    )  # fmt: skip
    np.testing.assert_array_equal(path.last["v"], [1.0, 0.0])
    # -l' = 1/2, halved by the mean over samples and again by either weight; e_1 (z_1 - z_2)'
    slope = np.outer([1.0, 0.0], [1.0, -2.0]) / 4
    expected = 0.1 * slope / (np.linalg.norm(slope) + eps)
    np.testing.assert_allclose(path.last["W"], expected, rtol=1e-12, atol=1e-15)


def test_only_a_problem_whose_loss_overflows_is_not_finite():
    """A head of 1e200 times the mean pull: one of the problems has a sample on the wrong side."""
    path = train_selection_ensemble(
        ensemble(e=3), np.zeros((3, 5, 5)), p=2.0, learning_rate=1e200, steps=2, record_at=(0, 2),
        loss="exponential", normalized=False, joint=True,
    )  # fmt: skip
    np.testing.assert_array_equal(path.loss[:, 0], 1)
    assert jnp.isfinite(path.loss[:, 1]).tolist() == [False, True, True]
    assert path.result.tolist() == [Result.NOT_FINITE, Result.MAX_STEPS, Result.MAX_STEPS]


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
