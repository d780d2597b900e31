"""Audit: what attention theory says of a trained Transformer; `attlas.audit(model)` makes one."""

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """This package bears the name of its function, and an import of it hides that: both audit."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from attlas.audit.audit import audit

        return audit(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
