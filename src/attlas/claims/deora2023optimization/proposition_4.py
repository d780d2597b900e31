r"""Proposition 4 (generalised local quasi-convexity), its sharp constant, and equation (17).

theta_1 = (U, W) and theta_2 = (U_other, W_other) satisfy the distance condition (18). With
c = (beta_3(theta_1) v beta_3(theta_2)) ||theta_1 - theta_2||^2 / sqrt(H) it says c <= 1/2; 4 to
2 10^8 heads move together, so that the distances are of order 1. The maximum over the segment is
certified from above from nine of its points.
"""

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, PRNGKeyArray

from attlas.bounds.optimisation.deora2023_loss import deora2023_beta_3
from attlas.bounds.optimisation.deora2023_model import Bound
from attlas.claims.deora2023optimization.descent import expansion, pair_curvature, pair_distance
from attlas.claims.deora2023optimization.instances import (
    ROUNDINGS,
    grouped_heads,
    heads,
    largest_head,
    risk,
    squared_distance,
    token_bound,
)
from attlas.core.generator import seed_of
from attlas.core.old_claim import (
    Assumption,
    Claim,
    Control,
    Instance,
    Kind,
    Link,
    Provenance,
    Sides,
    Status,
)
from attlas.models.attention.multi_head import MultiHead
from attlas.models.attention.multi_head_derivatives import model_gradient, model_hessian

_PAPER = "deora2023optimization"
_CELLS = 8
_LARGEST = 8 * float(np.log(4 / 3))


def _bending(instance: Instance) -> tuple[Array, Array]:
    """The direction of most positive second derivative of the margin, across its gradient.

    Both ends of a segment along it have nearly one margin, and the middle a smaller one.

    Returns:
        Directions of U and W.
    """
    U, W, X, y = instance["U"], instance["W"], instance["X"][0], instance["y"][0]
    model = MultiHead(U, W)
    slope, back = ravel_pytree(model_gradient(model, X))
    slope = slope / jnp.sqrt(jnp.sum(slope**2))
    across = jnp.eye(len(slope), dtype=slope.dtype) - slope[:, None] * slope[None, :]
    _, vectors = jnp.linalg.eigh(across @ (y * model_hessian(model, X)) @ across)
    away = back(vectors[:, -1])
    return away.U, away.W


def _two_ends(instance: Instance, limit: float | Array, bound: Bound) -> dict[str, Array]:
    """theta_1 and theta_2 about the drawn point, at the given share of the condition."""
    U, W = instance["U"], instance["W"]
    bent, drawn = _bending(instance), (instance["away_U"], instance["away_W"])
    away = [jnp.where(instance["bent"], bent[k], drawn[k]) for k in range(2)]
    length = squared_distance(instance, *away)
    near = jnp.sqrt(length / instance["copies"])
    T, d = instance["X"].shape[-2:]
    R, root, goal = token_bound(instance["X"]), jnp.sqrt(heads(instance)), limit * instance["share"]
    share = jnp.zeros_like(length)
    # beta_3 depends on the ends: it grows with the move, so that two rounds stay inside.
    for _ in range(3):
        reach = largest_head(U, W) + share / 2 * near
        beta_3 = deora2023_beta_3(T, d, R, reach, bound)
        share = jnp.sqrt(goal * root / (beta_3 * length))
    reach = largest_head(U, W) + share / 2 * near
    share = jnp.sqrt(goal * root / (deora2023_beta_3(T, d, R, reach, bound) * length))
    kept = {name: instance[name] for name in ("X", "y", "copies")}
    ends = {"U": U - share / 2 * away[0], "W": W - share / 2 * away[1]}
    return {**kept, **ends, "U_other": U + share / 2 * away[0], "W_other": W + share / 2 * away[1]}


_placed = jax.jit(jax.vmap(_two_ends, (0, None, None)), static_argnums=(2,))


