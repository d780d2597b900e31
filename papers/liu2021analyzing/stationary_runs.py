r"""Stationary points of the empirical risk of two-layer networks, followed from the population's.

x is uniform on 24 points, so that population errors are sums and a sample is known by its counts:
with c_k of n draws at point k and their mean target Y_k the empirical risk is, up to a constant,

    (1/2n) sum_k c_k (h(x_k) - Y_k)^2,

and a fit costs the same at every n. The output has a free bias, which is eliminated: without one
no ReLU network meets (A1.3), E h = 0 for all weights. Teachers have two units. Three cases:

* attention: teacher and student read x o f(x), f a softmax scaled to ||f||_2 = 1;
* baseline: both read x / sqrt(p), as in Corollary 1;
* repeated: the attention case, followed from the best single unit, put in twice;
* elsewhere: the attention case, from random weights; most ends are not certified, the others are
  stationary with a large error, where the residual of (A3) is large.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import least_squares
from scipy.special import expit

from attlas._jax.device_arrays import seed_of
from attlas.claims.sampling import shared
from attlas.measures.statistics.loglog_slope import loglog_slope
from attlas.measures.statistics.student_interval import student_interval
from liu2021analyzing.library.measures.stationary_points import stationary_points
from liu2021analyzing.library.models.two_layer import TwoLayer

COUNT = 44
POINTS, INPUTS, UNITS = 24, 3, 2
SIZES = (512, 4096, 32768, 262144)
NOISE = 0.03
SHARPNESS = 2.0
CASES = {"attention": 12, "baseline": 12, "repeated": 3, "elsewhere": 4}
SAMPLES = 8
"""Samples of inputs per size at one direction of noise, where errors are means."""
_LEVEL = 1e-3
"""That one of a case's intervals, one for each teacher and size, misses its mean."""
TOLERANCE = 1e-9


class Teacher(NamedTuple):
    """One teacher, the inputs of its units and where the student's points are followed from."""

    z: np.ndarray
    W: np.ndarray
    w: np.ndarray
    W_start: np.ndarray
    w_start: np.ndarray


def features(z, W):
    """Softplus units of a stack of inputs, on the host."""
    return np.logaddexp(0, SHARPNESS * (z @ W)) / SHARPNESS


def centred(values, weight):
    """What is left of outputs when the best bias is taken off."""
    return values - jnp.sum(weight * values)


def risk(theta, z, weight, target):
    """Half the weighted square error with the best bias."""
    network = TwoLayer(*theta, sharpness=SHARPNESS)
    u = centred(jax.vmap(network)(z) - target, weight)
    return jnp.sum(weight * u**2) / 2


def weights(draws, x, size=1.0):
    """A softmax of a random linear map of a size, scaled to Euclidean norm one."""
    logits = size * (x @ draws.normal(size=(INPUTS, INPUTS))) / np.abs(x).max()
    shares = np.exp(logits - logits.max(1, keepdims=True))
    return shares / np.linalg.norm(shares, axis=1, keepdims=True)


def _teacher(draws, case):
    x = draws.uniform(-2, 2, (POINTS, INPUTS))
    z = x * (np.full(x.shape, INPUTS**-0.5) if case == "baseline" else weights(draws, x))
    directions = np.linalg.qr(draws.normal(size=(INPUTS, UNITS)))[0]
    W, w = directions * draws.uniform(1.5, 2.5, UNITS), draws.uniform(1, 2, UNITS)
    if case == "elsewhere":
        return Teacher(z, W, w, W + draws.normal(size=W.shape), w + draws.normal(size=w.shape))
    if case != "repeated":
        return Teacher(z, W, w, W, w)
    unit, size = single_unit(z, features(z, W) @ w, W.mean(1), w.sum())
    return Teacher(z, W, w, np.stack([unit, unit], 1), np.array([size, size]) / 2)


