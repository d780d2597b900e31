"""Problems with a local choice, and what tables and captions make of uncertified points."""

import matplotlib.pyplot as plt
import numpy as np

from attlas.experiments.julistiono2024optimizing.path import EXPERIMENT, _problems
from attlas.runs.cell import Scale
from attlas.runs.record import Record
from attlas.solvers.attention_svm import attention_svm_batch


def test_local_choices_are_locally_and_not_globally_optimal():
    data, best, local = _problems(0, 4)
    X, y = np.asarray(data.X), np.asarray(data.y)
    scores = y[:, :, None] * np.einsum("bntd,bd->bnt", X, data.v)
    chosen = np.take_along_axis(scores, local[:, :, None], 2)
    np.testing.assert_array_equal(best, scores.argmax(2))
    assert (best != local).any(axis=1).all()
    for p in (1.75, 2.0, 3.0):
        svm = attention_svm_batch(data.X, data.z, local, p)
        assert svm.converged.all()
        support = svm.certificate["margins"] <= 1 + 1e-6
        assert (scores <= chosen)[support].all()


def record(p: float) -> Record:
    """Two problems, three radii; the last radius of the second problem is not certified."""
    radius = np.array([4.0, 8.0, 16.0])
    divergence = np.empty((2, 3, 3))
    divergence[:] = 0.5
    divergence[:, [1.75, 2.0, 3.0].index(p)] = 1 / radius**2
    certified = np.array([[True, True, True], [True, True, False]])
    divergence[~certified[:, None, :].repeat(3, 1)] = np.nan
    arrays = {"local_to_global": np.where(certified, 1.0, np.nan), "local_on_border": ~certified}
    for scope in ("global", "local"):
        arrays |= {
            f"{scope}_radius": radius,
            f"{scope}_divergence": divergence,
            f"{scope}_certified": certified,
            f"{scope}_gap": np.where(certified, 1e-9, 0.1),
        }
    cell = EXPERIMENT.cells(Scale.SMOKE)[0]
    arrays = {f"{name}_{p:g}": array for name, array in arrays.items()}
    return Record("path", type(cell)({**cell.settings, "exponents": [p]}), arrays, {}, f"{p}")


def test_uncertified_points_are_left_out_and_counted():
    rows = EXPERIMENT.table([record(2.0)]).to_dict("records")
    assert [row["path"] for row in rows] == ["global", "local"]
    for row in rows:
        assert row["not certified"] == "1 of 6"
        assert row["own p nearest"] == "2 of 2"
        assert row["D to own, R = 4 norms"] == 1 / 16
        # The last certified ones are at 16 and at 8.
        assert row["D to own, last"] == (1 / 16**2 + 1 / 8**2) / 2
        assert row["largest gap kept"] == 1e-9
    # The point on the border is not certified, hence not counted.
    assert rows[1]["on the border of the cone"] == 0
    (panel,) = EXPERIMENT.figures([record(p) for p in (1.75, 2.0, 3.0)])
    assert "6 of 36 points are left out" in panel.caption
    assert "6 of 6 global paths" in panel.caption
    plt.close(panel.figure)
