r"""Definitions 3.5 and F.1: descent of the network, and descent of the regression in theta.

Phi(x) is the tangent feature of a sample and an output, with H = Phi Phi'; the predictor is
m Phi(x) theta. The library has neither theta nor Phi: it decomposes the kernel once.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import expm

from attlas._jax.device_arrays import on_device
from attlas.claims.claim import Control, Sides, Source, Status
from attlas.claims.statement import identity
from attlas.models.networks.softmax_network import SoftmaxNetwork
from gu2024exploring.instances import inputs, symmetric_networks
from gu2024exploring.library.kernels.dense_softmax_ntk import unit_features
from gu2024exploring.library.kernels.regression_flow import regression_flow
from gu2024exploring.one_step import ROUNDINGS
from gu2024exploring.trajectories import COUNT, GENERAL, STEPS, trained

_TRAINED = 8


def first_steps(rng, count):
    """Starts of trainings, and the weights that the library's loop has after eight steps."""
    runs = trained(rng, count, GENERAL)
    named = {name: runs[name] for name in ("W", "a", "X", "Y", "eta")}
    return named | {"after": runs["path"][:, STEPS.index(_TRAINED)]}


@identity(
    "Definition 3.5",
    Source.RECALLED,
    sample=first_steps,
    count=COUNT,
    roundings=_TRAINED * ROUNDINGS,
    controls=[Control("a step of 1.001", longer=1.001)],
)
def definition_3_5(W, a, X, Y, eta, after, *, longer=1.0):
    r"""$$W(\tau + 1) = W(\tau) - \eta \Delta W(\tau),\quad \Delta w_r = m \sum_i \sum_\ell
    (F_{\ell,i} - y_{\ell,i}) \langle v_{\ell,r}, S_i \rangle S_{i,r} x_i$$

    Eight steps written out, against the loop that trains our networks; $a$ is not trained.
    """
    m = W.shape[1]

    def step(_, W):
        S = jax.nn.softmax(X @ W, axis=1)
        means = S @ a.T
        v = a[None] - means[:, :, None]
        return W - longer * eta * m * jnp.einsum("il,ilr,ir,id->dr", m * means - Y, v, S, X)

    right = jax.lax.fori_loop(0, _TRAINED, step, W)
    return Sides(after, right, magnitude=jnp.max(jnp.abs(W)))


_TIMES = (1, 4, 24)
_SIZES = (2, 8, 2, 3)


def _features(W, a, X):
    """Phi: a row of d m numbers for every output and sample, output by output."""
    f = unit_features(SoftmaxNetwork(W, a), X)
    return jnp.einsum("lir,id->lidr", f, X).reshape(f.shape[0] * len(X), -1) / W.shape[1] ** 0.5


def regressions(rng, count):
    """Networks at their start with two test inputs, and what the library's regression predicts.

    In every third instance two samples agree: the kernel is singular. Steps of 0.2 to 1.9 over the
    largest eigenvalue: fast directions may alternate.
    """
    batch = symmetric_networks(rng, count, _SIZES)
    batch["X"][::3, 1] = batch["X"][::3, 0]
    batch["W"] /= np.maximum(1, batch["sigma"])[:, None, None]
    Z, share = inputs(rng, count, 2, _SIZES[0]), rng.uniform(0.2, 1.9, count)
    layers = [on_device(batch[name]) for name in ("W", "a")]
    features = jax.jit(jax.vmap(_features))
    Phi, Phi_te = (np.asarray(features(*layers, jnp.asarray(x))) for x in (batch["X"], Z))
    y, times = batch["Y"].swapaxes(1, 2).reshape(count, -1), np.asarray(_TIMES, float)
    named = {"descent": [], "flow": [], "exact": [], "eta": []}
    for e in range(count):
        H, K = (_SIZES[1] * part[e] @ Phi[e].T for part in (Phi, Phi_te))
        solved = regression_flow((H + H.T) / 2, y[e][:, None])
        eta = share[e] / solved.eigenvalues[-1]
        named["eta"].append(eta)
        for name, by in (("descent", (times, eta)), ("flow", (eta * times, None))):
            ends = solved.test(K, *by), solved.train(*by)
            named[name].append(np.concatenate(ends, axis=1)[..., 0])
        # The residual decays, and both kinds of values grow by what it leaves.
        kernels = np.concatenate((K, H))
        system = np.block(
            [[-H, np.zeros((len(H), len(kernels)))], [kernels, np.zeros((len(kernels),) * 2)]]
        )
        start = np.concatenate((y[e], np.zeros(len(kernels))))
        named["exact"].append([(expm(eta * t * system) @ start)[len(H) :] for t in _TIMES])
    return batch | {"Z": Z} | {name: np.asarray(part) for name, part in named.items()}


on_regressions = partial(identity, sample=regressions, count=32, roundings=2**13)


@on_regressions(
    "Definition F.1, (22) to (24)",
    Source.RECALLED,
    controls=[
        Control("the factor $m$ of the gradient of (23) kept", whole=True),
        Control("gradient flow in place of descent", flowing=True),
    ],
)
def definition_f_1(W, a, X, Y, Z, eta, descent, flow, *, whole=False, flowing=False):
    r"""$$\gamma_{ntk}(x) = m \Phi(x) \theta(\tau),\quad L = \tfrac12 \sum_{i, \ell}
    (m \Phi_\ell(x_i) \theta - y_{\ell,i})^2,\quad
    \theta(\tau + 1) = \theta(\tau) - \eta \sum_{i, \ell} \Phi_\ell(x_i)^\top
    (m \Phi_\ell(x_i) \theta(\tau) - y_{\ell,i})$$

    1, 4 and 24 steps from $\theta = 0$, against one decomposition of $m H^*$. The gradient of (23)
    has a further factor $m$: with it $u$ would follow $m^2 H^*$ and not the $m H^*$ of the proof of
    Theorem F.2, so that (24), whose formula we recall, is taken without it.
    """
    m, Phi, Phi_te, y = W.shape[1], _features(W, a, X), _features(W, a, Z), Y.T.ravel()
    rate = eta * (m if whole else 1.0)

    def step(theta, _):
        theta = theta - rate * Phi.T @ (m * Phi @ theta - y)
        return theta, m * jnp.concatenate((Phi_te, Phi)) @ theta

    path = jax.lax.scan(step, jnp.zeros(Phi.shape[1]), None, length=_TIMES[-1])[1]
    left = path[jnp.asarray(_TIMES) - 1]
    largest = jnp.maximum(jnp.linalg.norm(Phi_te), jnp.linalg.norm(Phi))
    size = 1 + eta * m * largest * jnp.linalg.norm(Phi) * _TIMES[-1]
    return Sides(left, flow if flowing else descent, magnitude=size * (1 + jnp.max(jnp.abs(y))))


@on_regressions(
    "Theorem F.2, (25) and (26): the flow of the regression",
    status=Status.NEW,
    controls=[Control("descent in place of gradient flow", flowing=False)],
)
def definition_f_1_flow(Y, exact, flow, descent, *, flowing=True):
    r"""$$\dot \gamma = -m K_{te} (u - Y),\quad \dot u = -m H^* (u - Y)$$

    Against the matrix exponential of the joint linear system.
    """
    return Sides(exact, flow if flowing else descent, magnitude=10 * (1 + jnp.max(jnp.abs(Y))))
