"""Scores of claims span six decades wherever their statement does not bound them."""

from functools import partial

import jax
import numpy as np
import pytest

from attlas.claims.sampling import draw
from attlas.verify.registry import find_claims

R_DELTA = r"W(0) is beyond R_delta, which grows with the logarithm of the ratio of gaps"
RUN = "scores are of the order of one, for a run of many steps ends where losses underflow"
POINT = "a single instance"
BOUNDED = {
    "flow_instances": R_DELTA,
    "convergence": R_DELTA,
    "descent_limits": R_DELTA,
    "lag_and_memory": RUN,
    "general_position": RUN,
    "regularisation_paths": RUN,
    "joint_path": RUN,
    "factored_pair": RUN,
}
"""Modules whose samplers may span less, with what their statements ask for."""


def module(sample):
    """Where a sampler is defined."""
    while isinstance(sample, partial):
        sample = sample.func
    return sample.__module__.split(".")[-1]


SAMPLED = {}
for claim in find_claims():
    if claim.name.startswith("julistiono2024optimizing/"):
        SAMPLED.setdefault((module(claim.sample), str(claim.sample)), claim)


@pytest.mark.thorough
@pytest.mark.parametrize("claim", SAMPLED.values(), ids=lambda claim: claim.name)
def test_scores_span_six_decades_or_the_statement_bounds_them(claim):
    if module(claim.sample) in BOUNDED:
        pytest.skip(BOUNDED[module(claim.sample)])
    standard, allow = jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow")
    with jax.enable_x64(True), standard, allow:
        batch = draw(claim.sample, 0, 64)
    if "v" not in batch or len(np.unique(batch["v"], axis=0)) == 1:
        pytest.skip(POINT if "v" in batch else "no scores")
    length = np.linalg.norm(np.asarray(batch["v"]), axis=-1)
    assert np.ptp(np.log10(length)) > 5.5
