"""Vacuous bounds name the step that loses and its factor, which are computed here."""

import inspect
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Claim
from attlas.models.networks.softmax_network import SoftmaxNetwork
from deora2023optimization.corollary_2 import corollary_2_gap
from deora2023optimization.good_initialisation import step_allowed, unstable_trainings
from gu2024exploring import trajectories
from gu2024exploring.lemma_e_2 import lemma_c_4
from gu2024exploring.lemmas_e import claim_e_6, claim_e_7, points_of_least_reach
from gu2024exploring.trajectories import COUNT, curves
from liu2021analyzing import theorem_1_points
from liu2021analyzing.theorem_1_points import theorem_1_corrected


def said(claim: Claim) -> str:
    """The words beside a claim, in one line."""
    return " ".join((inspect.getdoc(claim.function) or "").split())


def ratio(claim: Claim, batch: dict[str, Any], place: int) -> float:
    """Left over right side of one instance."""
    sides = claim.function(**{name: jnp.asarray(value[place]) for name, value in batch.items()})
    left, right = (sides.left, sides.right) if hasattr(sides, "left") else sides
    return float(left / right)


@pytest.mark.thorough
def test_the_exponents_of_claims_e_6_and_e_7():
    """One unit at the largest P with B = 1, below the most that the sharpened claims leave."""
    batch = points_of_least_reach(np.random.default_rng(0), 4)
    sixth, seventh = ratio(claim_e_6, batch, 3), ratio(claim_e_7, batch, 3)
    most = [factor * math.exp(-12) for factor in (1.0034, 1.0305)]
    assert sixth < most[0] < 10 * sixth
    assert seventh < most[1] < 20 * seventh
    assert f"which is {most[0]:.1e}".replace("e-0", "e-") in said(claim_e_6)
    assert f"which is {most[1]:.1e}".replace("e-0", "e-") in said(claim_e_7)
    assert f"reaches {sixth:.0e}".replace("e-0", "e-") in said(claim_e_6)
    assert f"reaches {seventh:.1e}".replace("e-0", "e-") in said(claim_e_7)


@pytest.mark.thorough
def test_the_exponent_of_lemma_c_4(monkeypatch):
    def network(W, a, activation):
        return SoftmaxNetwork(jnp.asarray(W), jnp.asarray(a), activation)

    # Trajectories hand NumPy arrays over, whose types the tests refuse.
    monkeypatch.setattr(trajectories, "SoftmaxNetwork", network)
    batch = curves(np.random.default_rng(0), COUNT)
    n, d = batch["Y"].shape[1:]
    slopes = batch["largest_step"].reshape(COUNT, -1).max(axis=1) / batch["eta"]
    without = 0.1 * batch["lam"] * slopes / (batch["m"] * (n * d) ** 2) / 0.01
    assert f"would be {without.max():.3f} of the" in said(lemma_c_4)
    assert f"at least {math.exp(16):.0e}".replace("e+0", "e") in said(lemma_c_4)
    assert math.exp(16) > 100 / without.max()


@pytest.mark.thorough
def test_the_step_of_corollary_2():
    """A stable step over the certified one, squared, as gap over bound grows like its square."""
    times = 1e-2
    batches = [
        unstable_trainings(np.random.default_rng(0), 1, times=each) for each in (times, 10 * times)
    ]
    first, last = (ratio(corollary_2_gap, batch, 0) for batch in batches)
    assert last / first == pytest.approx(100, rel=0.05)
    start = {name: jnp.asarray(value[0]) for name, value in batches[0].items()}
    lost = float(start["eta"] / times / step_allowed(start))
    assert f"is {round(lost, -1):.0f} times longer" in said(corollary_2_gap)


@pytest.mark.thorough
def test_the_outputs_of_theorem_1(monkeypatch):
    """The factors of the least sample size that is needed, over the parameters' share of noise."""
    asked = []
    needed = theorem_1_points.liu2021_attention

    def listening(p, d, gamma, norms, conditions):
        asked.append((needed(p, d, gamma, norms, conditions), gamma, norms, conditions))
        return asked[-1][0]

    monkeypatch.setattr(theorem_1_points, "liu2021_attention", listening)
    theorem_1_points.followed(jax.random.key(0), theorem_1_points.COUNT)
    least, gamma, (C_x, C_1, C_2), (smallest, _, noise, _) = min(asked, key=lambda each: each[0])
    outputs = max(2 * C_2 * (C_1 * C_x) ** 2, noise * C_1 * C_x) ** 2
    parameters = theorem_1_points.INPUTS * theorem_1_points.UNITS + theorem_1_points.UNITS
    logarithm = least * smallest * gamma**2 / (128 * outputs)
    assert f"a factor of {outputs / noise**2:.0e};".replace("e+0", "e") in said(theorem_1_corrected)
    assert f"parameters, {logarithm / parameters:.0f}, lose" in said(theorem_1_corrected)
