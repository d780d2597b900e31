"""PyTorch: the optimiser of `attlas.optim` for torch, attention weights as groups, a monitor.

`from attlas.torch import LpMirrorDescent, Monitor, attention_groups` is the door; a name is
imported when it is first used. It needs the extra: `pip install 'attlas[torch]'`. No other part
of attlas imports torch, and none imports this folder.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attlas.torch.lp_mirror_descent import LpMirrorDescent
    from attlas.torch.monitor import Monitor
    from attlas.torch.parameter_groups import attention_groups

_PLACES = {
    "LpMirrorDescent": "lp_mirror_descent",
    "Monitor": "monitor",
    "attention_groups": "parameter_groups",
}

__all__ = list(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'attlas.torch' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"attlas.torch.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
