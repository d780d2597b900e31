r"""Lemmas 19 and 20 where a sample has no support token: a suspected erratum.

As we recall (6), delta' is a minimum over pairs of a support token t and another token tau of
one sample; a sample without support tokens does not enter it, however close to the margin its
tokens are. Here z_1 = z_2 = e_1, sample 1 has the difference D_1 = e_1 and sample 2 has
D_2 = (1 + m, b): W_mm = e_1 e_1' for every p, T_1 = {t}, T_2 is empty, delta' = inf, delta = 1/4.
Tokens are +-D_i / 2, so that A = max ||D_i||_q / 2. A point of the cone is W = rho (1, -2m/b) e_1',
where the gaps are rho and rho (1 - m): the sample without support tokens decides the gradient.

The proof of Lemma 20 counts such samples ("if the support index set is empty"), and bounds them by
(12b). Both claims are evaluated on a stored witness.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.bounds.optimisation.julistiono2024_cone import julistiono2024_mu_0
from attlas.claims.julistiono2024optimizing.cone_instances import (
    EXPONENTS,
    cone_divergence,
)
from attlas.core.claim import Erratum, ErratumClass
from attlas.core.generator import generator
from attlas.core.old_claim import (
    Assumption,
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

_PAPER = "julistiono2024optimizing"
_RHO = np.array([1.0, 10.0, 100.0, 1e3, 1e4, 1e5])
"""Norms over ||W_mm||; the sign is wanted at one of them at least."""


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    draw = generator(key)
    raw = {
        "m": 10 ** draw.uniform(-5.0, -4.0, count),
        "b": draw.uniform(1.0, 2.0, count),
        "p": draw.choice(EXPONENTS, count),
        # Score gaps: +1 in sample 1, -g in sample 2, whose other token scores higher.
        "g": draw.uniform(2.0, 100.0, count),
        "rho": np.tile(_RHO, (count, 1)),
    }
    return {name: jnp.asarray(value) for name, value in raw.items()}


def _witness() -> Witness:
    """The least favourable numbers of those drawn: g and rho as small as they come."""
    numbers = {"m": 1e-4, "b": 1.0, "p": 2.0, "g": 2.0, "rho": _RHO}
    return {name: np.asarray(value) for name, value in numbers.items()}


def _allowance(instance: Instance, with_slack: bool) -> Sides:
    """(12b) at W = W_mm, the centre of the cone, for sample 2: 1 + m >= 1 + 3/2 delta."""
    m = instance["m"]
    delta = jnp.minimum(0.25, m / 4) if with_slack else jnp.asarray(0.25)
    return Sides(1 + 1.5 * delta, 1 + m)


NO_SUPPORT_12B = Claim(
    name=f"{_PAPER}/lemma-19-no-support",
    paper=_PAPER,
    locator="Lemma 19 (12b), a sample without support tokens",
    statement=(
        r"\mathcal T_2=\emptyset,\ \delta'=\min_i\min_{t\in\mathcal T_i,\tau\in\bar{\mathcal T}_i}"
        r"(X_{it}-X_{i\tau})^\top W_{mm}z_i=\infty \;\Rightarrow\;"
        r"(X_{2\alpha_2}-X_{2\tau})^\top W_{mm} z_2 \ge 1+\frac32\delta=\frac{11}{8}"
    ),
    kind=Kind.INEQUALITY,
    status=Status.SUSPECTED_ERRATUM,
    provenance=Provenance.RECALLED,
    instances=_instances,
    sides=lambda i: _allowance(i, with_slack=False),
    witness=_witness,
    control=(
        Control(
            "corrected: delta' also counts how far the tokens of such a sample are beyond the "
            "margin",
            sides=lambda i: _allowance(i, with_slack=True),
            expect=Outcome.SUPPORTED,
        ),
    ),
    expect=Expectation(
        Outcome.VIOLATED,
        "delta' as we recall it says nothing about samples without support tokens",
    ),
    note=(
        "The corrected delta' is the least of the printed one and of the gaps beyond 1 in samples "
        "without support tokens."
    ),
)


def _in_the_cone(instance: Instance) -> Array:
    m, b, p = instance["m"], instance["b"], instance["p"]
    q = p / (p - 1)
    A = jnp.maximum(1.0, ((1 + m) ** q + b**q) ** (1 / q)) / 2
    W_mm, W = jnp.stack([jnp.ones_like(m), 0 * m]), jnp.stack([jnp.ones_like(m), -2 * m / b])
    return cone_divergence(W_mm, W, p) <= julistiono2024_mu_0(0.25, A, p, 2)


def _correlation(instance: Instance, gap: Array, distance: Array) -> Sides:
    """0 <= -n <grad L(W), W / rho> exp(rho), for the loss l(u) = -u, at one rho at least."""
    # Sample i adds its score gap times its attention gap times s (1 - s), and with an attention
    # gap h s (1 - s) is exp(-h) / (1 + exp(-h))^2.
    rho, g = instance["rho"], instance["g"]
    first = 1 / (1 + jnp.exp(-rho)) ** 2
    second = g * gap * jnp.exp(-distance) / (1 + jnp.exp(-gap * rho)) ** 2
    # Relative to the size of the two terms, so that all rho count alike.
    best = jnp.max((first - second) / (first + second))
    return Sides(jnp.zeros_like(best), best, jnp.ones_like(best))


NO_SUPPORT_CORRELATION = Claim(
    name=f"{_PAPER}/lemma-20-no-support",
    paper=_PAPER,
    locator="Lemma 20, a sample without support tokens",
    statement=(
        r"\mathcal T_2=\emptyset,\ \delta=\frac14,\ W\in C_{p,\mu_0,R} \;\Rightarrow\;"
        r"-\langle\nabla\mathcal L(W),\bar W\rangle > 0 \quad\text{for some } R"
    ),
    kind=Kind.INEQUALITY,
    status=Status.SUSPECTED_ERRATUM,
    provenance=Provenance.RECALLED,
    instances=_instances,
    sides=lambda i: _correlation(i, 1 - i["m"], -i["m"] * i["rho"]),
    witness=_witness,
    assumptions=(Assumption("W lies in the cone of width mu_0", _in_the_cone),),
    control=(
        Control(
            "the token of the second sample far beyond the margin, m = 2",
            sides=lambda i: _correlation(i, jnp.full_like(i["m"], 3.0), 2 * i["rho"]),
            expect=Outcome.SUPPORTED,
        ),
        Control(
            "at W_mm, the centre of the cone: only its width is at fault",
            sides=lambda i: _correlation(i, 1 + i["m"], i["m"] * i["rho"]),
            expect=Outcome.SUPPORTED,
        ),
    ),
    expect=Expectation(
        Outcome.VIOLATED,
        "inside the cone a token that is no support token can come nearer than the support tokens",
    ),
    note=(
        "The sign is negative at every rho from 1 to 1e5, so that no radius R helps: the token "
        "beyond the margin by m = 1e-4 scores higher and comes nearer than the support token."
    ),
)

NO_SUPPORT = Erratum(
    paper=_PAPER,
    locator="(6), Lemma 19 (12b), Lemma 20",
    kind=ErratumClass.REFUTED,
    text=(
        "As recalled, delta' ranges over samples that have a support token. In a sample without "
        "one, (12b) fails at W_mm itself and the gradient can point away from W_mm at every norm. "
        "Adding to delta' the distance of such samples' tokens from the margin mends both proofs."
    ),
    claim=f"{_PAPER}/lemma-20-no-support",
)
