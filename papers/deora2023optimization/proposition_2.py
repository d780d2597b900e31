r"""Proposition 2: the first step is a good initialisation of the second phase (P1, P2, P3).

Given p, only the signs alpha_h = +-1 are random, and less is than the paper assumes: the outputs
of all samples share one sum of signs, and the margin in the direction theta_star has none,
because alpha_h sign(alpha_h) = 1 and the gradient in U does not depend on U.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.claims.claim import Control, ProofStep, Sides, Source, Status, assume
from attlas.claims.statement import inequality, probability
from attlas.kernels.multi_head_ntk import ntk_features, ntk_gram
from attlas.models.attention.multi_head import MultiHead, head_norms
from attlas.solvers.kernel_svm import kernel_svm_batch
from deora2023optimization.library.bounds.deora2023_mixture import (
    deora2023_decoder_bound,
    deora2023_output_bound,
)
from deora2023optimization.mixture_instances import (
    DIMENSION,
    ROUNDINGS,
    Mixture,
    against_the_label,
    mixture,
    with_samples,
)
from deora2023optimization.ntk_w_part import (
    first_head,
    gamma_star,
    inside_both,
    margin_size,
    single_samples,
    with_error,
)

_DELTA = 0.1
_SAMPLES = 4


def _model(mix: Mixture, alpha) -> MultiHead:
    """The heads U_h = alpha_h 1 (zeta/4 u_star + p)', W_h = 0."""
    rows = alpha[:, None] * first_head(mix)[None, :]
    U = jnp.broadcast_to(rows[:, None, :], (len(rows), mix.T, DIMENSION))
    return MultiHead(U, jnp.zeros((len(rows), DIMENSION, DIMENSION), U.dtype))


@inequality(
    "Proposition 2, P1",
    Source.FOUND,
    sample=partial(single_samples, tokens=3),
    search_over="p",
    project=inside_both,
    controls=[Control("a quarter of the bound", share=0.25)],
    roundings=ROUNDINGS,
)
def proposition_2_p1(*, share=1.0, **instance):
    r"""$$\|p\| \le P: \quad \|\theta_h^{(1)}\| \le B_2 = \sqrt T (S + P)$$

    Loose in $S$: the factor of $u_\star$ is $\zeta/4$, see the sharpened claim.
    """
    mix = Mixture(**instance)
    bound = deora2023_decoder_bound(mix.T, mix.S, mix.P, mix.zeta, "printed")
    return head_norms(_model(mix, jnp.ones(1)))[0], share * bound


@inequality(
    "Proposition 2, P1, sharpened",
    sample=partial(single_samples, tokens=9),
    search_over="p",
    project=inside_both,
    controls=[Control("half of $P$", error=0.5)],
    status=Status.SHARPENED,
    roundings=ROUNDINGS,
)
def proposition_2_p1_sharp(*, error=1.0, **instance):
    r"""$$\|p\| \le P: \quad \|\theta_h^{(1)}\| \le
    \sqrt T \big( \tfrac{\zeta S}{2 \sqrt 2} + P \big)$$

    Reached where $p$ points along $u_\star$.
    """
    mix = Mixture(**instance)
    bound = deora2023_decoder_bound(mix.T, mix.S, error * mix.P, mix.zeta, "sharp")
    return head_norms(_model(mix, jnp.ones(1)))[0], bound


def with_signs(rng, count, heads=8):
    """Four samples and heads of random signs."""
    batch = with_error(rng, with_samples(rng, mixture(rng, count), (_SAMPLES,)))
    against_the_label(batch)
    return {**batch, "alpha": rng.choice([-1.0, 1.0], (count, heads))}


def many_heads(rng, count):
    """64 heads, and in most instances a large error p along an irrelevant pattern."""
    batch = with_signs(rng, count, 64)
    large = np.arange(count) % 4 > 0
    batch["P"] = np.where(large, 20 * batch["S"], batch["P"])
    along = batch["nu"][:, 0] * (batch["P"] / batch["S"])[:, None]
    batch["p"] = np.where(large[:, None], along, batch["p"])
    # One relevant token, one pattern: the sample reads p almost everywhere.
    T = batch["relevant"].shape[-1]
    batch["relevant"][large] = np.eye(T)[0]
    batch["zeta"] = np.where(large, 1 / T, batch["zeta"])
    batch["choice"][large] = np.eye(3)[0]
    for name in ("noise", "Z_mu", "Z_nu", "Z_rest", "Z"):
        batch[name][large] = 0
    return batch


