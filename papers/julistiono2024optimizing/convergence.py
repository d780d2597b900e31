r"""Norm divergence, direction, Lemmas 29 and 30 and the rate theorem, on the flow in log time.

One file, since they share their flows. Our `norm` is the paper's x = ||W(k)||_{p,p}; k is the
plain clock of the flow in units of the step.
"""

from copy import deepcopy
from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas._jax.device_arrays import on_device
from attlas.claims.claim import Control, ProofStep, Sides, Source
from attlas.claims.sampling import shared
from attlas.claims.statement import limit, rate
from attlas.data.token_selection import TokenSelection
from julistiono2024optimizing.cone_instances import SIZES
from julistiono2024optimizing.flow_instances import (
    COUNT,
    GROWTH,
    SHARES,
    best_tokens,
    flows,
    gaussian_selections,
    run_flows,
)

limit_on_flows, rate_on_flows = (
    partial(kind, sample=flows, count=COUNT, not_attacked="its sampler follows all flows at once")
    for kind in (limit, rate)
)


@shared
def _opposite_flows(rng):
    """Flows on pairs of samples with opposite features and equal gaps; a third that has none."""
    # The better of two tokens is there three times, for the shape of the other flows: both samples
    # together attend to it most where their gap is zero, so that by convexity the best W is finite.
    n, T, d = SIZES
    half = gaussian_selections(rng, COUNT, 1, 2, d)
    tokens, labels = np.asarray(half.X), np.asarray(half.y)
    again = np.take_along_axis(tokens, best_tokens(half)[:, :, None, None], axis=2)
    X = np.concatenate([tokens, *[again] * (T - 2)], axis=2)
    X = np.concatenate([X, -X, 0 * X], axis=1)
    y = np.concatenate([labels, -labels, labels], axis=1)
    data = TokenSelection(*map(on_device, (X, y, np.repeat(half.z, n, axis=1), half.v)))
    path = run_flows(data, rng.normal(size=(COUNT, d, d)), flows(rng, COUNT)["p"])
    log_time = np.asarray(path.log_time)
    rows = zip(log_time[:, -1:] * SHARES, log_time, np.asarray(path.norm), strict=True)
    read = [np.interp(at, time, norm) for at, time, norm in rows]
    return {"log_k": log_time[:, -1:] * SHARES, "norm_by_time": np.stack(read)}


def opposite_samples(rng, count):
    """The flows with the norms of samples whose gaps are opposite."""
    opposite = _opposite_flows(deepcopy(rng))
    return {**flows(rng, count), **{name: value[:count] for name, value in opposite.items()}}


@limit_on_flows(
    "Norm-divergence theorem",
    Source.RECALLED,
    scales="log_k",
    controls=[
        Control("two samples with opposite features and equal gaps", sample=opposite_samples)
    ],
)
def norm_divergence(norm_by_time):
    r"""$$W(0)\in C_{p,\mu',R} \;\Rightarrow\; \lim_{k\to\infty}\|W(k)\|_{p,p}=\infty$$

    $1/\|W(k)\|_{p,p}$ against $\log k$ on the flow, $p$ from 1.5 to 4, $\mu' = \mu_0$ and
    $R = R_\delta$. An infeasible SVM alone would be no control: the norm can still diverge then.
    """
    return 1 / norm_by_time, jnp.zeros_like(norm_by_time)


@limit_on_flows(
    "Direction theorem",
    Source.RECALLED,
    scales="log_k",
    controls=[Control("the multipliers of the SVM under the potential of another $p$", other=True)],
)
def direction_theorem(divergence, other_divergence, *, other=False):
    r"""$$\lim_{k\to\infty} D_\psi\!\left(\frac{W^\alpha_{mm}}{\|W^\alpha_{mm}\|_{p,p}},
    \frac{W(k)}{\|W(k)\|_{p,p}}\right)=0$$

    On the flow from starts in $C_{p,\mu_0,R_\delta}$, $p$ from 1.5 to 4. Towards the direction of
    another $p$ the divergence stops at a positive value.
    """
    divergence = other_divergence if other else divergence
    return divergence, jnp.zeros_like(divergence)


def envelope(x, p):
    """The rate log x / x for p > 2, its square over x for p = 2, x^{-(p-1)} for p < 2."""
    slow = x ** -(p - 1)
    return jnp.where(p > 2, jnp.log(x) / x, jnp.where(p == 2, jnp.log(x) ** 2 / x, slow))


@rate_on_flows(
    "Lemma 29 (28)",
    scales="norm",
    controls=[Control("decay as $x^{-5/2}$", faster=True)],
    proof_step=ProofStep("Lemmas 27-29", 8),
)
def lemma_29(divergence_by_norm, norm, p, *, faster=False):
    r"""$$D_\psi(\bar W_{mm},\bar W(k)) = O\!\left(\frac{\log x}{x}\right)\ (p>2),\quad
    O\!\left(\frac{(\log x)^2}{x}\right)\ (p=2),\quad O\!\left(x^{-(p-1)}\right)\ (1<p<2),
    \quad x=\|W(k)\|_{p,p}$$

    $p$ from 1.5 to 4, at four norms, of which the last is smaller where $D_\psi$ falls to rounding
    first. An upper bound:
    the decay is faster, see lag and memory.
    """
    return divergence_by_norm, norm**-2.5 if faster else envelope(norm, p)


@rate_on_flows(
    "Lemma 30",
    Source.RECALLED,
    scales="clock",
    controls=[Control(r"$\|W(k)\| = \Omega((\log k)^{11/10})$", power=1.1)],
)
def lemma_30(clock, norm_by_clock, *, power=1.0):
    r"""$$\|W(k)\|_{p,p} = \Omega(\log k)$$

    On the flow, at four values of $\log k$ that are eight times apart; $\log k$ is taken as known
    to one step of the flow, 5 %.
    """
    left = clock**power
    return Sides(left, norm_by_clock, error=power * (GROWTH - 1) * left)


@rate_on_flows(
    "Rate theorem",
    Source.RECALLED,
    scales="log_k",
    controls=[Control(r"decay as $(\log k)^{-5/2}$", faster=True)],
)
def rate_theorem(divergence, log_k, p, *, faster=False):
    r"""$$D_\psi(\bar W_{mm},\bar W(k)) = O\!\left(\frac{\log\log k}{\log k}\right)\ (p>2),\quad
    O\!\left(\frac{(\log\log k)^2}{\log k}\right)\ (p=2),\quad
    O\!\left(\frac{1}{(\log k)^{p-1}}\right)\ (1<p<2)$$

    On the flow, where it is Lemmas 29 and 30 together. The paper's plots use normalised steps, to
    which it does not apply.
    """
    return divergence, log_k**-2.5 if faster else envelope(log_k, p)
