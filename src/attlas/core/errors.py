"""The one exception that is written for the user, and its line for a dependency that is missing.

Bad input raises a `UserError` whose text says what was wrong, where, and what to do. The command
line prints it as one line and exits with code 2. Where an optional dependency is missing, the line
names the extra of attlas that has it; where an argument does not fit its annotation, its field.
"""

import contextlib
import importlib.util
import re
from collections.abc import Callable, Iterator
from functools import cache, partial, wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
_UNUSABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class UserError(ValueError):
    """Input that cannot be used, explained in one line.

    The message names the value, the place and the fix, in that order.

    Examples:
        >>> raise UserError("p = 1 is not above 1: choose 1 < p < inf")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: p = 1 is not above 1: choose 1 < p < inf
    """


def in_short(error: Exception) -> str:
    """The class of an exception and the first line of its message.

    Examples:
        >>> in_short(KeyError("x"))
        "KeyError: 'x'"
    """
    said = str(error).strip()
    return f"{type(error).__name__}: {said.splitlines()[0] if said else ''}"


def refuse_misfits(function: Callable[P, R], *, contents: bool = False) -> Callable[P, R]:
    """Let a function answer an argument of another type than annotated in one line.

    The arguments are read once the function has failed, so that a call costs no more than before.

    Args:
        function: returns a value, and yields none.
        contents: whether arguments of the right type may hold what cannot be used, as tables read
            from files do: an error of a lookup, of arithmetic or of a conversion is then refused
            where `attlas.core.unusable_parts` finds what is out of the ordinary in them.

    Returns:
        The same function; where it fails and an argument does not fit its annotation, it raises
        `UserError`, which names the argument and the field. Other errors pass.

    Examples:
        >>> @refuse_misfits
        ... def longest(names: list[str]) -> int:
        ...     return max(map(len, names))
        >>> longest(["a", "bc"])
        2
        >>> longest(["a", None])
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: longest: names[1] is None: give a str
    """

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except UserError:
            raise
        except Exception as error:
            from attlas.core.misfits import first_misfit

            if line := first_misfit(function, args, kwargs):
                raise UserError(f"{function.__name__}: {line}") from error
            # JAX's own errors, while a program is traced, say what a program may not do.
            is_of_jax = type(error).__module__.partition(".")[0] == "jax"
            may_hold_it = contents and isinstance(error, _UNUSABLE) and not is_of_jax
            if may_hold_it and (line := _unusable(function, args, kwargs, error)):
                what = f"{function.__name__} cannot use what its arguments hold: {line}"
                raise UserError(f"{what} ({in_short(error)})") from error
            raise

    return called


def _unusable(
    function: Callable[..., object], args: Any, kwargs: dict[str, Any], error: Exception
) -> str:
    """What in the arguments of a call explains its error; empty where the function is to blame."""
    import inspect

    from attlas.core.unusable_parts import unusable_part

    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return unusable_part(bound.arguments, error)


refuse_unreadable = partial(refuse_misfits, contents=True)
"""For tables and data of files: contents that a function cannot use are refused likewise."""


@contextlib.contextmanager
def extra_needed(by: str, extra: str = "") -> Iterator[None]:
    """Refuse a missing optional dependency, of whatever is imported inside, in one line.

    Raises:
        UserError: that names what is missing and its extra; other errors pass.

    Examples:
        >>> with extra_needed("this", "site"):
        ...     import no_such_package
        Traceback (most recent call last):
            ...
        ModuleNotFoundError: No module named 'no_such_package'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        line = missing_extra(error, by, extra)
        if not line:
            raise
        raise UserError(line) from error


def require_extra(by: str, extra: str) -> None:
    """Refuse a missing extra before anything is imported, which may take many seconds.

    Args:
        extra: one whose distributions are imported under their own names.

    Raises:
        UserError: that names the first package that is missing, and the extra.

    Examples:
        >>> require_extra("this", "no such extra")
    """
    for package in sorted(extras().get(extra, ())):
        if importlib.util.find_spec(package.replace("-", "_")) is None:
            raise UserError(f"{by} needs {package}: {install_command(extra)}")


def missing_extra(error: ImportError, by: str, extra: str = "") -> str:
    """The line for an import that failed, where an extra of attlas would install what is missing.

    Args:
        by: what needs it.
        extra: the one that is named if it has the dependency; else the smallest that has it.

    Returns:
        Such as "`attlas report` needs matplotlib: pip install '.[site]' in a clone of attlas";
        empty where the package is installed, or no extra has it.

    Examples:
        >>> missing_extra(ModuleNotFoundError(name="no_such_package"), "this")
        ''
    """
    package = (error.name or "").partition(".")[0]
    holding = [name for name, names in extras().items() if package in names]
    if not holding or importlib.util.find_spec(package) is not None:
        return ""
    chosen = extra if extra in holding else holding[0]
    return f"{by} needs {package}: {install_command(chosen)}"


def install_command(extra: str, beside: str = "") -> str:
    """How an extra is installed: from a clone, since attlas is in no package index.

    Args:
        beside: distributions that are installed with it, with spaces between.

    Examples:
        >>> install_command("torch", "transformers")
        "pip install '.[torch]' transformers in a clone of attlas"
    """
    return " ".join(filter(None, (f"pip install '.[{extra}]'", beside, "in a clone of attlas")))


@cache
def extras() -> dict[str, frozenset[str]]:
    """What each extra of attlas installs beside the required dependencies.

    Returns:
        Names of distributions by the name of the extra, the smallest extra first.

    Examples:
        >>> sorted(extras()["cluster"] & {"dask", "distributed", "jax"})
        ['dask', 'distributed']
    """
    from importlib import metadata  # a third of what `attlas --help` takes, so late

    found: dict[str, set[str]] = {}
    for requirement in metadata.requires("attlas") or ():
        named = re.match(r"[A-Za-z0-9._-]+", requirement)
        extra = re.search(r"extra == ['\"]([^'\"]+)", requirement)
        if named and extra:
            found.setdefault(extra[1], set()).add(named[0].lower().replace("_", "-"))
    smallest = sorted(found, key=lambda name: (len(found[name]), name))
    return {name: frozenset(found[name]) for name in smallest}
