import numpy as np

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
