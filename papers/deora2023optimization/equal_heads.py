r"""Groups of equal heads stand for all heads: training with m copies, written out and grouped.

Not a statement of the paper but what its claims at many heads rest on here: H = 6 heads, three
copies of two, trained as six heads and as two groups.
"""

from functools import partial

import jax
import jax.numpy as jnp

from attlas.claims.claim import Control, Sides, Status
from attlas.claims.statement import identity
from attlas.losses.empirical_risk import empirical_risk
from attlas.models.attention.multi_head import MultiHead
from deora2023optimization.instances import (
    ROUNDINGS,
    grouped_heads,
    risk,
    risk_gradient,
)

_COPIES, _STEPS, _ETA = 3, 3, 0.1


def _all_heads(X, y, U, W):
    """Risks of six heads along gradient descent by automatic differentiation."""
    model = MultiHead(jnp.repeat(U, _COPIES, axis=0), jnp.repeat(W, _COPIES, axis=0))
    slope = jax.value_and_grad(lambda m: empirical_risk(m, X, y))
    risks = []
    for _ in range(_STEPS):
        loss, down = slope(model)
        risks.append(loss)
        model = jax.tree.map(lambda p, g: p - _ETA * g, model, down)
    return jnp.stack(risks)


@identity(
    "Eq. (2), heads in groups of equal copies",
    sample=partial(grouped_heads, copies=(float(_COPIES), float(_COPIES))),
    controls=[Control("a step by the gradient of the whole group", shared=True)],
    status=Status.NEW,
    alike=True,
    count=32,
    roundings=ROUNDINGS * _STEPS,
)
def equal_heads(X, y, U, W, copies, *, shared=False):
    r"""$$\theta_{h}^{(0)} = \theta_{h'}^{(0)} \;\Rightarrow\; \theta_h^{(k)} = \theta_{h'}^{(k)},
    \quad \tilde\Phi = \sqrt{\frac{m}{G}} \sum_{g \le G} \Phi(X;\theta_g),\quad H = Gm$$

    Six heads against two groups of three: the risks of three iterates agree to rounding.
    """
    data = {"X": X, "y": y, "copies": copies}
    # False: the gradient of the group in place of that of one copy, m times as long.
    step = _ETA * (copies if shared else 1)
    # A risk carries the rounding of its outputs, which are larger than itself at large decoders.
    size = 1 + jnp.sum(jnp.abs(U)) * jnp.max(jnp.abs(X)) * _COPIES
    written_out, risks = _all_heads(X, y, U, W), []
    for _ in range(_STEPS):
        risks.append(risk(data, U, W))
        slope = risk_gradient(data, U, W)
        U, W = U - step * slope[0], W - step * slope[1]
    return Sides(written_out, jnp.stack(risks), magnitude=size)
