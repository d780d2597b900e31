"""Scores of claims span six decades wherever their statement does not bound them."""

import numpy as np
import pytest
from sampled_claims import SIX_DECADES, claims_by_sampler, decades, instances, is_among, sampler

from liu2021analyzing.theorem_3 import _QUERIES


def lengths(*names):
    """Products of the lengths of some arrays, one for each instance."""

    def of(batch):
        arrays = [batch[name].astype(float) for name in names]
        return np.prod([np.linalg.norm(a.reshape(len(a), -1), axis=1) for a in arrays], axis=0)

    return of


def lead(batch):
    """How far logarithms of weights are apart: differences of scores."""
    logs = np.log(np.maximum(batch["f"], np.finfo(float).tiny)).reshape(len(batch["f"]), -1)
    return np.max(logs, axis=1) - np.min(logs, axis=1)


LEARNED = lengths("W_Q", "W_K")
SCORES = {
    "concentration.rows": lengths("logits"),
    "feature_norms.first_layers": lead,
    "feature_norms.logits": lengths("logits"),
    "landscape_instances.networks": LEARNED,
    "landscape_instances.on_the_orbit": LEARNED,
    "models_as_printed.known_weights": lengths("M"),
    "models_as_printed.networks": LEARNED,
    "regularity.pairs": LEARNED,
    "regularity.populations": lead,
    "sparse_attention.logits": lengths("z"),
    "table_2.readers": lengths("W_a"),
    "theorem_2.moves": lengths("W_Q_n", "W_K_n"),
    "theorem_2.networks": LEARNED,
    "theorem_2.one_unit_each": LEARNED,
    "theorem_2.two_logits": lambda batch: np.linalg.norm(batch["second"] - batch["first"], axis=1),
    "theorem_2.<lambda>": lengths("beta"),
    "theorem_3.teachers": lambda batch: np.linalg.norm(batch["truth"][:, _QUERIES], axis=1),
    "theorem_3_trained.moved_networks": lambda batch: batch["stretch"] - batch["fixed"],
    "theorem_6.population": lengths("v_t"),
    "theorem_7.networks": LEARNED,
    "theorem_7.stationary": LEARNED,
}
"""The size of scores by sampler: of what they are made, or what they make."""

SLOW = {"landscape_instances.on_the_orbit", "theorem_2.one_unit_each", "theorem_7.stationary"}

RUN = "scores are of the order of one, for a fit from others does not end or has a singular design"
SIZES = "numbers of parameters, samples, regions or words alone"
HIDDEN = "`six_decades` draws them, and inputs times their weights alone leave the sampler"
FIXED = "the statement's attention has no scores: a fixed mask in [0, 1], or words alone"
BOUNDED = {
    "concentration.measured": "the rows of `concentration.rows`",
    "lemma_1_1.population": HIDDEN,
    "theorem_1_points.students": HIDDEN,
    "zero_point.teachers": HIDDEN,
    "learned_stationary": RUN,
    "stationary_runs": RUN,
    "theorem_1_points": RUN,
    "theorem_1_sizes": RUN,
    "theorem_3.samples": RUN,
    "theorem_3_trained.trained_networks": "balls of radius 4 hold the weights, as (A3.1) asks",
    "appendix_c_1": SIZES,
    "printed_sizes": SIZES,
    "proved_sizes": SIZES,
    "region_instances": SIZES,
    "sparse_attention.layers": SIZES,
    "statement": SIZES,
    "theorem_2.counted": SIZES,
    "theorem_3.counted_networks": SIZES,
    "theorem_3.settings": SIZES,
    "theorem_3_trained": SIZES,
    "theorem_4": SIZES,
    "theorem_6.counted": SIZES,
    "conditional_variance": FIXED,
    "lemma_1_2": FIXED,
    "lemma_1_3": FIXED,
    "regularity.lines": FIXED,
    "theorem_1_chain": FIXED,
    "theorem_5": FIXED,
    "theorem_5_volume": FIXED,
    "theorem_7.first_layers": FIXED,
}
"""Modules or samplers whose scores may span less, with what their statements ask for."""

CLAIMS = claims_by_sampler("liu2021analyzing")


def test_every_sampler_is_measured_or_bounded_by_its_statement():
    silent = {sampler(claim) for claim in CLAIMS if not is_among(claim, {*SCORES, *BOUNDED})}
    assert silent == set()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "claim", [c for c in CLAIMS if sampler(c) in SCORES], ids=lambda claim: claim.name
)
def test_scores_span_six_decades(claim):
    name = sampler(claim)
    batch = instances(claim, 64 if name in SLOW else 256)
    assert decades(SCORES[name](batch)) > SIX_DECADES
