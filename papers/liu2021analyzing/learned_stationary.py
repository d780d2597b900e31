r"""Lemma 1 and Theorems 2 and 6 run: stationary points in all parameters, the attention's too.

x is uniform on 40 points, a sample of n is known by its counts, as in `stationary_runs`. From the
teacher damped steps of Gauss and Newton lead to a stationary point of the empirical risk; the
gradient at its end is certified. The output has a free bias; units are softplus. A teacher's noise
keeps its direction, and its error at a size is the mean over 8 or 16 samples of inputs: where means
vanish, errors vanish in probability (Markov's inequality).
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.claims.claim import Control, Sides, assume
from attlas.claims.perturbed_draws import apart
from attlas.claims.statement import limit
from attlas.measures.statistics.student_interval import student_interval
from liu2021analyzing.library.models.recurrent_attention import NetworkScore, RecurrentAttention
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP
from liu2021analyzing.library.models.two_layer import MaskedTwoLayer, TwoLayer

_POINTS, _STEPS = 40, 60
_SIZES, _NOISE, _SHARPNESS, _TOLERANCE = (512, 4096, 32768, 262144), 0.01, 2.0, 1e-8
_LEVEL = 1e-3
"""That one of a claim's intervals, one for each teacher and size, misses its mean."""
_ENOUGH = 1e-12
"""Gradient at which the steps of a sample end: far below the tolerance, above rounding."""


def mask(x, a, W1, w2):
    """Appendix D's model, its mask learned."""
    return MaskedTwoLayer(TwoLayer(W1, w2, sharpness=_SHARPNESS), a, trainable=True)(x)


def self_attention(x, W_Q, W_K, W_V, W1, w2):
    """Model (4)."""
    return SelfAttentionMLP(W_Q, W_K, W_V, W1, w2, sharpness=_SHARPNESS)(x)


def recurrent(x, V_s, V_x, v, W_s, W_c, b, W1, w2):
    """Appendix B's model, two steps."""
    layers = TwoLayer(W1, w2, sharpness=_SHARPNESS)
    return RecurrentAttention(W_s, W_c, b, NetworkScore(V_s, V_x, v), layers, 2)(x)


# The shape of an input, those of the attention's parameters, and of the two layers.
_SHAPES = {
    mask: ((3,), {"a": (3,)}, {"W1": (3, 2), "w2": (2,)}),
    self_attention: (
        (2, 3),
        {"W_Q": (1, 2), "W_K": (1, 2), "W_V": (1, 2)},
        {"W1": (3, 2), "w2": (2,)},
    ),
    recurrent: (
        (2, 3),
        {"V_s": (1, 1), "V_x": (1, 2), "v": (1,), "W_s": (1, 1), "W_c": (1, 2), "b": (1,)},
        {"W1": (2, 2), "w2": (2,)},
    ),
}

_SAMPLES = {mask: 16, self_attention: 8, recurrent: 8}
"""Samples of inputs at a size; at few, errors of 512 draws are wider than their fall."""


@partial(jax.jit, static_argnums=0, compiler_options=CHEAP_COMPILATION)
def _clean(model, x, theta):
    """The outputs of the teachers."""
    return jax.vmap(lambda x, t: jax.vmap(lambda sample: model(sample, **t))(x))(x, theta)


@partial(jax.jit, static_argnums=0)
def ends(model, *samples):
    """Where the steps of each sample end, one after another: each takes as many as it needs."""
    return jax.lax.map(lambda sample: _end(model, *sample), samples)


class _Point(NamedTuple):
    """Parameters, their outputs and risk, J' J and J' r."""

    z: Array
    h: Array
    risk: Array
    normal: Array
    slope: Array


def _end(model, x, weight, target, theta, free):
    """Where the steps end: the outputs, and the norm of the gradient in the free parameters."""
    flat, unravel = ravel_pytree(theta)
    moves, root = ravel_pytree(free)[0], jnp.sqrt(weight)

    def centred(values):
        return values - jnp.sum(weight * values)

    def outputs(z):
        values = centred(jax.vmap(lambda sample: model(sample, **unravel(z)))(x))
        return values, values

    def step(state):
        done, trial, damping, best = state
        J, h = jax.jacfwd(outputs, has_aux=True)(trial)
        J, r = J * moves[None, :] * root[:, None], root * (h - centred(target))
        tried = _Point(trial, h, jnp.sum(r**2), J.T @ J, J.T @ r)
        better = tried.risk <= best.risk
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), tried, best)
        damping = jnp.clip(damping * jnp.where(better, 0.1, 10.0), 1e-13, 1e3)
        size = damping * jnp.trace(best.normal) + jnp.finfo(h.dtype).tiny
        shift = jnp.linalg.solve(best.normal + size * jnp.eye(flat.size), best.slope)
        return done + 1, best.z - shift, damping, best

    def moving(state):
        done, _, _, best = state
        return (done <= _STEPS) & (jnp.linalg.norm(best.slope) > _ENOUGH)

    none = jnp.zeros((flat.size, flat.size))
    far = jnp.asarray(jnp.inf)
    first = _Point(flat, jnp.zeros_like(weight), far, none, jnp.full_like(flat, far))
    end = jax.lax.while_loop(moving, step, (jnp.asarray(0), flat, jnp.asarray(1e-5), first))[-1]
    return end.h, jnp.linalg.norm(end.slope)


