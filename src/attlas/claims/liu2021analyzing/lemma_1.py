r"""Lemma 1: samples that suffice for a learned mask, with every constant.

The proof is that of docs/proofs/liu2021_sample_size.md with two blocks besides w: the first layer
and the mask.
"""

import math
from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from attlas.bounds.generalisation.liu2021_corrected import Conditions, liu2021_learned_mask
from attlas.bounds.generalisation.liu2021_sample_size import liu2021_mask
from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status

_PAPER = "liu2021analyzing"
_CONSTANTS = ("s0", "C_x", "C_1", "C_2", "gamma", "smallest", "residual", "noise", "failure")
_NAMES = ("n", "printed", "p", "d", *_CONSTANTS)


def _sized(key: PRNGKeyArray, count: int) -> Instance:
    """Constants of lemma 1 with the sample sizes of the library."""
    rng = generator(key)
    rows = []
    for _ in range(count):
        p, d = (int(k) for k in rng.integers(1, 30, 2))
        s0 = int(rng.integers(1, p + 1))
        C_x, C_1, C_2, gamma = (float(v) for v in 10 ** rng.uniform(-1, 1, 4))
        smallest, noise = (float(v) for v in 10 ** rng.uniform(-2, 1, 2))
        failure = float(rng.uniform(0.01, 0.5))
        residual = float(rng.uniform(0, 0.9)) * (gamma / C_2) ** 2
        conditions = Conditions(smallest, residual, noise, failure)
        n = liu2021_learned_mask(p, d, s0, gamma, (C_x, C_1, C_2), conditions)
        printed = liu2021_mask(p, d, s0, gamma, (C_x, C_1, C_2))
        rest = (s0, C_x, C_1, C_2, gamma, *conditions)
        rows.append([n, max(printed, 0.0), p, d, *rest])
    return {name: jnp.asarray(v) for name, v in zip(_NAMES, np.array(rows).T, strict=True)}


def _failure(instance: Instance, name: str) -> Sides:
    """What the union bound of docs/proofs/liu2021_sample_size.md leaves, over what is allowed."""
    i, n = instance, instance[name]
    B = jnp.sqrt(i["s0"]) * i["C_1"] * i["C_x"]
    M = jnp.maximum(2 * i["C_2"] * B**2, i["noise"] * B)
    level = i["smallest"] * (i["gamma"] ** 2 - i["C_2"] ** 2 * i["residual"])
    rho = jnp.minimum(1.0, jnp.sqrt(level) / (28 * M))
    parameters = i["d"] + i["p"] * i["d"] + i["p"]
    centres, tail = parameters * jnp.log(3 / rho), n * level / (128 * M**2)
    # The network's deviation, the noise at the centres, the noise between them.
    exponents = jnp.stack([math.log(2) + centres - tail, 0.5 + centres - 2 * tail, -n / 2])
    left = jnp.sum(jnp.exp(jnp.minimum(exponents, 50.0))) / i["failure"]
    # Exponents of size n level / M^2 are rounded before they are raised.
    scale = jnp.ones_like(left) + jnp.abs(centres) * left
    return Sides(left, jnp.ones_like(left), scale=scale)


LEMMA_1 = Claim(
    name=f"{_PAPER}/lemma-1",
    paper=_PAPER,
    locator="Lemma 1, with every constant",
    statement=(
        r"n \ge n(s_0, p, d, \gamma, \lambda, \delta): \quad "
        r"\left( \frac{3}{\rho} \right)^{pd+p+d} "
        r"\left( 2 e^{-a} + \sqrt{e} e^{-2a} \right) + e^{-n/2} \le \delta, \quad "
        r"a = \frac{n s^2}{128 M^2}"
    ),
    kind=Kind.INEQUALITY,
    status=Status.CORRECTED,
    provenance=Provenance.DERIVED,
    instances=_sized,
    sides=partial(_failure, name="n"),
    control=Control(
        "the printed sample size with the constant one", sides=partial(_failure, name="printed")
    ),
    count=48,
    note=(
        "The left side is the failure probability of the corrected proof, of covers and three "
        "tail bounds; s^2 = lambda (gamma^2 - C_2^2 lambda_max Var(Phi*|Phi)) has the smallest "
        "eigenvalue of the features, which the print lacks. Masks are not normalised, and s_0^2 "
        "is right here. Half of delta is left: the 4 of log(4/delta) might be little more than 2."
    ),
)
