r"""The tangent kernel at infinite width, and the rate m^(-1/2) with its constant.

`mean` and `square` hold moments of kernels H over 50 batches of draws of the initialisation
(Definition 3.7) at each width. K is the limit for one output, I_k x K that for k.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from attlas._jax.device_arrays import on_device
from attlas.claims.claim import Control, Sides, Status
from attlas.claims.sampling import shared
from attlas.claims.statement import limit, probability
from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork
from gu2024exploring.instances import inputs, symmetric_networks
from gu2024exploring.library.bounds.gu2024_kernel_limit import gu2024_limit_variance
from gu2024exploring.library.kernels.dense_softmax_ntk import dense_softmax_ntk
from gu2024exploring.library.kernels.softmax_network_limit import softmax_ntk_limit

_D, _K, _N = 2, 2, 2
_WIDTHS = (2, 16, 128, 1024)
_DRAWS = (4000, 4000, 3000, 1200)
_BATCHES = 50
_COUNT = 32
_FACTOR = float(special.stdtrit(_BATCHES - 1, 1 - 5e-4 / (_COUNT * len(_WIDTHS))))
"""Student's factor by which the intervals of all instances and widths hold at a level of 0.999."""
_ACTIVATIONS = tuple(Activation)
_AT_ONCE = 20
"""Draws whose features are held together: they stay in the core's own cache."""
_DELTA = 0.2
_ROUNDINGS = 2**12
"""A sum over m units, a softmax of m units, and products over n k and d terms."""


def _kernel(rng, X, sigma, m, activation=Activation.SOFTMAX):
    """H at one draw of the symmetric initialisation; pairs are drawn as in `instances`."""
    networks = symmetric_networks(rng, 1, (_D, m, _K, 1), trained=True)
    W = networks["W"][0] * (sigma / networks["sigma"][0])
    return softmax_ntk(SoftmaxNetwork(on_device(W), on_device(networks["a"][0]), activation), X)


@jax.jit
def _moments(half, signs, X, sigma):
    """Means of H and of its squared norm over batches of draws, (batches, activations, ...)."""

    def of_draw(weights):
        w, s = sigma * weights[0], 2 * weights[1].astype(X.dtype) - 1
        W, a = jnp.concatenate((w, w), axis=1), jnp.concatenate((s, -s), axis=1)
        of = [dense_softmax_ntk(SoftmaxNetwork(W, a, activation), X) for activation in _ACTIVATIONS]
        return jnp.stack(of)

    def of_batch(draws):
        H = jax.lax.map(of_draw, draws, batch_size=_AT_ONCE)
        return jnp.mean(H, axis=0), jnp.mean(jnp.sum(H**2, axis=(2, 3)), axis=0)

    return jax.lax.map(of_batch, (half, signs))


@shared
def _initial_kernels(rng, count):
    """Moments at four widths, on one pair of inputs per instance: the same draws for all three."""
    X, sigma = inputs(rng, count, _N, _D), rng.uniform(0.3, 0.42, count)
    square = np.empty((count, len(_WIDTHS), _BATCHES, len(_ACTIVATIONS)))
    mean = np.empty((*square.shape, _K * _N, _K * _N))
    for e, k in np.ndindex(square.shape[:2]):
        half, draws = _WIDTHS[k] // 2, _DRAWS[k] // _BATCHES
        normals = rng.normal(size=(_BATCHES, draws, _D, half))
        signs = rng.integers(2, size=(_BATCHES, draws, _K, half), dtype=np.int8)
        mean[e, k], square[e, k] = _moments(normals, signs, X[e], sigma[e])
    return {"X": X, "sigma": sigma, "mean": mean, "square": square}


def initial_kernels(rng, count, activation):
    """The moments of one activation."""
    kernels, at = _initial_kernels(rng, count), _ACTIVATIONS.index(activation)
    return {**kernels, "mean": kernels["mean"][..., at, :, :], "square": kernels["square"][..., at]}


def _distance(mean, square, K):
    """Root mean square over draws of ||H - I_k tensor K||_F at each width, with its error."""
    K = jnp.kron(jnp.eye(_K), K)
    squares = square - 2 * jnp.sum(mean * K, axis=(2, 3)) + jnp.sum(K**2)
    size = jnp.mean(squares, axis=1)
    width = _FACTOR * jnp.std(squares, axis=1, ddof=1) / np.sqrt(_BATCHES)
    left = jnp.sqrt(size)
    error = left - jnp.sqrt(jnp.maximum(size - width, 0))
    return Sides(left, jnp.zeros_like(left), magnitude=jnp.linalg.norm(K), error=error)


