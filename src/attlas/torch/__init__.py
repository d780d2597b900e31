"""PyTorch: the optimiser of `attlas.optim`, attention weights as groups, a monitor, a certificate.

`from attlas.torch import LpMirrorDescent, Monitor, SubspaceAdapter, attention_groups, split` is
the interface; a name is imported when it is first used. It needs the extra:
`pip install '.[torch]'` in a clone. Beside it only `attlas.capture` needs torch, and takes the
trace of attention from here.
"""

from typing import TYPE_CHECKING

from attlas.core.names import lazy_names

if TYPE_CHECKING:
    from attlas.torch.lp_mirror_descent import LpMirrorDescent
    from attlas.torch.monitor import Monitor
    from attlas.torch.parameter_groups import attention_groups, split
    from attlas.torch.subspace_adapter import SubspaceAdapter

_PLACES = {
    "LpMirrorDescent": "lp_mirror_descent",
    "Monitor": "monitor",
    "SubspaceAdapter": "subspace_adapter",
    "attention_groups": "parameter_groups",
    "split": "parameter_groups",
}

__all__ = list(_PLACES)


__getattr__, __dir__ = lazy_names(__name__, _PLACES)
