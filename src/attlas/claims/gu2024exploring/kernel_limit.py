r"""The tangent kernel at infinite width, and the rate m^(-1/2) with its constant.

Symbols: X (n x d), sigma, widths m; `H` holds kernels of several draws of the initialisation
(Definition 3.7) at each width. K is the limit for one output; blocks are I_k tensor K.
"""

from collections.abc import Callable
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.bounds.optimisation.gu2024_kernel_limit import gu2024_limit_variance
from attlas.claims.gu2024exploring.instances import inputs, symmetric_networks
from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.kernels.softmax_network_limit import softmax_ntk_limit
from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork

_PAPER = "gu2024exploring"
_D, _K, _N = 2, 2, 2
_WIDTHS = (8, 128, 2048)
_DRAWS = 16
_DELTA = 0.2
_ROUNDINGS = 2**12
"""A sum over m units, a softmax of m units, and products over n k and d terms."""
Limit = Callable[[Instance], Array]


def _kernel(
    rng: np.random.Generator, X: np.ndarray, sigma: float, m: int, activation: Activation
) -> np.ndarray:
    """H at one draw of the symmetric initialisation; pairs are drawn as in `instances`."""
    drawn = symmetric_networks(rng, 1, (_D, m, _K, 1))
    W = drawn["W"][0] * (sigma / drawn["sigma"][0])
    model = SoftmaxNetwork(jnp.asarray(W), jnp.asarray(drawn["a"][0]), activation)
    return softmax_ntk(model, X)


@cache
def _draws(seed: tuple[int, ...], count: int, activation: Activation) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(list(seed))
    X, sigma = inputs(rng, count, _N, _D), rng.uniform(0.3, 0.7, count)
    H = np.zeros((count, len(_WIDTHS), _DRAWS, _K * _N, _K * _N))
    for i in range(count):
        for w, m in enumerate(_WIDTHS):
            for j in range(_DRAWS):
                H[i, w, j] = _kernel(rng, X[i], sigma[i], m, activation)
    return {"X": X, "sigma": sigma, "H": H}


def _instances(key: PRNGKeyArray, count: int, activation: Activation) -> Instance:
    seed = tuple(np.asarray(jax.random.key_data(key)).tolist())
    return {name: jnp.asarray(v) for name, v in _draws(seed, count, activation).items()}


def _limit(instance: Instance, activation: Activation) -> Array:
    return softmax_ntk_limit(instance["X"], instance["X"], instance["sigma"], activation)


def _plain_sigma(instance: Instance) -> Array:
    root = jnp.sqrt(instance["sigma"])
    return softmax_ntk_limit(instance["X"], instance["X"], root)


def _of_the_softmax(instance: Instance) -> Array:
    """The limit of the softmax network in place of another one's."""
    return _limit(instance, Activation.SOFTMAX)


def _converges(instance: Instance, limit: Limit) -> Sides:
    """Root mean square over draws of ||H - I_k tensor K||_F at each width."""
    K = jnp.kron(jnp.eye(_K), limit(instance))
    squares = jnp.sum((instance["H"] - K[None, None]) ** 2, axis=(2, 3))
    left = jnp.sqrt(jnp.mean(squares, axis=1))
    widths = jnp.asarray(_WIDTHS, left.dtype)
    return Sides(left, jnp.zeros_like(left), scale=jnp.linalg.norm(K), scales=widths)


def _claim(
    activation: Activation, formula: str, control: tuple[str, Limit], status: Status, note: str
) -> Claim:
    text, wrong = control
    return Claim(
        name=f"{_PAPER}/kernel-limit-{activation.value}",
        paper=_PAPER,
        locator="Definition 3.6 at infinite width (ours)",
        statement=formula,
        kind=Kind.LIMIT,
        status=status,
        provenance=Provenance.DERIVED,
        instances=partial(_instances, activation=activation),
        sides=lambda i: _converges(i, partial(_limit, activation=activation)),
        control=Control(text, sides=lambda i: _converges(i, wrong)),
        count=48,
        terms=_ROUNDINGS,
        note=f"{note} Root mean square over 16 draws at widths 8, 128, 2048.",
    )


