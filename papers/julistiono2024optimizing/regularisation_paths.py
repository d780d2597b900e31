r"""The regularisation-path theorems for a fixed value head, global and local.

Our `multiples` are R / ||W_mm||_{p,p}. Points of the path are stationary on the sphere of radius R
to a relative Frank-Wolfe gap of 1e-6 and no worse than W_mm scaled to it; that the lowest of
several is the minimiser is supported by the starts, not proved.
"""

from functools import partial

import jax.numpy as jnp

from attlas.claims.claim import Control, Sides, Source, assume
from attlas.claims.statement import limit
from julistiono2024optimizing.path_instances import global_paths, local_paths

SOLVED = assume(
    "attention SVM certified to a relative gap of 1e-8, the lowest points stationary to 1e-6 and "
    "no worse than $R W_{mm} / \\|W_{mm}\\|_{p,p}$",
    lambda certified: certified,
)

on_paths = partial(limit, source=Source.RECALLED, scales="multiples", assumptions=[SOLVED])


@on_paths(
    "Regularisation-path theorem",
    sample=global_paths,
    count=63,
    controls=[Control("the attention SVM of another $p$", other=True)],
)
def regularisation_path(own, wrong, *, other=False):
    r"""$$W(R)=\arg\min_{\|W\|_{p,p}\le R}\mathcal L(W):\quad \lim_{R\to\infty}\frac{W(R)}{R}
    =\frac{W^{opt}_{mm}}{\|W^{opt}_{mm}\|_{p,p}}$$

    $p = 1.5, 2, 3$; $n, T, d$ of $2, 3, 3$, of $3, 4, 2$ and of $5, 3, 4$; $R$ of 15 to 120 times
    $\|W_{mm}\|_{p,p}$; $W(R)$ is the lowest point reached from $W_{mm}$ and three random starts.
    """
    # Directions are rounded: a divergence is one minus a sum of 16 terms at most.
    return Sides(wrong if other else own, jnp.zeros_like(own), magnitude=jnp.ones_like(own))


@on_paths(
    "Local regularisation path",
    sample=local_paths,
    count=126,  # of half of them the lowest point is not stationary, or there is none in the cone
    controls=[Control("the globally optimal attention SVM", other=True)],
)
def local_regularisation_path(own, wrong, *, other=False):
    r"""$$W(R)=\arg\min_{W\in S_{p,\mu}(W^\alpha_{mm}),\,\|W\|_{p,p}\le R}\mathcal L(W):\quad
    \lim_{R\to\infty}\frac{W(R)}{R}=\frac{W^\alpha_{mm}}{\|W^\alpha_{mm}\|_{p,p}}$$

    $\alpha_1$ is the second best token of its sample, locally and not globally optimal. The points
    are the lowest in the part of the cone of width 0.1 where every $\alpha_i$ leads, as it does for
    $\mu \le \mu_0$: another choice's direction may lie in the cone as well. They are stationary,
    so that the constraint of the cone is not active.
    """
    return Sides(wrong if other else own, jnp.zeros_like(own), magnitude=jnp.ones_like(own))
