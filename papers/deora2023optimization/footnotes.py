r"""Footnotes of sections 2 and 3, and the radius R of Assumption 3."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from attlas.bounds.optimisation.deora2023_model import deora2023_gradient, deora2023_hessian
from attlas.claims.claim import Control, Source, Status
from attlas.claims.statement import inequality
from attlas.models.attention.multi_head import Decoder, MultiHead
from deora2023optimization.corollary_1 import with_the_extremal
from deora2023optimization.instances import (
    ROUNDINGS,
    betas,
    largest_head,
    risk,
    risk_curvature,
    risk_gradient,
    squared_distance,
)
from deora2023optimization.mixture_instances import Mixture, inside_the_noise
from deora2023optimization.ntk_w_part import single_samples
from deora2023optimization.proposition_1 import pooled_heads

_NO_SECOND = Control("without the second terms", whole=False)
on_shared_decoders = partial(
    inequality,
    sample=pooled_heads,
    search_over=("X", "u", "W"),
    count=32,
    roundings=ROUNDINGS,
)


def _norms(X, u, W, decoder, whole, share):
    """Gradient and Hessian of Phi in (u, W) against a share of Proposition 1 with its own T."""
    flat, back = ravel_pytree((u[None], W[None]))

    def output(theta):
        return MultiHead(*back(theta), decoder=decoder)(X)

    slope, bend = jax.grad(output)(flat), jnp.linalg.eigvalsh(jax.hessian(output)(flat))
    U = MultiHead(u[None], W[None], decoder).token_decoders(len(X))[0]
    bounds = [
        bound(X, U, "printed", decoder) - (0 if whole else bound(X, 0 * U, "printed", decoder))
        for bound in (deora2023_gradient, deora2023_hessian)
    ]
    return jnp.stack([jnp.sqrt(jnp.sum(slope**2)), jnp.max(jnp.abs(bend))]), share * jnp.stack(
        bounds
    )


@on_shared_decoders(
    "Footnote * of section 2, last token",
    status=Status.SHARPENED,
    controls=[
        _NO_SECOND,
        Control("half of each right side", share=0.5),
        Control("a sixth of each right side", share=1 / 6),
    ],
)
def footnote_last_token(X, u, W, *, whole=True, share=1.0):
    r"""$$U = [0\ u]^\top: \quad \|\nabla_{(u, W)} \Phi\| \le 2R^2 \|Xu\|_\infty + R,\quad
    \|\nabla^2_{(u, W)} \Phi\| \le 6 d R^2 m^2 \|Xu\|_\infty + 2 \sqrt d R^2 m$$

    $R = \|X\|_{2,\infty}$, $m = \|X\|_{1,\infty}$. "Our results also apply to (iii)" as
    printed, since the parameters are some of $(U, W)$; with 1 in place of $T$ too.
    """
    return _norms(X, u, W, Decoder.LAST, whole, share)


@on_shared_decoders(
    "Footnote * of section 2, pooling",
    status=Status.CORRECTED,
    controls=[
        _NO_SECOND,
        Control("half of each right side", share=0.5),
        Control("a 14th of each right side", share=1 / 14),
    ],
)
def footnote_pooling(X, u, W, *, whole=True, share=1.0):
    r"""$$U = 1_T u^\top: \quad \|\nabla_{(u, W)} \Phi\| \le 2R^2 T \|Xu\|_\infty + T R,\quad
    \|\nabla^2_{(u, W)} \Phi\| \le 6 d R^2 m^2 T \|Xu\|_\infty + 2 T \sqrt d R^2 m$$

    $T^2$ in place of $T$ in Proposition 1: see proposition-1-pooled.
    """
    return _norms(X, u, W, Decoder.POOLED, whole, share)


@inequality(
    "Footnote § of section 3",
    Source.FOUND,
    sample=with_the_extremal,
    search_over=("X", "U", "W"),
    controls=[
        Control(r"$\max_h \|W_h\|$", swapped=True),
        Control("a sixth of each bound", share=1 / 6),
    ],
    count=32,
    roundings=ROUNDINGS,
)
def footnote_decoder_norm(U, W, *, swapped=False, share=1.0, **data):
    r"""$$x = \max_h \|U_h\|: \quad \|\nabla \widehat L\| \le \beta_1(x) \widehat L,\quad
    \|\nabla^2 \widehat L\| \le \beta_2(x),\quad \lambda_{\min}(\nabla^2 \widehat L) \ge
    -\tfrac{\beta_3(x)}{\sqrt H} \widehat L$$

    "It is possible to substitute $\|\theta\|_{2,\infty}$": in Corollary 1, and so wherever it is
    used, as $\max_h \|U_h\|$ of a point is at most that of the target and its distance as well.
    """
    x = largest_head(0 * U, W) if swapped else largest_head(U, 0 * W)
    at = betas({**data, "U": U}, x)
    loss, bend = risk(data, U, W), risk_curvature(data, U, W)
    slope = jnp.sqrt(squared_distance(data["copies"], *risk_gradient(data, U, W)))
    right = jnp.stack([at.slope * loss, at.smooth, at.weak * loss])
    return jnp.stack([slope, bend.norm, -bend.smallest]), share * right


@inequality(
    "Assumption 3, R",
    Source.FOUND,
    sample=partial(single_samples, tokens=4),
    search_over="noise",
    project=inside_the_noise,
    controls=[Control(r"without $2 Z_\nu / M$", pattern=0.0), Control("without $Z^2$", length=0.0)],
    roundings=ROUNDINGS,
    evaluations=1088,
)
def assumption_3_radius(*, pattern=1.0, length=1.0, **instance):
    r"""$$\|x_t\| \le R = \sqrt{S^2 + Z^2 + 2 Z_\nu / M}$$

    Reached at a corner of the noise. Assumption 1 asks $R \ge 1$ besides, which a weak signal
    lacks.
    """
    mix = Mixture(**instance)
    removed = (1 - pattern) * 2 * mix.Z_nu / mix.M + (1 - length) * mix.Z**2
    return jnp.max(jnp.linalg.norm(mix.tokens, axis=1)), jnp.sqrt(mix.radius**2 - removed)
