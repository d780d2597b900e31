r"""Lemma 1.2: the gradient in w2 at a fixed point, and between two points.

A mask a in [0, 1]^p has s_0 entries, so that B = sqrt(s_0) C_1 C_x bounds the features. Constants
are computed from the arrays, so that any arrays may be tried.
"""

from functools import partial
from itertools import combinations_with_replacement
from math import factorial

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, ProofStep, Sides, Status
from attlas.claims.statement import erratum, inequality
from liu2021analyzing.library.models.rectifier import rectify

_P, _S0, _UNITS = 5, 2, 3
_SAMPLES, _ATOMS, _PLANE = 8, 4, 2
_CHAIN = "Lemma 1.2: the gradient"


def masked(rng, count):
    """One input, a mask on its first s_0 entries, student and teacher of mixed sizes, and a step.

    Half of the instances are aligned, teacher opposite, with steps that shrink all blocks.
    """
    sizes = 10 ** rng.uniform(-2, 2, (5, count, 1))
    support, even = np.arange(_P) < _S0, slice(None, None, 2)
    a, a_t = rng.uniform(0, 1, (2, count, _P)) * support
    x = rng.standard_normal((count, _P)) * sizes[1]
    W, W_t = (rng.standard_normal((count, _P, _UNITS)) * sizes[0][:, :, None] for _ in range(2))
    w, w_t = (rng.standard_normal((count, _UNITS)) * sizes[2] for _ in range(2))
    step = rng.standard_normal((count, _P * _UNITS + _UNITS + _S0))
    x[even], a[even], a_t[even] = sizes[1][even], support, support
    W[even] = W_t[even] = sizes[0][even, :, None] * support[:, None]
    w[even] = sizes[2][even]
    w_t[even] = -w[even]
    shrunk = [(support[:, None] * np.ones((1, _UNITS))).ravel(), np.ones(_UNITS), np.ones(_S0)]
    step[even] = -np.concatenate([part / np.linalg.norm(part) for part in shrunk])
    arrays = {"x": x, "a": a, "a_t": a_t, "W": W, "W_t": W_t, "w": w, "w_t": w_t, "step": step}
    return arrays | {"rho": 10 ** rng.uniform(-4, -0.5, count)}


def norm(array):
    """Euclidean norm of all entries."""
    return jnp.sqrt(jnp.sum(array**2))


def gradient_term(x, a, W, w, a_t, W_t, w_t):
    """The vector u Phi of the student."""
    phi = rectify((x * a) @ W)
    return (phi @ w - rectify((x * a_t) @ W_t) @ w_t) * phi


def constants(x, W, w, W_t, w_t):
    """C_x, and C_1 and C_2 of student and teacher."""
    C_1, C_2 = jnp.maximum(norm(W), norm(W_t)), jnp.maximum(norm(w), norm(w_t))
    return jnp.max(jnp.abs(x)), C_1, C_2


def of_masks(a, a_t, rho):
    """Masks in [0, 1] on the first s_0 entries, and moves of a part of the radii."""
    support = jnp.arange(_P) < _S0
    inside = {"a": jnp.clip(a, 0.0, 1.0) * support, "a_t": jnp.clip(a_t, 0.0, 1.0) * support}
    return inside | {"rho": jnp.clip(rho, 1e-5, 1.0)}


on_masks = partial(inequality, sample=masked, count=48, project=of_masks)


@on_masks(
    "Lemma 1.2, bound of the features",
    proof_step=ProofStep(_CHAIN, 1),
    search_over=("x", "a", "W"),
    controls=[Control("one entry less", s_0=_S0 - 1)],
)
def lemma_1_2_features(x, a, W, *, s_0=_S0):
    r"""$$\|a\|_0 \le s_0: \quad \|\phi(W^\top (x \circ a))\|_2 \le \sqrt{s_0}\, C_1 C_x$$

    Attained by equal entries. The root comes from the mask alone, $\|a\|_2 \le \sqrt{s_0}$: for
    weights with $\|f\|_2 \le 1$ the same proof has $C_1 C_x$.
    """
    return norm(rectify((x * a) @ W)), s_0**0.5 * norm(W) * jnp.max(jnp.abs(x))


@on_masks(
    r"Lemma 1.2, bound of v = u Phi",
    proof_step=ProofStep(_CHAIN, 2),
    search_over=("x", "a", "W", "w", "a_t", "W_t", "w_t"),
    controls=[Control("without the factor 2", factor=1.0)],
)
def lemma_1_2_term(x, a, W, w, a_t, W_t, w_t, *, factor=2.0):
    r"""$$\|u \Phi\|_2 \le 2 s_0 C_1^2 C_2 C_x^2$$

    The factor 2, hidden in the paper, is attained: teacher and student of opposite sign.
    """
    C_x, C_1, C_2 = constants(x, W, w, W_t, w_t)
    right = factor * _S0 * C_1**2 * C_2 * C_x**2
    return Sides(norm(gradient_term(x, a, W, w, a_t, W_t, w_t)), right, right)


