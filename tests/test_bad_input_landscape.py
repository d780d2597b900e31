"""Bad input of the tools for sample sizes and loss landscapes: one clear line each."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import NotConverged, Result
from attlas.measures.attention.concentration import concentration, streamed_concentration, top_norm
from attlas.measures.statistics.loglog_slope import loglog_slope
from liu2021analyzing.library.bounds.liu2021_regions import (
    liu2021_central_regions_maximum,
    liu2021_regions,
    liu2021_regions_break_even,
)
from liu2021analyzing.library.bounds.liu2021_sample_size import (
    liu2021_attention,
    liu2021_baseline,
    liu2021_deep,
    liu2021_mask,
    liu2021_recurrent,
    liu2021_self_attention,
)
from liu2021analyzing.library.bounds.liu2021_union_bound import (
    Block,
    Conditions,
    liu2021_error,
    liu2021_sample_size,
)
from liu2021analyzing.library.measures.cell_enumeration import enumerate_cells
from liu2021analyzing.library.measures.conditional_covariance import (
    conditional_covariance,
    schur_complement,
)
from liu2021analyzing.library.measures.linear_regions import (
    count_cells,
    count_linear_regions,
    sampled_cells,
)
from liu2021analyzing.library.measures.orbit_flatness import (
    flat_volume,
    orbit_curvature,
    orbit_extent,
    orbit_in_balls,
    rescaled_layers,
)
from liu2021analyzing.library.measures.stationary_points import stationary_points

KEY, NAN, INF = jax.random.key(0), float("nan"), float("inf")
ROWS, EYE, ONE = np.full((2, 4), 0.25), np.eye(2), (1.0, 1.0, 1.0)
KNOWN, SEVEN, PRINTED = Conditions(1.0), (1.0,) * 7, {"constants": "printed"}


def ones(*shape):
    return jax.device_put(np.ones(shape))


def bowl(first, second):
    return jnp.sum(first**2) + jnp.sum(second**2)


def single_bowl(x):
    return jnp.sum(x**2)


def size(B=1.0, C_2=1.0, d=1, blocks=(1, 1.0), gamma=0.1, known=KNOWN):
    return liu2021_sample_size(B, C_2, d, [Block(*blocks)], gamma, known)


def points(starts, **settings):
    return stationary_points(single_bowl, starts, **settings)


def volume(first=1.0, epsilon=1.0, **settings):
    return flat_volume(bowl, first * ones(1), ones(1), epsilon=epsilon, key=KEY, **settings)


def slope(scales=(1, 2), runs=((1.0,), (1.0,)), **settings):
    return loglog_slope(scales, runs, KEY, **settings)


MEASURES = {
    "rows that do not sum to one": (
        lambda: concentration(np.array([[0.25, 0.75], [0.5, 0.4]])),
        "attention row 1 sums to 0.9 .* sum to 1 within",
    ),
    "negative weights": (lambda: concentration(np.array([[1.5, -0.5]])), "least weight -0.5"),
    "weights with NaN": (lambda: concentration(NAN * ROWS), "attention row 0 sums to nan"),
    "a number for rows": (lambda: concentration(1.0), r"weights of shape \(\) .* last axis"),
    "whole weights": (lambda: concentration(np.eye(2, dtype=int)), "type int64: .* floating"),
    "rows of no weight": (lambda: concentration(np.zeros((2, 0))), "lengths from 0"),
    "tau = 0": (lambda: concentration(ROWS, taus=(0.0,)), r"taus = \(0.0,\): .* between 0 and 1"),
    "tau not a number": (lambda: concentration(ROWS, taus=(NAN,)), "1 entries that are NaN"),
    "lengths beyond": (lambda: concentration(ROWS, np.array([4, 5])), "4 to 5 in rows of 4"),
    "a length too many": (lambda: concentration(ROWS, [4, 4, 4]), r"\(3,\) .* for rows \(2,\)"),
    "half lengths": (lambda: concentration(ROWS, np.array([4.0, 2.5])), "one whole number per row"),
    "another norm": (
        lambda: concentration(ROWS, norm="l3"),
        "'l3', .* choose one of l2, raw l2, l1",
    ),
    "rounding": (lambda: concentration(ROWS, eps=NAN), "eps = nan: .* 0 <= eps < 1"),
    "no block": (lambda: streamed_concentration([]), "no attention rows"),
    "p below s0": (lambda: top_norm(ROWS, 3, np.array([4, 2])), "s0 = 3 of p = 2 weights"),
    "s0 = 0": (lambda: top_norm(ROWS, 0), "s0 = 0 of p = 4 weights: choose s0 from 1"),
    "unpaired samples": (
        lambda: conditional_covariance(ones(3, 1), ones(2, 1)),
        r"regressors has shape \(2, 1\): give \[n d\] with n = 3, as target has",
    ),
    "no sample": (lambda: conditional_covariance(ones(0, 1), ones(0, 1)), "at least one"),
    "no target": (lambda: conditional_covariance(ones(3, 0), ones(3, 1)), "at least one"),
    "samples of one axis": (
        lambda: conditional_covariance(ones(3), ones(3)),
        r"target has shape \(3,\): expected axes \[n D\]",
    ),
    "fresh of another width": (
        lambda: conditional_covariance(ones(3, 1), ones(3, 2), (ones(3, 1), ones(3, 1))),
        r"fresh\[1\] has shape \(3, 1\): give \[m d\] with d = 2, as regressors has",
    ),
    "no fresh sample": (
        lambda: conditional_covariance(ones(3, 1), ones(3, 2), (ones(0, 1), ones(0, 2))),
        "at least one",
    ),
    "other covariances": (
        lambda: schur_complement(ones(2, 2), ones(2, 3), ones(2, 2)),
        r"regressors has shape \(2, 2\): give \[d d\] with d = 3, as cross has",
    ),
    "starts without axis": (lambda: points(ones()), "every array needs one of all starts"),
    "no start": (lambda: points(ones(0, 2)), "every array needs one of all starts"),
    "no parameter": (lambda: points(ones(2, 0)), "0 parameters: .* take 1 to 2000"),
    "too many parameters": (lambda: points(ones(1, 2001)), "2001 parameters: .* take 1 to 2000"),
    "tolerance": (lambda: points(ones(1, 2), tolerance=0.0), "tolerance = 0.0, .* positive"),
    "no step": (lambda: points(ones(1, 2), max_steps=0), "max_steps = 0: both must be positive"),
    "alpha = 0": (
        lambda: rescaled_layers(ones(1), ones(1), 0.0),
        "alpha = 0.0: .* positive finite",
    ),
    "scales below 0": (
        lambda: orbit_curvature(bowl, ones(1), ones(1), np.array([1.0, -1.0])),
        r"alphas = \[1.0, -1.0\]: give at least one, all positive",
    ),
    "no scale": (lambda: orbit_curvature(bowl, ones(1), ones(1), np.zeros(0)), "at least one"),
    "layer of zeros": (lambda: orbit_in_balls(0 * ones(1), ones(1), (1.0, 1.0)), "not zero"),
    "ball of radius 0": (lambda: orbit_in_balls(ones(1), ones(1), (0.0, 1.0)), "positive radii"),
    "no rise": (
        lambda: orbit_extent(bowl, ones(1), ones(1), epsilon=0.0),
        "epsilon = 0.0: .* rise",
    ),
    "no scale to try": (
        lambda: orbit_extent(bowl, ones(1), ones(1), epsilon=1.0, most=1.0),
        "a largest scale above 1",
    ),
    "orbit of NaN": (
        lambda: orbit_extent(bowl, NAN * ones(1), ones(1), epsilon=1.0),
        "risk at the centre is nan: it must be finite",
    ),
    "no direction": (lambda: volume(directions=0), "at least one direction"),
    "stretch": (lambda: volume(alpha=0.0), "positive longest ray and stretch"),
    "rise not a number": (lambda: volume(epsilon=NAN), "epsilon = nan"),
    "centre outside": (lambda: volume(balls=(0.5, 1.0)), "norm 1.0 in a ball of radius 0.5"),
    "centre of NaN": (lambda: volume(first=NAN), "norm nan in a ball"),
    "normal with NaN": (lambda: count_cells(EYE * NAN), "W has 4 entries that are NaN"),
    "offset infinite": (lambda: sampled_cells(EYE, np.array([1.0, INF]), key=KEY), "b has 1 "),
    "one normal": (lambda: count_cells(np.ones(2)), r"W has shape \(2,\): expected axes"),
    "an offset too many": (
        lambda: enumerate_cells(EYE, np.ones(3)),
        r"offsets \(3,\): .* one offset",
    ),
    "denominator": (lambda: count_cells(EYE, denominator=0), "denominator = 0: choose at least 1"),
    "too many cells": (
        lambda: count_cells(np.ones((2, 2)) + EYE, most=3),
        "over 3 cells: take fewer",
    ),
    "weights of the units": (
        lambda: count_linear_regions(EYE, np.ones(3)),
        r"second layer of shape \(3,\) on units \(2,\)",
    ),
    "weight with NaN": (
        lambda: count_linear_regions(EYE, NAN * np.ones(2)),
        "w2 has 2 entries that are NaN or infinite",
    ),
    "no line": (lambda: sampled_cells(EYE, key=KEY, lines=0), "lines = 0: draw at least one"),
    "one scale": (lambda: slope((1, 1)), r"2 scales \(1 different\) .* at least two scales"),
    "a group too few": (lambda: slope((1, 2, 3)), "3 scales .* for 2 groups"),
    "no run": (lambda: slope(runs=((1.0,), ())), "at least one value at every scale"),
    "error of zero": (lambda: slope(runs=((1.0,), (0.0,))), "positive finite entries"),
    "error not a number": (
        lambda: slope(runs=((1.0,), (NAN,))),
        r"runs\[1\] has 1 entries that are NaN",
    ),
    "scale of zero": (lambda: slope((0, 2)), "positive finite entries"),
    "another centre": (lambda: slope(centre="mode"), "'mode': .* the mean or the median"),
    "confidence": (lambda: slope(confidence=1.0), "confidence = 1.0, .* between 0 and 1"),
}

BOUNDS = {
    "lambda": (lambda: size(known=Conditions(0.0)), "smallest = 0.0: .* above 0"),
    "gamma": (lambda: size(gamma=-0.1), "gamma = -0.1: .* finite and above 0"),
    "gamma infinite": (lambda: size(gamma=INF), "gamma = inf"),
    "features infinite": (lambda: size(B=INF), "features = inf"),
    "C_2": (lambda: size(C_2=NAN), "C_2 is NaN: give a number"),
    "d": (lambda: size(d=0), "d = 0: .* at least 1"),
    "fewer than no parameters": (lambda: size(blocks=(-1, 1.0)), "parameters = -1: .* at least 0"),
    "stretch": (lambda: size(blocks=(1, NAN)), "stretch is NaN: give a number"),
    "residual": (lambda: size(known=Conditions(1.0, -1.0)), "residual = -1.0: .* at least 0"),
    "noise": (lambda: size(known=Conditions(1.0, 0.0, NAN)), "noise is NaN: give a number"),
    "delta": (
        lambda: size(known=Conditions(1.0, failure=1.0)),
        r"failure = 1.0: it must lie in \(0, 1\)",
    ),
    "error without lambda": (lambda: liu2021_error(0.1, 1.0, Conditions(-1.0)), "smallest = -1.0"),
    "no input": (lambda: liu2021_attention(0, 1, 0.1, ONE, KNOWN), "p = 0"),
    "two negative norms": (
        lambda: liu2021_attention(3, 1, 0.1, (-1.0, -1.0, 1.0), KNOWN),
        "C_x = -1.0",
    ),
    "p below s0": (lambda: liu2021_mask(3, 1, 4, 0.1, ONE, KNOWN), "s0 = 4 of p = 3"),
    "no query": (lambda: liu2021_self_attention((4, 3, 5, 3, 0), 0.1, SEVEN, KNOWN), "d_q = 0"),
    "no entry": (
        lambda: liu2021_recurrent((0, 1, 1, 1), 0.1, ONE, (1.0, 1.0), KNOWN),
        "t = 0",
    ),
    "deep, corrected": (lambda: liu2021_deep(0.0, 1.0, 5), "gamma = 0.0"),
    "p below s0, printed": (
        lambda: liu2021_attention(3, 1, 0.1, ONE, s0=4, **PRINTED),
        "s0 = 4 of p = 3",
    ),
    "no weight": (lambda: liu2021_attention(3, 1, 0.1, ONE, s0=0, **PRINTED), "not both 0"),
    "gamma, printed": (lambda: liu2021_attention(3, 1, 0.0, ONE, **PRINTED), "gamma = 0.0"),
    "Corollary 1": (lambda: liu2021_baseline(3, 1, -0.1, ONE, **PRINTED), "gamma = -0.1"),
    "Theorem 2": (
        lambda: liu2021_self_attention((3, 2, 1, 1, 1), 0.1, SEVEN, s0=4, **PRINTED),
        "s0 = 4 of p = 3",
    ),
    "Theorem 2, C_8": (
        lambda: liu2021_self_attention((3, 2, 1, 1, 1), 0.1, (*SEVEN[1:], 0.0), **PRINTED),
        "C_8 = 0.0",
    ),
    "Theorem 3": (lambda: liu2021_deep(0.1, 0.0, 3, **PRINTED), "c_k = 0.0"),
    "Theorem 6": (
        lambda: liu2021_recurrent((2, 1, 1, 1), 0.1, ONE, (1.0, -1.0), **PRINTED),
        "C_9 = -1.0",
    ),
    "Lemma 1": (lambda: liu2021_mask(2, 1, 3, 0.1, ONE, **PRINTED), "s0 = 3 of p = 2"),
    "Lemma 1, gamma": (lambda: liu2021_mask(2, 1, 1, 0.0, ONE, **PRINTED), "gamma = 0.0"),
    "no such constants": (
        lambda: liu2021_deep(0.5, 3.0, 6, constants="ours"),
        "constants = 'ours': choose one of printed, corrected, sharp",
    ),
    "no such regions": (lambda: liu2021_regions(1, 1, "ours"), "constants = 'ours': choose"),
    "no conditions": (lambda: liu2021_attention(5, 1, 1.0, ONE), "give conditions=Conditions"),
    "no unit": (lambda: liu2021_regions(0, 1), "n1 = 0 units on s0 = 1"),
    "no input, construction": (lambda: liu2021_regions(1, 0, "corrected"), "at least one of each"),
    "no input, maximum": (lambda: liu2021_regions(1, 0), "at least one of each"),
    "no unit, central": (lambda: liu2021_central_regions_maximum(0, 1), "at least one of each"),
    "s0 = p": (lambda: liu2021_regions_break_even(3, 3), "s0 = 3 of p = 3 .* from 1 to p - 1"),
}


@pytest.fixture
def as_users_run():
    """Shapes are compared with their annotations in tests alone; here what users see counts."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    "case",
    [*MEASURES.values(), *BOUNDS.values()],
    ids=[*MEASURES, *(f"{k}, bound" for k in BOUNDS)],
)
def test_refused_in_one_line(case):
    act, words = case
    with pytest.raises(UserError, match=words) as caught:
        act()
    assert "\n" not in str(caught.value)


