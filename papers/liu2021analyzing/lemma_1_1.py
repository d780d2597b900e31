r"""Lemma 1.1: where the error is large, so is the population gradient in w2.

With q = w - A' w*, A the regression of Phi* on Phi: E u^2 = q' Sigma q + w*' Var(Phi* | Phi) w*,
and the gradient is g = Sigma q. A large error makes g large against Sigma only: the lemma needs the
smallest eigenvalue of Sigma, where the paper bounds the largest.

z are the inputs times their attention weights, so that a fixed mask, a known f(x) and no attention
are the same here. Model and y are centred, as (A.L.6) asks and as the paper says can be done.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Status, assume
from attlas.claims.perturbed_draws import apart
from attlas.claims.sampling import six_decades
from attlas.claims.statement import erratum, identity, inequality
from liu2021analyzing.library.measures.conditional_covariance import conditional_covariance
from liu2021analyzing.library.models.rectifier import rectify

POINTS, INPUTS, UNITS, TEACHERS = 24, 4, 3, 2
# Means over the population, products of features and a 3 x 3 inverse.
ROUNDINGS = 4 * POINTS


def population(rng, count):
    """Students and teachers on 24 points each, of mixed sizes; related ones and unrelated ones.

    Centred features phi and phis of student and teacher, their second layers w and ws, the
    conditional covariance V of the teacher's features, and the eigenvalues of the covariance of
    the student's.
    """
    rng = apart(rng)
    z = attended(rng, count)
    Ws = rng.standard_normal((count, INPUTS, TEACHERS))
    W = rng.standard_normal((count, INPUTS, UNITS))
    # Every third student is near its teacher in two of three units.
    W[::3, :, :TEACHERS] = Ws[::3] + 0.1 * W[::3, :, :TEACHERS]
    sizes = 10 ** rng.uniform(-1, 1, (3, count, 1))
    phi, phis = centred(sizes[0][:, :, None] * (z @ W)), centred(z @ Ws)
    return {
        "V": jax.vmap(conditional_covariance)(jnp.asarray(phis), jnp.asarray(phi)).covariance,
        "phi": phi,
        "phis": phis,
        "w": rng.standard_normal((count, UNITS)) * sizes[1],
        "ws": rng.standard_normal((count, TEACHERS)) * sizes[2],
        "spectrum": np.linalg.eigvalsh(np.swapaxes(phi, 1, 2) @ phi / POINTS),
    }


def attended(rng, count):
    """Inputs in [-1, 1] times softmax weights from nearly uniform to nearly one-hot."""
    x = rng.uniform(-1, 1, (count, POINTS, INPUTS))
    logits = six_decades(rng, count)[:, None, None] * rng.standard_normal(x.shape)
    f = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return x * f / f.sum(axis=-1, keepdims=True)


def centred(preactivations):
    """Rectified units less their mean over the population."""
    units = np.maximum(preactivations, 0)
    return units - units.mean(axis=1, keepdims=True)


def error(phi, w, phis, ws):
    """E u^2 with u = w' Phi - ws' Phi*."""
    return jnp.mean((phi @ w - phis @ ws) ** 2)


def size_of_terms(phi, w, phis, ws, spectrum):
    """Size of what is added up in E u^2, times the condition of Sigma, which scales rounding."""
    student = jnp.mean((jnp.abs(phi) @ jnp.abs(w)) ** 2)
    teacher = jnp.mean((jnp.abs(phis) @ jnp.abs(ws)) ** 2)
    return (student + teacher) * spectrum[-1] / spectrum[0]


REGULAR = assume(
    "the features' covariance has a condition number of at most $10^6$",
    lambda spectrum: (spectrum[0] > 0) & (spectrum[-1] <= 1e6 * spectrum[0]),
)


def gradient(phi, w, phis, ws):
    """E[u Phi]: half the derivative of E u^2 by w, by automatic differentiation."""
    return jax.grad(lambda moved: error(phi, moved, phis, ws) / 2)(w)


def largest(V):
    """Largest eigenvalue."""
    return jnp.linalg.eigvalsh(V)[-1]


@identity(
    "Lemma 1.1, what the error consists of",
    sample=population,
    assumptions=[REGULAR],
    status=Status.SHARPENED,
    count=48,
    roundings=ROUNDINGS,
    controls=[
        Control("without the gradient", slope=False),
        Control("without the conditional variance", rest=False),
    ],
)
def lemma_1_1_identity(phi, w, phis, ws, V, spectrum, *, slope=True, rest=True):
    r"""$$E u = 0,\ g = E[u \Phi]: \quad
    E u^2 = g^\top \Sigma^{-1} g + w^{*\top} \mathrm{Var}(\Phi^* | \Phi) w^*$$

    On a finite population, the gradient by automatic differentiation. With $y = E(y|x) +
    \varepsilon$ it is the gradient of the risk with the expectation taken of $x$ and $y$.
    """
    g = gradient(phi, w, phis, ws)
    explained = g @ jnp.linalg.solve(phi.T @ phi / POINTS, g)
    right = jnp.where(slope, explained, 0.0) + jnp.where(rest, ws @ V @ ws, 0.0)
    return Sides(error(phi, w, phis, ws), right, size_of_terms(phi, w, phis, ws, spectrum))


on_populations = partial(
    inequality, sample=population, assumptions=[REGULAR], count=48, roundings=ROUNDINGS
)


@on_populations(
    "Lemma 1.1, with the smallest eigenvalue",
    status=Status.CORRECTED,
    search_over=("w", "ws"),
    controls=[
        Control(r"the largest eigenvalue of $\Sigma$", eigenvalue=-1),
        Control("without the gradient", slope=0.0),
    ],
)
def lemma_1_1(phi, w, phis, ws, V, spectrum, *, eigenvalue=0, slope=1.0):
    r"""$$E u = 0: \quad E u^2 \le \frac{\|E[u \Phi]\|_2^2}{\lambda_{\min}(\Sigma_\Phi)} +
    \|w^*\|_2^2\, \lambda_{\max}(\mathrm{Var}(\Phi^* | \Phi))$$

    Attained where the gradient is an eigenvector of the smallest eigenvalue. The first control is
    what $C_\lambda$, a bound of the largest one, would give.
    """
    norm = jnp.linalg.norm(gradient(phi, w, phis, ws)) * slope
    right = norm**2 / spectrum[eigenvalue] + jnp.linalg.norm(ws) ** 2 * largest(V)
    return Sides(error(phi, w, phis, ws), right, size_of_terms(phi, w, phis, ws, spectrum))


@on_populations(
    "Lemma 1.1, where the gradient vanishes",
    search_over="ws",
    controls=[
        Control("the student's $w$ in place of the teacher's", own=True),
        Control("where it does not vanish: $w = 0$", at_zero=True),
        Control("nine tenths of the bound", share=0.9),
    ],
)
def lemma_1_1_stationary(phi, phis, ws, V, spectrum, *, own=False, at_zero=False, share=1.0):
    r"""$$E[u \Phi] = 0,\ E u = 0: \quad
    E u^2 \le \|w^*\|_2^2\, \lambda_{\max}(\mathrm{Var}(\Phi^* | \Phi))$$

    The part of the paper's proof that holds at every point with a vanishing population gradient in
    $w^{(2)}$, whatever $W$ is: $w$ solves the normal equations. Attained at the top eigenvector of
    the conditional covariance.
    """
    target = phis @ ws
    w = jnp.linalg.solve(phi.T @ phi / POINTS, phi.T @ target / POINTS)
    left = error(phi, jnp.zeros_like(w) if at_zero else w, phis, ws)
    right = share * jnp.sum((w if own else ws) ** 2) * largest(V)
    return Sides(left, right, size_of_terms(phi, w, phis, ws, spectrum))


# Powers of two, by which scaling is exact.
_SHRINK = 2.0 ** -np.arange(3, 13, 3)
# Any constant fails for some s: the ratio of the two sides is s.
_CONSTANT = 1e-3


def evenly():
    """A teacher of one unit whose pre-activations lie evenly between -1 and 1."""
    return {"s": np.linspace(-1.0, 1.0, POINTS), "ws": np.asarray(1.0)}


@erratum(
    "Lemma 1.1, as printed: a bound of the largest eigenvalue is enough",
    witness=evenly,
    reason=r"for $W = s W^*$ the gradient is $s \sqrt{C_\lambda}$ times the error's root",
    corrected=Control("the gradient over the root of the smallest eigenvalue", divided=True),
    roundings=ROUNDINGS,
)
def lemma_1_1_printed(s, ws, *, divided=False):
    r"""$$\mathrm{Var}(\Phi^* | \Phi) = 0,\ \lambda_{\max}(\Sigma_\Phi) \le C_\lambda: \quad
    \|E[u \Phi]\|_2 \ge 10^{-3} \sqrt{C_\lambda\, E u^2}$$

    With the smallest eigenvalue in place of the largest it holds (lemma-1-1), and so it does where
    the set $S$, which the paper leaves open, keeps that one away from 0. As printed, 'at least
    $O(\gamma)$' where $E u^2 \ge \gamma^2$, no constant helps; $10^{-3} \sqrt{C_\lambda}$ stands
    for it. One unit, $W = s W^*$ with $s$ from $1/8$ to $1/4096$ and $w = 0$: the features span
    the teacher's, (A3) holds with 0, all norms are bounded, and the gradient is exactly
    $s \sqrt{C_\lambda} \sqrt{E u^2}$.
    """

    def units(shrink):
        phi = rectify(shrink * s)
        return phi - jnp.mean(phi)

    def variance(shrink):
        return jnp.mean(units(shrink) ** 2)

    u, shrunk = -ws * units(1.0), jnp.asarray(_SHRINK)
    slopes = jax.vmap(lambda shrink: jnp.abs(jnp.mean(units(shrink) * u)))(shrunk)
    size = jnp.sqrt(jnp.mean(u**2))
    if divided:
        return size, slopes / jnp.sqrt(jax.vmap(variance)(shrunk))
    # The largest eigenvalue of the family is that of s = 1.
    return _CONSTANT * jnp.sqrt(variance(1.0)) * size, slopes
