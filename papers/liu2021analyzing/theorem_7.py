r"""Theorem 7: features of rank n leave no stationary point but those of zero training loss.

Phi holds the features of sample i in its row i, and the gradient of the risk in w2 is Phi' u / n.
"""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Kind, Sides, Source, Status, assume
from attlas.claims.perturbed_draws import apart
from attlas.claims.sampling import six_decades
from attlas.claims.statement import erratum, identity, inequality
from liu2021analyzing.landscape_instances import ROUNDINGS, attended, risk
from liu2021analyzing.library.measures.stationary_points import stationary_points
from liu2021analyzing.library.models.rectifier import rectify
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP
from liu2021analyzing.library.models.two_layer import TwoLayer

_SAMPLES, _UNITS = 3, 4
_SHARPNESS = 4.0
_TOLERANCE = 1e-9
_STEPS = 100
# Singular values below this share of the largest are zero: rounding leaves 1e-15 of it.
_ZERO = 1e-9


def networks(rng, count):
    """Networks of two words, two dimensions and one value, with labels."""
    W_Q, W_K, W_V = rng.standard_normal((3, count, 1, 2))
    batch = {
        "W_Q": W_Q * six_decades(rng, count, 0, 0)[:, None, None],
        "W_K": W_K,
        "W_V": W_V,
        "W1": rng.standard_normal((count, 2, _UNITS)),
        "w2": rng.standard_normal((count, _UNITS)),
        "x": rng.standard_normal((count, _SAMPLES, 2, 2)),
    }
    v = np.asarray(values_of(*(jnp.asarray(part) for part in batch.values())))
    features = np.maximum(v @ batch["W1"], 0.0)
    # Every second residual lies along the last left singular vector.
    left = np.linalg.svd(features, full_matrices=False)[0]
    outputs = np.einsum("knu,ku->kn", features, batch["w2"])
    y = rng.standard_normal((count, _SAMPLES))
    y[::2] = (outputs - left[:, :, -1])[::2]
    return {**batch, "y": y}


def one_sample_twice(rng, count):
    """Equal weights and one sample twice, with two labels; w2 is a stationary point."""
    batch = networks(rng, count)
    batch["W_Q"] = 0 * batch["W_Q"]
    batch["x"][:, 1] = batch["x"][:, 0]
    for k in range(count):
        v = np.repeat((batch["W_V"][k] @ batch["x"][k]).mean(axis=2), 2, axis=1)
        features = np.maximum(v @ batch["W1"][k], 0.0)
        batch["w2"][k] = np.linalg.lstsq(features, batch["y"][k], rcond=_ZERO)[0]
    return batch


def singular_values(model, inputs):
    """Singular values of Phi."""
    return jnp.linalg.svd(jax.vmap(model.features)(inputs), compute_uv=False)


def least_above_zero(values):
    """The smallest singular value that is more than rounding."""
    return jnp.min(jnp.where(values > _ZERO * values[0], values, jnp.inf))


def of_rank_n(W_Q, W_K, W_V, W1, w2, x):
    """Whether the features of an attention network have rank n."""
    values = singular_values(SelfAttentionMLP(W_Q, W_K, W_V, W1, w2), x)
    return values[-1] > 1e-4 * values[0]


@inequality(
    "Theorem 7, with numbers",
    sample=networks,
    status=Status.SHARPENED,
    assumptions=[assume("rank $n$", of_rank_n)],
    search_over="y",
    count=80,
    roundings=ROUNDINGS,
    controls=[
        Control("the largest singular value", largest=True),
        Control("a quarter of the bound", share=0.25),
        Control(
            "rank below $n$ (one sample twice), the least singular value that is not zero",
            sample=one_sample_twice,
        ),
    ],
)
def theorem_7_quantitative(W_Q, W_K, W_V, W1, w2, x, y, *, largest=False, share=1.0):
    r"""$$\mathrm{rank}\, \Phi = n: \quad \|u\|_2 \le \frac{n}{\sigma_n(\Phi)}
    \|\nabla_{w^{(2)}} L\|_2, \quad u_i = w^{(2)\top} \phi(\langle w^{(1)}, \mathrm{vec}
    (w_V x_i a_i) \rangle) - y_i$$

    At any point, stationary or not; attained by a residual along the last left singular vector. It
    needs the gradient in $w^{(2)}$ alone. With ReLU, random features of width 4 have rank 3 on 3
    samples in a part of the draws only: see theorem-7-almost-surely.
    """
    values = singular_values(SelfAttentionMLP(W_Q, W_K, W_V, W1, w2), x)
    sigma = values[0] if largest else least_above_zero(values)

    def residual(w2):
        return jax.vmap(SelfAttentionMLP(W_Q, W_K, W_V, W1, w2))(x) - y

    slope = jax.grad(lambda w2: jnp.mean(residual(w2) ** 2) / 2)(w2)
    right = share * _SAMPLES * jnp.linalg.norm(slope) / sigma
    # u cancels, and a singular value errs by rounding of the largest.
    size = jnp.linalg.norm(y) + values[0] * jnp.linalg.norm(w2)
    return Sides(jnp.linalg.norm(residual(w2)), right, (size + right) * values[0] / sigma)


