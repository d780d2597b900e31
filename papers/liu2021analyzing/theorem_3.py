r"""Theorem 3 (appendix A.4): D layers, the factor 1/gamma^2 that is missing, and the count."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from attlas.claims.claim import Control, Kind, Sides, Source, Status, assume
from attlas.claims.sampling import six_decades
from attlas.claims.statement import erratum, identity, inequality
from liu2021analyzing.library.bounds.liu2021_sample_size import liu2021_deep
from liu2021analyzing.library.models.deep_self_attention import (
    DeepSelfAttention,
    SelfAttentionLayer,
    make_deep_self_attention,
)
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP

# Twice log N: at log N itself the bound of the probability is one.
_HIDDEN = 2.0


def setting(gamma, c_k, parameters, margin):
    """The numbers of the theorem with both sample sizes."""
    return {
        "gamma": gamma,
        "c_k": c_k,
        "parameters": float(parameters),
        "margin": margin,
        "printed": liu2021_deep(gamma, c_k, parameters, c=_HIDDEN, constants="printed"),
        "corrected": liu2021_deep(gamma, c_k, parameters, margin, c=_HIDDEN),
    }


def settings(rng, count):
    """Accuracies from 1 to 1/1000, with a covering number (c_K / m gamma)^P as in the proof."""
    rows = []
    for _ in range(count):
        gamma = 10 ** rng.uniform(-3, 0)
        c_k = gamma * 10 ** rng.uniform(0.5, 3)
        rows.append(setting(gamma, c_k, int(rng.integers(5, 10**4)), rng.uniform(0.3, 1)))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def log_probability(n, gamma, c_k, parameters, margin):
    """Logarithm of N exp(-n m^2 gamma^2 / c_K): at most 0, and at least -log N."""
    level = margin * gamma
    cover, exponent = parameters * jnp.log(c_k / level), n * level**2 / c_k
    excess = cover - exponent
    left, right = (excess, -cover), (jnp.zeros_like(cover), excess)
    return Sides(jnp.stack(left), jnp.stack(right), cover + exponent)


def accuracy_of_a_hundredth():
    """Accuracy 0.01, c_K = 1, ten parameters."""
    return {name: np.asarray(value) for name, value in setting(0.01, 1.0, 10, 1.0).items()}


@erratum(
    "Theorem 3, the sample size",
    witness=accuracy_of_a_hundredth,
    reason=r"the tail bound of the proof needs a factor $1/\gamma^2$",
    corrected=Control(r"times $c_K / (c \gamma)^2$", with_factor=True),
)
def theorem_3(printed, corrected, gamma, c_k, parameters, margin, *, with_factor=False):
    r"""$$n = 2 \log\left( \frac{c_K}{\gamma} \right) P \quad \Rightarrow \quad
    N e^{-n c^2 \gamma^2 / c_K} \le 1, \quad N = \left( \frac{c_K}{c \gamma} \right)^P,
    \quad P = d_{\mathrm{self}} + D (d_k + d_v) q_k$$

    $\gamma = .01$, $c_K = 1$, $P = 10$: the printed 92 samples leave a 'probability' of $e^{46}$.
    No proof could give the print: $\gamma^2$ would fall as $e^{-2n/P}$, while a mere regression on
    $P$ parameters has an error of $\sigma^2 P/n$ (theorem-1-constant). The hidden constant is 2.
    The theorem itself is run in theorem-3-run.
    """
    n = corrected if with_factor else printed
    return log_probability(n, gamma, c_k, parameters, margin)


@inequality(
    "Theorem 3, with the factor of its tail bound",
    sample=settings,
    status=Status.CORRECTED,
    controls=[Control("as printed", with_factor=False), Control("1 % more samples", more=1.01)],
    evaluations=384,
)
def theorem_3_corrected(
    printed, corrected, gamma, c_k, parameters, margin, *, with_factor=True, more=1.0
):
    r"""$$n = \frac{2 c_K}{c^2 \gamma^2} \log\left( \frac{c_K}{c \gamma} \right) P \quad
    \Rightarrow \quad \frac1N \le N e^{-n c^2 \gamma^2 / c_K} \le 1$$

    A condition on the formula only: (A6) asks that the gradient be correlated with the error
    wherever that is large, which is the theorem's conclusion but for the sampling.
    """
    n = more * corrected if with_factor else printed
    return log_probability(n, gamma, c_k, parameters, margin)


def counted_networks(rng, count):
    """Networks of two and three layers of equal sizes, with their parameters counted."""
    rows = []
    for place in range(count):
        layers = 2 + place % 2
        p, t, d_q, d_v, units = (int(k) for k in rng.integers(2, 6, 5))

        def build(key, shape=(p, (t,) * layers, d_q, d_v, units)):
            return make_deep_self_attention(key, *shape)

        network = jax.eval_shape(build, jax.random.key(0))
        leaves = sum(leaf.size for leaf in jax.tree.leaves(network))
        attention = layers * (2 * d_q * t + d_v * t)
        printed = attention + layers * (t + d_v) * units
        corrected = attention + (layers - 1) * (t + d_v) * units + (p * d_v + 1) * units
        rows.append((leaves, printed, corrected))
    leaves, printed, corrected = np.array(rows, float).T
    return {"leaves": leaves, "printed": printed, "corrected": corrected}


@identity(
    "Appendix A.4, number of parameters",
    sample=counted_networks,
    status=Status.CORRECTED,
    count=32,
    controls=[Control("$D (d_k + d_v) q_k$, as printed", as_printed=True)],
)
def theorem_3_parameters(leaves, printed, corrected, *, as_printed=False):
    r"""$$\#w = d_{\mathrm{self}} + \sum_{k < D} (d_k + d_v) q_k + (p d_v + 1) q_D, \quad
    d_{\mathrm{self}} = \sum_k (2 d_q + d_v) d_{k-1}$$

    Counted from the arrays of networks of two and three layers. The last layer flattens its $p$
    words, so that $w_{D1}$ has $p d_v$ rows, and not $d_v$; its print $1 \times d_v$ is a third
    version. The proof has $D (d_k + d_v q_k)$ besides.
    """
    return leaves, printed if as_printed else corrected


def teacher_at_four_inputs():
    """Centred last features of a teacher at four inputs, and its second layer."""
    phi = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    return {"phi": phi, "w": np.array([1.0, 2.0]), "other": np.array([1.5, 2.0])}


@erratum(
    "Appendix A.4, (A6)",
    Source.DERIVED,
    witness=teacher_at_four_inputs,
    reason="at the true parameters $u = 0$, and (A3.2) has them",
    corrected=Control("at other parameters", elsewhere=True),
)
def assumption_a6(phi, w, other, *, elsewhere=False):
    r"""$$c \gamma^2 \le \|\mathrm{cov}(\nabla h(w_{kr}), u)\| \quad \text{for all}\quad w, \quad
    y = h(x; w^*) + \varepsilon$$

    (A6) at $k = D$, $r = 2$, read for all weights, which it does not say, with $c \gamma^2 = .01$.
    (A6) and (A3.2) exclude each other unless (A6) is asked only where $E u^2$ is at least
    $\gamma^2$; then it is the conclusion but for the sampling. And it bounds the gradient by
    $c \gamma^2$ from below, where the proof goes on with $c \gamma$: as printed the tail bound is
    $e^{-n c^2 \gamma^4 / c_K}$, and the sample size has $1/\gamma^4$.
    """
    u = phi @ ((other if elsewhere else w) - w)
    return 0.01, jnp.linalg.norm(phi.T @ u) / phi.shape[0]


# Theorem 3 as printed, run: the probability of its conclusion at stationary points of two layers.
#
# (A6) does not say for which weights. Of all of them it contradicts (A3.2) (assumption-a6); of all
# with an error above gamma^2 it fails at zero (assumption-a6-at-zero). What is left is the weakest
# reading, at the stationary point itself. There the theorem fails with hidden constants that do not
# depend on gamma (theorem-3-run); with gamma fixed they may hold the missing factor.
#
# Two layers of attention read two words of one entry, 1 or 3 each, uniformly; d_q = d_v = q_k = 1.
# E u = 0 as (A3.1) asks: of each output its mean over the four inputs is taken off. With
# W_Q = W_K = 0, where their gradients vanish, all units are active and the output is s m, m the
# mean word less its mean and s a product of the other weights. So every choice of weights with the
# s of least squares is a stationary point of the training risk, in all weights at once.

_WORDS = np.array([[[1.0, 1]], [[1, 3]], [[3, 1]], [[3, 3]]])
_MEANS = _WORDS.mean(axis=(1, 2)) - _WORDS.mean()
_PARAMETERS = 2 * 3 + 2 * (1 + 1)
"""P = d_self + D (d_k + d_v) q_k."""
_NOISE, _MARGIN, _LIPSCHITZ, _RADIUS = 0.5, 0.4, 1e4, 4.0
"""sigma, c and c_k of (A6), and C_10. A feature is a product of four weights and a word of length
up to sqrt(18), with attention's derivative: c_k bounds it and its derivatives, and is in a
logarithm only."""
_SIZE_CONSTANT, _ERROR = 10.0, 100.0
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
            liu2021_deep(g, _LIPSCHITZ, _PARAMETERS, c=_SIZE_CONSTANT, constants="printed")
            for g in gamma
        ],
        "corrected": [
            liu2021_deep(g, _LIPSCHITZ, _PARAMETERS, _MARGIN, _SIZE_CONSTANT) for g in gamma
        ],
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


def marked_queries(network):
    """A network's arrays with ones in place of its query matrices, and zeros elsewhere."""

    def marked(path, leaf):
        return jnp.full(leaf.shape, float(path[-1].name == "W_Q"))

    return jax.tree_util.tree_map_with_path(marked, network)


_SHAPE, _INPUTS = (2, (2, 3), 2, 2, 3), 6
_NETWORK = jax.eval_shape(lambda key: make_deep_self_attention(key, *_SHAPE), jax.random.key(0))
_LAYOUT = ravel_pytree(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), _NETWORK))
_QUERIES = np.asarray(ravel_pytree(marked_queries(_NETWORK))[0]) > 0


def teachers(rng, count):
    """Inputs of two words, and the weights of a teacher and of another network."""
    size = (count, len(_LAYOUT[0]))
    scale = 10 ** rng.uniform(-0.5, 0.5, (count, 1))
    weights = {name: scale * rng.normal(size=size) for name in ("truth", "other")}
    weights["truth"][:, _QUERIES] *= six_decades(rng, count, 0, 0)[:, None]
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
