r"""Theorem 5 with softplus, by which section 2 replaces ReLU: the orbit changes the function."""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.core.generator import generator
from attlas.core.old_claim import (
    Claim,
    Control,
    Expectation,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)
from attlas.core.verdict import Outcome, Witness
from attlas.measures.curvature.orbit_flatness import rescaled_layers
from attlas.models.networks.two_layer import TwoLayer

_PAPER = "liu2021analyzing"

_ALPHAS = (0.01, 0.5, 3.0, 100.0)
_SHARPNESS = 10.0
# A softplus, two sums of at most 4 terms.
_ROUNDINGS = 64


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """Layers and attended values; every fourth with a unit at its kink and one sign of w2."""
    rng = generator(key)
    W1, w2, v = (rng.standard_normal((count, *shape)) for shape in ((3, 4), (4,), (3,)))
    v[::4] = 0
    w2[::4] = np.abs(w2[::4])
    return {"W1": jnp.asarray(W1), "w2": jnp.asarray(w2), "v": jnp.asarray(v)}


def _size(instance: Instance, tau: float) -> Float[Array, ""]:
    """What is added up in an output."""
    z = jnp.abs(instance["v"]) @ jnp.abs(instance["W1"]) + math.log(2) / tau
    return z @ jnp.abs(instance["w2"])


def _moved(instance: Instance, sharpness: float | None) -> Float[Array, " k"]:
    """Outputs at T_alpha(theta) for each alpha."""
    layers = instance["W1"], instance["w2"]
    nets = [TwoLayer(*rescaled_layers(*layers, a), sharpness=sharpness) for a in _ALPHAS]
    return jnp.stack([net(instance["v"]) for net in nets])


def _resharpened(instance: Instance, inverse: bool) -> Sides:
    taus = [_SHARPNESS / a if inverse else _SHARPNESS * a for a in _ALPHAS]
    nets = [TwoLayer(instance["W1"], instance["w2"], sharpness=tau) for tau in taus]
    size = jnp.stack([_size(instance, _SHARPNESS * a) for a in _ALPHAS])
    here = jnp.stack([net(instance["v"]) for net in nets])
    return Sides(_moved(instance, _SHARPNESS), here, size)


SHARPNESS = Claim(
    name=f"{_PAPER}/theorem-5-softplus-sharpness",
    paper=_PAPER,
    locator="Theorem 5 with softplus",
    statement=(
        r"F_{\tau_0}(T_\alpha(\theta)) = F_{\alpha \tau_0}(\theta), \quad"
        r"\phi_{\tau_0}(z) = \tau_0^{-1} \log(1 + e^{\tau_0 z})"
    ),
    kind=Kind.IDENTITY,
    status=Status.CORRECTED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=lambda i: _resharpened(i, False),
    control=Control("a sharpness over alpha", lambda i: _resharpened(i, True)),
    count=32,
    terms=_ROUNDINGS,
    note=(
        "T_alpha changes the sharpness and nothing else. So with softplus the orbit is a path "
        "from tau_0 to ReLU for alpha to infinity, and to a constant that diverges, "
        "log(2) sum w2 / (alpha tau_0), for alpha to 0."
    ),
)


def _distance(instance: Instance, factor: float) -> Sides:
    layers = instance["W1"], instance["w2"]
    sharp = TwoLayer(*layers)(instance["v"])
    alphas = jnp.asarray(_ALPHAS)
    bound = math.log(2) * jnp.sum(jnp.abs(layers[1])) / (alphas * _SHARPNESS)
    size = jnp.stack([_size(instance, _SHARPNESS * a) for a in _ALPHAS])
    return Sides(jnp.abs(_moved(instance, _SHARPNESS) - sharp), factor * bound, size)


DISTANCE = Claim(
    name=f"{_PAPER}/theorem-5-softplus-extent",
    paper=_PAPER,
    locator="Theorem 5 with softplus, what is left of it",
    statement=(
        r"| F_{\tau_0}(T_\alpha(\theta)) - F_{\mathrm{ReLU}}(\theta) | \le"
        r"\frac{\log 2}{\alpha \tau_0} \|w^{(2)}\|_1"
    ),
    kind=Kind.INEQUALITY,
    status=Status.CORRECTED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=lambda i: _distance(i, 1.0),
    control=Control("half of it", lambda i: _distance(i, 0.5)),
    count=32,
    terms=_ROUNDINGS,
    note=(
        "Attained at an attended value 0. Once epsilon exceeds what tau_0 makes of the risk, the "
        "half alpha >= 1 of the orbit stays in the flat set, and with it the infinite volume; "
        "the half alpha < 1, where the Hessian diverges, leaves the set."
    ),
)


def _witness() -> Witness:
    """A unit on one attended value near 0, tau_0 = 10."""
    return {"W1": np.ones((3, 4)), "w2": np.ones(4), "v": np.full(3, 0.01)}


def _repeated(key: PRNGKeyArray, count: int) -> Instance:
    """The one instance that the statement is about, repeated."""
    del key
    return {k: jnp.asarray(np.repeat(v[None], count, axis=0)) for k, v in _witness().items()}


def _unchanged(instance: Instance, sharpness: float | None) -> Sides:
    here = TwoLayer(instance["W1"], instance["w2"], sharpness=sharpness)(instance["v"])
    moved = _moved(instance, sharpness)
    size = jnp.full(moved.shape, _size(instance, _SHARPNESS * _ALPHAS[0]))
    return Sides(moved, jnp.broadcast_to(here, moved.shape), size)


SOFTPLUS = Claim(
    name=f"{_PAPER}/theorem-5-softplus",
    paper=_PAPER,
    locator="Theorem 5 with the activation of section 2",
    statement=r"F_{\tau_0}(T_\alpha(\theta)) = F_{\tau_0}(\theta)",
    kind=Kind.IDENTITY,
    status=Status.ERRATUM,
    provenance=Provenance.FOUND,
    instances=_repeated,
    sides=lambda i: _unchanged(i, _SHARPNESS),
    witness=_witness,
    control=Control("with ReLU", lambda i: _unchanged(i, None), expect=Outcome.SUPPORTED),
    expect=Expectation(Outcome.VIOLATED, "softplus is not positively homogeneous"),
    terms=_ROUNDINGS,
    note=(
        "tau_0 = 10: at alpha = 0.01 the output is 28 in place of 0.3. Minima of one risk are "
        "not minima of the other, so no sharp minimum comes from T_alpha."
    ),
)
