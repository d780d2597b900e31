r"""After Theorem 2: a model without attention is not consistent on an attention teacher.

Two inputs (s, c), c > 0, at s = -rc, 0, rc with r > 1, weights on the larger in size alone. One
unit of the teacher then has the targets 0, y_2, y_3 with y_2 > y_3 > 0, while one unit without
attention is monotone in s.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.models.attention.fixed_attention import EuclideanAttention, TopAttention
from attlas.models.networks.two_layer import AttendedTwoLayer, TwoLayer

_PAPER = "liu2021analyzing"
_ATTENTION = EuclideanAttention(TopAttention(jnp.abs, 1))


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """Three inputs, a teacher of one unit, and any student of one unit with a bias."""
    draws = generator(key)
    c, r, first, more = draws.uniform(0.5, 2, (4, count)) + np.array([0, 0.6, 0, 0])[:, None]
    s = (r * c)[:, None] * np.array([-1.0, 0.0, 1.0])
    second = first * r * (1 + more)
    return {
        "x": jnp.asarray(np.stack([s, np.broadcast_to(c[:, None], s.shape)], 2)),
        "W_t": jnp.asarray(np.stack([first, second], 1)[:, :, None]),
        "W": jnp.asarray(draws.normal(size=(count, 2, 1))),
        "w": jnp.asarray(draws.normal(size=(count, 1))),
        "b": jnp.asarray(draws.normal(size=count)),
    }


def _targets(instance: Instance) -> Array:
    teacher = TwoLayer(instance["W_t"], jnp.ones_like(instance["w"]))
    return jax.vmap(AttendedTwoLayer(teacher, _ATTENTION))(instance["x"])


def _sides(instance: Instance, attended: bool = False) -> Sides:
    y = _targets(instance)
    student = TwoLayer(instance["W"], instance["w"], b2=instance["b"])
    outputs = y if attended else jax.vmap(student)(instance["x"])
    least = jnp.minimum((y[1] - y[0]) ** 2, (y[1] - y[2]) ** 2) / 6
    return Sides(least, jnp.mean((outputs - y) ** 2))


def _with_attention(instance: Instance) -> Sides:
    """The student that has the teacher's attention, at the teacher's parameters."""
    return _sides(instance, attended=True)


CONSISTENCY = Claim(
    name=f"{_PAPER}/theorem-2-no-attention",
    paper=_PAPER,
    locator="After Theorem 2, 'does not have consistency'",
    statement=(
        r"\tfrac16 \min\left( (y_2 - y_1)^2, (y_2 - y_3)^2 \right) \le "
        r"\tfrac13 \sum_{i=1}^3 \left( w^{(2)} \phi(\langle w^{(1)}, x_i \rangle) + b - y_i"
        r"\right)^2 \quad \text{for all}\quad w^{(1)}, w^{(2)}, b"
    ),
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_sides,
    free=("W", "w", "b"),
    control=Control("with attention, at the teacher's parameters", sides=_with_attention),
    note=(
        "At equal width, here one unit: without attention a unit is monotone along a line, the "
        "attention teacher is not, so that an error remains at every n; with attention it is "
        "zero. The paper's words are about any width, where they are not true of inputs that "
        "determine their own attention: a wide baseline approximates the teacher."
    ),
)
