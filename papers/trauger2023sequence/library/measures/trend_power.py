r"""How many runs distinguish a quantity that grows as predicted from a constant one."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import special

from attlas.core.argument_validation import validate_record_arguments
from attlas.core.errors import UserError


class TrendPower(NamedTuple):
    """The size of a predicted growth beside the spread of runs.

    Attributes:
        effect: the growth in standard errors of one run a scale.
        low: effect with the largest spread of a 95 % interval.
        high: effect with the smallest spread.
    """

    effect: float
    low: float
    high: float

    def power(self, runs: Float[np.ndarray, " r"]) -> Float[np.ndarray, " r"]:
        """Chance that a two-sided test at level 5 % sees the growth."""
        moved, z = np.sqrt(runs) * self.effect, special.ndtri(0.975)
        return np.asarray(special.ndtr(moved - z) + special.ndtr(-moved - z))

    def limits(self, runs: Float[np.ndarray, " r"]) -> Float[np.ndarray, "3 r"]:
        """The power, and what it is with the largest and the least spread of a 95 % interval.

        Returns:
            Power, lower and upper limit.
        """
        return np.stack([self._replace(effect=effect).power(runs) for effect in self])

    def runs(self, power: float = 0.8) -> tuple[float, float, float]:
        """Runs per scale that a power requires, and the limits from the spread's interval.

        Args:
            power: probability of detection, in (0.05, 1).

        Returns:
            The number with its lower and upper limit, infinite where there is no growth.
        """
        if not 0.05 < power < 1:
            raise UserError(f"power = {power} is not between 0.05 and 1: choose 0.8, for instance")
        z = special.ndtri(0.975) + special.ndtri(power)
        effects = (self.effect, self.high, self.low)
        runs = [float((z / effect) ** 2) if effect > 0 else np.inf for effect in effects]
        return runs[0], runs[1], runs[2]


@validate_record_arguments
def trend_power(
    values: Sequence[Float[np.ndarray, "..."]], growth: Float[np.ndarray, " s"]
) -> TrendPower:
    r"""Power to see a growth of the form mean (1 + g), g = growth / mean(growth) - 1.

    Least squares finds the factor of g from n runs per scale with variance s^2 / (n sum g^2), where
    s^2 is the variance within scales, pooled; the test is normal, the mean taken as it is.

    Args:
        values: the runs measured at some scales, one array per scale.
        growth: predicted growth up to a factor, at the scales of the planned test.

    Returns:
        The power; the effect is 0 where the mean is not positive.

    Raises:
        UserError: if no scale has two runs, or the growth is not positive.

    Examples:
        >>> result = trend_power([np.array([0.9, 1.1]), np.array([1.0, 1.2])], np.array([1.0, 1.2]))
        >>> f"{result.effect:.3f}", f"{result.runs()[0]:.1f}"
        ('0.955', '8.6')
    """
    freedom = sum(len(run) - 1 for run in values)
    if freedom < 1 or not np.all(growth > 0):
        raise UserError("no scale has two runs, or a growth is not positive: add runs or check it")
    size = np.linalg.norm(growth / growth.mean() - 1)
    spread = np.sqrt(sum(((run - run.mean()) ** 2).sum() for run in values) / freedom)
    mean = max(float(np.concatenate(list(values)).mean()), 0.0)
    effect = float(mean * size / spread) if spread > 0 else np.inf
    low, high = np.sqrt(2 * special.gammaincinv(freedom / 2, [0.025, 0.975]) / freedom)
    return TrendPower(effect, effect * float(low), effect * float(high))
