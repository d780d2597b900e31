r"""Small Transformers, their comparison, and every entry again in plain NumPy.

Nothing of the library's arithmetic is used on the way here: norms by singular values and loops,
Dudley's integral by quadrature and a scalar minimiser, the chain by loops over the same levels,
the recursion walked from the readout down.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Literal

import numpy as np
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from attlas.bounds.comparison.compare import Comparison, compare_bounds
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
from attlas.bounds.covering.dudley import LEVELS, RATIOS
from attlas.bounds.covering.edelman2022_cover import GRID_RATIOS
from attlas.bounds.covering.norm_grid import RESOLUTIONS

_D, _K, _T, _WORDS = 3, 2, 4, 3
LIPSCHITZ, DELTA, RANGE = 1.5, 0.05, 2.0
KINDS = ("normalised", "plain", "masked")
COVERS = ("1,1", "1,inf", "2,1", "log T")


class Case:
    """One Transformer with its sample and the number of samples spoken of."""

    def __init__(self, rng: np.random.Generator, kind: str):
        size = 10.0 ** rng.uniform(-1.5, 0)
        depth = 1 if kind == "plain" else 2

        def head() -> Head:
            shapes = ((_D, _D), (_D, _K), (_K, _D))
            return Head(*(size * rng.normal(size=shape) for shape in shapes))

        shape = (_WORDS, _D) if kind == "masked" else (_D,)
        layers = tuple((head(), head()) for _ in range(depth))
        self.kind = kind
        self.weights = TransformerWeights(layers, size * rng.normal(size=shape))
        self.X = rng.normal(size=(3, _T, _D)) * 10.0 ** rng.uniform(-0.7, 0.5)
        self.m = int(10 ** rng.uniform(3, 9))

    def table(self, norms: Literal["measured", "fixed"] = "fixed") -> Comparison:
        """The library's comparison."""
        model = "plain" if self.kind == "plain" else "normalised"
        return compare_bounds(
            self.weights,
            self.X,
            self.m,
            DELTA,
            model=model,
            lipschitz=LIPSCHITZ,
            loss_range=RANGE,
            norms=norms,
        )


def _chain(entropy: Callable[[np.ndarray], np.ndarray], m: int, radius: float) -> float:
    """The chain, one ratio after the other, up to the first level that does not pay."""
    best = radius
    for ratio in RATIOS:
        depth = np.minimum(np.log(ratio) * np.arange(1, LEVELS + 1), math.log(1e30) / 2)
        levels = radius * np.exp(-depth)
        nats = entropy(levels)
        last = int(np.searchsorted(nats, m / 2, side="right"))
        links = (ratio + 1) * levels[:last] * np.sqrt(2 * nats[:last] / m)
        best = min([best, *(levels[:last] + np.cumsum(links)).tolist()])
    return best


def _dudley(A: float, D: float, m: int, radius: float) -> float:
    """Dudley's bound by quadrature in ln(eps) and a scalar search; at most the radius."""
    c_1, c_2 = 1 + math.sqrt(2), math.sqrt(2) * (1 + math.sqrt(2)) ** 2
    if A == 0:
        slope = c_2 * math.sqrt(D / m)
        value = slope * (1 + math.log(c_1 * radius / slope)) if slope < c_1 * radius else radius
        return min(value, radius)
    top = math.log(radius)

    def at(edge: float) -> float:
        area = quad(lambda t: math.sqrt(A * math.exp(2 * t) + D), edge, top, epsrel=1e-12)[0]
        return c_1 * math.exp(edge) + c_2 * area / math.sqrt(m)

    # the value is flat to second order: 1e-7 in the edge is 1e-14 in the value
    span = (top - 30, top)
    found = minimize_scalar(at, bounds=span, method="bounded", options={"xatol": 1e-7})
    return min(float(found.fun), radius)


def _raised(norms: dict[str, float], grid: int | None) -> dict[str, float]:
    """Norms raised to the next 2^(k-1) (1 + i / 2^grid), found by going through the points."""
    if grid is None:
        return norms
    raised = {}
    for name, norm in norms.items():
        octave = math.ceil(math.log2(norm))
        points = [2.0 ** (octave - 1) * (1 + i / 2**grid) for i in range(1, 2**grid + 1)]
        raised[name] = min(point for point in points if point >= norm)
    return raised


