"""Paths of a problem with a locally optimal choice, against the SVMs of both choices."""

import jax
import numpy as np
import pytest

from attlas.solvers.attention_svm import attention_svm_batch
from julistiono2024optimizing.library.solvers.local_selection import draw_local_selection
from julistiono2024optimizing.library.token_selection.paths_to_svms import paths_to_svms

EXPONENTS, RADII = (2.0, 3.0), (4.0, 16.0)


@pytest.fixture(scope="module")
def problems():
    return draw_local_selection(0, 1, EXPONENTS)


@pytest.fixture(scope="module", params=["global", "local"])
def found(request, problems):
    tokens = problems.local if request.param == "local" else problems.best
    width = 0.02 if request.param == "local" else None
    return tokens, paths_to_svms(
        problems, tokens, 2.0, EXPONENTS, RADII, jax.random.key(0), 1, width
    )


def test_certified_points_turn_to_the_svm_of_their_own_exponent(found):
    own, other = found[1].divergence
    assert found[1].certified.all()
    assert (found[1].gap <= 1e-6).all()
    assert own[0, 1] < own[0, 0]
    assert own[0, 1] < other[0, 1]


def test_divergence_to_the_global_choice_is_that_of_its_svm(found, problems):
    tokens, paths = found
    same = np.array_equal(tokens, problems.best)
    assert np.array_equal(paths.to_global, paths.divergence[0]) == same


def test_radii_are_in_units_of_the_norm_of_the_svm(found, problems):
    tokens, paths = found
    svm = attention_svm_batch(problems.data.X, problems.data.z, tokens, 2.0)
    np.testing.assert_array_equal(paths.svm_norm, svm.certificate["norm_upper"])
