"""Bounds on normalised layers by covers of their matrices: Theorem 4.2 of trauger2023sequence."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from attlas.bounds.comparison.bound_table import CORRECTED, SHARP, TINY, Complexity, NormBound
from attlas.bounds.comparison.network_class import NetworkClass, NetworkCosts
from attlas.bounds.constants import Constants, require_constants
from attlas.bounds.covering.dudley import dudley_chain, dudley_integral
from attlas.bounds.covering.trauger2023_allocation import trauger2023_allocation

THRESHOLD = {"corrected": 599.3, "sharp": 67.95}
"""m R^2 / D from which Dudley and the chain are below R.

Proof: papers/trauger2023sequence/proofs/dudley.md.
"""


class Cover(NamedTuple):
    """A cover of every matrix.

    Attributes:
        name: in labels.
        reason: which matrices by which cover, in words.
        norm: the name in `MatrixNorms` of the norm that it depends on.
        coefficients: C of the entropy C / eps^2 of every matrix, from the class and m.
    """

    name: str
    reason: str
    norm: str
    coefficients: Callable[[NetworkClass, Array], Array]

    def bound(self, constants: Constants) -> NormBound[NetworkClass, NetworkCosts]:
        """The bound with this cover for all matrices."""
        return by_cover(self.name, self.reason, self.coefficients, self._cost, constants)

    def _cost(self, nats: NetworkCosts) -> float:
        # the (1,1) norm of a matrix is that of its transpose
        either = 0.0 if self.norm == "total" else nats.orientation
        return nats.recursion + float(nats.norms[self.norm].sum()) + either


def _dudley(D: Array, m: Array, radius: Array) -> Array:
    return dudley_integral(0.0, D, m, radius)


def _chain(D: Array, m: Array, radius: Array) -> Array:
    return dudley_chain(lambda epsilon: D / epsilon**2, m, radius)


def by_cover(
    name: str,
    reason: str,
    coefficients: Callable[[NetworkClass, Array], Array],
    cost: Callable[[NetworkCosts], float],
    constants: Constants,
) -> NormBound[NetworkClass, NetworkCosts]:
    """The bound of covers of all matrices, with the resolutions of Lemma E.1.

    Examples:
        >>> unit = by_cover("all", "by Lemma 1", lambda network, m: m, lambda nats: 0.0, "sharp")
        >>> unit.label, unit.reason.format(theorem="Theorem 4.2"), unit.cost(None)
        ('all sharp', 'Theorem 4.2, by Lemma 1', 0.0)
    """
    require_constants(constants, *THRESHOLD)
    integral, words = (_chain, SHARP) if constants == "sharp" else (_dudley, CORRECTED)

    def value(network: NetworkClass, m: Array) -> Complexity:
        C, beta = jnp.maximum(coefficients(network, m), TINY), network.beta[constants]
        return Complexity(trauger2023_allocation(C, beta)[0], jnp.cbrt(C) * jnp.cbrt(beta) ** 2)

    return NormBound(
        f"{name} {constants}",
        f"{{theorem}}, {reason}",
        words,
        value,
        cost,
        integral=integral,
        threshold=THRESHOLD[constants],
    )
