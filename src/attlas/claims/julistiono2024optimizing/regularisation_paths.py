r"""The regularisation-path theorems for a fixed value head, global and local.

Our `multiples` are R / ||W_mm||_{p,p}. Points of the path are stationary on the sphere of radius R
to a relative Frank-Wolfe gap of 1e-6; that the lowest of several is the minimiser is supported
by the starts, not proved.
"""

from functools import partial

import jax.numpy as jnp

from attlas.claims.julistiono2024optimizing.path_instances import global_paths, local_paths
from attlas.core.claim import Control, Sides, Source, assume
from attlas.core.statement import limit

CONE = 0.1
"""Width of the cone in which the local path is sought."""
SOLVED = assume(
    "attention SVM certified to a relative gap of 1e-8, points of the path stationary to 1e-6",
    lambda certified: certified,
)
IN_THE_CONE = assume(
    "the stationary points lie in the cone of width 0.1", lambda own: jnp.max(own) <= CONE
)

on_paths = partial(limit, source=Source.RECALLED, scales="multiples", count=60)


@on_paths(
    "Regularisation-path theorem",
    sample=global_paths,
    assumptions=[SOLVED],
    controls=[Control("the attention SVM of another $p$", other=True)],
)
def regularisation_path(own, wrong, *, other=False):
    r"""$$W(R)=\arg\min_{\|W\|_{p,p}\le R}\mathcal L(W):\quad \lim_{R\to\infty}\frac{W(R)}{R}
    =\frac{W^{opt}_{mm}}{\|W^{opt}_{mm}\|_{p,p}}$$

    $p = 1.5, 2, 3$; $R$ of 15 to 120 times $\|W_{mm}\|_{p,p}$; $W(R)$ is the lowest stationary
    point from $W_{mm}$ and three random starts.
    """
    # Directions are rounded: a divergence is one minus a sum of nine terms.
    return Sides(wrong if other else own, jnp.zeros_like(own), magnitude=jnp.ones_like(own))


@on_paths(
    "Local regularisation path",
    sample=local_paths,
    count=90,  # a third of them leaves the cone
    assumptions=[SOLVED, IN_THE_CONE],
    controls=[Control("the globally optimal attention SVM", other=True)],
)
def local_regularisation_path(own, wrong, *, other=False):
    r"""$$W(R)=\arg\min_{W\in S_{p,\mu}(W^\alpha_{mm}),\,\|W\|_{p,p}\le R}\mathcal L(W):\quad
    \lim_{R\to\infty}\frac{W(R)}{R}=\frac{W^\alpha_{mm}}{\|W^\alpha_{mm}\|_{p,p}}$$

    $\alpha_1$ is the second best token of its sample, locally and not globally optimal. The points
    are stationary inside the cone, where the constraint of the cone is not active.
    """
    return Sides(wrong if other else own, jnp.zeros_like(own), magnitude=jnp.ones_like(own))
