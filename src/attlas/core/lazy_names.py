"""Names of a package that are imported when they are first used."""

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from attlas.core.extras import extra_needed


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
