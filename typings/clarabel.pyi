"""clarabel is a compiled module without type information; every name of it is accepted."""

from typing import Any

def __getattr__(name: str) -> Any: ...