def curves(rng, count, model, frozen=False):
    """Mean errors at each size; frozen: the attention is another one, and is not fitted."""
    samples = _SAMPLES[model]
    rng = apart(rng)
    inputs, attention, layers = _SHAPES[model]
    x = rng.uniform(-1.5, 1.5, (count, _POINTS, *inputs))
    theta = {k: rng.normal(size=(count, *s)) for k, s in (attention | layers).items()}
    start = dict(theta)
    if frozen:
        # A mask's first entry 0: other values than 0 are made good by the first layer.
        start |= {k: rng.normal(size=(count, *s)) for k, s in attention.items()}
        start |= {k: start[k] * (np.arange(3) > 0) for k in attention if k == "a"}
    clean = _clean(model, x, theta)
    repeat = partial(np.repeat, repeats=samples * len(_SIZES), axis=0)
    n = np.tile(_SIZES, samples * count)
    counts = np.stack([rng.multinomial(k, np.full(_POINTS, 1 / _POINTS)) for k in n])
    # The noise of a teacher keeps its direction, so that errors compare.
    noise = _NOISE * repeat(rng.normal(size=(count, _POINTS)))
    noise /= np.sqrt(np.maximum(counts, 1))
    free = {k: np.full_like(v, 0.0 if frozen and k in attention else 1.0) for k, v in start.items()}
    starts = jax.tree.map(repeat, (start, free))
    clean = repeat(np.asarray(clean))
    h, slope = ends(model, repeat(x), counts / n[:, None], clean + noise, *starts)
    u = np.asarray(h) - clean
    error = np.mean((u - u.mean(1, keepdims=True)) ** 2, axis=1)
    by_sample = count, samples, len(_SIZES)
    errors = np.moveaxis(error.reshape(by_sample), 1, 0)
    interval = student_interval(errors, confidence=1 - _LEVEL / (count * len(_SIZES)))
    return {
        "error": interval.mean,
        "width": interval.half_width,
        "slope": np.max(np.asarray(slope).reshape(by_sample), axis=1),
        "sizes": np.tile(np.asarray(_SIZES, float), (count, 1)),
    }


learned = partial(
    limit,
    scales="sizes",
    count=56,
    assumptions=[
        assume(r"$\|\nabla R_n\| \le 10^{-8}$", lambda slope: jnp.all(slope <= _TOLERANCE))
    ],
)


def fixed(model):
    """The attention fixed at another one's."""
    sample = partial(curves, model=model, frozen=True)
    return [Control("stationary in the two layers alone, for another attention", sample=sample)]


@learned(
    "Lemma 1, the error vanishes",
    sample=partial(curves, model=mask),
    controls=fixed(mask),
)
def lemma_1_consistency(error, width):
    r"""$$\nabla_{a, w} R_n(\hat{a}, \hat{w}) = 0,\ (\hat{a}, \hat{w})\ \text{reached from}\
    (a^*, w^*): \quad E \left( \hat{w}^{(2) \top}
    \phi(\langle \hat{w}^{(1)}, x \odot \hat{a} \rangle) - E(y|x) \right)^2 \to 0$$

    The stationary points to which damped steps lead from the teacher, mask and layers, at four
    sizes from 512 to 262,144; noise 0.01. Means over 16 samples of inputs per size, with Student's
    intervals at a joint level of 0.999; a teacher's noise keeps its direction. Other points keep
    their error at every size, such as $w = 0$ (zero-point).
    """
    return Sides(error, jnp.zeros(len(_SIZES)), error=width)


@learned(
    "Theorem 2, the error vanishes",
    sample=partial(curves, model=self_attention),
    controls=fixed(self_attention),
)
def theorem_2_consistency(error, width):
    r"""$$\nabla_w R_n(\hat{w}) = 0,\ \hat{w}\ \text{reached from}\ w^*,\
    w = (w^{(1)}, w^{(2)}, w_Q, w_K, w_V): \quad
    E \left( \hat{w}^{(2) \top} \phi(\langle \hat{w}^{(1)}, \mathrm{vec}(\hat{w}_V x \hat{a})
    \rangle) - E(y|x) \right)^2 \to 0$$

    As lemma-1-consistency, from 8 samples, with self-attention between three words of two entries.
    """
    return Sides(error, jnp.zeros(len(_SIZES)), error=width)


@learned(
    "Theorem 6, the error vanishes",
    sample=partial(curves, model=recurrent),
    count=72,
    controls=fixed(recurrent),
)
def theorem_6_consistency(error, width):
    r"""$$\nabla_w R_n(\hat{w}) = 0,\ \hat{w}\ \text{reached from}\ w^*,\
    w = (w^{(1)}, w^{(2)}, w_a, w_f): \quad E \left(
    \hat{w}^{(2) \top} \phi(\langle \hat{w}^{(1)}, \hat{c}_T \rangle) - E(y|x) \right)^2 \to 0$$

    As lemma-1-consistency, from 8 samples, with two steps of recurrent attention, score and update
    learned.
    """
    return Sides(error, jnp.zeros(len(_SIZES)), error=width)
