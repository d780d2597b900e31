"""Find objects by scanning a package: there is no list to extend."""

import importlib
import pkgutil
from typing import TypeVar

Kind = TypeVar("Kind")


def scan(package: str, kind: type[Kind]) -> tuple[Kind, ...]:
    """All module-level objects of a class below a package, in order of module and line.

    A tuple at module level counts as its members. An object that is imported into a second module
    is returned once.

    Examples:
        >>> from attlas.claims.verdict import Outcome
        >>> scan("attlas.core", Outcome)
        ()
    """
    root = importlib.import_module(package)
    objects: dict[int, Kind] = {}
    for info in sorted(pkgutil.walk_packages(root.__path__, f"{package}."), key=lambda i: i.name):
        for value in vars(importlib.import_module(info.name)).values():
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, kind):
                    objects.setdefault(id(item), item)
    return tuple(objects.values())