def test_a_singular_covariance_leaves_what_it_does_not_predict():
    # Two equal features, and constant ones: regression of least norm, and none at all.
    z = jax.device_put(np.array([[1.0], [2.0], [6.0]]))
    twice = jnp.concatenate([z, z], axis=1)
    assert conditional_covariance(3 * z, twice).rank == 1
    assert conditional_covariance(3 * z, twice).largest < 1e-28
    constant = conditional_covariance(3 * z, jnp.ones_like(twice))
    assert constant.rank == 0
    np.testing.assert_allclose(constant.largest, constant.unconditional)
    np.testing.assert_allclose(schur_complement(ones(1, 1), ones(1, 2), ones(2, 2)), 0, atol=4e-16)


def test_what_is_not_finite_comes_out_as_nan_or_as_a_code():
    z = jax.device_put(np.array([[1.0], [2.0], [6.0]]))
    twice = jnp.concatenate([z, z * NAN], axis=1)
    # Where it is traced, it cannot be refused.
    assert jnp.isnan(jax.jit(conditional_covariance)(z, twice).largest)
    twice = jnp.concatenate([z, z], axis=1)
    assert jnp.isnan(jax.jit(conditional_covariance)(z * NAN, twice).largest)
    traced = jax.jit(schur_complement)(ones(1, 1), ones(1, 2), NAN * ones(2, 2))
    assert jnp.all(jnp.isnan(traced))
    assert np.isnan(top_norm(NAN * ROWS, 2)).all()
    found = points(NAN * ones(1, 2))
    assert found.result.tolist() == [Result.NOT_FINITE.value]
    with pytest.raises(NotConverged, match="NOT_FINITE"):
        found.unwrap()
