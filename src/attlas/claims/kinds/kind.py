"""The kinds of claims by name, each with the object that decides it."""

from enum import StrEnum
from typing import Self

from attlas.claims.kinds.inequality import Existence, Identity, Inequality
from attlas.claims.kinds.trend import Limit, Rate
from attlas.claims.kinds.trials import Expectation, Probability
from attlas.claims.sides import Rule


class Kind(StrEnum):
    """What sort of statement a claim is; `rule` is the object that decides it.

    Examples:
        >>> Kind("identity").rule.noun, [str(kind) for kind in Kind if kind.rule.scaled]
        ('an identity', ['limit', 'rate'])
    """

    rule: Rule

    def __new__(cls, value: str, rule: Rule) -> Self:
        """A member whose value is its name in records, with the rule beside it."""
        kind = str.__new__(cls, value)
        kind._value_ = value
        kind.rule = rule
        return kind

    IDENTITY = "identity", Identity()
    INEQUALITY = "inequality", Inequality()
    LIMIT = "limit", Limit()
    RATE = "rate", Rate()
    EXISTENCE = "existence", Existence()
    PROBABILITY = "probability", Probability()
    EXPECTATION = "expectation", Expectation()
