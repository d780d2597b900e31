r"""Every entry of the comparison again in plain NumPy, on small Transformers of three kinds.

Nothing of the library's arithmetic is used on the way here: norms by singular values and loops,
Dudley's integral by quadrature and a scalar minimiser, the chain by loops over the same levels,
the recursion walked from the readout down, norms on a grid by going through its points.
"""

import math
from functools import partial

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from attlas.bounds.comparison.compare import compare_bounds
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
from attlas.bounds.covering.dudley import LEVELS, RATIOS
from attlas.bounds.covering.edelman2022_cover import GRID_RATIOS
from attlas.bounds.covering.norm_grid import RESOLUTIONS

_D, _K, _T, _WORDS = 3, 2, 4, 3
LIPSCHITZ, DELTA, RANGE = 1.5, 0.05, 2.0
KINDS = ("normalised", "plain", "masked")
COVERS = ("1,1", "1,inf", "2,1", "log T")
# Quadrature to a relative 1e-12 and a scalar search for Dudley's integral; up to 48 links of a
# chain with a dozen roundings each.
agree = partial(np.allclose, rtol=1.1e-11, atol=0.0)


class Case:
    """One Transformer of a kind with its sample and the number of samples."""

    def __init__(self, rng, kind):
        size = 10.0 ** rng.uniform(-1.5, 0)
        depth = 1 if kind == "plain" else 2

        def head():
            shapes = ((_D, _D), (_D, _K), (_K, _D))
            return Head(*(size * rng.normal(size=shape) for shape in shapes))

        shape = (_WORDS, _D) if kind == "masked" else (_D,)
        layers = tuple((head(), head()) for _ in range(depth))
        self.kind = kind
        self.weights = TransformerWeights(layers, size * rng.normal(size=shape))
        self.X = rng.normal(size=(3, _T, _D)) * 10.0 ** rng.uniform(-0.7, 0.5)
        self.m = int(10 ** rng.uniform(3, 9))

    def table(self, norms):
        """The library's comparison."""
        model = "plain" if self.kind == "plain" else "normalised"
        given = {"lipschitz": LIPSCHITZ, "loss_range": RANGE, "norms": norms}
        return compare_bounds(self.weights, self.X, self.m, DELTA, model=model, **given)

    def again(self, **options):
        """The complexities by name, computed again."""
        if self.kind == "plain":
            return _plain(self, options.get("grid"))
        return _deep(self, **options)


def _chain(entropy, m, radius):
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


def _dudley(A, D, m, radius):
    """Dudley's bound by quadrature in ln(eps) and a scalar search; at most the radius."""
    c_1, c_2 = 1 + math.sqrt(2), math.sqrt(2) * (1 + math.sqrt(2)) ** 2
    if A == 0:
        slope = c_2 * math.sqrt(D / m)
        value = slope * (1 + math.log(c_1 * radius / slope)) if slope < c_1 * radius else radius
        return min(value, radius)
    top = math.log(radius)

    def at(edge):
        area = quad(lambda t: math.sqrt(A * math.exp(2 * t) + D), edge, top, epsrel=1e-12)[0]
        return c_1 * math.exp(edge) + c_2 * area / math.sqrt(m)

    # the value is flat to second order: 1e-7 in the edge is 1e-14 in the value
    span = (top - 30, top)
    found = minimize_scalar(at, bounds=span, method="bounded", options={"xatol": 1e-7})
    return min(float(found.fun), radius)


def _raised(norms, grid):
    """Norms raised to the next 2^(k-1) (1 + i / 2^grid), found by going through the points."""
    if grid is None:
        return norms
    raised = {}
    for name, norm in norms.items():
        octave = math.ceil(math.log2(norm))
        points = [2.0 ** (octave - 1) * (1 + i / 2**grid) for i in range(1, 2**grid + 1)]
        raised[name] = min(point for point in points if point >= norm)
    return raised


def _cost(norm, grid):
    """Nats of a norm on a grid: minus the logarithm of its probability."""
    octave = abs(math.ceil(math.log2(norm)))
    return -math.log(2.0**-grid * (2 / 3) / ((octave + 1) * (octave + 2)))


