r"""Lemmas 14 and 15: the NTK margin after the first step, for one head and over random heads.

The appendix is lost; section 5.2 says what they do: a single head has the margin gamma_star of
(7) in expectation over alpha = +-1, and Hoeffding's inequality over heads gives gamma_star / 2.
For alpha = +-1 nothing is random (see proposition-2-p3-every-head), so that the inequality is
checked for alpha uniform on [-1, 1].
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.claims.deora2023optimization.mixture_instances import (
    ROUNDINGS,
    TOKENS,
    as_arrays,
    mixture,
    radius,
    tokens,
    with_samples,
)
from attlas.claims.deora2023optimization.ntk_w_part import (
    first_head,
    gamma_star,
    margin_size,
    single_samples,
    u_part,
    w_part,
    with_error,
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

_PAPER = "deora2023optimization"
_DELTA = 0.1
_SAMPLES = 4
_MOST_HEADS = 200_000


def _expected(instance: Instance, aligned: bool) -> Sides:
    X, row = tokens(instance), first_head(instance)
    signs = jnp.array([1.0, -1.0])
    # The direction of W follows the sign of alpha.
    towards = signs if aligned else jnp.ones(2)
    parts = jnp.stack([w_part(instance, X, sign * row) for sign in signs])
    margin = instance["y"] * (u_part(instance, X) + jnp.mean(towards * parts))
    return Sides(gamma_star(instance), margin, scale=margin_size(instance))


LEMMA_14 = Claim(
    name=f"{_PAPER}/lemma-14",
    paper=_PAPER,
    locator="Lemma 14, the margin of one head in expectation",
    statement=(
        r"\mathbb{E}_{\alpha \sim \mathrm{Unif}(\pm 1)}\, y \langle \nabla_\theta \Phi(X;"
        r"\theta^{(1)}), (\overline{U}_\star, \mathrm{sign}(\alpha) \overline{W}_\star) \rangle"
        r"\ge \gamma_\star"
    ),
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=single_samples,
    sides=lambda i: _expected(i, aligned=True),
    control=Control("W_star without the sign of alpha", lambda i: _expected(i, aligned=False)),
    terms=ROUNDINGS,
    note=(
        "Reached without noise and error. Lemma 2 enters with zeta/4: with the printed zeta/2 "
        "the first term of (7) would be twice as large."
    ),
    ledger=Link("Proposition 2, P3", 4),
)


def _random_heads(key: PRNGKeyArray, count: int) -> Instance:
    """Samples, and the means of alpha and |alpha| over as many heads as Hoeffding asks for."""
    rng = generator(key)
    # The part of W grows like S^4: from S = 3 on it is the larger one.
    batch = mixture(rng, count, highest=0.02, strength=(1.0, 20.0))
    single = as_arrays(with_error(rng, with_samples(rng, batch, (_SAMPLES,))))
    H = np.asarray(jax.jit(jax.vmap(_enough_heads))(single))
    drawn = [rng.uniform(-1, 1, int(h)) if h <= _MOST_HEADS else np.zeros(1) for h in H]
    means = {
        "H": H,
        "mean": np.array([alpha.mean() for alpha in drawn]),
        "mean_size": np.array([np.abs(alpha).mean() for alpha in drawn]),
    }
    return {**single, **as_arrays(means)}


def _parts(instance: Instance) -> tuple[Array, Array]:
    """y_i times the parts of U and W of one head with alpha = 1, for all samples."""
    X, row, y = tokens(instance), first_head(instance), instance["y"]
    linear = jax.vmap(lambda sample: u_part(instance, sample))(X)
    return y * linear, y * jax.vmap(lambda sample: w_part(instance, sample, row))(X)


def _enough_heads(instance: Instance) -> Array:
    """H = 2 b^2 log(n/delta) / gamma^2 with the range b of a head's margin."""
    u, w = _parts(instance)
    gamma = jnp.maximum(jnp.min(u + w / 2), 0)
    M, length = instance["M"], instance["zeta"] * instance["S"] / 8**0.5 + instance["P"]
    constant = 2 / 27**0.5 * jnp.sqrt((2 * M + 1) / (2 * M + 2))
    b = constant * TOKENS * radius(instance) ** 3 * length
    return jnp.ceil(2 * (b / gamma) ** 2 * np.log(_SAMPLES / _DELTA))


def _concentrated(instance: Instance, mean: Array) -> Sides:
    u, w = _parts(instance)
    hit = jnp.all(u + mean * w >= jnp.min(u + w / 2) / 2)
    return Sides(jnp.asarray(hit, float), jnp.asarray(1 - _DELTA))


LEMMA_15 = Claim(
    name=f"{_PAPER}/lemma-15",
    paper=_PAPER,
    locator="Lemma 15, concentration of the margin over heads",
    statement=(
        r"\alpha_h \sim \mathrm{Unif}[-1, 1],\ \gamma = \min_i \mathbb{E}\, m_i > 0,\ \sqrt H \ge"
        r"\tfrac{b}{\gamma} \sqrt{2 \log \tfrac{n}{\delta}},\ b = \tfrac{2}{3 \sqrt 3}"
        r"\sqrt{\tfrac{2M+1}{2M+2}} T R^3 \big( \tfrac{\zeta S}{2 \sqrt 2} + P \big)"
        r" \;\Rightarrow\;"
        r"P\Big( \min_i y_i \langle \nabla \widetilde\Phi(X_i; \widetilde\theta^{(1)}),"
        r"\widetilde\theta_\star \rangle \ge \tfrac{\gamma}{2} \Big) \ge 1 - \delta"
    ),
    kind=Kind.PROBABILITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=_random_heads,
    sides=lambda i: _concentrated(i, i["mean_size"]),
    control=Control("W_star without the sign of alpha", lambda i: _concentrated(i, i["mean"])),
    assumptions=(
        Assumption("H of at most 200,000 heads suffices", lambda i: i["H"] <= _MOST_HEADS),
    ),
    count=128,
    terms=ROUNDINGS,
    note=(
        "delta = 0.1, n = 4. m_i is the margin of one head; it lies in an interval of length b, "
        "below the paper's R^4 T (S+P). Every draw holds: Hoeffding's range is far above the "
        "standard deviation, so that a constant several times smaller would pass as well. On "
        "[-1, 1] the mean of |alpha| is 1/2: the first term of (7) would be half as large."
    ),
)
