r"""The regularisation-path theorems for a fixed value head, global and local.

Our `multiples` are R / ||W_mm||_{p,p}. Points of the path are stationary on the sphere of radius R
to a relative Frank-Wolfe gap of 1e-6; that the lowest of several is the minimiser is supported
by the starts, not proved.
"""

from typing import Any

import jax.numpy as jnp

from attlas.claims.julistiono2024optimizing.path_instances import global_paths, local_paths
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
CONE = 0.1
"""Width of the cone in which the local path is sought."""


def _distance(instance: Instance, to: str = "own") -> Sides:
    # Directions are rounded: a divergence is one minus a sum of nine terms.
    left = instance[to]
    return Sides(left, jnp.zeros_like(left), jnp.ones_like(left), scales=instance["multiples"])


_SOLVED = Assumption(
    "attention SVM certified to a relative gap of 1e-8, points of the path stationary to 1e-6",
    lambda i: i["certified"],
)
_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.LIMIT,
    "status": Status.RECONSTRUCTED,
    "provenance": Provenance.RECALLED,
    "sides": _distance,
}

GLOBAL_PATH = Claim(
    name=f"{_PAPER}/regularisation-path",
    locator="Regularisation-path theorem",
    statement=(
        r"W(R)=\arg\min_{\|W\|_{p,p}\le R}\mathcal L(W):\quad \lim_{R\to\infty}\frac{W(R)}{R}"
        r"=\frac{W^{opt}_{mm}}{\|W^{opt}_{mm}\|_{p,p}}"
    ),
    instances=global_paths,
    count=60,
    assumptions=(_SOLVED,),
    control=(Control("the attention SVM of another p", sides=lambda i: _distance(i, to="wrong")),),
    note=(
        "p = 1.5, 2, 3; R of 20, 40 and 80 times ||W_mm||; W(R) is the lowest stationary point "
        "from W_mm and three random starts."
    ),
    **_COMMON,
)

LOCAL_PATH = Claim(
    name=f"{_PAPER}/local-regularisation-path",
    locator="Local regularisation path",
    statement=(
        r"W(R)=\arg\min_{W\in S_{p,\mu}(W^\alpha_{mm}),\,\|W\|_{p,p}\le R}\mathcal L(W):\quad"
        r"\lim_{R\to\infty}\frac{W(R)}{R}=\frac{W^\alpha_{mm}}{\|W^\alpha_{mm}\|_{p,p}}"
    ),
    instances=local_paths,
    count=60,
    assumptions=(
        _SOLVED,
        Assumption(
            "the stationary points lie in the cone of width 0.1",
            lambda i: jnp.max(i["own"]) <= CONE,
        ),
    ),
    control=(
        Control("the globally optimal attention SVM", sides=lambda i: _distance(i, to="wrong")),
    ),
    note=(
        "alpha_1 is the second best token of its sample, locally and not globally optimal. The "
        "points are stationary inside the cone, where the constraint of the cone is not active."
    ),
    **_COMMON,
)