@cache
def _pairs(seed: tuple[int, ...], count: int, limit: float, bound: Bound) -> Instance:
    rng = np.random.default_rng(seed)
    batch = grouped_heads(rng, count, (2.0, 1e8))
    for name in "UW":
        batch[f"away_{name}"] = rng.normal(size=batch[name].shape)
    batch["bent"] = rng.random(count) < 0.7
    batch["share"] = np.where(rng.random(count) < 0.7, 0.99, rng.uniform(0.1, 1, count))
    # Outputs of order 1, whatever the number of heads.
    spread = 10 ** rng.uniform(-1, 0.5, count) / np.sqrt(batch["copies"])
    batch["U"] = rng.normal(size=batch["U"].shape) * spread[:, None, None, None]
    # The curvature of a head is largest at opposite tokens.
    batch["X"][::2, :, 1] = -batch["X"][::2, :, 0]
    # One sample twice: a margin that dips on all samples raises the risk.
    batch["X"][:, 1], batch["y"][:, 1] = batch["X"][:, 0], batch["y"][:, 0]
    return _placed({name: jnp.asarray(value) for name, value in batch.items()}, limit, bound)


def close_pairs(
    key: PRNGKeyArray, count: int, limit: float = 0.5, bound: Bound = "printed"
) -> Instance:
    """Two points at a share of the distance that c <= limit allows.

    Args:
        key: random key; points of one key are computed once in a process.
        count: instances.
        limit: of c; 1/2 is (18).
        bound: which beta_3.

    Returns:
        Batch with X, y, copies, U, W, U_other and W_other.
    """
    seed = seed_of(key)
    return _pairs(seed, count, limit, bound)


def _bend(instance: Instance, bound: Bound = "printed") -> Array:
    """The number c of a pair."""
    return pair_curvature(instance, bound) * pair_distance(instance)[2]


def _maximum(instance: Instance, certified: bool = True) -> Array:
    """The maximum of the risk over the segment: from above, or the largest value met.

    Between two points a margin is at least its interpolation less c h^2 / 8, h = 1 / cells, and
    the risk is convex in the margins and grows by exp(s) at most when they fall by s.

    Returns:
        The upper bound, or the lower one.
    """
    by_U, by_W, _ = pair_distance(instance)
    shares = jnp.linspace(0.0, 1.0, _CELLS + 1, dtype=by_U.dtype)
    values = jax.vmap(lambda a: risk(instance, instance["U"] + a * by_U, instance["W"] + a * by_W))
    met = jnp.max(values(shares))
    return met * jnp.exp(_bend(instance, "sharp") / (8 * _CELLS**2)) if certified else met


def _ends(instance: Instance) -> Array:
    first = risk(instance, instance["U"], instance["W"])
    return jnp.maximum(first, risk(instance, instance["U_other"], instance["W_other"]))


def _quasi_convex(instance: Instance) -> Sides:
    return Sides(_maximum(instance), 4 / 3 * _ends(instance))


def _no_larger(instance: Instance) -> Sides:
    return Sides(_maximum(instance, certified=False), _ends(instance))


def _exponential(instance: Instance) -> Sides:
    return Sides(_maximum(instance), jnp.exp(_bend(instance, "sharp") / 8) * _ends(instance))


def _exponential_quarter(instance: Instance) -> Sides:
    right = jnp.exp(_bend(instance, "sharp") / 32) * _ends(instance)
    return Sides(_maximum(instance, certified=False), right)


def _at_the_limit(instance: Instance) -> Instance:
    """A moved pair, scaled about its middle to nearly the c that is allowed."""
    U, W = (instance[name] + instance[f"{name}_other"] for name in "UW")
    by_U, by_W, _ = pair_distance(instance)
    placed = instance
    # beta_3 changes with the ends: the second round corrects the first.
    scale = jnp.ones_like(U[0, 0, 0])
    for _ in range(2):
        grown = scale * jnp.sqrt(0.97 * _LARGEST / _bend(placed, "sharp"))
        # The ascent turns the pair; its length is not the ascent's to choose.
        scale = jax.lax.stop_gradient(grown)
        ends = {"U": (U - scale * by_U) / 2, "W": (W - scale * by_W) / 2}
        other = {"U_other": (U + scale * by_U) / 2, "W_other": (W + scale * by_W) / 2}
        placed = {**instance, **ends, **other}
    return placed


def _from_the_middle(key: PRNGKeyArray, count: int) -> Instance:
    """Pairs whose first point is where a margin is least along the segment."""
    batch = close_pairs(key, count, 4 * _LARGEST, "sharp")
    return {**batch, **{name: (batch[name] + batch[f"{name}_other"]) / 2 for name in "UW"}}


