r"""Lemma B.1, parts 8, 9, 12 and 13 sharpened: no bound B on the weights is needed.

Symbols as in `lemma_b_1_instances`; R is of any size here.
"""

from functools import partial

import jax.numpy as jnp
from jax.scipy.special import logsumexp

from attlas.bounds.optimisation.gu2024_perturbation import gu2024_relative_bounds
from attlas.claims.claim import Control, Sides, Status
from attlas.claims.statement import inequality
from gu2024exploring.instances import (
    logit_rounding,
    softmax_weights,
    within_radius,
)
from gu2024exploring.lemma_b_1_instances import perturbed_networks

_LARGEST = 3.0
for_every_radius = partial(
    inequality,
    status=Status.SHARPENED,
    sample=partial(perturbed_networks, largest=_LARGEST),
    search_over=("X", "W", "W_tilde"),
    project=within_radius,
    alike=True,
    count=48,
    roundings=64,
)


@for_every_radius("Lemma B.1, Parts 8 and 9, sharpened", controls=[Control("$e^{R/2}$", share=0.5)])
def lemma_b_1_part_8_sharp(X, W, W_tilde, R, *, share=1.0):
    r"""$$e^{-R} \le \tilde{\alpha}_i / \alpha_i \le e^R \;\mathrm{for\ every}\; R, B$$

    Attained when all columns move by $R$ along $x_i$. No bound on the weights is needed.
    """
    ratio = logsumexp(X @ W_tilde, axis=1) - logsumexp(X @ W, axis=1)
    left = jnp.expm1(jnp.abs(ratio))
    right = gu2024_relative_bounds(share * R)[8]
    return Sides(left, right, magnitude=(logit_rounding(X, W) + R) * (1 + left))


@for_every_radius(
    "Lemma B.1, Part 12, sharpened",
    controls=[Control("$e^R$ in place of $e^{2R}$", share=0.5)],
)
def lemma_b_1_part_12_sharp(X, W, W_tilde, R, *, share=1.0):
    r"""$$|S_{i,r} - \tilde{S}_{i,r}| \le S_{i,r} (1 - S_{i,r}) (e^{2R} - 1)
    \;\mathrm{for\ every}\; R, B$$

    Approached as $S_{ir}$ tends to 0 with $w_r$ moved up and the others down. On the event
    $S \le e^{2B}/m$, so that the bound is $(e^{2R} - 1) e^{2B} / m$ and less.
    """
    S, moved = softmax_weights(X, W), softmax_weights(X, W_tilde)
    right = S * (1 - S) * gu2024_relative_bounds(share * R)[12]
    # 1 - S is rounded where one unit holds nearly all.
    magnitude = (logit_rounding(X, W) + R) * jnp.maximum(S, moved) * jnp.exp(2 * R)
    # Shares below the smallest normal number are cut to zero.
    return Sides(jnp.abs(S - moved), right, magnitude=magnitude, error=1e-300)


@for_every_radius(
    "Lemma B.1, Part 13, sharpened",
    controls=[Control("$R/4$ in place of $R/2$", share=0.5)],
)
def lemma_b_1_part_13_sharp(X, W, W_tilde, R, *, share=1.0):
    r"""$$\max_{\|z\|_\infty \le 1} \langle z, S_i - \tilde{S}_i \rangle =
    \|S_i - \tilde{S}_i\|_1 \le 2 \tanh(R/2) \le R \;\mathrm{for\ every}\; R, B$$

    Attained by two halves of equal weight that move by $R$ against each other. The softmax is
    Lipschitz whatever the size of its logits: no $e^{4B}$ enters.
    """
    left = jnp.sum(jnp.abs(softmax_weights(X, W) - softmax_weights(X, W_tilde)), axis=1)
    right = gu2024_relative_bounds(share * R)[13]
    return Sides(left, right, magnitude=logit_rounding(X, W) + R)