def _norms(M, grid=None):
    """Norms of x -> M x by loops, raised to a grid if there is one."""
    norms = {
        "top": float(np.linalg.svd(M, compute_uv=False)[0]),
        "1,1": sum(abs(float(entry)) for entry in M.ravel()),
        "1,inf": max(sum(abs(float(entry)) for entry in column) for column in M.T),
        "2,1": sum(math.hypot(*row) for row in M),
        "row": max(sum(abs(float(entry)) for entry in row) for row in M),
        "length": max(math.hypot(*row) for row in M),
    }
    rows, columns = M.shape
    return {"rows": rows, "columns": columns} | _raised(norms, grid)


def _either_side(M, grid=None):
    """The smaller norms of M and its transpose."""
    one, other = _norms(M, grid), _norms(M.T, grid)
    return {name: min(value, other[name]) for name, value in one.items()}


def _perceptron(k, points, m):
    """The constant of the cover of rows."""
    if k == 1:
        return math.log(2 * points + 1)
    cells = math.log(max(m / 2, 2.0))
    size = math.log(2 * k * points + 1)
    return min(r * size + math.log(max(1, math.ceil(cells / math.log(r)))) for r in GRID_RATIOS)


def _covers(n, two, one, points, m):
    rows, columns = n["rows"], n["columns"]
    return {
        "1,1": (n["1,1"] * two) ** 2 * math.log(2 * rows * columns + 1),
        "1,inf": (n["1,inf"] * one) ** 2 * columns * math.log(2 * rows + 1),
        "2,1": (n["2,1"] * one) ** 2 * _perceptron(rows, columns, m),
        "log T": (n["2,1"] * two) ** 2 * _perceptron(rows, points, m),
    }


def _measures(case):
    """Largest Euclidean norm, l_1 norm and entry of a token."""
    rows = case.X.reshape(-1, _D)
    two = max(math.hypot(*row) for row in rows)
    return two, float(np.abs(rows).sum(1).max()), float(np.abs(rows).max())


def _plain(case, grid=None):
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
        added = {}
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


def _parts(case, kappa, flipped, grid=None):
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


def _deep(case, flipped=False, grid=None):
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

    def counted(levels):
        logs = [p * np.log1p(s / levels) for p, s in zip(counts, scales, strict=True)]
        return np.sum(logs, axis=0)

    found["parameters"] = _chain(counted, m, radius)
    return found


def _gap(value, m, nats=0.0):
    """True minus empirical risk."""
    return 2 * value + 3 * RANGE * math.sqrt((math.log(2 / DELTA) + nats) / (2 * m))


def _plain_costs(case, grid):
    """Nats of the norms of each entry, one layer."""
    heads = case.weights.layers[0]
    base = _cost(_norms(case.weights.readout[None])["row"], grid)
    either = len(heads) * math.log(2)
    found = dict.fromkeys(("1,1", "1,inf", "2,1", "log T", "log m", "parameters"), 0.0)
    for head in heads:
        base += _cost(_norms(head.output.T)["row"], grid)
        base += _cost(_norms(head.value.T)["row"], grid)
        M = np.asarray(head.query_key)
        n = _either_side(M)
        sizes = (n["1,1"], n["1,inf"], n["2,1"], n["2,1"], _norms(M.T)["2,1"], n["top"])
        found = {
            name: nats + _cost(size, grid)
            for (name, nats), size in zip(found.items(), sizes, strict=True)
        }
    for name in ("1,inf", "2,1", "log T"):
        found[name] += either
    return {"trivial": base, **{name: base + nats for name, nats in found.items()}}


def _deep_costs(case, grid):
    """Nats of the norms of each entry, normalised layers."""
    norms = [part[1] for part in _parts(case, 1.0, flipped=False)]
    length = _cost(norms[0]["length"], grid)
    base = length + sum(_cost(n["top"], grid) for n in norms[1:])
    either = (len(norms) - 1) / 3 * math.log(2)
    fields = {"1,1": "1,1", "1,inf": "1,inf", "2,1": "2,1", "log T": "2,1"}
    found = {
        name: base + sum(_cost(n[field], grid) for n in norms) + (name != "1,1") * either
        for name, field in fields.items()
    }
    dearest = sum(max(_cost(n[field], grid) for field in fields.values()) for n in norms)
    found["mixed"] = base + dearest + len(norms) * math.log(len(fields)) + either
    found["parameters"] = base + _cost(norms[0]["top"], grid)
    return {"trivial": 0.0 if case.kind == "masked" else length, **found}


