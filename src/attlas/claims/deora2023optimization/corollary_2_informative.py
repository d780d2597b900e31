r"""Where Corollary 2 says something: 64 equal tokens, zero start, our constants.

One sample of each sign, d = R = 1, all tokens +1 or -1: the tangent features at zero are the means
of the tokens, so that gamma = sqrt(2 T). Heads and step size are those of the corollary.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from attlas.bounds.optimisation.deora2023_initialisation import (
    deora2023_corollary_2_heads,
    deora2023_corollary_2_step,
    deora2023_target_distance,
)
from attlas.bounds.optimisation.deora2023_model import Bound
from attlas.bounds.optimisation.deora2023_training import deora2023_training_loss
from attlas.claims.deora2023optimization.instances import ROUNDINGS, risk
from attlas.claims.deora2023optimization.stability_instances import trajectory
from attlas.core.old_claim import (
    Claim,
    Control,
    Coverage,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)
from attlas.core.verdict import Witness

_PAPER = "deora2023optimization"
_TOKENS, _STEPS = 64, 512


def _witness() -> Witness:
    """Two samples and the start; everything else is computed."""
    return {
        "X": np.stack([np.ones((_TOKENS, 1)), -np.ones((_TOKENS, 1))]),
        "y": np.array([1.0, -1.0]),
        "U": np.zeros((1, _TOKENS, 1)),
        "W": np.zeros((1, 1, 1)),
        "K": np.asarray(float(_STEPS)),
    }


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """The one instance, repeated."""
    del key
    return {k: jnp.asarray(np.repeat(v[None], count, axis=0)) for k, v in _witness().items()}


def _sides(instance: Instance, bound: Bound = "sharp") -> Sides:
    T, K, margin = _TOKENS, instance["K"], jnp.sqrt(2.0 * _TOKENS)
    start = risk({**instance, "copies": jnp.ones(())}, instance["U"], instance["W"])
    # B_2 = B_Phi = 1, the smallest that Definition 1 allows.
    H = deora2023_corollary_2_heads(T, 1, 1.0, 1.0, 1.0, margin, K, bound)
    eta = deora2023_corollary_2_step(T, 1, 1.0, 1.0, 1.0, margin, K, H, bound)
    run = {**instance, "copies": H, "eta": eta}
    U, W = trajectory(run, jnp.ones(2), _STEPS)
    D = deora2023_target_distance(1.0, margin, 1 / K)
    bounded = deora2023_training_loss(1 / K, D, eta, K, bound)
    return Sides(jnp.stack([risk(run, U[-1], W[-1]), bounded]), jnp.stack([bounded, start]))


COROLLARY_2_INFORMATIVE = Claim(
    name=f"{_PAPER}/corollary-2-informative",
    paper=_PAPER,
    locator="Corollary 2, sharpened, where it says something",
    statement=(
        r"T = 64,\ d = R = 1,\ K = 512: \quad \widehat{L}(\theta_K) \le \frac{1.716}{K} +"
        r"\frac{1.205 \cdot 2 (2 + \log K)^2}{\gamma^2\eta K} < \widehat{L}(\theta_0) = \log 2"
    ),
    kind=Kind.EXISTENCE,
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_sides,
    control=Control(
        "heads, step size and bound as printed", sides=partial(_sides, bound="printed")
    ),
    count=1,
    terms=ROUNDINGS * _STEPS,
    coverage=Coverage.EXHAUSTIVE,
    witness=_witness,
    note=(
        "16,551 heads, a step size of .0037 and 512 steps: bound .669, risk reached .008. The "
        "printed constants ask for 2.5e7 heads and a step size of 3.6e-7, and their bound is 7,190 "
        "after these 512 steps."
    ),
)
