r"""Theorem 7: features of rank n leave no stationary point but those of zero training loss.

Phi holds the features of sample i in its row i, u = Phi w2 - y, and the gradient of the risk in
w2 is Phi' u / n.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.claims.liu2021analyzing.landscape_instances import ROUNDINGS, network, risk
from attlas.core.generator import generator, seed_of
from attlas.core.old_claim import (
    Assumption,
    Claim,
    Control,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)
from attlas.measures.curvature.stationary_points import stationary_points
from attlas.models.attention.self_attention_mlp import SelfAttentionMLP
from attlas.models.networks.two_layer import TwoLayer

_PAPER = "liu2021analyzing"

_SAMPLES, _UNITS = 3, 4
_SHARPNESS = 4.0
_TOLERANCE = 1e-9
_STEPS = 100
# Singular values below this share of the largest are zero: rounding leaves 1e-15 of it.
_ZERO = 1e-9
_WEIGHTS = ("W_Q", "W_K", "W_V", "W1", "w2")


def _drawn(rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    """Networks of two words, two dimensions and one value, with labels of their own."""
    shapes = ((1, 2), (1, 2), (1, 2), (2, _UNITS), (_UNITS,))
    found = {
        name: rng.standard_normal((count, *shape))
        for name, shape in zip(_WEIGHTS, shapes, strict=True)
    }
    x, y = rng.standard_normal((count, _SAMPLES, 2, 2)), rng.standard_normal((count, _SAMPLES))
    return found | {"x": x, "y": y}


def _networks(key: PRNGKeyArray, count: int) -> Instance:
    return {name: jnp.asarray(value) for name, value in _drawn(generator(key), count).items()}


def _deficient(key: PRNGKeyArray, count: int) -> Instance:
    """Equal weights and one sample twice, with two labels; w2 is a stationary point."""
    found = _drawn(generator(key), count)
    found["W_Q"] = 0 * found["W_Q"]
    found["x"][:, 1] = found["x"][:, 0]
    for k in range(count):
        v = np.repeat((found["W_V"][k] @ found["x"][k]).mean(axis=2), 2, axis=1)
        features = np.maximum(v @ found["W1"][k], 0.0)
        found["w2"][k] = np.linalg.lstsq(features, found["y"][k], rcond=_ZERO)[0]
    return {name: jnp.asarray(value) for name, value in found.items()}


def _values(instance: Instance) -> Float[Array, " n"]:
    features = jax.vmap(network(instance).features)(instance["x"])
    return jnp.linalg.svd(features, compute_uv=False)


def _risk(model: SelfAttentionMLP, x: Float[Array, "n t p"], y: Float[Array, " n"]) -> Array:
    return jnp.mean((jax.vmap(model)(x) - y) ** 2) / 2


def _residual(instance: Instance, largest: bool) -> Sides:
    values = _values(instance)
    x, y = instance["x"], instance["y"]
    kept = jnp.where(values > _ZERO * values[0], values, jnp.inf)
    value = values[0] if largest else jnp.min(kept)

    def of(w2: Float[Array, " d"]) -> Array:
        return _risk(network({**instance, "w2": w2}), x, y)

    slope = jax.grad(of)(instance["w2"])
    u = jax.vmap(network(instance))(x) - y
    right = _SAMPLES * jnp.linalg.norm(slope) / value
    # u cancels, and a singular value errs by rounding of the largest.
    size = jnp.linalg.norm(y) + values[0] * jnp.linalg.norm(instance["w2"])
    return Sides(jnp.linalg.norm(u), right, (size + right) * values[0] / value)


def _full_rank(instance: Instance) -> Array:
    values = _values(instance)
    return values[-1] > 1e-4 * values[0]


THEOREM_7_QUANTITATIVE = Claim(
    name=f"{_PAPER}/theorem-7-quantitative",
    paper=_PAPER,
    locator="Theorem 7, with numbers",
    statement=(
        r"\mathrm{rank}\, \Phi = n: \quad \|u\|_2 \le \frac{n}{\sigma_n(\Phi)}"
        r"\|\nabla_{w^{(2)}} L\|_2, \quad u_i = w^{(2)\top} \phi(\langle w^{(1)}, \mathrm{vec}"
        r"(w_V x_i a_i) \rangle) - y_i"
    ),
    kind=Kind.INEQUALITY,
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    instances=_networks,
    sides=lambda i: _residual(i, False),
    free=("y",),
    control=(
        Control("the largest singular value", lambda i: _residual(i, True)),
        Control(
            "rank below n (one sample twice), the least singular value that is not zero",
            instances=_deficient,
        ),
    ),
    assumptions=(Assumption("rank n", _full_rank),),
    count=80,
    terms=ROUNDINGS,
    note=(
        "At any point, stationary or not; attained by a residual along the last left singular "
        "vector. It needs the gradient in w2 alone. With ReLU, random features of width 4 have "
        "rank 3 on 3 samples in a part of the draws only: see theorem-7-almost-surely."
    ),
)


def _layer_risk(
    layers: tuple[Array, Array], v: Float[Array, "n v"], y: Float[Array, " n"]
) -> Float[Array, ""]:
    return risk(layers, v, y, _SHARPNESS)


@cache
def _found(seed: tuple[int, ...], count: int, copies: bool) -> Instance:
    """Stationary points in (w1, w2) for given attended values, with certificates."""
    rng = np.random.default_rng(seed)
    v, y = rng.standard_normal((count, _SAMPLES, 2)), rng.standard_normal((count, _SAMPLES))
    W1, w2 = rng.standard_normal((count, 2, _UNITS)), rng.standard_normal((count, _UNITS))
    if copies:
        # Equal units have equal gradients: the search stays among networks of one unit.
        W1, w2 = np.repeat(W1[:, :, :1], _UNITS, axis=2), np.repeat(w2[:, :1], _UNITS, axis=1)
    else:
        # Near a least-squares fit: from elsewhere the search ends at points of rank below n,
        # or runs to infinity.
        features = np.logaddexp(0.0, _SHARPNESS * v @ W1) / _SHARPNESS
        fit = np.linalg.pinv(features) @ y[:, :, None]
        w2 = fit[:, :, 0] + 0.1 * w2
    batch = {name: jnp.asarray(part) for name, part in (("v", v), ("y", y))}
    found = stationary_points(
        _layer_risk,
        (jnp.asarray(W1), jnp.asarray(w2)),
        batch["v"],
        batch["y"],
        in_axes=(0, 0),
        tolerance=_TOLERANCE,
        max_steps=_STEPS,
    )
    W1, w2 = found.value
    return batch | {"W1": W1, "w2": w2, "certified": jnp.asarray(found.converged)}


def _copies(key: PRNGKeyArray, count: int) -> Instance:
    """Certified points whose units are equal, repeated to the number asked for."""
    found = _found(seed_of(key), count, True)
    kept = np.flatnonzero(np.asarray(found["certified"]))
    return {name: value[np.resize(kept, count)] for name, value in found.items()}


def _layer_values(instance: Instance) -> Float[Array, " n"]:
    layers = TwoLayer(instance["W1"], instance["w2"], sharpness=_SHARPNESS)
    return jnp.linalg.svd(jax.vmap(layers.features)(instance["v"]), compute_uv=False)


def _layer_rank(instance: Instance) -> Array:
    values = _layer_values(instance)
    return values[-1] > 1e-4 * values[0]


def _loss(instance: Instance) -> Sides:
    values, y = _layer_values(instance), instance["y"]
    loss = _layer_risk((instance["W1"], instance["w2"]), instance["v"], y)
    kept = jnp.min(jnp.where(values > _ZERO * values[0], values, jnp.inf))
    # The point is stationary up to the tolerance of the search: theorem-7-quantitative.
    error = _SAMPLES * _TOLERANCE**2 / (2 * kept**2)
    return Sides(loss, jnp.zeros_like(loss), jnp.mean(y**2), error)


THEOREM_7 = Claim(
    name=f"{_PAPER}/theorem-7",
    paper=_PAPER,
    locator="Theorem 7",
    statement=(
        r"\nabla_{w^{(1)}, w^{(2)}} L(\theta) = 0, \quad \mathrm{rank} \big[ \phi(\langle "
        r"w^{(1)}, \mathrm{vec}(w_V x_i a_i) \rangle) \big]_{i \le n} = n \Rightarrow L(\theta) = 0"
    ),
    kind=Kind.IDENTITY,
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    instances=lambda key, count: _found(seed_of(key), count, False),
    sides=_loss,
    control=Control("rank below n: d >= n units that are copies of one", instances=_copies),
    assumptions=(
        Assumption("the gradient vanishes", lambda i: i["certified"]),
        Assumption("rank n", _layer_rank),
    ),
    count=40,
    terms=ROUNDINGS,
    note=(
        "Softplus, tau_0 = 4, three samples with arbitrary labels, four units; stationary points "
        "of certified gradient, in the two layers alone, which is less than the print asks. The "
        "rank is a condition on the point, and d >= n does not give it: copies of one unit are "
        "stationary in a network of any width, with a loss. Searches from random starts mostly "
        "end at such points of rank below n."
    ),
)
