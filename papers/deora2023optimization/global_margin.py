r"""Section 7: the global margin max over ||theta|| = sqrt(2) of min_i y_i Phi(X_i; theta).

Without noise, on all samples of three tokens with one irrelevant pattern. gamma_attn =
S sqrt(T/2) needs ||U|| = 1 and key-query weights that grow without bound; at norm sqrt(2) in all,
decoder and key-query weights share the norm, and the best share depends on S.
"""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Status, assume
from attlas.claims.perturbed_draws import apart
from attlas.claims.statement import existence, inequality
from attlas.kernels.multi_head_ntk import ntk_gram
from attlas.models.attention.multi_head import MultiHead, parameter_norm
from attlas.solvers.global_margin import global_margin as search_global_margin
from attlas.solvers.kernel_svm import kernel_svm_batch
from deora2023optimization.library.bounds.deora2023_mixture import (
    deora2023_gamma_attention,
    deora2023_gamma_linear,
)
from deora2023optimization.mixture_instances import ROUNDINGS

_T = 3
_STARTS, _STEPS = 4, 200
_SHARES = np.append(np.linspace(0, 1.4, 15), 1.0)
"""Norms Gamma of the key-query matrix; 1 is theta_opt."""


def _samples(S, relevant):
    """All samples over the axes mu_+, mu_-, nu: both labels, every place of the relevant tokens."""
    X = np.zeros((2 * _T, _T, 3))
    for label in range(2):
        for r in range(_T):
            place = [(r + k) % _T for k in range(relevant)]
            X[label * _T + r, :, 2] = S
            X[label * _T + r, place] = S * np.eye(3)[label]
    return X, np.repeat([1.0, -1.0], _T)


def best_models(rng, count):
    """Best models found on mixtures of S from 0.5 to 5, one or two relevant tokens of three."""
    rng = apart(rng)
    S = np.exp(rng.uniform(np.log(0.5), np.log(5.0), count))
    relevant = 1 + np.arange(count) % 2
    sets = [_samples(float(S[i]), int(relevant[i])) for i in range(count)]
    models = [
        search_global_margin(
            jnp.asarray(X), jnp.asarray(y), 1, starts=_STARTS, steps=_STEPS, key=jax.random.key(i)
        ).stats["model"]
        for i, (X, y) in enumerate(sets)
    ]
    return {
        "X": np.stack([X for X, _ in sets]),
        "y": np.stack([y for _, y in sets]),
        "U": np.stack([np.asarray(model.U) for model in models]),
        "W": np.stack([np.asarray(model.W) for model in models]),
        "S": S,
    }


def _least(X, y, U, W):
    """The margin of a model brought to the norm sqrt(2)."""
    unit = jnp.sqrt(2.0) / parameter_norm(MultiHead(U, W))
    return jnp.min(y * jax.vmap(MultiHead(unit * U, unit * W))(X))


@existence(
    "Section 7, global margin",
    sample=best_models,
    controls=[Control("1.5 times that margin", factor=1.5)],
    count=32,
    roundings=ROUNDINGS,
)
def global_margin(X, y, U, W, S, *, factor=1.0):
    r"""$$\max_{\|\theta\| = \sqrt 2} \min_i y_i \Phi(X_i; \theta) \ge \max_\Gamma \min_i y_i
    \Phi(X_i; \sqrt{2 - \Gamma^2}\, U_{opt}, \Gamma W_{opt}) \quad (H = 1)$$

    Projected ascent from four starts. Relevant and irrelevant queries share the norm better than
    $W_{opt}$ does. No proof that none is better.
    """
    axes = jnp.eye(3)
    mu, nu = S * axes[:2], S * axes[2:]
    W_star = mu.T @ mu + jnp.outer(nu[0], mu[0] + mu[1])
    U_opt = jnp.tile(mu[0] - mu[1], (1, _T, 1)) / (S * jnp.sqrt(2.0 * _T))

    def in_family(gamma):
        return _least(X, y, jnp.sqrt(2 - gamma**2) * U_opt, (gamma * W_star / (2 * S**2))[None])

    return factor * jnp.max(jax.vmap(in_family)(jnp.asarray(_SHARES))), _least(X, y, U, W)


