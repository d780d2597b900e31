"""What names stand for: arrays that parameters name, modules imported at their first use."""

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from attlas.core.errors import UserError, extra_needed


class Parameters(NamedTuple):
    """The parameters of a function, by the role they have in a claim.

    Attributes:
        arrays: positional parameters, the arrays it reads.
        options: keyword-only parameters, which a control may change.
        takes_all: whether `**` collects the other arrays of the instance.
    """

    arrays: tuple[str, ...]
    options: tuple[str, ...]
    takes_all: bool


@lru_cache(maxsize=4096)
def parameters(function: Callable[..., Any]) -> Parameters:
    """The parameters of a function by their role.

    Examples:
        >>> parameters(lambda W, p, *, factor=1.0: W)
        Parameters(arrays=('W', 'p'), options=('factor',), takes_all=False)
    """
    kinds = inspect.Parameter
    listed = inspect.signature(function).parameters.values()
    return Parameters(
        tuple(
            p.name for p in listed if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
        ),
        tuple(p.name for p in listed if p.kind is kinds.KEYWORD_ONLY),
        any(p.kind is kinds.VAR_KEYWORD for p in listed),
    )


def call_by_name(
    function: Callable[..., Any],
    arrays: Mapping[str, Any],
    changes: Mapping[str, Any] | None = None,
) -> Any:
    """Call a function with the arrays that its parameters name.

    Args:
        function: its positional parameters name arrays; with `**` it also takes all others.
        changes: values of keyword-only parameters; unknown ones are ignored.

    Raises:
        UserError: if an array is missing, with the nearest names.

    Examples:
        >>> call_by_name(lambda x, *, factor=1: factor * x, {"x": 3, "y": 4}, {"factor": 2})
        6
    """
    named = parameters(function)
    missing = [name for name in named.arrays if name not in arrays]
    if missing:
        called = getattr(function, "__name__", "a function")
        raise UserError(f"'{called}' reads '{missing[0]}': {nearest(missing[0], arrays)}")
    wanted = arrays if named.takes_all else named.arrays
    taken = {name: arrays[name] for name in wanted if name not in named.options}
    options = {k: v for k, v in (changes or {}).items() if k in named.options}
    return function(**taken, **options)


def nearest(name: str, alternatives: Mapping[str, Any] | tuple[str, ...]) -> str:
    """The end of an error about an unknown name: the nearest of the alternatives, and all of them.

    Examples:
        >>> nearest("weigth", ("weight", "p"))
        'did you mean weight? There are p, weight'
    """
    import difflib  # for an error alone

    names = sorted(alternatives)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    listed = f"There are {', '.join(names)}" if names else "There are none"
    return f"did you mean {near[0]}? {listed}" if near else listed


def lazy_names(
    package: str, places: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package, by the module below it that defines each name.

    Examples:
        >>> find, names = lazy_names("attlas.core", {"UserError": "errors"})
        >>> find("UserError").__name__, "UserError" in names()
        ('UserError', True)
        >>> find("Other")
        Traceback (most recent call last):
            ...
        AttributeError: module 'attlas.core' has no attribute 'Other'
    """

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        # An extra bears the name of the folder that needs it.
        with extra_needed(f"{package}.{name}", places[name].partition(".")[0]):
            value = getattr(importlib.import_module(f"{package}.{places[name]}"), name)
        vars(sys.modules[package])[name] = value
        return value

    return find, lambda: sorted({*vars(sys.modules[package]), *places})
