r"""Sampling by time reversal: the backward SDE (4) of gu2024exploring, and its flow without noise.

With tau = T - t and any estimate s of the score grad log p_t,
dy = (g/2 y + g s(t, y)) dtau + sqrt(g) dB (SDE), or dy = (g/2 y + g/2 s(t, y)) dtau (the
probability-flow ODE of Song et al., cited in Section 6.1). With the true score both have the law
of x(t) at every time, if they start from it. `sample` takes one score, `sample_estimators` several.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.core.errors import UserError, extra_needed
from attlas.core.solution import Result, Solution
from gu2024exploring.library.data.noise_schedule import NoiseSchedule, require_times
from gu2024exploring.library.diffusion.score_estimation import Estimator

# Of the score, per step.
_EVALUATIONS = {"sde": 2, "ode": 6}


def sample(
    score: Callable[..., Array],
    schedule: NoiseSchedule,
    key: PRNGKeyArray,
    n: int,
    d: int,
    *,
    args: tuple[Any, ...] = (),
    method: str = "sde",
    steps: int = 32,
    T0: float,
    T: float | None = None,
    y_T: Float[Array, "n d"] | None = None,
    chunk: int | None = None,
    dtype: Any = None,
) -> Solution[Float[Array, "n d"]]:
    r"""Points of time T0, from noise at time T.

    Steps are uniform in log((1 - beta^2) / beta^2), so that they shorten towards T0, where the
    score changes fast. The SDE is solved by the stochastic Runge-Kutta method ShARK (two scores a
    step, order 3/2 for this additive noise), the ODE by that of Tsitouras (six per step, order 5).

    Args:
        score: score(t, x, *args) at one point. Parameters belong into `args`, or into a callable
            pytree (an Equinox module): arrays that it closes over are compiled in.
        key: random key; one is split off for each sample, so that chunks change nothing.
        args: further arguments of `score`: pytrees of arrays and numbers.
        method: `sde` or `ode`.
        T0: time at which to stop, above 0.
        T: time at which to start; that of the schedule when None.
        y_T: starting points; standard normal when None.
        chunk: samples at a time, to bound memory; all when None.
        dtype: floating type, that of `y_T` or JAX's default when None.

    Returns:
        The samples. NOT_FINITE where a sample overflowed; nothing bounds the error of the
        discretisation: double `steps` to see it. Stats: `evaluations` of the score per sample.

    Examples:
        >>> from gu2024exploring.library.data.noise_schedule import make_noise_schedule
        >>> schedule = make_noise_schedule(1.0, T=5.0)
        >>> result = sample(lambda t, x: -x, schedule, jax.random.key(0), 3, 2,
        ...                method="ode", steps=4, T0=0.1, y_T=jnp.ones((3, 2)))
        >>> bool(jnp.allclose(result.unwrap(), 1))  # the standard normal law stays as it is
        True
    """
    _require(n, d, steps, chunk, method, y_T)
    times = reverse_times(schedule, steps, T0=T0, T=T)
    start, path = jax.random.split(key)
    y = jax.random.normal(start, (n, d), dtype) if y_T is None else jnp.asarray(y_T, dtype)
    schedule, args = jax.tree.map(_traced, (schedule, args))
    keys, grid = jax.random.split(path, n), jnp.asarray(times, y.dtype)
    samples = _integrate(score, method, schedule, args, grid, keys, y, chunk)
    finite = np.all(np.isfinite(np.asarray(samples)), axis=1)
    result = np.where(finite, Result.CONVERGED.value, Result.NOT_FINITE.value)
    return Solution(samples, result, {}, {"evaluations": steps * _EVALUATIONS[method]})


def _require(n: int, d: int, steps: int, chunk: int | None, method: str, y_T: Array | None) -> None:
    if min(n, d, steps, n if chunk is None else chunk) < 1:
        raise UserError(f"n = {n}, d = {d}, steps = {steps}, chunk = {chunk}: choose at least 1")
    if method not in _EVALUATIONS:
        raise UserError(f"method = '{method}' is unknown: choose {' or '.join(_EVALUATIONS)}")
    if y_T is not None and y_T.shape != (n, d):
        raise UserError(f"y_T has shape {y_T.shape}: give [n, d] = [{n}, {d}]")


def reverse_times(
    schedule: NoiseSchedule, steps: int, *, T0: float, T: float | None = None
) -> np.ndarray:
    r"""Times from T down to T0, uniform in the logarithm of the noise-to-signal ratio.

    Args:
        T0: last time, above 0.
        T: first time; that of the schedule when None.

    Returns:
        Times [steps + 1], decreasing, float64.

    Raises:
        UserError: if not 0 < T0 < T <= T of the schedule.

    Examples:
        >>> from gu2024exploring.library.data.noise_schedule import make_noise_schedule
        >>> schedule = make_noise_schedule(1.0, T=2.0)
        >>> [round(t, 3) for t in reverse_times(schedule, 2, T0=0.01).tolist()]
        [2.0, 0.226, 0.01]
    """
    first = float(schedule.T) if T is None else T
    require_times(schedule, first, 0.0)
    if not 0 < T0 < first:
        raise UserError(f"T0 = {T0}, T = {first}: choose 0 < T0 < T, where the score is bounded")
    g0, slope = float(schedule.start), float(schedule.end - schedule.start) / float(schedule.T)
    ends = np.array([first, T0])
    logs = np.log(np.expm1(ends * (g0 + slope / 2 * ends)))
    integral = np.logaddexp(0, np.linspace(logs[0], logs[1], steps + 1))
    # The root of g0 t + slope t^2 / 2 = integral that has no cancellation.
    times = 2 * integral / (g0 + np.sqrt(np.maximum(g0**2 + 2 * slope * integral, 0)))
    times[0], times[-1] = ends
    return times


def _traced(leaf: Any) -> Any:
    """Python numbers as arrays without a type of their own: new values, same program."""
    return jnp.asarray(leaf) if isinstance(leaf, float) else leaf


@eqx.filter_jit
def _integrate(
    score: Callable[..., Array],
    method: str,
    schedule: NoiseSchedule,
    args: tuple[Any, ...],
    times: Array,
    keys: Array,
    y: Array,
    chunk: int | None,
) -> Array:
    """All samples, at once or in chunks; the diffusion equation runs in tau = T - t."""

    def path(start: tuple[Array, Array]) -> Array:
        return _path(score, method, schedule, args, times, *start)

    if chunk is None:
        return jax.vmap(path)((keys, y))
    return jax.lax.map(path, (keys, y), batch_size=chunk)


def _path(
    score: Callable[..., Array],
    method: str,
    schedule: NoiseSchedule,
    args: tuple[Any, ...],
    times: Array,
    key: Array,
    y: Array,
) -> Array:
    """One sample."""
    with extra_needed("the solver of an SDE", "experiments"):
        import diffrax  # half a second to import, so late
        import lineax

    share = 1.0 if method == "sde" else 0.5

    def drift(tau: Any, y: Any, _: Any) -> Array:
        t = times[0] - tau
        return schedule.rate(t) * (y / 2 + share * score(t, y, *args))

    def diffusion(tau: Any, y: Any, _: Any) -> Any:
        rate = jnp.sqrt(schedule.rate(times[0] - tau))
        return lineax.DiagonalLinearOperator(jnp.broadcast_to(rate, y.shape))

    terms, solver = diffrax.ODETerm(drift), diffrax.Tsit5()
    if method == "sde":
        area = diffrax.SpaceTimeLevyArea
        shape = jax.ShapeDtypeStruct(y.shape, y.dtype)
        noise = diffrax.UnsafeBrownianPath(shape, key, levy_area=area)
        terms = diffrax.MultiTerm(terms, diffrax.ControlTerm(diffusion, noise))
        solver = diffrax.ShARK()
    tau = times[0] - times
    # diffrax mixes types and ranks inside; results keep the type of y.
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        solution = diffrax.diffeqsolve(
            terms,
            solver,
            tau[0],
            tau[-1],
            None,
            y,
            stepsize_controller=diffrax.StepTo(tau),
            adjoint=diffrax.ForwardMode(),
            max_steps=times.shape[0],
            throw=False,
        )
    arrived = solution.result == diffrax.RESULTS.successful
    return jnp.where(arrived, jnp.asarray(solution.ys)[0], jnp.nan)


def sample_estimators(
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
        >>> from gu2024exploring.library.diffusion.score_estimation import MixtureEstimator
        >>> schedule = make_noise_schedule(1.0, T=4.0)
        >>> laws = [make_gaussian_mixture([1.0], [[mean]], [1e-6]) for mean in (1.0, 3.0)]
        >>> result = sample_estimators([MixtureEstimator(law, schedule) for law in laws], schedule,
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
