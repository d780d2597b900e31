"""Declared domains give a claim its sampler and its projection."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Array

from attlas.claims.domains.domain import Domain
from attlas.core.errors import UserError, refuse_misfits
from attlas.core.names import call_by_name


@dataclass(frozen=True)
class DeclaredSampler:
    """A sampler of instances whose arrays are all declared, in the order of their declaration.

    Examples:
        >>> from attlas.claims.domains.vectors import Ball
        >>> sample = DeclaredSampler((Ball("x", 1.0, shape="d"),), (("d", 3),))
        >>> sample(np.random.default_rng(0), 5)["x"].shape
        (5, 3)
        >>> sample(np.random.default_rng(0), 5, d=7)["x"].shape
        (5, 7)
    """

    domains: tuple[Domain, ...]
    sizes: tuple[tuple[str, int], ...] = ()

    def __call__(self, rng: np.random.Generator, count: int, **sizes: int) -> dict[str, np.ndarray]:
        """Instances, arrays by name with a leading axis; `sizes` replace declared ones."""
        numbers = {**dict(self.sizes), **sizes}
        arrays: dict[str, np.ndarray] = {}
        for domain in self.domains:
            arrays[domain.name] = domain.draw(rng, count, numbers, arrays)
        return arrays


def projection(domains: Sequence[Domain], after: Any = None) -> Any:
    """One projection from the declared domains, in their order, and the author's own.

    Args:
        after: function of some of the named arrays that is called last, or None.

    Returns:
        Function of all named arrays that returns those that it changes.

    Examples:
        >>> import jax.numpy as jnp
        >>> from attlas.claims.domains.vectors import Nonnegative
        >>> projection([Nonnegative("x")])(x=jnp.array([-1.0, 2.0]))["x"].tolist()
        [0.0, 2.0]
        >>> both = projection([Nonnegative("x")], lambda x: {"x": jnp.minimum(x, 1.0)})
        >>> both(x=jnp.array([-1.0, 2.0]))["x"].tolist()
        [0.0, 1.0]
    """

    def project(**arrays: Array) -> Mapping[str, Array]:
        moved = {}
        for domain in domains:
            if domain.moves and domain.name in arrays:
                moved[domain.name] = domain.project({**arrays, **moved})
        if after is not None:
            moved |= call_by_name(after, {**arrays, **moved})
        return moved

    return project


@refuse_misfits
def refuse_unfit(domains: Sequence[Any], where: str) -> None:
    """Refuse declarations that do not fit together; `where` begins the error.

    Raises:
        UserError: if one is no domain, comes twice, or names a parameter that is declared later.

    Examples:
        >>> from attlas.claims.domains.vectors import Ball
        >>> refuse_unfit([Ball("x", 1.0), Ball("x", 2.0)], "claim 'a/b'")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: claim 'a/b': 'x' has two domains: keep one
    """
    for k, domain in enumerate(domains):
        if not isinstance(domain, Domain):
            raise UserError(f"{where}: {domain!r} is not a domain: write Ball('x', 1.0)")
        names = [earlier.name for earlier in domains[:k]]
        if domain.name in names:
            raise UserError(f"{where}: '{domain.name}' has two domains: keep one")
        later = [name for name in domain.reads() if name in {d.name for d in domains[k:]}]
        if later:
            raise UserError(f"{where}: {domain} reads '{later[0]}': declare that one before it")
