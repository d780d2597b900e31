r"""Whole Hessians and their spectra, of one small model or of a stack of them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float
from threadpoolctl import threadpool_limits

from attlas._jax.processes import available_cores
from attlas.core.arrays import precision_of
from attlas.core.errors import UserError
from attlas.core.memory import require_memory
from attlas.core.solution import Result, Solution
from attlas.core.trees import as_tree, require_real_tree

# Bytes of Hessians that one program call returns: enough to keep the eigensolver's threads
# busy, little enough that the next chunk is computed while they work.
_CHUNK_BYTES = 1_000_000


@eqx.filter_jit
def hessian_matrix(risk: Callable[..., Array], parameters: Any, *args: Any) -> Float[Array, "P P"]:
    r"""The Hessian of a scalar function, rows and columns in the order of `ravel_pytree`.

    Args:
        parameters: any pytree; its floating arrays are what is differentiated.

    Examples:
        >>> hessian_matrix(lambda x: x[0] ** 2 + 3 * x[0] * x[1], jnp.zeros(2)).tolist()
        [[2.0, 3.0], [3.0, 0.0]]
    """
    moved, fixed = eqx.partition(parameters, eqx.is_inexact_array)
    flat, unravel = ravel_pytree(moved)

    def value(vector: Array) -> Array:
        return risk(eqx.combine(unravel(vector), fixed), *args)

    product = jax.linearize(jax.grad(value), flat)[1]
    return jax.vmap(product)(jnp.eye(flat.size, dtype=flat.dtype))


def hessian_spectra(
    risk: Callable[..., Array],
    parameters: Any,
    *args: Any,
    in_axes: tuple[int | None, ...] | None = None,
    hessian: Callable[..., Array] | None = None,
) -> Solution[np.ndarray]:
    r"""All Hessian eigenvalues of a stack of models, in one program.

    The Hessians of a chunk of models are one vmapped program; while the next chunk is computed,
    LAPACK computes the eigenvalues of the previous one, one thread per core.

    Args:
        risk: scalar function risk(parameters, *args) of one model.
        parameters: pytree whose floating arrays have a leading axis of models; lists of numbers
            are one array.
        in_axes: 0 for each argument that has an axis of models, None for one shared by all;
            all are shared when left out.
        hessian: closed form hessian(parameters, *args) of the matrix, such as
            `attention_risk_hessian`; products with unit vectors when None.

    Returns:
        Eigenvalues in ascending order, [e, P]. Certificate: `rounding`, a bound of LAPACK's
        error, P eps ||H||_F; `trace` and `square`, what the sums of the eigenvalues and of
        their squares miss of trace H and ||H||_F^2, relative to sqrt(P) ||H||_F and ||H||_F^2;
        `asymmetry` max |H - H'|. One entry per model, code NOT_FINITE where H is not finite.

    A `UserError` names arrays that disagree on the number of models, are not real or are
    too many for whole Hessians.

    Examples:
        >>> risk = lambda x, a: a * jnp.sum(x**2)
        >>> found = hessian_spectra(risk, jnp.zeros((2, 3)), jnp.array([1.0, 2.0]), in_axes=(0,))
        >>> found.unwrap().tolist()
        [[2.0, 2.0, 2.0], [4.0, 4.0, 4.0]]
    """
    parameters = as_tree(parameters, "parameters")
    require_real_tree(parameters, "parameters")
    arguments = tuple(as_tree(arg, f"argument {k} of the risk") for k, arg in enumerate(args, 1))
    with precision_of(parameters):
        return _spectra(risk, parameters, arguments, in_axes, hessian)


def _spectra(
    risk: Callable[..., Array],
    parameters: Any,
    args: tuple[Any, ...],
    in_axes: tuple[int | None, ...] | None,
    hessian: Callable[..., Array] | None,
) -> Solution[np.ndarray]:
    moved, fixed = eqx.partition(parameters, eqx.is_inexact_array)
    leaves, futures = jax.tree.leaves(moved), []
    if any(leaf.dtype not in (np.float32, np.float64) for leaf in leaves):
        raise UserError("parameters are of half precision, unknown to LAPACK: give float32")
    counts = {leaf.shape[0] if leaf.ndim else 0 for leaf in leaves}
    if len(counts) != 1 or min(counts) < 1:
        raise UserError(f"leading axes {sorted(counts)}: every array needs one of all models")
    models = counts.pop()
    size = sum(leaf.size for leaf in leaves) // models
    if size < 1:
        raise UserError("parameters hold no number per model: give what the risk depends on")
    require_memory(2 * size**2 * leaves[0].dtype.itemsize, f"a Hessian of {size} parameters",
                   "use hessian_extremes", on_device=True)  # fmt: skip
    axes = (None,) * len(args) if in_axes is None else in_axes
    if len(axes) != len(args):
        raise UserError(f"in_axes = {in_axes} for {len(args)} arguments: give one each")
    width = min(models, max(1, _CHUNK_BYTES // (size**2 * leaves[0].dtype.itemsize)))
    cores = available_cores()
    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(cores) as threads:
        for first in range(0, models, width):
            # The last chunk repeats models to avoid compiling another shape.
            index = np.minimum(np.arange(first, first + width), models - 1)
            some = tuple(
                arg if axis is None else jnp.asarray(arg)[index]
                for arg, axis in zip(args, axes, strict=True)
            )
            chunk = jax.tree.map(lambda leaf, index=index: leaf[index], moved)
            matrices = np.asarray(_hessians(risk, hessian, chunk, fixed, some, axes))
            pieces = np.array_split(matrices[: models - first], min(cores, models - first))
            futures += [threads.submit(_eigenvalues, piece) for piece in pieces if len(piece)]
    return _collected([part.result() for part in futures])


@eqx.filter_jit
def _hessians(
    risk: Callable[..., Array],
    hessian: Callable[..., Array] | None,
    moved: Any,
    fixed: Any,
    args: tuple[Any, ...],
    axes: tuple[int | None, ...],
) -> Array:
    def of_model(parameters: Any, *arguments: Any) -> Array:
        model = eqx.combine(parameters, fixed)
        return hessian(model, *arguments) if hessian else hessian_matrix(risk, model, *arguments)

    return eqx.filter_vmap(of_model, in_axes=(0, *axes))(moved, *args)


def _eigenvalues(matrices: np.ndarray) -> dict[str, np.ndarray]:
    """Eigenvalues of some matrices, with their certificates."""
    size = matrices.shape[1]
    finite = np.all(np.isfinite(matrices), axis=(1, 2))
    # One matrix with a NaN would make LAPACK refuse all of them.
    safe = np.where(finite[:, None, None], matrices, 0)
    values = np.linalg.eigvalsh(safe)
    square = np.einsum("eij,eij->e", safe, safe)
    # A zero matrix has nothing to miss.
    unit = np.where(square > 0, square, 1)
    trace = np.abs(values.sum(1) - np.trace(safe, axis1=1, axis2=2))
    return {
        "values": np.where(finite[:, None], values, np.nan),
        "rounding": size * np.finfo(matrices.dtype).eps * np.sqrt(square),
        "trace": trace / np.sqrt(size * unit),
        "square": np.abs(np.sum(values**2, axis=1) - square) / unit,
        "asymmetry": np.max(np.abs(safe - np.swapaxes(safe, 1, 2)), axis=(1, 2)),
        "result": np.where(finite, Result.CONVERGED.value, Result.NOT_FINITE.value),
    }


def _collected(chunks: list[dict[str, np.ndarray]]) -> Solution[np.ndarray]:
    joined = {name: np.concatenate([part[name] for part in chunks]) for name in chunks[0]}
    values, result = joined.pop("values"), joined.pop("result")
    return Solution(values, result, joined)
