r"""Theorem 4: the largest number of linear regions, with biases and without.

Counts are exact: every float is a rational number, and arrangements are counted in integers.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Kind, Sides, Source, Status
from attlas.claims.statement import erratum, identity, inequality
from liu2021analyzing.library.bounds.liu2021_regions import liu2021_regions
from liu2021analyzing.library.measures.linear_regions import count_linear_regions
from liu2021analyzing.library.models.fixed_attention import (
    EuclideanAttention,
    SoftmaxAttention,
    TopAttention,
    UniformAttention,
)
from liu2021analyzing.library.models.two_layer import AttendedTwoLayer, TwoLayer
from liu2021analyzing.region_instances import (
    ROUNDINGS,
    UNITS,
    affine_pieces,
    columns,
    masked_networks,
    size_pairs,
)


def two_networks():
    """s0 = 1, n1 = 3, and s0 = 2, n1 = 10: generic networks with and without biases."""
    rng, rows = np.random.default_rng(0), []
    for n1, s0 in ((3, 1), (10, 2)):
        W, (b, w2) = rng.standard_normal((n1, s0)), rng.standard_normal((2, n1))
        rows.append(
            {
                "printed": liu2021_regions(n1, s0, "printed"),
                # Generic ones have the most regions: see theorem-4-central-maximum.
                "without": count_linear_regions(W, w2),
                "with_biases": count_linear_regions(W, w2, b),
            }
        )
    return columns(rows)


@erratum(
    "Theorem 4, for the model as it is printed",
    witness=two_networks,
    reason="without biases all hyperplanes meet at 0: $2 < 3$ and $20 < 25$ regions",
    corrected=Control("with biases, as the proof has them and the model has not", biases=True),
    roundings=ROUNDINGS,
)
def theorem_4(printed, without, with_biases, *, biases=False):
    r"""$$\|f(x)\|_0 = s_0 < n_1: \quad \lfloor n_1/s_0 \rfloor^{s_0} \le \max_{w^{(1)}, w^{(2)}}
    \#\,\mathrm{regions} \big( w^{(2)\top} \phi(\langle w^{(1)}, x \odot f \rangle) \big)$$

    $s_0 = 1$, $n_1 = 3$: two regions, where three are promised; $s_0 = 2$, $n_1 = 10$: 20 in place
    of 25. Without biases the maximum grows like $n_1^{s_0 - 1}$, the printed bound like
    $n_1^{s_0}$, so it fails for every $s_0$ once $n_1$ is large. Biases, which the proof's units
    have, fix it.
    """
    return printed, with_biases if biases else without


def constructions(rng, count):
    """The networks of the proof after random positive weights f, counted as they are."""
    rows = []
    for place in range(count):
        s0 = 1 + place % 3
        n1 = s0 + 1 + place // 3
        q, f = n1 // s0, rng.uniform(0.1, 1.0, s0)
        slopes = np.r_[1.0, np.full(q - 1, 2.0)]
        W = np.vstack([np.outer(slopes, row) for row in np.eye(s0)]) * f[None, :]
        b, w2 = np.tile(-np.arange(float(q)), s0), np.tile((-1.0) ** np.arange(q), s0)
        rows.append(
            {
                "regions": count_linear_regions(W, w2, b),
                "without": count_linear_regions(W, w2),
                "corrected": liu2021_regions(n1, s0, "corrected"),
                "n1": n1,
                "s0": s0,
            }
        )
    # Inputs that f leaves out and units that are left over change nothing.
    return columns(rows)


@identity(
    "Proof of Theorem 4, its network",
    sample=constructions,
    status=Status.CORRECTED,
    count=36,
    roundings=ROUNDINGS,
    controls=[
        Control("printed: $q$ regions per group", more=0),
        Control("its biases left out", biases=False),
    ],
)
def theorem_4_construction(regions, without, corrected, n1, s0, *, more=1, biases=True):
    r"""$$h_i = \max(0, 2 w_j x - (i-1)),\ i \le q = \lfloor n_1/s_0 \rfloor,\ j \le s_0: \quad
    \#\,\mathrm{regions} = (q + 1)^{s_0}$$

    Counted, and the library's formula; $n_1$ up to 15 and $s_0$ up to 3, after positive weights
    $f$: the $q$ units of a group cut their axis at $q$ different places, into $q + 1$ pieces.
    """
    number = (jnp.floor(n1 / s0) + more) ** s0
    return jnp.stack([regions if biases else without, corrected]), jnp.stack([number, number])


def logarithms(rng, count):
    """Logarithms of the printed bound, the construction and the maximum."""
    return columns(
        [
            {
                "printed": math.log(liu2021_regions(n1, s0, "printed")),
                "construction": math.log(liu2021_regions(n1, s0, "corrected")),
                "most": math.log(liu2021_regions(n1, s0)),
                "least": math.log(liu2021_regions(n1, s0) - 1),
            }
            for n1, s0 in size_pairs(rng, count)
        ]
    )


of_sizes = partial(inequality, sample=logarithms, count=128, roundings=ROUNDINGS)


@of_sizes(
    "Theorem 4, the network of the proof",
    status=Status.CORRECTED,
    controls=[Control("half of the regions", part=0.5)],
    evaluations=896,
)
def theorem_4_with_biases(printed, construction, *, part=1.0):
    r"""$$\lfloor n_1/s_0 \rfloor^{s_0} \le \big( \lfloor n_1/s_0 \rfloor + 1 \big)^{s_0}$$

    In logarithms. For $s_0 > n_1 / 2$ the printed bound is 1 and the construction has $2^{s_0}$
    regions.
    """
    return printed, construction + math.log(part)


@of_sizes(
    "Theorem 4, the maximum",
    status=Status.SHARPENED,
    controls=[Control("without the first binomial, $j = 0$", first=False)],
    evaluations=896,
)
def theorem_4_best(construction, most, least, *, first=True):
    r"""$$\big( \lfloor n_1/s_0 \rfloor + 1 \big)^{s_0} \le \sum_{j \le s_0} \binom{n_1}{j}$$

    In logarithms. Equal for $s_0 = 1$ and close where $s_0$ is near $n_1$; in the middle the
    construction is far below the maximum, which is known exactly.
    """
    return construction, most if first else least


def binomials(units, most):
    """sum_{j <= most} C(units, j) for a traced number."""
    terms = [math.comb(units, j) * 1.0 for j in range(units + 1)]
    return jnp.sum(jnp.where(jnp.arange(units + 1.0) <= most, jnp.asarray(terms), 0.0))


def inputs_left(W):
    """s_0, the columns that the mask leaves."""
    return jnp.sum(jnp.any(W != 0, axis=0).astype(float))


def attained(number, maximum, library, generic):
    """The count against the maximum; for generic networks the reverse; and the library's."""
    reverse, gap = jnp.where(generic > 0, maximum, number), jnp.abs(library - maximum)
    return jnp.stack([number, reverse, gap]), jnp.stack([maximum, number, jnp.zeros_like(gap)])


