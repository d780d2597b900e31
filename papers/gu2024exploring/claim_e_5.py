r"""Claim E.5: within the radius of the induction the kernel keeps half of lambda."""

import jax.numpy as jnp
import numpy as np

from attlas.bounds.optimisation.gu2024_convergence import gu2024_movement_radius
from attlas.claims.claim import Control, ProofStep, Sides, assume
from attlas.claims.statement import inequality
from attlas.models.networks.softmax_network import SoftmaxNetwork
from gu2024exploring.instances import symmetric_networks, weight_reach
from gu2024exploring.library.kernels.dense_softmax_ntk import dense_softmax_ntk
from gu2024exploring.one_step import ROUNDINGS, SIZES, norm
from gu2024exploring.trajectories import COUNT, EVALUATIONS, curves


def _kernel(W, a, X):
    return dense_softmax_ntk(SoftmaxNetwork(W, a), X)


def _least(W, a, X):
    """The kernel and its smallest eigenvalue."""
    H = _kernel(W, a, X)
    return H, jnp.linalg.eigvalsh(H)[0]


def directions(rng, count):
    """Symmetric starts, and unit vectors V along which the units move."""
    batch = symmetric_networks(rng, count, SIZES)
    V = rng.normal(size=batch["W"].shape)
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    # The direction in which Lemma 5.1 is tightest: all units along one input.
    along = batch["X"][::2, 0] / np.linalg.norm(batch["X"][::2, 0], axis=1, keepdims=True)
    V[::2] = along[:, :, None] * rng.choice([-1.0, 1.0], V[::2, :1].shape)
    return batch | {"V": V}


@inequality(
    "Claim E.5",
    sample=directions,
    assumptions=[
        assume(r"$\lambda$ is at least $10^{-6}$", lambda W, a, X: _least(W, a, X)[1] >= 1e-6)
    ],
    count=56,
    roundings=ROUNDINGS,
    proof_step=ProofStep("Lemma 5.3", 3),
    controls=[
        Control(r"$R = 2 \lambda / (nd)$", radius=2.0),
        Control("$R = 0.7$", fixed=0.7),
    ],
)
def claim_e_5(W, a, X, Y, V, *, radius=None, fixed=None):
    r"""$$\max_r \|w_r(\tau)-w_r(0)\| \le \frac{\lambda}{2nd\,e^{10B}} \;\Rightarrow\;
    \|H(\tau)-H^*\|_F \le \frac{\lambda}{2},\quad \lambda_{\min}(H(\tau)) \ge
    \frac{\lambda}{2}$$

    Within so small a radius the kernel hardly moves, so that the second part has the ratio 1/2.
    Without $e^{10B}$ a radius four times as large is too large for the first part.
    """
    start, lam = _least(W, a, X)
    n, k = Y.shape
    R = gu2024_movement_radius(n, k, jnp.maximum(lam, 0), weight_reach(X, W))
    if radius is not None:
        R = radius * lam / (n * k)
    R = R if fixed is None else fixed
    after, least = _least(W + R * V, a, X)
    left = jnp.stack((norm(after - start), lam / 2))
    return Sides(left, jnp.stack((lam / 2, least)), magnitude=norm(start))


def changed_kernels(rng, count):
    """Trainings; in every second one the records are changes of its first kernel, of rank one.

    They take away 0 to 1 times lambda along the slowest direction of the kernel.
    """
    batch = curves(rng, count, further=("kernel",))
    kernel = batch.pop("kernel")[::2]
    slowest = np.linalg.eigh(kernel)[1][..., :1]
    share = np.linspace(0, 1, batch["drift"].shape[1])[:, None, None]
    change = -share * (batch["lam"][::2, None, None] * slowest @ slowest.swapaxes(1, 2))[:, None]
    drift, least = batch["drift"].copy(), batch["least"].copy()
    drift[::2] = np.linalg.norm(change, axis=(2, 3))
    least[::2] = np.linalg.eigvalsh(kernel[:, None] + change)[..., 0]
    return batch | {"drift": drift, "least": least}


@inequality(
    "Claim E.5, the step from the Frobenius norm to the eigenvalue",
    sample=changed_kernels,
    count=COUNT,
    alike=True,
    evaluations=EVALUATIONS,
    roundings=ROUNDINGS,
    controls=[Control("nine tenths of the norm", factor=0.9)],
)
def claim_e_5_weyl(lam, least, drift, most, *, factor=1.0):
    r"""$$\lambda - \lambda_{\min}(H(\tau)) \le \|H(\tau)-H^*\|_F$$

    Along real trainings of width 256, by two independent kernels (tiled and dense): there the
    kernel changes in other directions than its slowest. A change of rank one along the slowest
    direction attains it.
    """
    # Nothing has moved at the first record.
    return Sides(lam - least[1:], factor * drift[1:], magnitude=most)
