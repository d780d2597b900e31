r"""Groups of equal heads stand for all heads: training with m copies, written out and grouped.

Not a statement of the paper but what its claims at many heads rest on here: H = 6 heads, three
copies of two, trained as six heads and as two groups.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from attlas.claims.deora2023optimization.instances import (
    ROUNDINGS,
    grouped_heads,
    risk,
    risk_gradient,
)
from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.losses.empirical_risk import empirical_risk
from attlas.models.attention.multi_head import MultiHead

_PAPER = "deora2023optimization"
_COPIES, _STEPS, _ETA = 3, 3, 0.1


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    batch = grouped_heads(generator(key), count, (float(_COPIES), float(_COPIES)))
    return {name: jnp.asarray(value) for name, value in batch.items()}


def _all_heads(instance: Instance) -> Array:
    """Risks of six heads along gradient descent by automatic differentiation."""
    U, W = (jnp.repeat(instance[k], _COPIES, axis=0) for k in "UW")
    whole = MultiHead(U, W)
    slope = jax.value_and_grad(lambda m: empirical_risk(m, instance["X"], instance["y"]))
    risks = []
    for _ in range(_STEPS):
        loss, down = slope(whole)
        risks.append(loss)
        whole = jax.tree.map(lambda p, g: p - _ETA * g, whole, down)
    return jnp.stack(risks)


def _grouped(instance: Instance, shared: bool = False) -> Sides:
    U, W = instance["U"], instance["W"]
    # False: the gradient of the group in place of that of one copy, m times as long.
    step = _ETA * (instance["copies"] if shared else 1)
    risks = []
    for _ in range(_STEPS):
        risks.append(risk(instance, U, W))
        slope = risk_gradient(instance, U, W)
        U, W = U - step * slope[0], W - step * slope[1]
    # A risk carries the rounding of its outputs, which are larger than itself at large decoders.
    reach = jnp.sum(jnp.abs(instance["U"])) * jnp.max(jnp.abs(instance["X"])) * _COPIES
    return Sides(_all_heads(instance), jnp.stack(risks), scale=1 + reach)


EQUAL_HEADS = Claim(
    name=f"{_PAPER}/equal-heads",
    paper=_PAPER,
    locator="Eq. (2), heads in groups of equal copies",
    statement=(
        r"\theta_{h}^{(0)} = \theta_{h'}^{(0)} \;\Rightarrow\; \theta_h^{(k)} = \theta_{h'}^{(k)},"
        r"\quad \tilde\Phi = \sqrt{\frac{m}{G}} \sum_{g \le G} \Phi(X;\theta_g),\quad H = Gm"
    ),
    kind=Kind.IDENTITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_grouped,
    control=Control(
        "a step by the gradient of the whole group", sides=partial(_grouped, shared=True)
    ),
    count=32,
    terms=ROUNDINGS * _STEPS,
    note="Six heads against two groups of three: the risks of three iterates agree to rounding.",
)
