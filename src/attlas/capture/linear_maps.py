"""Which columns of which linear map a captured tensor comes from: found by its numbers."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from torch import Tensor, nn

from attlas.capture.captured_run import Call
from attlas.transformers.canonical import Norm


class LinearMap(NamedTuple):
    """x W + b of a module, in float64.

    Attributes:
        W: inputs first.
        b: zeros where the module has none.
        x: what it was called with, (B, T, inputs).
        y: what it returned, (B, T, outputs).
    """

    W: Float[np.ndarray, "d m"]
    b: Float[np.ndarray, " m"]
    x: Float[np.ndarray, "B T d"]
    y: Float[np.ndarray, "B T m"]


def array_of(tensor: Tensor) -> np.ndarray:
    """The numbers of a tensor in float64; any shape, which is kept."""
    return tensor.detach().double().cpu().numpy()


def linear_map(call: Call) -> LinearMap:
    """The matrix of a module, whichever way it is stored, and the rows of a call."""
    weight = array_of(call.module.weight)  # pyright: ignore[reportArgumentType]
    W = weight.T if isinstance(call.module, nn.Linear) else weight
    bias = getattr(call.module, "bias", None)
    b = np.zeros(W.shape[1]) if bias is None else array_of(bias)
    return LinearMap(W, b, array_of(call.input), array_of(call.output))


class Match(NamedTuple):
    """Columns that others are, up to one factor and a shift each.

    Attributes:
        columns: place of each among the offered.
        factor: common to all.
        shift: of each column, 0 where there is none.
    """

    columns: Int[np.ndarray, " n"]
    factor: float
    shift: Float[np.ndarray, " n"]


def matching_columns(
    wanted: Float[np.ndarray, "N n"], offered: Float[np.ndarray, "N m"], tolerance: float
) -> Match | None:
    """For each wanted column the offered one that it is a multiple of, up to a constant.

    Returns:
        None where a column has no partner, or the factors differ.

    Examples:
        >>> offered = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0], [0.0, 0.0, 5.0]])
        >>> match = matching_columns(3 * offered[:, [2, 0]] + 1, offered, 1e-9)
        >>> match.columns.tolist(), round(match.factor, 6), match.shift.round(6).tolist()
        ([2, 0], 3.0, [1.0, 1.0])
    """
    means = wanted.mean(axis=0), offered.mean(axis=0)
    varying = wanted - means[0], offered - means[1]
    sizes = [np.linalg.norm(each, axis=0) for each in varying]
    largest = np.abs(wanted).max()
    if not np.all(sizes[0] > tolerance * largest):
        return None
    units = varying[0] / sizes[0], varying[1] / np.where(sizes[1] > 0, sizes[1], 1)
    columns = np.abs(units[0].T @ units[1]).argmax(axis=1)
    matching = varying[1][:, columns]
    squares = np.sum(matching**2, axis=0)
    if not np.all(squares > 0):
        return None
    factor = float(np.median(np.sum(varying[0] * matching, axis=0) / squares))
    if np.abs(varying[0] - factor * matching).max() > tolerance * largest:
        return None
    factor = 1.0 if abs(factor - 1) <= tolerance else factor
    shift = means[0] - factor * means[1][columns]
    return Match(columns, factor, np.where(np.abs(shift) > tolerance * largest, shift, 0.0))


def read_norm(call: Call, tolerance: float) -> Norm | None:
    """The norm that a module computes: LayerNorm or RMSNorm, as its own numbers say.

    Returns:
        None where it is neither, with the gain that it stores or with that plus 1, or was called
        with no row, as an expert that no token chooses is.
    """
    x, y = array_of(call.input), array_of(call.output)
    if x.size == 0:
        return None
    size = x.shape[-1]
    names = ("weight", "bias")
    weight, bias = (getattr(call.module, name, None) for name in names)
    b = np.zeros(size) if bias is None else array_of(bias)
    if (weight is not None and tuple(weight.shape) != (size,)) or b.shape != (size,):
        return None
    stored = np.ones(size) if weight is None else array_of(weight)
    settings = [getattr(call.module, name, None) for name in ("eps", "variance_epsilon")]
    eps = next((float(value) for value in settings if isinstance(value, float)), 1e-5)
    for centred in (True, False):
        rows = x - x.mean(axis=-1, keepdims=True) if centred else x
        rows = rows / np.sqrt(np.mean(rows**2, axis=-1, keepdims=True) + eps)
        for shift in (0.0, 1.0):
            if np.abs(rows * (stored + shift) + b - y).max() <= tolerance * np.abs(y).max():
                with jax.enable_x64(True):
                    return Norm(jnp.asarray(stored + shift), jnp.asarray(b), eps, centred)
    return None
