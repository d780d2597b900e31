r"""The power of a check: which wrong constants it would detect, component by component.

The statement is made too strong by a factor c > 1: for an inequality, existence or expectation left
<= right - (1 - 1/c) |right|, which is right / c where it is positive; for a limit right / c; for an
identity right c and right / c; for a probability failure (1 - right) / c; for a rate the exponent
of the scale by log10 c. A component detects c where its changed sides come out VIOLATED, by the
rule of the check itself, on the drawn instances or at the end points of an attack.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import jax
import numpy as np

from attlas._jax.factorising import FACTORISING
from attlas.claims.claim import Claim
from attlas.claims.sides import Evidence
from attlas.claims.verdict import Outcome
from attlas.core.errors import UserError
from attlas.verify.attack import attacked
from attlas.verify.check import draw_batch
from attlas.verify.evidence import MAX_COMPONENTS, compile_program, decide, gather
from attlas.verify.exponents import at_grown_sizes, exponent_limits
from attlas.verify.registry import one_claim, refuse_failing_claim

FACTORS = (1.01, 1.1, 2.0, 10.0, 100.0, 1e3, 1e6)
"""Wrong constants that are tried."""


@dataclass(frozen=True)
class Power:
    """Which wrong constants a check detects.

    Attributes:
        factors: factors by which the statement was made too strong.
        drawn: whether each component detects each factor on the drawn instances, shape
            (components, factors).
        attacked: the same at the end points of an attack; None without an attack.
        exponents: smallest change of the exponent of each declared quantity that is detected.
    """

    claim: str
    factors: tuple[float, ...]
    drawn: np.ndarray
    attacked: np.ndarray | None
    exponents: dict[str, float | None]

    @property
    def smallest(self) -> tuple[float | None, ...]:
        """The smallest factor that each component detects, None where it detects none."""
        detected = self.drawn if self.attacked is None else self.drawn | self.attacked
        return tuple(self.factors[int(np.argmax(row))] if row.any() else None for row in detected)

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The table: by component the smallest factor detected, and a cell for each factor.

        Yields:
            "drawn", "attack" (detected only there) or "passes" by factor.
        """
        for k, smallest in enumerate(self.smallest):
            cells = [
                "drawn"
                if self.drawn[k, j]
                else "attack"
                if self.attacked is not None and self.attacked[k, j]
                else "passes"
                for j in range(len(self.factors))
            ]
            yield (str(k), "none" if smallest is None else f"x{smallest:g}", *cells)

    def headings(self) -> tuple[str, ...]:
        """The headings of `rows`."""
        return ("component", "detects from", *(f"x{factor:g}" for factor in self.factors))

    def __repr__(self) -> str:
        lines = ["  ".join(row) for row in (self.headings(), *self.rows())]
        lines += [
            f"exponent of {name}: "
            + ("no change is detected" if limit is None else f"detects changes from {limit:.3g}")
            for name, limit in self.exponents.items()
        ]
        return "\n".join([f"{self.claim}: a right side too small by ...", *lines])


@refuse_failing_claim
def power(
    claim: Claim | str,
    *,
    factors: Sequence[float] = FACTORS,
    count: int | None = None,
    seed: int = 0,
    alpha: float = 1e-3,
    evaluations: int | None = None,
) -> Power:
    """Sweep wrong constants: which of them would the check detect?

    Args:
        factors: numbers above 1.
        count: instances drawn; the number that the claim declares by default.
        alpha: error probability of a statistical verdict.
        evaluations: evaluations of the attack; the number of the claim by default, 0 for no attack.

    Raises:
        UserError: if a factor is not above 1, or no instance is applicable.

    Examples:
        >>> power("julistiono2024optimizing/lemma-12").smallest
        (1.01, 1.01)
    """
    claim = one_claim(claim)
    factors = tuple(sorted(float(factor) for factor in factors))
    if not factors or factors[0] <= 1:
        raise UserError("factors: give numbers above 1, by which the statement is made too strong")
    with FACTORISING, jax.enable_x64(True):
        program = compile_program(claim)
        batch = draw_batch(claim, seed, claim.count if count is None else count)
        holds, sides = program(batch)
        evidence = gather(claim, holds, sides[0], batch=batch)
        if not evidence.applicable.any():
            raise UserError(
                f"claim '{claim.name}': no instance satisfies '{evidence.failed_assumption}'"
            )
        drawn = _detected(claim, evidence, factors, alpha)
        grown = list(at_grown_sizes(claim, seed, len(evidence.applicable)))
        exponents = exponent_limits(claim, evidence, batch, grown)
        ended = None
        if evaluations != 0:
            ended = attacked(claim, program, batch, seed=seed, evaluations=evaluations)
        after = None
        if ended is not None:
            after = _detected(claim, ended, factors, alpha)
    return Power(claim.name, factors, drawn, after, exponents)


def _detected(
    claim: Claim, evidence: Evidence, factors: Sequence[float], alpha: float
) -> np.ndarray:
    """Whether each component detects each factor."""
    scaled = claim.kind.rule.scaled
    shape = evidence.left.shape[1:-1] if scaled else evidence.left.shape[1:]
    entries = int(np.prod(shape))
    together = claim.alike or entries > MAX_COMPONENTS
    components = [evidence] if together else [evidence.component(k, scaled) for k in range(entries)]
    return np.array(
        [
            [
                any(
                    decide(claim, changed, alpha=alpha).outcome is Outcome.VIOLATED
                    for changed in claim.kind.rule.stronger(part, factor)
                )
                for factor in factors
            ]
            for part in components
        ]
    )
