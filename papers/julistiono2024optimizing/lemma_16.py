r"""Lemma 16: the risk is bounded, whatever W is."""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Status
from attlas.claims.statement import inequality
from attlas.data.token_selection import TokenSelection, token_scores
from julistiono2024optimizing.cone_instances import mixed_loss
from julistiono2024optimizing.instances import ROUNDINGS, random_data
from julistiono2024optimizing.lemma_18 import steepest
from julistiono2024optimizing.library.token_selection.gradient import selection_loss


def matrices(rng, count):
    """Matrices of size 0.1 to 1000: from uniform attention to one token."""
    batch = random_data(rng, count)
    d = batch["v"].shape[1]
    size = 10 ** rng.uniform(-1, 3, size=(count, 1, 1))
    # Half of the matrices point to the worst or to the best tokens.
    along = batch["v"][:, :, None] * np.einsum("bn,bnd->bd", batch["y"], batch["z"])[:, None]
    along = along * np.where(np.arange(count) % 4 == 0, -1, 1)[:, None, None]
    gauss = rng.normal(size=(count, d, d))
    W = size * np.where(np.arange(count)[:, None, None] % 2 == 0, along, gauss)
    return {**batch, "W": W}


def _between(data, W, low, high, mixture):
    """The risk against the losses at two ends of every sample's margin."""
    loss = mixed_loss(mixture)
    value, size = selection_loss(W, data, loss), jnp.max(jnp.abs(token_scores(data)))
    best, worst = jnp.mean(loss.value(high)), jnp.mean(loss.value(low))
    # A rounding of the attention moves the margin by at most the scores' size.
    slope = steepest(jnp.full((), size), mixture)
    magnitude = jnp.abs(best) + jnp.abs(worst) + slope * (1 + size)
    return Sides(jnp.stack([best, value]), jnp.stack([value, worst]), magnitude=magnitude)


on_any_matrix = partial(
    inequality, sample=matrices, search_over=("W", "X", "v"), roundings=ROUNDINGS
)


@on_any_matrix("Lemma 16", controls=[Control("four fifths of the bound of the scores", factor=0.8)])
def lemma_16(X, y, z, v, W, mixture, *, factor=1.0):
    r"""$$\frac1n \sum_i \ell(\max_t |\gamma_{it}|) \le \mathcal{L}(W)
    \le \frac1n \sum_i \ell(-\max_t |\gamma_{it}|)$$

    The lemma states only that such constants exist; these are ours. Only the attention depends on
    $W$, and a mean of scores lies within their range. Mixtures of four losses.
    """
    data = TokenSelection(X, y, z, v)
    size = factor * jnp.max(jnp.abs(token_scores(data)), axis=1)
    return _between(data, W, -size, size, mixture)


@on_any_matrix(
    "Lemma 16, best constants",
    status=Status.SHARPENED,
    controls=[Control("a fifth of the way from the extremes to the mean score", inward=0.2)],
)
def lemma_16_range(X, y, z, v, W, mixture, *, inward=0.0):
    r"""$$\frac1n \sum_i \ell(\max_t \gamma_{it}) \le \mathcal{L}(W)
    \le \frac1n \sum_i \ell(\min_t \gamma_{it})$$

    Both ends are approached as $W$ grows along a direction that selects these tokens. Mixtures of
    four losses.
    """
    data = TokenSelection(X, y, z, v)
    scores = token_scores(data)
    middle = jnp.mean(scores, axis=1)
    ends = jnp.min(scores, axis=1), jnp.max(scores, axis=1)
    low, high = (end + inward * (middle - end) for end in ends)
    return _between(data, W, low, high, mixture)
