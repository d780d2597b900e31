r"""After Theorem 7: when do features of width d >= n have rank n for almost all first layers?"""

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Kind, Status
from attlas.claims.statement import erratum, identity
from liu2021analyzing.library.models.rectifier import rectify

_SAMPLES, _UNITS = 4, 6
_SHARPNESS = 2.0
# A singular value is rounding below n eps times the largest; ten times that is taken for zero.
_ZERO = 10 * _UNITS * float(np.finfo(float).eps)


def rank(features):
    """Rank of a stack of matrices."""
    values = jnp.linalg.svd(features, compute_uv=False)
    return jnp.sum(jnp.where(values > _ZERO * values[..., :1], 1.0, 0.0), axis=-1)


def dead():
    """Attended values in the positive quadrant, and first layers around one that is negative."""
    rng = np.random.default_rng(0)
    first = -1.0 + rng.uniform(-0.5, 0.5, (8, 2, _UNITS))
    return {"v": rng.uniform(0.5, 1.0, (_SAMPLES, 2)), "W1": first}


@erratum(
    "Appendix C.3, 'after the nonlinear activation', with ReLU",
    of=Kind.IDENTITY,
    witness=dead,
    reason="with ReLU all units are off on an open set of first layers: rank 0",
    corrected=Control("with softplus", sharpness=_SHARPNESS),
    roundings=1,
)
def theorem_7_almost_surely(v, W1, *, sharpness=None):
    r"""$$d \ge n: \quad \mathrm{rank} \big[ \phi(\langle w^{(1)}, v_i \rangle) \big]_{i \le n} =
    n \quad \mathrm{for\ almost\ all\ } w^{(1)}$$

    Eight first layers of a cube of side 1 around $-1$, attended values in the positive quadrant,
    $n = 4$, $d = 6$: no unit is on anywhere in the cube. Already for $n = d = 1$ the rank is 0 for
    half of all first layers.
    """
    return rank(rectify(v @ W1, sharpness)), _SAMPLES


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
    return rank(rectify(z, _SHARPNESS) if activated else z), _SAMPLES


def first_layers(rng, count):
    """Attended values, no two of them opposite, and normal first layers of two sizes."""
    v, W1 = rng.standard_normal((count, _SAMPLES, 2)), rng.standard_normal((count, 2, _UNITS))
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
def theorem_7_softplus_rank(v, W1, *, opposite=False, sharpness=_SHARPNESS):
    r"""$$d \ge n, v_i \ne \pm v_j: \quad \mathrm{rank} \big[ \phi_{\tau_0}(\langle w^{(1)}, v_i
    \rangle) \big]_{i \le n} = n \quad \mathrm{for\ almost\ all\ } w^{(1)}$$

    Along almost every $w$ the numbers $|\langle w, v_i \rangle|$ differ, and the softplus of $t z$
    less its linear part decays like $e^{-t |z|}$: for large $t$ the slowest term cannot be
    cancelled. As minors are analytic in $w^{(1)}$, they vanish on a null set. Without biases
    opposite values do spoil it: $\phi(z) - \phi(-z) = z$, so $v$, $-v$, $2v$, $-2v$ are dependent.
    """
    values = jnp.outer(jnp.asarray([1.0, -1.0, 2.0, -2.0]), v[0]) if opposite else v
    return rank(rectify(values @ W1, sharpness)), _SAMPLES
