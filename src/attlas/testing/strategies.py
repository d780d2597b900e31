"""Instances of a claim as a strategy of Hypothesis: `pip install '.[hypothesis]'`.

A claim's sampler knows the domain of its statement; tests of a user's code, such as an
implementation of the formula, can use the same instances.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from attlas.claims.claim import Claim
from attlas.core.errors import refuse_misfits
from attlas.core.names import call_by_name

_SEEDS = 2**32 - 1


@refuse_misfits
def instances(claim: Claim, *, assumed: bool = True) -> st.SearchStrategy[dict[str, np.ndarray]]:
    """A strategy of instances of a claim (arrays by name), drawn by its sampler.

    Shrinking prefers small seeds and indices; the numbers inside an instance are the sampler's.

    Args:
        claim: any claim with a sampler that takes any seed.
        assumed: whether to exclude instances on which an assumption fails.

    Examples:
        >>> import attlas as at
        >>> @at.identity(
        ...     sample=lambda rng, count: {"x": rng.normal(size=count)},
        ...     controls=[at.Control("another sign", sign=-1)],
        ... )
        ... def even(x, *, sign=1):
        ...     r'''$$(-x)^2 = x^2$$'''
        ...     return (-x) ** 2, sign * x**2
        >>> instances(even)
        tuples(integers(min_value=0, max_value=4_294_967_295), ...
    """

    def instance_at(place: tuple[int, int]) -> dict[str, np.ndarray]:
        seed, index = place
        batch = claim.draw(seed, claim.count)
        return {name: np.asarray(value[index]) for name, value in batch.items()}

    places = st.tuples(st.integers(0, _SEEDS), st.integers(0, claim.count - 1))
    strategy = places.map(instance_at)
    if not (assumed and claim.assumptions):
        return strategy
    return strategy.filter(lambda instance: _applies(claim, instance))


def _applies(claim: Claim, instance: dict[str, np.ndarray]) -> bool:
    with jax.enable_x64(True):
        arrays = {name: jnp.asarray(value) for name, value in instance.items()}
        return all(bool(assumption.holds(arrays)) for assumption in claim.assumptions)


def given_instances(
    claim: Claim, *, assumed: bool = True
) -> Callable[[Callable[..., Any]], Callable[[], None]]:
    """Decorate a test to run on instances of a claim, whose arrays its parameters name.

    Args:
        assumed: whether to exclude instances on which an assumption fails.

    Examples:
        >>> import attlas as at
        >>> @at.identity(
        ...     sample=lambda rng, count: {"x": rng.normal(size=count)},
        ...     controls=[at.Control("another sign", sign=-1)],
        ... )
        ... def even(x, *, sign=1):
        ...     r'''$$(-x)^2 = x^2$$'''
        ...     return (-x) ** 2, sign * x**2
        >>> @given_instances(even)
        ... def test_finite(x):
        ...     assert np.isfinite(x)
        >>> test_finite()
    """

    def wrap(test: Callable[..., Any]) -> Callable[[], None]:
        def tried(instance: dict[str, np.ndarray]) -> None:
            call_by_name(test, instance)

        tried.__name__, tried.__doc__ = test.__name__, test.__doc__
        tried.__module__, tried.__qualname__ = test.__module__, test.__qualname__
        return given(instance=instances(claim, assumed=assumed))(tried)

    return wrap
