"""The door for arrays: lists, NumPy, JAX and torch are read, or refused in one line.

Three ways in. `as_float64` is for what runs on the host in float64: solvers, certificates,
bounds. `read_array` keeps the type an array came in, for what follows the caller's precision.
`own_precision` is for what may stand inside `jit`, `vmap` and `grad`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.core.errors import UserError

_ACCEPTED = "give a list of numbers, or an array of NumPy, JAX or torch"


@runtime_checkable
class Convertible(Protocol):
    """Whatever NumPy can read: its own arrays, torch tensors, data frames."""

    def __array__(self, *args: Any, **settings: Any) -> Any:
        """The numbers as a NumPy array."""
        ...


ArrayInput = Convertible | jax.Array | Sequence[Any] | float | int
"""What the door takes; what is in it is checked there, for a type cannot say it."""


def read_array(value: ArrayInput, name: str) -> np.ndarray:
    """Real numbers as a NumPy array, of the type they came in; nothing is copied needlessly.

    Args:
        value: nested lists, NumPy or JAX of any real type, a torch tensor on any device, or
            whatever NumPy can read as an array.
        name: what a message calls it.

    Returns:
        An array; bfloat16 stays bfloat16.

    Raises:
        UserError: for ragged lists, text, objects, booleans, complex numbers, masked entries, and
            what `jit`, `vmap` or `grad` is tracing.

    Examples:
        >>> read_array([[1.0, 2.0]], "x").tolist(), read_array(jnp.ones(2, "bfloat16"), "x").dtype
        ([[1.0, 2.0]], dtype(bfloat16))
        >>> read_array([[1.0, 2.0], [3.0]], "x")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: x has rows of different lengths: give rows of one length
    """
    try:
        found = np.asarray(_on_host(value))
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
    if not _is_real(found.dtype):
        kind = type(value).__name__ if found.dtype == object else f"dtype {found.dtype}"
        raise UserError(f"{name} has {kind}: give real numbers")
    if np.ma.is_masked(value):
        raise UserError(f"{name} has masked entries: fill or drop them")
    return found


def as_float64(value: ArrayInput, name: str, axes: str) -> np.ndarray:
    """An input as float64, refused unless it is finite, real and of the right rank.

    Args:
        value: what `read_array` accepts.
        name: what the message calls it.
        axes: its axes, as in "n T d".

    Returns:
        A float64 NumPy array, whatever JAX's default precision.

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
    found = read_array(value, name)
    if found.ndim != len(axes.split()):
        raise UserError(f"{name} has shape {found.shape}: expected axes [{axes}]")
    found = found.astype(np.float64, copy=False)
    bad = int((~np.isfinite(found)).sum())
    if bad:
        raise UserError(f"{name} has {bad} entries that are NaN or infinite: clean the data")
    return found


def working_dtype(*dtypes: Any) -> np.dtype:
    """The widest of some types as a floating type: integers are exact, and count as float64.

    Args:
        *dtypes: real types.

    Returns:
        The one type that all share, or float32 for unlike ones below it.

    Examples:
        >>> working_dtype("float32", "int64").name, working_dtype("float16", "bfloat16").name
        ('float64', 'float32')
    """
    found = {
        dtype if jnp.issubdtype(dtype, jnp.floating) else np.dtype(np.float64)
        for dtype in map(jnp.dtype, dtypes)
    }
    if any(dtype.itemsize >= 8 for dtype in found):
        return np.dtype(np.float64)
    return found.pop() if len(found) == 1 else np.dtype(np.float32)


@contextmanager
def own_precision(**arrays: ArrayInput) -> Iterator[tuple[Array, ...]]:
    """Some arrays as JAX's, in the widest type among them even where JAX's default is narrower.

    Inside the block float64 input is computed with in float64, and the caller's setting holds
    again after it. Under JAX's default a traced array decides the type alone: the program that
    is being traced is one of float32.

    Args:
        **arrays: what `read_array` accepts, or traced arrays, by the names of a message.

    Yields:
        The arrays, in order, of one floating type.

    Raises:
        UserError: for an array that is not real or cannot be read.

    Examples:
        >>> with own_precision(W=[[1, 2]], target=np.ones((1, 2), np.float32)) as (W, target):
        ...     print(W.dtype, target.dtype)
        float64 float64
    """
    found = [
        value if isinstance(value, jax.Array) else read_array(value, name)
        for name, value in arrays.items()
    ]
    for name, value in zip(arrays, found, strict=True):
        if not _is_real(value.dtype):
            raise UserError(f"{name} has dtype {value.dtype}: give real numbers")
    dtype = working_dtype(*(value.dtype for value in found))
    if dtype != np.float64 or jnp.result_type(float) == np.float64:
        yield tuple(jnp.asarray(value, dtype) for value in found)
        return
    if traced := [value.dtype for value in found if _is_traced(value)]:
        dtype = jax.dtypes.canonicalize_dtype(working_dtype(*traced))
        yield tuple(jnp.asarray(value, dtype) for value in found)
        return
    with jax.enable_x64(True):
        yield tuple(jnp.asarray(value, dtype) for value in found)


@contextmanager
def precision_of(tree: Any) -> Iterator[None]:
    """JAX's precision as wide as the arrays of a pytree: float64 in the block if any of them is.

    Args:
        tree: arrays of NumPy or JAX; other leaves do not count.

    Examples:
        >>> with jax.enable_x64(False), precision_of({"W": np.ones(2)}):
        ...     print(jnp.asarray(np.ones(2)).dtype)
        float64
    """
    wide = any(getattr(leaf, "dtype", None) == np.float64 for leaf in jax.tree.leaves(tree))
    if not wide or jnp.result_type(float) == np.float64:
        yield
        return
    with jax.enable_x64(True):
        yield


def as_tree(value: Any, name: str) -> Any:
    """A pytree whose arrays JAX can differentiate: lists of numbers and tensors become arrays.

    Args:
        value: a pytree of arrays, one array, or nested lists of numbers, which are one array.
        name: what a message calls it.

    Returns:
        The pytree, with NumPy arrays where lists and tensors stood.

    Examples:
        >>> as_tree({"W": jnp.ones(2)}, "parameters")["W"].shape
        (2,)
        >>> as_tree([[1.0, 2.0], [3.0, 4.0]], "parameters").shape
        (2, 2)
    """
    leaves = jax.tree.leaves(value)
    if isinstance(value, list | tuple) and leaves and all(type(a) in (int, float) for a in leaves):
        return read_array(value, name)
    return jax.tree.map(lambda leaf: read_array(leaf, name) if _is_torch(leaf) else leaf, value)


def _is_real(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.floating) or jnp.issubdtype(dtype, jnp.integer))


def _is_traced(value: Array | np.ndarray) -> bool:
    try:
        np.asarray(value)
    except jax.errors.TracerArrayConversionError:
        return True
    return False


def _is_torch(value: Any) -> bool:
    """Whether it behaves like a torch tensor; torch itself is never imported."""
    return callable(getattr(value, "detach", None)) and callable(getattr(value, "cpu", None))


def _on_host(value: Any) -> Any:
    if _is_torch(value):
        found = value.detach().cpu()
        if str(found.dtype).endswith("bfloat16"):
            # torch hands NumPy no bfloat16; by way of float32 nothing is lost.
            return np.asarray(found.float()).astype(jnp.bfloat16)
        return found
    if isinstance(value, list | tuple) and value and _is_torch(value[0]):
        return [_on_host(each) for each in value]
    return value
