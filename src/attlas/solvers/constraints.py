r"""Constraint rows of a max-margin problem, as an operator on batches.

Every problem of this folder is min ||w||_p subject to A w >= 1. The rows of A are never
needed one by one: applying A, its transpose and the Gram matrix A diag(h) A' is enough.
Arrays are float64 NumPy with a leading batch axis, since the solvers run on the host, where
LAPACK solves thousands of tiny systems faster than a compiled program does.
"""

import itertools
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class ConstraintOperator(Protocol):
    """The operations that solvers need from a batch of constraint matrices A, each [m, D]."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Batch size, number of constraints m, number of variables D."""
        ...

    def apply(self, w: np.ndarray) -> np.ndarray:
        """A w, [b, D] to [b, m]."""
        ...

    def adjoint(self, multipliers: np.ndarray) -> np.ndarray:
        """A' l, [b, m] to [b, D]."""
        ...

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """A diag(h) A', [b, D] to [b, m, m]."""
        ...

    def lengths(self) -> np.ndarray:
        """Euclidean length of every row, [b, m]."""
        ...

    def select(self, rows: np.ndarray) -> np.ndarray:
        """The dense rows of the first problem at some indices, [k, D]."""
        ...

    def part(self, rows: np.ndarray) -> "ConstraintOperator":
        """The first problem with some of its rows, by increasing index."""
        ...

    def take(self, problems: np.ndarray | slice) -> "ConstraintOperator":
        """The problems of the batch at some indices."""
        ...

    def scaled(self, factor: np.ndarray) -> "ConstraintOperator":
        """All rows times one factor for each problem, [b]."""
        ...

    def single(self) -> "ConstraintOperator":
        """The same constraints in single precision, for starts and preconditioners."""
        ...


# Multiplications up to which a dense Gram matrix beats a structured one that loops over samples.
_DENSE_MULTIPLICATIONS = 300_000
# Rows of a Gram matrix that are multiplied at once: a second matrix of its size is never there.
_BLOCK = 256


def _alike(weights: np.ndarray) -> bool:
    """Whether the weights of every problem are all equal, as at p = 2."""
    return bool((weights == weights[:, :1]).all())


class VectorRows(NamedTuple):
    """Plain rows: A is given, [b, m, D]."""

    matrix: np.ndarray

    @property
    def shape(self) -> tuple[int, int, int]:
        """Batch size, m, D."""
        b, m, size = self.matrix.shape
        return b, m, size

    def apply(self, w: np.ndarray) -> np.ndarray:
        """A w."""
        return np.matmul(self.matrix, w[..., None])[..., 0]

    def adjoint(self, multipliers: np.ndarray) -> np.ndarray:
        """A' l."""
        return np.matmul(multipliers[:, None, :], self.matrix)[:, 0]

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """A diag(h) A'; the root makes it symmetric, which BLAS uses."""
        half = self.matrix * np.sqrt(weights)[:, None, :]
        return np.matmul(half, half.transpose(0, 2, 1))

    def lengths(self) -> np.ndarray:
        """Euclidean length of every row."""
        return np.linalg.norm(self.matrix, axis=-1)

    def select(self, rows: np.ndarray) -> np.ndarray:
        """Rows of the first problem."""
        return self.matrix[0, rows]

    def part(self, rows: np.ndarray) -> "VectorRows":
        """The first problem with some of its rows."""
        return VectorRows(self.matrix[:1, rows])

    def take(self, problems: np.ndarray | slice) -> "VectorRows":
        """Some problems."""
        return VectorRows(self.matrix[problems])

    def scaled(self, factor: np.ndarray) -> "VectorRows":
        """Rows times a factor."""
        return VectorRows(self.matrix * factor[:, None, None])

    def single(self) -> "VectorRows":
        """The rows in single precision."""
        return VectorRows(self.matrix.astype(np.float32))


