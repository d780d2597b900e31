r"""Appendix C: the two facts on Rademacher complexities that the proof of Theorem 4.1 takes over.

F holds the values of six functions on five samples; complexities are means over all 32 signs.
"""

from functools import partial
from itertools import product

import jax.numpy as jnp
import numpy as np

from attlas.core.claim import Control, Sides, Source
from attlas.core.statement import inequality

_FUNCTIONS, _SAMPLES = 6, 5
_SIGNS = np.array(list(product((1.0, -1.0), repeat=_SAMPLES)))


def functions(rng, count):
    """Functions of all scales, half of them close to one, with maps of slope at most L."""
    F = rng.normal(size=(count, _FUNCTIONS, _SAMPLES))
    F[::2] = F[::2, :1] + 0.01 * F[::2]
    kink, slope = rng.normal(size=(count, _SAMPLES)), rng.uniform(-1, 1, (count, _SAMPLES))
    slope[::4], L = 1.0, 10 ** rng.uniform(-1, 1, count)
    return {"F": 10 ** rng.uniform(-1, 1, (count, 1, 1)) * F, "kink": kink, "slope": slope, "L": L}


def _complexity(F):
    return jnp.mean(jnp.max(jnp.asarray(_SIGNS) @ F.T, axis=1)) / _SAMPLES


on_functions = partial(inequality, sample=functions, source=Source.FOUND)


@on_functions(
    "Appendix C, both signs of a class",
    search_over="F",
    controls=[Control("without the function 0", zero=False)],
)
def appendix_c_union(F, *, zero=True):
    r"""$$0 \in \mathcal F: \quad Rad(\mathcal F \cup -\mathcal F) \le 2 Rad(\mathcal F)$$

    Equality for $\{0, f\}$. The control shows why $W_v = 0$ is named in the proof.
    """
    F = jnp.concatenate([F, jnp.zeros_like(F[:1])]) if zero else F
    both = _complexity(jnp.concatenate([F, -F]))
    return Sides(both, 2 * _complexity(F), magnitude=jnp.max(jnp.abs(F)))


@on_functions(
    "Appendix C, the contraction of Ledoux and Talagrand",
    search_over=("F", "kink", "slope"),
    project=lambda slope: {"slope": jnp.clip(slope, -1, 1)},
    controls=[Control("half the Lipschitz constant", factor=0.5)],
)
def appendix_c_contraction(F, kink, slope, L, *, factor=1.0):
    r"""$$|\phi_i(s) - \phi_i(t)| \le L |s - t|: \quad
    \mathbb{E} \sup_{f} \sum_i \epsilon_i \phi_i(f(x_i)) \le
    L\, \mathbb{E} \sup_{f} \sum_i \epsilon_i f(x_i)$$

    Piecewise linear $\phi_i$ with one kink, so that $\phi_i(0) = 0$ is not asked for. Equality for
    slopes $L$ on both sides.
    """
    bent = F - kink
    after = L * (jnp.maximum(bent, 0) + slope * jnp.minimum(bent, 0))
    size = L * (jnp.max(jnp.abs(F)) + jnp.max(jnp.abs(kink)))
    return Sides(_complexity(after), factor * L * _complexity(F), magnitude=size)