at_infinite_width = partial(
    limit,
    "Definition 3.6 at infinite width (ours)",
    scales=_WIDTHS,
    status=Status.NEW,
    count=_COUNT,
    roundings=_ROUNDINGS,
)


@at_infinite_width(
    sample=partial(initial_kernels, activation=Activation.SOFTMAX),
    controls=[Control(r"$\sigma$ in place of $\sigma^2$", root=True)],
)
def kernel_limit_softmax(X, sigma, mean, square, *, root=False):
    r"""$$H^* \to I_d \otimes \big[ x_i^\top x_j\, e^{\sigma^2 x_i^\top x_j} \big]_{i,j}
    \quad (m \to \infty)$$

    The input norms drop out of the exponent: the denominator removes them. Root mean square over
    1200 draws and more at widths 2, 16, 128, 1024, with Student's interval of 50 batches of them
    at a joint level of 0.999.
    """
    return _distance(mean, square, softmax_ntk_limit(X, X, jnp.sqrt(sigma) if root else sigma))


@at_infinite_width(
    sample=partial(initial_kernels, activation=Activation.EXPONENTIAL),
    controls=[Control("without the 2 in the exponent", times=2.0)],
)
def kernel_limit_exponential(X, sigma, mean, square, *, times=1.0):
    r"""$$H^* \to I_d \otimes \big[ x_i^\top x_j\, e^{\sigma^2 \|x_i + x_j\|^2 / 2} \big]_{i,j}
    \quad (m \to \infty)$$

    For unit inputs $e^{\sigma^2}$ times the softmax limit: at initialisation the normalisation
    rescales the kernel and does nothing else. Widths and draws as for the softmax.
    """
    root = jnp.sqrt(times) * sigma
    return _distance(mean, square, softmax_ntk_limit(X, X, root, Activation.EXPONENTIAL))


@at_infinite_width(
    sample=partial(initial_kernels, activation=Activation.RELU),
    controls=[Control("the softmax limit", activation=Activation.SOFTMAX)],
)
def kernel_limit_relu(X, sigma, mean, square, *, activation=Activation.RELU):
    r"""$$H^* \to I_d \otimes \Big[ x_i^\top x_j \frac{\pi - \angle(x_i, x_j)}{2\pi} \Big]_{i,j}
    \quad (m \to \infty)$$

    The arc-cosine kernel, whatever $\sigma$. Widths and draws as for the softmax.
    """
    return _distance(mean, square, softmax_ntk_limit(X, X, sigma, activation))


def single_kernels(rng, count):
    """One kernel per instance, at a width from 128 to 2048."""
    X, sigma = inputs(rng, count, _N, _D), rng.uniform(0.3, 0.7, count)
    m = 2 ** rng.integers(7, 12, count)
    H = [_kernel(rng, X[i], sigma[i], int(m[i])) for i in range(count)]
    return {"X": X, "sigma": sigma, "H": np.stack(H), "m": m.astype(float)}


def _variance(X, sigma):
    """V = lim m E ||H - I_k tensor K||_F^2; there are m / 2 independent units."""
    same, apart = (gu2024_limit_variance(X, sigma, same_output=same) for same in (True, False))
    return 2 * jnp.sum((X @ X.T) ** 2 * (_K * same + _K * (_K - 1) * apart))


@probability(
    "Definition 3.6 at infinite width, rate (ours)",
    level=1 - _DELTA,
    status=Status.NEW,
    sample=single_kernels,
    independent="inputs and network",
    count=128,
    roundings=_ROUNDINGS,
    controls=[Control("rate $1/m$", power=2.0), Control("$V/10$", share=0.1)],
)
def kernel_limit_rate(X, sigma, H, m, *, power=1.0, share=1.0):
    r"""$$P\big( \|H^* - I_d \otimes K\|_F \le \sqrt{V / (\delta m)} \big) \ge 1 - \delta,\quad
    V = \lim_{m \to \infty} m\, E \|H^* - I_d \otimes K\|_F^2$$

    $V$ in closed form by the delta method: with $s = \sigma^2 X X^\top$, blocks of two outputs give
    $2 (x_i^\top x_j)^2 \exp(s_{ii} + s_{jj} + 4 s_{ij})$. $\delta = 0.2$, $m = 128$ to 2048;
    Chebyshev's inequality at the limiting variance, which is not sharp. The tails are heavy: $V$
    grows like $\exp(6 \sigma^2)$, and widths below that are not yet in the limit.
    """
    K = jnp.kron(jnp.eye(_K), softmax_ntk_limit(X, X, sigma))
    return jnp.sum((H - K) ** 2) <= share * _variance(X, sigma) / (_DELTA * m**power)
