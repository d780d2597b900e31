"""What declared domains give a claim: a sampler, a projection, assumptions, arrays to move."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Array

from attlas.claims.domains.domain import Domain
from attlas.core.errors import UserError


@dataclass(frozen=True)
class DeclaredSampler:
    """A sampler of instances whose arrays are all declared, in the order of their declaration.

    Attributes:
        domains: of all arrays.
        sizes: by name, as pairs.

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
        """Draw instances.

        Args:
            rng: generator.
            count: number of instances.
            **sizes: other sizes than the declared ones.

        Returns:
            Arrays by name, with a leading axis.
        """
        numbers = {**dict(self.sizes), **sizes}
        drawn: dict[str, np.ndarray] = {}
        for domain in self.domains:
            drawn[domain.name] = domain.draw(rng, count, numbers, drawn)
        return drawn


def projection(domains: Sequence[Domain], after: Any = None) -> Any:
    """One projection from the declared domains and the author's own.

    Args:
        domains: in order; the parameters of each are taken as they stand by then.
        after: function of all named arrays that is called last, or None.

    Returns:
        Function of all named arrays to those that it changes.

    Examples:
        >>> import jax.numpy as jnp
        >>> from attlas.claims.domains.vectors import Nonnegative
        >>> projection([Nonnegative("x")])(x=jnp.array([-1.0, 2.0]))["x"].tolist()
        [0.0, 2.0]
    """

    def project(**arrays: Array) -> Mapping[str, Array]:
        moved = {}
        for domain in domains:
            if domain.moves and domain.name in arrays:
                moved[domain.name] = domain.brought_back({**arrays, **moved})
        if after is not None:
            moved |= after({**arrays, **moved})
        return moved

    return project


def refuse_unfit(domains: Sequence[Any], where: str) -> None:
    """Refuse declarations that do not fit together.

    Args:
        domains: in order.
        where: the claim, for the error.

    Raises:
        UserError: if one is no domain, comes twice, or names a parameter that is declared later.
    """
    for k, domain in enumerate(domains):
        if not isinstance(domain, Domain):
            raise UserError(f"{where}: {domain!r} is not a domain: write Ball('x', 1.0)")
        names = [other.name for other in domains[:k]]
        if domain.name in names:
            raise UserError(f"{where}: '{domain.name}' has two domains: keep one")
        later = [name for name in domain.reads() if name in {d.name for d in domains[k:]}]
        if later:
            raise UserError(f"{where}: {domain} reads '{later[0]}': declare that one before it")
