import jax
import jax.numpy as jnp
import numpy as np
import pytest

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
