"""Scores of claims span six decades wherever their statement does not bound them."""

import numpy as np
import pytest
from sampled_claims import SIX_DECADES, claims_by_sampler, decades, instances, is_among, sampler

CONDITIONS = "the heads that the conditions ask for grow with the norms of start and target"
NEAR = "the step or distance that the statement allows shrinks with the norms of heads"
FORMULA = "formulas on norms and numbers of heads, of the orders that the statement names"
LARGE = "the statement is on large signals"
SEARCH = "what a search of 200 steps finds, at signals of one order"
ARRAYS = {
    "corollary_1.models": "W",
    "corollary_1.with_the_extremal": "W",
    "descent.on_path": "W",
    "equation_8.all_corners": "S",
    "equation_8.at_an_eighth": "S",
    "equation_8.at_both_ends": "S",
    "head_scaling.distinct_heads": "W",
    "head_scaling.grown_heads": "W",
    "instances.grouped_heads": "W",
    "instances.single_heads": "W",
    "lemma_1.heads_and_directions": "W",
    "lemma_10.runs": "W",
    "lemma_2.<lambda>": "S",
    "lemma_2.eight_samples": "S",
    "lemma_2.first_phases": "S",
    "lemma_2.populations": "S",
    "linear_margin.anywhere": "S",
    "linear_margin.in_place": "S",
    "multi_head_bounds.many_heads": "W",
    "ntk_w_part.noise_free": "S",
    "ntk_w_part.single_samples": "S",
    "ntk_w_part.torn_against_the_label": "S",
    "ntk_w_part.torn_along_the_error": "S",
    "other_losses.models": "W",
    "other_losses_steps.step_pairs": "W",
    "proposition_1.pooled_heads": "W",
    "proposition_2.many_heads": "S",
    "proposition_2.with_signs": "S",
    "proposition_3.with_mass": "S",
    "proposition_4.close_pairs": "W",
    "proposition_4.from_the_middle": "W",
    "regret.starts": "W",
    "several_heads.single_heads": "w",
    "stability.pairs": "W",
    "step_and_sparsity.different_heads": "W",
}
"""The array whose size is that of the scores, by sampler."""
BOUNDED = {
    "certified_instances.certified": CONDITIONS,
    "corollary_2.numbers": FORMULA,
    "equation_8.bounded_noise": "the statement lets the signal grow from one",
    "global_margin.best_models": SEARCH,
    "global_margin.large_signals": LARGE,
    "good_initialisation.good_initialisations": CONDITIONS,
    "good_initialisation.good_trainings": CONDITIONS,
    "lemma_1.<lambda>": "a slip of notation, shown at one vector",
    "lemmas_14_15.random_heads": LARGE,
    "margin_order.below_the_crossover": FORMULA,
    "orders.settings": FORMULA,
    "other_losses.runs": CONDITIONS,
    "other_losses.trainings": CONDITIONS,
    "other_losses_stability.certified_sets": CONDITIONS,
    "other_losses_stability.leave_one_out_runs": CONDITIONS,
    "other_losses_steps.pairs_at_the_limit": NEAR,
    "proposition_2.separable": LARGE,
    "proposition_2.solved": LARGE,
    "section_5_3.orders_of_magnitude": FORMULA,
    "stability_instances.calm_and_wild_runs": CONDITIONS,
    "stability_instances.leave_one_out_runs": CONDITIONS,
    "stability_instances.training_sets": CONDITIONS,
    "step_and_sparsity.settings": FORMULA,
    "step_and_sparsity.two_sparsities": FORMULA,
    "theorem_2.contradictions": FORMULA,
}
"""Why the scores of other samplers may span less."""

CLAIMS = claims_by_sampler("deora2023optimization")


def test_every_sampler_is_measured_or_bounded_by_its_statement():
    assert {sampler(claim) for claim in CLAIMS} == ARRAYS.keys() | BOUNDED.keys()
    assert not ARRAYS.keys() & BOUNDED.keys()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "claim", [c for c in CLAIMS if is_among(c, ARRAYS)], ids=lambda claim: claim.name
)
def test_scores_span_six_decades(claim):
    array = ARRAYS[sampler(claim)]
    values = np.abs(instances(claim, 128)[array])
    sizes = values.reshape(len(values), -1).max(axis=1)
    # Scores of the mixture are bilinear in tokens and in W_star, which is quadratic in patterns.
    power = 4 if array == "S" else 1
    assert power * decades(sizes) > SIX_DECADES