def _bounded(mix: Mixture, bound, in_phase=False):
    """Whether all outputs are within the bound; in phase, all heads have the same sign."""
    alpha = jnp.ones_like(mix.alpha) if in_phase else mix.alpha
    return jnp.all(jnp.abs(jax.vmap(_model(mix, alpha))(mix.tokens)) <= bound)


@probability(
    "Proposition 2, P2",
    Source.FOUND,
    sample=many_heads,
    independent="samples, error and signs of heads",
    level=1 - _DELTA,
    controls=[Control("all heads with the same sign", in_phase=True)],
    count=256,
    roundings=ROUNDINGS,
)
def proposition_2_p2(*, in_phase=False, **instance):
    r"""$$P\Big( \max_i |\widetilde\Phi(X_i; \widetilde\theta^{(1)})| \le B_\Phi =
    T R (S + P) \sqrt{2 \log(n/\delta)} \Big) \ge 1 - \delta$$

    $\delta = 0.1$, $n = 4$, $H = 64$. All outputs share one sum of signs, whose two tails are
    $2 \le n$: for $n \ge 2$ nothing else is needed.
    """
    mix = Mixture(**instance)
    of = mix.T, mix.radius, mix.S, mix.P, mix.zeta, _SAMPLES, _DELTA
    return _bounded(mix, deora2023_output_bound(*of, "printed"), in_phase)


@probability(
    "Proposition 2, P2, without the number of samples",
    sample=many_heads,
    independent="samples, error and signs of heads",
    level=1 - _DELTA,
    controls=[
        Control(r"1/2 in place of the root of $2 \log(2/\delta)$", share=(8 * np.log(20)) ** -0.5)
    ],
    status=Status.SHARPENED,
    count=256,
    roundings=ROUNDINGS,
)
def proposition_2_p2_sharp(*, share=1.0, **instance):
    r"""$$P\Big( \max_i |\widetilde\Phi(X_i; \widetilde\theta^{(1)})| \le
    T R \big( \tfrac{\zeta S}{2 \sqrt 2} + P \big) \sqrt{2 \log(2/\delta)} \Big)
    \ge 1 - \delta$$

    The output on $X_i$ is $c_i H^{-1/2} \sum_h \alpha_h$ with one sum of signs for all samples:
    no union bound, no $\log n$.
    """
    mix = Mixture(**instance)
    # Two sides of one sum: n = 1.
    of = mix.T, mix.radius, mix.S, mix.P, mix.zeta, 1, _DELTA
    return _bounded(mix, share * deora2023_output_bound(*of, "sharp"))


def _least_margin(mix: Mixture, signed) -> Float[Array, ""]:
    """The margin in the direction theta_star of norm sqrt(2), which may follow the signs."""
    alpha = mix.alpha
    signs, H = jnp.sign(alpha) if signed else jnp.ones_like(alpha), len(alpha)
    U = jnp.tile(mix.oracle / (mix.S * jnp.sqrt(2.0 * mix.T)), mix.T * H)
    W = signs[:, None, None] * (mix.key_query / mix.key_query_norm)[None]
    direction = jnp.concatenate([U, W.ravel()]) / jnp.sqrt(1.0 * H)
    return jnp.min(mix.y * (ntk_features(_model(mix, alpha), mix.tokens) @ direction))


_UNSIGNED = Control(r"$W_\star$ without the signs of $\alpha$", signed=False)
_POSITIVE = assume(r"$\gamma_\star > 0$", lambda **instance: gamma_star(Mixture(**instance)) > 0)


def separable(rng, count):
    """Little noise and error, so that gamma_star > 0, and signals on both sides of S = 3."""
    batch = with_samples(rng, mixture(rng, count, 0.01, strength=(1.0, 20.0)), (_SAMPLES,), 8)
    batch = with_error(rng, batch)
    batch["P"], batch["p"] = 1e-3 * batch["P"], 1e-3 * batch["p"]
    return {**batch, "alpha": rng.choice([-1.0, 1.0], (count, 8))}


