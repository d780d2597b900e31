"""One layer of attention with a linear readout, on labelled sequences: margins and norms met."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attlas.core.arrays import ArrayInput, read_array, read_arrays
from attlas.core.errors import UserError
from attlas.core.finite import require_finite


class LinearAttention(NamedTuple):
    r"""The function $f(X)=\sum_ha_h^\top X^\top{\rm softmax}(XM_hx_{\rm cls})$.

    Theorem 4.1 of trauger2023sequence with the identity as activation and $a_h=W_vW_cw$.

    Attributes:
        readouts: a, (H, d) or (d,) for one head.
        query_keys: M, (H, d, d) or (d, d).
    """

    readouts: ArrayInput
    query_keys: ArrayInput


class MarginSample(NamedTuple):
    """Margins and norms of a function on a sample.

    Attributes:
        margins: y f(X) of each sequence.
        readouts: a.
        query_keys: M, each reduced to its action on the [CLS] token where that is always the same.
        diameter: largest Euclidean distance of two tokens of each sequence.
        span: largest range of an entry over the tokens of each sequence.
        length: largest Euclidean norm of a token of each sequence.
        entries: largest |entry| of a token of each sequence.
        centres: middle of the range of each entry, (n, d).
        cls: [CLS] of each sequence, (n, d).
        tokens: T.
        fixed_cls: whether [CLS] is one vector for all sequences.
    """

    margins: Float[np.ndarray, " n"]
    readouts: Float[np.ndarray, "H d"]
    query_keys: Float[np.ndarray, "H d d"]
    diameter: Float[np.ndarray, " n"]
    span: Float[np.ndarray, " n"]
    length: Float[np.ndarray, " n"]
    entries: Float[np.ndarray, " n"]
    centres: Float[np.ndarray, "n d"]
    cls: Float[np.ndarray, "n d"]
    tokens: int
    fixed_cls: bool

    @property
    def error(self) -> float:
        """Share of the sequences on the wrong side; an output of 0 is."""
        return float(np.mean(self.margins <= 0))


_BLOCK = 1 << 22
"""Largest number of entries of the differences between tokens in memory at once."""


def measure_margins(
    attention: LinearAttention, inputs: ArrayInput, cls: ArrayInput, labels: ArrayInput
) -> MarginSample:
    """Evaluate a function on a labelled sample, in float64.

    Args:
        inputs: tokens, (n, T, d).
        cls: (d,) where it is the same in every sequence and known beforehand, else (n, d).
        labels: -1 or 1.

    Raises:
        UserError: if shapes do not fit, a label is not -1 or 1, or the readout is zero.

    Examples:
        >>> own = LinearAttention([1.0, 0.0], np.zeros((2, 2)))
        >>> sample = measure_margins(own, np.eye(2)[None], [1.0, 0.0], [1])
        >>> sample.margins.tolist(), round(float(sample.diameter[0]), 3)
        ([0.5], 1.414)
    """
    X, y = read_arrays("n T d, n", np.float64, inputs=inputs, labels=labels)
    x = read_array(cls, "cls").astype(np.float64)
    a = np.atleast_2d(read_array(attention.readouts, "readouts").astype(np.float64))
    M = read_array(attention.query_keys, "query_keys").astype(np.float64)
    M = M[None] if M.ndim == 2 else M
    n, T, d = X.shape
    if M.shape != (len(a), d, d) or a.shape[1] != d or x.shape not in ((d,), (n, d)):
        raise UserError(
            f"readouts {a.shape}, query_keys {M.shape} and cls {x.shape} do not fit tokens of "
            f"dimension {d}: give (H, d), (H, d, d) and (d,) or ({n}, d)"
        )
    for name, array in {"inputs": X, "cls": x, "readouts": a, "query_keys": M}.items():
        require_finite(array, name)
    if not np.all(np.abs(y) == 1):
        raise UserError(f"labels hold {y[np.abs(y) != 1][0]}: give -1 or 1")
    if not np.any(a):
        raise UserError("readouts are 0: the function has no margin")
    fixed = x.ndim == 1
    if fixed and np.any(x):
        M = np.einsum("hde,e,f->hdf", M, x, x) / (x @ x)
    x = np.broadcast_to(x, (n, d))
    low, high = X.min(axis=1), X.max(axis=1)
    return MarginSample(
        margins=y * _outputs(a, M, X, x),
        readouts=a,
        query_keys=M,
        diameter=_diameters(X),
        span=(high - low).max(axis=1),
        length=np.linalg.norm(X, axis=2).max(axis=1),
        entries=np.abs(X).max(axis=(1, 2)),
        centres=(low + high) / 2,
        cls=x,
        tokens=T,
        fixed_cls=fixed,
    )


def _outputs(a: np.ndarray, M: np.ndarray, X: np.ndarray, x: np.ndarray) -> np.ndarray:
    logits = np.einsum("ntd,hnd->hnt", X, np.einsum("hde,ne->hnd", M, x))
    p = np.exp(logits - logits.max(axis=2, keepdims=True))
    p /= p.sum(axis=2, keepdims=True)
    return np.einsum("hnt,hnt->n", p, np.einsum("ntd,hd->hnt", X, a))


def _diameters(X: np.ndarray) -> np.ndarray:
    """Largest distance of two tokens, a block of sequences at a time."""
    n, T, d = X.shape
    step = max(1, _BLOCK // (T * T * d))
    blocks = [
        np.linalg.norm(part[:, :, None] - part[:, None], axis=3).max(axis=(1, 2))
        for part in (X[at : at + step] for at in range(0, n, step))
    ]
    return np.concatenate(blocks)
