"""Cells of hyperplane arrangements, against one linear program for every sign vector.

The peer is what the definition says: all 2^n sign vectors, each a feasibility problem that
asks for the largest ball inside its cell (HiGHS through SciPy). Both must find the same cells.
The larger arrangements, which the peer cannot reach, are timed alone, with the exact count.
"""

from benchmarks.interleave import LEAST, compare, pin_to_one_core, seconds, write_results

pin_to_one_core()

import itertools  # noqa: E402

import numpy as np  # noqa: E402
from scipy.optimize import linprog  # noqa: E402

from liu2021analyzing.library.bounds.liu2021_regions import liu2021_regions  # noqa: E402
from liu2021analyzing.library.measures.cell_enumeration import enumerate_cells  # noqa: E402
from liu2021analyzing.library.measures.linear_regions import count_cells  # noqa: E402

SPEED_UP = 10.0


def arrangement(n: int, s: int) -> tuple[np.ndarray, np.ndarray]:
    """A generic arrangement."""
    draw = np.random.default_rng(n * s)
    return draw.standard_normal((n, s)), draw.standard_normal(n)


def brute_force(W: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Sign vectors whose cell holds a ball of radius over 1e-7."""
    n, s = W.shape
    lengths, found = np.linalg.norm(W, axis=1), []
    for signs in itertools.product((-1, 1), repeat=n):
        sides = np.array(signs)
        lp = linprog(
            np.r_[np.zeros(s), -1],
            A_ub=np.c_[-sides[:, None] * W, lengths],
            b_ub=sides * b,
            bounds=[(-1e4, 1e4)] * s + [(0, 1)],
        )
        if lp.status == 0 and -lp.fun > 1e-7:
            found.append(signs)
    return np.array(found, np.int8)


def difference(mine: np.ndarray, theirs: np.ndarray) -> float:
    """Number of cells that only one side has."""
    one, other = ({row.tobytes() for row in part} for part in (mine, theirs))
    return float(len(one ^ other))


def measure(n: int, s: int, rounds: int) -> dict:
    """Both sides on one arrangement."""
    W, b = arrangement(n, s)
    case = compare(
        f"n = {n} hyperplanes, s = {s} dimensions: cells with a point each",
        lambda: enumerate_cells(W, b).unwrap().signs,
        {"2^n linear programs": lambda: brute_force(W, b)},
        agree=difference,
        rounds=rounds,
        goal={"2^n linear programs": SPEED_UP},
    )
    for peer, row in case["peers"].items():
        if row.get("difference", 0.0) > 0:
            raise AssertionError(f"{peer} finds other cells: {row['difference']:.0f} differ")
    return {**case, "cells": liu2021_regions(n, s)}


def alone(n: int, s: int) -> dict:
    """Ours on an arrangement that the peer would need 2^n programs for."""
    W, b = arrangement(n, s)
    taken, found = seconds(lambda: enumerate_cells(W, b).unwrap(), LEAST)
    counting, count = seconds(lambda: count_cells(W, b), LEAST)
    if not len(found.signs) == count == liu2021_regions(n, s):
        raise AssertionError(f"{len(found.signs)} cells, {count} counted")
    return {
        "case": f"n = {n} hyperplanes, s = {s} dimensions: ours alone",
        "seconds": taken,
        "seconds_of_exact_count": counting,
        "cells": count,
        "peers": {},
    }


def main() -> None:
    """Measure and write `results/linear_regions.json`."""
    cases = [measure(8, 2, 5), measure(8, 4, 5), measure(11, 3, 3)]
    cases += [alone(n, s) for n, s in ((60, 2), (30, 3), (20, 4))]
    write_results("linear_regions", cases)


if __name__ == "__main__":
    main()