KERNEL_LIMIT_SOFTMAX = _claim(
    Activation.SOFTMAX,
    r"H^* \to I_d \otimes \big[ x_i^\top x_j\, e^{\sigma^2 x_i^\top x_j} \big]_{i,j}"
    r"\quad (m \to \infty)",
    ("sigma in place of sigma^2", _plain_sigma),
    Status.NEW,
    "The input norms drop out of the exponent: the denominator removes them.",
)
KERNEL_LIMIT_EXPONENTIAL = _claim(
    Activation.EXPONENTIAL,
    r"H^* \to I_d \otimes \big[ x_i^\top x_j\, e^{\sigma^2 \|x_i + x_j\|^2 / 2} \big]_{i,j}"
    r"\quad (m \to \infty)",
    ("the softmax limit", _of_the_softmax),
    Status.NEW,
    "For unit inputs e^(sigma^2) times the softmax limit: at initialisation the normalisation "
    "rescales the kernel and does nothing else.",
)
KERNEL_LIMIT_RELU = _claim(
    Activation.RELU,
    r"H^* \to I_d \otimes \Big[ x_i^\top x_j \frac{\pi - \angle(x_i, x_j)}{2\pi} \Big]_{i,j}"
    r"\quad (m \to \infty)",
    ("the softmax limit", _of_the_softmax),
    Status.NEW,
    "The arc-cosine kernel, whatever sigma.",
)


def _variance(instance: Instance) -> Array:
    """V = lim m E ||H - I_k tensor K||_F^2; there are m / 2 independent units."""
    X, sigma = instance["X"], instance["sigma"]
    same, apart = (gu2024_limit_variance(X, sigma, same_output=same) for same in (True, False))
    return 2 * jnp.sum((X @ X.T) ** 2 * (_K * same + _K * (_K - 1) * apart))


def _single_draws(key: PRNGKeyArray, count: int) -> Instance:
    rng = generator(key)
    X, sigma = inputs(rng, count, _N, _D), rng.uniform(0.3, 0.7, count)
    m = 2 ** rng.integers(7, 12, count)
    H = [
        _kernel(rng, X[i], sigma[i], int(m[i]), Activation.SOFTMAX)[None, None]
        for i in range(count)
    ]
    batch = {"X": X, "sigma": sigma, "H": np.stack(H), "m": m.astype(float)}
    return {name: jnp.asarray(value) for name, value in batch.items()}


def _within(instance: Instance, power: float = 1.0, share: float = 1.0) -> Sides:
    K = jnp.kron(jnp.eye(_K), _limit(instance, Activation.SOFTMAX))
    distance = jnp.sum((instance["H"] - K[None, None]) ** 2)
    bound = share * _variance(instance) / (_DELTA * instance["m"] ** power)
    return Sides(jnp.where(distance <= bound, 1.0, 0.0), jnp.asarray(1 - _DELTA))


KERNEL_LIMIT_RATE = Claim(
    name=f"{_PAPER}/kernel-limit-rate",
    paper=_PAPER,
    locator="Definition 3.6 at infinite width, rate (ours)",
    statement=(
        r"P\big( \|H^* - I_d \otimes K\|_F \le \sqrt{V / (\delta m)} \big) \ge 1 - \delta,\quad "
        r"V = \lim_{m \to \infty} m\, E \|H^* - I_d \otimes K\|_F^2"
    ),
    kind=Kind.PROBABILITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_single_draws,
    sides=_within,
    control=(
        Control("rate 1/m", sides=partial(_within, power=2.0)),
        Control("V/10", sides=partial(_within, share=0.1)),
    ),
    count=128,
    terms=_ROUNDINGS,
    note=(
        "V in closed form by the delta method: with s = sigma^2 X X', blocks of two outputs give "
        "2 (x_i' x_j)^2 exp(s_ii + s_jj + 4 s_ij). delta = 0.2, m = 128 to 2048; Chebyshev's "
        "inequality at the limiting variance, so that V/2 would pass as well. Over 64 draws m E "
        "||.||^2 / V is 0.9 to 1.3 at sigma 0.3 and 0.7, but 0.25 at sigma = 1, m = 128: the "
        "tails are heavy, V grows like exp(8 sigma^2), and widths below that are not yet in the "
        "limit."
    ),
)
