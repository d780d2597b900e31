"""What tests of rounding allowances share."""

from types import ModuleType, SimpleNamespace

import jax.numpy as jnp
import pytest


class _Coarse:
    """`jax.numpy` but for its unit of rounding."""

    def __init__(self, eps: float) -> None:
        self._eps = eps

    def finfo(self, dtype):
        """The numbers of a dtype, eps apart."""
        limits = jnp.finfo(dtype)
        return SimpleNamespace(eps=self._eps, tiny=limits.tiny, max=limits.max)

    def __getattr__(self, name: str):
        return getattr(jnp, name)


@pytest.fixture
def coarse_rounding(monkeypatch: pytest.MonkeyPatch):
    """Let the formulas of a module allow for a rounding that is large enough to be seen.

    An allowance of 30 eps is lost in the rounding of the number that it is added to. With eps a
    thousandth it is 3 %, and each of its terms can be compared with the count in its proof.
    """

    def coarsen(module: ModuleType, eps: float) -> float:
        monkeypatch.setattr(module, "jnp", _Coarse(eps))
        return eps

    return coarsen
