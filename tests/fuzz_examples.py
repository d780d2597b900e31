"""Random calls of all public functions, from the calls of their examples, with spoilt arguments.

A program of its own, as `fuzz_public_calls`. A call must return or raise a `UserError` of one line.
It may change none of its arguments and no state of the process: JAX's precision, error states and
generator of NumPy, filters of warnings, handlers of signals, working folder, environment. From
finite arguments of another size it may return infinities, as a bound does, and no NaN.

    python tests/fuzz_examples.py --calls 10000 --seed 0     all functions
    python tests/fuzz_examples.py --only union --calls 200   functions whose name contains this
"""

import argparse
import json
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from example_calls import Example, copied, examples

from attlas.core.errors import UserError

PARTS = {
    "attlas.kernels.head_features.write_features": "writes into the arrays that it is given",
    "attlas.kernels.gram_tiles.tile_bytes": "of a plan, which has at least one head",
    "attlas.measures.curvature.krylov_space.ritz_pairs": "hessian_extremes reads its arguments",
    "attlas.measures.curvature.spectrum_ends.spectrum_ends": "products fit one size alone",
    "attlas.bounds.comparison.network_class.counting": "compare_bounds reads its arguments",
    "attlas.bounds.generalisation.binomial_tail.log_binomial_tail": "takes decimals that were read",
    "attlas.bounds.comparison.network_cover.by_cover": "a bound's module names its constants",
    "attlas.bounds.comparison.normalised.normalised": "compare_bounds reads its arguments",
    "attlas.data.sources.scan": "imports the packages that are named in the sources",
    "attlas.bounds.comparison.unnormalised.unnormalised": "compare_bounds reads its arguments",
    "attlas.kernels.head_features.head_block": "ntk_gram reads the shapes",
    "attlas.optim.arguments.in_dtype_of": "mirror_step and its like read the exponent",
    "attlas.bounds.generalisation.outward_rounding.first_float": "limits guess a float",
    "attlas.data.labelled_tokens.require_labelled_tokens": "reads arrays of JAX or NumPy alone",
}
"""Parts of public functions, which read the arguments for them."""
PACKAGES = ("bounds", "data", "kernels", "losses", "measures", "models", "norms", "optim")
"""Solvers and training consist of parts: `fuzz_public_calls` has their public functions."""
OF_THE_USER = {("attlas.measures.curvature.extreme_eigenvalues.hessian_extremes", "parameters")}
"""Arguments that a function of the user reads, whose errors are the user's."""
UNDEFINED = {
    "attlas.measures.attention.direction.direction_divergence": "zero has no direction",
    "attlas.measures.attention.head_distances.head_distances": "negative weights are no attention",
    "attlas.measures.attention.map_statistics.map_statistics": "negative weights are no attention",
    "attlas.measures.statistics.rank_correlation.rank_correlation": "equal values have no rank",
    "attlas.optim.mirror_descent.bregman_sum": "the exponent is read where it is chosen",
    "attlas.bounds.comparison.compare.compare_bounds": "entropies of bounds that have none",
    "attlas.measures.attention.rank_residual.rank_residual": "rows whose squares are zero",
    "attlas.measures.statistics.onset.onset": "no scale from which a condition holds",
    "attlas.measures.statistics.bootstrap_mean.bootstrap_mean": "one unit has no interval",
    "attlas.measures.statistics.student_interval.student_interval": "one value has no interval",
    "attlas.measures.statistics.trend.decay_rate": "a power law has no zeros",
}
"""Where finite numbers may give NaN, as the docstring says."""
SECONDS = 20
"""Of the processor for one call."""


def _first(array: np.ndarray, value: float) -> np.ndarray:
    other = array.astype(np.result_type(array.dtype, np.asarray(value).dtype))
    if other.size:
        other[(0,) * other.ndim] = value
    return other


ARRAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "NaN": lambda a: _first(a, np.nan),
    "infinity": lambda a: _first(a, np.inf),
    "minus infinity": lambda a: _first(a, -np.inf),
    "all NaN": lambda a: np.full(a.shape, np.nan),
    "1e300": lambda a: np.full(a.shape, 1e300),
    "1e-300": lambda a: np.full(a.shape, 1e-300),
    "zeros": lambda a: np.zeros(a.shape),
    "negative": lambda a: -np.asarray(a, float),
    "thousandfold": lambda a: 1e3 * np.asarray(a, float),
    "a millionth": lambda a: 1e-6 * np.asarray(a, float),
    "float32": lambda a: a.astype(np.float32),
    "float16": lambda a: a.astype(np.float16),
    "bfloat16": lambda a: jnp.asarray(a, jnp.bfloat16),
    "int8": lambda a: np.asarray(a, float).round().clip(-100, 100).astype(np.int8),
    "complex": lambda a: a.astype(complex),
    "booleans": lambda a: a > 0,
    "text": lambda a: np.full(a.shape, "a"),
    "object": lambda a: a.astype(object),
    "list": lambda a: a.tolist(),
    "an axis more": lambda a: a[None],
    "an axis less": lambda a: a[0] if a.ndim and len(a) else a,
    "twice as long": lambda a: np.concatenate([a, a]) if a.ndim else a,
    "empty": lambda a: a[:0] if a.ndim else np.zeros(0),
    "empty list": lambda _: [],
    "nothing": lambda _: None,
    "a word": lambda _: "word",
}
NUMBERS: dict[str, Callable[[float], Any]] = {
    "NaN": lambda _: float("nan"),
    "infinity": lambda _: float("inf"),
    "minus infinity": lambda _: -float("inf"),
    "1e300": lambda _: 1e300,
    "1e-300": lambda _: 1e-300,
}
"""For numbers that need not be whole."""
TEXTS: dict[str, Callable[[str], Any]] = {
    "another word": lambda _: "word",
    "no word": lambda _: "",
    "nothing": lambda _: None,
    "a number": lambda _: 1.0,
}
WHOLE: dict[str, Callable[[float], Any]] = {
    "zero": lambda x: type(x)(0),
    "one": lambda x: type(x)(1),
    "negative": lambda x: -x,
    "twice": lambda x: 2 * x,
    "a whole number beyond float64": lambda _: 10**400,
}
"""For all numbers."""
FINITE = (
    *("1e-300", "zeros", "negative", "thousandfold", "a millionth", "float32", "int8"),
    *("zero", "one", "twice", "list", "twice as long", "an axis more", "an axis less"),
)
"""Faults that leave finite numbers whose squares stay in the range."""