def single_unit(z, target, w1, w2):
    """The best network of one unit on the whole population, by least squares."""

    def left(theta):
        u = features(z, theta[:-1]) * theta[-1] - target
        return u - u.mean()

    def slope(theta):
        inner = theta[-1] * expit(SHARPNESS * (z @ theta[:-1]))
        rows = np.column_stack([inner[:, None] * z, features(z, theta[:-1])])
        return rows - rows.mean(0)

    # The stubs of scipy know names of differences only for the Jacobian.
    tight: dict[str, Any] = {"jac": slope, "xtol": 1e-12, "ftol": 1e-15, "gtol": 1e-12}
    solution = least_squares(left, np.append(w1, w2), max_nfev=200, **tight).x
    return solution[:-1], solution[-1]


class Fits(NamedTuple):
    """Stationary points, all with axes case and teacher, size, run."""

    teachers: dict[str, list[Teacher]]
    points: dict[str, tuple[np.ndarray, np.ndarray]]
    errors: dict[str, np.ndarray]
    residuals: dict[str, np.ndarray]
    slopes: dict[str, np.ndarray]
    certified: dict[str, np.ndarray]


@shared
def fits(key, count):
    """Stationary points of all cases, each run with its own direction of noise."""
    return _fits(key, count, CASES)


@shared
def fits_of_one_noise(key, count):
    """Stationary points of samples that share the direction of their teacher's noise."""
    cases = dict.fromkeys(("attention", "baseline", "repeated"), SAMPLES)
    return _fits(key, count, cases, one_noise=True)


