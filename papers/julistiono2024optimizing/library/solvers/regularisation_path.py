r"""Regularisation paths of attention: minimisers of the training loss in growing l_p balls.

W(R) = argmin {L(W) : ||W||_{p,p} <= R}, its local version in a cone around a direction, and the
joint path (v, W) in two balls. For token selection the excess of the loss over its limit
decays like exp(-R), so the logarithm of the excess is minimised, computed without cancellation.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.core.errors import UserError
from attlas.core.solution import Result, Solution
from attlas.data.token_selection import TokenSelection, token_scores, validate
from attlas.losses.margin_loss import MarginLoss, margin_loss
from julistiono2024optimizing.library.solvers.ball_minimum import (
    CONE_SLACK,
    BallMinimum,
    Cone,
    ball_minimum,
)

# Gauss-Legendre on [-1, 1]: slopes of margin losses are integrated to rounding over shortfalls up
# to 5, and to 1e-8 over one of 10 (the logistic slope has its poles at +-i pi).
_NODES, _WEIGHTS = (np.polynomial.legendre.leggauss(16)[i] for i in (0, 1))
# Logarithm of a slope below which loss and slope agree to rounding.
_TAIL = -40.0
# Roundings of the objective's sums over samples, tokens and nodes, and of its descent.
_ROUNDINGS = 1000 * np.finfo(float).eps


class LogExcessLoss(eqx.Module):
    r"""log(L(W) - L_*), L_* = mean_i l(max_t gamma_it) the limit of the loss, as function of W.

    With the shortfall e_i = sum_t s_it (max gamma_i - gamma_it) in logarithms, the excess of one
    sample is l(a - e) - l(a) = e int_0^1 -l'(a - e u) du; nothing cancels, and norms R at which
    exp(-R) underflows are no trouble.

    Attributes:
        data: samples and value head.
        loss: a margin loss.

    Examples:
        >>> from attlas.data.token_selection import make_support_selection
        >>> loss = LogExcessLoss(make_support_selection(jax.random.key(0)), margin_loss("logistic"))
        >>> loss(jnp.zeros((4, 4))).shape
        ()
    """

    data: TokenSelection
    loss: MarginLoss

    def __call__(self, W: Float[Array, "d d"]) -> Float[Array, ""]:
        """The logarithm of the excess loss."""
        data = self.data
        scores = token_scores(data)
        best = jnp.max(scores, axis=1)
        attention = jnp.einsum("ntd,nd->nt", data.X, data.z @ W.T)
        weight = jax.nn.log_softmax(attention, axis=1)
        shortfall = jax.nn.logsumexp(weight + jnp.log(best[:, None] - scores), axis=1)
        nodes = jnp.asarray((_NODES + 1) / 2, W.dtype)
        at = best[:, None] - jnp.exp(shortfall)[:, None] * nodes[None, :]
        shares = jnp.log(jnp.asarray(_WEIGHTS / 2, W.dtype))
        slope = jax.nn.logsumexp(self.loss.log_slope(at) + shares[None, :], axis=1)
        return jax.nn.logsumexp(shortfall + slope) - jnp.log(len(best))


class LogJointLoss(eqx.Module):
    r"""log L(v, W) for losses with limit 0 (logistic, exponential), as function of (v, W).

    Below exp(-40) such a loss and its slope agree to rounding, and the slope's logarithm is finite
    where the loss underflows.

    Attributes:
        data: samples; its value head is not used.
        loss: a margin loss with positive values and the tail of an exponential.
    """

    data: TokenSelection
    loss: MarginLoss

    def __call__(self, v: Float[Array, " d"], W: Float[Array, "d d"]) -> Float[Array, ""]:
        """The logarithm of the loss."""
        data = self.data
        attention = jnp.einsum("ntd,nd->nt", data.X, data.z @ W.T)
        mixed = jnp.einsum("nt,ntd->nd", jax.nn.softmax(attention, axis=1), data.X)
        margins = data.y * (mixed @ v)
        slopes = self.loss.log_slope(margins)
        # The other branch gets a margin at which its derivative is finite.
        values = self.loss.value(jnp.where(slopes < _TAIL, 0.0, margins))
        logs = jnp.where(slopes < _TAIL, slopes, jnp.log(values))
        return jax.nn.logsumexp(logs) - jnp.log(len(logs))


def regularisation_path(
    data: TokenSelection,
    radii: list[float] | tuple[float, ...],
    p: float,
    *,
    key: PRNGKeyArray,
    loss: str = "logistic",
    starts: int = 8,
    cone: Cone | None = None,
    tolerance: float = 1e-6,
    max_steps: int = 2000,
) -> Solution[Float[np.ndarray, "r d d"]]:
    r"""The path W(R) of a fixed value head, global or restricted to a cone.

    $$W(R)=\arg\min_{\|W\|_{p,p}\le R}\mathcal L(W)$$

    Sought on the sphere by L-BFGS from random directions, the previous radius' end and the cone's
    centre, in float64 whatever the precision of the data. A bad option raises a `UserError`.

    Args:
        radii: radii R, positive and increasing.
        p: exponent, 1 < p < inf.
        starts: number of random directions tried at every radius.
        cone: restricts W to a cone, for the local path.
        tolerance: largest relative Frank-Wolfe gap.
        max_steps: L-BFGS steps of one descent.

    Returns:
        W(R) for every radius. Certificate, each [r]: `relative_gap` = 1 + <G, W> / (R ||G||_q)
        for the gradient G of the log excess (and of the cone's penalty), `frank_wolfe_gap`,
        `log_excess`, `cone_excess`, `starts_agreeing`. A stationary point is certified; that it
        is the global minimum is only supported by the starts.

    Source: regularisation-path theorems of julistiono2024optimizing.

    Examples:
        >>> from attlas.data.token_selection import make_support_selection
        >>> data = make_support_selection(jax.random.key(0))
        >>> path = regularisation_path(data, [5.0, 10.0], 2.0, key=jax.random.key(1), starts=2)
        >>> [bool(x) for x in path.converged]
        [True, True]
    """
    validate(data)
    _check(radii, p, starts, tolerance)
    with jax.enable_x64(True):
        data, cone = _in_float64(data), _in_float64(cone)
        draws = _directions(key, len(radii), starts, data, cone)
        objective, minima = LogExcessLoss(data, margin_loss(loss)), []
        for k, radius in enumerate(radii):
            tried = [(draw,) for draw in draws[k]]
            tried += [minima[-1].blocks] if minima else []
            tried += [(cone.centre,)] if cone is not None else []
            at = jnp.asarray([radius], draws.dtype)
            minima.append(ball_minimum(objective, tried, at, p, max_steps, cone))
    return _solution(np.stack([end.blocks[0] for end in minima]), minima, tolerance)


def _in_float64(arrays: Any) -> Any:
    return jax.tree.map(lambda array: jnp.asarray(array, jnp.float64), arrays)


def _directions(
    key: PRNGKeyArray, radii: int, starts: int, data: TokenSelection, cone: Cone | None
) -> Float[Array, "r starts d d"]:
    """Random directions; those of a local path lie in the cone: its centre, slightly shaken."""
    d = data.X.shape[-1]
    draws = jax.random.normal(key, (radii, starts, d, d), data.X.dtype)
    if cone is None:
        return draws
    return cone.centre[None, None] + 0.01 * jnp.max(jnp.abs(cone.centre)) * draws


def joint_regularisation_path(
    data: TokenSelection,
    radii: list[tuple[float, float]],
    p: float,
    *,
    key: PRNGKeyArray,
    loss: str = "logistic",
    starts: int = 8,
    tolerance: float = 1e-6,
    max_steps: int = 2000,
) -> Solution[tuple[Float[np.ndarray, "r d"], Float[np.ndarray, "r d d"]]]:
    r"""The joint path of value head and key-query matrix.

    $$(v^{(r)},W^{(R)})=\arg\min_{\|v\|_p\le r,\ \|W\|_{p,p}\le R}\mathcal L(v,W)$$

    Args:
        data: samples; the value head in it is not used.
        radii: pairs (r, R), increasing.
        p: exponent, 1 < p < inf.
        loss: name of a margin loss with positive values.
        starts: number of random directions tried at every radius.
        tolerance: largest relative Frank-Wolfe gap in both blocks.
        max_steps: L-BFGS steps of one descent.

    Returns:
        (v, W) for every pair, with the certificate of `regularisation_path`; `log_excess` is
        log L, whose limit is 0.

    Source: joint regularisation-path theorem of julistiono2024optimizing.

    Examples:
        >>> from attlas.data.token_selection import make_support_selection
        >>> data = make_support_selection(jax.random.key(0))
        >>> joint_regularisation_path(data, [(2.0, 8.0), (1.0, 4.0)], 2.0, key=jax.random.key(1))
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: radii (2.0, 1.0) are not positive and increasing: sort them
    """
    validate(data)
    for pair in zip(*radii, strict=True):
        _check(pair, p, starts, tolerance)
    if loss == "correlation":
        raise UserError("loss 'correlation' has negative values: choose logistic or exponential")
    d = data.X.shape[-1]
    with jax.enable_x64(True):
        head, matrix = jax.random.split(key)
        heads = jax.random.normal(head, (len(radii), starts, d))
        matrices = jax.random.normal(matrix, (len(radii), starts, d, d))
        objective, minima = LogJointLoss(_in_float64(data), margin_loss(loss)), []
        for k, pair in enumerate(radii):
            tried = [(heads[k, i], matrices[k, i]) for i in range(starts)]
            tried += [minima[-1].blocks] if minima else []
            at = jnp.asarray(pair, heads.dtype)
            minima.append(ball_minimum(objective, tried, at, p, max_steps))
    value = tuple(np.stack([end.blocks[i] for end in minima]) for i in range(2))
    return _solution(value, minima, tolerance)


def _check(radii, p: float, starts: int, tolerance: float) -> None:
    if not 1 < p < np.inf:
        raise UserError(f"exponent p = {p} is not in (1, inf): the path needs a smooth ball")
    if len(radii) == 0 or min(radii) <= 0 or any(np.diff(radii) < 0):
        raise UserError(f"radii {tuple(radii)} are not positive and increasing: sort them")
    if starts < 1:
        raise UserError(f"starts = {starts} is below 1: try at least one start")
    if not 0 < tolerance < 1:
        raise UserError(f"tolerance = {tolerance} is not in (0, 1): it is a relative gap")


def _solution(value, minima: list[BallMinimum], tolerance: float) -> Solution:
    gap = np.array([end.relative_gap for end in minima])
    excess = np.array([end.cone_excess for end in minima])
    finite = np.isfinite([end.value for end in minima])
    solved = finite & (gap <= tolerance) & (excess <= CONE_SLACK)
    result = np.where(solved, Result.CONVERGED.value, Result.MAX_STEPS.value)
    # Where attention has saturated, W moves the loss by less than its rounding.
    value_scale = 1 + np.abs([end.value for end in minima])
    lost = np.array([end.frank_wolfe_gap for end in minima]) <= _ROUNDINGS * value_scale
    result = np.where(~solved & lost, Result.GRADIENT_BELOW_ROUNDING.value, result)
    result = np.where(finite, result, Result.NOT_FINITE.value)
    certificate = {
        "relative_gap": gap,
        "frank_wolfe_gap": np.array([end.frank_wolfe_gap for end in minima]),
        "log_excess": np.array([end.value for end in minima]),
        "cone_excess": excess,
        "starts_agreeing": np.array([end.starts_agreeing for end in minima]),
    }
    stats = {"evaluations": np.array([end.evaluations for end in minima])}
    return Solution(value, result, certificate, stats)
