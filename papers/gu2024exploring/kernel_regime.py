"""The regime of the diffusion bound restated: below the zero function before training begins.

Proof: papers/gu2024exploring/proofs/diffusion.md.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import softmax

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas._jax.device_arrays import on_device
from attlas.claims.claim import Control, Kind, Sides, Status
from attlas.claims.statement import computed
from attlas.models.networks.softmax_network import SoftmaxNetwork
from gu2024exploring.instances import inputs, symmetric_networks
from gu2024exploring.library.bounds.gu2024_regime import gu2024_kernel_regime
from gu2024exploring.library.bounds.gu2024_regression import gu2024_coupling
from gu2024exploring.library.kernels.dense_softmax_ntk import dense_softmax_ntk
from gu2024exploring.library.kernels.regression_flow import regression_flow
from gu2024exploring.library.training.softmax_network_gradient import outputs_and_gradient

_STEPS, _TEST = 60, 12


def _instance(rng, n, m):
    """A network, samples in the plane, a function of the RKHS with values up to 1 on them."""
    networks = symmetric_networks(rng, 1, (2, m, 1, n), trained=True)
    W = networks["W"][0] * min(1.0, 1 / networks["sigma"][0])
    network = SoftmaxNetwork(on_device(W), on_device(networks["a"][0]))
    X, Z = networks["X"][0], inputs(rng, 2, _TEST, 2)[1]
    centre = rng.normal(size=2)
    centre /= np.linalg.norm(centre)
    truth = [(points @ centre) * np.exp(points @ centre - 1) for points in (X, Z)]
    return network, X, Z, *truth


@partial(jax.jit, compiler_options=CHEAP_COMPILATION)
def _observed(network, X, Y, Z, tau):
    """The farthest unit of a descent; R and eps_H; the change of the kernel by a move within R.

    The move of length R shifts attention on the first sample to its heavier units.
    """
    m = network.width
    regime = gu2024_kernel_regime(network, X, Z, jnp.linalg.norm(Y), tau)

    def step(W, _):
        slope = outputs_and_gradient(SoftmaxNetwork(W, network.a), X, Y)[1]
        return W - tau / (_STEPS * m) * slope, None

    end = jax.lax.scan(step, network.W, None, length=_STEPS)[0]
    farthest = jnp.max(jnp.linalg.norm(end - network.W, axis=0))
    shares = m * jax.nn.softmax(X[0] @ network.W)
    along = jnp.where(shares > jnp.mean(shares**2), 1.0, -1.0)
    moved = network.W + regime.radius * jnp.outer(X[0] / jnp.linalg.norm(X[0]), along)
    kernels = [dense_softmax_ntk(SoftmaxNetwork(W, network.a), X) for W in (moved, network.W)]
    return farthest, regime.radius, jnp.linalg.norm(kernels[0] - kernels[1]), regime.kernel_change


@partial(jax.jit, compiler_options=CHEAP_COMPILATION)
def _kernels_and_regime(network, X, Z, start, tau):
    """The start's kernel on the samples, its rows at the test points, and the regime."""
    H, row = (dense_softmax_ntk(network, inputs, X) for inputs in (X, Z))
    return H, row, gu2024_kernel_regime(network, X, Z, start, tau)


def _regression_and_bound(network, X, Y, Z, tau):
    """Kernel regression at the start's kernel at tau, and beta of a training of as many steps."""
    start = float(np.linalg.norm(Y))
    H, row, regime = _kernels_and_regime(
        network, *(jnp.asarray(array) for array in (X, Z, start, tau))
    )
    H, row = np.asarray(H), np.asarray(row)
    predicted = regression_flow(H, Y[:, None]).test(row, np.array([float(_STEPS)]), tau / _STEPS)
    length = np.linalg.norm(row, axis=1)
    beta = gu2024_coupling(tau, start, length, regime.kernel_change, regime.test_change)
    return predicted[0, :, 0], np.asarray(beta)


