"""Every public function that takes arrays, with each of its arrays spoilt in each way.

A program of its own: it runs as a user's process does, without the shape checks of the tests and
in JAX's default precision. A call must end in finite numbers, in what the function documents, or
in a `UserError` of one line. Each call is named before it is made, so that whoever stops one that
hangs knows which it was; what went wrong is said at once on stderr, and by the last line as JSON.

    python tests/fuzz_public_calls.py                      all of it, a few minutes
    python tests/fuzz_public_calls.py ntk_gram lp_svm      these functions
    python tests/fuzz_public_calls.py --brief              types for first arguments only
"""

import json
import resource
import signal
import sys
import traceback
from collections.abc import Iterator
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from bound_calls import good_calls
from measured_calls import MORE_CALLS, RECORDS
from public_calls import CALLS, Call

from attlas.core.errors import UserError
from attlas.core.solution import Result, Solution

SECONDS = 20
"""Of the processor for one call; of the clock, on which other programs run too, six times that."""
BYTES = 12 * 2**30
GOOD = ("as it is", "list", "jax", "float32", "non-contiguous")


OVERFLOW = ("1e300", "1e-300")
NOT_FINITE = ("NaN", "infinity", "minus infinity, jax", "all NaN")
DOCUMENTED = {
    "bregman": OVERFLOW,
    "conditional_covariance of fresh samples": OVERFLOW,
    "decoder_margin": ("zeros", *OVERFLOW),
    "descend_in_ball": ("zeros", *OVERFLOW),
    "descent_loss": OVERFLOW,
    "direction_divergence": ("zeros",),
    "energy_distance": OVERFLOW,
    "attention_risk_hessian": OVERFLOW,
    "gu2024_limit_variance": ("jax",),
    "kernel_changes": OVERFLOW,
    "product_spectrum": OVERFLOW,
    "selection_geometry": ("integers", "int8", "zeros", "negative", *OVERFLOW),
    "sliced_wasserstein": OVERFLOW,
    "start_constants": ("zeros", *OVERFLOW),
    "svm_shortfall": ("zeros", *OVERFLOW),
    "entrywise_norm": NOT_FINITE,
    "homogeneous_margin": ("zeros", *OVERFLOW),
    "log_slope": OVERFLOW,
    "margins": OVERFLOW,
    "mirror_descent": OVERFLOW,
    "normalised_margin": OVERFLOW,
    "ntk_features": OVERFLOW,
    "path_exponents": ("all NaN", *OVERFLOW),
    "rademacher_complexity": OVERFLOW,
    "relevant_attention": OVERFLOW,
    "schur_complement": OVERFLOW,
    "student_interval": ("no axis more", *NOT_FINITE),
    "top_norm": (*NOT_FINITE, *OVERFLOW),
}
"""Where numbers may be NaN or infinite: the docstring says so, or squares leave the range."""

BRIEF = ("text", "NaN", "nothing", "list", "no axis more", "ragged", "empty list")


@cache
def formulas() -> dict[str, Call]:
    """Formulas of bounds: infinite outside of their range, but they refuse what is not a number."""
    return {name: Call(name, function, arrays) for name, function, arrays in good_calls()}


SLOW = (
    "descend_in_ball",
    "fit",
    "global_margin",
    "ntk_features",
    "rademacher_complexity",
    "stationary_points",
    "train_selection",
)
COMPILES = ("jax", "integers", "int8", "float16", "bfloat16", "float32", "zeros", *OVERFLOW)
"""What is accepted, in another type or with another outcome: a compilation for each."""


def _first(array: np.ndarray, value: Any) -> np.ndarray:
    found = array.astype(np.result_type(array.dtype, np.asarray(value).dtype))
    found[(0,) * array.ndim] = value
    return found


def _huge(array: np.ndarray, axis: int) -> np.ndarray:
    """A view of one entry: it takes no memory before somebody copies it."""
    shape = list(array.shape)
    shape[axis] = 10**11
    return np.broadcast_to(array[(0,) * array.ndim], shape)


def _gapped(array: np.ndarray) -> np.ndarray:
    """The same numbers, backwards in memory and with gaps."""
    wide = np.repeat(array, 2, axis=-1) if array.ndim else array
    return np.flip(np.flip(wide[..., ::2].copy(order="F"), 0).copy(order="F"), 0)


