"""Samples by several estimates of a score, from the same noise and by one program."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gu2024exploring.library.data.noise_schedule import NoiseSchedule
from gu2024exploring.library.diffusion.mixture_estimator import Estimator
from gu2024exploring.library.diffusion.reverse_diffusion import sample


def sample_each(
    estimators: Sequence[Estimator],
    schedule: NoiseSchedule,
    key: PRNGKeyArray,
    n: int,
    d: int,
    *,
    steps: int,
    T0: float,
    denoise: bool = False,
) -> Float[np.ndarray, "k n d"]:
    """Sample by the backward SDE with each estimate in turn.

    All samplers share one compiled program with a branch for each kind of estimate: those of one
    structure and one shape differ by their numbers alone. They share their noise, too.

    Args:
        T0: time at which to stop, above 0.
        denoise: end with the estimate of the clean data at T0.

    Returns:
        Samples by estimator; not finite where one overflowed.

    Examples:
        >>> from gu2024exploring.library.data.gaussian_mixtures import make_gaussian_mixture
        >>> from gu2024exploring.library.data.noise_schedule import make_noise_schedule
        >>> from gu2024exploring.library.diffusion.mixture_estimator import MixtureEstimator
        >>> schedule = make_noise_schedule(1.0, T=4.0)
        >>> laws = [make_gaussian_mixture([1.0], [[mean]], [1e-6]) for mean in (1.0, 3.0)]
        >>> result = sample_each([MixtureEstimator(law, schedule) for law in laws], schedule,
        ...                     jax.random.key(0), 4, 1, steps=8, T0=0.01, denoise=True)
        >>> result.mean(axis=(1, 2)).round(2).tolist()
        [1.0, 3.0]
    """
    kinds: dict[Any, Estimator] = {}
    for estimator in estimators:
        kinds.setdefault(_kind(estimator), estimator)
    samples = []
    for estimator in estimators:
        kind = _kind(estimator)
        branches = tuple({**kinds, kind: estimator}.values())
        branch = jnp.asarray(list(kinds).index(kind))
        done = sample(
            _score, schedule, key, n, d, args=(schedule, branch, branches), steps=steps, T0=T0
        )
        points = done.value
        if denoise:
            points = _denoised(jnp.asarray(points), jnp.asarray(T0), branch, branches)
        samples.append(np.asarray(points))
    return np.stack(samples)


def _kind(estimator: Estimator) -> Any:
    """Structure and shapes: what a compiled branch depends on."""
    leaves, tree = jax.tree.flatten(estimator)
    return tree, tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)


def _score(
    t: Array, x: Array, schedule: NoiseSchedule, branch: Array, branches: Sequence[Estimator]
) -> Array:
    return jax.lax.switch(
        branch, [partial(estimator.score, schedule, t, x) for estimator in branches]
    )


@eqx.filter_jit
def _denoised(points: Array, t: Array, branch: Array, branches: Sequence[Estimator]) -> Array:
    def denoised(x: Array) -> Array:
        return jax.lax.switch(branch, [partial(estimator.predict, t, x) for estimator in branches])

    return jax.vmap(denoised)(points)
