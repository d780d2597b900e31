"""The public names of the library that a source file uses."""

import ast
from functools import cache
from pathlib import Path


@cache
def public_names(file: str) -> tuple[str, ...]:
    """The public names of attlas that a source file imports, sorted; none if it cannot be read.

    Examples:
        >>> public_names("no such file")
        ()
    """
    path = Path(file)
    if not path.is_file():
        return ()
    names = {
        f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
        if node.module.startswith("attlas.") and not alias.name.startswith("_")
        if "._" not in node.module and not node.module.startswith("attlas.experiments")
    }
    return tuple(sorted(names))