def _price(norm: float, grid: int) -> float:
    """Nats of a norm on a grid: minus the logarithm of its probability."""
    octave = abs(math.ceil(math.log2(norm)))
    return -math.log(2.0**-grid * (2 / 3) / ((octave + 1) * (octave + 2)))


def _sizes(M: np.ndarray) -> dict[str, float]:
    return {"rows": float(M.shape[0]), "columns": float(M.shape[1])}


def _norms(M: np.ndarray, grid: int | None = None) -> dict[str, float]:
    """Norms of x -> M x by loops, raised to a grid if there is one."""
    norms = {
        "top": float(np.linalg.svd(M, compute_uv=False)[0]),
        "1,1": sum(abs(float(entry)) for entry in M.ravel()),
        "1,inf": max(sum(abs(float(entry)) for entry in column) for column in M.T),
        "2,1": sum(math.hypot(*row) for row in M),
        "row": max(sum(abs(float(entry)) for entry in row) for row in M),
        "length": max(math.hypot(*row) for row in M),
    }
    return _sizes(M) | _raised(norms, grid)


def _either_side(M: np.ndarray, grid: int | None = None) -> dict[str, float]:
    """The smaller norms of M and its transpose."""
    one, other = _norms(M, grid), _norms(M.T, grid)
    return {name: min(value, other[name]) for name, value in one.items()}


def _perceptron(k: float | int, points: float | int, m: int) -> float:
    """The constant of the cover of rows."""
    if k == 1:
        return math.log(2 * points + 1)
    cells = math.log(max(m / 2, 2.0))
    size = math.log(2 * k * points + 1)
    return min(r * size + math.log(max(1, math.ceil(cells / math.log(r)))) for r in GRID_RATIOS)


def _covers(n: dict[str, float], two: float, one: float, points: int, m: int) -> dict[str, float]:
    rows, columns = n["rows"], n["columns"]
    return {
        "1,1": (n["1,1"] * two) ** 2 * math.log(2 * rows * columns + 1),
        "1,inf": (n["1,inf"] * one) ** 2 * columns * math.log(2 * rows + 1),
        "2,1": (n["2,1"] * one) ** 2 * _perceptron(rows, columns, m),
        "log T": (n["2,1"] * two) ** 2 * _perceptron(rows, points, m),
    }


def _measures(case: Case) -> tuple[float, float, float]:
    """Largest Euclidean norm, l_1 norm and entry of a token."""
    rows = case.X.reshape(-1, _D)
    two = max(math.hypot(*row) for row in rows)
    return two, float(np.abs(rows).sum(1).max()), float(np.abs(rows).max())


def _plain(case: Case, grid: int | None = None) -> dict[str, float]:
    """Complexities for one layer without normalisation."""
    two, one, entry = _measures(case)
    outer = _norms(case.weights.readout[None], grid)["row"] * LIPSCHITZ
    base, m, found, trivial = math.log(2 * _D), case.m, {}, 0.0
    for head in case.weights.layers[0]:
        M = np.asarray(head.query_key)
        B = outer * _norms(head.output.T, grid)["row"] * _norms(head.value.T, grid)["row"]
        trivial += B * entry
        C = _covers(_either_side(M, grid), two, one, m * _T, m)
        C["log m"] = (_norms(M.T, grid)["2,1"] * two) ** 2 * _perceptron(_D, m, m)
        added: dict[str, float] = {}
        for name, c in C.items():
            sharp = 2 * B * _chain(lambda e, c=c: base + (entry * two / e) ** 2 * c, m, entry)
            if "log" in name:
                added[name] = sharp
                continue
            scale = 2 * two**2 * math.sqrt(c / m)
            bracket = scale * (1 + math.log(two / scale)) + two * math.sqrt(base / m)
            added[f"{name} sharp"] = sharp
            added[f"{name} corrected"] = 2 * B * _dudley(base, 4 * two**4 * c, m, two)
            added[f"{name} printed"] = B * bracket
        reach = 2 * two**3 * _norms(M, grid)["top"]
        # the full matrix has fewer parameters than its factors and the smaller logarithm
        counted = _chain(lambda e, r=reach: base + _D**2 * np.log1p(r / e), m, two)
        added["parameters"] = 2 * B * counted
        found = {name: found.get(name, 0.0) + value for name, value in added.items()}
    capped = {n: v if "printed" in n else min(v, trivial) for n, v in found.items()}
    return {"trivial": trivial, **capped}


