import numpy as np

from deora2023optimization.library.measures.logistic_scores import logistic_scores


def test_scores_of_every_row_of_outputs():
    outputs = np.array([[2.0, -1.0, 0.5], [0.0, 0.0, 0.0]], np.float32)
    y = np.array([1.0, 1.0, -1.0])
    found = logistic_scores(outputs, y)
    expected = np.mean([np.log1p(np.exp(-2.0)), np.log1p(np.exp(1.0)), np.log1p(np.exp(0.5))])
    np.testing.assert_allclose(found.loss, [expected, np.log(2)], rtol=1e-14)
    np.testing.assert_allclose(found.accuracy, [1 / 3, 0.0])
    assert found.loss.dtype == np.float64
