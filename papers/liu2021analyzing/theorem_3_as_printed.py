r"""Theorem 3 as printed, run: the probability of its conclusion at stationary points of two layers.

(A6) does not say for which weights. Of all of them it contradicts (A3.2) (assumption-a6); of all
with an error above gamma^2 it fails at zero (assumption-a6-at-zero). What is left is the weakest
reading, at the stationary point itself. There the theorem fails with hidden constants that do not
depend on gamma (theorem-3-run); with gamma fixed they may hold the missing factor.

Two layers of attention read two words of one entry, 1 or 3 each, uniformly; d_q = d_v = q_k = 1.
E u = 0 as (A3.1) asks: of each output its mean over the four inputs is taken off. With W_Q = W_K =
0, where their gradients vanish, all units are active and the output is s m, m the mean word less
its mean and s a product of the other weights. So every choice of weights with the s of least
squares is a stationary point of the training risk, in all weights at once.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from attlas.claims.claim import Control, Kind, Sides, Status, assume
from attlas.claims.statement import erratum, identity
from liu2021analyzing.library.bounds.liu2021_sample_size import liu2021_deep
from liu2021analyzing.library.models.deep_self_attention import (
    DeepSelfAttention,
    SelfAttentionLayer,
    make_deep_self_attention,
)
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP

_WORDS = np.array([[[1.0, 1]], [[1, 3]], [[3, 1]], [[3, 3]]])
_MEANS = _WORDS.mean(axis=(1, 2)) - _WORDS.mean()
_PARAMETERS = 2 * 3 + 2 * (1 + 1)
"""P = d_self + D (d_k + d_v) q_k."""
_NOISE, _MARGIN, _LIPSCHITZ, _RADIUS = 0.5, 0.4, 1e4, 4.0
"""sigma, c and c_k of (A6), and C_10. A feature is a product of four weights and a word of length
up to sqrt(18), with attention's derivative: c_k bounds it and its derivatives, and is in a
logarithm only."""
_HIDDEN, _ERROR = 10.0, 100.0
"""Hidden constants: of the sample size, and of the error in gamma^2."""
_ROUNDINGS = 2**10
"""Roundings of a gradient: products of six weights, at most 4 each, and sums of four terms."""


def centred_outputs(model):
    """Outputs at the four inputs, less their mean."""
    h = jax.vmap(model)(_WORDS)
    return h - jnp.mean(h)


def network(weights, s):
    """The two layers with uniform attention whose centred output is s times the mean word's."""
    zero, unit = jnp.zeros((1, 1)), jnp.ones((1, 1))
    layer = SelfAttentionLayer(zero, zero, *(weights[k] * unit for k in range(3)))
    W1 = weights[4:, None]
    w2 = s / (jnp.prod(weights[:4]) * jnp.sum(W1))
    return DeepSelfAttention(
        (layer,), SelfAttentionMLP(zero, zero, weights[3] * unit, W1, w2[None])
    )


def fitted(weights, teacher, share, noise):
    """The network of least squares, u at the inputs, and the labels' means at each input."""
    labels = teacher * _MEANS + noise
    s = jnp.sum(share * _MEANS * labels) / jnp.sum(share * _MEANS**2)
    model = network(weights, s)
    return model, centred_outputs(model) - teacher * _MEANS, labels


def samples(rng, count):
    """Weights, teachers, accuracies from 1e-5 to 1e-3, and samples of both sizes.

    Of n draws the shares of the four inputs and the mean noise at each are kept.
    """
    gamma, batch = 10 ** rng.uniform(-5, -3, count), {}
    for name, sizes in {
        "printed": [
            liu2021_deep(g, _LIPSCHITZ, _PARAMETERS, c=_HIDDEN, constants="printed") for g in gamma
        ],
        "corrected": [liu2021_deep(g, _LIPSCHITZ, _PARAMETERS, _MARGIN, _HIDDEN) for g in gamma],
    }.items():
        counts = rng.multinomial(np.ceil(sizes).astype(np.int64), np.full(4, 0.25))
        batch[f"{name}_share"] = counts / counts.sum(axis=1, keepdims=True)
        batch[f"{name}_noise"] = _NOISE * rng.normal(size=counts.shape) / np.sqrt(counts)
    weights, teacher = rng.uniform(0.8, 1.2, (count, 6)), rng.uniform(0.5, 1.5, count)
    return {**batch, "gamma": gamma, "weights": weights, "teacher": teacher}


def _stationary(weights, teacher, printed_share, printed_noise):
    """The gradient of the training risk in all weights, against its roundings."""
    model, u, labels = fitted(weights, teacher, printed_share, printed_noise)

    def risk(model):
        return jnp.sum(printed_share * (centred_outputs(model) - labels) ** 2) / 2

    slope, _ = ravel_pytree(jax.grad(risk)(model))
    size = jnp.max(jnp.abs(labels)) + jnp.max(jnp.abs(u))
    return jnp.linalg.norm(slope) <= _ROUNDINGS * jnp.finfo(slope.dtype).eps * size


