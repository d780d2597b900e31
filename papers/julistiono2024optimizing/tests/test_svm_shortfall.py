"""The shortfall is zero at the SVM of its norm and positive elsewhere."""

import numpy as np
import pytest

from attlas.solvers.attention_svm import attention_svm
from julistiono2024optimizing.library.measures.svm_shortfall import svm_shortfall
from julistiono2024optimizing.library.solvers.nuclear_svm import nuclear_svm
from julistiono2024optimizing.library.token_selection.factored import draw_sphere_selection


@pytest.mark.parametrize(("norm", "tolerance"), [(0, 1e-6), (1, 1e-8)])
def test_shortfall_vanishes_at_the_svm_of_its_norm(norm, tolerance):
    X, y, z, v = draw_sphere_selection(np.random.default_rng([0, 0]), 4, 4, 5)
    tokens = (y[:, None] * (X @ v)).argmax(axis=1)
    solved = nuclear_svm(X, z, tokens) if norm == 0 else attention_svm(X, z, tokens, 2.0)
    found = svm_shortfall(X, z, 7.0 * np.asarray(solved.unwrap())[None])
    np.testing.assert_array_equal(found.tokens, tokens)
    # The tolerance is the relative duality gap to which the SVM is certified.
    assert abs(found.shortfall[norm, 0]) <= tolerance
    assert found.shortfall[1 - norm, 0] > 1e-3
    assert abs(found.apart[norm, 0]) < 1e-12
    assert found.certified.all()


def test_of_two_equal_tokens_none_is_selected_over_the_other():
    X, _, z, v = draw_sphere_selection(np.random.default_rng([0, 0]), 2, 3, 4)
    W = np.outer(v, z[0])[None]
    assert svm_shortfall(X, z, W).certified.all()
    # The row of a token over its copy is exactly zero: no W has a margin there.
    found = svm_shortfall(np.concatenate([X, X], axis=1), z, W)
    selected = np.einsum("ntd,dc,nc->nt", X, W[0], z).argmax(axis=1)
    np.testing.assert_array_equal(found.tokens % 3, selected)
    assert not found.certified.any()
    assert all(np.isnan(part).all() for part in (found.shortfall, found.apart, found.svm_spread))
    assert np.isfinite(found.spread).all()


def test_every_number_along_a_path_is_by_hand():
    rng = np.random.default_rng(11)
    X, _, z, _ = draw_sphere_selection(rng, 3, 4, 5)
    W = np.stack([np.zeros((5, 5)), *rng.normal(size=(2, 5, 5))])
    W[2] *= 3
    found = svm_shortfall(X, z, W)
    tokens = [max(range(4), key=lambda t, i=i: X[i, t] @ W[2] @ z[i]) for i in range(3)]
    np.testing.assert_array_equal(found.tokens, tokens)
    margins = [
        min(
            (X[i, a] - X[i, t]) @ w @ z[i] for i, a in enumerate(tokens) for t in range(4) if t != a
        )
        for w in W[1:]
    ]
    svms = nuclear_svm(X, z, tokens), attention_svm(X, z, np.array(tokens), 2.0)
    for k, (kind, svm) in enumerate(zip(("nuc", "fro"), svms, strict=True)):
        goal = np.asarray(svm.unwrap())
        norms = np.array([np.linalg.norm(w, kind) for w in W[1:]])
        expected = 1 - np.array(margins) / norms * float(svm.certificate["norm_upper"])
        np.testing.assert_allclose(found.shortfall[k, 1:], expected, rtol=1e-11)
        cosine = [np.sum(goal * w) / np.linalg.norm(goal) / np.linalg.norm(w) for w in W[1:]]
        np.testing.assert_allclose(found.apart[k, 1:], 1 - np.array(cosine), rtol=1e-11)
        spread = np.linalg.norm(goal, "nuc") / np.linalg.norm(goal)
        assert found.svm_spread[k] == pytest.approx(spread, rel=1e-11)
    ratio = [np.linalg.norm(w, "nuc") / np.linalg.norm(w) for w in W[1:]]
    np.testing.assert_allclose(found.spread[1:], ratio, rtol=1e-12)
    for part in (found.shortfall[0], found.shortfall[1], found.apart[0], found.spread):
        assert np.isnan(part).tolist() == [True, False, False]
    assert found.certified.all()
