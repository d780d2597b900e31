r"""Sections 5.3 and 7: "gamma_attn >= gamma_star >= gamma_lin" in both halves, and (11) restated.

gamma_star is a margin of linearised features and grows like S^4, gamma_attn = S sqrt(T/2) is a
margin of the model with key-query weights of any size: they are not comparable quantities.
"""

import jax.numpy as jnp
import numpy as np

from attlas.bounds.constants import Constants
from attlas.claims.claim import Control, Sides, Status
from attlas.claims.statement import erratum, inequality
from attlas.models.attention.multi_head import MultiHead
from deora2023optimization.library.bounds.deora2023_mixture import (
    deora2023_gamma_attention,
    deora2023_gamma_linear,
    deora2023_gamma_star,
    deora2023_margin_crossover,
)
from deora2023optimization.mixture_instances import DIMENSION, ROUNDINGS, Mixture, along_the_axes
from deora2023optimization.ntk_w_part import u_part, w_part

_SATURATED = 10.0
"""Gamma: at S = 4 the scores under Gamma W_opt differ by 80, attention is hard to rounding."""


def strong_signal():
    """T = 10, zeta = 1/2, M = 1, S = 4, patterns along the axes."""
    patterns = along_the_axes(4.0)
    X = np.repeat([patterns["mu"][0], patterns["nu"][0]], 5, axis=0)
    return {**patterns, "zeta": 0.5, "X": X}


@erratum(
    r"Sections 5.3 and 7, '$\gamma_{attn} \ge \gamma_\star$'",
    witness=strong_signal,
    reason=r"$\gamma_\star = 44.5 > \gamma_{attn} = 8.94$: it grows like $S^4$, not like $S$",
    corrected=Control(
        r"corrected: $\gamma_\star - \gamma_{lin}$ grows with $S^3$ against "
        r"$\gamma_{attn} - \gamma_{lin}$",
        corrected=True,
    ),
    roundings=ROUNDINGS,
)
def margin_order(X, mu, nu, S, zeta, M, *, corrected=False):
    r"""$$T = 10,\ \zeta = \tfrac{1}{2},\ M = 1,\ S = 4,\ z = p = 0: \quad
    \gamma_{attn} = \tfrac{S \sqrt T}{\sqrt 2} \ge \gamma_\star$$

    Without noise the order holds exactly for $S^3 \le 4 \sqrt{M+1} / (\sqrt T \zeta^2)$
    (margin-order-condition); this $S$ is beyond. Both margins are computed on the model as well.
    """
    mix, T = Mixture(mu=mu, nu=nu, S=S, M=M), len(X)
    on_features = u_part(mix, X) + w_part(mix, X, zeta / 4 * mix.oracle)
    star = jnp.stack([deora2023_gamma_star(T, S, zeta, M), on_features])
    U = jnp.broadcast_to(mix.oracle / (S * jnp.sqrt(2.0 * T)), X.shape)
    W = _SATURATED * mix.key_query / mix.key_query_norm
    attention = jnp.stack([deora2023_gamma_attention(T, S), MultiHead(U[None], W[None])(X)])
    if corrected:
        linear = deora2023_gamma_linear(T, S, zeta)
        ratio = (S / deora2023_margin_crossover(T, zeta, M)) ** 3
        attention = linear + jnp.maximum(ratio, 1) * (attention - linear)
    return star, attention


def below_the_crossover(rng, count):
    """Parameters of mixtures whose S is the given share of the crossover."""
    T = rng.integers(2, 20, count).astype(float)
    return {
        "T": T,
        "zeta": np.clip(np.round(rng.uniform(0.05, 0.95, count) * T), 1, T - 1) / T,
        "M": rng.integers(1, 10, count).astype(float),
        "share": np.where(np.arange(count) % 3, rng.uniform(0.1, 1, count), 1.0),
        "noise": np.where(np.arange(count) % 2, rng.uniform(0, 0.25, count), 0.0),
    }


@inequality(
    r"Sections 5.3 and 7, '$\gamma_{attn} \ge \gamma_\star$', corrected",
    sample=below_the_crossover,
    search_over=("share", "noise"),
    project=lambda share, noise: {
        "share": jnp.clip(share, 0.01, 1),
        "noise": jnp.clip(noise, 0, 0.25),
    },
    controls=[Control("$S$ a tenth larger", factor=1.1)],
    status=Status.CORRECTED,
    roundings=ROUNDINGS,
)
def margin_order_condition(T, zeta, M, share, noise, *, factor=1.0):
    r"""$$S^3 \le \tfrac{4 \sqrt{M+1}}{\sqrt T \zeta^2} \;\Rightarrow\;
    \gamma_\star \le \gamma_{attn}$$

    Exact: without noise both sides are equal at the threshold.
    """
    S = factor * share * deora2023_margin_crossover(T, zeta, M)
    star = deora2023_gamma_star(T, S, zeta, M, noise * S**2, noise * S**2)
    size = T * S**4 + jnp.sqrt(T) * S
    return Sides(star, deora2023_gamma_attention(T, S), magnitude=size)


