r"""After Theorem 7: when do features of width d >= n have rank n for almost all first layers?"""

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
from attlas.models.networks.rectifier import rectify

_PAPER = "liu2021analyzing"

_SAMPLES, _UNITS = 4, 6
_SHARPNESS = 2.0
# A singular value is rounding below n eps times the largest; ten times that is taken for zero.
_ZERO = 10 * _UNITS * float(np.finfo(float).eps)


def _rank(features: Float[Array, "*k n d"]) -> Float[Array, "*k"]:
    values = jnp.linalg.svd(features, compute_uv=False)
    return jnp.sum(jnp.where(values > _ZERO * values[..., :1], 1.0, 0.0), axis=-1)


def _dead() -> Witness:
    """Attended values in the positive quadrant, and first layers around one that is negative."""
    rng = np.random.default_rng(0)
    first = -1.0 + rng.uniform(-0.5, 0.5, (8, 2, _UNITS))
    return {"v": rng.uniform(0.5, 1.0, (_SAMPLES, 2)), "W1": first}


def _repeated(key: PRNGKeyArray, count: int) -> Instance:
    """The one instance that the statement is about, repeated."""
    del key
    return {k: jnp.asarray(np.repeat(v[None], count, axis=0)) for k, v in _dead().items()}


def _ranks(instance: Instance, activation: str) -> Sides:
    z = instance["v"] @ instance["W1"]
    features = {
        "none": lambda: z,
        "relu": lambda: rectify(z),
        "softplus": lambda: rectify(z, _SHARPNESS),
    }[activation]()
    rank = _rank(features)
    return Sides(rank, jnp.full_like(rank, _SAMPLES))


ALMOST_SURELY = Claim(
    name=f"{_PAPER}/theorem-7-almost-surely",
    paper=_PAPER,
    locator="Appendix C.3, 'after the nonlinear activation', with ReLU",
    statement=(
        r"d \ge n: \quad \mathrm{rank} \big[ \phi(\langle w^{(1)}, v_i \rangle) \big]_{i \le n} ="
        r"n \quad \mathrm{for\ almost\ all\ } w^{(1)}"
    ),
    kind=Kind.IDENTITY,
    status=Status.ERRATUM,
    provenance=Provenance.FOUND,
    instances=_repeated,
    sides=lambda i: _ranks(i, "relu"),
    witness=_dead,
    control=Control("with softplus", lambda i: _ranks(i, "softplus"), expect=Outcome.SUPPORTED),
    expect=Expectation(
        Outcome.VIOLATED, "with ReLU all units are off on an open set of first layers: rank 0"
    ),
    terms=1,
    note=(
        "Eight first layers of a cube of side 1 around -1, attended values in the positive "
        "quadrant, n = 4, d = 6: no unit is on anywhere in the cube. Already for n = d = 1 the "
        "rank is 0 for half of all first layers."
    ),
)

PREACTIVATION = Claim(
    name=f"{_PAPER}/theorem-7-preactivation",
    paper=_PAPER,
    locator="Appendix C.3, 'linear dependence holds with measure zero', 'full column rank n'",
    statement=(
        r"d \ge n: \quad \mathrm{rank} \big[ \langle w^{(1)}, v_i \rangle \big]_{i \le n} ="
        r"n \quad \mathrm{for\ almost\ all\ } w^{(1)}"
    ),
    kind=Kind.IDENTITY,
    status=Status.ERRATUM,
    provenance=Provenance.FOUND,
    instances=_repeated,
    sides=lambda i: _ranks(i, "none"),
    witness=_dead,
    control=Control(
        "after the activation, softplus",
        lambda i: _ranks(i, "softplus"),
        expect=Outcome.SUPPORTED,
    ),
    expect=Expectation(Outcome.VIOLATED, "before the activation the rank is p d_v = 2 at most"),
    terms=1,
    note=(
        "n = 4 samples of p d_v = 2 attended values. The print derives the rank of the features "
        "from that of their arguments; it comes from the activation instead."
    ),
)


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """Attended values, no two of them opposite, and normal first layers of two sizes."""
    rng = generator(key)
    v, W1 = rng.standard_normal((count, _SAMPLES, 2)), rng.standard_normal((count, 2, _UNITS))
    W1[::2] *= 3.0
    return {"v": jnp.asarray(v), "W1": jnp.asarray(W1)}


def _opposite(instance: Instance) -> Sides:
    first = instance["v"][:2]
    return _ranks({**instance, "v": jnp.concatenate([first[:1], -first[:1], 2 * first[:1],
                                                     -2 * first[:1]])}, "softplus")  # fmt: skip


SOFTPLUS_RANK = Claim(
    name=f"{_PAPER}/theorem-7-softplus-rank",
    paper=_PAPER,
    locator="Appendix C.3, what holds almost surely",
    statement=(
        r"d \ge n, v_i \ne \pm v_j: \quad \mathrm{rank} \big[ \phi_{\tau_0}(\langle w^{(1)}, v_i"
        r"\rangle) \big]_{i \le n} = n \quad \mathrm{for\ almost\ all\ } w^{(1)}"
    ),
    kind=Kind.IDENTITY,
    status=Status.CORRECTED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=lambda i: _ranks(i, "softplus"),
    control=(
        Control("attended values v, -v, 2v and -2v", _opposite),
        Control("with ReLU", lambda i: _ranks(i, "relu")),
    ),
    count=64,
    terms=1,
    note=(
        "Along almost every w the numbers |(w, v_i)| differ, and softplus(t z) less its linear "
        "part decays like exp(-t |z|): for large t the slowest term cannot be cancelled. As "
        "minors are analytic in w1, they vanish on a null set. Opposite values do spoil it "
        "without biases: softplus(z) - softplus(-z) = z, so v, -v, 2v, -2v are dependent."
    ),
)
