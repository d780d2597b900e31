r"""Where Corollary 2 is non-vacuous: 64 equal tokens, zero start, our constants.

One sample of each sign, d = R = 1, all tokens +1 or -1: the tangent features at zero are the means
of the tokens, so that gamma = sqrt(2 T). Heads and step size are those of the corollary.
"""

import jax.numpy as jnp
import numpy as np

from attlas.bounds.optimisation.deora2023_model import HeadConstants
from attlas.bounds.optimisation.deora2023_training import deora2023_training_loss
from attlas.claims.claim import Control, Status
from attlas.claims.statement import existence
from deora2023optimization.instances import ROUNDINGS, risk
from deora2023optimization.library.bounds.deora2023_initialisation import (
    Start,
    deora2023_corollary_2_heads,
    deora2023_corollary_2_step,
    deora2023_target_distance,
)
from deora2023optimization.stability_instances import trajectory

_TOKENS, _STEPS = 64, 512


def equal_tokens():
    """Two samples and the start; everything else is computed."""
    return {
        "X": np.stack([np.ones((_TOKENS, 1)), -np.ones((_TOKENS, 1))]),
        "y": np.array([1.0, -1.0]),
        "U": np.zeros((1, _TOKENS, 1)),
        "W": np.zeros((1, 1, 1)),
        "K": float(_STEPS),
    }


@existence(
    "Corollary 2, sharpened, where it is non-vacuous",
    status=Status.SHARPENED,
    witness=equal_tokens,
    controls=[
        Control("heads, step size and bound as printed", constants="printed"),
        Control("a hundredth of the bound", share=0.01),
    ],
    count=1,
    roundings=ROUNDINGS * _STEPS,
)
def corollary_2_informative(X, y, U, W, K, *, constants: HeadConstants = "sharp", share=1.0):
    r"""$$T = 64,\ d = R = 1,\ K = 512: \quad \widehat{L}(\theta_K) \le \frac{1.716}{K} +
    \frac{1.205 \cdot 2 (2 + \log K)^2}{\gamma^2\eta K} < \widehat{L}(\theta_0) = \log 2$$

    16,551 heads, a step size of 0.0037 and 512 steps: bound 0.669, risk reached 0.008. The printed
    constants require 2.5e7 heads and a step size of 3.6e-7, and their bound is 7,190 after these
    512 steps.
    """
    margin = jnp.sqrt(2.0 * _TOKENS)
    # B_2 = B_Phi = 1, the smallest that Definition 1 allows.
    at = Start(_TOKENS, 1, 1.0, 1.0, 1.0, margin)
    H = deora2023_corollary_2_heads(at, K, constants)
    eta = deora2023_corollary_2_step(at, K, H, constants)
    run = {"X": X, "y": y, "U": U, "W": W, "K": K, "copies": H, "eta": eta}
    path_U, path_W = trajectory(run, jnp.ones(2), _STEPS)
    D = deora2023_target_distance(1.0, margin, 1 / K)
    bound = share * deora2023_training_loss(1 / K, D, eta, K, constants)
    start = risk({**run, "copies": jnp.ones(())}, U, W)
    return jnp.stack([risk(run, path_U[-1], path_W[-1]), bound]), jnp.stack([bound, start])
