r"""Exact numbers of cells of hyperplane arrangements and of linear regions of ReLU networks.

Every float is a rational number, so an arrangement is counted exactly as given, degenerate or
not, in integers: r(A) = 1 + sum_i r(A_1 ... A_{i-1} on A_i), the deletion-restriction recursion
behind Zaslavsky's theorem. What was meant to be degenerate but was rounded is generic; ask for
small denominators to round it back.
"""

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from jaxtyping import Float, PRNGKeyArray

from attlas._jax.device_arrays import generator
from attlas.core.argument_validation import validate_arguments
from attlas.core.arrays import ArrayInput, as_float64, read_array, read_arrays
from attlas.core.axes import require_axes
from attlas.core.errors import UserError
from liu2021analyzing.library.bounds.liu2021_regions import liu2021_regions
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP

Matrix = ArrayInput
Vector = ArrayInput
Row = tuple[int, ...]

# Above this many cells the recursion in Python integers takes minutes.
_MOST = 10**6


def count_cells(
    W: Matrix, b: Vector | None = None, *, denominator: int | None = None, most: int = _MOST
) -> int:
    r"""Number of cells into which the hyperplanes w_i . x + b_i = 0 cut R^s.

    Equal hyperplanes count once, rows of zeros not at all. Generic ones have
    sum_{j<=s} C(n, j) cells, generic ones through the origin 2 sum_{j<s} C(n-1, j). Entries
    that are not finite, and arrangements that may have too many cells, are refused.

    Args:
        W: normals, one per row.
        b: offsets; zero when None.
        denominator: replace every entry by the nearest fraction of at most this denominator.
        most: refuse what may have more cells.

    Returns:
        The number, exact for the entries as they are (or as rounded).

    Examples:
        >>> lines = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        >>> count_cells(lines), count_cells(lines, np.array([0.0, 0.0, 1.0]))
        (6, 7)
    """
    rows = [key for key, _ in _rational_rows(W, b, denominator)]
    return _count(_required(set(rows), np.shape(W)[1], most))


def count_linear_regions(
    W: Matrix,
    w2: Vector,
    b: Vector | None = None,
    *,
    denominator: int | None = None,
    most: int = _MOST,
) -> int:
    r"""Number of linear regions of x -> sum_i w2_i max(0, w_i . x + b_i).

    The regions are the connected parts of the set where the function is differentiable. Where
    several units share a hyperplane with unit normal u, its gradient jumps by
    sum_i w2_i ||w_i|| u all along it: hyperplanes without a jump are not seen, the others bound
    regions everywhere. So there can be fewer regions than cells.

    Args:
        W: first layer; multiply its columns by a known attention weight to have x o f.
        b: offsets; zero when None.
        denominator: replace every entry by the nearest fraction of at most this denominator.
        most: refuse what may have more cells.

    Returns:
        The number, exact for the entries as they are (or as rounded).

    Raises:
        UserError: if the second layer does not fit or is not finite; the first is checked, too.

    Source: the quantity of Theorem 4 of liu2021analyzing.

    Examples:
        >>> W = np.array([[1.0], [-1.0], [1.0]])
        >>> b = np.array([0.0, 0.0, -1.0])
        >>> count_linear_regions(W, np.array([1.0, 1.0, 1.0]), b)
        3
        >>> count_linear_regions(W, np.array([1.0, -1.0, 1.0]), b)  # x + max(0, x - 1)
        2
    """
    (weights,) = read_arrays("n", np.float64, w2=w2)
    W = read_array(W, "W")
    if weights.shape != np.shape(W)[:1] or not np.all(np.isfinite(weights)):
        raise UserError(
            f"second layer of shape {weights.shape} on units {np.shape(W)[:1]}: give one finite "
            "weight per unit"
        )
    jumps: dict[Row, Fraction] = {}
    exact_weights = _fractions(weights, denominator)
    pairs = _rational_rows(W, b, denominator, keep_zeros=True)
    for (key, scale), weight in zip(pairs, exact_weights, strict=True):
        jumps[key] = jumps.get(key, Fraction(0)) + weight * scale
    seen = {key for key, jump in jumps.items() if jump != 0 and any(key[:-1])}
    return _count(_required(seen, np.shape(W)[1], most))


