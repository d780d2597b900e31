"""A good call of every closed form of a bound, found from its annotations."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from enum import Enum
from functools import wraps
from typing import Any, Literal, get_args, get_origin

import jax
import numpy as np
from jaxtyping import Float

import attlas.bounds
from attlas.bounds.comparison.bound_table import Inputs
from attlas.models.networks.softmax_network import SoftmaxNetwork
from liu2021analyzing.library.bounds.liu2021_union_bound import Conditions

KEY = jax.random.key(0)
VALUES = (2.0, 0.5)
"""Of all numbers of a call: one of them is in the range of nearly every formula."""
GIVEN: dict[str, Any] = {
    "ball": "1,1",
    "covers": ["1,1"],
    "lengths": [4],
    "alpha": np.array([0.25, 0.5]),
    "conditions": Conditions(1.0),
    "delta": 0.1,
    "frequencies": np.array([0.5]),
    "key": KEY,
    "logit_bounds": [0.5],
    "log_cover": lambda distance: 1 / distance**2,
    "holds": lambda value: value > 1,
    "informative": lambda m: m > 10,
    "p": 4.0,
    "s0": 2.0,
    "word": 1.0,
}
"""By the name of an argument, what its annotation does not say."""


ALSO = {
    "gu2024_radius": {"m": 100.0},
    "gu2024_kernel_regime": {"start": 0.01, "time": 0.01},
    "bernoulli_kl": {"q": 0.25, "p": 0.5},
    "examples_to_decide": {"losses": np.array([1.0, 0, 1]), "others": np.array([0.0, 0, 1])},
    "binomial_upper_limit": {"errors": 3, "n": 50},
    "calibration_upper_limit": {
        "probabilities": np.array([0.25, 0.75, 0.5]),
        "events": np.array([0.0, 1.0, 1.0]),
    },
    # Compiled programs count, in which no NaN can be refused: its lengths are a list, not spoilt.
    "counting": {
        "norms": {name: np.ones(2) for name in ("rows", "columns", "rank", "spectral")},
        "l2": [1.0, 1.0],
    },
    "binomial_lower_limit": {"errors": 3, "n": 50},
    "held_out_bound": {"errors": 3, "n": 50},
    "compression_bound": {"loss": 0.25, "n": 100},
    "least_squares_risk": {"n": 50},
    "regression_risk_floor": {"n": 50},
    "smoothed_losses": {"p": np.array([0.25, 0.5]), "vocabulary": 4, "alpha": 0.5},
}
"""What a call with the sharp constants cannot do without, though it has a default; counts."""


def formulas() -> Iterator[Callable[..., Any]]:
    """All functions behind the door `closed_form`, which turn numbers into numbers.

    Codes of bytes and tables of bounds from the norms of inputs are called with other public ones.
    """
    for module in pkgutil.walk_packages(attlas.bounds.__path__, "attlas.bounds."):
        for name, found in vars(importlib.import_module(module.name)).items():
            here = getattr(found, "__module__", "") == module.name and name[0] != "_"
            if here and hasattr(found, "__wrapped__") and not _types(found) & {bytes, Inputs}:
                yield found


def _types(function: Callable[..., Any]) -> set[Any]:
    """What a function takes and returns."""
    return {each for each in function.__annotations__.values() if isinstance(each, type)}


def _value(annotation: Any, number: float) -> Any:
    """Something of that type."""
    some = [each for each in get_args(annotation) if each is not type(None)]
    if get_origin(annotation) is Literal:
        return some[0]
    if hasattr(annotation, "_fields"):
        return annotation(*(_value(each, number) for each in annotation.__annotations__.values()))
    if get_origin(annotation) is tuple:
        return tuple(_value(each, number) for each in some)
    if get_origin(annotation) is list:
        return [_value(some[0], number)]
    if inspect.isclass(annotation) and issubclass(annotation, Enum):
        return next(iter(annotation))
    if annotation is str:
        return "value"
    axes = [each.dim_str for each in (annotation, *some) if hasattr(each, "dim_str")]
    count = len(max(axes, key=len).split()) if axes else 0
    return np.full((2,) * count, number) * (1 + np.arange(2**count).reshape((2,) * count) / 8)


def good_calls() -> Iterator[tuple[str, Callable[..., Any], dict[str, np.ndarray]]]:
    """Name, function and arrays of a call with finite results."""
    for formula in formulas():
        wanted = {
            name: parameter.annotation
            for name, parameter in inspect.signature(formula).parameters.items()
            if parameter.default is inspect.Parameter.empty or name == "conditions"
        }
        network = wanted.pop("network", None) is not None
        called = _of_a_network(formula) if network else formula
        more = {"W": Float[np.ndarray, "d m"], "a": Float[np.ndarray, "k m"]} if network else {}
        yield formula.__name__, *_first_good(called, wanted | more)


def _of_a_network(formula: Callable[..., Any]) -> Callable[..., Any]:
    """The formula as a function of the arrays of its network."""

    @wraps(formula)
    def called(W: Any, a: Any, **others: Any) -> Any:
        return formula(SoftmaxNetwork(W, a), **others)

    return called


def _first_good(formula: Callable[..., Any], wanted: dict[str, Any]) -> tuple[Any, Any]:
    refused = []
    for number in VALUES:
        values = {name: GIVEN.get(name, _value(kind, number)) for name, kind in wanted.items()}
        values |= ALSO.get(formula.__name__, {})
        arrays = {
            name: np.asarray(value)
            for name, value in values.items()
            if isinstance(value, np.ndarray | float)
        }
        fixed = {name: value for name, value in values.items() if name not in arrays}
        try:
            if _finite(formula(**fixed, **arrays)):
                return lambda formula=formula, fixed=fixed, **a: formula(**fixed, **a), arrays
        except ValueError as error:
            refused.append(str(error))
    raise AssertionError(f"{formula.__name__} has no good call here: {refused}")


def _finite(found: Any) -> bool:
    leaves = [leaf for leaf in jax.tree.leaves(found) if not isinstance(leaf, str | int)]
    return all(bool(np.all(np.isfinite(np.asarray(leaf, float)))) for leaf in leaves)