@probability(
    "Proposition 2, P3",
    Source.FOUND,
    sample=separable,
    independent="samples, error and signs of heads",
    level=1 - _DELTA,
    assumptions=[_POSITIVE],
    controls=[_UNSIGNED],
    count=160,
    roundings=ROUNDINGS,
)
def proposition_2_p3(*, signed=True, **instance):
    r"""$$\sqrt H \gtrsim \tfrac{R^4 T (S+P)}{\gamma_\star} \sqrt{2 \log(n/\delta)}
    \;\Rightarrow\; P\Big( \min_i y_i \langle \nabla \widetilde\Phi(X_i;
    \widetilde\theta^{(1)}), \widetilde\theta_\star \rangle \ge
    \tfrac{\gamma_\star}{2} \Big) \ge 1 - \delta,\quad
    \|\widetilde\theta_\star\| = \sqrt 2$$

    $\delta = 0.1$, $H = 8$. The condition on $H$, here thousands to millions, is left out, so
    that more is checked than is printed: the claim holds without it, with $\gamma_\star$ itself
    and surely (see the sharpened claim).
    """
    mix = Mixture(**instance)
    rounding = ROUNDINGS * jnp.finfo(mix.alpha.dtype).eps * margin_size(mix)
    return _least_margin(mix, signed) >= gamma_star(mix) / 2 - rounding


@inequality(
    "Proposition 2, P3, for every number of heads",
    sample=with_signs,
    search_over=("noise", "p"),
    project=inside_both,
    controls=[_UNSIGNED, Control(r"1.1 times $\gamma_\star$", factor=1.1)],
    status=Status.SHARPENED,
    roundings=ROUNDINGS,
    evaluations=576,
)
def proposition_2_p3_every_head(*, signed=True, factor=1.0, **instance):
    r"""$$\min_i y_i \langle \nabla \widetilde\Phi(X_i; \widetilde\theta^{(1)}),
    \widetilde\theta_\star \rangle \ge \gamma_\star \quad (H \ge 1,
    \ \text{all signs } \alpha_h)$$

    Each head contributes the same: the gradient in $U$ does not depend on $\alpha$, that in $W$
    is $\alpha$ times a matrix, and $\theta_\star$ follows its sign. So there is nothing to
    concentrate: no half, no $\delta$, no condition on $H$. Also with $P T R^3$ for
    $P T^{5/2} (S+Z)^3$ in $\gamma_\star$; reached without noise and error.
    """
    mix = Mixture(**instance)
    return Sides(factor * gamma_star(mix, "sharp"), _least_margin(mix, signed), margin_size(mix))


@partial(jax.jit, compiler_options=CHEAP_COMPILATION)
@jax.vmap
def _tokens_and_heads(instance):
    mix = Mixture(**instance)
    return mix.tokens, _model(mix, mix.alpha)


def solved(rng, count):
    """Eight heads on four samples, and the true NTK margin by the hard-margin SVM."""
    batch = separable(rng, count)
    X, model = _tokens_and_heads(batch)
    U, W = np.asarray(model.U), np.asarray(model.W)
    K = np.stack(
        [
            ntk_gram(MultiHead(jnp.asarray(U[i]), jnp.asarray(W[i])), np.asarray(X[i]))
            for i in range(count)
        ]
    )
    svm = kernel_svm_batch(K, batch["y"])
    return {
        **batch,
        "margin": svm.value,
        "gap": svm.certificate["upper"] - svm.certificate["lower"],
        "certified": svm.converged,
    }


@inequality(
    r"Proposition 2, '$\gamma_\star$ represents the NTK margin'",
    sample=solved,
    assumptions=[assume("certified by the solver", lambda certified: certified), _POSITIVE],
    controls=[Control(r"three times $\gamma_\star$", factor=3.0)],
    proof_step=ProofStep("Proposition 2, P3", 5),
    roundings=ROUNDINGS,
    evaluations=128,
)
def proposition_2_p3_best(margin, gap, *, factor=1.0, **instance):
    r"""$$\max_{\|\widetilde\theta\| = \sqrt 2} \min_i y_i \langle \nabla \widetilde\Phi(X_i;
    \widetilde\theta^{(1)}), \widetilde\theta \rangle \ge \gamma_\star$$

    The best margin on these four samples is above $\gamma_\star$, so that the control takes
    three times $\gamma_\star$.
    """
    mix = Mixture(**instance)
    star = factor * gamma_star(mix)
    return Sides(star, 2**0.5 * margin, magnitude=margin_size(mix), error=2 * gap)