def moved(step, rho, a, W, w, C_1, C_2):
    """Another student, each block moved by at most rho times the radius of its ball."""
    steps = jnp.split(step, [_P * _UNITS, _P * _UNITS + _UNITS])
    d_W, d_w, d_a = (rho * part / jnp.maximum(norm(part), 1.0) for part in steps)
    W = W + C_1 * d_W.reshape(W.shape)
    w = w + C_2 * d_w
    a = a.at[:_S0].add(_S0**0.5 * d_a)
    # What left a ball is put back: its projection moves no further.
    W, w = W * jnp.minimum(1.0, C_1 / norm(W)), w * jnp.minimum(1.0, C_2 / norm(w))
    return jnp.clip(a, 0.0, 1.0), W, w


@on_masks(
    "Lemma 1.2, the gradient between points of the cover",
    status=Status.CORRECTED,
    proof_step=ProofStep(_CHAIN, 3),
    search_over=("x", "a", "W", "w", "a_t", "W_t", "w_t", "step", "rho"),
    controls=[Control("without the move of the mask: 4 in place of 7", K=1)],
)
def lemma_1_2_lipschitz(x, a, W, w, a_t, W_t, w_t, step, rho, *, K=2):
    r"""$$\|W - W'\|_F \le \rho C_1,\ \|w - w'\|_2 \le \rho C_2,\
    \|a - a'\|_2 \le \rho \sqrt{s_0}: \quad
    \|u \Phi - u' \Phi'\|_2 \le 7 s_0 C_1^2 C_2 C_x^2 \rho$$

    With distances relative to the balls, and every constant: $1 + 3 K$ for $K$ blocks besides $w$.
    The paper takes one distance for balls of different sizes. 7 is approached as $\rho$ goes to
    zero, where all shrink together and the teacher has the opposite sign.
    """
    C_x, C_1, C_2 = constants(x, W, w, W_t, w_t)
    teacher = a_t, W_t, w_t
    there = gradient_term(x, *moved(step, rho, a, W, w, C_1, C_2), *teacher)
    size = C_2 * _S0 * C_1**2 * C_x**2
    return Sides(
        norm(gradient_term(x, a, W, w, *teacher) - there), (1.0 + 3.0 * K) * size * rho, size
    )


def compositions():
    """Counts of n draws from the atoms, with their probabilities."""
    draws = combinations_with_replacement(range(_ATOMS), _SAMPLES)
    counts = np.array([np.bincount(draw, minlength=_ATOMS) for draw in draws])
    ways = [factorial(_SAMPLES) / np.prod([factorial(k) for k in row]) for row in counts]
    return counts.astype(float), np.array(ways) / _ATOMS**_SAMPLES


def atoms(rng, count):
    """Values v = u Phi at four equally likely inputs, and levels just below their deviations."""
    phi = np.abs(rng.standard_normal((count, _ATOMS, _PLANE)))
    v = rng.standard_normal((count, _ATOMS, 1)) * phi
    # Two opposite values, the worst case, in every third population.
    v[::3, 1::2] = -v[::3, :1]
    v[::3, ::2] = v[::3, :1]
    v -= v.mean(axis=1, keepdims=True)
    counts, _ = compositions()
    sizes = np.sort(np.linalg.norm(np.einsum("ka,cap->ckp", counts, v) / _SAMPLES, axis=2), axis=1)
    levels = sizes[:, np.linspace(len(counts) // 2, len(counts) - 1, 12).astype(int)]
    return {"v": v, "t": levels * (1 - 1e-9)}


@inequality(
    "Lemma 1.2, 'Hoeffding bound on the l2 norm'",
    sample=atoms,
    count=48,
    proof_step=ProofStep(_CHAIN, 4),
    search_over=("v", "t"),
    project=lambda v, t: {"v": v - jnp.mean(v, axis=-2, keepdims=True), "t": jnp.abs(t)},
    controls=[
        Control("twice the exponent", rate=1.0),
        Control("0.8 in place of 1/2 in the exponent", rate=0.8),
    ],
)
def lemma_1_2_concentration(v, t, *, rate=0.5):
    r"""$$\|v_i - E v\|_2 \le D: \quad
    P\left( \left\| \tfrac1n \sum_{i=1}^n v_i - E v \right\|_2 \ge t \right) \le
    2 \exp\left( -\frac{n t^2}{2 D^2} \right)$$

    The exact probability, from all 165 counts of eight draws from four inputs, at twelve levels,
    and that of one draw; $D = 4 s_0 C_1^2 C_2 C_x^2$ is what the lemma needs. No dimension enters
    (Pinelis).
    """
    counts, probabilities = (jnp.asarray(part) for part in compositions())
    size = jnp.sqrt(jnp.sum((counts @ v / _SAMPLES) ** 2, axis=1))
    left = jnp.sum(jnp.where(size[None, :] >= t[:, None], probabilities[None, :], 0.0), axis=1)
    squares = jnp.sum(v**2, axis=1)
    largest = jnp.max(squares)
    # And a single draw, at the level of its largest size: it distinguishes the factor 2 from 1.
    single = jnp.mean(jnp.where(squares >= largest * (1 - 1e-9), 1.0, 0.0))
    levels = jnp.append(_SAMPLES * t**2 / largest, 1.0)
    return jnp.append(left, single), 2 * jnp.exp(-rate * levels)


# Lemma 1.2: how many centres cover the balls of the parameters, and the samples that they cost.
#
# Lemma 5.2 of Vershynin (2010): at most (1 + 2 R / epsilon)^d points of a ball of radius R in R^d
# are pairwise epsilon apart, and a largest such set is a cover. (3 R / epsilon)^d needs
# epsilon <= R.

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
