"""Validation of arrays: lists, NumPy, JAX and torch are converted, or refused in one line.

Every public function that takes arrays begins with one of two calls, which name the arrays and, as
in `einsum`, say which of their axes have one size:

    X, z = read_arrays("n T d, n d", np.float64, X=X, z=z)

is for functions on the host: solvers, certificates, bounds, statistics;

    with own_precision("n T d, n d", X=X, z=z) as (X, z):

is for functions that may be inside `jit`, `vmap` and `grad`. A traced array has shape and type
alone, which are checked while a program is traced and cost nothing when it runs; other arrays must
be finite as well. `read_indices` and `read_mask` are for arrays that select, `attlas.core.trees` is
for models and parameters. `read_array` and `as_float64` read one array.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array

from attlas._jax.device_arrays import is_traced, on_device
from attlas.core.axes import require_axes
from attlas.core.axis_sizes import Shape
from attlas.core.errors import UserError
from attlas.core.finite import require_finite
from attlas.core.memory import require_memory

_ACCEPTED = "give a list of numbers, or an array of NumPy, JAX or torch"


@runtime_checkable
class Convertible(Protocol):
    """Any object that NumPy can read: its arrays, torch tensors, data frames."""

    def __array__(self, *args: Any, **settings: Any) -> Any:
        """The numbers as a NumPy array."""
        ...


ArrayInput = Convertible | jax.Array | Sequence[Any] | float | int
"""Arrays and numbers that functions accept; `read_array` checks their content."""


def read_array(value: ArrayInput, name: str) -> np.ndarray:
    """Real numbers of any shape as a NumPy array of their type; nothing is copied needlessly.

    The array is a view of the caller's: `on_device` says what JAX does with a shared one. Accepts
    nested lists, NumPy or JAX of any real type, a torch tensor on any device, and other objects
    that NumPy can read as an array; bfloat16 stays bfloat16.

    Raises:
        UserError: for ragged lists, text, objects, booleans, complex numbers, masked entries,
            an array that `jit`, `vmap` or `grad` is tracing, and a view that no memory could hold.

    Examples:
        >>> read_array([[1.0, 2.0]], "x").tolist(), read_array(jnp.ones(2, "bfloat16"), "x").dtype
        ([[1.0, 2.0]], dtype(bfloat16))
        >>> read_array([[1.0, 2.0], [3.0]], "x")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: x has rows of different lengths: give rows of one length
    """
    array = _as_numpy(value, name)
    if not is_real(array.dtype):
        kind = type(value).__name__ if array.dtype == object else f"dtype {array.dtype}"
        raise UserError(f"{name} has {kind}: give real numbers")
    if np.ma.is_masked(value):
        raise UserError(f"{name} has masked entries: fill or drop them")
    return array


def _as_numpy(value: Any, name: str) -> np.ndarray:
    try:
        array = np.asarray(_on_host(value)).view()
    except jax.errors.TracerArrayConversionError:
        raise UserError(
            f"{name} is traced by jit, vmap or grad, but is needed as numbers: "
            "call this function outside of them"
        ) from None
    except (TypeError, ValueError, RuntimeError) as error:
        if "inhomogeneous" in str(error):
            raise UserError(
                f"{name} has rows of different lengths: give rows of one length"
            ) from None
        reason = str(error).partition("\n")[0]
        raise UserError(f"{name} cannot be read as an array ({reason}): {_ACCEPTED}") from None
    # A view that repeats its entries takes no memory until it is computed with.
    require_memory(8 * array.size, f"{name} of shape {array.shape}", "give a part of it")
    return array


def read_arrays(
    axes: str, dtype: DTypeLike | None = None, /, **arrays: ArrayInput
) -> tuple[np.ndarray, ...]:
    """Finite real arrays of NumPy whose axes fit each other; none is empty.

    Args:
        axes: the axes of each array, in the order of the keywords: "n T d, n d", see
            `require_axes`.
        dtype: the type to convert to; each array keeps its type when None.

    Raises:
        UserError: naming the array, what is wrong with it and what to do.

    Examples:
        >>> X, y = read_arrays("n d, n", np.float64, X=[[1, 2]], y=np.ones(1, "float32"))
        >>> X.dtype, y.dtype
        (dtype('float64'), dtype('float64'))
        >>> _ = read_arrays("n d, n", X=[[1, 2]], y=[1.0, 2.0])
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: y has shape (2,): give [n] with n = 1, as X has
    """
    converted = {name: read_array(value, name) for name, value in arrays.items()}
    require_axes(axes, {name: array.shape for name, array in converted.items()})
    for name, array in converted.items():
        require_finite(array, name)
    if dtype is None:
        return tuple(converted.values())
    return tuple(array.astype(dtype, copy=False) for array in converted.values())


def read_indices(value: ArrayInput, name: str, shape: Shape, below: int) -> np.ndarray | Array:
    """Integers (any shape) that select among `below` entries, counted from 0; traced or not.

    Raises:
        UserError: for another shape, a type that is not integer, or a number out of range.

    Examples:
        >>> read_indices([0, 2], "tokens", (2,), 3).tolist()
        [0, 2]
        >>> read_indices([0, 3], "tokens", (2,), 3)
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: tokens holds 3, outside [0, 3): count from 0
    """
    indices = (
        value if isinstance(value, jax.Array) and is_traced(value) else read_array(value, name)
    )
    if indices.shape != shape:
        raise UserError(f"{name} has shape {indices.shape}: give {shape}")
    if not jnp.issubdtype(indices.dtype, jnp.integer):
        raise UserError(f"{name} has dtype {indices.dtype}: give integers")
    if isinstance(indices, np.ndarray) and np.any(outside := (indices < 0) | (indices >= below)):
        wrong = indices[outside][0]
        raise UserError(f"{name} holds {wrong}, outside [0, {below}): count from 0")
    return indices


def read_mask(value: ArrayInput, name: str, shape: Shape | None = None) -> np.ndarray | Array:
    """Booleans that select entries, traced or not, of any shape when `shape` is None.

    Raises:
        UserError: for another shape or another type.

    Examples:
        >>> read_mask([[True, False]], "relevant", (1, 2)).tolist()
        [[True, False]]
    """
    mask = value if isinstance(value, jax.Array) else _as_numpy(value, name)
    if mask.dtype != bool:
        raise UserError(f"{name} has dtype {mask.dtype}: give booleans")
    if shape is not None and mask.shape != shape:
        raise UserError(f"{name} has shape {mask.shape}: give {shape}")
    return mask


def as_float64(value: ArrayInput, name: str, axes: str) -> np.ndarray:
    """An input as a float64 NumPy array, refused unless it is finite, real and has the given axes.

    Args:
        axes: names of the axes, such as "n T d".

    Raises:
        UserError: naming the array.

    Examples:
        >>> as_float64([1, 2], "z", "d").tolist()
        [1.0, 2.0]
        >>> as_float64(np.array([np.nan]), "z", "d")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: z has 1 entries that are NaN or infinite: clean the data
    """
    array = read_array(value, name)
    if array.ndim != len(axes.split()):
        raise UserError(f"{name} has shape {array.shape}: expected axes [{axes}]")
    require_finite(array, name)
    return array.astype(np.float64, copy=False)


@cache
def working_dtype(*dtypes: Any) -> np.dtype:
    """The widest of some types as a floating type: integers are exact, and count as float64.

    Returns:
        The common type, or float32 for different ones below it.

    Examples:
        >>> working_dtype("float32", "int64").name, working_dtype("float16", "bfloat16").name
        ('float64', 'float32')
    """
    floating = {
        dtype if jnp.issubdtype(dtype, jnp.floating) else np.dtype(np.float64)
        for dtype in map(jnp.dtype, dtypes)
    }
    if any(dtype.itemsize >= 8 for dtype in floating):
        return np.dtype(np.float64)
    return floating.pop() if len(floating) == 1 else np.dtype(np.float32)


@contextmanager
def own_precision(axes: str | None = None, /, **arrays: ArrayInput) -> Iterator[tuple[Array, ...]]:
    """JAX arrays of any shape, in their widest floating type even where its default is narrower.

    Inside the block float64 input is computed in float64, and the caller's setting holds again
    after it. Under JAX's default a traced array decides the type alone: the traced program is in
    float32.

    Args:
        axes: the axes of each array, see `require_axes`; then arrays that are not traced must be
            finite, too. Only the type is checked when None.

    Raises:
        UserError: naming the array, what is wrong with it and what to do.

    Examples:
        >>> with own_precision("n d, n d", W=[[1, 2]], target=np.ones((1, 2), "f4")) as (W, target):
        ...     print(W.dtype, target.dtype)
        float64 float64
    """
    inputs = {
        name: value if isinstance(value, jax.Array) else read_array(value, name)
        for name, value in arrays.items()
    }
    for name, value in inputs.items():
        if not is_real(value.dtype):
            raise UserError(f"{name} has dtype {value.dtype}: give real numbers")
    if axes is not None:
        require_axes(axes, {name: value.shape for name, value in inputs.items()})
        for name, value in inputs.items():
            if not is_traced(value):
                require_finite(value, name)
    dtype = working_dtype(*(value.dtype for value in inputs.values()))
    if dtype != np.float64 or _default_is_float64():
        yield _as_jax(inputs.values(), dtype)
        return
    if traced := [value.dtype for value in inputs.values() if is_traced(value)]:
        dtype = jax.dtypes.canonicalize_dtype(working_dtype(*traced))
        yield _as_jax(inputs.values(), dtype)
        return
    with jax.enable_x64(True):
        yield _as_jax(inputs.values(), dtype)


def _as_jax(arrays: Iterable[Array | np.ndarray], dtype: np.dtype) -> tuple[Array, ...]:
    return tuple(
        on_device(array).astype(dtype)
        if isinstance(array, jax.Array)
        else on_device(np.asarray(array, dtype))
        for array in arrays
    )


@contextmanager
def precision_of(tree: Any) -> Iterator[None]:
    """JAX's precision as wide as the arrays of a pytree: float64 in the block if any of them is.

    Examples:
        >>> with jax.enable_x64(False), precision_of({"W": np.ones(2)}):
        ...     print(jnp.asarray(np.ones(2)).dtype)
        float64
    """
    wide = any(getattr(leaf, "dtype", None) == np.float64 for leaf in jax.tree.leaves(tree))
    if not wide or _default_is_float64():
        yield
        return
    with jax.enable_x64(True):
        yield


def _default_is_float64() -> bool:
    return jax.dtypes.canonicalize_dtype(float) == np.float64


@cache
def is_real(dtype: Any) -> bool:
    """Whether a type of NumPy or JAX is one of real numbers; booleans are not.

    Examples:
        >>> is_real(np.float32), is_real(jnp.int8), is_real(bool), is_real(complex)
        (True, True, False, False)
    """
    return bool(jnp.issubdtype(dtype, jnp.floating) or jnp.issubdtype(dtype, jnp.integer))


def is_torch(value: Any) -> bool:
    """Whether it behaves like a torch tensor; torch itself is never imported.

    Examples:
        >>> is_torch(np.zeros(2)), is_torch([1.0])
        (False, False)
    """
    return callable(getattr(value, "detach", None)) and callable(getattr(value, "cpu", None))


def _on_host(value: Any) -> Any:
    if is_torch(value):
        tensor = value.detach().cpu()
        if str(tensor.dtype).endswith("bfloat16"):
            # torch hands NumPy no bfloat16; by way of float32 nothing is lost.
            return np.asarray(tensor.float()).astype(jnp.bfloat16)
        return tensor
    if isinstance(value, list | tuple) and value and is_torch(value[0]):
        return [_on_host(item) for item in value]
    return value
