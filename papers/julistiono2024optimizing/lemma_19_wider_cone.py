r"""Equation (8), sharpened: a wider cone with the same guarantee, free of the dimension.

On the sphere D_psi is the divergence of ||.||_p^2 / 2, (p-1)-strongly convex for 1 < p <= 2,
and for p > 2 it has the best constant of the scalar inequality (claim lemma-13-l1-sharp); see
`julistiono2024_mu_0`.
"""

from functools import partial

import jax.numpy as jnp

from attlas.bounds.optimisation.julistiono2024_cone import julistiono2024_mu_0
from attlas.claims.claim import Control, Sides, Status, assume
from attlas.claims.statement import inequality
from julistiono2024optimizing.cone_instances import (
    SOLVED,
    back_in_place,
    cone_divergence,
    cone_points,
    plain_norm,
)


def width(instance):
    """The sharpened width of the cone."""
    return julistiono2024_mu_0(instance["delta"], instance["A"], instance["p"])


def wider(instance):
    """Four times the sharpened width."""
    return 4 * width(instance)


def in_the_cone(W_mm, W, p, delta, A):
    """Whether the divergence is at most the width, up to rounding."""
    divergence = cone_divergence(W_mm, W, p)
    return divergence <= julistiono2024_mu_0(delta, A, p) + 64 * jnp.finfo(divergence.dtype).eps


@inequality(
    "(8) and Lemma 19, sharpened",
    status=Status.SHARPENED,
    sample=partial(cone_points, width=width),
    assumptions=[
        SOLVED,
        assume("$W$ lies in the cone of the sharpened width", in_the_cone),
    ],
    search_over="W",
    project=back_in_place(width=width),
    controls=[Control("four times wider", sample=partial(cone_points, width=wider))],
)
def lemma_19_wider_cone(p, W_mm, W, delta, A):
    r"""$$D_\psi(\bar W_{mm},\bar W)\le\mu_0,\ \mu_0=\frac{p-1}{2}\left(\frac{\delta}{4A}\right)^2
    \ (1<p\le2),\ \frac{p-1}{p(1+s)^{p-2}}\left(\frac{\delta}{4A}\right)^p\ (p>2),\
    s^{p-1}=(p-1)s+(p-2) \;\Rightarrow\;
    \|\bar W-\bar W_{mm}\|_{p,p}\le\frac{\delta}{4A}$$

    Attained for $p = 2$, where $D_\psi$ is half the squared distance: there the cone cannot be
    wider. 4 times the recalled width at $p = 2$, 4.7 times at $p = 3$, 5.3 times at $p = 4$.
    """
    distance = plain_norm(W / plain_norm(W, p) - W_mm / plain_norm(W_mm, p), p)
    allowed = delta / (4 * A)
    # 64 roundings of one in the divergence move the distance by at most this share (p >= 2 has
    # distance^p in proportion to the width, p <= 2 its square).
    share = 64 * jnp.finfo(distance.dtype).eps / julistiono2024_mu_0(delta, A, p)
    return Sides(distance, allowed, magnitude=jnp.ones(()), error=allowed * share)
