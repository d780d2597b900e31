r"""(21) as printed: the risk multiplies the 1 as well, and the bound contracts what grows.

Two equal samples of one token, one parameter and a decoder that starts at zero: theta_k without
sample 2 lags behind by about k eta / 4, while the printed right side keeps it below 4 eta.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from attlas.bounds.optimisation.deora2023_loss import deora2023_beta_1, deora2023_beta_3
from attlas.bounds.optimisation.deora2023_training import deora2023_head_norm_bound
from attlas.claims.deora2023optimization.certified_instances import conditions, shape_of
from attlas.claims.deora2023optimization.instances import ROUNDINGS, squared_distance
from attlas.claims.deora2023optimization.stability_instances import (
    CONDITIONS,
    sample_losses,
    trajectory,
)
from attlas.core.old_claim import (
    Claim,
    Control,
    Coverage,
    Expectation,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)
from attlas.core.verdict import Outcome, Witness

_PAPER = "deora2023optimization"
_STEPS = 100


def _witness() -> Witness:
    """Start, target at distance 1 and ten million equal heads."""
    copies = 1e7
    return {
        "X": np.ones((2, 1, 1)),
        "y": np.ones(2),
        "R": np.asarray(1.0),
        "U": np.zeros((1, 1, 1)),
        "W": np.zeros((1, 1, 1)),
        "U_target": np.full((1, 1, 1), copies**-0.5),
        "W_target": np.zeros((1, 1, 1)),
        "copies": np.asarray(copies),
        "eta": np.asarray(0.0035),
        "K": np.asarray(float(_STEPS)),
    }


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """The one instance, repeated."""
    del key
    return {k: jnp.asarray(np.repeat(v[None], count, axis=0)) for k, v in _witness().items()}


def _sides(instance: Instance, printed: bool = True) -> Sides:
    terms = conditions(instance)
    T, d, R, D, largest = shape_of(terms)
    x, eta = deora2023_head_norm_bound(D, largest), instance["eta"]
    U, W = trajectory(instance, jnp.ones(2), _STEPS)
    V, Z = trajectory(instance, jnp.array([1.0, 0.0]), _STEPS)

    def apart(k: int) -> jnp.ndarray:
        return jnp.sqrt(squared_distance(instance, U[k] - V[k], W[k] - Z[k]))

    # The risk without sample 2 on the segment is largest at its ends: the model is linear here.
    ends = [(U[-2], W[-2]), (V[-2], Z[-2])]
    blind = jnp.max(jnp.stack([sample_losses(instance, *end)[0] / 2 for end in ends]))
    weak = eta * deora2023_beta_3(T, d, R, x) / jnp.sqrt(terms["H"])
    factor = (1 + weak) * blind if printed else 1 + weak * blind
    lost = eta * deora2023_beta_1(T, R, x) / 2 * sample_losses(instance, U[-2], W[-2])[1]
    return Sides(apart(-1), factor * apart(-2) + lost)


EQUATION_21_PRINTED = Claim(
    name=f"{_PAPER}/equation-21-printed",
    paper=_PAPER,
    locator="(21), as printed",
    statement=(
        r"\|\theta_{k+1} - \theta_{k+1}^{\neg i}\| \le \left(\left(1 +"
        r"\frac{\eta\tilde\beta_3(\theta)}{\sqrt H}\right) \max_{\alpha}"
        r"\widehat{L}^{\neg i}(\theta_{k_\alpha}^{\neg i})\right)"
        r"\|\theta_k - \theta_k^{\neg i}\| + \frac{\eta\tilde\beta_1}{n} \ell_i(\theta_k)"
    ),
    kind=Kind.INEQUALITY,
    status=Status.ERRATUM,
    provenance=Provenance.FOUND,
    instances=_instances,
    sides=_sides,
    control=Control(
        "the parenthesis closed after the maximum",
        sides=partial(_sides, printed=False),
        expect=Outcome.SUPPORTED,
    ),
    assumptions=CONDITIONS,
    expect=Expectation(Outcome.VIOLATED, "misplaced parenthesis: the risk multiplies the 1"),
    count=1,
    terms=ROUNDINGS * _STEPS,
    coverage=Coverage.EXHAUSTIVE,
    witness=_witness,
    note="The last of 100 steps. Nothing in the paper depends on it: (22) has the right form.",
)
