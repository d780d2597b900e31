"""The samplers of a paper's claims, and how far the sizes of what they draw are apart."""

from collections.abc import Collection, Mapping
from functools import partial

import jax
import numpy as np

from attlas.claims.claim import Claim
from attlas.claims.sampling import draw
from attlas.verify.registry import find_claims

SIX_DECADES = 5.5
"""What a hundred log-uniform sizes over six decades span at least, as a power of ten."""


def sampler(claim: Claim) -> str:
    """Where the sampler of a claim is defined, with its name."""
    sample = claim.sample
    while isinstance(sample, partial):
        sample = sample.func
    return f"{sample.__module__.split('.')[-1]}.{sample.__name__}"


def claims_by_sampler(paper: str) -> list[Claim]:
    """One claim for each sampler of a paper; samplers of a single instance are left out."""
    claims = {str(claim.sample): claim for claim in reversed(find_claims([paper]))}
    return [claim for claim in claims.values() if not sampler(claim).startswith("claim_maker.")]


def is_among(claim: Claim, names: Collection[str]) -> bool:
    """Whether the sampler of a claim, or its module, is among the names."""
    name = sampler(claim)
    return name in names or name.partition(".")[0] in names


def instances(claim: Claim, count: int) -> Mapping[str, np.ndarray]:
    """Instances of a claim by array, as a check draws them."""
    standard, allow = jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow")
    with jax.enable_x64(True), standard, allow:
        return {name: np.asarray(value) for name, value in draw(claim.sample, 0, count).items()}


def decades(sizes: np.ndarray) -> float:
    """The decades between the least and the largest of the sizes above zero."""
    return float(np.ptp(np.log10(sizes[sizes > 0])))
