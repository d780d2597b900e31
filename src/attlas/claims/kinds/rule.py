r"""What a kind of claim must say about itself; `attlas.verify` asks it and knows no kind by name.

A rule turns the sides of a batch into a verdict, lists the statements that are too strong by a
factor, and says which parts of a check concern it. Rounding is allowed for by
gamma_t * magnitude + error, where gamma_t = t eps / (1 - t eps) bounds t roundings (Higham,
Accuracy and Stability, Lemma 3.1), `t` is the claim's count of roundings and `error` the certified
error of a solver. Nothing else is tolerated.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from attlas.claims.sides import Evidence, Sides
from attlas.claims.verdict import Verdict


class Rule(ABC):
    """One kind of claim: its rule, its stronger variants, its limits and its words.

    Attributes:
        noun: the kind with its article, as in "decided as an identity".
        plural: as in "search_over is for inequalities".
        equality: whether the sides must be equal, entry by entry; computer algebra may prove it.
        scaled: whether the last axis of the sides runs over growing scales.
        trials: whether each instance is an independent random trial.
        searchable: whether an attack looks for a counterexample, and a ratio can be attained.
        single_instance: whether one stored instance supports the statement.
        coarsest: the largest detection limit that a component may have, None where any may do.
    """

    noun: ClassVar[str]
    plural: ClassVar[str]
    equality: ClassVar[bool] = False
    scaled: ClassVar[bool] = False
    trials: ClassVar[bool] = False
    searchable: ClassVar[bool] = False
    single_instance: ClassVar[bool] = False
    coarsest: ClassVar[float | None] = None

    def sides(self, value: Any) -> Sides:
        """The sides of one instance, from what the claim's function returns for it."""
        return value if isinstance(value, Sides) else Sides(*value)

    def tolerance(self, evidence: Evidence, roundings: int) -> np.ndarray:
        """The absolute error that rounding and certificates allow, of the shape of the sides."""
        step = roundings * float(np.finfo(evidence.left.dtype).eps)
        return step / (1 - step) * evidence.magnitude + evidence.error

    @abstractmethod
    def decide(self, evidence: Evidence, roundings: int, alpha: float) -> Verdict:
        """The verdict on a batch of finite sides with at least one applicable instance.

        Args:
            roundings: number of roundings on the longest path to a side.
            alpha: error probability granted to a statistical verdict.
        """

    @abstractmethod
    def stronger(self, evidence: Evidence, factor: float) -> Iterator[Evidence]:
        """The evidence of statements that are too strong by a factor above 1."""

    def violating(self, evidence: Evidence, roundings: int) -> np.ndarray:
        """Which instances violate the statement by themselves, shape (count,); none by default."""
        del roundings
        return np.zeros(len(evidence.left), dtype=bool)
