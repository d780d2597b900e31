"""The explorer's stored draws: one mixture at every scale, matrices and tokens of norm one."""

import base64

import numpy as np
import pytest

from attlas.data.tokenized_mixture import check_assumption_3
from attlas.site.explorer.draws import encoded, head_draws, mixture, mixture_draws


def test_the_mixture_satisfies_assumption_3_at_every_scale():
    for S, Z in ((1.0, 1.0), (2.0, 3.0)):
        left = check_assumption_3(*mixture(S, Z))
        assert min(left.values()) > -1e-12


def test_the_draws_are_those_of_the_mixture_over_its_scale():
    draws = mixture_draws()
    _, samples = mixture(2.0, 3.0)
    relevant = draws["relevant"]
    other = 2 * draws["patterns"][2 + draws["pattern"]] + 3 * draws["noise"]
    assert np.asarray(samples.X)[~relevant] == pytest.approx(other[~relevant], abs=1e-12)
    assert relevant.sum(axis=1).tolist() == [1] * len(relevant)
    assert set(np.abs(draws["signs"]).tolist()) == {1.0}


def test_matrices_and_tokens_have_norm_one_and_numbers_survive_the_encoding():
    draws = head_draws()
    assert np.linalg.norm(draws["core"], 2) == pytest.approx(1, abs=1e-12)
    assert np.linalg.norm(draws["value"], 2) == pytest.approx(1, abs=1e-12)
    assert np.linalg.norm(draws["X"], axis=1) == pytest.approx(1, abs=1e-12)
    numbers = np.frombuffer(base64.b64decode(encoded(draws)["X"]), "<f8")
    assert numbers.tolist() == draws["X"].ravel().tolist()
