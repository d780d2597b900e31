r"""Covers of linear maps that are constructed: shared by the claims of Lemmas 3.3 to 3.6.

A centre is built on the host for each matrix W: by greedy steps for the l_1 balls (Lemmas 3.3 and
3.6), by perceptrons in the rows (Lemmas 3.4 and 3.5). `size` is the log of the number of centres
that the construction can distinguish.
"""

import math

import numpy as np

from attlas.bounds.covering.edelman2022_cover import perceptron_cover
from attlas.claims.sampling import six_decades
from trauger2023sequence.library.bounds.greedy_cover import greedy_cover_centre, greedy_cover_steps

ROWS, COLUMNS, POINTS = 4, 3, 6
"""Rows k and columns d of the matrices, and the number N of given inputs."""
ROUNDINGS = 256
"""Up to 60 steps of a centre, products of 12 terms, a projection and a norm."""
THETA = 1.5
"""Ratio of the grid on which the lengths of rows are described."""


def ball_points(rng, count, size, offset=0):
    """Points of the unit l_1 ball: a vertex, flat ones on 2 to `size` entries, and random ones."""
    points = rng.dirichlet(np.full(size, 0.3), count)
    points *= rng.uniform(0.3, 1, (count, 1)) ** (rng.random((count, 1)) < 0.3)
    for i in range(count):
        kind = (i + offset) % (size + 4)
        if kind < size:
            points[i] = rng.permutation(np.arange(size) <= kind) / (kind + 1)
    return points * rng.choice([-1.0, 1.0], points.shape)


def _radii(rng, count):
    """B, B_x and epsilon; B B_x / epsilon just above one, just above two, or up to seven."""
    B, B_x = six_decades(rng, (2, count), -2, 2)
    ratio = rng.uniform(0.8, 7, count)
    ratio[::4], ratio[1::8], ratio[5::8] = 2.0, 1 + 1e-6, math.sqrt(6)
    return B, B_x, B * B_x / ratio


def greedy_centre(W, B, ratio, by_column=False):
    """The greedy centre of a matrix at distance B / ratio, and the log number of centres.

    Each column is covered on its own, for Lemma 3.3, or all entries at once.
    """
    pieces = W.T if by_column else W.reshape(1, -1)
    steps, near = greedy_cover_steps(float(ratio)), np.zeros_like(pieces)
    if steps:
        near = np.stack([greedy_cover_centre(piece, float(B), steps) for piece in pieces])
    nats = len(pieces) * steps * math.log(2 * pieces.shape[1] + 1)
    return near.T if by_column else near.reshape(W.shape), nats


def greedy_instances(rng, count, by_column):
    """Matrices of a ball, their greedy centres and the log number of centres."""
    B, B_x, epsilon = _radii(rng, count)
    pieces = (count * COLUMNS, ROWS) if by_column else (count, ROWS * COLUMNS)
    W = ball_points(rng, *pieces).reshape(count, COLUMNS, ROWS).swapaxes(1, 2)
    W *= B[:, None, None]
    centres = [
        greedy_centre(*instance, by_column)
        for instance in zip(W, B, B * B_x / epsilon, strict=True)
    ]
    centre, size = (np.array(column) for column in zip(*centres, strict=True))
    return {"W": W, "centre": centre, "B": B, "B_x": B_x, "epsilon": epsilon, "size": size}


def row_centre(W, X, B, B_x, epsilon):
    """The centre of `proofs/covers.md`, row by row, and its description length.

    That is (updates) ln(2 k N + 1) + (rows kept) ln(cells).
    """
    centre, nats = np.zeros_like(W), 0.0
    K = (B * B_x / epsilon) ** 2
    if K <= 1:
        return centre, nats
    cells = math.ceil(math.log(K) / math.log(THETA))
    for i, row in enumerate(W):
        length = float(np.linalg.norm(row))
        if length > B / K:
            cell = max(1, math.ceil(math.log(length * K / B) / math.log(THETA)))
            share = min(cell, cells) * math.log(THETA) - math.log(K) - math.log(THETA)
            centre[i], updates = perceptron_cover(row, X, epsilon * math.exp(share / 2))
            nats += updates * math.log(2 * len(W) * len(X) + 1) + math.log(max(cells, 1))
    return centre, nats


def row_instances(rng, count, basis, columns=False):
    """Matrices whose row lengths add up to at most B, and their centres.

    With `basis` the inputs are B_x e_1, ..., B_x e_d, the first repeated; else random ones. With
    `columns` there is one flat column of length B, a matrix of the column ball alone.
    """
    B, B_x, epsilon = _radii(rng, count)
    shares = ball_points(rng, count, ROWS)
    lines = rng.normal(size=(count, ROWS, COLUMNS))
    lines[::3] = np.eye(COLUMNS)[rng.integers(COLUMNS, size=(len(lines[::3]), ROWS))]
    lines /= np.linalg.norm(lines, axis=2, keepdims=True)
    W = (B[:, None] * shares)[:, :, None] * lines
    if columns:
        W = np.zeros_like(W)
        W[:, :, 0] = B[:, None] / math.sqrt(ROWS)
    X = rng.normal(size=(count, POINTS, COLUMNS))
    X /= np.linalg.norm(X, axis=2, keepdims=True)
    if basis:
        X = np.tile(np.eye(COLUMNS), (count, 2, 1))
    X *= B_x[:, None, None]
    centre, size = np.zeros_like(W), np.zeros(count)
    for i in range(count):
        points = X[i, :COLUMNS] if basis else X[i]
        centre[i], size[i] = row_centre(W[i], points, float(B[i]), float(B_x[i]), float(epsilon[i]))
    batch = {"W": W, "centre": centre, "X": X, "size": size}
    return batch | {"B": B, "B_x": B_x, "epsilon": epsilon}