def state() -> dict[str, Any]:
    """What a call may not change."""
    return {
        "precision": jax.config.jax_enable_x64,
        "error states": np.geterr(),
        "generator": np.random.get_state()[1].tobytes(),  # noqa: NPY002 (others may use it)
        "filters of warnings": list(warnings.filters),
        "handlers of signals": [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)],
        "working folder": str(Path.cwd()),
        "environment": dict(os.environ),
    }


def _is_array(value: Any) -> bool:
    if isinstance(value, np.ndarray | jax.Array):
        return jnp.issubdtype(value.dtype, jnp.number)
    return type(value) in (list, tuple) and _is_numbers(value)


def _is_numbers(value: Any) -> bool:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        return False
    return array.dtype.kind in "fiu" and array.size > 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def spoilable(example: Example) -> list[tuple[str, str]]:
    """The arguments that can be spoilt, each with each of its faults."""
    pairs = []
    for name, value in example.arguments.items():
        if (example.name, name) in OF_THE_USER:
            continue
        if _is_array(value):
            pairs += [(name, fault) for fault in ARRAYS]
        elif _is_number(value):
            whole = isinstance(value, int)
            pairs += [(name, fault) for fault in (WHOLE if whole else {**WHOLE, **NUMBERS})]
        elif isinstance(value, str):
            pairs += [(name, fault) for fault in TEXTS]
    return pairs


def _bytes(value: Any) -> Any:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(value)
            if isinstance(leaf, np.ndarray)]  # fmt: skip


def _not_a_number(result: Any) -> bool:
    for leaf in jax.tree.leaves(getattr(result, "value", result)):
        floating = isinstance(leaf, float | np.ndarray | jax.Array) and jnp.issubdtype(
            jnp.result_type(leaf), jnp.floating
        )
        if floating and bool(np.isnan(np.asarray(leaf, float)).any()):
            return True
    return False


class _TooLong(BaseException):
    """Raised by the alarm."""


def _alarm(*_: Any) -> None:
    raise _TooLong


def outcome(example: Example, argument: str, fault: str) -> str:
    """Empty where the call ended as it should."""
    arguments = copied(example.arguments)
    value = arguments[argument]
    if isinstance(value, str):
        arguments[argument] = TEXTS[fault](value)
    elif _is_number(value):
        arguments[argument] = {**WHOLE, **NUMBERS}[fault](value)
    else:
        arguments[argument] = ARRAYS[fault](np.asarray(value))
    silent = fault in FINITE and example.name not in UNDEFINED
    before, contents = state(), _bytes(arguments)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        result = example.function(**arguments)
        found = "NaN from finite numbers" if silent and _not_a_number(result) else ""
    except UserError as error:
        found = "" if str(error) and "\n" not in str(error) else "several lines"
    except _TooLong:
        found = "hangs"
    except BaseException as error:  # noqa: BLE001 (whatever else is raised is the finding)
        place = traceback.extract_tb(error.__traceback__)[-1]
        found = f"{type(error).__name__} in {place.filename.rpartition('/')[2]}: {error}"[:200]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    changed = [name for name, old in before.items() if state()[name] != old]
    if changed:
        return f"changes {', '.join(changed)}"
    return found or ("changes its arguments" if _bytes(arguments) != contents else "")


def main() -> None:
    """Make the calls and print what went wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[""])
    parser.add_argument("--seconds", type=float, default=float("inf"))
    asked = parser.parse_args()
    signal.signal(signal.SIGPROF, _alarm)
    chosen = [
        each
        for each in examples(PACKAGES)
        if each.name not in PARTS and any(part in each.name for part in asked.only)
    ]
    pairs = [(each, *pair) for each in chosen for pair in spoilable(each)]
    order = np.random.default_rng(asked.seed).permutation(len(pairs))[: asked.calls]
    wrong, tried, began = [], 0, time.process_time()
    for example, argument, fault in (pairs[i] for i in order):
        if time.process_time() - began > asked.seconds:
            break
        tried += 1
        if tried % 500 == 0:  # each size and type compiles a program, which JAX would keep
            jax.clear_caches()
        if found := outcome(example, argument, fault):
            wrong.append([example.name, argument, fault, found])
            sys.stderr.write(json.dumps(wrong[-1]) + "\n")
    spoilt = {example.name for example, *_ in pairs}
    counts = {"functions": len(chosen), "spoilt": len(spoilt), "pairs": len(pairs)}
    result = {**counts, "tried": tried, "wrong": wrong}
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
