r"""Theorem 5: the epsilon-flat set has any volume, but not within l2 balls."""

import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.claims.liu2021analyzing.landscape_instances import ROUNDINGS, risk
from attlas.core.generator import seed_of
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.measures.curvature.orbit_flatness import flat_volume

_PAPER = "liu2021analyzing"

_DIRECTIONS = 256

# Rays are followed this far: most stay in the set, so that the mean over directions, which is
# below the volume, has a small variance; a factor of 2 is far beyond its deviation.
_REACH = 0.1
_ALLOWANCE = math.log(2.0)


def _risk(
    first: Float[Array, "v d"],
    second: Float[Array, " d"],
    v: Float[Array, "n v"],
    y: Float[Array, " n"],
) -> Float[Array, ""]:
    return risk((first, second), v, y)


def _measured(seed: tuple[int, ...], k: int) -> dict[str, float]:
    """Volumes at a minimum, at a far point of its orbit and within the balls, and some M."""
    rng, key = np.random.default_rng([*seed, k]), jax.random.key(k)
    drawn = (rng.standard_normal(s) for s in ((2, 2), 2, (4, 2)))
    W1, w2, v = (jax.device_put(part) for part in drawn)
    y = jnp.maximum(v @ W1, 0.0) @ w2
    epsilon = 0.01 * float(jnp.mean(y**2)) + 1e-3
    sizes = [float(jnp.linalg.norm(part)) for part in (W1, w2)]
    balls = 2 * sizes[0], 2 * sizes[1]
    keys = jax.random.split(key, 3)
    settings = {"epsilon": epsilon, "directions": _DIRECTIONS}
    here = flat_volume(_risk, W1, w2, v, y, key=keys[0], reach=_REACH, **settings)
    inside = flat_volume(_risk, W1, w2, v, y, key=keys[1], balls=balls, **settings)
    both = math.log(math.pi**2 / 2 * balls[0] ** 4 * math.pi * balls[1] ** 2)
    M = both + math.log(10) * rng.uniform(0.5, 6)
    # p d_v d - d = 2.
    alpha = math.exp((M - here.log_volume + _ALLOWANCE) / 2)
    moved = alpha * W1, w2 / alpha
    there = flat_volume(_risk, *moved, v, y, key=keys[2], alpha=alpha, reach=_REACH, **settings)
    found = {"M": M, "there": there.log_volume, "inside": inside.log_volume, "both": both}
    # The same directions at another point of the orbit; a power of two scales without rounding.
    power = int(rng.integers(1, 8))
    moved = 2.0**power * W1, w2 / 2.0**power
    same = flat_volume(_risk, *moved, v, y, key=keys[0], alpha=2.0**power, reach=_REACH, **settings)
    return found | {"here": here.log_volume, "same": same.log_volume, "power": float(power)}


@cache
def _volumes(seed: tuple[int, ...], count: int) -> dict[str, np.ndarray]:
    found = [_measured(seed, k) for k in range(count)]
    return {name: np.asarray([each[name] for each in found]) for name in found[0]}


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    found = _volumes(seed_of(key), count)
    return {name: jnp.asarray(value) for name, value in found.items()}


VOLUME = Claim(
    name=f"{_PAPER}/theorem-5-volume",
    paper=_PAPER,
    locator="Theorem 5, first statement",
    statement=(
        r"\forall M\ \exists \alpha: \quad M \le \mathrm{vol} \{ \theta' \in "
        r"C(L, \theta, \epsilon) : \mathrm{seen\ from\ } T_\alpha(\theta) \}"
    ),
    kind=Kind.EXISTENCE,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.FOUND,
    instances=_instances,
    sides=lambda i: Sides(i["M"], i["there"]),
    control=Control(
        "within balls of twice the layers' norms", lambda i: Sides(i["M"], i["inside"])
    ),
    count=32,
    terms=ROUNDINGS,
    note=(
        "In logarithms. M is up to 10^6 times the volume of the two balls; the volume is that of "
        "the rays of a tenth on which the risk stays within epsilon, a part of the connected set, "
        "by 256 fresh directions in 6 dimensions. The set holds the whole orbit and T_alpha maps "
        "it onto itself, so its volume is 0 or infinite wherever the determinant is not 1."
    ),
)


def _ratio(instance: Instance, parameters: float) -> Sides:
    expected = instance["here"] + parameters * math.log(2.0) * instance["power"]
    return Sides(instance["same"], expected, jnp.abs(instance["here"]) + jnp.abs(expected))


RATIO = Claim(
    name=f"{_PAPER}/theorem-5-volume-ratio",
    paper=_PAPER,
    locator="Proof of Theorem 5, volumes along the orbit",
    statement=(
        r"\mathrm{vol}\, T_\alpha(S) = \alpha^{(p d_v - 1) d}\, \mathrm{vol}\, S, \quad "
        r"S = \{ \theta' : L \le L(\theta) + \epsilon \mathrm{\ on\ } [\theta, \theta'] \}"
    ),
    kind=Kind.IDENTITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=lambda i: _ratio(i, 2.0),
    control=Control("without w2's part", lambda i: _ratio(i, 4.0)),
    count=32,
    terms=ROUNDINGS,
    note=(
        "In logarithms, by the same 256 directions at theta and, stretched, at T_alpha(theta), for "
        "alpha up to 128: a ray leaves both sets at once, since the risk is constant along the "
        "orbit. p d_v d - d = 2."
    ),
)


VOLUME_IN_BALLS = Claim(
    name=f"{_PAPER}/theorem-5-volume-balls",
    paper=_PAPER,
    locator="Section 4.2 and appendix C.2, with l2 balls",
    statement=(
        r"\mathrm{vol}\, C(L, \theta, \epsilon) \cap B(C_1) \times B(C_2) \le"
        r"\mathrm{vol}\, B(C_1) \cdot \mathrm{vol}\, B(C_2)"
    ),
    kind=Kind.INEQUALITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=lambda i: Sides(i["inside"], i["both"]),
    control=Control("without the balls", lambda i: Sides(i["there"], i["both"])),
    count=32,
    terms=ROUNDINGS,
    note="In logarithms. The control is the same set at a far point of the orbit.",
)
