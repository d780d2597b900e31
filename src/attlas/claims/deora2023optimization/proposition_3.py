r"""Proposition 3: with W = Gamma W_opt large enough, attention leaves eps for irrelevant tokens.

W_opt = W_star / (S^2 sqrt(2 (M+1))), U_opt = 1 u_star' / (S sqrt(2 T)), equation (9). A gap of
g S^4 under W_star gives odds (1/zeta - 1) exp(-Gamma g S^2 / sqrt(2 (M+1))) of an irrelevant
token; the paper's Gamma takes g = 3/8.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.bounds.optimisation.deora2023_mixture import (
    Version,
    deora2023_gamma_attention,
    deora2023_saturation,
)
from attlas.claims.deora2023optimization.equation_8 import at_an_eighth, gaps
from attlas.claims.deora2023optimization.mixture_instances import (
    ROUNDINGS,
    TOKENS,
    inside_the_noise,
    key_query,
    key_query_norm,
    oracle,
    tokens,
)
from attlas.core.generator import generator
from attlas.core.old_claim import (
    Assumption,
    Claim,
    Control,
    Instance,
    Kind,
    Link,
    Provenance,
    Sides,
    Status,
)
from attlas.models.attention.multi_head import MultiHead

_PAPER = "deora2023optimization"


def opt_decoder(instance: Instance) -> Float[Array, "T d"]:
    """U_opt of equation (9).

    Args:
        instance: with mu, S.

    Returns:
        The decoder, of Frobenius norm 1.
    """
    row = oracle(instance) / (instance["S"] * jnp.sqrt(2.0 * TOKENS))
    return jnp.broadcast_to(row, (TOKENS, len(row)))


def attention_model(instance: Instance, gamma: Array) -> MultiHead:
    """The single head (U_opt, Gamma W_opt).

    Args:
        instance: one sample.
        gamma: Gamma.

    Returns:
        The model.
    """
    W = gamma * key_query(instance) / key_query_norm(instance)
    return MultiHead(opt_decoder(instance)[None], W[None])


def irrelevant_attention(instance: Instance, gamma: Array) -> Float[Array, " T"]:
    """Attention of each query to the irrelevant tokens under Gamma W_opt.

    Args:
        instance: one sample.
        gamma: Gamma.

    Returns:
        One mass a query.
    """
    rows = attention_model(instance, gamma).attention(tokens(instance))[0]
    return rows @ (1 - instance["relevant"])


def saturation(instance: Instance, bound: Version = "printed") -> Float[Array, ""]:
    """Gamma_eps as printed, or with the best gap and the exact odds (0 where those are low).

    Args:
        instance: with M, S, Z_mu, Z_nu, zeta, eps.
        bound: which version.

    Returns:
        Gamma.
    """
    return jnp.maximum(
        deora2023_saturation(
            instance["S"],
            instance["zeta"],
            instance["M"],
            instance["eps"],
            instance["Z_mu"],
            instance["Z_nu"],
            bound,
        ),
        0,
    )


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """Samples with eps from 0.001 to half of the odds of irrelevant tokens."""
    batch = dict(at_an_eighth(key, count))
    share = 10 ** generator(key).uniform(-3, np.log10(0.5), count)
    batch["eps"] = jnp.asarray(share) * jnp.minimum(1 / batch["zeta"] - 1, 1)
    return batch


def _smallest_gap(instance: Instance, lower: Array) -> Sides:
    return Sides(lower, jnp.min(gaps(instance)), scale=4 * instance["S"] ** 4)


_GAP_STATEMENT = (
    r"Z_\mu = Z_\nu \le \tfrac{S^2}{8}: \quad \min_{t' \in \mathcal{R}} [r_t]_{t'} - "
    r"\max_{t'' \in \mathcal{R}^c} [r_t]_{t''} \ge "
)

PROPOSITION_3_GAP = Claim(
    name=f"{_PAPER}/proposition-3-gap",
    paper=_PAPER,
    locator="Proposition 3, gap of the scores",
    statement=_GAP_STATEMENT + r"\tfrac{3}{8} S^4",
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=at_an_eighth,
    sides=lambda i: _smallest_gap(i, 3 / 8 * i["S"] ** 4),
    control=Control("5/8 instead of 3/8", lambda i: _smallest_gap(i, 5 / 8 * i["S"] ** 4)),
    terms=ROUNDINGS,
    note=(
        "3/8 is what the 8/3 in the paper's Gamma rests on. Bounding both scores on their own "
        "gives 7/16; they do not reach their bounds together, the best constant is 17/32."
    ),
    ledger=Link("Proposition 3", 1),
)


def _sharp_gap(instance: Instance, noise: float) -> Sides:
    S, Z_mu, Z_nu = instance["S"], instance["Z_mu"], instance["Z_nu"]
    return _smallest_gap(instance, (S**2 - Z_nu) * (S**2 - 2 * Z_mu) - noise * S**2 * Z_mu)


PROPOSITION_3_GAP_SHARP = Claim(
    name=f"{_PAPER}/proposition-3-gap-sharp",
    paper=_PAPER,
    locator="Proposition 3, gap of the scores, best constant",
    statement=_GAP_STATEMENT + r"(S^2 - Z_\nu)(S^2 - 2 Z_\mu) - S^2 Z_\mu \ge \tfrac{17}{32} S^4",
    kind=Kind.INEQUALITY,
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    instances=at_an_eighth,
    sides=lambda i: _sharp_gap(i, 1.0),
    free=("noise",),
    domain=inside_the_noise,
    control=Control("the last term halved", lambda i: _sharp_gap(i, 0.5)),
    terms=ROUNDINGS,
    note=(
        "The gap is linear in each inner product of the noise: with q of the query, m of the "
        "irrelevant token and s = sum_l <nu_l, z>, it is "
        "(S^2+s)(S^2 - m_y - m_-y) + q_y (S^2 - m_y) - q_-y m_-y for an irrelevant query, least "
        "at m = Z_mu, s = -Z_nu, q_y = -Z_mu, q_-y = Z_mu. Reached there."
    ),
)


def _mass(instance: Instance, gamma: Array, eps: Array) -> Sides:
    # A relative rounding of the scores reaches a mass by a factor of their size.
    S = instance["S"]
    size = 1 + 4 * jnp.abs(gamma) * S**4 / key_query_norm(instance)
    return Sides(irrelevant_attention(instance, gamma), eps, scale=eps * size)


PROPOSITION_3_ATTENTION = Claim(
    name=f"{_PAPER}/proposition-3-attention",
    paper=_PAPER,
    locator="Proposition 3, equation (10)",
    statement=(
        r"Z_\mu = Z_\nu \le \tfrac{S^2}{8},\ \Gamma_\epsilon \ge "
        r"\tfrac{8 \sqrt{2(M+1)}}{3 S^2} \log \tfrac{\zeta^{-1} - 1}{\epsilon} \;\Rightarrow\; "
        r"\sum_{t' \in \mathcal{R}^c} \varphi_{t'}(x_t^\top \Gamma_\epsilon W_{opt} X^\top)"
        r"\le \epsilon"
    ),
    kind=Kind.INEQUALITY,
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    instances=_instances,
    sides=lambda i: _mass(i, saturation(i), i["eps"]),
    control=Control("Gamma times 0.3", lambda i: _mass(i, 0.3 * saturation(i), i["eps"])),
    assumptions=(
        Assumption("eps below the odds 1/zeta - 1", lambda i: i["eps"] < 1 / i["zeta"] - 1),
    ),
    terms=ROUNDINGS,
    note=(
        "True with room: half of Gamma still holds on most instances. An eps above 1/zeta - 1, "
        "which 'any eps > 0' allows, would make Gamma negative; it is left out here."
    ),
    ledger=Link("Proposition 3", 2),
)


PROPOSITION_3_ATTENTION_SHARP = Claim(
    name=f"{_PAPER}/proposition-3-attention-sharp",
    paper=_PAPER,
    locator="Proposition 3, equation (10), with the best gap",
    statement=(
        r"Z_\mu = Z_\nu \le \tfrac{S^2}{8},\ g = (S^2 - Z_\nu)(S^2 - 2 Z_\mu) - S^2 Z_\mu,\ "
        r"\Gamma \ge \tfrac{S^2 \sqrt{2(M+1)}}{g}"
        r"\max\big(0, \log \tfrac{(\zeta^{-1} - 1)(1-\epsilon)}{\epsilon}\big) \;\Rightarrow\;"
        r"\sum_{t' \in \mathcal{R}^c} \varphi_{t'}(x_t^\top \Gamma W_{opt} X^\top) \le \epsilon"
    ),
    kind=Kind.INEQUALITY,
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=lambda i: _mass(i, saturation(i, "sharp"), i["eps"]),
    free=("noise",),
    domain=inside_the_noise,
    control=Control("Gamma times 0.7", lambda i: _mass(i, 0.7 * saturation(i, "sharp"), i["eps"])),
    terms=ROUNDINGS,
    note=(
        "At most 32/17 in place of 8/3, the exact odds eps/(1-eps) in place of eps, and every eps "
        "in (0, 1). Reached without noise; with noise only the query's own score, which cannot "
        "be the worst one, keeps the mass below eps."
    ),
)


def _margin(instance: Instance, factor: float) -> Sides:
    model = attention_model(instance, factor * saturation(instance))
    bound = deora2023_gamma_attention(TOKENS, instance["S"], instance["eps"], instance["Z_mu"])
    size = 4 * saturation(instance) * instance["S"] ** 4 / key_query_norm(instance)
    scale = jnp.sqrt(TOKENS / 2.0) * instance["S"] * (1 + size * instance["eps"])
    return Sides(bound, instance["y"] * model(tokens(instance)), scale=scale)


PROPOSITION_3_MARGIN = Claim(
    name=f"{_PAPER}/proposition-3-margin",
    paper=_PAPER,
    locator="Proposition 3, equation (11)",
    statement=(
        r"y \Phi(X; U_{opt}, \Gamma_\epsilon W_{opt}) \ge \gamma_{attn}(\epsilon) = "
        r"\tfrac{\sqrt{T}}{\sqrt{2} S} \big( S^2 (1 - \epsilon) - 2 \epsilon Z_\mu \big)"
    ),
    kind=Kind.INEQUALITY,
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    instances=_instances,
    sides=lambda i: _margin(i, 1.0),
    control=Control("Gamma times 0.2", lambda i: _margin(i, 0.2)),
    assumptions=(
        Assumption("eps below the odds 1/zeta - 1", lambda i: i["eps"] < 1 / i["zeta"] - 1),
    ),
    terms=ROUNDINGS,
    note="Tight as eps falls, where both sides tend to S sqrt(T/2), whatever zeta.",
    ledger=Link("Proposition 3", 3),
)
