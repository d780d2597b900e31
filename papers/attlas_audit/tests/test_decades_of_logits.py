"""Logits of audited heads span six decades wherever their statement does not bound them."""

import numpy as np
import pytest
from sampled_claims import SIX_DECADES, claims_by_sampler, decades, instances, sampler


def lengths(*names):
    """Products of the lengths of some arrays, one for each instance."""

    def of(batch):
        return np.prod(
            [np.linalg.norm(batch[name].reshape(len(batch[name]), -1), axis=1) for name in names],
            axis=0,
        )

    return of


TOKENS = lengths("X", "X", "W_Q", "W_K")
SIZES = {
    "ball_certificate.norms": lengths("A"),
    "ball_certificate.unturned": TOKENS,
    "ball_certificate.with_radius": TOKENS,
    "entropy_floors.logits": lengths("z"),
    "entropy_floors.ranges": lengths("r"),
    "heads.large_heads": TOKENS,
    "heads.small_heads": TOKENS,
    "radius_and_logits.pairs": lengths("W_Q", "W_K"),
    "sinks.biased": lengths("q", "k"),
    "sinks.laws": lengths("z"),
    "sinks.maps": lengths("z"),
    "sinks.repeated": lengths("q", "k"),
}
"""The size of logits by sampler, or of what they are made."""
BOUNDED = {
    "ball_certificate.laws": "laws on [-1, 1] alone, which have no logits",
    "radius_and_logits.normalised": "tokens before a normalisation, which takes their size away",
}
"""Samplers that may span less, with what their statements ask for."""

CLAIMS = claims_by_sampler("attlas_audit")


def test_each_sampler_is_measured_or_named():
    assert {sampler(claim) for claim in CLAIMS} == SIZES.keys() | BOUNDED.keys()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "claim", [c for c in CLAIMS if sampler(c) in SIZES], ids=lambda claim: claim.name
)
def test_logits_span_six_decades(claim):
    size = SIZES[sampler(claim)](instances(claim, 96))
    assert decades(size) > SIX_DECADES
