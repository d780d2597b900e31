r"""Around Theorem 4: regions and cells, the proof's intervals, and attention that depends on x."""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Kind, Sides, Source, Status
from attlas.claims.statement import erratum, identity, inequality
from liu2021analyzing.library.models.fixed_attention import (
    EuclideanAttention,
    SoftmaxAttention,
    TopAttention,
    UniformAttention,
)
from liu2021analyzing.library.models.two_layer import AttendedTwoLayer, TwoLayer
from liu2021analyzing.region_instances import ROUNDINGS, affine_pieces

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
