r"""Networks on x o f with their exact numbers of cells and regions, and grids of (n1, s0)."""

import numpy as np

from attlas.claims.perturbed_draws import apart
from liu2021analyzing.library.bounds.liu2021_regions import (
    liu2021_central_regions_maximum,
    liu2021_regions,
)
from liu2021analyzing.library.measures.cell_enumeration import enumerate_cells
from liu2021analyzing.library.measures.linear_regions import count_cells, count_linear_regions

UNITS, INPUTS = 6, 4

# Counts are integers below 2^53 and logarithms of integers: exact, or one rounding.
ROUNDINGS = 8


def columns(rows):
    """Rows of numbers with equal keys as arrays, one row per instance."""
    return {name: np.array([row[name] for row in rows], float) for name in rows[0]}


def size_pairs(rng, count):
    """Pairs (n1, s0), s0 < n1 as Theorem 4 requires: narrow and wide, and rounded as in C.1."""
    narrow = [(n1, s0) for n1 in range(2, 9) for s0 in range(1, n1)]
    narrow += [(200, 50), (200, 72), (299, 99), (199, 99)]
    n1 = 2 + (10 ** rng.uniform(0, 3, count)).astype(int)
    s0 = 1 + (rng.uniform(0, 1, count) ** 2 * np.minimum(n1 - 1, 100)).astype(int)
    pairs = zip(n1.tolist(), np.minimum(s0, n1 - 1).tolist(), strict=True)
    return [*narrow, *pairs][:count]


def masked_networks(rng, count):
    """Random networks with s0 of four inputs attended to, generic and degenerate by turns.

    W is what the mask leaves; cells, central (cells without biases) and regions as counted;
    most and most_central are the library's maxima; generic is 1 where weights are random
    numbers, 0 where they are small integers.
    """
    rng, rows = apart(rng), []
    for k in range(count):
        s0 = 1 + k % 3
        W, b, w2 = (rng.standard_normal(s) for s in ((UNITS, INPUTS), UNITS, UNITS))
        if k % 2:
            # Small integers: parallel and repeated hyperplanes, units that are never active,
            # kinks that cancel.
            W, b, w2 = np.round(W), np.round(b), np.round(w2)
            W[0, ~W.any(axis=0)] = 1.0  # every attended input is read, so that s0 of them are left
        f = np.zeros(INPUTS)
        f[rng.permutation(INPUTS)[:s0]] = 2.0 ** -np.arange(s0)
        masked = W * f[None, :]
        rows.append(
            {
                "cells": count_cells(masked, b),
                "central": count_cells(masked),
                "regions": count_linear_regions(masked, w2, b),
                "most": liu2021_regions(UNITS, s0),
                "most_central": liu2021_central_regions_maximum(UNITS, s0),
                "W": masked,
                "generic": 1 - k % 2,
            }
        )
    return columns(rows)


def affine_pieces(rng, count):
    """Networks in the plane with a point in each cell, repeated to a common number.

    Every second network has a unit whose kink another one cancels.
    """
    units, counts = 4, []
    most = liu2021_regions(units, 2)
    for k in range(count):
        W, b, w2 = rng.standard_normal((units, 2)), *rng.standard_normal((2, units))
        if k % 2:
            # max(0, z) - max(0, -2z) / 2 = z: together the two units are linear.
            W[1], b[1], w2[1] = -2 * W[0], -2 * b[0], -w2[0] / 2
        points = enumerate_cells(W, b).unwrap().points
        numbers = float(count_cells(W, b)), float(count_linear_regions(W, w2, b))
        counts.append((W, b, w2, points[np.arange(most) % len(points)], *numbers))
    names = ("W", "b", "w2", "points", "cells", "regions")
    return {
        name: np.stack(values)
        for name, values in zip(names, zip(*counts, strict=True), strict=True)
    }
