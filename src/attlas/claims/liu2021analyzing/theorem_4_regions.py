r"""Around Theorem 4: regions and cells, the proof's intervals, and attention that depends on x."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.bounds.expressivity.liu2021_regions import liu2021_central_regions_maximum
from attlas.claims.liu2021analyzing.region_instances import ROUNDINGS, affine_pieces
from attlas.core.old_claim import (
    Claim,
    Control,
    Expectation,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)
from attlas.core.verdict import Outcome, Witness
from attlas.models.attention.fixed_attention import (
    EuclideanAttention,
    SoftmaxAttention,
    TopAttention,
    UniformAttention,
    Weights,
)
from attlas.models.networks.two_layer import AttendedTwoLayer, TwoLayer

_PAPER = "liu2021analyzing"

# Gradients that differ by less than this share of the largest are counted as one. Rounding is
# 1e-15 of it; those of different cells of the drawn networks differ by far more.
_EQUAL = 1e-9


def _distinct(rows: Float[Array, "k s"]) -> Float[Array, ""]:
    """Number of different rows."""
    gap = jnp.max(jnp.abs(rows[:, None, :] - rows[None, :, :]), axis=2)
    same = gap <= _EQUAL * jnp.max(jnp.abs(rows))
    earlier = jnp.tril(jnp.ones(same.shape, bool), -1)
    return jnp.sum(jnp.where(jnp.any(same & earlier, axis=1), 0.0, 1.0))


def _pieces(instance: Instance) -> Float[Array, ""]:
    """Number of different affine pieces, from a point in every cell."""
    model = TwoLayer(instance["W"].T, instance["w2"], instance["b"])
    points = instance["points"]
    slopes = jax.vmap(jax.grad(model))(points)
    heights = jax.vmap(model)(points) - jnp.sum(slopes * points, axis=1)
    return _distinct(jnp.concatenate([slopes, heights[:, None]], axis=1))


_PLANAR: dict[str, Any] = {
    "paper": _PAPER,
    "status": Status.NEW,
    "provenance": Provenance.DERIVED,
    "instances": affine_pieces,
    "count": 32,
    "terms": ROUNDINGS,
}

REGIONS_ARE_PIECES = Claim(
    name=f"{_PAPER}/theorem-4-pieces",
    locator="Theorem 4, its quantity",
    statement=(
        r"\#\,\mathrm{regions} = \# \{ (\nabla F(x), F(x) - \langle \nabla F(x), x \rangle) \}"
        r"\quad \mathrm{for\ almost\ all\ } (w^{(1)}, b, w^{(2)})"
    ),
    kind=Kind.IDENTITY,
    sides=lambda i: Sides(i["regions"], _pieces(i)),
    control=Control("cells of all hyperplanes", lambda i: Sides(i["cells"], _pieces(i))),
    note=(
        "Two ways to count: integers, from the hyperplanes along which the gradient jumps, and "
        "derivatives at a point in every cell. Every second network has two units with one "
        "hyperplane whose kinks cancel, which the function does not show."
    ),
    **_PLANAR,
)

REGIONS_AND_CELLS = Claim(
    name=f"{_PAPER}/theorem-4-cells",
    locator="Theorem 4, regions of the function and cells of its units",
    statement=(
        r"\#\,\mathrm{regions}(F) \le \#\,\mathrm{cells} \{ \langle w_i, x \rangle + b_i = 0 \}"
    ),
    kind=Kind.INEQUALITY,
    sides=lambda i: Sides(i["regions"], i["cells"]),
    control=Control("the other way round", lambda i: Sides(i["cells"], i["regions"])),
    note="Equal unless units share a hyperplane and their kinks cancel there, or w2 has a zero.",
    **_PLANAR,
)


def _repeated(witness: Witness, count: int) -> Instance:
    """The one instance that a statement is about, repeated."""
    return {k: jnp.asarray(np.repeat(np.asarray(v)[None], count, 0)) for k, v in witness.items()}


def _group() -> Witness:
    """One group of the proof with q = 4 units, and inner points of its bounded intervals."""
    q = 4
    slopes, index = np.r_[1.0, np.full(q - 1, 2.0)], np.arange(float(q))
    ends = np.stack([index[:-1], index[:-1] + 1], axis=1)
    return {"W": slopes[None], "b": -index, "w2": (-1.0) ** index, "printed": ends}


def _along(instance: Instance, ends: Float[Array, "k 2"]) -> Sides:
    """The function at the middle of each interval, and the mean of its values at the ends."""
    group = TwoLayer(instance["W"], instance["w2"], instance["b"])
    at = jax.vmap(lambda t: group(t[None]))
    lower, upper = at(ends[:, 0]), at(ends[:, 1])
    scale = jnp.sum(jnp.abs(instance["W"][0]) * ends[-1, 1] + jnp.abs(instance["b"]))
    return Sides(at((ends[:, 0] + ends[:, 1]) / 2), (lower + upper) / 2, scale)


BREAKPOINTS = Claim(
    name=f"{_PAPER}/theorem-4-breakpoints",
    paper=_PAPER,
    locator="Proof of Theorem 4, its intervals",
    statement=(
        r"w_3^\top h \mathrm{\ is\ linear\ on\ } (i-1, i], \quad h_i(x) ="
        r"\max(0, 2 w_j x - (i-1)), \quad i < q"
    ),
    kind=Kind.IDENTITY,
    status=Status.ERRATUM,
    provenance=Provenance.FOUND,
    instances=lambda key, count: _repeated(_group(), count),
    sides=lambda i: _along(i, i["printed"]),
    witness=_group,
    control=Control(
        "corrected: intervals of half the length, between the points (i - 1) / 2",
        lambda i: _along(i, i["printed"] / 2),
        expect=Outcome.SUPPORTED,
    ),
    expect=Expectation(Outcome.VIOLATED, "2x - (i - 1) vanishes at (i - 1) / 2, not at i - 1"),
    terms=64,
    note=(
        "q = 4. The breakpoints are 0, 1/2, ..., (q - 1)/2. The bounded intervals are mapped onto "
        "(0, 1/2), not onto (0, 1) as the proof says; one hidden layer needs neither."
    ),
)


def _soft() -> Witness:
    """Positive weights and inputs: no unit changes its sign between the two inputs."""
    rng = np.random.default_rng(0)
    return {
        "W1": rng.uniform(0.5, 1.0, (3, 4)),
        "w2": rng.uniform(0.5, 1.0, 4),
        "M": rng.standard_normal((3, 3)),
        "ends": rng.uniform(0.5, 1.0, (2, 3)),
    }


def _midpoint(instance: Instance, weights: Weights) -> Sides:
    network = TwoLayer(instance["W1"], instance["w2"])
    model = AttendedTwoLayer(network, EuclideanAttention(weights))
    lower, upper = instance["ends"]
    return Sides(model((lower + upper) / 2), (model(lower) + model(upper)) / 2)


SOFT_ATTENTION = Claim(
    name=f"{_PAPER}/theorem-4-soft-attention",
    paper=_PAPER,
    locator="Theorem 4, where f depends on x",
    statement=(
        r"\mathrm{no\ unit\ changes\ sign\ on\ } [x, x'] \Rightarrow w^{(2)\top} \phi("
        r"\langle w^{(1)}, x \odot f(x) \rangle) \mathrm{\ is\ linear\ there}"
    ),
    kind=Kind.IDENTITY,
    status=Status.SUSPECTED_ERRATUM,
    provenance=Provenance.DERIVED,
    instances=lambda key, count: _repeated(_soft(), count),
    sides=lambda i: _midpoint(i, SoftmaxAttention(i["M"])),
    witness=_soft,
    control=Control(
        "weights that do not depend on x",
        lambda i: _midpoint(i, UniformAttention()),
        expect=Outcome.SUPPORTED,
    ),
    expect=Expectation(Outcome.VIOLATED, "x o f(x) is not linear in x"),
    note=(
        "With a softmax of x the function has no linear regions at all, so their number is "
        "undefined; a softmax has no zero weight either, so that s0 = p. The theorem is about "
        "weights f that do not depend on x."
    ),
)


def _hard() -> Witness:
    """One unit on four inputs, and points in every region of the attended network."""
    points = np.vstack([np.eye(4), -1 - np.eye(4)])
    return {"W1": np.ones((4, 1)), "w2": np.ones(1), "points": points}


def _hard_regions(instance: Instance, weights: Weights) -> Sides:
    model = AttendedTwoLayer(TwoLayer(instance["W1"], instance["w2"]), weights)
    slopes = jax.vmap(jax.grad(model))(instance["points"])
    return Sides(_distinct(slopes), jnp.asarray(float(liu2021_central_regions_maximum(1, 4))))


def _first(x: Float[Array, " p"]) -> Float[Array, " p"]:
    """Attention to the first input, whatever x is."""
    return jnp.zeros_like(x).at[0].set(1.0)


def _hard_instances(key: PRNGKeyArray, count: int) -> Instance:
    del key
    return _repeated(_hard(), count)


HARD_ATTENTION = Claim(
    name=f"{_PAPER}/theorem-4-hard-attention",
    paper=_PAPER,
    locator="Section 4.1 after Theorem 4, 'reduction of number of linear regions'",
    statement=(
        r"\|f(x)\|_0 = s_0 < p: \quad \#\,\mathrm{regions} \big( w^{(2)\top} \phi(\langle w^{(1)},"
        r"x \odot f(x) \rangle) \big) \le 2 \sum_{j < p} \binom{n_1 - 1}{j}"
    ),
    kind=Kind.INEQUALITY,
    status=Status.ERRATUM,
    provenance=Provenance.FOUND,
    instances=_hard_instances,
    sides=lambda i: _hard_regions(i, TopAttention(SoftmaxAttention(64 * jnp.eye(4)), 1)),
    witness=_hard,
    control=Control(
        "attention to one fixed input",
        lambda i: _hard_regions(i, _first),
        expect=Outcome.SUPPORTED,
    ),
    expect=Expectation(
        Outcome.VIOLATED, "choosing the input by x makes kinks of its own: 5 regions, not 2"
    ),
    note=(
        "One unit, p = 4, hard attention to the largest input (s0 = 1, ||f||_2 = 1): p + 1 "
        "regions, where the network without attention has two. So sparse attention reduces the "
        "number of regions only where the choice does not depend on x. Regions are counted from "
        "below, by different gradients."
    ),
)
