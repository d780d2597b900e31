"""Scores of claims span six decades wherever their statement does not bound them."""

import numpy as np
import pytest
from sampled_claims import SIX_DECADES, claims_by_sampler, decades, instances, is_among, sampler

ALL = "all values there are, listed"
NORMALISED = "the statement names the law of the entries"
MEASURED = "formulas on numbers of samples and centres, without a matrix or a score"
ARRAYS = {
    "appendix_c.functions": "F",
    "appendix_c.hidden_layers": "W_v",
    "appendix_c.logits": "a",
    "appendix_c.two_matrices": "W",
    "appendix_g.gaussian_scores": "a",
    "appendix_g.scores": "a",
    "bracket.classes": "C",
    "cover_instances.greedy_instances": "W",
    "cover_instances.row_instances": "W",
    "dudley.entropies": "R",
    "dudley.exact_classes": "R",
    "experiment_text.logits": "logits",
    "gap.samples": "M",
    "gap.trainings": "radius",
    "layer_instances.networks": "query_key",
    "lemma_3_1.averages": "V",
    "lemma_3_1.laws": "V",
    "lemma_3_1.runs": "bound",
    "lemma_3_2.differences": "D",
    "lemma_3_2.finite_classes": "W",
    "lemma_3_4.covered": "D",
    "lemma_3_4.radii": "B",
    "lemma_e_2.layer_pairs": "query_key",
    "lemma_e_2.one_dimensional_pairs": "query_key",
    "lemma_e_2.readouts": "w",
    "lemma_e_2.rows": "a",
    "norm_facts.matrices": "V",
    "norm_facts.sizes": "B",
    "norm_facts.sparse_matrices": "W",
    "sections_4_2_and_4_3.layers": "qk",
    "sections_4_2_and_4_3.sizes": "B_qk",
    "sequence_length.covered_at_cls": "W",
    "sequence_length.norms_and_samples": "norm",
    "sequence_length.sequences": "M",
    "single_layer_instances.measured": "radius",
    "single_layer_instances.on_all_balls": "radius",
    "single_layer_instances.small_sequences": "M",
    "theorem_4_1.covered_cls": "W",
    "theorem_4_2.deep_norms": "B_qk",
    "theorem_4_2.deep_samples": "norms",
    "theorem_4_2.equal_layers": "B_qk",
    "theorem_4_2.four_layers": "B_qk",
    "theorem_4_2_recursion.covered_networks": "query_key",
    "theorem_5_1.score_classes": "scores",
    "theorem_5_1.sizes": "size",
}
"""The array whose size is that of the scores, by sampler."""
BOUNDED = {
    "bracket.matrices": NORMALISED,
    "bracket.table_rows": ALL,
    "experiment_text.bits": ALL,
    "experiment_text.powers": MEASURED,
    "greedy_covers.recursion": MEASURED,
    "greedy_covers.small_covers": ALL,
    "lemma_3_1.numbers_of_counts": ALL,
    "lemma_e_1.resolutions": MEASURED,
    "lemma_e_1.solved": MEASURED,
}
"""Why the scores of other samplers may span less."""
ENTRIES = {
    "sections_4_2_and_4_3.layers",
    "single_layer_instances.measured",
    "single_layer_instances.on_all_balls",
    "theorem_4_2.deep_samples",
    "theorem_4_2.four_layers",
}
"""Samplers that draw a scale for each entry of the array, that is for layers, heads or balls."""

CLAIMS = claims_by_sampler("trauger2023sequence")


def test_every_sampler_is_measured_or_bounded_by_its_statement():
    assert {sampler(claim) for claim in CLAIMS} == ARRAYS.keys() | BOUNDED.keys()
    assert not ARRAYS.keys() & BOUNDED.keys()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "claim", [c for c in CLAIMS if is_among(c, ARRAYS)], ids=lambda claim: claim.name
)
def test_scores_span_six_decades(claim):
    name = sampler(claim)
    values = np.abs(instances(claim, 128)[ARRAYS[name]])
    sizes = values if name in ENTRIES else values.reshape(len(values), -1).max(axis=1)
    assert decades(sizes) > SIX_DECADES
