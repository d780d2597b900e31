"""The errors of Claim G.1 of networks and of kernel regression, along training and at the stop."""

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from gu2024exploring.library.bounds.gu2024_score import gu2024_score_error
from gu2024exploring.library.data.diffusion_pairs import DiffusionPairs
from gu2024exploring.library.diffusion.error_terms import TERMS, RegressionTerms, RkhsFunction
from gu2024exploring.library.diffusion.score_paths import held_out_errors, mean_square

LEARNERS = ("network", "NTK")
RULES = (
    "network, noisy labels",
    "NTK, noisy labels",
    "NTK, least true error",
    "noise = bias in $Z_3$",
)
"""When to stop: at the least validation error, the least true error, or in balance."""
_AXES = ("m", "n", "step")


def score_error_dataset(
    f_H: RkhsFunction,
    kernel: RegressionTerms,
    networks: Float[np.ndarray, "m n s n2 d"],
    held_out: DiffusionPairs,
    steps: Float[np.ndarray, " s2"],
    validation: int,
) -> xr.Dataset:
    """Join the terms of regression with the coupling of networks, and stop both.

    Args:
        kernel: its terms, stacked over training sets.
        networks: predictions of networks of several widths for the held-out pairs after each of the
            first s steps.
        held_out: pairs, of which the first are for validation.

    Returns:
        Along the axes m (width), n (training set) and step: `error` by `term`, `true_error` and
        `validation` by `learner`, NaN past a network's last step; `parts` of early stopping; the
        spectrum's ends. At the stop: `stop` by `rule`, the terms where the network stops, and
        true errors where each learner stops.
    """
    shape = (len(networks), *kernel.early.shape)
    short, fresh = networks.shape[2], slice(validation, None)
    network, ntk = (held_out_errors(p, held_out, validation) for p in (networks, kernel.predicted))
    coupling = mean_square((networks - kernel.predicted[:, :short])[..., fresh, :])
    missed = mean_square((f_H.values(held_out) - np.asarray(held_out.truth))[fresh])
    padding = (0, shape[2] - short)

    def joined(of_network: np.ndarray, *of_kernel: np.ndarray) -> np.ndarray:
        padded = np.pad(of_network, ((0, 0), (0, 0), padding), constant_values=np.nan)
        return np.stack([padded, *(np.broadcast_to(a, shape) for a in of_kernel)])

    errors = xr.Dataset(
        {
            "error": (("term", *_AXES), joined(coupling, kernel.mismatch, kernel.early, missed)),
            "true_error": (("learner", *_AXES), joined(network.test, ntk.test)),
            "validation": (("learner", *_AXES), joined(network.validation, ntk.validation)),
            "parts": (("part", *_AXES[1:]), np.stack([kernel.bias, kernel.noise])),
            "largest": ("n", kernel.largest),
            "smallest": ("n", kernel.smallest),
            "squared_norm": f_H.squared_norm,
            "label_scale": float(f_H.scale.labels),
        },
        {
            "term": list(TERMS),
            "learner": list(LEARNERS),
            "part": ["bias", "noise"],
            "step": np.asarray(steps, float),
        },
    )
    rules = (ntk.validation.argmin(axis=-1), ntk.test.argmin(axis=-1), kernel.balanced)
    places = [np.broadcast_to(place, shape[:2]) for place in rules]
    return _stopped(errors, np.stack([network.validation.argmin(axis=-1), *places]))


def score_error_bound(errors: xr.Dataset, d: int, delta: float) -> xr.DataArray:
    """The sum of the terms of Theorem 6.6 at what was measured, for labels of the unit ball.

    Args:
        errors: result of `score_error_dataset`, training sets by their size n.
        delta: probability of failure.

    Returns:
        The sum, the constant in front set to 1, by width and training set.

    Examples:
        >>> early = (("term", "m", "n"), [[[4.0]]])
        >>> result = {"smallest": ("n", [0.1]), "squared_norm": 9.0, "label_scale": 2.0}
        >>> data = xr.Dataset(result | {"error_at_stop": early}, {"term": ["early"], "n": [100]})
        >>> terms = gu2024_score_error(100, 2, 0.1, 0.1, 9.0, 1.0)
        >>> bool(abs(score_error_bound(data, 2, 0.1).item() - sum(terms.values())) < 1e-9)
        True
    """

    @np.vectorize
    def bound(n: Any, smallest: float, squared_norm: float, early: float) -> float:
        terms = gu2024_score_error(int(n), d, smallest, delta, squared_norm, early)
        return float(sum(np.asarray(term) for term in terms.values()))

    early = errors.error_at_stop.sel(term="early", drop=True) / errors.label_scale**2
    return xr.apply_ufunc(bound, errors.n, errors.smallest, errors.squared_norm, early)


def _stopped(errors: xr.Dataset, places: np.ndarray) -> xr.Dataset:
    """The data set with what is found where the rules stop."""
    at = xr.DataArray(places, dims=("rule", "m", "n"))
    at_learner = at[: len(LEARNERS)].rename(rule="learner")
    return errors.assign(
        stop=errors.step[at].drop_vars("step").assign_coords(rule=list(RULES)),
        error_at_stop=errors.error.isel(step=at[0]).drop_vars("step"),
        true_error_at_stop=errors.true_error.isel(step=at_learner).drop_vars("step"),
    )