def _spoilt(array: np.ndarray) -> Iterator[tuple[str, Any]]:
    """The array, and what a caller may hand over in its place."""
    yield "as it is", array
    yield "list", array.tolist()
    yield "jax", jnp.asarray(array)
    yield "integers", np.rint(4 * array).astype(np.int64) if array.dtype.kind == "f" else array
    yield "int8", np.rint(4 * array).astype(np.int8) if array.dtype.kind == "f" else array
    yield "float16", array.astype(np.float16)
    yield "bfloat16", jnp.asarray(array, jnp.bfloat16)
    yield "float32", array.astype(np.float32)
    yield "complex", array.astype(complex)
    yield "complex, traced no more", jnp.asarray(array, jnp.complex64)
    yield "object", array.astype(object)
    yield "text", np.full(array.shape, "a")
    yield "a word", "word"
    yield "nothing", None
    yield "a set", {1.0, 2.0}
    yield "booleans", array > 0 if array.dtype != bool else array.astype(int)
    yield "NaN", _first(array, np.nan)
    yield "infinity", _first(array, np.inf)
    yield "minus infinity, jax", jnp.asarray(_first(array, -np.inf))
    yield "all NaN", np.full(array.shape, np.nan)
    yield "1e300", 1e300 * np.ones(array.shape)
    yield "1e-300", 1e-300 * np.ones(array.shape)
    yield "zeros", np.zeros(array.shape)
    yield "no axis more", array[None]
    yield "a scalar", 1.0
    yield "empty list", []
    yield "negative", -array if array.dtype.kind == "f" else array
    yield "a whole number beyond float64", 10**400
    if array.ndim:
        yield "an axis less", array[0]
        yield "non-contiguous", _gapped(array)
        yield "ragged", [[1.0], [1.0, 2.0]]
    for axis in range(array.ndim):
        yield f"axis {axis} of length zero", np.take(array, [], axis)
        yield f"axis {axis} longer", np.concatenate([array, array], axis)
        yield f"axis {axis} huge", _huge(array, axis)


def _finite(found: Any) -> bool:
    """Whether all numbers are, but where a code of `Result` says why they are not."""
    code = getattr(found, "result", None)
    if code is not None and np.any(np.isin(code, (Result.INFEASIBLE, Result.NOT_FINITE))):
        return True
    value = found.value if isinstance(found, Solution) else found
    return all(
        bool(np.all(np.isfinite(np.asarray(leaf, float))))
        for leaf in jax.tree.leaves(value)
        if not callable(leaf) and not isinstance(leaf, str | int)
    )


class _TooLong(BaseException):
    """Raised by the alarm; no function's own handler takes it for an error of its input."""


def _alarm(*_: Any) -> None:
    raise _TooLong


def _outcome(call: Call, arrays: dict[str, Any], good: bool) -> str:
    """Empty where the call ended as it should; a good one is not refused."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(6 * SECONDS)
    try:
        found = call.function(**arrays)
        return "" if _finite(found) else "not finite"
    except UserError as error:
        line = str(error)
        return f"refused: {line}" if good else "" if line and "\n" not in line else "several lines"
    except _TooLong:
        return "hang"
    except BaseException as error:  # noqa: BLE001 (whatever else is raised is the finding)
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {place.filename.rpartition('/')[2]}: {error}"[:200]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)


def _fails(call: Call, argument: str, fault: str, value: Any) -> str:
    """What is wrong with the outcome of one call."""
    whole = call.arrays[argument].dtype.kind != "f" and fault == "float32"
    good = fault in GOOD and not whole and argument not in call.fields
    found = _outcome(call, {**call.arrays, argument: value}, good)
    outside = call.name in formulas() and fault not in GOOD and fault not in ("NaN", "all NaN")
    outside = outside or (call.name in RECORDS and fault not in GOOD)
    known = found == "not finite" and (outside or fault in DOCUMENTED.get(call.name, ()))
    return "" if known else found


def _skipped(call: Call, argument: str, fault: str) -> bool:
    """What a brief run leaves out: types beyond the first argument, and what is slow."""
    if call.name in formulas():
        first = argument == next(iter(call.arrays))
        return fault not in (BRIEF if first else BRIEF[:1])
    slow = call.name in SLOW and (fault in COMPILES or fault.endswith("longer"))
    if argument == next(iter(call.arrays)):
        return slow
    return slow or fault in COMPILES or fault in ("as it is", "non-contiguous")


def main(names: list[str]) -> None:
    """Try all calls, or those named, and print what went wrong."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    signal.signal(signal.SIGALRM, _alarm)
    signal.signal(signal.SIGPROF, _alarm)
    brief, wrong, tried = "--brief" in names, [], 0
    chosen = [name for name in names if name != "--brief"]
    for call in (*CALLS, *MORE_CALLS, *formulas().values()):
        if chosen and call.name not in chosen:
            continue
        for argument, array in call.arrays.items():
            for fault, value in _spoilt(array):
                if brief and _skipped(call, argument, fault):
                    continue
                sys.stdout.write(f"{call.name}: {argument}, {fault}\n")
                sys.stdout.flush()
                tried += 1
                if found := _fails(call, argument, fault, value):
                    wrong.append([call.name, argument, fault, found])
                    sys.stderr.write(json.dumps(wrong[-1]) + "\n")
    sys.stdout.write(json.dumps({"tried": tried, "wrong": wrong}) + "\n")


if __name__ == "__main__":
    np.seterr(all="ignore")
    main(sys.argv[1:])
