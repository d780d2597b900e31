r"""Concentration, conditional variance and flatness of one head along its training."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.losses.logistic import logistic
from attlas.measures.attention.concentration import concentration
from attlas.measures.curvature.exact_spectrum import hessian_spectra
from attlas.models.attention.multi_head import MultiHead
from liu2021analyzing.library.audit.single_head_path import HeadPath
from liu2021analyzing.library.measures.attention_hessian import attention_risk_hessian
from liu2021analyzing.library.measures.conditional_covariance import conditional_covariance
from liu2021analyzing.library.measures.orbit_flatness import orbit_curvature


class HeadLandscape(NamedTuple):
    """Measurements with axes [e, s], unless stated.

    Attributes:
        s0: mean over rows of the number of weights that hold all but tau of the l2 norm.
        top: mean l2 norm of the floor(sqrt(T)) largest weights.
        relative_top: the same over the norm of the row.
        unexplained: largest eigenvalue of the variance of the labels' two units given the
            head's, regressed on one half of the fresh samples and judged on the other, over
            that of the units themselves; 0 where the labels of the first half are all equal.
        smallest: smallest eigenvalue of the covariance of the head's two units.
        curvature: largest eigenvalue of the Hessian of the training risk.
        orbit: the same in (u, w) of f = w u' X' a, at the last record, [e, a].
    """

    s0: np.ndarray
    top: np.ndarray
    relative_top: np.ndarray
    unexplained: np.ndarray
    smallest: np.ndarray
    curvature: np.ndarray
    orbit: np.ndarray


def head_landscape(
    path: MultiHead,
    seen: HeadPath,
    X: Float[np.ndarray, "e n T d"],
    y: Float[np.ndarray, "e n"],
    fresh_y: Float[np.ndarray, "e N"],
    *,
    tau: float,
    alphas: Float[np.ndarray, " a"],
) -> HeadLandscape:
    r"""Concentration, conditional variance and curvature of recorded heads.

    The hidden units are max(0, +-f). The orbit is T_alpha: first layer +-u times alpha.

    Args:
        path: heads that read the last token, axes [e, s] before those of the parameters.
        seen: `single_head_path` of each.
        y: labels, -1 or 1.
        alphas: positive scales of the orbit.

    Source: (A3), (A4), experiment 1 and Theorem 5 of liu2021analyzing.

    Examples:
        >>> from liu2021analyzing.library.audit.single_head_path import single_head_path
        >>> from attlas.models.attention.multi_head import Decoder
        >>> head = MultiHead(jnp.ones((1, 1)), jnp.zeros((1, 1, 1)), Decoder.LAST)
        >>> path = jax.tree.map(lambda a: a[None, None], head)
        >>> X, y = np.array([[[[3.0], [1.0]], [[-1.0], [-3.0]]]]), np.array([[1.0, -1.0]])
        >>> data = [jnp.asarray(a) for a in (X, y, X, y)]
        >>> seen = jax.vmap(single_head_path)(path, *data)
        >>> found = head_landscape(path, seen, X, y, y, tau=0.1, alphas=np.ones(1))
        >>> found.s0.tolist(), found.relative_top.round(3).tolist()
        ([[2.0]], [[0.707]])
    """
    shape, rows = seen.outputs.shape[:2], np.asarray(seen.attention)
    held = concentration(rows.reshape(-1, rows.shape[-1]), taus=(tau,))
    columns = (held.s0[:, 0], held.top_norm, held.relative_top_norm)
    host = jax.tree.map(np.asarray, path)
    flat = jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), host)
    many = (np.repeat(a, shape[1], axis=0) for a in (X, y))
    spectra = hessian_spectra(
        _risk, flat, *many, in_axes=(0, 0), hessian=attention_risk_hessian
    ).unwrap()
    s0, top, relative = (a.reshape(*shape, -1).mean(axis=-1) for a in columns)
    unexplained, smallest = _units(np.asarray(seen.outputs), fresh_y)
    return HeadLandscape(
        s0=s0,
        top=top,
        relative_top=relative,
        unexplained=unexplained,
        smallest=smallest,
        curvature=spectra[:, -1].reshape(shape),
        orbit=_orbits(host.U[:, -1, 0], _mixed(host.W[:, -1, 0], X), y, alphas),
    )


def _orbits(u: np.ndarray, mixed: np.ndarray, y: np.ndarray, alphas: np.ndarray) -> np.ndarray:
    """Curvature along the orbit of each head, with its attention held fixed."""
    readout = jax.device_put(np.ones(1, u.dtype))
    curvatures = [
        orbit_curvature(_orbit_risk, jax.device_put(decoder), readout, alphas, Z, sign).unwrap()
        for decoder, Z, sign in zip(u, mixed, y, strict=True)
    ]
    return np.stack(curvatures)


def _risk(model: MultiHead, X: Array, y: Array) -> Array:
    return jnp.mean(logistic(y * jax.vmap(model)(X)))


def _orbit_risk(u: Array, w: Array, Z: Array, y: Array) -> Array:
    """The risk with fixed attention: f = w u' z, z the attended token."""
    return jnp.mean(logistic(y * (w[0] * (Z @ u))))


def _mixed(W: np.ndarray, X: np.ndarray) -> np.ndarray:
    """The attended tokens of the last query."""
    logits = np.einsum("end,edf,entf->ent", X[:, :, -1], W, X)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.einsum("ent,entd->end", weights / weights.sum(axis=-1, keepdims=True), X)


def _units(outputs: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Conditional variance on fresh halves, and the least variance of the head's own units."""
    left, least = np.zeros(outputs.shape[:2]), np.zeros(outputs.shape[:2])
    half = y.shape[1] // 2
    for e, s in np.ndindex(left.shape):
        units, labels = (
            np.stack([np.maximum(a, 0), np.maximum(-a, 0)], axis=1) for a in (outputs[e, s], y[e])
        )
        halves = (labels[:half], units[:half], labels[half : 2 * half], units[half : 2 * half])
        target, regressors, *fresh = (jax.device_put(part) for part in halves)
        regression = conditional_covariance(target, regressors, (fresh[0], fresh[1]))
        scale = float(regression.unconditional)
        left[e, s] = float(regression.largest) / scale if scale > 0 else 0.0
        least[e, s] = np.linalg.eigvalsh(np.cov(units.T, bias=True))[0]
    return left, least
