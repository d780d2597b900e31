r"""PAC-Bayes in the kl form of Seeger and Maurer, for Gaussian weights, with all that it costs."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from attlas.bounds.closed_form import closed_form
from attlas.bounds.generalisation.conditions import require_delta
from attlas.bounds.generalisation.gaussian_weights import (
    GaussianPrior,
    GaussianWeights,
    gaussian_kl,
)
from attlas.bounds.generalisation.kl_inverse import kl_upper_inverse
from attlas.bounds.generalisation.monte_carlo_losses import monte_carlo_losses
from attlas.bounds.generalisation.risk_bound import (
    INDEPENDENT,
    PRIOR_BEFORE,
    UNIT_LOSS,
    Condition,
    RiskBound,
    require_sample,
    require_unit_loss,
)
from attlas.core.arrays import ArrayInput, read_array
from attlas.core.errors import UserError
from attlas.core.ranges import is_finite, require_at_least

LEAST = 8
"""Examples from which the constant 2 sqrt(n) of Maurer (2004) is proved."""
_DRAWS_SHARE = 0.2
_ROUNDINGS = 64
_APART = Condition("the prior was chosen by other examples than those of the bound", True)


def pac_bayes_kl(
    loss: Callable[[Any], Array],
    posterior: GaussianWeights,
    prior: GaussianPrior | None,
    n: int,
    delta: float,
    key: Key[Array, ""],
    *,
    draws: int = 1000,
    delta_draws: float | None = None,
    split: tuple[ArrayInput, ArrayInput] | None = None,
    trivial: float | int = 1,
    at_once: int = 64,
) -> RiskBound:
    r"""The mean risk of a network whose weights are drawn from a posterior at every use.

    $$\sup\Big\{p:{\rm kl}(\bar q\,\|\,p)\le\frac{{\rm KL}(Q\|P_\lambda)+\ln(2K\sqrt n/\delta_1)}n
    \Big\},\qquad\bar q=\sup\Big\{q:{\rm kl}(\hat q_N\|q)\le\frac{\ln(1/\delta_2)}N\Big\}$$

    The least over the K scales $\lambda$ of the prior; $\hat q_N$ is the mean of N drawn losses.

    Args:
        loss: function from weights to their mean loss on the n examples, in [0, 1]; traced by JAX,
            or called with tensors where the posterior's mean has tensors of torch.
        posterior: Q, which may depend on the examples.
        prior: P, which may depend on other examples alone.
        n: examples in the loss, at least 8.
        delta: $\delta_1+\delta_2$, probability of failure.
        key: JAX random key that was not used to choose the posterior.
        draws: N, at confidence `delta_draws`.
        delta_draws: $\delta_2$; a fifth of delta when None.
        split: vector of indices of the examples that chose the prior, and of the n in the loss.
        trivial: risk that is reached without data, such as that of guessing.

    Returns:
        The bound; `empirical` is $\hat q_N$.

    No prior, losses outside [0, 1] or a split that overlaps are a `UserError` of one line.

    Source: Maurer (2004), Theorem 5; Langford and Caruana (2001);
    papers/attlas_bounds/proofs/bounds.md.

    Examples:
        >>> import jax, jax.numpy as jnp; x = jnp.linspace(-1.0, 1.0, 2000)
        >>> error = lambda w: jnp.mean((w[0] * x + w[1] > 0) != (x > 0))
        >>> law, start = GaussianWeights([3.0, 0.0], 0.1), GaussianPrior([0.0, 0.0], [1.0, 3.0])
        >>> bound = pac_bayes_kl(error, law, start, 2000, 0.05, jax.random.key(0))
        >>> bound.vacuous, bound.bound < 0.1
        (False, True)
    """
    second = _share_of_draws(n, delta, delta_draws, trivial)
    nats = gaussian_kl(posterior, _default_prior(prior))
    before = PRIOR_BEFORE if split is None else _require_apart(split, n)
    mean, upper = _mean_loss(monte_carlo_losses(loss, posterior, key, draws, at_once=at_once))
    return _bound((mean, upper, draws), nats, before, n, (delta, second), trivial)


def pac_bayes_of_errors(
    wrong: int,
    draws: int,
    posterior: GaussianWeights,
    prior: GaussianPrior,
    n: int,
    delta: float,
    *,
    delta_draws: float | None = None,
    split: tuple[ArrayInput, ArrayInput] | None = None,
    trivial: float | int = 1,
) -> RiskBound:
    r"""The bound of `pac_bayes_kl` from counted errors of draws that judge one example each.

    $$\hat q_N=\frac{\tt wrong}N,\qquad N={\tt draws}$$

    Every example is judged by N / n draws of its own. Their errors are independent and their mean
    has the expectation that the mean of whole draws has, so that Chernoff's inequality holds, with
    N as large as the examples are many.

    Args:
        wrong: number of wrong draws, the weights of each drawn anew from the posterior, in fresh
            draws that did not choose it.
        draws: N, a multiple of n.
        split: vector of indices of each part, as for `pac_bayes_kl`, whose other arguments, bound
            and errors these are.

    Source: Hoeffding (1963), Theorem 1, for unequal chances; papers/attlas_bounds/proofs/bounds.md.

    Examples:
        >>> law, start = GaussianWeights([3.0, 0.0], 0.1), GaussianPrior([3.0, 0.2], [0.1, 1.0])
        >>> bound = pac_bayes_of_errors(100, 2000, law, start, 2000, 0.05)
        >>> print(f"{bound.empirical} {bound.complexity:.1f} {bound.bound:.3f}")
        0.05 2.0 0.095
    """
    second = _share_of_draws(n, delta, delta_draws, trivial)
    whole = 0 <= wrong <= draws and is_finite(draws) and wrong == int(wrong)
    if not (whole and draws >= n and draws % n == 0):
        raise UserError(
            f"{wrong} of {draws} draws are wrong, n = {n}: give whole numbers of which the second "
            "is a multiple of n, the same number of draws for every example"
        )
    nats = gaussian_kl(posterior, prior)
    before = PRIOR_BEFORE if split is None else _require_apart(split, n)
    mean = wrong / draws
    return _bound((mean, mean * (1 + 2**-50), draws), nats, before, n, (delta, second), trivial)


def _bound(
    drawn: tuple[float, float, int],
    nats: np.ndarray,
    before: Condition,
    n: int,
    levels: tuple[float, float],
    trivial: float | int,
) -> RiskBound:
    """The bound from the mean loss of the draws, its upper limit by rounding, and their number."""
    (mean, upper, draws), (delta, second) = drawn, levels
    mean_limit = kl_upper_inverse(min(upper, 1.0), -math.log(second) / draws * (1 + 2**-50))
    shares = (f"PAC-Bayes, {len(nats)} prior scales", delta - second), (f"{draws} draws", second)
    nearest = float(nats.min())
    at = partial(pac_bayes_limit, mean_limit, nearest, delta=(delta - second) / len(nats))
    conditions = INDEPENDENT, before, UNIT_LOSS
    name = "PAC-Bayes kl" + ("" if before is PRIOR_BEFORE else ", prior from other examples")
    return RiskBound(name, at(float(n)), mean, n, delta, shares, nearest, conditions, at, trivial)


def _default_prior(prior: GaussianPrior | None) -> GaussianPrior:
    if prior is None:
        raise UserError("prior is None: a posterior needs a prior that was fixed before the sample")
    return prior


def _share_of_draws(n: int, delta: float, delta_draws: float | None, trivial: float | int) -> float:
    """The share of delta for the draws, after all numbers were checked."""
    require_sample(n, delta, trivial)
    require_at_least(LEAST, n=n)
    second = _DRAWS_SHARE * delta if delta_draws is None else delta_draws
    require_delta(second, "delta_draws")
    if not second < delta:
        raise UserError(f"delta_draws = {second}: it is a part of delta = {delta}, give less")
    return second


@closed_form
def log_moment(n: float) -> float:
    r"""$\ln(2\sqrt n)$, at least $\ln\mathbb E\,e^{n\,{\rm kl}(\hat q\|q)}$ of n losses in [0, 1].

    Args:
        n: number of examples, at least 8.

    Source: Maurer (2004), Theorem 1.

    Examples:
        >>> round(log_moment(100.0), 6)
        2.995732
    """
    return math.log(2) + math.log(n) / 2


@closed_form
def pac_bayes_limit(risk: float, nats: float, n: float, delta: float) -> float:
    r"""$\sup\{p:n\,{\rm kl}(q\|p)\le{\rm KL}+\ln(2\sqrt n/\delta)\}$, rounded up.

    Args:
        risk: q, mean loss of the drawn networks on the sample.
        nats: divergence of the posterior from the prior.
        n: examples, at least 8.

    Examples:
        >>> print(f"{pac_bayes_limit(0.0, 10.0, 1000.0, 0.05):.4f}")
        0.0170
    """
    cost = nats + log_moment(n) - math.log(delta)
    return kl_upper_inverse(risk, cost / n * (1 + 2**-49))


def _mean_loss(losses: np.ndarray) -> tuple[float, float]:
    """The mean, and with what the loss and the mean may have been rounded by."""
    for worst in (losses.min(), losses.max()):
        require_unit_loss(float(worst))
    mean = float(np.mean(losses, dtype=np.float64))
    kind = losses.dtype if jnp.issubdtype(losses.dtype, jnp.floating) else np.dtype(np.float64)
    return mean, mean * (1 + _ROUNDINGS * float(jnp.finfo(kind).eps))


def _require_apart(split: tuple[ArrayInput, ArrayInput], n: int) -> Condition:
    """That the two parts of a split share no example, and that the second one has n."""
    chose, judged = (read_array(part, "split").reshape(-1) for part in split)
    used = np.intersect1d(chose, judged)
    if used.size:
        raise UserError(
            f"split: example {used[0]} chose the prior and is in the loss: keep the parts disjoint"
        )
    if len(np.unique(judged)) != n:
        raise UserError(f"split: {len(np.unique(judged))} examples are in the loss, but n = {n}")
    return _APART
