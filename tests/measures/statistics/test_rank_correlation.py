import numpy as np
from scipy import stats

from attlas.measures.statistics.rank_correlation import rank_correlation


def test_every_row_has_the_correlation_of_scipy():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 5, (3, 12)).astype(float), rng.normal(size=12)
    expected = [stats.spearmanr(row, y).statistic for row in x]
    np.testing.assert_allclose(rank_correlation(x, y), expected, rtol=1e-12)


def test_a_constant_row_has_none():
    assert np.isnan(rank_correlation(np.ones((1, 4)), np.arange(4.0))).all()
