"""Local Rademacher complexity with explicit constants, and why one cover with kl is below it."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.claims.claim import Control, Kind, Sides, Status
from attlas.claims.sampling import shared
from attlas.claims.statement import computed, inequality, probability
from attlas_bounds.library.bounds.linear_attention import LinearAttention, measure_margins
from attlas_bounds.library.bounds.local_margin_bound import (
    local_complexity,
    local_deviation,
    local_margin_bound,
    localised_risk,
)
from attlas_bounds.library.bounds.margin_bounds import cover_margin_bound


def means(rng, count):
    """Means of five functions and on a sample; in every third instance of one function alone."""
    P, Pm = rng.uniform(size=(2, count, 5))
    Pm = P * np.where(rng.random((count, 1)) < 0.5, Pm, 1 - 0.3 * Pm)
    P[::3], Pm[::3] = P[::3, :1], Pm[::3, :1]
    P, Pm = np.maximum(P, 0.01), np.maximum(Pm, 0.01)
    return {"P": P, "Pm": Pm, "r": rng.uniform(0.02, 1, count)}


def _shares(P, Pm):
    return {"P": jnp.clip(P, 0.01, 1), "Pm": jnp.clip(Pm, 0.01, 1)}


@inequality(
    "Functions of small risk decide for all",
    sample=means,
    search_over=("P", "Pm"),
    project=_shares,
    status=Status.NEW,
    count=96,
    controls=[
        Control("nine tenths of the deviation", factor=0.9),
        Control("the deviation of small risks for all", cut=False),
    ],
)
def small_risks_decide(P, Pm, r, *, factor=1.0, cut=True):
    r"""$$Pf\le\max\Big(P_mf+V,\ \frac r{r-V}P_mf\Big),\quad
    V=\sup_f\,(P-P_m)\Big(f\min\big(1,\tfrac r{Pf}\big)\Big)<r$$

    The step that makes a complexity local, for five functions with values in $[0,1]$. Attained by
    one function, in either case. Means are at least 0.01, so that dividing by $r-V$ magnifies
    its rounding by 100 at most.
    """
    V = factor * jnp.max((P - Pm) * jnp.minimum(1, r / P))
    bound = localised_risk(Pm, V, r) if cut else jnp.minimum(Pm + jnp.maximum(V, 0), 1)
    magnified = jnp.clip(r / jnp.maximum(r - V, 0.01 * r), 1, 100)
    return Sides(P, jnp.broadcast_to(bound, P.shape), magnitude=magnified)


_complexities = jax.jit(jax.vmap(local_complexity), compiler_options=CHEAP_COMPILATION)


@computed(
    Kind.INEQUALITY,
    "Local complexity of a finite class",
    status=Status.NEW,
    count=48,
    evaluations=480,
    roundings=1024,
    controls=[Control("a fifth of the bound", factor=0.2)],
)
def local_complexity_of_a_class(rng, count, *, factor=1.0):
    r"""$$\mathbb E\sup_{\theta Pg\le r}\frac1m\sum_i\sigma_i\theta g(X_i)\le\psi(r),\quad
    \log N(\epsilon)\le\ln K\le\frac{\ln K}{\epsilon^2}$$

    One to five functions with values in $[0,1]$ on three equally likely points, $m=1$ to 5: all
    $3^m$ samples and $2^m$ signs. A half is reached by one constant function on one sample.
    """
    left, sizes = np.empty(count), np.empty((count, 3))
    functions, radii = rng.uniform(size=(count, 5, 3)), rng.uniform(0.02, 1, count)
    for e, r in enumerate(radii.tolist()):
        K, m = int(rng.integers(1, 6)), int(rng.integers(1, 6))
        g = functions[e, :K]
        if e % 3 == 0:
            K, m, r = 1, 1, 1.0
            g = np.full((1, 3), 0.9 + functions[e, 0, 0] / 10)
        samples = np.array(list(itertools.product(range(3), repeat=m)))
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=m)))
        sums = np.einsum("kni,si->kns", g[:, samples], signs) / m
        scaled = np.minimum(1, r / g.mean(axis=1))[:, None, None] * np.maximum(sums, 0)
        left[e] = scaled.max(axis=0).mean()
        sizes[e] = math.log(K), r, m
    return left, factor * np.asarray(_complexities(*sizes.T))


_TAIL = 0.2


def deviations(rng, count):
    """Suprema of one indicator, or of both of a coin, whose mean is known exactly."""
    from scipy.stats import binom  # takes half a second, and all papers are listed without it

    Z, V = np.empty((2, count))
    for e in range(count):
        m, p = int(rng.integers(5, 200)), float(rng.uniform(0.02, 0.98))
        k, paired = int(rng.binomial(m, p)), bool(e % 2)
        counts = np.arange(m + 1)
        mean = float(binom.pmf(counts, m, p) @ np.abs(p - counts / m)) if paired else 0.0
        Z[e] = abs(p - k / m) if paired else p - k / m
        r = max(p, 1 - p) if paired else p
        V[e] = float(local_deviation(mean / 2, r, float(m), -math.log(_TAIL)))
    return {"Z": Z, "V": V}


@probability(
    "Deviation of functions of small risk",
    level=1 - _TAIL,
    status=Status.NEW,
    sample=deviations,
    independent="law and sample",
    count=240,
    controls=[Control("a tenth of it", factor=0.1)],
)
def deviation_of_small_risks(Z, V, *, factor=1.0):
    r"""$$\mathbb P\Big[\sup_g(P-P_m)g\le V\Big]\ge1-e^{-x},\quad e^{-x}=0.2$$

    Bousquet's inequality for increments of at most $r$, with the exact mean of the supremum in
    place of $2\psi$: one indicator, or both indicators of a coin, on 5 to 200 draws.
    """
    return factor * V >= Z


@shared
def _two_bounds(rng, count):
    """The cover bound and the local one, on the same samples as if they were larger."""
    left, right = np.empty((2, count))
    for e in range(count):
        n, margin = int(rng.integers(40, 400)), 10 ** rng.uniform(-1.7, 0)
        y = np.where(rng.random(n) < (0.1 if e % 4 == 0 else 0.0), -1.0, 1.0)
        norm, m = 10 ** rng.uniform(-1, 2), 10 ** rng.uniform(4, 13)
        head = LinearAttention([1.0, 0.0], np.array([[0.0, 0.0], [0.0, norm]]))
        X = np.broadcast_to(np.array([[margin, 0.0]]), (n, 1, 2))
        sample = measure_margins(head, X, [0.0, 1.0], y)
        left[e] = cover_margin_bound(sample, 1.0, 0.05).at(m)
        right[e] = local_margin_bound(sample, 1.0, 0.05).at(m)
    return left, right


@computed(
    Kind.INEQUALITY,
    "Relative deviations of one cover against local complexity",
    status=Status.NEW,
    count=40,
    evaluations=256,
    roundings=1024,
    controls=[Control("a fifth of local complexity", factor=0.2)],
)
def kl_below_local(rng, count, *, factor=1.0):
    r"""$$\sup\{p:{\rm kl}(\hat q\|p)\le c\}\le\min_{\gamma,r}\max\Big(\hat q_\gamma+V_r,\
    \frac r{r-V_r}\hat q_\gamma\Big)$$

    The cover bound and the local one on samples of 40 to 400 sequences, as if they were $10^4$ to
    $10^{13}$, with margins from 0.02 to 1, norms to 100 and a share of errors of 0 or a tenth.
    Where all margins are large the first is proved to be smaller: it falls like $1/m$, the second
    like $m^{-1/2}$. Equal where both are vacuous.
    """
    left, right = _two_bounds(rng, count)
    return left, factor * right
