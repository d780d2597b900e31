r"""Equation (8), sharpened: a wider cone with the same guarantee, free of the dimension.

On the sphere D_psi is the divergence of ||.||_p^2 / 2, (p-1)-strongly convex for 1 < p <= 2,
and for p > 2 it has the best constant of the scalar inequality (claim lemma-13-l1-sharp); see
`julistiono2024_mu_0_sharpened`.
"""

from functools import partial

import jax.numpy as jnp
from jaxtyping import Array

from attlas.bounds.optimisation.julistiono2024_cone import julistiono2024_mu_0_sharpened
from attlas.claims.julistiono2024optimizing.cone_instances import (
    closed_form,
    cone_divergence,
    cone_scale,
    cone_source,
    into_cone,
    plain_norm,
    solves_the_svm,
)
from attlas.core.old_claim import (
    Assumption,
    Claim,
    Control,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)

_PAPER = "julistiono2024optimizing"


def _placed(instance: Instance, wider: float = 1.0) -> dict[str, Array]:
    """W at the given share of the sharpened width."""
    placed = closed_form(instance)
    scale = cone_scale(placed)
    width = wider * julistiono2024_mu_0_sharpened(scale.delta, scale.A, placed["p"])
    W = into_cone(placed["W_mm"], instance["W"], placed["p"], width * placed["share"])
    return {**placed, "W": W, "width": width}


def _in_the_cone(instance: Instance) -> Array:
    divergence = cone_divergence(instance["W_mm"], instance["W"], instance["p"])
    return divergence <= instance["width"] + 64 * jnp.finfo(divergence.dtype).eps


def _distance(instance: Instance) -> Sides:
    W, W_mm, p = (instance[k] for k in ("W", "W_mm", "p"))
    scale = cone_scale(instance)
    left = plain_norm(W / plain_norm(W, p) - W_mm / plain_norm(W_mm, p), p)
    allowed = scale.delta / (4 * scale.A)
    # 64 roundings of one in the divergence move the distance by at most this share (p >= 2 has
    # distance^p in proportion to the width, p <= 2 its square).
    share = 64 * jnp.finfo(left.dtype).eps / instance["width"]
    return Sides(left, allowed, jnp.ones(()), error=allowed * share)


WIDER_CONE = Claim(
    name=f"{_PAPER}/lemma-19-wider-cone",
    paper=_PAPER,
    locator="(8) and Lemma 19, sharpened",
    statement=(
        r"D_\psi(\bar W_{mm},\bar W)\le\mu_0,\ \mu_0=\frac{p-1}{2}\left(\frac{\delta}{4A}\right)^2"
        r"\ (1<p\le2),\ \frac{p-1}{p(1+s)^{p-2}}\left(\frac{\delta}{4A}\right)^p\ (p>2),\ "
        r"s^{p-1}=(p-1)s+(p-2) \;\Rightarrow\;"
        r"\|\bar W-\bar W_{mm}\|_{p,p}\le\frac{\delta}{4A}"
    ),
    kind=Kind.INEQUALITY,
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    instances=cone_source(_placed),
    sides=_distance,
    assumptions=(
        Assumption(
            "W_mm solves the attention SVM (its norm equals the dual bound)", solves_the_svm
        ),
        Assumption("W lies in the cone of the sharpened width", _in_the_cone),
        Assumption(
            "the width is well above rounding",
            lambda i: i["width"] >= 8192 * jnp.finfo(i["width"].dtype).eps,
        ),
    ),
    control=(Control("four times wider", instances=cone_source(partial(_placed, wider=4.0))),),
    terms=64,
    note=(
        "Attained for p = 2, where D is half the squared distance: there the cone cannot be wider. "
        "4 times the printed width at p = 2, 4.7 times at p = 3, 5.3 times at p = 4."
    ),
)