def _parts(
    case: Case, kappa: float, flipped: bool, grid: int | None = None
) -> list[tuple[float, dict, float, float, bool]]:
    """Cost, norms, Euclidean and l_1 reach of each matrix, from the readout down."""
    two, one, _ = _measures(case)
    readout = np.atleast_2d(case.weights.readout)
    loss = 2.0 if case.kind == "masked" else 1.0
    cost = loss * _norms(readout, grid)["length"]
    parts = [(loss, _norms(readout, grid), 1.0, math.sqrt(_D), True)]
    for depth in range(len(case.weights.layers), 0, -1):
        reach = two if depth == 1 else 1.0
        near = min(math.sqrt(_D) * reach, one) if depth == 1 else math.sqrt(_D)
        growth = 0.0
        for head in case.weights.layers[depth - 1]:
            c, v = (_norms(W if flipped else W.T, grid) for W in (head.output, head.value))
            qk = _either_side(np.asarray(head.query_key), grid)
            outer = LIPSCHITZ * c["top"]
            parts += [
                (cost, c, LIPSCHITZ, LIPSCHITZ * math.sqrt(c["columns"]), False),
                (cost * outer, v, reach, near, False),
                (cost * kappa * outer * v["top"] * reach**2, qk, reach, near, False),
            ]
            growth += outer * v["top"] * (1 + 2 * kappa * qk["top"])
        cost *= growth
    return parts


def _deep(case: Case, flipped: bool = False, grid: int | None = None) -> dict[str, float]:
    """Complexities and log10 of the samples needed for normalised layers."""
    m, readout = case.m, np.atleast_2d(case.weights.readout)
    radius = RANGE / 2 if case.kind == "masked" else _norms(readout, grid)["length"]
    found = {"trivial": radius}
    for version, kappa, least in (("corrected", 2.0, 599.3), ("sharp", 1.0, 67.95)):
        parts = _parts(case, kappa, flipped, grid)
        C = [_covers(n, two, one, m if last else m * _T, m) for _, n, two, one, last in parts]
        for name in COVERS if kappa > 1 else (*COVERS, "mixed"):
            chosen = [min(c.values()) if name == "mixed" else c[name] for c in C]
            D = sum((c * p[0] ** 2) ** (1 / 3) for c, p in zip(chosen, parts, strict=True)) ** 3
            sharp = kappa == 1
            value = (
                _chain(lambda e, D=D: D / e**2, m, radius) if sharp else _dudley(0.0, D, m, radius)
            )
            found[f"{name} {version}"] = value
            found[f"samples {name} {version}"] = math.log10(least * D / radius**2)
    parts = _parts(case, 1.0, flipped, grid)
    counts = [n["rows"] * n["columns"] for _, n, _, _, _ in parts]
    scales = [
        2 * n["top"] * reach * cost * sum(counts) / p
        for (cost, n, reach, _, _), p in zip(parts, counts, strict=True)
    ]

    def counted(levels: np.ndarray) -> np.ndarray:
        logs = [p * np.log1p(s / levels) for p, s in zip(counts, scales, strict=True)]
        return np.sum(logs, axis=0)

    found["parameters"] = _chain(counted, m, radius)
    return found


def _gap(value: float, m: int, nats: float = 0.0) -> float:
    """True minus empirical risk."""
    return 2 * value + 3 * RANGE * math.sqrt((math.log(2 / DELTA) + nats) / (2 * m))


def _rows(case: Case) -> list[dict[str, float]]:
    """One dictionary an entry: the library's numbers and those computed again."""
    table = case.table()
    plain = case.kind == "plain"
    again = _plain(case) if plain else _deep(case)
    flipped = again if plain else _deep(case, flipped=True)
    bounds = [_gap(again[e.name], case.m) for e in table.entries if e.is_bound]
    return [
        {
            "value": entry.rademacher,
            "value_again": again[entry.name],
            "flipped": flipped[entry.name],
            "gap": entry.gap,
            "gap_again": _gap(again[entry.name], case.m),
            "is_bound": float(entry.is_bound),
            "vacuous": float(entry.vacuous),
            "best": table.best.gap,
            "best_again": min(bounds),
            "deep": float(math.isfinite(entry.log10_samples)),
            "samples": float(np.nan_to_num(entry.log10_samples)),
            "samples_again": again.get(f"samples {entry.name}", 0.0),
        }
        for entry in table.entries
    ]


