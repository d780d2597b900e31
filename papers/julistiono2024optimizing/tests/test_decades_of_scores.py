"""Scores of claims span six decades wherever their statement does not bound them."""

import numpy as np
import pytest
from sampled_claims import SIX_DECADES, claims_by_sampler, decades, instances, is_among

R_DELTA = r"W(0) is beyond R_delta, which grows with the logarithm of the ratio of gaps"
RUN = "scores are of the order of one, for a run of many steps ends where losses underflow"
NO_SCORES = "no scores: pairs of matrices or of numbers, or a single problem"
BOUNDED = {
    **dict.fromkeys(
        [
            *("lemma_12.matrices", "lemma_13.closing_pairs", "lemma_13.numbers_below_two"),
            *("lemma_13.opposite_matrices", "lemma_13.numbers_above_two", "lemma_13.unit_pairs"),
            *("lemma_13_cases.opposite_signs", "lemma_13_cases.same_sign", "lemma_24.scalars"),
            *("lemmas_14_15.pairs", "lemma_29_sums.level_counts", "lemma_29_sums.norms"),
            *("mirror_geometry.pairs", "statement.sample"),
        ],
        NO_SCORES,
    ),
    "flow_instances": R_DELTA,
    "convergence": R_DELTA,
    "descent_limits": R_DELTA,
    "lag_and_memory": RUN,
    "general_position": RUN,
    "regularisation_paths": RUN,
    "joint_path": RUN,
    "factored_pair": RUN,
}
"""Samplers, or modules of them, that may span less, with what their statements ask for."""

CLAIMS = claims_by_sampler("julistiono2024optimizing")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "claim", [c for c in CLAIMS if not is_among(c, BOUNDED)], ids=lambda claim: claim.name
)
def test_scores_span_six_decades(claim):
    heads = instances(claim, 64)["v"]
    assert decades(np.linalg.norm(heads, axis=-1)) > SIX_DECADES
