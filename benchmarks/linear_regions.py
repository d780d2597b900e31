"""Cells of hyperplane arrangements, beside linear programs and beside all vertices at once.

The peers, from weak to strong: what the definition says, all 2^n sign vectors, each a feasibility
problem that asks for the largest ball inside its cell (HiGHS through SciPy); hyperplanes added one
by one, with one linear program for each cell so far, since its point shows one of its two sides;
and the 2^s cells around every vertex, in NumPy, which is right where the arrangement is simple and
does not know whether it is. attlas computes the same where its exact count, in rational numbers,
proves the arrangement simple; its time has that count and the check of every point. All must find
the same cells. Linear programs are left out where they take minutes. Times are processor time.
"""

from benchmarks.interleave import compare, pin_to_one_core, write_results

pin_to_one_core()

import itertools  # noqa: E402
import time  # noqa: E402

import numpy as np  # noqa: E402
from scipy.optimize import linprog  # noqa: E402

from liu2021analyzing.library.bounds.liu2021_regions import liu2021_regions  # noqa: E402
from liu2021analyzing.library.measures.cell_enumeration import enumerate_cells  # noqa: E402

BRUTE, INCREMENTAL, VERTICES = (
    "2^n linear programs", "incremental, a linear program a cell", "all vertices at once, NumPy",
)  # fmt: skip


def arrangement(n: int, s: int) -> tuple[np.ndarray, np.ndarray]:
    """A generic arrangement."""
    draw = np.random.default_rng(n * s)
    return draw.standard_normal((n, s)), draw.standard_normal(n)


def largest_ball(A: np.ndarray, b: np.ndarray) -> tuple[float, np.ndarray]:
    """Radius, at most 1, and centre of the largest ball where A x + b > 0."""
    s = A.shape[1]
    lp = linprog(
        np.r_[np.zeros(s), -1],
        A_ub=np.c_[-A, np.linalg.norm(A, axis=1)],
        b_ub=b,
        bounds=[(-1e4, 1e4)] * s + [(0, 1)],
    )
    return (-lp.fun, lp.x[:s]) if lp.status == 0 else (0.0, np.zeros(s))


def brute_force(W: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Sign vectors whose cell holds a ball of radius over 1e-7."""
    rows = (np.array(signs) for signs in itertools.product((-1, 1), repeat=len(W)))
    cells = [s for s in rows if largest_ball(s[:, None] * W, s * b)[0] > 1e-7]
    return np.array(cells, np.int8)


def incremental(W: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Hyperplanes one by one: the point of a cell shows one side, a program decides the other."""
    cells = [(np.zeros(0), np.zeros(W.shape[1]))]
    for i in range(len(W)):
        after = []
        for signs, point in cells:
            side = 1.0 if W[i] @ point + b[i] > 0 else -1.0
            after.append((np.r_[signs, side], point))
            other = np.r_[signs, -side]
            radius, centre = largest_ball(other[:, None] * W[: i + 1], other * b[: i + 1])
            if radius > 1e-7:
                after.append((other, centre))
        cells = after
    return np.array([signs for signs, _ in cells], np.int8)


def vertices(W: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Signs of the 2^s cells around every vertex, each cell once."""
    n, s = W.shape
    meeting = np.array(list(itertools.combinations(range(n), s)))
    corners = np.linalg.solve(W[meeting], -b[meeting][..., None])[..., 0]
    signs = np.repeat((corners @ W.T + b > 0)[:, None], 2**s, axis=1)
    sides = np.array(list(itertools.product((False, True), repeat=s)))
    at = np.broadcast_to(meeting[:, None], (len(meeting), 2**s, s))
    np.put_along_axis(signs, at, np.broadcast_to(sides, at.shape), axis=2)
    cells = np.unique(np.packbits(signs.reshape(-1, n), axis=1), axis=0)
    return (2 * np.unpackbits(cells, axis=1, count=n).astype(np.int8) - 1).astype(np.int8)


def difference(mine: np.ndarray, theirs: np.ndarray) -> float:
    """Number of cells that only one side has."""
    one, other = ({row.tobytes() for row in part} for part in (mine, theirs))
    return float(len(one ^ other))


def measure(n: int, s: int, names: tuple[str, ...], rounds: int) -> dict:
    """All sides on one arrangement."""
    W, b = arrangement(n, s)
    works = {BRUTE: brute_force, INCREMENTAL: incremental, VERTICES: vertices}
    case = compare(
        f"n = {n} hyperplanes, s = {s} dimensions: cells with a point each",
        lambda: enumerate_cells(W, b).unwrap().signs,
        {name: lambda name=name: works[name](W, b) for name in names},
        agree=difference,
        rounds=rounds,
        goal={VERTICES: 1.0},
        clock=time.process_time,
    )
    for peer, row in case["peers"].items():
        if row.get("difference", 0.0) > 0:
            raise AssertionError(f"{peer} finds other cells: {row['difference']:.0f} differ")
    return {**case, "cells": liu2021_regions(n, s)}


def main() -> None:
    """Measure and write `results/linear_regions.json`."""
    every, fast = (BRUTE, INCREMENTAL, VERTICES), (VERTICES,)
    cases = [measure(n, s, every, 3) for n, s in ((8, 2), (8, 4), (11, 3))]
    cases += [measure(n, s, fast, 3) for n, s in ((60, 2), (30, 3), (20, 4))]
    write_results("linear_regions", cases)


if __name__ == "__main__":
    main()
