r"""Section 7 restates (11) with Z_mu / S in place of Z_mu / S^2: too large a margin for S < 1."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from attlas.bounds.optimisation.deora2023_mixture import deora2023_gamma_attention
from attlas.claims.deora2023optimization.mixture_instances import (
    DIMENSION,
    PATTERNS,
    ROUNDINGS,
    key_query,
    key_query_norm,
    oracle,
)
from attlas.core.old_claim import (
    Claim,
    Control,
    Expectation,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)
from attlas.core.verdict import Outcome, Witness
from attlas.models.attention.multi_head import MultiHead

_PAPER = "deora2023optimization"


def _witness() -> Witness:
    """S = 0.1, one relevant token of ten, M = 1, noise of norm 1 at a corner, Gamma = 850."""
    axes, S, T = np.eye(DIMENSION), 0.1, 10
    mu, nu = S * axes[:2], S * axes[2 : 2 + PATTERNS] * np.array([[1.0], [0.0], [0.0]])
    # <z, mu_+> = -Z_mu, <z, mu_-> = Z_mu, <z, nu> = -Z_nu with Z_mu = Z_nu = S^2 / 8.
    z = S / 8 * (axes[1] - axes[0] - axes[2]) + axes[-1]
    X = np.repeat((nu[0] + z)[None], T, axis=0)
    X[0] = mu[0]
    return {
        "mu": mu,
        "nu": nu,
        "S": np.asarray(S),
        "M": np.asarray(1.0),
        "Z_mu": np.asarray(S**2 / 8),
        "gamma": np.asarray(850.0),
        "X": X,
    }


def _repeated(key: PRNGKeyArray, count: int) -> Instance:
    """The one instance that the statement is about, repeated."""
    del key
    return {k: jnp.asarray(np.repeat(v[None], count, axis=0)) for k, v in _witness().items()}


def _sides(instance: Instance, corrected: bool) -> Sides:
    X, S = instance["X"], instance["S"]
    T = len(X)
    U = jnp.broadcast_to(oracle(instance) / (S * jnp.sqrt(2.0 * T)), X.shape)
    W = instance["gamma"] * key_query(instance) / key_query_norm(instance)
    model = MultiHead(U[None], W[None])
    # The first token is the relevant one; epsilon is what (10) has here.
    eps = jnp.max(1 - model.attention(X)[0, :, 0])
    source = "equation 11" if corrected else "section 7"
    return Sides(deora2023_gamma_attention(T, S, eps, instance["Z_mu"], source), model(X))


SECTION_7_MARGIN = Claim(
    name=f"{_PAPER}/section-7-margin",
    paper=_PAPER,
    locator="Section 7, margin of attention",
    statement=(
        r"\max_t \sum_{t' \in \mathcal{R}^c} \varphi_{t'} = \epsilon: \quad "
        r"y \Phi(X; U_{opt}, \Gamma W_{opt}) \ge \tfrac{S \sqrt T}{\sqrt 2} \big( (1-\epsilon) -"
        r"2 \epsilon \tfrac{Z_\mu}{S} \big)"
    ),
    kind=Kind.INEQUALITY,
    status=Status.ERRATUM,
    provenance=Provenance.FOUND,
    instances=_repeated,
    sides=lambda i: _sides(i, corrected=False),
    witness=_witness,
    control=Control(
        "corrected: Z_mu / S^2, as in (11)",
        lambda i: _sides(i, corrected=True),
        expect=Outcome.SUPPORTED,
    ),
    expect=Expectation(
        Outcome.VIOLATED, "Z_mu / S is below Z_mu / S^2 for S < 1; inner products are over S^2"
    ),
    terms=ROUNDINGS,
    note=(
        "S = 0.1 with noise of norm 1 (so that R >= 1), one relevant token of ten, Gamma = 850: "
        "attention leaves 0.3 for the noise. For S > 1 the printed formula is true but weaker. "
        "epsilon is read as the mass that (10) bounds, the printed = as >=. Gamma is below what "
        "Proposition 3 asks for at this epsilon: section 7 has no constant there, and at that "
        "Gamma the mass is so far below epsilon that either formula holds."
    ),
)
