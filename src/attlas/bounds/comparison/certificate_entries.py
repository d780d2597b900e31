"""Bounds on a risk as entries of a table of bounds on gaps."""

import math
from typing import NamedTuple

from attlas.bounds.comparison.comparison import Entry
from attlas.bounds.generalisation.risk_bound import RiskBound, require_unit_loss
from attlas.core.errors import UserError


class Certificates(NamedTuple):
    """What stands beside the norm-based bounds.

    Attributes:
        bounds: from training data, each on its own predictor.
        held_out: from a test set, or None.
        training_risk: mean loss on the training set, or None.
    """

    bounds: tuple[RiskBound, ...]
    held_out: RiskBound | None
    training_risk: float | None

    @property
    def all(self) -> tuple[RiskBound, ...]:
        """Every bound."""
        return self.bounds if self.held_out is None else (*self.bounds, self.held_out)

    def shares(self, norm_based: float) -> tuple[tuple[str, float], ...]:
        """The delta of each, by name, after that of the norm-based bounds."""
        return ("norm-based", norm_based), *((risk.name, risk.delta) for risk in self.all)

    def delta(self, norm_based: float) -> float:
        """The probability that some entry fails, at most 1."""
        return min(math.fsum((norm_based, *(risk.delta for risk in self.all))), 1.0)

    @property
    def true_gap(self) -> float:
        """Held-out less training risk, NaN without both."""
        if self.held_out is None or self.training_risk is None:
            return math.nan
        return self.held_out.empirical - self.training_risk


def certificate_entries(risks: Certificates, loss_range: float) -> tuple[Entry, ...]:
    r"""Entries whose gap is the bound less the empirical risk of the predictor that it is about.

    That of a held-out set is less the training risk where this is known. `trivial` is the risk
    without data less the same, so that an entry is vacuous where its bound is.

    Raises:
        UserError: if the table is not about losses in [0, 1], or a bound is not.

    Examples:
        >>> from attlas.bounds.generalisation.held_out_bound import held_out_bound
        >>> found = certificate_entries(Certificates((), held_out_bound(3, 100, 0.05), 0.01), 1.0)
        >>> print(f"{found[0].gap:.4f}", found[0].dominant)
        0.0657 confidence (3 nats)
    """
    if risks.training_risk is not None:
        require_unit_loss(risks.training_risk, "training_risk")
    if risks.all and loss_range != 1:
        raise UserError(f"loss_range = {loss_range}: certificates need losses in [0, 1], give 1")
    return tuple(_entry(risk, _origin(risk, risks)) for risk in risks.all)


def _origin(bound: RiskBound, risks: Certificates) -> float:
    """The risk that the gap is counted from."""
    if not bound.trivial <= 1:
        raise UserError(f"{bound.name}: its losses are not in [0, 1], so that no gap compares")
    if bound is risks.held_out and risks.training_risk is not None:
        return risks.training_risk
    return bound.empirical


def _entry(bound: RiskBound, origin: float) -> Entry:
    confidence = -math.log(bound.delta)
    nats = max(("complexity", bound.complexity), ("confidence", confidence), key=lambda t: t[1])
    dominant = f"{nats[0]} ({nats[1]:.0f} nats)"

    def story(samples: float) -> str:
        conditions = "; ".join(condition.text for condition in bound.conditions)
        split = ", ".join(f"{name} {share:.3g}" for name, share in bound.shares)
        return (
            f"risk at most {bound.bound:.3g}, empirical {bound.empirical:.3g} on n = {bound.n}; "
            f"delta = {bound.delta:g}: {split}; largest: {dominant}; if {conditions}; "
            f"{'vacuous here, ' if bound.vacuous else ''}non-vacuous from n = {samples:.3g}"
        )

    return Entry(
        bound.name,
        rademacher=math.nan,
        gap=bound.bound - origin,
        trivial=bound.trivial - origin,
        is_bound=True,
        constants="explicit",
        log10_samples=math.nan,
        complexity=math.nan,
        confidence=math.nan,
        union=0.0,
        union_cost=bound.complexity,
        dominant=dominant,
        search=lambda: bound.samples_until_nonvacuous,
        story=story,
    )