def _longest(network, X, Y):
    """The time up to which the radius of the restated regime exists at this width."""
    shares = network.W.shape[1] * softmax(X @ np.asarray(network.W), axis=1)
    P = np.sqrt(np.max(np.sum((np.linalg.norm(X, axis=1)[:, None] * shares) ** 2, axis=0)))
    return float(network.W.shape[1] / (4 * np.e * P * np.linalg.norm(Y)))


@computed(
    Kind.INEQUALITY,
    "Theorem 6.6 restated, what is known before training",
    status=Status.NEW,
    count=32,
    evaluations=160,
    roundings=2**12,
    controls=[
        Control("a quarter of the radius", radius=0.25),
        Control("a fiftieth of the change", change=0.02),
    ],
)
def regime_of_training(rng, count, *, radius=1.0, change=1.0):
    r"""$$\max_r\|w_r(\tau)-w_r(0)\|\le R,\qquad\|H(\tilde W)-H\|\le\epsilon_H\quad
    (\|\tilde w_r-w_r\|\le R)$$

    Networks of width 64 and 512, 60 steps, one and four samples in the plane, times at which the
    width is large enough for $R$ to exist. In $R$ the factor $1+\alpha\le2$ stands for 1, in the
    bound of the change it does so squared.
    """
    left, right = np.empty((2, 2, count))
    for e in range(count):
        n, m = (1, 4)[e % 2], (64, 512)[e // 2 % 2]
        network, X, Z, Y, _ = _instance(rng, n, m)
        tau = 10 ** rng.uniform(-2, -0.01) * _longest(network, X, Y)
        arrays = [on_device(array) for array in (X, Y[:, None], Z)]
        left[0, e], right[0, e], left[1, e], right[1, e] = _observed(
            network, arrays[0], arrays[1], arrays[2], min(tau, _STEPS / np.linalg.norm(X) ** 2 / 20)
        )
    right *= np.array([[radius], [change]])
    size = np.stack([np.ones(count), np.full(count, 10.0)])
    return Sides(*(jnp.asarray(side.T) for side in (left, right)), magnitude=jnp.asarray(size.T))


def _pointing_right(rng, n, width):
    """f_K and beta, and f_*, where they have a correlation of 0.1 at least on the test points."""
    while True:
        network, X, Z, Y, truth = _instance(rng, n, width)
        tau = min(10 ** rng.uniform(-3, -1), 0.9 * _longest(network, X, Y))
        kernel, beta = _regression_and_bound(network, X, Y, Z, tau)
        if kernel @ truth >= 0.1 * np.linalg.norm(kernel) * np.linalg.norm(truth):
            return kernel, beta, truth


@computed(
    Kind.INEQUALITY,
    "Theorem 6.6 restated, a regime where it is non-vacuous",
    status=Status.NEW,
    count=32,
    not_attacked="each instance is a network of 16384 units",
    roundings=2**12,
    controls=[
        Control("width 4", width=2**2),
        Control("labels of the other sign, so that regression does not beat zero", sign=-1.0),
    ],
)
def restated_bound_is_non_vacuous(rng, count, *, width=2**14, sign=1.0):
    r"""$$\|f_K-f_*\|+\beta_m\le\|f_*\|,\quad m=16384,\quad
    \langle f_K,f_*\rangle\ge0.1\,\|f_K\|\,\|f_*\|$$

    In the mean square of 12 test points in the plane, two and five samples, times from 0.001 to
    0.1, a function of the RKHS as $f_*$. All of the left side is known before training; by
    coupling-without-lambda, within the radius and changes of regime-of-training, it bounds the
    error of the trained network. Where kernel regression is no better than the zero function, no
    width helps, and without the condition on the samples there are such instances.
    """
    left, right = np.empty((2, count))
    for e in range(count):
        kernel, beta, truth = _pointing_right(rng, (2, 5)[e % 2], width)
        norms = [np.sqrt(np.mean(values**2)) for values in (sign * kernel - truth, beta, truth)]
        left[e], right[e] = norms[0] + norms[1], norms[2]
    return left, right
