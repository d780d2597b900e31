r"""Theorem 5: the epsilon-flat set has any volume, but not within l2 balls."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Source, Status
from attlas.claims.perturbed_draws import apart
from attlas.claims.statement import existence, identity, inequality
from liu2021analyzing.landscape_instances import ROUNDINGS, risk
from liu2021analyzing.library.measures.orbit_flatness import flat_volume

# Rays are followed this far: most stay in the set, so that the mean over directions, which is
# below the volume, has a small variance; a factor of 2 is far beyond its deviation.
_LONGEST = 0.1
_ALLOWANCE = math.log(2.0)


def two_layer_risk(first, second, v, y):
    """The risk of two layers on attended values."""
    return risk((first, second), v, y)


def volumes(rng, count):
    """Logarithms of volumes at minima, at far points of their orbits and within balls."""
    seed = rng.integers(2**31, size=2)
    measurements = [_measured(apart(rng, [*seed, k]), k) for k in range(count)]
    return {
        name: np.asarray([measurement[name] for measurement in measurements])
        for name in measurements[0]
    }


def _measured(rng, k):
    """Volumes at one minimum, and some M."""
    keys = jax.random.split(jax.random.key(k), 3)
    W1, w2, v = (jax.device_put(rng.standard_normal(s)) for s in ((2, 2), 2, (4, 2)))
    y = jnp.maximum(v @ W1, 0.0) @ w2
    epsilon = 0.01 * float(jnp.mean(y**2)) + 1e-3

    def log_volume(alpha, key, **region):
        """Of what is seen from T_alpha(theta)."""
        point = alpha * W1, w2 / alpha
        search = {"epsilon": epsilon, "directions": 256, "alpha": alpha, **region}
        return flat_volume(two_layer_risk, *point, v, y, key=key, **search).log_volume

    balls = 2 * float(jnp.linalg.norm(W1)), 2 * float(jnp.linalg.norm(w2))
    longest = _LONGEST * rng.uniform(0.5, 1)
    centre = log_volume(1.0, keys[0], longest=longest)
    balls_volume = math.log(math.pi**2 / 2 * balls[0] ** 4 * math.pi * balls[1] ** 2)
    M = balls_volume + math.log(10) * rng.uniform(0.5, 6)
    # p d_v d - d = 2.
    alpha = math.exp((M - centre + _ALLOWANCE) / 2)
    power = int(rng.integers(1, 8))
    return {
        "M": M,
        "here": centre,
        "there": log_volume(alpha, keys[2], longest=longest),
        "nearer": log_volume(alpha / 2, keys[2], longest=longest),
        "inside": log_volume(1.0, keys[1], balls=balls),
        "both": balls_volume,
        # The same directions at another point of the orbit; a power of two scales exactly.
        "same": log_volume(2.0**power, keys[0], longest=longest),
        "power": float(power),
    }


@existence(
    "Theorem 5, first statement",
    Source.FOUND,
    status=Status.RECONSTRUCTED,
    sample=volumes,
    count=32,
    roundings=ROUNDINGS,
    controls=[
        Control("within balls of twice the layers' norms", balls=True),
        Control(r"half of $\alpha$, seen from where the volume is a quarter", half=True),
    ],
)
def theorem_5_volume(M, there, nearer, inside, *, balls=False, half=False):
    r"""$$\forall M\ \exists \alpha: \quad M \le \mathrm{vol} \{ \theta' \in
    C(L, \theta, \epsilon) : \mathrm{seen\ from\ } T_\alpha(\theta) \}$$

    The quotient of $M$ and the volume is compared with 1. $M$ is up to $10^6$ times the volume of
    the two balls; the volume is that of the rays of a tenth on which the risk stays within
    $\epsilon$, a part of the connected set, by 256 fresh directions in 6 dimensions. The set holds
    the whole orbit and $T_\alpha$ maps it onto
    itself, so its volume is 0 or infinite wherever the determinant is not 1.
    """
    volume = nearer if half else inside if balls else there
    return jnp.exp(M - volume), jnp.ones_like(M)


@identity(
    "Proof of Theorem 5, volumes along the orbit",
    sample=volumes,
    count=32,
    roundings=ROUNDINGS,
    controls=[Control("without the part of $w^{(2)}$", exponent=4.0)],
)
def theorem_5_volume_ratio(here, same, power, *, exponent=2.0):
    r"""$$\mathrm{vol}\, T_\alpha(S) = \alpha^{(p d_v - 1) d}\, \mathrm{vol}\, S, \quad
    S = \{ \theta' : L \le L(\theta) + \epsilon \mathrm{\ on\ } [\theta, \theta'] \}$$

    In logarithms, by the same 256 directions at $\theta$ and, stretched, at $T_\alpha(\theta)$, for
    $\alpha$ up to 128: a ray leaves both sets at once, since the risk is constant along the orbit.
    $p d_v d - d = 2$.
    """
    expected = here + exponent * math.log(2.0) * power
    return Sides(same, expected, jnp.abs(here) + jnp.abs(expected))


@inequality(
    "Section 4.2 and appendix C.2, with l2 balls",
    sample=volumes,
    status=Status.NEW,
    count=32,
    roundings=ROUNDINGS,
    controls=[Control("without the balls", balls=False)],
    evaluations=32,
)
def theorem_5_volume_balls(inside, there, both, *, balls=True):
    r"""$$\mathrm{vol}\, C(L, \theta, \epsilon) \cap B(C_1) \times B(C_2) \le
    \mathrm{vol}\, B(C_1) \cdot \mathrm{vol}\, B(C_2)$$

    In logarithms. The control is the same set at a far point of the orbit.
    """
    return inside if balls else there, both


def bowls(rng, count):
    """Volumes of balls of two to seven dimensions, as the library measures them."""
    size, epsilon = 2 + np.arange(count) % 6, 10 ** rng.uniform(-2, 2, count)

    def bowl(a, b):
        return jnp.sum(a**2) + jnp.sum(b**2)

    volumes_of_balls = [
        flat_volume(bowl, jnp.zeros(n - 1), jnp.zeros(1), epsilon=e, key=jax.random.key(0),
                    directions=4).log_volume
        for n, e in zip(size.tolist(), epsilon.tolist(), strict=True)
    ]  # fmt: skip
    return {"found": np.array(volumes_of_balls), "size": size.astype(float), "epsilon": epsilon}


@identity(
    "Definition 1, the volume of a ball",
    sample=bowls,
    status=Status.NEW,
    count=36,
    roundings=ROUNDINGS,
    controls=[Control("of one dimension less", lost=1)],
)
def definition_1_ball(found, size, epsilon, *, lost=0):
    r"""$$L = \|\theta\|^2: \quad \log \mathrm{vol}\, C(L, 0, \epsilon) = \log V_P +
    \tfrac P2 \log \epsilon, \quad V_P = \tfrac{2 \pi}{P} V_{P-2},\ V_1 = 2,\ V_2 = \pi$$

    The volume by rays, at a set for which it is known.
    """
    volumes = [1.0, 2.0]
    for k in range(2, 9):
        volumes.append(volumes[k - 2] * 2 * math.pi / k)
    P = size - lost
    expected = jnp.log(jnp.asarray(volumes)[P.astype(int)]) + P / 2 * jnp.log(epsilon)
    return Sides(found, expected, 1 + jnp.abs(expected))
