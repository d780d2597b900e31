"""The onset of a condition against a search scale by scale."""

import numpy as np

from attlas.measures.statistics.onset import onset


def test_it_is_the_first_scale_after_the_last_failure():
    scales, holds = [2, 4, 8, 16], np.random.default_rng(0).random((50, 4)) < 0.7
    found = onset(scales, holds)
    for own, each in zip(holds, found, strict=True):
        good = [scale for k, scale in enumerate(scales) if own[k:].all()]
        assert each == good[0] if good else np.isnan(each)
