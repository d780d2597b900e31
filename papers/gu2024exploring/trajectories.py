r"""Trainings that several claims share: gradient descent from the symmetric initialisation.

The step is a share of 1 / (m lambda_max(H*)), where the linearised descent contracts. B is the
largest over a full run: the smallest number that can stand for the B of Definition 4.1.
"""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from attlas._jax.device_arrays import on_device
from attlas.claims.perturbed_draws import apart
from attlas.claims.sampling import shared
from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork
from gu2024exploring.library.training.softmax_regression import Keep, train_softmax_networks

STEPS = (0, 1, 2, 4, 8, 16, 32, 64, 120, 240)
"""Recorded steps of every run."""
COUNT = 48
"""Runs of a batch: claims that need the same number share them."""
DIMENSION = 3
EVALUATIONS = 8 * COUNT
"""Evaluations of an attack on whole runs: all of them are trained again for each of eight moves."""
CURVES = (
    "Y", "lam", "most", "eta", "m", "B", "share", "square", "movement", "largest_step", "drift",
    "least", "steps", "sigma",
)  # fmt: skip
"""The small arrays of `runs`: numbers of a run, and curves along its records."""


class Setting(NamedTuple):
    """Which trainings.

    Attributes:
        width: m.
        outputs: k.
        samples: n, in dimension 3.
        targets: smallest and largest length of the targets of an instance.
        step: smallest and largest share of 1 / (m lambda_max(H*)).
        sigma: smallest and largest standard deviation of the first layer.
        planes: one instance in so many is of dimension 2, none with 0.
    """

    width: int = 256
    outputs: int = 2
    samples: int = 4
    activation: Activation = Activation.SOFTMAX
    targets: tuple[float, float] = (0.01, 1.0)
    step: tuple[float, float] = (0.3, 0.9)
    sigma: tuple[float, float] = (0.3, 1.0)
    planes: int = 4


GENERAL = Setting()


def spread_inputs(rng, count, samples, sigma, planes=0):
    """Inputs of length 0.8 to 1, the best separated of six draws: a kernel that is not singular.

    One instance in so many lies in a plane, none with 0.
    """
    X = rng.normal(size=(count, 6, samples, DIMENSION))
    if planes:
        X[planes - 1 :: planes, ..., -1] = 0
    X *= rng.uniform(0.8, 1, (count, 6, samples, 1)) / np.linalg.norm(X, axis=-1, keepdims=True)
    inner = X @ X.transpose(0, 1, 3, 2)
    kernel = inner * np.exp(sigma[:, None, None, None] ** 2 * inner)
    best = np.argmax(np.linalg.eigvalsh(kernel)[..., 0], axis=1)
    return X[np.arange(count), best]


def symmetric_start(rng, sigma, width, outputs):
    """First and second layers of Definition 3.7; one sigma per instance, an even width."""
    count, half = len(sigma), width // 2
    W = sigma[:, None, None] * rng.normal(size=(count, DIMENSION, half))
    a = rng.choice([-1.0, 1.0], size=(count, outputs, half))
    return np.repeat(W, 2, axis=2), np.stack((a, -a), axis=3).reshape(count, outputs, width)


def draw(rng, count: int, setting: Setting):
    """Data and starts, with the kernel H* and its extreme eigenvalues lam and most."""
    rng = apart(rng)
    sigma = rng.uniform(*setting.sigma, count)
    X = spread_inputs(rng, count, setting.samples, sigma, setting.planes)
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


def kernels(setting, W, a, X, Z=None):
    """The kernel H of each instance, of X with itself or with Z."""
    spectra = []
    for e in range(len(W)):
        network = SoftmaxNetwork(W[e], a[e], setting.activation)
        spectra.append(softmax_ntk(network, X[e], None if Z is None else Z[e]))
    return np.stack(spectra)


def train(raw, setting):
    """Gradient descent from what `draw` gives: the curves, the outputs and W at the records."""
    layers = on_device(raw["W"]), on_device(raw["a"])
    first = SoftmaxNetwork(raw["W"][0], raw["a"][0], setting.activation)
    trajectory = train_softmax_networks(
        eqx.tree_at(lambda part: (part.W, part.a), first, layers),
        on_device(raw["X"]),
        on_device(raw["Y"]),
        step_size=on_device(raw["eta"]),
        steps=STEPS[-1],
        record_at=STEPS,
        keep=Keep(weights=True, drift=True),
        chunk=len(raw["W"]),
    )
    named = {"square": 2 * np.asarray(trajectory.loss), "path": np.asarray(trajectory.W)}
    names = ("movement", "largest_step", "drift", "outputs")
    return named | {name: np.asarray(getattr(trajectory, name)) for name in names}


@shared
def trained(rng, count, setting):
    """What `draw` and `train` give, for any activation."""
    raw = draw(rng, count, setting)
    return raw | train(raw, setting)


@shared
def runs(rng, count, setting):
    """Trainings with all that is known of them.

    Beyond `trained`, at each of `STEPS`: kernels and least (their smallest eigenvalue); and B and
    share (the largest m S_ir) of the run.
    """
    batch = trained(rng, count, setting)
    path, X = batch["path"], batch["X"]
    moved = np.stack([kernels(setting, path[:, s], batch["a"], X) for s in range(len(STEPS))], 1)
    logits = np.einsum("end,esdm->esnm", X, path)
    shares = np.exp(logits) / np.exp(logits).mean(axis=3, keepdims=True)
    return batch | {
        "kernels": moved,
        "least": np.linalg.eigvalsh(moved)[..., 0],
        "B": np.maximum(1, np.abs(logits).max(axis=(1, 2, 3))),
        "share": shares.max(axis=(1, 2, 3)),
        "steps": np.broadcast_to(np.asarray(STEPS, float), (count, len(STEPS))),
    }


def curves(rng, count, setting=GENERAL, further=()):
    """Trainings as numbers along time: `CURVES`, and further arrays of `runs` by name."""
    training = runs(rng, count, setting)
    return {name: training[name] for name in (*CURVES, *further)}


def curves_of(setting):
    """`curves` of another setting, as claims take it."""
    return partial(curves, setting=setting)


def contraction(square, m, eta, lam, steps):
    """The bound ||F(0) - Y||_F^2 (1 - m eta lambda / 2)^tau of Lemma 5.3 at the recorded steps."""
    return square[0] * jnp.exp(steps * jnp.log1p(-m * eta * lam / 2))
