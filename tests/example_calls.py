"""The calls that the examples of public functions make: what `fuzz_examples` spoils.

Each public function of mathematics has an executed example. Its doctest is run once more with the
function replaced by one that keeps the arguments of its first call.
"""

import contextlib
import copy
import doctest
import importlib
import inspect
import io
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import jax

from attlas._jax.device_arrays import is_traced

SOURCE = Path(__file__).parents[1] / "src"


class Example(NamedTuple):
    """A public function with the arguments of one call that its documentation shows."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any]


class _Kept(BaseException):
    """Ends an example once its call is known."""


def modules(packages: Iterable[str]) -> Iterator[ModuleType]:
    """The public modules of packages of the instrument."""
    for package in packages:
        for path in sorted((SOURCE / "attlas" / package).rglob("*.py")):
            name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
            if "._" not in name:
                yield importlib.import_module(name)


@cache
def _imported_from_outside(package: str) -> frozenset[str]:
    """Modules of a package that other sources, or pages that show code, import."""
    folder = SOURCE / package.replace(".", "/")
    named: set[str] = set()
    for place in (SOURCE, *(SOURCE.parent / name for name in ("papers", "docs"))):
        for path in (*place.rglob("*.py"), *place.rglob("*.md")):
            if not path.is_relative_to(folder) and "log" not in path.parts:
                text = path.read_text("utf-8")
                named |= set(re.findall(rf"(?:from|import) ({package}\.[a-z_.]+)", text))
    return frozenset(named)


def is_part(module: str) -> bool:
    """Whether a module is a part of the verifier, which alone imports it.

    What it is given was read, drawn or traced by a module that others import.
    """
    package = "attlas.verify"
    return module.startswith(f"{package}.") and module not in _imported_from_outside(package)


def examples(packages: Iterable[str]) -> Iterator[Example]:
    """One call of each public function of packages whose example makes one."""
    for module in modules(packages):
        for name, function in vars(module).items():
            public = inspect.isfunction(function) and not name.startswith("_")
            if public and function.__module__ == module.__name__:
                call = _first_call(module, name, function)
                if call is not None:
                    yield Example(f"{module.__name__}.{name}", function, call)


def _first_call(module: ModuleType, name: str, function: Callable) -> dict[str, Any] | None:
    """The arguments of the first call in the example of a function, by name."""
    kept: list[dict[str, Any]] = []

    def recorder(*positional: Any, **named: Any) -> Any:
        bound = inspect.signature(function).bind(*positional, **named)
        kinds = inspect.signature(function).parameters
        plain = all(
            kinds[each].kind not in (inspect.Parameter.VAR_POSITIONAL,
                                     inspect.Parameter.POSITIONAL_ONLY)
            for each in bound.arguments
        )  # fmt: skip
        # What an example calls within `vmap` or `jit` has no arguments outside of it.
        if plain and not any(map(is_traced, jax.tree.leaves(dict(bound.arguments)))):
            arguments = dict(bound.arguments)
            for each, kind in kinds.items():
                if kind.kind is inspect.Parameter.VAR_KEYWORD:
                    arguments.update(arguments.pop(each, {}))
            kept.append(arguments)
        raise _Kept

    finder = doctest.DocTestFinder(recurse=False)
    for test in finder.find(function, name, module, globs={**vars(module), name: recorder}):
        with contextlib.suppress(_Kept), contextlib.redirect_stdout(io.StringIO()):
            _execute(test)
    return kept[0] if kept else None


def _execute(test: doctest.DocTest) -> None:
    for example in test.examples:
        # An example may show a refusal: then nothing was kept.
        with contextlib.suppress(Exception):
            exec(compile(example.source, "<example>", "single"), test.globs)


def copied(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments of their own, where they can be copied."""
    found = {}
    for name, value in arguments.items():
        try:
            found[name] = copy.deepcopy(value)
        except (TypeError, ValueError, NotImplementedError):
            found[name] = value
    return found