def _tangent(instance: Instance, part: float = 0.5) -> Sides:
    here, product, _, there = expansion(instance)
    grown = jnp.exp(part * _bend(instance, "sharp")) * there
    return Sides(here, grown - product, here + jnp.abs(product) + grown)


def _wide(instance: Instance) -> Array:
    return _bend(instance) <= 0.5


def _wider(instance: Instance) -> Array:
    return _bend(instance, "sharp") <= _LARGEST


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "count": 48,
    "terms": ROUNDINGS,
}
_FAR = partial(close_pairs, limit=1000.0, bound="sharp")

PROPOSITION_4 = Claim(
    name=f"{_PAPER}/proposition-4",
    locator="Proposition 4",
    statement=(
        r"2 \big(\beta_3(\theta_1) \vee \beta_3(\theta_2)\big) \|\theta_1 - \theta_2\|^2 \le"
        r"\sqrt H \;\Rightarrow\; \max_{\theta \in [\theta_1, \theta_2]} \widehat L(\theta) \le"
        r"\frac43 \big( \widehat L(\theta_1) \vee \widehat L(\theta_2) \big)"
    ),
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    instances=close_pairs,
    sides=_quasi_convex,
    assumptions=(Assumption("the distance condition (18)", _wide),),
    control=(
        Control("1 in place of 4/3", sides=_no_larger),
        Control("far apart, where (18) fails", instances=_FAR),
    ),
    ledger=Link("Section 6.1", 6),
    note=(
        "The risk inside the segment does exceed both ends, in three of four instances, but by "
        "0.6 percent at most under (18): margins bend by c/8 <= 1/16 only. Far beyond (18) no "
        "factor holds. See proposition-4-exponential."
    ),
    **_COMMON,
)

PROPOSITION_4_EXPONENTIAL = Claim(
    name=f"{_PAPER}/proposition-4-exponential",
    locator="Proposition 4, sharpened",
    statement=(
        r"\max_{\theta \in [\theta_1, \theta_2]} \widehat L(\theta) \le e^{c/8} \big("
        r"\widehat L(\theta_1) \vee \widehat L(\theta_2) \big),\quad c = \frac{\beta_3(\theta_1)"
        r"\vee \beta_3(\theta_2)}{\sqrt H} \|\theta_1 - \theta_2\|^2"
    ),
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    instances=partial(close_pairs, limit=_LARGEST, bound="sharp"),
    sides=_exponential,
    assumptions=(Assumption("c is at most 8 log(4/3)", _wider),),
    control=(Control("1/32 in place of 1/8", sides=_exponential_quarter),),
    free=("X", "U", "W", "U_other", "W_other"),
    domain=_at_the_limit,
    note=(
        "Margins of the middle fall by c/8 at most below their interpolation, and the logistic "
        "loss is convex and grows by exp(s) when a margin falls by s. Under (18) this is 1.0645 in "
        "place of 4/3; 4/3 needs only c <= 2.30 (4.6 times fewer in sqrt(H)), which is where the "
        "instances are, with beta_3 free of the dimension. There the risk exceeds both ends by up "
        "to 19 percent, 22 percent after a search; e^(c/8) allows 33."
    ),
    **_COMMON,
)

EQUATION_16_EXPONENTIAL = Claim(
    name=f"{_PAPER}/equation-16-exponential",
    locator="Equation (16) with Proposition 4, sharpened",
    statement=(
        r"\widehat L(\theta_k) \le e^{c/2} \widehat L(\theta) + \langle \nabla"
        r"\widehat L(\theta_k), \theta_k - \theta \rangle,\quad c = \frac{\beta_3(\theta) \vee"
        r"\beta_3(\theta_k)}{\sqrt H} \|\theta - \theta_k\|^2"
    ),
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    instances=_from_the_middle,
    sides=_tangent,
    control=(
        Control("without the factor exp(c/2)", sides=partial(_tangent, part=0.0)),
        Control("c/8 in place of c/2", sides=partial(_tangent, part=1 / 8)),
    ),
    note=(
        "A margin rises by at most c/2 above its tangent, the logistic loss is convex and falls by "
        "at most exp(-s) when a margin rises by s. No maximum over the segment and no "
        "Proposition 4 is needed, whatever c. beta_3 is the sharp one, free of the dimension. The "
        "largest ratio met is .88."
    ),
    **_COMMON,
)
