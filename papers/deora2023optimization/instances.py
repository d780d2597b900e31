r"""Instances that the claims of this paper share, and the risk of a model in groups of equal heads.

The paper requires thousands to millions of heads. Here G different heads stand for H = G m of
them, m copies of each (`copies`), so that any H costs the same. Gradient descent keeps copies
equal. In z = sqrt(m) theta_g the directions that move copies alike are measured as they are in
the space of all H heads; the other directions see S_g / sqrt(H) alone, the second derivative
of the model weighted by the slopes of the loss. `data` below holds X, y and copies by name.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from attlas.bounds.optimisation.deora2023_loss import (
    deora2023_beta_1,
    deora2023_beta_2,
    deora2023_beta_3,
)
from attlas.bounds.optimisation.deora2023_model import HeadConstants
from attlas.claims.sampling import six_decades
from attlas.losses.empirical_risk import empirical_risk
from attlas.losses.logistic import logistic_derivative
from attlas.models.attention.multi_head import MultiHead
from attlas.models.attention.multi_head_derivatives import model_gradient, model_hessian

SIZES = (2, 2, 2, 2)
"""Groups G, samples n, tokens T and dimension d of a shared instance, by default."""
EXTREMAL_WEIGHT = np.log((3 - np.sqrt(3)) / (3 + np.sqrt(3))) / 2
"""Key-query weight of opposite unit tokens at which they have the weights (1 -+ 1/sqrt(3)) / 2 of
the largest third moment."""
ROUNDINGS = 512
"""Roundings of a risk, its derivatives and the eigenvalues of a matrix of 16 rows: products of
three 2 x 2 matrices, a softmax, a second derivative (below 128), then a backward stable
eigenvalue (16 rows, a few roundings each)."""


def spread_tokens(rng, *shape):
    """Tokens of Euclidean length 1 in random directions, along the last axis of the shape."""
    gauss = rng.normal(size=shape)
    return gauss / np.linalg.norm(gauss, axis=-1, keepdims=True)


def single_heads(rng, count, tokens=2, d=2):
    """Single heads on one sample, flat and saturated attention, decoders small and large.

    Key-query weights and decoders span six decades.

    In every second instance the second token is the opposite of the first, where the bounds of
    Proposition 1 are tightest; with two tokens the first attains the sharp Hessian bound.
    """
    X = spread_tokens(rng, count, tokens, d) * rng.uniform(1, 2, (count, 1, 1))
    X[::2, 1] = -X[::2, 0]
    size_U = six_decades(rng, (count, 1, 1), -3, 1)
    size_W = six_decades(rng, (count, 1, 1), -1, 1)
    U = rng.normal(size=(count, tokens, d)) * size_U
    W = rng.normal(size=(count, d, d)) * size_W
    if tokens == 2:
        X[0], U[0], W[0] = 0, 0, 0
        X[0, :, 0], U[0, :, 0], W[0, 0, 0] = [1, -1], [1e4, -1e4], EXTREMAL_WEIGHT
    return {"X": X, "U": U, "W": W}


def grouped_heads(rng, count, copies=(2.0, 1e4), sizes=SIZES):
    """Models of G groups of equal heads with n samples of random labels.

    A group has from `copies[0]` >= 2 to `copies[1]` equal heads. Key-query weights span six
    decades, up to a thousand: small ones are hidden by the moves that samplers make from them.
    """
    G, n, T, d = sizes
    low, high = np.log10(copies)
    # Outputs of order 1 keep the logistic loss curved: decoders shrink as copies grow.
    m = np.floor(10 ** rng.uniform(low, high, count))
    size_U = 10 ** rng.uniform(-1, 1, count) / m ** rng.uniform(0, 0.5, count)
    return {
        "X": spread_tokens(rng, count, n, T, d) * rng.uniform(1, 1.5, (count, 1, 1, 1)),
        "y": rng.choice([-1.0, 1.0], size=(count, n)),
        "U": rng.normal(size=(count, G, T, d)) * size_U[:, None, None, None],
        "W": rng.normal(size=(count, G, d, d)) * six_decades(rng, (count, 1, 1, 1), -1, 0.5, 3),
        "copies": m,
    }


def token_bound(X: Float[Array, "*n T d"]) -> Float[Array, ""]:
    """The smallest R of Assumption 1, max(1, max ||x_t||)."""
    return jnp.maximum(jnp.sqrt(jnp.max(jnp.sum(X**2, axis=-1))), 1)


class Betas(NamedTuple):
    """What Corollary 1 has at a largest head: beta_1, beta_2 and beta_3 / sqrt(H)."""

    slope: Array
    smooth: Array
    weak: Array


def betas(data, largest, constants: HeadConstants = "printed") -> Betas:
    """The bounds of Corollary 1 for all H heads; R is stored, or the longest token."""
    (T, d), H = data["X"].shape[-2:], len(data["U"]) * data["copies"]
    R = data["R"] if "R" in data else token_bound(data["X"])
    weak = deora2023_beta_3(T, d, R, largest, constants) / jnp.sqrt(H)
    smooth = deora2023_beta_2(T, d, R, largest, H, constants)
    return Betas(deora2023_beta_1(T, R, largest, constants), smooth, weak)


def largest_head(U: Float[Array, "G T d"], W: Float[Array, "G d d"]) -> Float[Array, ""]:
    """||theta||_{2,inf} = max_h ||theta_h||."""
    squares = jnp.sum(U**2, axis=(1, 2)) + jnp.sum(W**2, axis=(1, 2))
    return jnp.sqrt(jnp.max(squares))


def squared_distance(copies, U: Float[Array, "G T d"], W: Float[Array, "G d d"]):
    """||theta||^2 over all H heads of a difference (U, W), m sum_g ||theta_g||^2."""
    return copies * (jnp.sum(U**2) + jnp.sum(W**2))


def margins(data, U: Float[Array, "G T d"], W: Float[Array, "G d d"]) -> Float[Array, " n"]:
    """The margins y_i Phi(X_i) of the model with all H heads."""
    outputs = jax.vmap(MultiHead(U, W))(data["X"])
    return data["y"] * jnp.sqrt(data["copies"]) * outputs


def risk(data, U: Float[Array, "G T d"], W: Float[Array, "G d d"]) -> Float[Array, ""]:
    """Empirical risk of the model with all H heads."""
    model, scale = MultiHead(U, W), jnp.sqrt(data["copies"])
    return empirical_risk(lambda X: scale * model(X), data["X"], data["y"])


def logistic_derivatives(u):
    """First and second derivative of the logistic loss."""
    return logistic_derivative(u), jax.nn.sigmoid(u) * jax.nn.sigmoid(-u)


def risk_gradient(
    data, U: Float[Array, "G T d"], W: Float[Array, "G d d"], loss=logistic_derivatives
):
    """Gradient of the risk with respect to U_g and W_g of one copy of each group.

    A step of gradient descent on all H heads moves each copy by -eta times this. `loss` gives the
    two derivatives of the loss of a margin.
    """
    slopes = data["y"] * loss(margins(data, U, W))[0] / len(data["y"])
    gradients = jax.vmap(model_gradient, (None, 0))(MultiHead(U, W), data["X"])
    share = jnp.sqrt(data["copies"])
    return jnp.tensordot(slopes, gradients.U, 1) / share, jnp.tensordot(
        slopes, gradients.W, 1
    ) / share


class RiskCurvature(NamedTuple):
    """Smallest and largest eigenvalue of the Hessian of the risk in the space of all H heads."""

    smallest: Float[Array, ""]
    largest: Float[Array, ""]

    @property
    def norm(self) -> Float[Array, ""]:
        """The spectral norm."""
        return jnp.maximum(-self.smallest, self.largest)


def risk_curvature(
    data, U: Float[Array, "G T d"], W: Float[Array, "G d d"], loss=logistic_derivatives
) -> RiskCurvature:
    """Exact extreme eigenvalues of the Hessian of the risk, m >= 2 copies.

    Directions that move copies alike: the full Hessian in z. Copies of a group against each
    other: S_g / sqrt(H), which has the smallest eigenvalue, because the rest of the Hessian,
    the mean of l'' grad grad', is positive semidefinite. Derivatives by Lemma 1 in closed form.
    """
    model, y = MultiHead(U, W), data["y"]
    slopes, bend = (derivative / len(y) for derivative in loss(margins(data, U, W)))
    hessians = jax.vmap(model_hessian, (None, 0))(model, data["X"])
    apart = jnp.tensordot(y * slopes, hessians, axes=1) / jnp.sqrt(data["copies"])
    gradients = jax.vmap(lambda X: ravel_pytree(model_gradient(model, X))[0])(data["X"])
    together = apart + gradients.T @ (bend[:, None] * gradients)
    smallest, largest = jnp.linalg.eigvalsh(apart)[0], jnp.linalg.eigvalsh(together)[-1]
    return RiskCurvature(smallest, largest)