on_masked_networks = partial(
    inequality, sample=masked_networks, status=Status.SHARPENED, count=64, roundings=ROUNDINGS
)


@on_masked_networks(
    "In place of Theorem 4, with biases",
    controls=[Control("without the last binomial", shift=-1.0), Control("a region more", more=1.0)],
    evaluations=64,
)
def theorem_4_maximum(W, regions, most, generic, *, shift=0.0, more=0.0):
    r"""$$\#\,\mathrm{regions} \big( w^{(2)\top} \phi(\langle w^{(1)}, x \odot f \rangle + b)
    \big) \le \sum_{j \le s_0} \binom{n_1}{j}, \quad \|f\|_0 = s_0, \quad
    \mathrm{with\ equality\ for\ almost\ all\ } w^{(1)}, b, w^{(2)}$$

    The exact count of random weights is the maximum, which is checked as well. Half of the
    networks have small integers as weights, so that hyperplanes repeat and kinks cancel; most of
    those stay below.
    """
    maximum = binomials(UNITS, inputs_left(W) + shift) + more
    return attained(regions, maximum, most, generic)


@on_masked_networks(
    "In place of Theorem 4, without biases",
    controls=[
        Control("without the last binomial", shift=-1.0),
        Control("two regions more", more=2.0),
        Control("with biases", biases=True),
    ],
    evaluations=64,
)
def theorem_4_central_maximum(
    W, central, cells, most_central, generic, *, shift=0.0, more=0.0, biases=False
):
    r"""$$\#\,\mathrm{cells} \big( \langle w^{(1)}_i, x \odot f \rangle = 0 \big)_{i \le n_1} \le
    2 \sum_{j < s_0} \binom{n_1 - 1}{j}, \quad \|f\|_0 = s_0, \quad
    \mathrm{with\ equality\ for\ almost\ all\ } w^{(1)}$$

    Equality is checked on random weights, the bound also on small integers. With $s_0 = 1$ it is
    2, whatever $n_1$: the refutation of the printed bound for the model without biases.
    """
    maximum = 2 * binomials(UNITS - 1, inputs_left(W) - 1 + shift) + more
    return attained(cells if biases else central, maximum, most_central, generic)


