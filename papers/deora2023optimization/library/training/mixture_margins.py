"""Margins of the tokenized mixture: after gradient descent, by solvers, and as printed."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.data.tokenized_mixture import MixtureSamples, TokenizedMixture
from attlas.models.attention.multi_head import MultiHead
from attlas.solvers.global_margin import global_margin
from attlas.solvers.linear_margin import linear_margin
from attlas.training.gradient_descent import gradient_descent_ensemble
from deora2023optimization.library.bounds.deora2023_mixture import (
    deora2023_first_step_slope,
    deora2023_gamma_attention,
    deora2023_gamma_linear,
    deora2023_gamma_star,
)
from deora2023optimization.library.measures.ntk_margin import ntk_margins
from deora2023optimization.library.measures.reached_margins import RADIUS, reached_margins


class MixtureMargins(NamedTuple):
    """Margins of one set of samples; e starts, s records.

    Attributes:
        reached: margins along training on the three scales of `reached_margins`.
        loss: training loss.
        ntk: NTK margin at each start, for a direction of norm sqrt(2).
        linear: margin of linear decoders of norm 1; NaN without a certificate.
        global_lower: the best of the search for the global margin with one head.
        global_upper: certified upper bound of the global margin.
        searches_agree: number of searches that ended there.
        gamma_lin: printed linear margin.
        gamma_star: printed NTK margin (7) with P = 0.
        gamma_star_error: the same with P of the one-step start.
        gamma_attn: printed margin of attention.
        first_step_error: P, the error of the one-step start.
    """

    reached: Float[np.ndarray, "3 e s"]
    loss: Float[np.ndarray, "e s"]
    ntk: Float[np.ndarray, " e"]
    linear: float
    global_lower: float
    global_upper: float
    searches_agree: int
    gamma_lin: float
    gamma_star: float
    gamma_star_error: float
    gamma_attn: float
    first_step_error: float


def mixture_margins(
    mixture: TokenizedMixture,
    train: MixtureSamples,
    starts: Sequence[MultiHead],
    rate: float,
    schedule: tuple[int, ...],
    searches: int,
    climb: int,
    key: PRNGKeyArray,
) -> MixtureMargins:
    """Train from every start, measure the margins along training, and solve for the maximal ones.

    Args:
        mixture: the law of the samples.
        starts: models, the second one after one randomised step.
        schedule: recorded steps, the last one the end.
        searches: random starts of the search for the global margin.
        climb: steps of each search.
    """
    X, y = train.X, train.y
    path = gradient_descent_ensemble(
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts), X, y,
        step_size=rate, steps=schedule[-1], record_at=schedule,
    )  # fmt: skip
    linear = linear_margin(X, y)
    best = global_margin(X, y, 1, radius=RADIUS, starts=searches, steps=climb, key=key)
    T, S, zeta, M = X.shape[1], mixture.S, mixture.zeta, len(mixture.irrelevant)
    noise, error = (mixture.Z_mu, mixture.Z_nu, mixture.Z), first_step_error(starts[1], mixture)
    star = [
        float(deora2023_gamma_star(T, S, zeta, M, *noise, P, constants="printed"))
        for P in (0.0, float(error))
    ]
    each_X, each_y = (jnp.stack([a] * len(starts)) for a in (X, y))
    ntk = ntk_margins(starts, each_X, each_y)
    return MixtureMargins(
        reached=np.asarray(reached_margins(path.params, X, y)),
        loss=np.asarray(path.loss),
        ntk=np.asarray(ntk),
        linear=float(linear.value) if bool(linear.converged) else np.nan,
        global_lower=float(best.certificate["lower"]),
        global_upper=float(best.certificate["upper"]),
        searches_agree=int(best.stats["agreeing"]),
        gamma_lin=float(deora2023_gamma_linear(T, S, zeta, mixture.Z_mu)),
        gamma_star=star[0],
        gamma_star_error=star[1],
        gamma_attn=float(deora2023_gamma_attention(T, S)),
        first_step_error=float(error),
    )


def first_step_error(start: MultiHead, mixture: TokenizedMixture) -> Float[Array, ""]:
    r"""The norm of p in U_h = alpha_h 1 (zeta/4 u_star + p)', u_star = mu_+ - mu_-.

    Lemma 2 of deora2023optimization bounds it by P.

    Args:
        start: one randomised step from zero with |alpha_h| = 1, full decoders.
        mixture: the law of its samples.

    Returns:
        ||p||, the same for every head.

    Examples:
        >>> import jax
        >>> from attlas.data.tokenized_mixture import make_tokenized_mixture
        >>> mixture = make_tokenized_mixture(jax.random.key(0), d=3, M=1, zeta=0.5)
        >>> row = -0.125 * (mixture.patterns[0] - mixture.patterns[1]) + jnp.array([0.0, 0.3, 0.4])
        >>> start = MultiHead(jnp.tile(row, (1, 2, 1)), jnp.zeros((1, 3, 3)))
        >>> print(f"{first_step_error(start, mixture):.6f}")
        0.500000
    """
    signal = deora2023_first_step_slope(mixture.zeta) * (mixture.patterns[0] - mixture.patterns[1])
    row = start.U[0, 0]
    return jnp.minimum(jnp.linalg.norm(row - signal), jnp.linalg.norm(row + signal))
