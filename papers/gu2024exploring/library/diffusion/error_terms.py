r"""The errors of Claim G.1 of gu2024exploring along kernel regression, on fresh points.

The error of a network is at most four terms: coupling (network against kernel regression), label
mismatch (regression on labels against that on pseudo-labels f_H + noise), early stopping (that
regression against f_H) and approximation (f_H against the true label f_*). Here f_H is an element
of the RKHS, and the noise is that of the labels, x(0) - f_*. Regression is linear, so that the
third term is the sum of a bias (regression on f_H against f_H) and of the regression on the noise.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from gu2024exploring.library.bounds.gu2024_score import gu2024_score_error
from gu2024exploring.library.data.diffusion_pairs import DiffusionPairs, PairScale
from gu2024exploring.library.diffusion.score_paths import held_out_errors, mean_square
from gu2024exploring.library.kernels.regression_flow import RegressionFlow, regression_flow
from gu2024exploring.library.kernels.softmax_network_limit import softmax_ntk_limit

TERMS = ("coupling", "mismatch", "early", "approximation")


class RkhsFunction(NamedTuple):
    """f_H: kernel regression on the true labels of a reference set, stopped.

    Attributes:
        inputs: encoded reference pairs.
        flow: the regression, decomposed; its targets are in the units of the data.
        time: stopping time.
        sigma: standard deviation of the first layer, of infinite width.
        squared_norm: R_H, the squared norm in the RKHS for labels over the scale.
    """

    scale: PairScale
    inputs: Float[Array, "n e"]
    flow: RegressionFlow
    time: float
    sigma: float
    squared_norm: float

    def values(self, pairs: DiffusionPairs) -> Float[np.ndarray, "n2 d"]:
        """f_H at the points of pairs.

        Returns:
            Values in the units of the data.
        """
        cross = _kernel(self.scale.encode_all(pairs.t, pairs.x), self.inputs, self.sigma)
        return self.flow.test(cross, np.array([self.time]))[0]


def rkhs_function(
    reference: DiffusionPairs, validation: DiffusionPairs, scale: PairScale, *, sigma: float = 1.0
) -> RkhsFunction:
    """The element of the RKHS that a regression on true labels finds.

    Args:
        reference: pairs with true labels, independent of the training set.
        validation: pairs with true labels, on which its error is least where it stops.

    Examples:
        >>> import jax.numpy as jnp
        >>> one = jnp.ones((1, 1))
        >>> pairs = DiffusionPairs(jnp.zeros(1), one, one, 2 * one)
        >>> result = rkhs_function(pairs, pairs, PairScale())
        >>> result.values(pairs).round(6).tolist()
        [[2.0]]
        >>> unit = jnp.array([[0.0, 1.0]])  # f_H = 2 K(., z) / K(z, z) at z = (0, 1)
        >>> round(result.squared_norm * softmax_ntk_limit(unit, unit, 1.0).item(), 6)
        4.0
    """
    inputs, truth = scale.encode_all(reference.t, reference.x), np.asarray(reference.truth)
    K = _kernel(inputs, inputs, sigma)
    flow = regression_flow(K, truth)
    times = np.geomspace(1, 1e8, 25) / flow.eigenvalues[-1]
    cross = _kernel(scale.encode_all(validation.t, validation.x), inputs, sigma)
    away = mean_square(flow.test(cross, times) - np.asarray(validation.truth))
    time = float(times[np.argmin(away)])
    rows = flow.test(np.eye(len(K)), np.array([time]))[0]
    squared = float(np.einsum("ik,ij,jk->", rows, K, rows)) / float(scale.labels) ** 2
    return RkhsFunction(scale, inputs, flow, time, sigma, squared)


class RegressionTerms(NamedTuple):
    """Kernel regression on noisy labels along training, and its terms of Claim G.1.

    Attributes:
        largest: eigenvalue of the kernel.
        smallest: eigenvalue, at least the level of rounding.
        predicted: estimates of the clean data of the held-out pairs.
        early: term of early stopping.
        bias: regression on f_H against f_H.
        noise: regression on the noise of the labels.
    """

    largest: Float[np.ndarray, "*n"]
    smallest: Float[np.ndarray, "*n"]
    predicted: Float[np.ndarray, "*n s n2 d"]
    mismatch: Float[np.ndarray, "*n s"]
    early: Float[np.ndarray, "*n s"]
    bias: Float[np.ndarray, "*n s"]
    noise: Float[np.ndarray, "*n s"]

    @property
    def balanced(self) -> Int[np.ndarray, "*n"]:
        """The record at which the noise first reaches the bias; the last where it never does."""
        crossed = self.noise >= self.bias
        last = crossed.shape[-1] - 1
        return np.asarray(np.where(crossed.any(axis=-1), crossed.argmax(axis=-1), last))


def regression_terms(
    f_H: RkhsFunction,
    train: DiffusionPairs,
    held_out: DiffusionPairs,
    steps: Sequence[float | int] | np.ndarray,
    *,
    share: float = 0.9,
    validation: int = 0,
) -> RegressionTerms:
    """Follow kernel regression on labels, on f_H and on the noise at once.

    Args:
        train: pairs with true labels.
        share: step size times the largest eigenvalue.
        validation: number of held-out pairs, the first ones, that the terms leave out.

    Returns:
        The terms at each step, means over the other held-out pairs.

    Examples:
        >>> import jax.numpy as jnp
        >>> one = jnp.ones((1, 1))
        >>> pairs = DiffusionPairs(jnp.zeros(1), one, 3 * one, 2 * one)
        >>> f_H = rkhs_function(pairs, pairs, PairScale())
        >>> result = regression_terms(f_H, pairs, pairs, [0, 1], share=0.5)
        >>> result.predicted.ravel().tolist(), result.noise.round(6).tolist()
        ([0.0, 1.5], [0.0, 0.25])
        >>> result.bias.round(6).tolist(), result.early.round(6).tolist()
        ([4.0, 1.0], [4.0, 0.25])
    """
    inputs = f_H.scale.encode_all(train.t, train.x)
    labels = np.asarray(train.labels)
    columns = [labels, f_H.values(train), labels - np.asarray(train.truth)]
    flow = regression_flow(_kernel(inputs, inputs, f_H.sigma), np.concatenate(columns, axis=1))
    largest = flow.eigenvalues[-1]
    cross = _kernel(f_H.scale.encode_all(held_out.t, held_out.x), inputs, f_H.sigma)
    outputs = flow.test(cross, np.asarray(steps, float), share / largest)
    predicted = outputs[..., : labels.shape[1]]
    on_labels, pseudo, noise = np.split(outputs[:, validation:], 3, axis=2)
    target = f_H.values(held_out)[validation:]
    return RegressionTerms(
        np.asarray(largest),
        np.asarray(np.maximum(flow.eigenvalues[0], len(inputs) * np.finfo(float).eps * largest)),
        predicted,
        mean_square(on_labels - pseudo - noise),
        mean_square(pseudo + noise - target),
        mean_square(pseudo - target),
        mean_square(noise),
    )


def _kernel(X: Array, Z: Array, sigma: float) -> np.ndarray:
    return np.asarray(softmax_ntk_limit(X, Z, sigma))


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
