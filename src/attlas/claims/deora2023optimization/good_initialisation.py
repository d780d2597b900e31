r"""Definition 1 (good initialisation), Proposition 7 and Assumption 2.

P3 has a direction theta_star of norm sqrt(2) with margin gamma in the tangent features;
c = (2 B_Phi + log(1/epsilon)) / gamma, and the target is theta_0 + c theta_star.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from attlas.bounds.optimisation.deora2023_initialisation import (
    deora2023_target_distance,
    deora2023_target_heads,
    deora2023_target_scale,
)
from attlas.bounds.optimisation.deora2023_loss import deora2023_beta_3
from attlas.claims.deora2023optimization.good_instances import (
    B_PHI,
    GOOD,
    good_initialisations,
    largest_start,
    target_of,
)
from attlas.claims.deora2023optimization.instances import (
    ROUNDINGS,
    largest_head,
    margins,
    risk,
    squared_distance,
)
from attlas.core.old_claim import (
    Claim,
    Control,
    Instance,
    Kind,
    Link,
    Provenance,
    Sides,
    Status,
)

_PAPER = "deora2023optimization"
_CHAIN = "Corollary 2"


def _shuffled(instance: Instance) -> Instance:
    """The labels of other samples: two of three change."""
    return {**instance, "y": jnp.roll(instance["y"], 1)}


def _separability(instance: Instance) -> Sides:
    """P3 by directional derivatives of the model, against the margin of the kernel SVM."""
    one = {**instance, "copies": jnp.ones(())}
    start, star = [[instance[f"{pre}{k}"] for k in "UW"] for pre in ("", "star_")]
    _, slopes = jax.jvp(lambda U, W: margins(one, U, W), tuple(start), tuple(star))
    return Sides(
        instance["margin"], jnp.min(slopes), error=instance["margin_above"] - instance["margin"]
    )


def _with_heads(instance: Instance) -> tuple[Instance, tuple[Array, Array]]:
    """As many heads as Proposition 7 asks for, and the target."""
    T, d = instance["X"].shape[-2:]
    needed = deora2023_target_heads(
        T, d, instance["R"], largest_start(instance), B_PHI, instance["margin"], instance["epsilon"]
    )
    copies = jnp.ceil(needed / instance["U"].shape[0])
    return {**instance, "copies": copies}, target_of(instance, instance["epsilon"], copies)


def _taylor(instance: Instance, curved: bool = True, shuffled: bool = False) -> Sides:
    """Smallest margin of the target from below, on the actual segment."""
    whole, target = _with_heads(_shuffled(instance) if shuffled else instance)
    T, d = instance["X"].shape[-2:]
    x = jnp.maximum(largest_head(*target), largest_head(instance["U"], instance["W"]))
    c = deora2023_target_scale(B_PHI, instance["margin"], instance["epsilon"])
    H = instance["U"].shape[0] * whole["copies"]
    lost = c**2 * deora2023_beta_3(T, d, instance["R"], x) / jnp.sqrt(H)
    start = jnp.max(jnp.abs(margins(whole, instance["U"], instance["W"])))
    left = c * instance["margin"] - start - (lost if curved else 0)
    return Sides(left, jnp.min(margins(whole, *target)), scale=c * instance["margin"] + B_PHI)


def _realised(instance: Instance, shuffled: bool = False) -> Sides:
    """(i) risk, (ii) distance, (iii) largest head of the target."""
    whole, target = _with_heads(_shuffled(instance) if shuffled else instance)
    move = [target[0] - instance["U"], target[1] - instance["W"]]
    g_0 = deora2023_target_distance(B_PHI, instance["margin"], instance["epsilon"])
    found = risk(whole, *target), jnp.sqrt(squared_distance(whole, *move)), largest_head(*target)
    bounds = instance["epsilon"], g_0, largest_start(instance) + g_0
    # The target is far in the sum over all heads and near in each: the difference cancels.
    whole_start = jnp.sqrt(squared_distance(whole, instance["U"], instance["W"]))
    sizes = jnp.stack([jnp.ones(()), whole_start + g_0, bounds[2]])
    return Sides(jnp.stack(found), jnp.stack(bounds), scale=sizes)


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "status": Status.RECONSTRUCTED,
    "provenance": Provenance.DERIVED,
    "instances": good_initialisations,
    "assumptions": GOOD,
    "terms": ROUNDINGS,
    "count": 48,
}
_SHUFFLED = "labels shuffled"


def _common(**changes: Any) -> dict[str, Any]:
    return _COMMON | changes


SEPARABILITY = Claim(
    name=f"{_PAPER}/definition-1-p3",
    locator="Definition 1, P3",
    statement=(
        r"\gamma \le \min_i y_i \langle \nabla\tilde\Phi(X_i;\theta_0), \theta_\star\rangle,\quad "
        r"\|\theta_\star\| = \sqrt 2"
    ),
    sides=_separability,
    control=Control(_SHUFFLED, sides=lambda i: _separability(_shuffled(i))),
    note=(
        "gamma is the certified margin of the SVM on the tangent kernel, the right side a "
        "directional derivative of the model. Starts: zero, one step from zero, Gaussian heads in "
        "opposite pairs. P1 and P2 hold with B_2 = max(1, largest head) and B_Phi = 1."
    ),
    **_COMMON,
)

TAYLOR = Claim(
    name=f"{_PAPER}/proposition-7-margin",
    locator="Proposition 7, proof",
    statement=(
        r"\min_i y_i \tilde\Phi(X_i;\theta_{(\epsilon)}) \ge -B_\Phi + c\gamma -"
        r"\frac{c^2\|\theta_\star\|^2}{2} \frac{\beta_3}{\sqrt H},\quad "
        r"c = \frac{2B_\Phi + \log(1/\epsilon)}{\gamma}"
    ),
    sides=_taylor,
    control=Control(_SHUFFLED, sides=partial(_taylor, shuffled=True)),
    ledger=Link(_CHAIN, 1),
    note="With the outputs at the start themselves in place of B_Phi, and beta_3 on the segment.",
    **_COMMON,
)

PROPOSITION_7 = Claim(
    name=f"{_PAPER}/proposition-7",
    locator="Proposition 7; Assumption 2 under Definition 1",
    statement=(
        r"\sqrt H \ge \frac{c^2\beta_3(B_2 + \sqrt 2 c)}{B_\Phi} \;\Rightarrow\;"
        r"\widehat{L}(\theta_{(\epsilon)}) \le \epsilon,\quad "
        r"\|\theta_{(\epsilon)} - \theta_0\| \le g_0(\epsilon) = \sqrt 2 c,\quad "
        r"\|\theta_{(\epsilon)}\|_{2,\infty} \le g(\epsilon) = B_2 + \sqrt 2 c"
    ),
    sides=_realised,
    control=Control(_SHUFFLED, sides=partial(_realised, shuffled=True)),
    ledger=Link(_CHAIN, 2),
    note=(
        "The number of heads is the smallest that the condition allows. The distance is exactly "
        "sqrt(2) c, as P3 has norm sqrt(2): Corollary 2 takes g_0 = c. Both functions fall with "
        "epsilon, as Assumption 2 asks. The risk is at most .135 = exp(-2 B_Phi) times epsilon: "
        "twice B_Phi is given away where the outputs at the start are zero."
    ),
    **_COMMON,
)
