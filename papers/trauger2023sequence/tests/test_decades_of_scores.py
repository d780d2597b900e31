"""Scores of claims span six decades wherever their statement does not bound them."""

from functools import partial

import jax
import numpy as np
import pytest

from attlas.claims.sampling import draw
from attlas.verify.registry import find_claims

WITNESS = "a single instance"
ALL = "all values there are, listed"
NORMALISED = "the statement names the law of the entries"
MEASURED = "formulas on numbers of samples and centres, without a matrix or a score"
SCORES = {
    "appendix_c.functions": "F",
    "appendix_c.hidden_layers": "W_v",
    "appendix_c.logits": "a",
    "appendix_c.two_matrices": "W",
    "appendix_g.gaussian_scores": "a",
    "appendix_g.scores": "a",
    "bracket.classes": "C",
    "bracket.matrices": NORMALISED,
    "bracket.table_rows": ALL,
    "cover_instances.greedy_instances": "W",
    "cover_instances.row_instances": "W",
    "dudley.entropies": "R",
    "dudley.exact_classes": "R",
    "experiment_text.bits": ALL,
    "experiment_text.logits": "logits",
    "experiment_text.powers": MEASURED,
    "gap.samples": "M",
    "gap.trainings": "radius",
    "greedy_covers.recursion": MEASURED,
    "greedy_covers.small_covers": ALL,
    "layer_instances.networks": "query_key",
    "lemma_3_1.averages": "V",
    "lemma_3_1.laws": "V",
    "lemma_3_1.numbers_of_counts": ALL,
    "lemma_3_1.runs": "bound",
    "lemma_3_2.differences": "D",
    "lemma_3_2.finite_classes": "W",
    "lemma_3_4.covered": "D",
    "lemma_3_4.radii": "B",
    "lemma_e_1.resolutions": MEASURED,
    "lemma_e_1.solved": MEASURED,
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
"""The array whose size is that of the scores, for every sampler, or why it may span less."""
ENTRIES = {
    "sections_4_2_and_4_3.layers",
    "single_layer_instances.measured",
    "single_layer_instances.on_all_balls",
    "theorem_4_2.deep_samples",
    "theorem_4_2.four_layers",
}
"""Samplers that draw a scale for each entry of the array, that is for layers, heads or balls."""


def place(sample):
    """Where a sampler is defined, with its name."""
    while isinstance(sample, partial):
        sample = sample.func
    return f"{sample.__module__.split('.')[-1]}.{sample.__name__}"


SAMPLED = {}
for claim in find_claims():
    if claim.name.startswith("trauger2023sequence/"):
        SAMPLED.setdefault(str(claim.sample), claim)


@pytest.mark.thorough
@pytest.mark.parametrize("claim", SAMPLED.values(), ids=lambda claim: claim.name)
def test_scores_span_six_decades_or_the_statement_bounds_them(claim):
    name = place(claim.sample)
    array = WITNESS if name == "claim_maker.sample" else SCORES[name]
    if " " in array:
        pytest.skip(array)
    standard, allow = jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow")
    with jax.enable_x64(True), standard, allow:
        values = np.abs(np.asarray(draw(claim.sample, 0, 128)[array]))
    sizes = values if name in ENTRIES else values.reshape(len(values), -1).max(axis=1)
    assert np.ptp(np.log10(sizes[sizes > 0])) > 5.5