# Around Theorem 4: regions and cells, the proof's intervals, and attention that depends on x.

# Gradients that differ by less than this share of the largest are counted as one. Rounding is
# 1e-15 of it; those of different cells of the drawn networks differ by far more.
_EQUAL = 1e-9
_INPUTS = 4


def distinct(rows):
    """Number of different rows."""
    gap = jnp.max(jnp.abs(rows[:, None, :] - rows[None, :, :]), axis=2)
    same = gap <= _EQUAL * jnp.max(jnp.abs(rows))
    earlier = jnp.tril(jnp.ones(same.shape, bool), -1)
    return jnp.sum(jnp.where(jnp.any(same & earlier, axis=1), 0.0, 1.0))


def pieces(W, b, w2, points):
    """Number of different affine functions at some points."""
    model = TwoLayer(W.T, w2, b)
    slopes = jax.vmap(jax.grad(model))(points)
    heights = jax.vmap(model)(points) - jnp.sum(slopes * points, axis=1)
    return distinct(jnp.concatenate([slopes, heights[:, None]], axis=1))


@identity(
    "Theorem 4, its quantity",
    sample=affine_pieces,
    status=Status.NEW,
    count=32,
    roundings=ROUNDINGS,
    controls=[Control("cells of all hyperplanes", all_cells=True)],
)
def theorem_4_pieces(W, b, w2, points, regions, cells, *, all_cells=False):
    r"""$$\#\,\mathrm{regions} = \# \{ (\nabla F(x), F(x) - \langle \nabla F(x), x \rangle) \}
    \quad \mathrm{for\ almost\ all\ } (w^{(1)}, b, w^{(2)})$$

    Two ways to count: integers, from the hyperplanes along which the gradient jumps, and
    derivatives at a point in every cell. Every second network has two units with one hyperplane
    whose kinks cancel, which the function does not show.
    """
    return cells if all_cells else regions, pieces(W, b, w2, points)


@inequality(
    "Theorem 4, regions of the function and cells of its units",
    sample=affine_pieces,
    status=Status.NEW,
    count=32,
    roundings=ROUNDINGS,
    controls=[Control("the other way round", reverse=True)],
    evaluations=32,
)
def theorem_4_cells(W, b, w2, points, cells, *, reverse=False):
    r"""$$\#\,\mathrm{regions}(F) \le \#\,\mathrm{cells} \{ \langle w_i, x \rangle + b_i = 0 \}$$

    Equal unless units share a hyperplane and their kinks cancel there, or $w^{(2)}$ has a zero.
    """
    seen = pieces(W, b, w2, points)
    return (cells, seen) if reverse else (seen, cells)


def one_group():
    """One group of the proof with q = 4 units, and the ends of its bounded intervals."""
    index = np.arange(4.0)
    ends = np.stack([index[:-1], index[:-1] + 1], axis=1)
    slopes = np.r_[1.0, np.full(3, 2.0)]
    return {"W": slopes[None], "b": -index, "w2": (-1.0) ** index, "printed": ends}


