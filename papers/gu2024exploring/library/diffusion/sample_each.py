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
        >>> found = sample_each([MixtureEstimator(law, schedule) for law in laws], schedule,
        ...                     jax.random.key(0), 4, 1, steps=8, T0=0.01, denoise=True)
        >>> found.mean(axis=(1, 2)).round(2).tolist()
        [1.0, 3.0]
    """
    kinds: dict[Any, Estimator] = {}
    for each in estimators:
        kinds.setdefault(_kind(each), each)
    found = []
    for each in estimators:
        own = _kind(each)
        branches = tuple({**kinds, own: each}.values())
        branch = jnp.asarray(list(kinds).index(own))
        done = sample(
            _score, schedule, key, n, d, args=(schedule, branch, branches), steps=steps, T0=T0
        )
        points = done.value
        if denoise:
            points = _denoised(jnp.asarray(points), jnp.asarray(T0), branch, branches)
        found.append(np.asarray(points))
    return np.stack(found)


def _kind(estimator: Estimator) -> Any:
    """Structure and shapes: what a compiled branch depends on."""
    leaves, tree = jax.tree.flatten(estimator)
    return tree, tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)


def _score(
    t: Array, x: Array, schedule: NoiseSchedule, branch: Array, branches: Sequence[Estimator]
) -> Array:
    return jax.lax.switch(branch, [partial(each.score, schedule, t, x) for each in branches])


@eqx.filter_jit
def _denoised(points: Array, t: Array, branch: Array, branches: Sequence[Estimator]) -> Array:
    def one(x: Array) -> Array:
        return jax.lax.switch(branch, [partial(each.predict, t, x) for each in branches])

    return jax.vmap(one)(points)