def layer_risk(layers, v, y):
    """The risk of two softplus layers on attended values."""
    return risk(layers, v, y, _SHARPNESS)


@jax.jit
@jax.vmap
def values_of(W_Q, W_K, W_V, W1, w2, x):
    """The attended values of all samples."""
    return attended(SelfAttentionMLP(W_Q, W_K, W_V, W1, w2), x)


def stationary(rng, count, copies=False):
    """Stationary points in (w1, w2) of self-attention networks, with certificates."""
    rng = apart(rng)
    x, y = rng.standard_normal((count, _SAMPLES, 2, 2)), rng.standard_normal((count, _SAMPLES))
    W_Q, W_K, W_V = 2 * rng.standard_normal((3, count, 1, 2))
    W_Q *= six_decades(rng, count, 0, 0)[:, None, None]
    W1, w2 = rng.standard_normal((count, 2, _UNITS)), rng.standard_normal((count, _UNITS))
    v = np.asarray(values_of(*jax.device_put([W_Q, W_K, W_V, W1, w2]), jnp.asarray(x)))
    if copies:
        # Equal units have equal gradients: the search stays among networks of one unit.
        W1, w2 = np.repeat(W1[:, :, :1], _UNITS, axis=2), np.repeat(w2[:, :1], _UNITS, axis=1)
    else:
        # Near a least-squares fit: from elsewhere the search ends at points of rank below n,
        # or runs to infinity.
        features = np.logaddexp(0.0, _SHARPNESS * v @ W1) / _SHARPNESS
        fit = np.linalg.pinv(features) @ y[:, :, None]
        w2 = fit[:, :, 0] + 0.1 * w2
    v, y, W1, w2 = (jnp.asarray(part) for part in (v, y, W1, w2))
    points = stationary_points(
        layer_risk, (W1, w2), v, y, in_axes=(0, 0), tolerance=_TOLERANCE, max_steps=_STEPS
    )
    W1, w2 = points.value
    points = {"v": v, "y": y, "W1": W1, "w2": w2, "certified": jnp.asarray(points.converged)}
    return points | {"x": x, "W_Q": W_Q, "W_K": W_K, "W_V": W_V}


def copies_of_one(rng, count):
    """Certified points whose units are equal, repeated to the number asked for."""
    points = stationary(rng, count, copies=True)
    certified = np.flatnonzero(np.asarray(points["certified"]))
    return {name: value[np.resize(certified, count)] for name, value in points.items()}


def layers_of_rank_n(W1, w2, v):
    """Whether the features of the two layers have rank n."""
    values = singular_values(TwoLayer(W1, w2, sharpness=_SHARPNESS), v)
    return values[-1] > 1e-4 * values[0]


@identity(
    "Theorem 7",
    Source.FOUND,
    sample=stationary,
    assumptions=[
        assume("the gradient vanishes", lambda certified: certified),
        assume("rank $n$", layers_of_rank_n),
    ],
    count=40,
    roundings=ROUNDINGS,
    controls=[
        Control(r"rank below $n$: $d \ge n$ units that are copies of one", sample=copies_of_one)
    ],
)
def theorem_7(x, y, W_Q, W_K, W_V, W1, w2):
    r"""$$\nabla_{w^{(1)}, w^{(2)}} L(\theta) = 0, \quad \mathrm{rank} \big[ \phi(\langle
    w^{(1)}, \mathrm{vec}(w_V x_i a_i) \rangle) \big]_{i \le n} = n \Rightarrow L(\theta) = 0$$

    Softplus, $\tau_0 = 4$, three samples with arbitrary labels, two words, four units; stationary
    points of certified gradient, in the two layers alone, which is less than the print asks; at
    zero loss the others follow. The rank is a condition on the point, and $d \ge n$ does not give
    it: copies of one unit are stationary in a network of any width, with a loss. Searches from
    random starts mostly end at such points of rank below $n$.
    """
    model = SelfAttentionMLP(W_Q, W_K, W_V, W1, w2, sharpness=_SHARPNESS)
    least = least_above_zero(singular_values(model, x))
    loss = jnp.mean((jax.vmap(model)(x) - y) ** 2) / 2
    # The point is stationary up to the tolerance of the search: theorem-7-quantitative.
    error = _SAMPLES * _TOLERANCE**2 / (2 * least**2)
    return Sides(loss, jnp.zeros_like(least), jnp.mean(y**2), error)