@erratum(
    "Proof of Theorem 4, its intervals",
    of=Kind.IDENTITY,
    witness=one_group,
    reason="$2x - (i - 1)$ vanishes at $(i - 1) / 2$, not at $i - 1$",
    corrected=Control(
        "corrected: intervals of half the length, between the points $(i - 1) / 2$", length=0.5
    ),
)
def theorem_4_breakpoints(W, b, w2, printed, *, length=1.0):
    r"""$$w_3^\top h \mathrm{\ is\ linear\ on\ } (i-1, i], \quad h_i(x) =
    \max(0, 2 w_j x - (i-1)), \quad i < q$$

    $q = 4$; the function at the middle of each interval against the mean of its values at the ends.
    The breakpoints are $0, 1/2, \dots, (q - 1)/2$. The bounded intervals are mapped onto
    $(0, 1/2)$, not onto $(0, 1)$ as the proof says; one hidden layer needs neither.
    """
    group, ends = TwoLayer(W, w2, b), length * printed
    at = jax.vmap(lambda t: group(t[None]))
    size = jnp.sum(jnp.abs(W[0]) * ends[-1, 1] + jnp.abs(b))
    return Sides(at(jnp.mean(ends, axis=1)), (at(ends[:, 0]) + at(ends[:, 1])) / 2, size)


def all_positive():
    """Positive weights and inputs: no unit changes its sign between the two inputs."""
    rng = np.random.default_rng(0)
    return {
        "W1": rng.uniform(0.5, 1.0, (3, 4)),
        "w2": rng.uniform(0.5, 1.0, 4),
        "M": rng.standard_normal((3, 3)),
        "ends": rng.uniform(0.5, 1.0, (2, 3)),
    }


@erratum(
    "Theorem 4, where f depends on x",
    Source.DERIVED,
    of=Kind.IDENTITY,
    witness=all_positive,
    reason=r"$x \odot f(x)$ is not linear in $x$",
    corrected=Control("weights that do not depend on $x$", fixed=True),
)
def theorem_4_soft_attention(W1, w2, M, ends, *, fixed=False):
    r"""$$\mathrm{no\ unit\ changes\ sign\ on\ } [x, x'] \Rightarrow w^{(2)\top} \phi(
    \langle w^{(1)}, x \odot f(x) \rangle) \mathrm{\ is\ linear\ there}$$

    With a softmax of $x$ the function has no linear regions at all, so their number is undefined;
    a softmax has no zero weight either, so that $s_0 = p$. The theorem is about weights $f$ that do
    not depend on $x$.
    """
    weights = UniformAttention() if fixed else SoftmaxAttention(M)
    model = AttendedTwoLayer(TwoLayer(W1, w2), EuclideanAttention(weights))
    lower, upper = ends
    return model((lower + upper) / 2), (model(lower) + model(upper)) / 2


def one_unit(rng, count):
    """One unit of positive weight on four inputs, and points in all regions of the attended one."""
    signs = np.vstack([np.eye(_INPUTS), -1 - np.eye(_INPUTS)])
    return {
        "points": signs * rng.uniform(1, 2, (count, 1, 1)),
        "W1": rng.uniform(0.5, 2, (count, 1, 1)) * np.ones((_INPUTS, 1)),
        "w2": rng.uniform(0.5, 2, (count, 1)),
    }


def to_the_first(x):
    """Attention to the first input, whatever x is."""
    return jnp.zeros_like(x).at[0].set(1.0)


@identity(
    "Section 4.1 after Theorem 4, 'reduction of number of linear regions'",
    sample=one_unit,
    status=Status.NEW,
    controls=[Control("attention to one fixed input", fixed=True)],
)
def theorem_4_hard_attention(W1, w2, points, *, fixed=False):
    r"""$$f(x) = e_{\arg\max_j x_j},\ n_1 = 1: \quad \#\,\mathrm{regions} \big( w^{(2)\top}
    \phi(\langle w^{(1)}, x \odot f(x) \rangle) \big) = p + 1$$

    $p = 4$, $s_0 = 1$, $\|f\|_2 = 1$: choosing the input by $x$ makes kinks of its own, where the
    network without attention has two regions. So sparse attention reduces the number of regions
    where the choice does not depend on $x$. Regions are counted by different gradients.
    """
    to_the_largest = TopAttention(SoftmaxAttention(64 * jnp.eye(_INPUTS)), 1)
    model = AttendedTwoLayer(TwoLayer(W1, w2), to_the_first if fixed else to_the_largest)
    return distinct(jax.vmap(jax.grad(model))(points)), jnp.asarray(_INPUTS + 1.0)
