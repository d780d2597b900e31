"""Logits of claims span six decades wherever their statement does not bound them."""

import numpy as np
import pytest
from sampled_claims import SIX_DECADES, claims_by_sampler, decades, instances, is_among

RUN = "sigma is of the order of one: the kernel of small logits has the rank of the inputs"
LAW = "a probability under the law that the statement names, with sigma of the order of one"
NUMBERS = "numbers of the theorem, or arrays without a network: nothing has logits"
DIFFUSION = "scores of a diffusion are gradients of log densities, of data that the paper bounds"
BOUNDED = {
    "alternating": "the statement names the sizes of the teacher and of the start",
    "assumption_6_4": DIFFUSION,
    "assumptions_of_data": NUMBERS,
    "claim_e_5.changed_kernels": RUN,
    "coupling": NUMBERS,
    "definition_f_1.first_steps": RUN,
    "diffusion_instances": DIFFUSION,
    "exponential_distance": NUMBERS,
    "facts": NUMBERS,
    "feature_learning": RUN,
    "flow_runs": RUN,
    "forward_law": DIFFUSION,
    "kernel_limit": LAW,
    "lemma_5_1.heavy_pairs": "one pair holds a share of 0.03 to 0.1, as the constant asks",
    "lemma_5_1.relu_starts": LAW,
    "lemma_5_3": RUN,
    "lemma_b_1_event": "sigma is at least 1/2: below it B is one, and the event is certain",
    "lemma_e_1": "delta is at most 0.01, as the lemma asks",
    "lemma_e_2": NUMBERS,
    "lemmas_e.visited_at_the_least": RUN,
    "one_step.visited": RUN,
    "remark_5_2.mean_changes": LAW,
    "reverse_sde": DIFFUSION,
    "score_matching": DIFFUSION,
    "score_runs": RUN,
    "claim_g_1": RUN,
    "smallest_eigenvalue": "the kernel on a circle, whose eigenvalues vanish with sigma",
    "statement": "computed with what the library trains or draws, one instance at a time",
    "table_1": RUN,
    "theorem_4_2": RUN,
    "theorem_6_6": NUMBERS,
    "theorem_f_2": NUMBERS,
    "theorems_g": RUN,
    "trajectories": RUN,
}
"""Modules or samplers whose logits may span less, with what their statements ask for."""

CLAIMS = claims_by_sampler("gu2024exploring")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "claim", [c for c in CLAIMS if not is_among(c, BOUNDED)], ids=lambda claim: claim.name
)
def test_logits_span_six_decades(claim):
    batch = instances(claim, 256)
    X = batch.get("X", np.eye(batch["W"].shape[1])[None])
    # Some instances of some claims have even attention by construction.
    assert decades(np.max(np.abs(X @ batch["W"]), axis=(1, 2))) > SIX_DECADES