@inequality(
    r"Section 7, global margin against $\gamma_{attn}$",
    sample=best_models,
    search_over=("U", "W"),
    controls=[Control(r"$\gamma_{attn}$ itself, without $\sqrt 2$", share=0.5**0.5)],
    status=Status.NEW,
    count=32,
    roundings=ROUNDINGS,
)
def global_margin_ceiling(X, y, U, W, S, *, share=1.0):
    r"""$$z = 0: \quad \max_{\|\widetilde\theta\| = \sqrt 2} \min_i y_i \widetilde\Phi(X_i;
    \widetilde\theta) \le \sqrt 2\, \gamma_{attn} = S \sqrt T$$

    Of two samples with opposite labels the lesser margin is at most $\langle U, A_+ - A_- \rangle /
    2$, and attended tokens of orthogonal patterns of length $S$ are $S \sqrt 2$ apart at most, row
    by row; heads add by Cauchy-Schwarz. For large $S$ the search exceeds $\gamma_{attn}$ itself:
    the norm that large $S$ saves on attention goes to the decoder.
    """
    return _least(X, y, U, W), share * 2**0.5 * deora2023_gamma_attention(_T, S)


def large_signals(rng, count):
    """NTK margins after an exact first step, p = 0, where gamma_star exceeds S sqrt(T)."""
    rng = apart(rng)
    relevant = 1 + np.arange(count) % 2
    zeta = relevant / _T
    least = (8 * (1 - zeta / 2**0.5) / (_T**0.5 * (1 - zeta) * zeta**2)) ** (1 / 3)
    S = least * np.where(np.arange(count) > 1, rng.uniform(1, 1.5, count), 1.0)
    sets = [_samples(float(S[i]), int(relevant[i])) for i in range(count)]
    X, y = np.stack([X for X, _ in sets]), np.stack([y for _, y in sets])
    rows = (zeta / 4 * S)[:, None] * np.array([1.0, -1.0, 0.0])
    U = np.repeat(rows[:, None, None], _T, axis=2)
    W = jnp.zeros((1, 3, 3))
    K = np.stack([ntk_gram(MultiHead(jnp.asarray(U[i]), W), X[i]) for i in range(count)])
    svm = kernel_svm_batch(K, y)
    return {
        "S": S,
        "zeta": zeta,
        "margin": np.asarray(svm.value),
        "gap": svm.certificate["upper"] - svm.certificate["lower"],
        "certified": np.asarray(svm.converged),
    }


@inequality(
    "Section 7, 'how suboptimal is the best NTK margin'",
    sample=large_signals,
    assumptions=[assume("certified by the solver", lambda certified: certified)],
    controls=[Control(r"the part of $U$ alone, $\gamma_{lin}$", linear=True)],
    status=Status.NEW,
    count=32,
    roundings=ROUNDINGS,
    evaluations=224,
)
def global_margin_ntk(S, zeta, margin, gap, *, linear=False):
    r"""$$z = p = 0,\ S^3 \ge \tfrac{4 \sqrt{2 (M+1)} (1 - \zeta / \sqrt 2)}{\sqrt T (1-\zeta)
    \zeta^2}: \quad \max_{\|\theta\| = \sqrt 2} \min_i y_i \langle \nabla \Phi(X_i;
    \theta^{(1)}), \theta \rangle \ge S \sqrt T$$

    The condition is that of $\gamma_\star$, which is below the best margin. $S \sqrt T$ is above
    the global margin (see global-margin-ceiling): for a strong signal the NTK margin exceeds the
    global margin of the model at the same norm. "How suboptimal" compares quantities of different
    degrees in the data.
    """
    reached = deora2023_gamma_linear(_T, S, zeta) if linear else margin
    ceiling = 2**0.5 * deora2023_gamma_attention(_T, S)
    return Sides(ceiling, 2**0.5 * reached, error=2 * gap)
