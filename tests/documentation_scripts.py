"""Scripts in `docs`, which is not a package, as modules."""

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parents[1] / "docs"


@cache
def documentation_script(name: str) -> ModuleType:
    """The module of `docs/<name>.py`."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