def noise_of_a_tenth():
    """T = 10, zeta = 1/2, M = 1, S = 1, and noise of a tenth: Z_mu = Z_nu = 0.1."""
    numbers = {"T": 10.0, "zeta": 0.5, "M": 1.0, "S": 1.0, "Z": 0.1}
    return {name: np.asarray(value) for name, value in numbers.items()}


@erratum(
    r"Sections 5.3 and 7, '$\gamma_\star \ge \gamma_{lin}$'",
    witness=noise_of_a_tenth,
    reason=r"the first term of (7) is negative when $7 Z S^2 > \zeta S^4$",
    corrected=Control("corrected: without noise and error of the first step", noise=0.0),
    roundings=ROUNDINGS,
)
def margin_order_linear(T, zeta, M, S, Z, *, noise=1.0):
    r"""$$T = 10,\ \zeta = \tfrac{1}{2},\ M = S = 1,\ Z_\mu = Z_\nu = \tfrac{1}{10},\ p = 0: \quad
    \gamma_\star \ge \gamma_{lin}$$

    As (7) stands. The NTK margin itself is never below that of the pooled linear model,
    whose features it contains; with $P > 0$ the order of the two formulas can fail too.
    """
    bound = noise * Z
    star = deora2023_gamma_star(T, S, zeta, M, bound, bound)
    return deora2023_gamma_linear(T, S, zeta, bound), star


def weak_signal():
    """S = 0.1, one relevant token of ten, M = 1, noise of norm 1 at a corner, Gamma = 850."""
    axes, S, T = np.eye(DIMENSION), 0.1, 10
    patterns = along_the_axes(S)
    # <z, mu_+> = -Z_mu, <z, mu_-> = Z_mu, <z, nu> = -Z_nu with Z_mu = Z_nu = S^2 / 8.
    z = S / 8 * (axes[1] - axes[0] - axes[2]) + axes[-1]
    X = np.repeat((patterns["nu"][0] + z)[None], T, axis=0)
    X[0] = patterns["mu"][0]
    return {**patterns, "Z_mu": S**2 / 8, "gamma": 850.0, "X": X}


@erratum(
    "Section 7, margin of attention as in our text",
    witness=weak_signal,
    reason=r"$Z_\mu / S$ is below $Z_\mu / S^2$ for $S < 1$; inner products are over $S^2$",
    corrected=Control(r"corrected: $Z_\mu / S^2$, as in (11)", constants="corrected"),
    roundings=ROUNDINGS,
)
def section_7_margin(X, mu, nu, S, M, Z_mu, gamma, *, constants: Constants = "printed"):
    r"""$$\max_t \sum_{t' \in \mathcal{R}^c} \varphi_{t'} = \epsilon: \quad
    y \Phi(X; U_{opt}, \Gamma W_{opt}) \ge \tfrac{S \sqrt T}{\sqrt 2} \big( (1-\epsilon) -
    2 \epsilon \tfrac{Z_\mu}{S} \big)$$

    $S = 0.1$ with noise of norm 1 (so that $R \ge 1$), one relevant token of ten, $\Gamma = 850$:
    attention leaves 0.3 for the noise. For $S > 1$ the formula is true but weaker. That $S$ has no
    square may be damage of our text.
    $\epsilon$ is read as the mass that (10) bounds, the printed $=$ as $\ge$. $\Gamma$ is below
    what Proposition 3 requires at this $\epsilon$: section 7 has no constant there, and at that
    $\Gamma$ the mass is so far below $\epsilon$ that either formula holds.
    """
    mix, T = Mixture(mu=mu, nu=nu, S=S, M=M), len(X)
    U = jnp.broadcast_to(mix.oracle / (S * jnp.sqrt(2.0 * T)), X.shape)
    W = gamma * mix.key_query / mix.key_query_norm
    model = MultiHead(U[None], W[None])
    # The first token is the relevant one; epsilon is what (10) has here.
    eps = jnp.max(1 - model.attention(X)[0, :, 0])
    return deora2023_gamma_attention(T, S, eps, Z_mu, constants), model(X)