# After Theorem 7: when do features of width d >= n have rank n for almost all first layers?

_RANK_SAMPLES, _RANK_UNITS = 4, 6
_RANK_SHARPNESS = 2.0
# A singular value is rounding below n eps times the largest; ten times that is taken for zero.
_RANK_ZERO = 10 * _RANK_UNITS * float(np.finfo(float).eps)


def rank(features):
    """Rank of a stack of matrices."""
    values = jnp.linalg.svd(features, compute_uv=False)
    return jnp.sum(jnp.where(values > _RANK_ZERO * values[..., :1], 1.0, 0.0), axis=-1)


def dead():
    """Attended values in the positive quadrant, and first layers around one that is negative."""
    rng = np.random.default_rng(0)
    first = -1.0 + rng.uniform(-0.5, 0.5, (8, 2, _RANK_UNITS))
    return {"v": rng.uniform(0.5, 1.0, (_RANK_SAMPLES, 2)), "W1": first}


@erratum(
    "Appendix C.3, 'after the nonlinear activation', with ReLU",
    of=Kind.IDENTITY,
    witness=dead,
    reason="with ReLU all units are off on an open set of first layers: rank 0",
    corrected=Control("with softplus", sharpness=_RANK_SHARPNESS),
    roundings=1,
)
def theorem_7_almost_surely(v, W1, *, sharpness=None):
    r"""$$d \ge n: \quad \mathrm{rank} \big[ \phi(\langle w^{(1)}, v_i \rangle) \big]_{i \le n} =
    n \quad \mathrm{for\ almost\ all\ } w^{(1)}$$

    Eight first layers of a cube of side 1 around $-1$, attended values in the positive quadrant,
    $n = 4$, $d = 6$: no unit is on anywhere in the cube. Already for $n = d = 1$ the rank is 0 for
    half of all first layers.
    """
    return rank(rectify(v @ W1, sharpness)), _RANK_SAMPLES


@erratum(
    "Appendix C.3, 'linear dependence holds with measure zero', 'full column rank n'",
    of=Kind.IDENTITY,
    witness=dead,
    reason="before the activation the rank is $p d_v = 2$ at most",
    corrected=Control("after the activation, softplus", activated=True),
    roundings=1,
)
def theorem_7_preactivation(v, W1, *, activated=False):
    r"""$$d \ge n: \quad \mathrm{rank} \big[ \langle w^{(1)}, v_i \rangle \big]_{i \le n} =
    n \quad \mathrm{for\ almost\ all\ } w^{(1)}$$

    $n = 4$ samples of $p d_v = 2$ attended values. The print derives the rank of the features from
    that of their arguments; it comes from the activation instead.
    """
    z = v @ W1
    return rank(rectify(z, _RANK_SHARPNESS) if activated else z), _RANK_SAMPLES


def first_layers(rng, count):
    """Attended values, no two of them opposite, and normal first layers of two sizes."""
    v, W1 = (
        rng.standard_normal((count, _RANK_SAMPLES, 2)),
        rng.standard_normal((count, 2, _RANK_UNITS)),
    )
    W1[::2] *= 3.0
    return {"v": v, "W1": W1}


@identity(
    "Appendix C.3, what holds almost surely",
    sample=first_layers,
    status=Status.CORRECTED,
    roundings=1,
    controls=[
        Control("attended values $v$, $-v$, $2v$ and $-2v$", opposite=True),
        Control("with ReLU", sharpness=None),
    ],
)
def theorem_7_softplus_rank(v, W1, *, opposite=False, sharpness=_RANK_SHARPNESS):
    r"""$$d \ge n, v_i \ne \pm v_j: \quad \mathrm{rank} \big[ \phi_{\tau_0}(\langle w^{(1)}, v_i
    \rangle) \big]_{i \le n} = n \quad \mathrm{for\ almost\ all\ } w^{(1)}$$

    Along almost every $w$ the numbers $|\langle w, v_i \rangle|$ differ, and the softplus of $t z$
    less its linear part decays like $e^{-t |z|}$: for large $t$ the slowest term cannot be
    cancelled. As minors are analytic in $w^{(1)}$, they vanish on a null set. Without biases
    opposite values do spoil it: $\phi(z) - \phi(-z) = z$, so $v$, $-v$, $2v$, $-2v$ are dependent.
    """
    values = jnp.outer(jnp.asarray([1.0, -1.0, 2.0, -2.0]), v[0]) if opposite else v
    return rank(rectify(values @ W1, sharpness)), _RANK_SAMPLES