def _fits(key, count, cases, *, one_noise=False):
    """All stationary points, with their population errors, in one program."""
    seed = seed_of(key)
    draws, apart = np.random.default_rng(seed), np.random.default_rng([*seed, 1])
    generators = {case: apart if case == "elsewhere" else draws for case in cases}
    teachers = {case: [_teacher(generators[case], case) for _ in range(count)] for case in cases}
    rows = []
    for case, runs in cases.items():
        for teacher in teachers[case]:
            clean = features(teacher.z, teacher.W) @ teacher.w
            # A run keeps the direction of its noise at all sizes, so that its errors compare.
            directions = draws.normal(size=(1 if one_noise else runs, POINTS))
            directions = np.tile(directions, (len(SIZES) * runs // len(directions), 1))
            for n, z in zip(np.repeat(SIZES, runs), directions, strict=True):
                counts = draws.multinomial(n, np.full(POINTS, 1 / POINTS))
                # The mean of no draws is not used: its weight is zero.
                noise = z * NOISE / np.sqrt(np.maximum(counts, 1))
                start = teacher.W_start, teacher.w_start
                truth = clean, teacher.W, teacher.w
                rows.append((teacher.z, counts / n, clean + noise, *start, *truth))
    z, weight, target, W, w, clean, *truths = (np.stack(part) for part in zip(*rows, strict=True))
    points = stationary_points(
        risk,
        tuple(jax.device_put([W, w])),
        *jax.device_put([z, weight, target]),
        in_axes=(0, 0, 0),
        tolerance=TOLERANCE,
        max_steps=40,
    )
    W, w = (np.asarray(part) for part in points.value)
    h = np.einsum("knd,kd->kn", features(z, W), w)
    u = h - clean - np.sum(weight * (h - target), axis=1, keepdims=True)
    left, slope = residual(z, W, *truths), gradient_norm(z, weight, target, W, w)
    # The search's gradient and the one written out are each off by its rounding.
    rounding = gradient_rounding(z, weight, target, W, w)
    sure = np.asarray(points.certificate["gradient_norm"]) + 2 * rounding <= TOLERANCE
    arrays = (W, w, np.mean(u**2, axis=1), left, slope, sure)
    W, w, *numbers = (_by_case(part, count, cases) for part in arrays)
    return Fits(teachers, {case: (W[case], w[case]) for case in cases}, *numbers)


def residual(z, W, W_t, w_t):
    """C_2^2 times the left side of (A3): what the features leave of the teacher's, on the host."""
    phi, phis = (f - f.mean(1, keepdims=True) for f in (features(z, W), features(z, W_t)))
    gram = np.swapaxes(phi, 1, 2) @ phi
    fit = np.linalg.pinv(gram, rcond=1e-12, hermitian=True) @ np.swapaxes(phi, 1, 2) @ phis
    left = phis - phi @ fit
    largest = np.linalg.eigvalsh(np.swapaxes(left, 1, 2) @ left / POINTS)[:, -1]
    return np.sum(w_t**2, axis=1) * largest


def gradient_norm(z, weight, target, W, w):
    """Norm of the gradient of the risk, written out."""
    u = np.einsum("knd,kd->kn", features(z, W), w) - target
    u = weight * (u - np.sum(weight * u, axis=1, keepdims=True))
    on = w[:, None, :] * expit(SHARPNESS * (z @ W))
    first = np.einsum("kn,knp,knd->kpd", u, z, on)
    second = np.einsum("kn,knd->kd", u, features(z, W))
    return np.sqrt(np.sum(first**2, axis=(1, 2)) + np.sum(second**2, axis=1))


def gradient_rounding(z, weight, target, W, w):
    """Largest rounding of that norm: a unit is off by one of its inner product, a sum by its terms.

    Output weights in the thousands, on units that are nearly linear, cancel: 1e-11 and more.
    """
    unit = POINTS * np.finfo(float).eps
    inner, slope = np.abs(z) @ np.abs(W), np.abs(w[:, None, :]) * expit(SHARPNESS * (z @ W))
    phi = features(z, W)
    terms = np.einsum("knd,kd->kn", phi, np.abs(w)) + np.abs(target)
    u = terms + np.einsum("knd,knd->kn", slope, inner)
    u = weight * (u + np.sum(weight * u, axis=1, keepdims=True))
    first = np.einsum("kn,knp,knd->kpd", u, np.abs(z), slope * (1 + inner))
    second = np.einsum("kn,knd->kd", u, phi + inner)
    return unit * np.sqrt(np.sum(first**2, axis=(1, 2)) + np.sum(second**2, axis=1))


def _by_case(rows, count, cases):
    """The rows of the one program, by case, teacher, size and run."""
    split, done = {}, 0
    for case, runs in cases.items():
        end = done + count * len(SIZES) * runs
        split[case] = rows[done:end].reshape(count, len(SIZES), runs, *rows.shape[1:])
        done = end
    return split


def curves(key, count):
    """Mean errors of the certified points at each size, and intervals of their slopes."""
    runs = fits(key, count)
    batch = {"sizes": np.tile(np.asarray(SIZES, float), (count, 1))}
    for case in CASES:
        error, sure = runs.errors[case], runs.certified[case]
        number = sure.sum(-1)
        batch[f"{case}_certified"] = number
        mean = np.sum(np.where(sure, error, 0), -1) / np.maximum(number, 1)
        batch[f"{case}_error"] = np.where(number > 0, mean, 1.0)
        # The largest of (A3) at the points of a size.
        batch[f"{case}_residual"] = np.max(np.where(sure, runs.residuals[case], 0), -1)
        batch[f"{case}_slope"] = np.asarray(
            [
                _slope(error[c], sure[c], key) if number[c].min() else (0.0,) * 3
                for c in range(count)
            ]
        )
    return batch


def means(key, count):
    """Mean errors at each size over samples at one direction of noise, with Student's intervals."""
    runs = fits_of_one_noise(key, count)
    batch = {"sizes": np.tile(np.asarray(SIZES, float), (count, 1))}
    for case, errors in runs.errors.items():
        level = _LEVEL / (count * len(SIZES))
        interval = student_interval(np.moveaxis(errors, -1, 0), confidence=1 - level)
        batch[f"{case}_error"], batch[f"{case}_width"] = interval
        batch[f"{case}_certified"] = np.all(runs.certified[case], axis=-1)
        batch[f"{case}_residual"] = np.max(runs.residuals[case], axis=-1)
    return batch


def _slope(error, sure, key):
    """The slope and its bootstrap interval; a point with one run per size."""
    runs = [error[k][sure[k]] for k in range(len(SIZES))]
    fit = loglog_slope(SIZES, runs, key, samples=500)
    ends = (fit.low, fit.high) if np.isfinite(fit.low) else (fit.slope, fit.slope)
    return fit.slope, *ends
