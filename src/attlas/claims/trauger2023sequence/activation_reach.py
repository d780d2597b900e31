r"""Section 2.6: the activation after Pi_norm, as the covers of Appendix E need it."""

import jax.numpy as jnp

from attlas.claims.trauger2023sequence.layer_instances import WIDTH, longest, stretched
from attlas.core.claim import Control, Sides
from attlas.core.statement import inequality
from attlas.models.networks.transformer import pi_norm


def rows(rng, count):
    """Two rows, from far inside the ball to far outside, close to each other or not."""
    a = 10.0 ** rng.uniform(-2, 2, (count, 1)) * rng.normal(size=(count, WIDTH))
    b = a + 10.0 ** rng.uniform(-3, 1, (count, 1)) * rng.normal(size=a.shape)
    slope = rng.uniform(0, 1, count)
    return {"a": a, "b": b, "slope": slope, "lipschitz": rng.uniform(0.3, 3, count)}


@inequality(
    "Section 2.6 and proof of Theorem 4.2",
    sample=rows,
    roundings=32,
    controls=[
        Control("norm 1 behind the activation", reach=False),
        Control("Lipschitz constant 1", stretch=False),
    ],
)
def section_2_6_activation(a, b, slope, lipschitz, *, reach=True, stretch=True):
    r"""$$\|\sigma(\Pi a) - \sigma(\Pi b)\| \le L_\sigma \|a-b\|, \quad
    \|\sigma(\Pi a)\| \le L_\sigma$$

    Both are attained. What the cover of $W_c$ must allow is $L_\sigma$, not the 1 of the print
    (theorem-4-2-output-reach).
    """
    after = [stretched(pi_norm(row), lipschitz, slope) for row in (a, b)]
    left = jnp.stack([longest((after[0] - after[1])[None]), longest(after[0][None])])
    one = jnp.ones(())
    moved = (lipschitz if stretch else one) * longest((a - b)[None])
    right = jnp.stack([moved, lipschitz if reach else one])
    return Sides(left, right, magnitude=right + 1)
