r"""Section 7 restates (11) with Z_mu / S in place of Z_mu / S^2: too large a margin for S < 1."""

import jax.numpy as jnp
import numpy as np

from attlas.bounds.constants import Constants
from attlas.bounds.optimisation.deora2023_mixture import deora2023_gamma_attention
from attlas.claims.deora2023optimization.mixture_instances import (
    DIMENSION,
    ROUNDINGS,
    Mixture,
    along_the_axes,
)
from attlas.core.claim import Control
from attlas.core.statement import erratum
from attlas.models.attention.multi_head import MultiHead


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
    "Section 7, margin of attention",
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
    attention leaves 0.3 for the noise. For $S > 1$ the printed formula is true but weaker.
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
