"""Instances of a claim as a strategy of Hypothesis: `pip install attlas[hypothesis]`.

A claim's sampler knows the domain of its statement; a test of one's own code, such as an
implementation beside the formula, can be run on the same instances.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from attlas.claims.claim import Claim
from attlas.core.named_call import call_by_name

_SEEDS = 2**32 - 1


def instances(claim: Claim, *, assumed: bool = True) -> st.SearchStrategy[dict[str, np.ndarray]]:
    """A strategy whose values are instances of a claim, drawn by its own sampler.

    Small seeds and early places are tried first and kept when an example is made smaller; the
    numbers inside of an instance are the sampler's.

    Args:
        claim: any claim with a sampler that takes any seed.
        assumed: whether instances on which an assumption fails are left out.

    Returns:
        A strategy of arrays by name.

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

    def one(place: tuple[int, int]) -> dict[str, np.ndarray]:
        seed, index = place
        batch = claim.draw(seed, claim.count)
        return {name: np.asarray(value[index]) for name, value in batch.items()}

    places = st.tuples(st.integers(0, _SEEDS), st.integers(0, claim.count - 1))
    drawn = places.map(one)
    if not (assumed and claim.assumptions):
        return drawn
    return drawn.filter(lambda instance: _applies(claim, instance))


def _applies(claim: Claim, instance: dict[str, np.ndarray]) -> bool:
    with jax.enable_x64(True):
        arrays = {name: jnp.asarray(value) for name, value in instance.items()}
        return all(bool(assumption.holds(arrays)) for assumption in claim.assumptions)


def given_instances(
    claim: Claim, *, assumed: bool = True
) -> Callable[[Callable[..., Any]], Callable[[], None]]:
    """Run a test on instances of a claim, whose arrays its parameters name.

    Args:
        assumed: whether instances on which an assumption fails are left out.

    Returns:
        A decorator for a test function.

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
