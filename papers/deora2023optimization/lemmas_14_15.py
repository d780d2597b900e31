r"""Lemmas 14 and 15: the NTK margin after the first step, for one head and over random heads.

The appendix is lost; section 5.2 says what they do: a single head has the margin gamma_star of
(7) in expectation over alpha = +-1, and Hoeffding's inequality over heads gives gamma_star / 2.
For alpha = +-1 nothing is random (see proposition-2-p3-every-head), so that the inequality is
checked for alpha uniform on [-1, 1].
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, ProofStep, Sides, assume
from attlas.claims.statement import inequality, probability
from deora2023optimization.mixture_instances import ROUNDINGS, Mixture, mixture, with_samples
from deora2023optimization.ntk_w_part import (
    error_constant,
    first_head,
    gamma_star,
    inside_both,
    margin_size,
    single_samples,
    u_part,
    w_part,
    with_error,
)

_DELTA = 0.1
_SAMPLES = 4
_MOST_HEADS = 200_000


@inequality(
    "Lemma 14, the margin of one head in expectation",
    sample=partial(single_samples, tokens=9),
    search_over=("noise", "p"),
    project=inside_both,
    controls=[
        Control(r"$W_\star$ without the sign of $\alpha$", aligned=False),
        Control(r"1.1 times $\gamma_\star$", factor=1.1),
    ],
    proof_step=ProofStep("Proposition 2, P3", 4),
    roundings=ROUNDINGS,
)
def lemma_14(*, aligned=True, factor=1.0, **instance):
    r"""$$\mathbb{E}_{\alpha \sim \mathrm{Unif}(\pm 1)}\, y \langle \nabla_\theta \Phi(X;
    \theta^{(1)}), (\overline{U}_\star, \mathrm{sign}(\alpha) \overline{W}_\star) \rangle
    \ge \gamma_\star$$

    Reached without noise and error. Lemma 2 enters with $\zeta/4$: with the printed $\zeta/2$
    the first term of (7) would be twice as large.
    """
    mix = Mixture(**instance)
    X, signs = mix.tokens, jnp.array([1.0, -1.0])
    # The direction of W follows the sign of alpha.
    towards = signs if aligned else jnp.ones(2)
    w_parts = jnp.stack([w_part(mix, X, sign * first_head(mix)) for sign in signs])
    margin = mix.y * (u_part(mix, X) + jnp.mean(towards * w_parts))
    return Sides(factor * gamma_star(mix), margin, magnitude=margin_size(mix))


def _margin_parts(mix: Mixture):
    """y_i times the parts of U and W of one head with alpha = 1, for all samples."""
    X, row = mix.tokens, first_head(mix)
    linear = jax.vmap(lambda sample: u_part(mix, sample))(X)
    return mix.y * linear, mix.y * jax.vmap(lambda sample: w_part(mix, sample, row))(X)


@jax.jit
@jax.vmap
def _enough_heads(instance):
    """H = 2 b^2 log(n/delta) / gamma^2 with the range b of a head's margin."""
    mix = Mixture(**instance)
    u, w = _margin_parts(mix)
    gamma = jnp.maximum(jnp.min(u + w / 2), 0)
    b = error_constant(mix) * (mix.zeta * mix.S / 8**0.5 + mix.P)
    return jnp.ceil(2 * (b / gamma) ** 2 * np.log(_SAMPLES / _DELTA))


def random_heads(rng, count):
    """Samples, and the means of alpha and |alpha| over as many heads as Hoeffding requires."""
    # The part of W grows like S^4: from S = 3 on it is the larger one.
    batch = mixture(rng, count, highest=0.02, strength=(1.0, 20.0))
    batch = with_error(rng, with_samples(rng, batch, (_SAMPLES,)))
    H = np.asarray(_enough_heads(batch))
    signs = [rng.uniform(-1, 1, int(h)) if h <= _MOST_HEADS else np.zeros(1) for h in H]
    means = {
        "H": H,
        "mean": np.array([alpha.mean() for alpha in signs]),
        "mean_size": np.array([np.abs(alpha).mean() for alpha in signs]),
    }
    return {**batch, **means}


@probability(
    "Lemma 15, concentration of the margin over heads",
    sample=random_heads,
    independent="samples, error and heads",
    level=1 - _DELTA,
    assumptions=[assume("$H$ of at most 200,000 heads suffices", lambda H: H <= _MOST_HEADS)],
    controls=[Control(r"$W_\star$ without the sign of $\alpha$", signed=False)],
    count=160,
    roundings=ROUNDINGS,
)
def lemma_15(*, signed=True, **instance):
    r"""$$\alpha_h \sim \mathrm{Unif}[-1, 1],\ \gamma = \min_i \mathbb{E}\, m_i > 0,\ \sqrt H \ge
    \tfrac{b}{\gamma} \sqrt{2 \log \tfrac{n}{\delta}},\ b = \tfrac{2}{3 \sqrt 3}
    \sqrt{\tfrac{2M+1}{2M+2}} T R^3 \big( \tfrac{\zeta S}{2 \sqrt 2} + P \big)
    \;\Rightarrow\;
    P\Big( \min_i y_i \langle \nabla \widetilde\Phi(X_i; \widetilde\theta^{(1)}),
    \widetilde\theta_\star \rangle \ge \tfrac{\gamma}{2} \Big) \ge 1 - \delta$$

    $\delta = 0.1$, $n = 4$. $m_i$ is the margin of one head; it lies in an interval of length
    $b$, below the paper's $R^4 T (S+P)$. Hoeffding's range is above the standard deviation.
    On $[-1, 1]$ the mean of $|\alpha|$ is 1/2: the first term of (7) would be half as large.
    """
    mix = Mixture(**instance)
    u, w = _margin_parts(mix)
    mean = mix.mean_size if signed else mix.mean
    return jnp.all(u + mean * w >= jnp.min(u + w / 2) / 2)
