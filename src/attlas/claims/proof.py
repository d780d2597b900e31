"""A proof of a claim: how it is proved, where, what one has to trust, and what checks it again."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

EXPANSION, EVALUATION, INTERVALS = "expansion", "random evaluation", "interval evaluation"
PATHS, BOX = "random evaluation along drawn paths", "branch and bound"
PERFORMANCE, SQUARES = "performance estimation", "sums of squares"
ENUMERATION = "enumeration"
"""Methods of a proof: sides are expanded, compared at a random point, enclosed at a stored witness,
compared at a random point for each way that draws take through a program, enclosed on all parts of
a box, bounded by exact multipliers of a semidefinite program, written as sums of squares, or
enclosed at each instance of a finite set."""


@dataclass(frozen=True)
class Proof:
    """A proof that a claim holds on a domain, or that a stored object decides it.

    Attributes:
        method: "expansion", "random evaluation", "random evaluation along drawn paths",
            "branch and bound", "sums of squares", "enumeration", of worst cases "performance
            estimation" or, of a stored object, "interval evaluation".
        domain: for what it is proved, as a sentence.
        where: the same as plain JSON: signs and shapes of the arrays, entries that never vary
            or are always equal, values of what stays a number.
        trusted: what one has to trust, as a sentence.
        certificate: plain JSON with which the proof is checked again.
        source: sha256 of the sources that define the claim, as they were when it was proved.
    """

    method: str
    domain: str
    where: Mapping[str, Any]
    trusted: str
    certificate: Mapping[str, Any]
    source: str

    @property
    def at_random(self) -> bool:
        """Whether the two sides were compared at a random point, and not term by term."""
        return self.method in (EVALUATION, PATHS)

    def document(self) -> dict[str, Any]:
        """The proof as plain JSON.

        Examples:
            >>> Proof("expansion", "for all real x", {}, "", {}, "").document()["method"]
            'expansion'
        """
        return asdict(self)

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """A proof from what `document` gave."""
        return cls(**document)

    def sentence(self) -> str:
        """What is proved and how, in one sentence without its full stop.

        Examples:
            >>> Proof("expansion", "for all real x", {}, "", {}, "").sentence()
            'proved by expansion for all real x'
        """
        return f"proved by {self.method} {self.domain}"
