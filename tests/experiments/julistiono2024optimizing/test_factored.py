"""The shortfall is zero at the SVM of its norm and positive elsewhere."""

import numpy as np
import pytest

from attlas.experiments.julistiono2024optimizing.factored import EXPERIMENT, _measured, _problems
from attlas.runs.cell import Scale
from attlas.solvers.attention_svm import attention_svm
from attlas.solvers.nuclear_svm import nuclear_svm


@pytest.mark.parametrize(("norm", "tolerance"), [(0, 1e-6), (1, 1e-8)])
def test_shortfall_vanishes_at_the_svm_of_its_norm(norm, tolerance):
    (cell,) = EXPERIMENT.cells(Scale.SMOKE)
    data, _, _ = _problems(cell)
    X, y, z, v = (np.asarray(a)[0] for a in (data.X, data.y, data.z, data.v))
    tokens = (y[:, None] * (X @ v)).argmax(axis=1)
    solved = nuclear_svm(X, z, tokens) if norm == 0 else attention_svm(X, z, tokens, 2.0)
    found = _measured(data, 0, 7.0 * np.asarray(solved.unwrap())[None])
    np.testing.assert_array_equal(found["tokens"], tokens)
    # The tolerance is the relative duality gap to which the SVM is certified.
    assert abs(found["shortfall"][norm, 0]) <= tolerance
    assert found["shortfall"][1 - norm, 0] > 1e-3
    assert abs(found["apart"][norm, 0]) < 1e-12
    assert found["certified"].all()
