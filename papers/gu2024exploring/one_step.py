r"""One step of gradient descent, taken apart as in Lemma E.1, at any point of the weights.

With S_i the softmax at tau, delta_ir = -eta <Delta w_r, x_i> and q_i = sum_r S_ir (exp(delta_ir)
- 1), so that alpha_i(tau + 1) = alpha_i(tau) (1 + q_i), no difference of close numbers is taken:
F_li(tau + 1) - F_li(tau) = m sum_r (a_lr - F_li / m) S_ir (exp(delta_ir) - 1) / (1 + q_i).
"""

from copy import deepcopy
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.claims.perturbed_draws import apart
from attlas.models.networks.softmax_network import SoftmaxNetwork
from gu2024exploring.instances import perturb, symmetric_networks
from gu2024exploring.library.training.softmax_network_gradient import network_gradient
from gu2024exploring.trajectories import COUNT, GENERAL, STEPS, runs

SIZES = (3, 8, 2, 3)
"""d, m, k and n of a drawn point."""
ROUNDINGS = 512
"""Products over d = 3, m = 8 to 256 and n k = 6 to 8 terms, a softmax, and a square norm."""


class Step(NamedTuple):
    """What one step does to the outputs.

    Attributes:
        F: outputs before the step.
        after: outputs after the step.
        u: F - Y.
        change: F(tau + 1) - F(tau).
        S: softmax before the step.
        delta: -eta <Delta w_r, x_i>.
        q: relative change of the denominator.
        v: v_0, v_1 and v_2 of Lemma E.1, with Theta(1) = (e^delta - 1 - delta) / delta^2.
        gradient: the largest ||Delta w_r||.
        share: P, the largest m S_ir.
        c: 1 + max |F| / m, which bounds |a_lr - F_li / m| for a = +-1.
        size: n k.
    """

    F: Float[Array, "n k"]
    after: Float[Array, "n k"]
    u: Float[Array, "n k"]
    change: Float[Array, "n k"]
    S: Float[Array, "n m"]
    delta: Float[Array, "n m"]
    q: Float[Array, " n"]
    v: Float[Array, "3 n k"]
    m: float
    eta: Array
    gradient: Array
    share: Array
    c: Array
    size: float


def take(W, a, X, Y, *, eta=None, part=1.0):
    """One step of length eta, or of the `part` of that at which eta max ||Delta w_r|| is 0.01."""
    m = W.shape[1]
    S = jax.nn.softmax(X @ W, axis=1)
    F = m * (S @ a.T)
    slope = network_gradient(SoftmaxNetwork(W, a), X, Y)
    largest = jnp.sqrt(jnp.max(jnp.sum(slope**2, axis=0)))
    eta = 0.01 * part / largest if eta is None else eta
    delta = -eta * (X @ slope)
    grown = S * jnp.expm1(delta)
    q = jnp.sum(grown, axis=1)
    change = m * (grown @ a.T - F / m * q[:, None]) / (1 + q)[:, None]
    return Step(
        F=F,
        after=F + change,
        u=F - Y,
        change=change,
        S=S,
        delta=delta,
        q=q,
        v=_terms(a, S, delta),
        m=float(m),
        eta=eta,
        gradient=largest,
        share=m * jnp.max(S),
        c=1 + jnp.max(jnp.abs(F)) / m,
        size=float(F.size),
    )


def _terms(a, S, delta):
    grown = S * jnp.exp(delta)
    v_0 = (grown / jnp.sum(grown, axis=1, keepdims=True) - grown) @ a.T
    v_1 = (S * delta) @ a.T
    v_2 = (S * (jnp.expm1(delta) - delta)) @ a.T
    return a.shape[1] * jnp.stack((v_0, v_1, v_2))


def norm(x):
    """Frobenius norm, differentiable away from zero."""
    return jnp.sqrt(jnp.sum(x**2))


def within_unit_ball(X, Y):
    """Where a search stays: rows of X and Y of length 1 at most."""
    lengths = {"X": jnp.sum(X**2, axis=1), "Y": jnp.sum(Y**2, axis=1)}
    cut = {name: jnp.maximum(jnp.sqrt(v + 1e-30), 1)[:, None] for name, v in lengths.items()}
    return {"X": X / cut["X"], "Y": Y / cut["Y"]}


def points(rng, count):
    """Symmetric networks moved by 1e-6 to 1 in every column: flat and saturated attention."""
    rng = apart(rng)
    batch = perturb(rng, symmetric_networks(rng, count, SIZES), (1e-6, 1.0))
    instance = {name: batch[name] for name in ("a", "X", "Y")}
    return instance | {"W": batch["W_tilde"], "part": 10 ** rng.uniform(-2, 0, count)}


def visited(rng, count):
    """Random records of the trainings in turn; `most` and `least` are eigenvalues of H(tau)."""
    training = runs(deepcopy(rng), min(count, COUNT), GENERAL)
    row = np.arange(count) % COUNT
    # Past the middle the residuals of the best runs are rounding.
    at = apart(rng).integers(len(STEPS) // 2, size=count)
    values = np.linalg.eigvalsh(training["kernels"][row, at])
    named = {name: training[name][row] for name in ("a", "X", "Y", "eta", "lam")}
    return named | {"W": training["path"][row, at], "least": values[:, 0], "most": values[:, -1]}