def _correlated(weights, teacher, printed_share, printed_noise, gamma):
    """(A6) at k = D, r = 2, where the error exceeds gamma^2; and the gradient's bound."""
    model, u, _ = fitted(weights, teacher, printed_share, printed_noise)
    slope, back = ravel_pytree(model)
    features = jax.jacobian(lambda at: centred_outputs(back(at)))(slope)[:, -1]
    enough = jnp.abs(features @ u) / len(u) >= _MARGIN * jnp.maximum(gamma, gamma**2)
    small = jnp.mean(u**2) <= gamma**2
    return (enough | small) & (jnp.max(jnp.abs(features)) <= _LIPSCHITZ)


def _bounded(weights, teacher, printed_share, printed_noise):
    model, u, _ = fitted(weights, teacher, printed_share, printed_noise)
    largest = jnp.max(jnp.stack([jnp.linalg.norm(leaf) for leaf in jax.tree.leaves(model)]))
    return (largest <= _RADIUS) & (jnp.abs(jnp.mean(u)) <= _ROUNDINGS * jnp.finfo(u.dtype).eps)


@erratum(
    "Theorem 3, as printed",
    of=Kind.PROBABILITY,
    sample=samples,
    independent="weights, teacher, accuracy and sample",
    count=400,
    assumptions=[
        assume("all gradients of the training risk vanish", _stationary),
        assume(r"(A6) at the point, where $E u^2 > \gamma^2$, and $c_k$", _correlated),
        assume("(A3.1): bounded weights, $E u = 0$", _bounded),
    ],
    reason=r"the error is of the order of $\sigma^2/n$, and $\gamma^2$ falls as $e^{-n/50}$",
    corrected=Control(r"times $c_K / (c \gamma)^2$", corrected=True),
)
def theorem_3_run(
    weights,
    teacher,
    gamma,
    printed_share,
    printed_noise,
    corrected_share,
    corrected_noise,
    *,
    corrected=False,
):
    r"""$$n = 10 \log\left( \frac{c_k}{\gamma} \right) (d_{\mathrm{self}} + D (d_k + d_v) q_k),\
    \nabla \widehat R_n(\hat w) = 0 \quad \Rightarrow \quad
    E(h(x) - E(y|x))^2 \le 100\, \gamma^2 \quad \text{with probability } \tfrac12$$

    Two layers of attention and Gaussian noise, $n$ from 1,600 to 2,100. 'Tending to 1' is more than
    one half; here the probability is the one that a normal deviate is below about
    $10 \gamma \sqrt n / \sigma$, and tends to 0 as $\gamma$ does. The same for any two hidden
    constants that do not depend on $\gamma$. The points meet (A3.1), (A3.2), and (A6) wherever
    their error is above $\gamma^2$, with $c \gamma$ in place of its $c \gamma^2$.
    """
    sample = (corrected_share, corrected_noise) if corrected else (printed_share, printed_noise)
    _, u, _ = fitted(weights, teacher, *sample)
    return jnp.mean(u**2) <= _ERROR * gamma**2, 0.5


_SHAPE, _INPUTS = (2, (2, 3), 2, 2, 3), 6
_NETWORK = jax.eval_shape(lambda key: make_deep_self_attention(key, *_SHAPE), jax.random.key(0))
_LAYOUT = ravel_pytree(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), _NETWORK))


def teachers(rng, count):
    """Inputs of two words, and the weights of a teacher and of another network."""
    size = (count, len(_LAYOUT[0]))
    scale = 10 ** rng.uniform(-0.5, 0.5, (count, 1))
    weights = {name: scale * rng.normal(size=size) for name in ("truth", "other")}
    return {**weights, "x": rng.normal(size=(count, _INPUTS, 2, 2))}


@identity(
    "Appendix A.4, (A6) where the error exceeds $\\gamma^2$",
    status=Status.NEW,
    sample=teachers,
    roundings=128,
    controls=[Control("at other weights", part=1.0)],
)
def assumption_a6_at_zero(truth, other, x, *, part=0.0):
    r"""$$w = 0: \quad \|\mathrm{cov}(\nabla h(w), u)\| = 0, \quad E u^2 = \mathrm{Var}\, h^*(x)$$

    In all weights, hence for every $k$ and $r$. (A3.1) has balls, which contain zero; so (A6),
    asked of all weights whose error is above $\gamma^2$, holds of no teacher with a variance above
    $\gamma^2$: the network that predicts nothing has the error that the theorem promises. Two
    layers of attention on two words, six inputs.
    """

    def outputs(weights):
        h = jax.vmap(_LAYOUT[1](weights))(x)
        return h - jnp.mean(h)

    target, h = outputs(truth), outputs(part * other)
    moment = jnp.linalg.norm(jax.jacobian(outputs)(part * other).T @ (h - target)) / len(x)
    error, variance = jnp.mean((h - target) ** 2), jnp.var(target)
    left, right = jnp.stack([moment, error]), jnp.stack([0 * variance, variance])
    return Sides(left, right, jnp.stack([1 + variance, variance]))
