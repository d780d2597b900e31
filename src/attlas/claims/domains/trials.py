"""Trials of a probability at given parameters: what is drawn anew, beside what is selected."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attlas.claims.domains.domain import Domain
from attlas.claims.sampling import Sampler
from attlas.core.errors import UserError, refuse_misfits
from attlas.core.names import parameters as parameters_of


@dataclass(frozen=True)
class TrialSampler:
    """A sampler of trials that takes the parameters of the statement, or draws them.

    Attributes:
        parameters: the domains of the parameters, each with its shape.
        sample: draws the trials; it takes those parameters that its keyword-only ones name, as
            arrays with a leading axis, and returns none of them.
        sizes: the sizes that shapes name, with their values.

    Examples:
        >>> from attlas.claims.domains.vectors import Box
        >>> def coins(rng, count, *, p):
        ...     return {"x": rng.binomial(10, p)}
        >>> sample = TrialSampler((Box("p", 0.0, 1.0, shape=()),), coins)
        >>> sorted(sample(np.random.default_rng(0), 3))
        ['p', 'x']
        >>> sample(np.random.default_rng(0), 3, selected={"p": np.ones(3)})["x"].tolist()
        [10, 10, 10]
    """

    parameters: tuple[Domain, ...]
    sample: Sampler
    sizes: tuple[tuple[str, int], ...] = ()

    def __call__(
        self,
        rng: np.random.Generator,
        count: int,
        *,
        selected: Mapping[str, Any] | None = None,
        **sizes: int,
    ) -> dict[str, Any]:
        """Trials, arrays by name with a leading axis.

        Args:
            selected: the parameters of each trial, drawn from their domains by default.

        Raises:
            UserError: if the sampler draws a parameter itself.
        """
        values = self.draw(rng, count, sizes) if selected is None else dict(selected)
        named = parameters_of(self.sample)
        taken = {name: value for name, value in values.items() if name in named.options}
        arrays = dict(self.sample(rng, count, **taken, **sizes))
        for name in values:
            if name in arrays:
                raise UserError(
                    f"sample draws the parameter '{name}': leave it to its domain, and take it "
                    "as a keyword-only parameter where trials depend on it"
                )
        return {**values, **arrays}

    def draw(
        self, rng: np.random.Generator, count: int, sizes: Mapping[str, int]
    ) -> dict[str, np.ndarray]:
        """Parameters from their domains, in the order of their declaration."""
        values: dict[str, np.ndarray] = {}
        for domain in self.parameters:
            values[domain.name] = domain.draw(rng, count, {**dict(self.sizes), **sizes}, values)
        return values


@refuse_misfits
def refuse_parameters(domains: Sequence[Domain], sample: Any, where: str) -> None:
    """Refuse parameters without a shape, and a sampler that cannot take them.

    Raises:
        UserError: names the claim and the remedy.

    Examples:
        >>> from attlas.claims.domains.vectors import Box
        >>> refuse_parameters([Box("p", 0.0, 1.0)], lambda rng, count: {}, "claim 'a/b'")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: claim 'a/b': the parameter 'p' has no shape: give shape=() ...
    """
    for domain in domains:
        if domain.shape is None:
            raise UserError(
                f"{where}: the parameter '{domain.name}' has no shape: give shape=() for a number"
            )
    if sample is None or not callable(sample):
        raise UserError(f"{where}: parameters need a sample= that draws the trials")
    if parameters_of(sample).arrays[:1] == ("key",):
        raise UserError(f"{where}: parameters need a sampler that takes rng in place of key")