def _computed_again(table, again):
    """The entries with a second computation here, which must be in the table."""
    names = {name for name in again if not name.startswith("samples ")}
    entries = [entry for entry in table.entries if entry.name in names]
    assert {entry.name for entry in entries} == names
    return entries


@pytest.fixture(scope="module")
def cases():
    """Three Transformers of each kind with their tables, for norms fixed in advance."""
    rng = np.random.default_rng(0)
    made = [Case(rng, kind) for kind in 3 * KINDS]
    return [(case, case.table("fixed")) for case in made]


@pytest.mark.thorough
def test_every_complexity_again(cases):
    """Not so with norms of W for those of its transpose, where a deep cover is not trivial."""
    rejected = 0
    for case, table in cases:
        again = case.again()
        values = {e.name: e.rademacher for e in _computed_again(table, again)}
        assert agree(list(values.values()), [again[name] for name in values])
        # parameters are counted with spectral norms, which do not change
        smallest = min(value for name, value in values.items() if name != "parameters")
        if case.kind != "plain" and smallest < 0.99 * values["trivial"]:
            flipped = case.again(flipped=True)
            assert not agree(list(values.values()), [flipped[name] for name in values])
            rejected += 1
    assert rejected >= 2


@pytest.mark.thorough
def test_the_samples_at_which_a_deep_bound_is_below_the_trivial_one_again(cases):
    r"""67.95 gamma^3 / r^2, with 599.3 in place of 67.95 for softmax constant 2 and Dudley."""
    for case, table in cases:
        again = case.again()
        entries = [e for e in _computed_again(table, again) if math.isfinite(e.log10_samples)]
        assert bool(entries) == (case.kind != "plain")
        for entry in entries:
            # the digits of a logarithm: the entropy enters with its relative rounding
            wanted = again[f"samples {entry.name}"]
            assert entry.log10_samples == pytest.approx(wanted, rel=0, abs=3e-12)
            assert entry.log10_samples != pytest.approx(wanted - 1, rel=0, abs=3e-12)


@pytest.mark.thorough
def test_gaps_the_best_and_the_vacuous_again(cases):
    for case, table in cases:
        again = case.again()
        entries = _computed_again(table, again)
        gaps = [_gap(again[e.name], case.m) for e in entries]
        assert agree([e.gap for e in entries], gaps)
        assert not agree([e.gap for e in entries], [gap / 2 for gap in gaps])
        assert [e.vacuous for e in entries] == [gap >= RANGE for gap in gaps]
        bounds = [gap for e, gap in zip(entries, gaps, strict=True) if e.is_bound]
        assert agree(min(e.gap for e in entries if e.is_bound), min(bounds))
        assert table.best.gap == min(e.gap for e in table.entries if e.is_bound)


@pytest.mark.parametrize("kind", KINDS)
def test_the_union_bound_over_four_grids_of_norms_again(kind):
    """papers/trauger2023sequence/proofs/union.md; norms fixed in advance would cost less."""
    case = Case(np.random.default_rng(1), kind)
    table, fixed = case.table("measured"), case.again()
    entries = [entry for entry in _computed_again(table, fixed) if entry.is_bound]
    shared = math.log(len(RESOLUTIONS) * sum(entry.is_bound for entry in table.entries))
    costs = _plain_costs if kind == "plain" else _deep_costs
    grids = [(case.again(grid=grid), costs(case, grid)) for grid in RESOLUTIONS]
    again = []
    for entry in entries:
        cover = entry.name.removesuffix(" sharp").removesuffix(" corrected")
        again.append(min(_gap(R[entry.name], case.m, nats[cover] + shared) for R, nats in grids))
    found = [entry.gap for entry in entries]
    assert agree(found, again)
    assert not agree(found, [_gap(fixed[entry.name], case.m) for entry in entries])
