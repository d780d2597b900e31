r"""One step of gradient descent, taken apart as in Lemma E.1, at any point of the weights.

With S_i the softmax at tau, delta_ir = -eta <Delta w_r, x_i> and q_i = sum_r S_ir (exp(delta_ir)
- 1), so that alpha_i(tau + 1) = alpha_i(tau) (1 + q_i), no difference of close numbers is taken:
F_li(tau + 1) - F_li(tau) = m sum_r (a_lr - F_li / m) S_ir (exp(delta_ir) - 1) / (1 + q_i).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.claims.gu2024exploring.instances import (
    as_arrays,
    network,
    perturb,
    symmetric_networks,
)
from attlas.claims.gu2024exploring.trajectories import GENERAL, STEPS, Setting, runs
from attlas.core.generator import seed_of
from attlas.core.old_claim import Instance
from attlas.models.networks.softmax_network_gradient import network_gradient

SIZES = (3, 8, 2, 3)
"""d, m, k and n of a drawn point."""
ROUNDINGS = 512
"""Products over d = 3, m = 8 to 256 and n k = 6 to 8 terms, a softmax, and a square norm."""


class Step(NamedTuple):
    """What one step does to the outputs.

    Attributes:
        F: outputs before.
        after: outputs after.
        u: F - Y.
        change: F(tau + 1) - F(tau).
        S: softmax before.
        delta: -eta <Delta w_r, x_i>.
        q: relative change of the denominator.
        m: width.
        eta: step size.
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
    m: float
    eta: Array
    gradient: Array
    share: Array
    c: Array
    size: float


def take(instance: Instance) -> Step:
    """One step from the weights of an instance, of length eta or of the share of the largest.

    Args:
        instance: with W, a, X, Y and either eta, or `part`: the step at which the largest
            eta ||Delta w_r|| is .01 part.

    Returns:
        The step.
    """
    X, a, m = instance["X"], instance["a"], instance["W"].shape[1]
    S = jax.nn.softmax(X @ instance["W"], axis=1)
    F = m * (S @ a.T)
    slope = network_gradient(network(instance), X, instance["Y"])
    largest = jnp.sqrt(jnp.max(jnp.sum(slope**2, axis=0)))
    eta = instance["eta"] if "eta" in instance else 0.01 * instance["part"] / largest
    delta = -eta * (X @ slope)
    grown = S * jnp.expm1(delta)
    q = jnp.sum(grown, axis=1)
    change = m * (grown @ a.T - F / m * q[:, None]) / (1 + q)[:, None]
    return Step(
        F=F,
        after=F + change,
        u=F - instance["Y"],
        change=change,
        S=S,
        delta=delta,
        q=q,
        m=float(m),
        eta=eta,
        gradient=largest,
        share=m * jnp.max(S),
        c=1 + jnp.max(jnp.abs(F)) / m,
        size=float(F.size),
    )


def terms_of(instance: Instance, step: Step) -> Float[Array, "3 n k"]:
    r"""v_0, v_1 and v_2 of Lemma E.1, the factor Theta(1) being (e^delta - 1 - delta) / delta^2.

    Args:
        instance: with a.
        step: of `take`.

    Returns:
        The three, on all samples and outputs.
    """
    a, S, delta = instance["a"], step.S, step.delta
    grown = S * jnp.exp(delta)
    v_0 = (grown / jnp.sum(grown, axis=1, keepdims=True) - grown) @ a.T
    v_1 = (S * delta) @ a.T
    v_2 = (S * (jnp.expm1(delta) - delta)) @ a.T
    return step.m * jnp.stack((v_0, v_1, v_2))


def norm(x: Float[Array, "..."]) -> Float[Array, ""]:
    """Frobenius norm, differentiable away from zero.

    Args:
        x: any array.

    Returns:
        Its length.
    """
    return jnp.sqrt(jnp.sum(x**2))


def within_unit_ball(instance: Instance) -> Instance:
    """The domain of a challenge: rows of X and Y of length 1 at most.

    Args:
        instance: moved.

    Returns:
        With shortened rows.
    """
    kept = dict(instance)
    for name in ("X", "Y"):
        length = jnp.sqrt(jnp.sum(kept[name] ** 2, axis=1, keepdims=True) + 1e-30)
        kept[name] = kept[name] / jnp.maximum(length, 1)
    return kept


def points(key: PRNGKeyArray, count: int) -> Instance:
    """Symmetric networks moved by .001 to 1 in every column: flat and saturated attention.

    Args:
        key: random key.
        count: instances.

    Returns:
        Batch with W (moved), a, X, Y, part.
    """
    rng = np.random.default_rng(seed_of(key))
    batch = symmetric_networks(rng, count, SIZES)
    perturb(rng, batch, (1e-3, 1.0))
    kept = {name: batch[name] for name in ("a", "X", "Y")}
    part = 10 ** rng.uniform(-2, 0, count)
    return as_arrays({**kept, "W": batch["W_tilde"], "part": part})


def visited(key: PRNGKeyArray, count: int, setting: Setting = GENERAL) -> Instance:
    """One random record of each training, with what is known of its run.

    Args:
        key: random key.
        count: instances.
        setting: which trainings.

    Returns:
        Batch with W, a, X, Y, eta, lam, and most (largest eigenvalue) and least of H(tau).
    """
    found = runs(key, count, setting)
    # Past the middle the residuals of the best runs are rounding.
    at = np.random.default_rng(seed_of(key)).integers(len(STEPS) // 2, size=count)
    row = np.arange(count)
    values = np.linalg.eigvalsh(found["kernels"][row, at])
    named = {name: found[name] for name in ("a", "X", "Y", "eta", "lam")}
    further = {"W": found["path"][row, at], "least": values[:, 0], "most": values[:, -1]}
    return as_arrays({**named, **further})