class AttentionRows(NamedTuple):
    r"""Rows of the attention SVM: (D_is' W z_i), rank one in W [d, d], never formed.

    Attributes:
        differences: D_is = X_{i alpha_i} - X_{it}, t != alpha_i, [b, n, S, d], S = T - 1.
        queries: z_i, [b, n, d].
    """

    differences: np.ndarray
    queries: np.ndarray

    @property
    def shape(self) -> tuple[int, int, int]:
        """Batch size, m = n S, D = d^2."""
        b, n, others, d = self.differences.shape
        return b, n * others, d * d

    def apply(self, w: np.ndarray) -> np.ndarray:
        """D_is' W z_i."""
        b, _, _, d = self.differences.shape
        images = np.matmul(self.queries, w.reshape(b, d, d).transpose(0, 2, 1))
        return np.matmul(self.differences, images[..., None]).reshape(b, -1)

    def adjoint(self, multipliers: np.ndarray) -> np.ndarray:
        """sum_is l_is D_is z_i'."""
        b, n, others, _ = self.differences.shape
        mixed = np.matmul(multipliers.reshape(b, n, 1, others), self.differences)[:, :, 0]
        return np.matmul(mixed.transpose(0, 2, 1), self.queries).reshape(b, -1)

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """A diag(h) A' in n^2 d^2 + m^2 d operations instead of m^2 d^2, m^2 d for equal h."""
        b, n, others, d = self.differences.shape
        m = n * others
        if _alike(weights):
            flat = self.differences.reshape(b, m, d)
            tokens = np.matmul(flat, np.ascontiguousarray(flat.transpose(0, 2, 1)))
            queries = self.queries * weights[:, :1, None]
            pairs = np.matmul(queries, self.queries.transpose(0, 2, 1))
            blocks = tokens.reshape(b, n, others, m)
            blocks *= np.repeat(pairs, others, axis=2)[:, :, None]
            return tokens
        pairs = self.queries[:, :, None, :] * self.queries[:, None, :, :]
        metric = np.matmul(
            pairs.reshape(b, n * n, d), weights.reshape(b, d, d).transpose(0, 2, 1)
        ).reshape(b, n, n, d)
        out = np.empty((b, m, n, others), self.differences.dtype)
        for j in range(n):
            left = self.differences * metric[:, :, j, None, :]
            right = self.differences[:, j].transpose(0, 2, 1)
            np.matmul(left.reshape(b, m, d), right, out=out[:, :, j])
        return out.reshape(b, m, m)

    def lengths(self) -> np.ndarray:
        """|D_is| |z_i|."""
        tokens = np.sqrt(np.einsum("bnsd,bnsd->bns", self.differences, self.differences))
        return (tokens * np.linalg.norm(self.queries, axis=-1)[..., None]).reshape(len(tokens), -1)

    def select(self, rows: np.ndarray) -> np.ndarray:
        """Dense rows of the first problem."""
        sample, token = np.divmod(rows, self.differences.shape[2])
        outer = self.differences[0, sample, token][:, :, None] * self.queries[0, sample][:, None]
        return outer.reshape(len(rows), -1)

    def part(self, rows: np.ndarray) -> "PairRows":
        """The first problem with some of its rows."""
        sample, token = np.divmod(rows, self.differences.shape[2])
        return _pairs(self.differences[0, sample, token], self.queries[0], sample)

    def take(self, problems: np.ndarray | slice) -> "AttentionRows":
        """Some problems."""
        return AttentionRows(self.differences[problems], self.queries[problems])

    def scaled(self, factor: np.ndarray) -> "AttentionRows":
        """Rows times a factor."""
        return AttentionRows(self.differences * factor[:, None, None, None], self.queries)

    def single(self) -> "AttentionRows":
        """The rows in single precision."""
        return AttentionRows(self.differences.astype(np.float32), self.queries.astype(np.float32))


class PairRows(NamedTuple):
    r"""Some rows of one attention SVM, any number of each sample.

    Attributes:
        differences: D_r, [k, d].
        queries: z_i of the samples that have rows, [n, d].
        sample: i of each row, increasing, [k].
    """

    differences: np.ndarray
    queries: np.ndarray
    sample: np.ndarray

    @property
    def shape(self) -> tuple[int, int, int]:
        """Batch size one, k, D = d^2."""
        k, d = self.differences.shape
        return 1, k, d * d

    def apply(self, w: np.ndarray) -> np.ndarray:
        """D_r' W z_r."""
        d = self.differences.shape[1]
        images = self.queries @ w.reshape(d, d).T
        return np.einsum("kd,kd->k", self.differences, images[self.sample])[None]

    def adjoint(self, multipliers: np.ndarray) -> np.ndarray:
        """sum_r l_r D_r z_r'."""
        weighted = multipliers[0][:, None] * self.differences
        return (weighted.T @ self.queries[self.sample]).reshape(1, -1)

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """A diag(h) A', n (n d^2 + k d) + k^2 d operations sample by sample, or dense if small."""
        k, d = self.differences.shape
        if _alike(weights):
            queries = (self.queries * weights[0, 0]) @ self.queries.T
            tokens = self.differences @ self.differences.T
            for low in range(0, k, _BLOCK):
                rows = slice(low, low + _BLOCK)
                tokens[rows] *= queries[self.sample[rows, None], self.sample]
            return tokens[None]
        if k * k * d * d <= _DENSE_MULTIPLICATIONS * len(self.queries):
            queries = self.queries[self.sample]
            dense = (self.differences[:, :, None] * queries[:, None, :]).reshape(k, d * d)
            dense *= np.sqrt(weights)
            return (dense @ dense.T)[None]
        metric = weights.reshape(d, d).T
        out = np.empty((1, k, k), self.differences.dtype)
        ends = np.searchsorted(self.sample, np.arange(len(self.queries) + 1))
        for i, (low, high) in enumerate(itertools.pairwise(ends)):
            if low < high:
                across = (self.queries[i:] * self.queries[i]) @ metric
                left = self.differences[low:] * across[self.sample[low:] - i]
                block = left @ self.differences[low:high].T
                out[0, low:, low:high] = block
                out[0, low:high, low:] = block.T
        return out

    def lengths(self) -> np.ndarray:
        """|D_r| |z_r|."""
        queries = np.linalg.norm(self.queries, axis=1)[self.sample]
        return (np.linalg.norm(self.differences, axis=1) * queries)[None]

    def select(self, rows: np.ndarray) -> np.ndarray:
        """Dense rows."""
        outer = self.differences[rows][:, :, None] * self.queries[self.sample[rows]][:, None]
        return outer.reshape(len(rows), -1)

    def part(self, rows: np.ndarray) -> "PairRows":
        """Some of the rows."""
        return _pairs(self.differences[rows], self.queries, self.sample[rows])

    def take(self, problems: np.ndarray | slice) -> "PairRows":
        """The one problem itself."""
        return self

    def scaled(self, factor: np.ndarray) -> "PairRows":
        """Rows times a factor."""
        return PairRows(self.differences * factor[0], self.queries, self.sample)

    def single(self) -> "PairRows":
        """The rows in single precision."""
        differences, queries = self.differences.astype(np.float32), self.queries.astype(np.float32)
        return PairRows(differences, queries, self.sample)


def _pairs(differences: np.ndarray, queries: np.ndarray, sample: np.ndarray) -> PairRows:
    """Rows of some samples, without the queries of the others."""
    used, place = np.unique(sample, return_inverse=True)
    return PairRows(differences, queries[used], place)
