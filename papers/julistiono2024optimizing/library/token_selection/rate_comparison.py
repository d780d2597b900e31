"""How the divergence of long paths falls, beside the printed rate of julistiono2024optimizing."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from julistiono2024optimizing.library.measures.path_exponents import (
    PathExponents,
    end_gap,
    entry_times,
    interpolated,
    path_exponents,
)
from julistiono2024optimizing.library.token_selection.julistiono2024_rate import julistiono2024_rate
from julistiono2024optimizing.library.token_selection.long_paths import LongPaths

GUIDE_POINTS = 30


class RateComparison(NamedTuple):
    """Fits on plain steps and on the flow, and how far the paths are apart; e problems.

    Attributes:
        exponents: `PathExponents` between the ends of each range.
        entered: log k from which the flow stays in the printed cone.
        norm_gap: relative difference of the finer flow from plain steps at their last one.
        divergence_gap: relative difference of the divergences there.
        clock_reach: norm that both clocks of the flow reach.
        clock_log_k: log k on each of them at that norm.
        guide_norm: norms at which the next two are given.
        guide_printed: the printed rate through the median at the first of them.
        guide_power: the power -min(2, 2 (p - 1)) through the same.
    """

    exponents: Float[np.ndarray, "two four e"]
    entered: Float[np.ndarray, " e"]
    norm_gap: Float[np.ndarray, " e"]
    divergence_gap: Float[np.ndarray, " e"]
    clock_reach: float
    clock_log_k: Float[np.ndarray, "two e"]
    guide_norm: Float[np.ndarray, " g"]
    guide_printed: Float[np.ndarray, " g"]
    guide_power: Float[np.ndarray, " g"]


EXPONENTS = PathExponents._fields
"""Names of the second axis of `RateComparison.exponents`."""


def compare_with_rate(
    paths: LongPaths, p: float, ranges: Sequence[tuple[float, float]], last_norm: float
) -> RateComparison:
    """Exponents beside the printed ones, entry into the cone, and how far the paths are apart.

    Args:
        paths: plain steps, the flow, and the flow on a finer clock.
        ranges: log k between which plain steps, then the flow, are fitted.
        last_norm: norm at which the guides end.
    """
    log_k, norm, D = paths.log_k, paths.norm, paths.divergence
    rate = partial(julistiono2024_rate, p=p)
    fits = [path_exponents(log_k[k], norm[k], D[k], rate, ends) for k, ends in enumerate(ranges)]
    common_norm = float(np.nanmax(norm[1:], axis=2).min())
    clocks = [interpolated(np.array([common_norm]), norm[k], log_k[k], False)[:, 0] for k in (1, 2)]
    x = np.geomspace(float(paths.svm_norm.mean()) * ranges[1][0], last_norm, GUIDE_POINTS)
    first = np.nanmedian(interpolated(x[:1], norm[1], D[1]))
    return RateComparison(
        exponents=np.array(fits),
        entered=entry_times(log_k[1], D[1], paths.cone_width),
        norm_gap=end_gap(log_k[0], norm[0], log_k[2], norm[2]),
        divergence_gap=end_gap(log_k[0], D[0], log_k[2], D[2]),
        clock_reach=common_norm,
        clock_log_k=np.stack(clocks),
        guide_norm=x,
        guide_printed=first * rate(x) / rate(x)[0],
        guide_power=first * (x / x[0]) ** -min(2.0, 2 * (p - 1)),
    )
