r"""Trainings that several claims share: gradient descent from the symmetric initialisation.

The step is a share of 1 / (m lambda_max(H*)), where the linearised descent contracts. Reading:
lambda = lambda_min(H*), u = F - Y, B = max(1, |<w_r, x_i>|) over the whole run: the smallest
number that can stand for the B of Definition 4.1.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.core.generator import seed_of
from attlas.core.old_claim import Instance
from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork
from attlas.tasks.softmax_regression import Keep, train_softmax_networks

STEPS = (0, 1, 2, 4, 8, 16, 32, 64, 120, 240)
"""Recorded steps of every run."""
COUNT = 48
"""Runs of a batch: claims that ask for the same number share them."""


class Setting(NamedTuple):
    """Which trainings.

    Attributes:
        width: m.
        outputs: k.
        samples: n, in dimension 3.
        activation: of the hidden units.
        targets: smallest and largest length of the targets of an instance.
        step: smallest and largest share of 1 / (m lambda_max(H*)).
        sigma: smallest and largest standard deviation of the first layer.
    """

    width: int = 256
    outputs: int = 2
    samples: int = 4
    activation: Activation = Activation.SOFTMAX
    targets: tuple[float, float] = (0.01, 1.0)
    step: tuple[float, float] = (0.3, 0.9)
    sigma: tuple[float, float] = (0.3, 1.0)


GENERAL = Setting()
DIMENSION = 3


def spread_inputs(
    rng: np.random.Generator, count: int, samples: int, sigma: Float[np.ndarray, " e"]
) -> Float[np.ndarray, "e n d"]:
    """Inputs of length .8 to 1, the best separated of six draws: a kernel that is not singular.

    Args:
        rng: of the draws.
        count: instances e.
        samples: n.
        sigma: standard deviation of the first layer, one an instance.

    Returns:
        One input a row.
    """
    X = rng.normal(size=(count, 6, samples, DIMENSION))
    X *= rng.uniform(0.8, 1, (count, 6, samples, 1)) / np.linalg.norm(X, axis=-1, keepdims=True)
    inner = X @ X.transpose(0, 1, 3, 2)
    kernel = inner * np.exp(sigma[:, None, None, None] ** 2 * inner)
    best = np.argmax(np.linalg.eigvalsh(kernel)[..., 0], axis=1)
    return X[np.arange(count), best]


def symmetric_start(
    rng: np.random.Generator, sigma: Float[np.ndarray, " e"], width: int, outputs: int
) -> tuple[Float[np.ndarray, "e d m"], Float[np.ndarray, "e k m"]]:
    """First and second layers of Definition 3.7.

    Args:
        rng: of the draws.
        sigma: standard deviation of the first layer, one an instance.
        width: m, even.
        outputs: k.

    Returns:
        W and a.
    """
    count, half = len(sigma), width // 2
    W = sigma[:, None, None] * rng.normal(size=(count, DIMENSION, half))
    a = rng.choice([-1.0, 1.0], size=(count, outputs, half))
    return np.repeat(W, 2, axis=2), np.stack((a, -a), axis=3).reshape(count, outputs, width)


def draw(seed: tuple[int, ...], count: int, setting: Setting) -> dict[str, np.ndarray]:
    """Data and starts of the trainings, with the kernel H* at the start.

    Args:
        seed: of the draws.
        count: instances.
        setting: sizes.

    Returns:
        X, Y, W, a, kernel, lam and most (its extreme eigenvalues), eta, and m.
    """
    rng = np.random.default_rng(seed)
    sigma = rng.uniform(*setting.sigma, count)
    X = spread_inputs(rng, count, setting.samples, sigma)
    Y = rng.normal(size=(count, setting.samples, setting.outputs))
    low, high = np.log(setting.targets)
    lengths = np.exp(rng.uniform(low, high, (count, 1, 1)))
    Y *= lengths * rng.uniform(0.8, 1, (count, setting.samples, 1))
    Y /= np.linalg.norm(Y / lengths, axis=2, keepdims=True).max(axis=1, keepdims=True)
    W, a = symmetric_start(rng, sigma, setting.width, setting.outputs)
    kernel = kernels(setting, W, a, X)
    values = np.linalg.eigvalsh(kernel)
    lam, most = values[:, 0], values[:, -1]
    m = np.full(count, float(setting.width))
    scale = m if setting.activation is Activation.SOFTMAX else np.ones(count)
    eta = rng.uniform(*setting.step, count) / (scale * most)
    named = {"X": X, "Y": Y, "W": W, "a": a, "kernel": kernel, "lam": lam, "most": most}
    return named | {"eta": eta, "m": m, "sigma": sigma}


def kernels(
    setting: Setting, W: np.ndarray, a: np.ndarray, X: np.ndarray, Z: np.ndarray | None = None
) -> np.ndarray:
    """The kernel H of each instance.

    Args:
        setting: of which the activation counts.
        W: first layers.
        a: second layers.
        X: inputs.
        Z: inputs of the second index.

    Returns:
        One kernel an instance.
    """
    found = []
    for e in range(len(W)):
        network = SoftmaxNetwork(jnp.asarray(W[e]), jnp.asarray(a[e]), setting.activation)
        found.append(softmax_ntk(network, X[e], None if Z is None else Z[e]))
    return np.stack(found)


def train(raw: dict[str, np.ndarray], setting: Setting) -> dict[str, np.ndarray]:
    """Gradient descent from drawn starts.

    Args:
        raw: of `draw`.
        setting: of which the activation counts.

    Returns:
        square, movement, largest_step, drift, outputs and path at the records.
    """
    layers = jnp.asarray(raw["W"]), jnp.asarray(raw["a"])
    first = SoftmaxNetwork(layers[0][0], layers[1][0], setting.activation)
    network = eqx.tree_at(lambda part: (part.W, part.a), first, layers)
    path = train_softmax_networks(
        network,
        jnp.asarray(raw["X"]),
        jnp.asarray(raw["Y"]),
        step_size=jnp.asarray(raw["eta"]),
        steps=STEPS[-1],
        record_at=STEPS,
        keep=Keep(weights=True, drift=True),
        chunk=len(raw["W"]),
    )
    W = np.asarray(path.W)
    named = {
        "square": 2 * np.asarray(path.loss),
        "movement": np.asarray(path.movement),
        "largest_step": np.asarray(path.largest_step),
        "drift": np.asarray(path.drift),
        "outputs": np.asarray(path.outputs),
    }
    return {**named, "path": W}


@cache
def trained(seed: tuple[int, ...], count: int, setting: Setting) -> dict[str, np.ndarray]:
    """Data, starts and records of trainings of any activation.

    Args:
        seed: of the draws.
        count: instances.
        setting: which trainings.

    Returns:
        What `draw` and `train` give.
    """
    raw = draw(seed, count, setting)
    return {**raw, **train(raw, setting)}


@cache
def _runs(seed: tuple[int, ...], count: int, setting: Setting) -> dict[str, np.ndarray]:
    found = trained(seed, count, setting)
    raw = found
    path, X = found["path"], raw["X"]
    moved = np.stack([kernels(setting, path[:, s], raw["a"], X) for s in range(len(STEPS))], 1)
    logits = np.einsum("end,esdm->esnm", X, path)
    shares = np.exp(logits) / np.exp(logits).mean(axis=3, keepdims=True)
    return found | {
        "kernels": moved,
        "least": np.linalg.eigvalsh(moved)[..., 0],
        "B": np.maximum(1, np.abs(logits).max(axis=(1, 2, 3))),
        "share": shares.max(axis=(1, 2, 3)),
        "steps": np.broadcast_to(np.asarray(STEPS, float), (count, len(STEPS))),
    }


def runs(key: PRNGKeyArray, count: int, setting: Setting = GENERAL) -> dict[str, np.ndarray]:
    """Trainings with all that was recorded.

    Args:
        key: random key.
        count: instances.
        setting: which trainings.

    Returns:
        What `draw` gives, and at each of `STEPS` square (||F - Y||_F^2), movement, largest_step,
        drift, outputs, path (W), kernels, least (smallest eigenvalue); and B and share (the
        largest m S_ir) of the run.
    """
    return _runs(seed_of(key), count, setting)


_CURVES = (
    "Y", "lam", "most", "eta", "m", "B", "share", "square", "movement", "largest_step", "drift",
    "least", "steps", "sigma",
)  # fmt: skip


def curves(key: PRNGKeyArray, count: int, setting: Setting = GENERAL) -> Instance:
    """Trainings as numbers along time.

    Args:
        key: random key.
        count: instances.
        setting: which trainings.

    Returns:
        Batch of the small arrays of `runs`.
    """
    found = runs(key, count, setting)
    return {name: jnp.asarray(found[name]) for name in _CURVES}


def source(setting: Setting) -> Callable[[PRNGKeyArray, int], Instance]:
    """`curves` with its setting bound, as claims take it.

    Args:
        setting: which trainings.

    Returns:
        Function of a key and a count.
    """
    return partial(curves, setting=setting)


def contraction(instance: Instance) -> Float[Array, " s"]:
    """The bound ||F(0) - Y||_F^2 (1 - m eta lambda / 2)^tau of Lemma 5.3 at the recorded steps.

    Args:
        instance: of `curves`.

    Returns:
        One number a record.
    """
    rate = instance["m"] * instance["eta"] * instance["lam"] / 2
    return instance["square"][0] * jnp.exp(instance["steps"] * jnp.log1p(-rate))
