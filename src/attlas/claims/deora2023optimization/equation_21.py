r"""(21) as printed: the risk multiplies the 1 as well, and the bound contracts what grows.

Two equal samples of one token, one parameter and a decoder that starts at zero: theta_k without
sample 2 lags behind by about k eta / 4, while the printed right side keeps it below 4 eta.
"""

import jax.numpy as jnp
import numpy as np

from attlas.bounds.optimisation.deora2023_loss import deora2023_beta_1, deora2023_beta_3
from attlas.bounds.optimisation.deora2023_training import deora2023_head_norm_bound
from attlas.claims.deora2023optimization.certified_instances import conditions
from attlas.claims.deora2023optimization.instances import ROUNDINGS, squared_distance
from attlas.claims.deora2023optimization.stability_instances import (
    CONDITIONS,
    sample_losses,
    trajectory,
)
from attlas.core.claim import Control
from attlas.core.statement import erratum

_STEPS = 100


def one_parameter():
    """Start, target at distance 1 and ten million equal heads."""
    copies = 1e7
    return {
        "X": np.ones((2, 1, 1)),
        "y": np.ones(2),
        "R": 1.0,
        "U": np.zeros((1, 1, 1)),
        "W": np.zeros((1, 1, 1)),
        "U_target": np.full((1, 1, 1), copies**-0.5),
        "W_target": np.zeros((1, 1, 1)),
        "copies": copies,
        "eta": 0.0035,
        "K": float(_STEPS),
    }


@erratum(
    "(21), as printed",
    witness=one_parameter,
    reason="misplaced parenthesis: the risk multiplies the 1",
    corrected=Control("the parenthesis closed after the maximum", printed=False),
    assumptions=CONDITIONS,
    count=1,
    roundings=ROUNDINGS * _STEPS,
)
def equation_21_printed(*, printed=True, **run):
    r"""$$\|\theta_{k+1} - \theta_{k+1}^{\neg i}\| \le \left(\left(1 +
    \frac{\eta\tilde\beta_3(\theta)}{\sqrt H}\right) \max_{\alpha}
    \widehat{L}^{\neg i}(\theta_{k_\alpha}^{\neg i})\right)
    \|\theta_k - \theta_k^{\neg i}\| + \frac{\eta\tilde\beta_1}{n} \ell_i(\theta_k)$$

    The last of 100 steps. Nothing in the paper depends on it: (22) has the right form.
    """
    found, eta = conditions(run), run["eta"]
    T, d, R, D, largest = found.setting
    x = deora2023_head_norm_bound(D, largest, "printed")
    U, W = trajectory(run, jnp.ones(2), _STEPS)
    V, Z = trajectory(run, jnp.array([1.0, 0.0]), _STEPS)

    def apart(k):
        return jnp.sqrt(squared_distance(run["copies"], U[k] - V[k], W[k] - Z[k]))

    # The risk without sample 2 on the segment is largest at its ends: the model is linear here.
    ends = [(U[-2], W[-2]), (V[-2], Z[-2])]
    blind = jnp.max(jnp.stack([sample_losses(run, *end)[0] / 2 for end in ends]))
    weak = eta * deora2023_beta_3(T, d, R, x, "printed") / jnp.sqrt(found.H)
    factor = (1 + weak) * blind if printed else 1 + weak * blind
    beta_1 = deora2023_beta_1(T, R, x, "printed")
    lost = eta * beta_1 / 2 * sample_losses(run, U[-2], W[-2])[1]
    return apart(-1), factor * apart(-2) + lost
