"""Locally optimal choices against their definition, and the pool searched by loops."""

import itertools

import numpy as np
import pytest

from attlas.solvers.attention_svm import attention_svm_batch
from julistiono2024optimizing.library.solvers.local_selection import draw_local_selection

EXPONENTS = (1.75, 2.0, 3.0)


def test_local_choices_are_locally_and_not_globally_optimal():
    data, best, local = draw_local_selection(0, 4, EXPONENTS)
    X, y = np.asarray(data.X), np.asarray(data.y)
    scores = y[:, :, None] * np.einsum("bntd,bd->bnt", X, data.v)
    chosen = np.take_along_axis(scores, local[:, :, None], 2)
    np.testing.assert_array_equal(best, scores.argmax(2))
    assert (best != local).any(axis=1).all()
    for p in EXPONENTS:
        svm = attention_svm_batch(data.X, data.z, local, p)
        assert svm.converged.all()
        support = svm.certificate["margins"] <= 1 + 1e-6
        assert (scores <= chosen)[support].all()


@pytest.mark.parametrize("seed", [5, 8])
def test_problems_are_those_of_the_pool_with_most_room(seed):
    pool, n, T, d, exponents = 12, 2, 3, 4, (2.0, 3.0)
    found = draw_local_selection(seed, 3, exponents, pool, n, T, d)
    rng = np.random.default_rng(seed)
    X, z, v = (rng.normal(size=(pool, *s)) for s in ((n, T, d), (n, d), (d,)))
    X, z, v = (a / np.sqrt(np.sum(a**2, -1))[..., None] for a in (X, z, v))
    y = rng.choice([-1.0, 1.0], (pool, n))
    scores = y[:, :, None] * np.stack([x @ head for x, head in zip(X, v, strict=True)])
    choices = list(itertools.product(range(T), repeat=n))
    every = [(b, choice) for b in range(pool) for choice in choices]
    owners, tokens = np.array([b for b, _ in every]), np.array([choice for _, choice in every])
    best = scores.argmax(axis=2)
    svms = [attention_svm_batch(X[owners], z[owners], tokens, p) for p in exponents]
    globally = [attention_svm_batch(X, z, best, p).converged for p in exponents]
    rooms = {}
    for k, (b, choice) in enumerate(every):
        better = [
            (i, t) for i in range(n) for t in range(T) if scores[b, i, t] > scores[b, i, choice[i]]
        ]
        room = []
        for svm, solved in zip(svms, globally, strict=True):
            behind = (
                min((svm.certificate["margins"][k, i, t] for i, t in better), default=np.inf) - 1
            )
            usable = better and svm.converged[k] and solved[b] and behind > 1e-6
            room.append(behind / svm.certificate["norm_upper"][k] if usable else -np.inf)
        if min(room) > max(rooms.get(b, (-np.inf,))[0], -np.inf):
            rooms[b] = min(room), choice
    expected = sorted(rooms, key=lambda b: -rooms[b][0])[:3]
    assert len(expected) > 1
    np.testing.assert_allclose(found.data.X, X[expected], rtol=1e-15)
    np.testing.assert_allclose(found.data.z, z[expected], rtol=1e-15)
    np.testing.assert_allclose(found.data.v, v[expected], rtol=1e-15)
    np.testing.assert_array_equal(found.data.y, y[expected])
    np.testing.assert_array_equal(found.best, best[expected])
    np.testing.assert_array_equal(found.local, [rooms[b][1] for b in expected])
