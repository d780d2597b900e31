r"""Lemma 1.2: how many centres cover the balls of the parameters, and the samples that they cost.

Lemma 5.2 of Vershynin (2010): at most (1 + 2 R / epsilon)^d points of a ball of radius R in R^d are
pairwise epsilon apart, and a largest such set is a cover. (3 R / epsilon)^d needs epsilon <= R.
"""

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Status
from attlas.claims.statement import erratum, inequality

_LINE, _GRID, _MASK = 400, 40, 8
_DIVISORS = (10, 16, 20, 25, 40, 50, 80, 100)
# Distances of grid points that are equal by construction differ by rounding.
_EQUAL = 1e-9


def separated(points, epsilon):
    """Points that are pairwise epsilon apart, one after the other, until none can be added."""
    centres = []
    distance = np.full(len(points), np.inf)
    while (far := distance >= epsilon * (1 - _EQUAL)).any():
        centres.append(points[np.argmax(far)])
        distance = np.minimum(distance, np.linalg.norm(points - centres[-1], axis=1))
    return np.array(centres)


def covers(rng, count):
    """Covers of intervals and discs by greedy separated sets, and how far they leave a point."""
    rows = []
    for k in range(count):
        d = 1 + k % 2
        R, ratio = 10 ** rng.uniform(-2, 2), rng.uniform(1, 4)
        line = np.linspace(-R, R, _LINE + 1 if d == 1 else _GRID + 1)
        points = np.stack(np.meshgrid(*[line] * d), axis=-1).reshape(-1, d)
        points = points[np.linalg.norm(points, axis=1) <= R * (1 + _EQUAL)]
        # A divisor of the line's grid, so that the bound is attained there.
        epsilon = R / ratio if d > 1 else 2 * R * float(rng.choice(_DIVISORS)) / _LINE
        centres = separated(points, epsilon)
        gaps = np.linalg.norm(points[:, None] - centres[None], axis=2).min(axis=1)
        rows.append((float(d), R, epsilon, float(len(centres)), gaps.max()))
    d, R, epsilon, size, gap = np.array(rows).T
    return {"d": d, "R": R, "epsilon": epsilon, "size": size, "gap": gap}


@inequality(
    "Lemma 1.2, Lemma 5.2 of Vershynin (2010)",
    sample=covers,
    status=Status.CORRECTED,
    count=32,
    controls=[
        Control(r"$(R / \epsilon)^d$, the least that volumes allow", volume=True),
        Control("a cover at half the distance", part=0.5),
    ],
    evaluations=64,
)
def lemma_1_2_cover(d, R, epsilon, size, gap, *, volume=False, part=1.0):
    r"""$$\mathcal{N}(B^d(0, R), \epsilon) \le \left( 1 + \frac{2R}{\epsilon} \right)^d
    \quad (\epsilon > 0)$$

    Covers are built greedily on grids of the interval and of the disc; both their number and the
    largest distance to a centre are compared. Attained on the line.
    """
    ratio = R / epsilon
    # The centres are epsilon (1 - 1e-9) apart.
    most = (ratio if volume else 1 + 2 * ratio / (1 - _EQUAL)) ** d
    return jnp.stack([size, gap]), jnp.stack([most, part * epsilon])


def wide():
    """A cover of the unit interval at distance 4."""
    return {"R": np.asarray(1.0), "epsilon": np.asarray(4.0), "d": np.asarray(1.0)}


@erratum(
    "Lemma 1.2, the covering numbers as printed",
    witness=wide,
    reason=r"at $\epsilon = 4 R$ even one centre is more than $3/4$",
    corrected=Control("the larger of 1 and the print", least=1.0),
)
def lemma_1_2_cover_printed(R, epsilon, d, *, least=0.0):
    r"""$$\max(1, (R/\epsilon)^d) \le \mathcal{N}(B^d(0, R), \epsilon) \le
    \left( \frac{3R}{\epsilon} \right)^d \quad (\epsilon > 0)$$

    The condition $\epsilon \le R$ of the lemma is missing; up to $3 R$ the print is still right,
    for one centre covers the ball. The proof takes $\epsilon$ small, so nothing depends on it.
    """
    ratio = R / epsilon
    return jnp.maximum(ratio**d, 1.0), jnp.maximum((3 * ratio) ** d, least)


def unlike_radii():
    """C_1 = 100 and C_2 = 1 at distance 0.1, four inputs and three units."""
    numbers = {"C_1": 100.0, "C_2": 1.0, "epsilon": 0.1, "p": 4.0, "d": 3.0}
    return {name: np.asarray(value) for name, value in numbers.items()}


@erratum(
    "Lemma 1.2, the radii as printed",
    witness=unlike_radii,
    reason="$C_1$ and $C_2$ are exchanged: 89.8 against 64.8",
    corrected=Control("each ball with its own radius", exchanged=False),
)
def lemma_1_2_cover_exchanged(C_1, C_2, epsilon, p, d, *, exchanged=True):
    r"""$$\|W\|_F \le C_1,\ \|w\|_2 \le C_2: \quad pd \log \frac{C_1}{\epsilon} +
    d \log \frac{C_2}{\epsilon} \le \log \mathcal{N} \le
    d \log \frac{3 C_1}{\epsilon} + pd \log \frac{3 C_2}{\epsilon}$$

    A slip: the statement of the lemma has both radii in one logarithm, which hides it.
    """
    volumes = p * d * jnp.log(C_1 / epsilon) + d * jnp.log(C_2 / epsilon)
    first, second = (C_2, C_1) if exchanged else (C_1, C_2)
    return volumes, p * d * jnp.log(3 * first / epsilon) + d * jnp.log(3 * second / epsilon)


def masks(rng, count):
    """Masks in [0, 1]^p with few entries, every second one of ones."""
    s0 = rng.integers(1, _MASK + 1, count)
    a = rng.uniform(0, 1, (count, _MASK)) * (np.arange(_MASK) < s0[:, None])
    a[::2] = np.arange(_MASK) < s0[::2, None]
    return {"a": a, "s0": s0.astype(float)}


@inequality(
    "Lemma 1.2, the ball of the masks",
    sample=masks,
    status=Status.SHARPENED,
    count=48,
    search_over="a",
    project=lambda a, s0: {"a": jnp.clip(a, 0.0, 1.0) * (jnp.arange(_MASK) < s0[..., None])},
    controls=[Control("the root of the root", power=0.25)],
)
def lemma_1_2_mask_radius(a, s0, *, power=0.5):
    r"""$$a \in [0, 1]^p,\ \|a\|_0 \le s_0: \quad \|a\|_2 \le \sqrt{s_0}$$

    The paper writes $B_p(0, s_0^2)$ for the radius $s_0$ and then takes $s_0^2$ in the covering
    number; $\sqrt{s_0}$ is attained. In the logarithm this costs a factor below 4.
    """
    return jnp.sqrt(jnp.sum(a**2)), s0**power
