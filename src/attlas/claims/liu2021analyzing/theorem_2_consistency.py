r"""After Theorem 2: a model without attention is not consistent on an attention teacher.

Two inputs (s, c), c > 0, at s = -rc, 0, rc with r > 1, weights on the larger in size alone. One
unit of the teacher then has the targets 0, y_2, y_3 with y_2 > y_3 > 0, while one unit without
attention is monotone in s.
"""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.core.claim import Control
from attlas.core.statement import inequality
from attlas.models.attention.fixed_attention import EuclideanAttention, TopAttention
from attlas.models.networks.two_layer import AttendedTwoLayer, TwoLayer

_ATTENTION = EuclideanAttention(TopAttention(jnp.abs, 1))


def one_unit_each(rng, count):
    """Three inputs, a teacher of one unit, and any student of one unit with a bias."""
    c, r, first, more = rng.uniform(0.5, 2, (4, count)) + np.array([0, 0.6, 0, 0])[:, None]
    s = (r * c)[:, None] * np.array([-1.0, 0.0, 1.0])
    second = first * r * (1 + more)
    return {
        "x": np.stack([s, np.broadcast_to(c[:, None], s.shape)], 2),
        "W_t": np.stack([first, second], 1)[:, :, None],
        "W": rng.normal(size=(count, 2, 1)),
        "w": rng.normal(size=(count, 1)),
        "b": rng.normal(size=count),
    }


@inequality(
    "After Theorem 2, 'does not have consistency'",
    sample=one_unit_each,
    search_over=("W", "w", "b"),
    controls=[Control("with attention, at the teacher's parameters", attended=True)],
)
def theorem_2_no_attention(x, W_t, W, w, b, *, attended=False):
    r"""$$\tfrac16 \min\left( (y_2 - y_1)^2, (y_2 - y_3)^2 \right) \le
    \tfrac13 \sum_{i=1}^3 \left( w^{(2)} \phi(\langle w^{(1)}, x_i \rangle) + b - y_i
    \right)^2 \quad \text{for all}\quad w^{(1)}, w^{(2)}, b$$

    At equal width, here one unit: without attention a unit is monotone along a line, the attention
    teacher is not, so that an error remains at every $n$; with attention it is zero. The paper's
    words are about any width, where they are not true of inputs that determine their own attention:
    a wide baseline approximates the teacher.
    """
    y = jax.vmap(AttendedTwoLayer(TwoLayer(W_t, jnp.ones_like(w)), _ATTENTION))(x)
    outputs = y if attended else jax.vmap(TwoLayer(W, w, b2=b))(x)
    least = jnp.minimum((y[1] - y[0]) ** 2, (y[1] - y[2]) ** 2) / 6
    return least, jnp.mean((outputs - y) ** 2)
