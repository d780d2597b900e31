import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import nnls

from attlas.bounds.optimisation.julistiono2024_cone import julistiono2024_radius
from attlas.data.token_selection import TokenSelection, make_separable_selection
from attlas.measures.attention.direction import direction_divergence
from attlas.models.attention.multi_head import Decoder, MultiHead
from attlas.solvers.attention_svm import attention_svm
from attlas.solvers.token_optimality import is_locally_optimal
from julistiono2024optimizing.library.solvers.selection_geometry import selection_geometry
from liu2021analyzing.library.audit.head_selection import head_selection


@pytest.fixture(scope="module")
def instance():
    data = make_separable_selection(jax.random.key(3), n=3, T=3, d=4)
    rng = np.random.default_rng(1)
    # the query is the last token: give every sample one more, that nothing selects
    X = np.concatenate([np.asarray(data.X), np.asarray(data.z)[:, None]], axis=1)
    heads = [
        MultiHead(data.v[None], jnp.asarray(rng.normal(size=(1, 4, 4))), Decoder.LAST)
        for _ in range(2)
    ]
    path = jax.tree.map(lambda *a: jnp.stack(a)[None], *heads)
    return path, X[None], np.asarray(data.y)[None]


@pytest.mark.thorough
def test_agrees_with_the_library(instance):
    path, X, y = instance
    data = TokenSelection(
        jnp.asarray(X[0]), jnp.asarray(y[0]), jnp.asarray(X[0, :, -1]), path.U[0, -1, 0]
    )
    scores = y[0][:, None] * (X[0] @ np.asarray(data.v))
    tokens = scores.argmax(axis=1)
    found = head_selection(path, X, y, tokens[None])
    alone = attention_svm(X[0], X[0, :, -1], tokens, 2.0)
    target = jnp.asarray(alone.unwrap())
    assert found.margin[0] == pytest.approx(1 / float(jnp.linalg.norm(target)), rel=1e-7)
    assert found.optimal_margin[0] == found.margin[0]
    assert found.best_scores[0] == 1
    local = bool(is_locally_optimal(data, jnp.asarray(tokens), target))
    assert bool(found.locally_optimal[0]) == local
    assert local
    for k in range(2):
        apart = direction_divergence(path.W[0, k, 0].T, target, 2.0)
        assert found.divergence[0, k] == pytest.approx(float(apart), rel=1e-6)
    g = selection_geometry(data, jnp.asarray(tokens), target, 2.0)
    asked = julistiono2024_radius(g.norm, g.delta, g.A, g.score_range, g.score_gap, 4)
    assert found.radius[0] == pytest.approx(float(asked), rel=1e-5)


def test_tokens_that_nothing_selects_have_no_margin():
    X = np.array([[[[1.0], [-1.0]], [[-1.0], [1.0]]]])
    head = MultiHead(jnp.ones((1, 1)), jnp.ones((1, 1, 1)), Decoder.LAST)
    path = jax.tree.map(lambda a: a[None, None], head)
    found = head_selection(path, X, np.ones((1, 2)), np.array([[0, 1]]))
    assert found.margin[0] == 0
    assert not found.locally_optimal[0]
    assert np.isinf(found.radius[0])


def svm(X, tokens):
    """Least ||W||_F with (x_sel - x_t)' W z >= 1, by non-negative least squares (LDP)."""
    n, T, d = X.shape
    pairs = [(i, t) for i in range(n) for t in range(T) if t != tokens[i]]
    rows = np.array([np.outer(X[i, tokens[i]] - X[i, t], X[i, -1]).ravel() for i, t in pairs])
    E = np.vstack([rows.T, np.ones(len(rows))])
    f = np.r_[np.zeros(d * d), 1.0]
    residual = E @ nnls(E, f)[0] - f
    W = -residual[:-1] / residual[-1]
    return W.reshape(d, d), dict(zip(pairs, rows @ W, strict=True))


def test_every_number_against_its_definition():
    """Three heads: cones of a certain width, tokens chosen against the scores, and one mixed."""
    rng = np.random.default_rng(11)
    e, s, n, T, d = 3, 2, 3, 4, 5
    X, y = rng.normal(size=(e, n, T, d)), np.array([[1.0, -1, 1], [-1, -1, 1], [1, 1, -1]])
    X[0] *= 0.3
    U, W = rng.normal(size=(e, s, 1, d)), rng.normal(size=(e, s, 1, d, d))
    head = jax.vmap(jax.vmap(lambda u, w: MultiHead(u, w, Decoder.LAST)))
    scores = y[..., None] * np.einsum("entd,ed->ent", X, U[:, -1, 0])
    best = scores.argmax(axis=2)
    tokens = np.array([best[0], scores[1].argmin(axis=1), best[2]])
    tokens[2, 0] = scores[2, 0].argmin()
    found = head_selection(head(jnp.asarray(U), jnp.asarray(W)), X, y, tokens)
    np.testing.assert_allclose(found.best_scores, [1, 0, 2 / 3], rtol=1e-14)
    assert found.gap.max() < 1e-6
    for m in range(e):
        target, margins = svm(X[m], tokens[m])
        norm = np.linalg.norm(target)
        assert found.margin[m] == pytest.approx(1 / norm, rel=1e-6)
        ideal = np.linalg.norm(svm(X[m], best[m])[0])
        assert found.optimal_margin[m] == pytest.approx(1 / ideal, rel=1e-6)
        for k in range(s):
            apart = W[m, k, 0].T / np.linalg.norm(W[m, k, 0]) - target / norm
            assert found.divergence[m, k] == pytest.approx((apart**2).sum() / 2, rel=1e-5)
        support = {pair for pair, margin in margins.items() if margin < 1 + 1e-6}
        assert 0 < len(support) < len(margins)
        gap = min(scores[m, i, tokens[m, i]] - scores[m, i, t] for i, t in support)
        assert found.locally_optimal[m] == (gap > 0)
        if gap <= 0:
            assert np.isinf(found.radius[m])
            continue
        apart = [
            min([margin for (i, t), margin in margins.items() if i == at and (i, t) not in support],
                default=np.inf)
            - max([margin for (i, t), margin in margins.items() if (i, t) in support and i == at],
                  default=-np.inf)
            for at in range(n)
        ]  # fmt: skip
        delta = min(min(apart) / 4, 0.25)
        A = norm * max(
            max(np.linalg.norm(x) for x in X[m, i]) * np.linalg.norm(X[m, i, -1]) for i in range(n)
        )
        spread = max(scores[m, i].max() - scores[m, i].min() for i in range(n))
        radius = julistiono2024_radius(norm, delta, A, spread, gap, T)
        assert found.radius[m] == pytest.approx(float(radius), rel=1e-4)
    assert found.locally_optimal.tolist() == [True, False, False]
