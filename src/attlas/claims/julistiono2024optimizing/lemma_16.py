r"""Lemma 16: the risk is bounded, whatever W is; gamma_it = y_i v' X_it are the token scores."""

from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.claims.julistiono2024optimizing.instances import (
    ROUNDINGS,
    random_data,
    risk,
    selection,
)
from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.data.token_selection import token_scores
from attlas.losses.logistic import logistic

_PAPER = "julistiono2024optimizing"


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """Matrices of size 0.1 to 1000: from uniform attention to one token."""
    rng = generator(key)
    batch = random_data(rng, count)
    d = batch["v"].shape[1]
    size = 10 ** rng.uniform(-1, 3, size=(count, 1, 1))
    # Half of the matrices point against the scores, to the worst token of the first sample.
    against = -batch["y"][:, :1, None] * batch["v"][:, :, None] * batch["z"][:, :1, :]
    gauss = rng.normal(size=(count, d, d))
    batch["W"] = size * np.where(np.arange(count)[:, None, None] % 2 == 0, against, gauss)
    return {name: jnp.asarray(value) for name, value in batch.items()}


def _between(instance: Instance, low: Array, high: Array) -> Sides:
    value = risk(instance, instance["W"])
    best, worst = jnp.mean(logistic(high)), jnp.mean(logistic(low))
    # A rounding of the attention moves the margin by at most the scores' size.
    scale = 1 + jnp.max(jnp.abs(token_scores(selection(instance))))
    return Sides(jnp.stack([best, value]), jnp.stack([value, worst]), scale=scale)


def _absolute(instance: Instance, factor: float = 1.0) -> Sides:
    size = factor * jnp.max(jnp.abs(token_scores(selection(instance))), axis=1)
    return _between(instance, -size, size)


def _ends(instance: Instance, exchanged: bool = False) -> Sides:
    scores = token_scores(selection(instance))
    low, high = jnp.min(scores, axis=1), jnp.max(scores, axis=1)
    if exchanged:
        low = high = jnp.mean(scores, axis=1)
    return _between(instance, low, high)


LEMMA_16 = Claim(
    name=f"{_PAPER}/lemma-16",
    paper=_PAPER,
    locator="Lemma 16",
    statement=(
        r"\frac1n \sum_i \ell(\max_t |\gamma_{it}|) \le \mathcal{L}(W)"
        r"\le \frac1n \sum_i \ell(-\max_t |\gamma_{it}|)"
    ),
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_absolute,
    free=("W", "X", "v"),
    control=(Control("bound of the scores halved", sides=partial(_absolute, factor=0.5)),),
    terms=ROUNDINGS,
    note=(
        "The lemma says only that such constants exist; these are ours. Only the attention depends "
        "on W, and a mean of scores lies within their range."
    ),
)

LEMMA_16_RANGE = Claim(
    name=f"{_PAPER}/lemma-16-range",
    paper=_PAPER,
    locator="Lemma 16, best constants",
    statement=(
        r"\frac1n \sum_i \ell(\max_t \gamma_{it}) \le \mathcal{L}(W)"
        r"\le \frac1n \sum_i \ell(\min_t \gamma_{it})"
    ),
    kind=Kind.INEQUALITY,
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_ends,
    free=("W", "X", "v"),
    control=(Control("mean score in place of the extremes", sides=partial(_ends, exchanged=True)),),
    terms=ROUNDINGS,
    note="Both ends are approached as W grows along a direction that selects these tokens.",
)
