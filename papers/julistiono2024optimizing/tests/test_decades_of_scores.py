"""Scores of claims span six decades wherever their statement does not bound them."""

import numpy as np
import pytest
from sampled_claims import SIX_DECADES, claims_by_sampler, decades, instances, is_among

R_DELTA = r"W(0) is beyond R_delta, which grows with the logarithm of the ratio of gaps"
RUN = "scores are of the order of one, for a run of many steps ends where losses underflow"
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

CLAIMS = claims_by_sampler("julistiono2024optimizing")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "claim", [c for c in CLAIMS if not is_among(c, BOUNDED)], ids=lambda claim: claim.name
)
def test_scores_span_six_decades(claim):
    batch = instances(claim, 64)
    if "v" not in batch:
        pytest.skip("no scores: the sampler draws no head")
    if len(np.unique(batch["v"], axis=0)) == 1:
        pytest.skip("a single instance has one size")
    assert decades(np.linalg.norm(batch["v"], axis=-1)) > SIX_DECADES