@cache
def comparisons(seed: tuple[int, ...], count: int) -> dict[str, np.ndarray]:
    """Entries of the library beside those computed again, one an instance.

    Args:
        seed: of the draws.
        count: entries, from Transformers of three kinds in turn.

    Returns:
        The numbers of `_rows` by name, each of shape (count,).
    """
    rng = np.random.default_rng(seed)
    rows: list[dict[str, float]] = []
    for place in range(count):
        if len(rows) >= count:
            break
        rows += _rows(Case(rng, KINDS[place % len(KINDS)]))
    return {name: np.asarray([row[name] for row in rows[:count]]) for name in rows[0]}


def _plain_prices(case: Case, grid: int) -> dict[str, float]:
    """Nats of the norms of each entry, one layer."""
    heads = case.weights.layers[0]
    base = _price(_norms(case.weights.readout[None])["row"], grid)
    either = len(heads) * math.log(2)
    found = dict.fromkeys(("1,1", "1,inf", "2,1", "log T", "log m", "parameters"), 0.0)
    for head in heads:
        base += _price(_norms(head.output.T)["row"], grid)
        base += _price(_norms(head.value.T)["row"], grid)
        M = np.asarray(head.query_key)
        n = _either_side(M)
        sizes = (n["1,1"], n["1,inf"], n["2,1"], n["2,1"], _norms(M.T)["2,1"], n["top"])
        found = {
            name: nats + _price(size, grid)
            for (name, nats), size in zip(found.items(), sizes, strict=True)
        }
    for name in ("1,inf", "2,1", "log T"):
        found[name] += either
    return {"trivial": base, **{name: base + nats for name, nats in found.items()}}


def _deep_prices(case: Case, grid: int) -> dict[str, float]:
    """Nats of the norms of each entry, normalised layers."""
    norms = [part[1] for part in _parts(case, 1.0, flipped=False)]
    length = _price(norms[0]["length"], grid)
    base = length + sum(_price(n["top"], grid) for n in norms[1:])
    either = (len(norms) - 1) / 3 * math.log(2)
    fields = {"1,1": "1,1", "1,inf": "1,inf", "2,1": "2,1", "log T": "2,1"}
    found = {
        name: base + sum(_price(n[field], grid) for n in norms) + (name != "1,1") * either
        for name, field in fields.items()
    }
    dearest = sum(max(_price(n[field], grid) for field in fields.values()) for n in norms)
    found["mixed"] = base + dearest + len(norms) * math.log(len(fields)) + either
    found["parameters"] = base + _price(norms[0]["top"], grid)
    return {"trivial": 0.0 if case.kind == "masked" else length, **found}


@cache
def unions(seed: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Gaps for norms read off after training, of one Transformer a kind.

    Args:
        seed: of the draws.

    Returns:
        gap (the library's), again (by the second computation) and fixed (without the union
        bound), one entry that is a bound an instance.
    """
    rng, rows = np.random.default_rng(seed), []
    for kind in KINDS:
        case = Case(rng, kind)
        plain = kind == "plain"
        entries = [entry for entry in case.table("measured").entries if entry.is_bound]
        grids = {}
        for grid in RESOLUTIONS:
            R = _plain(case, grid) if plain else _deep(case, grid=grid)
            grids[grid] = R, (_plain_prices if plain else _deep_prices)(case, grid)
        fixed = _plain(case) if plain else _deep(case)
        for entry in entries:
            cover = entry.name.removesuffix(" sharp").removesuffix(" corrected")
            gaps = [
                _gap(R[entry.name], case.m, union_costs[cover] + math.log(4 * len(entries)))
                for R, union_costs in grids.values()
            ]
            rows.append((entry.gap, min(gaps), _gap(fixed[entry.name], case.m)))
    gap, again, without = np.array(rows).T
    return {"gap": gap, "again": again, "fixed": without}