def sampled_cells(
    W: Matrix, b: Vector | None = None, *, key: PRNGKeyArray, lines: int = 200
) -> int:
    r"""Number of different cells that random lines pass: a lower bound in any dimension.

    Each line joins two points with normal entries, drawn at the scale of the hyperplanes'
    distances, and passes up to n + 1 cells; a point between two crossings identifies each. Points
    that lie on a hyperplane up to rounding are left out.

    Args:
        W: normals, one per row.
        b: offsets; zero when None.

    Examples:
        >>> import jax
        >>> sampled_cells(np.eye(2), key=jax.random.key(0))
        4
    """
    if lines < 1:
        raise UserError(f"lines = {lines}: draw at least one")
    normals, offsets = arrangement(W, b)
    sizes = np.linalg.norm(normals, axis=1)
    cutting = sizes > 0
    normals, offsets = normals[cutting], offsets[cutting]
    if not normals.shape[0]:
        return 1
    extent = 1 + float(np.max(np.abs(offsets) / sizes[cutting]))
    draw, seen = generator(key), set()
    for start, direction in extent * draw.standard_normal((lines, 2, normals.shape[1])):
        speed, height = normals @ direction, normals @ start + offsets
        moving = speed != 0
        at = np.sort(-height[moving] / speed[moving])
        middles = np.r_[at[:1] - 1, (at[1:] + at[:-1]) / 2, at[-1:] + 1] if at.size else np.zeros(1)
        points = start[None, :] + middles[:, None] * direction[None, :]
        seen |= _signs(points, normals, offsets)
    return len(seen)


def arrangement(W: Matrix, b: Vector | None) -> tuple[np.ndarray, np.ndarray]:
    """Normals and offsets of hyperplanes w_i . x + b_i = 0, checked.

    Args:
        W: normals, one per row.
        b: offsets; zero when None.

    Returns:
        W [n, d] and b [n] in double precision.

    Raises:
        UserError: if shapes do not fit or an entry is not finite.

    Examples:
        >>> arrangement(np.eye(2), None)[1].tolist()
        [0.0, 0.0]
    """
    normals = as_float64(W, "W", "n s")
    offsets = np.zeros(len(normals)) if b is None else as_float64(b, "b", "n")
    if len(offsets) != len(normals):
        raise UserError(
            f"normals of shape {normals.shape} with offsets {offsets.shape}: give one normal per "
            "row and one offset each"
        )
    return normals, offsets


def _signs(points: np.ndarray, normals: np.ndarray, offsets: np.ndarray) -> set[bytes]:
    """Sign vectors of those points that are farther than rounding from every hyperplane."""
    values = points @ normals.T + offsets[None, :]
    size = np.abs(points) @ np.abs(normals).T + np.abs(offsets)[None, :]
    clear = np.all(np.abs(values) > (points.shape[1] + 2) * np.finfo(float).eps * size, axis=1)
    return {row.tobytes() for row in values[clear] > 0}


def _fractions(values: np.ndarray, denominator: int | None) -> list[Fraction]:
    exact = [Fraction(float(value)) for value in values.ravel()]
    return exact if denominator is None else [x.limit_denominator(denominator) for x in exact]


def _rational_rows(
    W: Matrix, b: Vector | None, denominator: int | None, keep_zeros: bool = False
) -> list[tuple[Row, Fraction]]:
    """Each hyperplane (w, b) as scale times a primitive integer vector, one per hyperplane."""
    if denominator is not None and denominator < 1:
        raise UserError(f"denominator = {denominator}: choose at least 1, or None for exact ones")
    normals, offsets = arrangement(W, b)
    planes = []
    for normal, offset in zip(normals, offsets, strict=True):
        entries = _fractions(np.r_[normal, offset], denominator)
        common = math.lcm(*(entry.denominator for entry in entries))
        integers = [int(entry * common) for entry in entries]
        if keep_zeros or any(integers[:-1]):
            key = _primitive(integers)
            lead = next((k for k, part in enumerate(key) if part), None)
            planes.append((key, Fraction(0) if lead is None else abs(entries[lead] / key[lead])))
    return planes


