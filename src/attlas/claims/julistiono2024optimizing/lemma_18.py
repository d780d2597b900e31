r"""Lemma 18: the gradient is bounded by a constant Lambda of the data.

gamma_it are the token scores, g their largest size; |l'| is largest at the margin -g.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.claims.julistiono2024optimizing.instances import (
    ROUNDINGS,
    dual_norm,
    gradient,
    on_trajectory,
    selection,
)
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.data.token_selection import token_scores
from attlas.losses.logistic import logistic_derivative

_PAPER = "julistiono2024optimizing"


def gradient_bound(instance: Instance, factor: float | Array) -> Array:
    r"""Bound sup|l'| max_i (factor max_t |gamma_it| max_t ||X_it z_i'||_q).

    Args:
        instance: with X, y, z, v, p.
        factor: 2 in the lemma, 1 sharpened.

    Returns:
        The scalar Lambda.
    """
    scores = jnp.max(jnp.abs(token_scores(selection(instance))), axis=1)
    steepest = jnp.max(-logistic_derivative(-scores))
    p = instance["p"]
    # The norm of an outer product is the product of the norms.
    tokens = jax.vmap(jax.vmap(dual_norm, (0, None)), (0, None))(instance["X"], p)
    queries = jax.vmap(dual_norm, (0, None))(instance["z"], p)
    return steepest * jnp.max(factor * scores * jnp.max(tokens, axis=1) * queries)


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """Points of trajectories, and opposite tokens at uniform attention with small scores."""
    batch = {name: np.array(value) for name, value in on_trajectory(key, count).items()}
    even = slice(None, None, 2)
    # One token against all others cannot be balanced at T = 3: two opposite ones and a zero.
    batch["v"][even] *= 0.1
    batch["X"][even, :, 1] = -batch["X"][even, :, 0]
    batch["X"][even, :, 2] = 0
    batch["X"][even] = batch["X"][even, :1]
    batch["z"][even] = batch["z"][even, :1]
    batch["y"][even] = batch["y"][even, :1]
    batch["W"][even] = 0
    return {name: jnp.asarray(value) for name, value in batch.items()}


def _sides(instance: Instance, factor: float) -> Sides:
    size = dual_norm(gradient(instance, instance["W"]), instance["p"])
    return Sides(size, gradient_bound(instance, factor))


LEMMA_18 = Claim(
    name=f"{_PAPER}/lemma-18",
    paper=_PAPER,
    locator="Lemma 18",
    statement=(
        r"\|\nabla \mathcal{L}(W)\|_{q,q} \le \Lambda ="
        r"\sup|\ell'| \max_i \big( 2 \max_t |\gamma_{it}| \max_t \|X_{it} z_i^\top\|_{q,q} \big)"
    ),
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=partial(_sides, factor=2.0),
    free=("W", "X", "v"),
    control=(Control("a quarter of the bound", sides=partial(_sides, factor=0.5)),),
    terms=ROUNDINGS,
    note="The factor 2 is not needed: see the sharpened claim.",
)

LEMMA_18_SHARP = Claim(
    name=f"{_PAPER}/lemma-18-sharp",
    paper=_PAPER,
    locator="Lemma 18, without the factor 2",
    statement=(
        r"\|\nabla \mathcal{L}(W)\|_{q,q} \le"
        r"\sup|\ell'| \max_i \big( \max_t |\gamma_{it}| \max_t \|X_{it} z_i^\top\|_{q,q} \big)"
    ),
    kind=Kind.INEQUALITY,
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=partial(_sides, factor=1.0),
    free=("W", "X", "v"),
    control=(Control("half of the bound", sides=partial(_sides, factor=0.5)),),
    terms=ROUNDINGS,
    note=(
        "The supremum of sum_t s_t |gamma_t - mean| is max |gamma|, at two opposite scores with "
        "weight 1/2 each. A third token of weight 0 reaches it: the ratio found tends to 1."
    ),
)
