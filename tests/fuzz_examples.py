"""Random calls of all public functions, from the calls of their examples, with spoilt arguments.

A program of its own, as `fuzz_public_calls`. A call must return or raise a `UserError` of one line.
It may change none of its arguments and no state of the process: JAX's precision, error states and
generator of NumPy, filters of warnings, handlers of signals, working folder, environment. From
finite arguments of another size it may return infinities, as a bound does, and no NaN.

    python tests/fuzz_examples.py --calls 10000 --seed 0     all functions
    python tests/fuzz_examples.py --only union --calls 200   functions whose name contains this
    python tests/fuzz_examples.py --records --calls 8000     records, data sets and reports instead
    python tests/fuzz_examples.py --models --calls 2000      models and their parts instead
    python tests/fuzz_examples.py --parts --calls 2000       parts of the verifier instead
"""

import argparse
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from example_calls import Example, copied, examples, is_part
from spoilt_objects import faults, is_model, is_record, is_value

from attlas.core.errors import UserError
from attlas.core.solution import Result

PACKAGES = (
    *("bounds", "data", "kernels", "losses", "measures", "models", "norms", "optim"),
    *("solvers", "training", "transformers"),
)
"""What users import functions from; `core` and `display` serve the others."""
OF_RECORDS = ("certificates", "claims", "experiments", "projects", "site", "testing", "verify")
"""What takes records, data sets, claims and reports."""
OF_MODELS = ("kernels", "measures", "models", "training", "transformers")
"""What takes models."""
TAKING_MODELS = tuple(
    f"attlas.{name}"
    for name in (
        *("kernels", "measures", "models", "training.ensemble", "training.risk_gradient"),
        *("transformers.attlas_model", "transformers.folding", "transformers.forward"),
    )
)
"""Functions that users hand a model; parts of readers and of training have models that were read.
"""
OF_THE_USER = {
    ("attlas.measures.curvature.extreme_eigenvalues.hessian_extremes", "parameters"),
    ("attlas.measures.curvature.spectrum_ends.spectrum_ends", "count"),
    ("attlas.measures.curvature.spectrum_ends.spectrum_ends", "size"),
    ("attlas.training.course.record_along", "start"),
}
"""Arguments that a function of the user reads, whose errors are the user's."""
UNDEFINED = {
    "attlas.measures.attention.direction.direction_divergence": "zero has no direction",
    "attlas.measures.attention.head_distances.head_distances": "negative weights are no attention",
    "attlas.measures.attention.map_statistics.map_statistics": "negative weights are no attention",
    "attlas.measures.statistics.rank_correlation.rank_correlation": "equal values have no rank",
    "attlas.training.sequence_classifiers.train_classifiers": "epochs after a member has stopped",
    "attlas.solvers.max_margin.max_margin": "a problem with a point has no proof that it has none",
    "attlas.optim.mirror_descent.bregman_sum": "the exponent is read where it is chosen",
    "attlas.bounds.comparison.compare.compare_bounds": "entropies of bounds that have none",
    "attlas.bounds.comparison.normalised.normalised": "entropies of bounds that have none",
    "attlas.bounds.comparison.unnormalised.unnormalised": "entropies of bounds that have none",
    "attlas.measures.attention.rank_residual.rank_residual": "rows whose squares are zero",
    "attlas.measures.statistics.onset.onset": "no scale from which a condition holds",
    "attlas.measures.statistics.bootstrap_mean.bootstrap_mean": "one unit has no interval",
    "attlas.measures.statistics.student_interval.student_interval": "one value has no interval",
    "attlas.measures.statistics.trend.decay_rate": "a power law has no zeros",
}
"""Where finite numbers may give NaN, as the docstring says."""
SECONDS = 20
"""Of the processor for one call."""


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


def spoilable(example: Example, is_spoilt: Callable[[Any], bool]) -> list[tuple[str, str]]:
    """The arguments that can be spoilt, each with each of its faults."""
    return [
        (name, fault)
        for name, value in example.arguments.items()
        if (example.name, name) not in OF_THE_USER and is_spoilt(value)
        for fault in faults(value)
    ]


def _contents(value: Any) -> Any:
    """What a call must leave as it is: the arrays of an argument and of its fields."""
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, xr.Dataset | xr.DataArray):
        return [_contents(value[name].values) for name in value.coords]
    if isinstance(value, Mapping):
        return {name: _contents(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_contents(entry) for entry in value]
    if is_dataclass(value):
        return [_contents(getattr(value, field.name, None)) for field in fields(value)]
    return None


def _not_a_number(result: Any) -> bool:
    code = getattr(result, "result", None)
    if code is not None and np.any(np.isin(code, (Result.INFEASIBLE, Result.NOT_FINITE))):
        return False  # it says why
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
    silent = fault in FINITE and example.name not in UNDEFINED
    before, contents = state(), None
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        arguments[argument] = faults(arguments[argument])[fault](arguments[argument])
        contents = _contents(arguments)
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
    changed = contents is not None and _contents(arguments) != contents
    return found or ("changes its arguments" if changed else "")


def main() -> None:
    """Make the calls and print what went wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--records", action="store_true")
    parser.add_argument("--models", action="store_true")
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--only", nargs="*", default=[""])
    parser.add_argument("--seconds", type=float, default=float("inf"))
    asked = parser.parse_args()
    signal.signal(signal.SIGPROF, _alarm)
    packages, is_spoilt = PACKAGES, is_value
    if asked.records:
        packages, is_spoilt = OF_RECORDS, is_record
    elif asked.models:
        packages, is_spoilt = OF_MODELS, is_model
    chosen = [
        each
        for each in examples(packages)
        if not asked.models or each.name.startswith(TAKING_MODELS)
        if is_part(each.name.rpartition(".")[0]) is asked.parts
        if any(part in each.name for part in asked.only)
    ]
    pairs = [(each, *pair) for each in chosen for pair in spoilable(each, is_spoilt)]
    order = np.random.default_rng(asked.seed).permutation(len(pairs))[: asked.calls]
    if asked.seconds == float("inf"):
        order = np.sort(order)  # a function's calls together compile the least
    wrong, tried, began = [], 0, time.process_time()
    # A path may be spoilt to the name of a file that does not exist yet.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for example, argument, fault in (pairs[i] for i in order):
            if time.process_time() - began > asked.seconds:
                break
            tried += 1
            if tried % 500 == 0:
                sys.stderr.write(f"{tried} of {len(order)}: {example.name}\n")
                # Each size and type compiles a program, which JAX would keep.
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