def _primitive(row: Iterable[int]) -> Row:
    """The row over its greatest common divisor, its first entry that is not zero positive."""
    entries = list(row)
    divisor = math.gcd(*entries)
    lead = next((part for part in entries if part), 0)
    if lead < 0:
        divisor = -divisor
    return tuple(part // divisor for part in entries) if divisor else tuple(entries)


def _required(rows: set[Row], s: int, most: int) -> list[Row]:
    n = len(rows)
    if n and liu2021_regions(n, min(s, n)) > most:
        raise UserError(
            f"{n} hyperplanes in {s} dimensions may have over {most} cells: take fewer, raise "
            "`most`, or sample"
        )
    return sorted(rows)


def _count(rows: list[Row]) -> int:
    """r(A) = 1 + sum_i r(A_1 ... A_{i-1} on A_i); rows are different primitive vectors."""
    if not rows:
        return 1
    if len(rows[0]) == 2:
        return 1 + len(rows)
    total = 1
    for i, plane in enumerate(rows):
        pivot = next(k for k, part in enumerate(plane) if part)
        total += _count(list({r for r in _restricted(rows[:i], plane, pivot) if any(r[:-1])}))
    return total


def _restricted(rows: list[Row], plane: Row, pivot: int) -> Iterable[Row]:
    """The rows on the plane, its pivot coordinate eliminated."""
    lead = plane[pivot]
    for row in rows:
        entry = row[pivot]
        yield _primitive(lead * row[k] - entry * plane[k] for k in range(len(row)) if k != pivot)


@validate_arguments
def activation_patterns(
    W: Float[np.ndarray, "n s"], b: Float[np.ndarray, " n"], points: Float[np.ndarray, "m _"]
) -> int:
    """Number of different patterns of active units, w_i . x + b_i > 0, that the points meet.

    Args:
        W: first layer, one row per unit.
        points: inputs, one per row.

    Returns:
        The number: at most that of the cells of the arrangement, see `count_cells`.

    Raises:
        UserError: if points and units differ in dimension.

    Examples:
        >>> signs = np.array([[1.0, 1.0], [1.0, -1.0], [3.0, -1.0], [-1.0, 1.0]])
        >>> activation_patterns(np.eye(2), np.zeros(2), signs)
        3
    """
    if W.ndim != 2 or points.ndim != 2 or W.shape[1] != points.shape[1]:
        raise UserError(f"points of shape {points.shape} for units {W.shape}: one dimension each")
    active = points @ W.T + b[None, :] > 0
    return len(np.unique(np.packbits(active, axis=1), axis=0))


@validate_arguments
def frozen_regions(
    model: SelfAttentionMLP, attention: Float[np.ndarray, "n p p"], points: Float[np.ndarray, "m p"]
) -> tuple[float, float]:
    r"""Mean number of regions of the hidden units $\phi(W_1'\mathrm{vec}(vA)+b_1)$ in the values v.

    With weights that depend on x a softmax network has no linear regions; with A fixed it has.

    Args:
        model: network with values of dimension one, so that v has one entry per word.
        attention: weights A of some inputs, column z of query z.
        points: values v, one vector per row.

    Returns:
        Means over the inputs: exact number of regions, and how many of them the points meet.

    Examples:
        >>> import jax.numpy as jnp
        >>> one = jnp.ones((1, 1))
        >>> model = SelfAttentionMLP(one, one, one, jnp.eye(2), jnp.ones(2))
        >>> frozen_regions(model, np.eye(2)[None], np.array([[1.0, 1.0], [2.0, 3.0]]))
        (4.0, 1.0)
    """
    W1 = np.asarray(model.W1)
    require_axes("n p p, p d", {"attention": attention.shape, "model.W1": W1.shape})
    b = np.zeros(W1.shape[1]) if model.b1 is None else np.asarray(model.b1)
    first = [(A @ W1).T for A in attention]
    exact = np.mean([count_cells(W, b) for W in first])
    return float(exact), float(np.mean([activation_patterns(W, b, points) for W in first]))
