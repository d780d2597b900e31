r"""Theorem 5 with softplus, by which section 2 replaces ReLU: the orbit changes the function."""

import math

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Kind, Sides, Status
from attlas.claims.statement import erratum, identity, inequality
from liu2021analyzing.library.measures.orbit_flatness import rescaled_layers
from liu2021analyzing.library.models.two_layer import TwoLayer

_ALPHAS = (0.01, 0.5, 3.0, 100.0)
_SHARPNESS = 10.0
# A softplus, two sums of at most 4 terms.
_ROUNDINGS = 64


def layers(rng, count):
    """Layers and attended values; every fourth with a unit at its kink and one sign of w2."""
    W1, w2, v = (rng.standard_normal((count, *shape)) for shape in ((3, 4), (4,), (3,)))
    v[::4] = 0
    w2[::4] = np.abs(w2[::4])
    return {"W1": W1, "w2": w2, "v": v}


def size_of_terms(W1, w2, v, tau):
    """What is added up in an output."""
    return (jnp.abs(v) @ jnp.abs(W1) + math.log(2) / tau) @ jnp.abs(w2)


def sizes(W1, w2, v):
    """What is added up in the outputs along the orbit."""
    return jnp.stack([size_of_terms(W1, w2, v, _SHARPNESS * a) for a in _ALPHAS])


def along_the_orbit(W1, w2, v, sharpness):
    """Outputs at T_alpha(theta) for each alpha."""
    nets = [TwoLayer(*rescaled_layers(W1, w2, a), sharpness=sharpness) for a in _ALPHAS]
    return jnp.stack([net(v) for net in nets])


@identity(
    "Theorem 5 with softplus",
    sample=layers,
    status=Status.CORRECTED,
    count=32,
    roundings=_ROUNDINGS,
    controls=[Control(r"a sharpness over $\alpha$", inverse=True)],
)
def theorem_5_softplus_sharpness(W1, w2, v, *, inverse=False):
    r"""$$F_{\tau_0}(T_\alpha(\theta)) = F_{\alpha \tau_0}(\theta), \quad
    \phi_{\tau_0}(z) = \tau_0^{-1} \log(1 + e^{\tau_0 z})$$

    $T_\alpha$ changes the sharpness and nothing else. So with softplus the orbit is a path from
    $\tau_0$ to ReLU for $\alpha \to \infty$; for $\alpha \to 0$ it is linear in the attended
    values up to the constant $\log(2) \sum_i w^{(2)}_i / (\alpha \tau_0)$, which diverges unless
    the second layer sums to zero.
    """
    taus = [_SHARPNESS / a if inverse else _SHARPNESS * a for a in _ALPHAS]
    resharpened = jnp.stack([TwoLayer(W1, w2, sharpness=tau)(v) for tau in taus])
    return Sides(along_the_orbit(W1, w2, v, _SHARPNESS), resharpened, sizes(W1, w2, v))


@inequality(
    "Theorem 5 with softplus, what is left of it",
    sample=layers,
    status=Status.CORRECTED,
    count=32,
    roundings=_ROUNDINGS,
    search_over=("W1", "w2", "v"),
    controls=[Control("half of it", factor=0.5)],
)
def theorem_5_softplus_extent(W1, w2, v, *, factor=1.0):
    r"""$$| F_{\tau_0}(T_\alpha(\theta)) - F_{\mathrm{ReLU}}(\theta) | \le
    \frac{\log 2}{\alpha \tau_0} \|w^{(2)}\|_1$$

    Attained at an attended value 0. Once $\epsilon$ exceeds what $\tau_0$ makes of the risk, the
    half $\alpha \ge 1$ of the orbit stays in the flat set, and with it the infinite volume; for
    $\alpha \to 0$, where the Hessian diverges, it leaves the set unless $\sum_i w^{(2)}_i = 0$.
    """
    gap = jnp.abs(along_the_orbit(W1, w2, v, _SHARPNESS) - TwoLayer(W1, w2)(v))
    bound = math.log(2) * jnp.sum(jnp.abs(w2)) / (jnp.asarray(_ALPHAS) * _SHARPNESS)
    return Sides(gap, factor * bound, sizes(W1, w2, v))


def near_the_kink():
    """Four units on one attended value near 0, tau_0 = 10."""
    return {"W1": np.ones((3, 4)), "w2": np.ones(4), "v": np.full(3, 0.01)}


@erratum(
    "Theorem 5 with the activation of section 2",
    of=Kind.IDENTITY,
    witness=near_the_kink,
    reason="softplus is not positively homogeneous",
    corrected=Control("with ReLU", sharpness=None),
    roundings=_ROUNDINGS,
)
def theorem_5_softplus(W1, w2, v, *, sharpness=_SHARPNESS):
    r"""$$F_{\tau_0}(T_\alpha(\theta)) = F_{\tau_0}(\theta)$$

    $\tau_0 = 10$: at $\alpha = 0.01$ the output is 28 in place of 0.3. Minima of one risk need
    not be minima of the other: sharp ones come from $T_\alpha$ only where the output does not
    change, as for two units $u, -u$ with weights $c, -c$, whose output is $c \langle u, v \rangle$.
    """
    outputs = TwoLayer(W1, w2, sharpness=sharpness)(v)
    size = size_of_terms(W1, w2, v, _SHARPNESS * _ALPHAS[0])
    return Sides(along_the_orbit(W1, w2, v, sharpness), outputs, size)
