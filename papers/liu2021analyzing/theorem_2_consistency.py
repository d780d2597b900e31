r"""After Theorem 2: a model without attention is not consistent for class (5); which class that is.

Words are columns of x. On a line of inputs one unit without attention is monotone, whatever its
weights; a self-attention network of one unit is not.
"""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Status
from attlas.claims.statement import inequality
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP
from liu2021analyzing.library.models.two_layer import TwoLayer

_T, _P, _TRIED = 2, 2, 24


def targets(x, direction, W_Q, W_K, W_V, W_t):
    """The teacher's outputs at three inputs on a line."""
    teacher = SelfAttentionMLP(W_Q, W_K, W_V, W_t, jnp.ones(1))
    return jnp.stack([teacher(x + s * direction) for s in (-1.0, 0.0, 1.0)])


def floor(y):
    """What every monotone function misses of three values, as a mean of squares."""
    falls = jnp.max(jnp.stack([y[0] - y[1], y[1] - y[2], y[0] - y[2]]))
    rises = jnp.max(jnp.stack([y[1] - y[0], y[2] - y[1], y[2] - y[0]]))
    return jnp.maximum(jnp.minimum(falls, rises), 0.0) ** 2 / 6


def one_unit_each(rng, count):
    """Lines and self-attention teachers of one unit, the least monotone of 24; any student."""
    shapes = {"x": (_T, _P), "direction": (_T, _P), "W_Q": (1, _T), "W_K": (1, _T),
              "W_V": (1, _T), "W_t": (_P, 1)}  # fmt: skip
    tried = {name: rng.normal(size=(count, _TRIED, *shape)) for name, shape in shapes.items()}
    missed = jax.vmap(jax.vmap(lambda *arrays: floor(targets(*arrays))))(*tried.values())
    best = np.argmax(np.asarray(missed), axis=1)
    best_arrays = {name: array[np.arange(count), best] for name, array in tried.items()}
    student = {"W": (_T * _P, 1), "w": (1,), "b": ()}
    return best_arrays | {name: rng.normal(size=(count, *shape)) for name, shape in student.items()}


@inequality(
    "After Theorem 2, 'non-attention model does not have consistency for this class'",
    sample=one_unit_each,
    search_over=("x", "direction", "W_Q", "W_K", "W_V", "W_t", "W", "w", "b"),
    controls=[Control("with attention, at the teacher's parameters", attended=True)],
)
def theorem_2_no_attention(x, direction, W_Q, W_K, W_V, W_t, W, w, b, *, attended=False):
    r"""$$\tfrac16 \min\left( \max_{i<j} (y_i - y_j)_+^2, \max_{i<j} (y_j - y_i)_+^2 \right) \le
    \tfrac13 \sum_{i=1}^3 \left( w^{(2)} \phi(\langle w^{(1)}, \mathrm{vec}(x_i) \rangle) + b - y_i
    \right)^2 \quad \text{for all}\quad w^{(1)}, w^{(2)}, b$$

    $y_i$ are the outputs of a self-attention network of one unit at three inputs on a line. At
    equal width an error remains at every $n$; with attention it is zero. The paper's words are
    about any width, where they are not true of inputs that determine their own attention: a wide
    baseline approximates the teacher.
    """
    y = targets(x, direction, W_Q, W_K, W_V, W_t)
    inputs = jnp.stack([(x + s * direction).T.reshape(-1) for s in (-1.0, 0.0, 1.0)])
    outputs = y if attended else jax.vmap(TwoLayer(W, w, b2=b))(inputs)
    return Sides(floor(y), jnp.mean((outputs - y) ** 2), jnp.mean(outputs**2 + y**2))


def unit_words(rng, count):
    """Words of length one, apart by equal angles in every other instance, and a sharpness."""
    x = rng.normal(size=(count, 4, 4))
    even = np.eye(4) + rng.uniform(0, 1, (count, 1, 1))
    x[::2] = even[::2]
    return {"x": x, "beta": 10 ** rng.uniform(-1, 1.5, count)}


def of_length_one(x, beta):
    """Words scaled to length one, and a sharpness that is not negative."""
    largest = jnp.max(jnp.abs(x), axis=-2, keepdims=True)
    x = jnp.where(largest > 0, x / jnp.where(largest > 0, largest, 1), 1.0)
    return {"x": x / jnp.linalg.norm(x, axis=-2, keepdims=True), "beta": jnp.clip(beta, 0.0, 30.0)}


@inequality(
    "Class (5) of section 3.2, words of one length",
    sample=lambda rng, count: {**(b := unit_words(rng, count)), **of_length_one(**b)},
    status=Status.NEW,
    search_over=("x", "beta"),
    project=of_length_one,
    controls=[Control("twice the exponent", rate=2.0)],
)
def theorem_2_class(x, beta, *, rate=1.0):
    r"""$$w_Q = w_K = \sqrt{2 \beta} I,\ d_q = 4,\ \|x^j\|_2 = 1: \quad
    1 - a^{(z)}_z \le (p - 1)\, e^{-\beta (1 - \max_{j \ne z} \langle x^j, x^z \rangle)}$$

    As $\beta$ grows each word attends to itself, and with $w_V = I$ the model tends to the baseline
    on $\mathrm{vec}(x)$: on such inputs class (5) is the larger one at equal width, with
    theorem-2-no-attention strictly. Words of different lengths attend to longer ones, and the
    baseline is not contained.
    """
    d = x.shape[0]
    scaled = jnp.sqrt(2 * beta) * jnp.eye(d)
    model = SelfAttentionMLP(scaled, scaled, jnp.eye(d), jnp.ones((x.size, 1)), jnp.ones(1))
    nearest = jnp.max(x.T @ x - 9 * jnp.eye(x.shape[1]), axis=0)
    right = (x.shape[1] - 1) * jnp.exp(-rate * beta * (1 - nearest))
    return Sides(1 - jnp.diag(model.attention(x)), right, 1 + right)
