"""Kinds of stationary points, told by certificates and norms."""

import numpy as np

from attlas.core.solution import Solution
from liu2021analyzing.library.measures.point_kinds import (
    KINDS,
    at_least_risk,
    first_of_each,
    point_kinds,
)


def test_kinds_of_points():
    first = np.array([[1.0], [1.0], [0.0], [3.5], [1.0], [9.0]])[:, :, None]
    second = np.ones((6, 1))
    second[2] = 0.0
    certificate = {
        "gradient_norm": np.array([0.0, 0.0, 0.0, 0.0, 1.0, np.nan]),
        "smallest": np.array([0.1, -0.1, -0.1, 0.1, 0.1, 0.1]),
        "rounding": np.full(6, 1e-12),
    }
    found = Solution((first, second), np.zeros(6), certificate)
    kinds = point_kinds(found, [1.0, 1.0], tolerance=1e-8)
    assert kinds.tolist() == [*KINDS, "not stationary"]
    assert point_kinds(found, [1.0, 1.0], tolerance=1e-8, ball=10.0)[3] == "minimum"


def test_points_of_one_risk_count_once_within_their_kind():
    kind = np.array(["saddle", "minimum", "saddle", "saddle"])
    risk = np.array([0.5, 0.5, 0.5 + 1e-12, 0.6])
    assert first_of_each(kind, risk).tolist() == [True, True, False, True]


def test_the_minimum_of_least_risk_is_none_where_there_is_no_minimum():
    values, risk = np.array([5.0, 6.0, 7.0]), np.array([0.3, 0.1, np.nan])
    assert at_least_risk(values, risk, np.array([True, True, False])) == 6.0
    assert np.isnan(at_least_risk(values, risk, np.zeros(3, bool)))


def test_boundaries_belong_to_the_kind_that_the_arguments_name():
    """At the tolerance a point is stationary, at `zero` the origin, at `ball` inside it."""
    arrays = np.array([[3.0, 4.0], [0.0, 0.5], [6.0, 8.0], [0.0, 5.0], [0.0, 5.0]])[:, None, :]
    certificate = {
        "gradient_norm": np.array([1e-8, 0.0, 0.0, 0.0, 0.0]),
        "smallest": np.array([0.0, 0.0, 0.0, -1e-12, -1.001e-12]),
        "rounding": np.full(5, 1e-12),
    }
    found = Solution((arrays,), np.zeros(5), certificate)
    kinds = point_kinds(found, [5.0], tolerance=1e-8, ball=2.0, zero=0.1)
    assert kinds.tolist() == ["minimum", "origin", "minimum", "minimum", "saddle"]
    sharper = point_kinds(found, [5.0], tolerance=0.999e-8, ball=2.0, zero=0.1)
    assert sharper.tolist() == ["not stationary", "origin", "minimum", "minimum", "saddle"]
