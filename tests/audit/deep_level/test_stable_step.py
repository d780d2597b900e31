"""The step that a curvature allows, against iterations; what has none is refused."""

import pytest

from attlas.audit.deep_level.stable_step import require_step, stable_threshold
from attlas.core.errors import UserError


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_quadratic_is_left_just_above_the_threshold(momentum):
    def distance(product):
        x, v = 1.0, 0.0
        for _ in range(4000):
            v = momentum * v - product * x
            x = x + v
        return abs(x)

    threshold = stable_threshold("sgd", momentum)
    assert distance(0.99 * threshold) < 1 < distance(1.01 * threshold)


def test_what_has_no_threshold_is_refused():
    with pytest.raises(UserError, match="second moments"):
        stable_threshold("adam")
    with pytest.raises(UserError, match="momentum = 1"):
        stable_threshold("sgd", 1.0)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_learning_rate_is_positive_and_finite(rate):
    require_step(1e-300, "sgd", 0.0)
    require_step(None, "sgd", 0.5)
    with pytest.raises(UserError, match=f"learning_rate = {rate}"):
        require_step(rate, "sgd", 0.0)
    with pytest.raises(UserError, match="momentum = -1"):
        require_step(None, "sgd", -1.0)
