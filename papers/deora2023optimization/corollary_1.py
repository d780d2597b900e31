r"""Corollary 1: slope, smoothness and weak convexity of the risk, at up to 20,000 heads.

R of Assumption 1 is the longest token (at least 1). "sharp" versions are ours: without d and with
the best constants of one head.
"""

from functools import partial

import jax.numpy as jnp

from attlas.claims.claim import Control, ProofStep, Source, Status
from attlas.claims.statement import inequality
from deora2023optimization.instances import (
    EXTREMAL_WEIGHT,
    ROUNDINGS,
    SIZES,
    betas,
    grouped_heads,
    largest_head,
    risk,
    risk_curvature,
    risk_gradient,
    squared_distance,
)


def models(rng, count, sizes=SIZES):
    """Groups of equal heads whose outputs are of order 1 at any number of heads.

    In every eighth instance all tokens and labels are equal and heads are small: there slope and
    smoothness are nearly those of the bounds.
    """
    batch = grouped_heads(rng, count, (2.0, 1e8), sizes)
    # Such outputs keep the loss curved; opposite tokens and flat attention are where a single
    # head is most curved.
    size = 10 ** rng.uniform(-2, 1, count) / batch["copies"] ** rng.choice([0.25, 0.5], count)
    batch["U"] = rng.normal(size=batch["U"].shape) * size[:, None, None, None]
    batch["X"][::2, :, 1] = -batch["X"][::2, :, 0]
    batch["W"] *= 10 ** rng.uniform(-2, 0, (count, 1, 1, 1))
    batch["X"][3::8], batch["y"][3::8] = batch["X"][3::8, :1, :1], 1
    for name in "UW":
        batch[name][3::8] *= 0.01
    return batch


def with_the_extremal(rng, count):
    """The same, the first with the most negative curvature that heads of their size can have.

    All samples are right by far, where |l'| = l: opposite tokens, one group of heads with the
    largest third moment, one with hard attention that puts the margins on the right side.
    """
    batch = models(rng, count)
    batch["copies"][0], batch["y"][0] = 2, 1
    for name in "XUW":
        batch[name][0] = 0
    batch["X"][0, :, :, 0], batch["U"][0, :, :, 0] = [1, -1], [300, -300]
    batch["W"][0, :, 0, 0] = EXTREMAL_WEIGHT, 10
    return batch


def _slope(data, constants, whole, share=1.0):
    """||grad L|| against a share of beta_1 L, or of the part of it that heads multiply."""
    U, W = data["U"], data["W"]
    size = jnp.sqrt(squared_distance(data["copies"], *risk_gradient(data, U, W)))
    # That part is the slope of beta_1 at huge heads.
    scale = 1 if whole else 1e12
    beta_1 = betas(data, scale * largest_head(U, W), constants).slope / scale
    return size, share * beta_1 * risk(data, U, W)


def _smoothness(data, constants, whole, share=1.0):
    """||hess L|| against a share of beta_2, with or without beta_1^2 / 4."""
    at = betas(data, largest_head(data["U"], data["W"]), constants)
    bound = at.smooth if whole else at.weak
    return risk_curvature(data, data["U"], data["W"]).norm, share * bound


def _weak_convexity(data, constants, power, share=1.0):
    """The most negative curvature against a share of beta_3 L / H^power."""
    U, W, H = data["U"], data["W"], len(data["U"]) * data["copies"]
    weak = betas(data, largest_head(U, W), constants).weak * H ** (0.5 - power)
    return -risk_curvature(data, U, W).smallest, share * weak * risk(data, U, W)


on_models = partial(
    inequality, sample=models, search_over=("X", "U", "W"), count=32, roundings=ROUNDINGS
)
sharpened = partial(on_models, status=Status.SHARPENED)


@on_models(
    "Corollary 1 (1)",
    Source.FOUND,
    sample=partial(models, sizes=(3, 4, 3, 2)),
    controls=[
        Control(r"$\beta_1$ without its second term", whole=False),
        Control("half of the right side", share=1 / 2),
    ],
)
def corollary_1_1(*, whole=True, share=1.0, **data):
    r"""$$\|\nabla \widehat L(\theta)\| \le \beta_1(\theta) \widehat L(\theta),\quad
    \beta_1(\theta) = \sqrt T R \big( 2 R^2 \|\theta\|_{2,\infty} + 1 \big)$$

    Loose by 2 for large heads, where half of the first term is enough.
    """
    return _slope(data, "printed", whole, share)


@sharpened(
    "Corollary 1 (1), sharpened",
    controls=[
        Control("without the 1 in the maximum", whole=False),
        Control("a third of the right side", share=1 / 3),
    ],
)
def corollary_1_1_sharp(*, whole=True, share=1.0, **data):
    r"""$$\|\nabla \widehat L(\theta)\| \le \sqrt T R \max\big(1, R^2 \|\theta\|_{2,\infty}\big)
    \widehat L(\theta)$$

    The search ends near 1: all samples right by far, where $|l'| = l$, and flat attention.
    Neither the factor 2 nor the sum of both terms is needed.
    """
    return _slope(data, "sharp", whole, share)


@on_models(
    "Corollary 1 (2)",
    Source.FOUND,
    sample=partial(models, sizes=(2, 3, 2, 3)),
    controls=[
        Control(r"without $\beta_1^2 / 4$", whole=False),
        Control("half of the right side", share=1 / 2),
    ],
    evaluations=896,
)
def corollary_1_2(*, whole=True, share=1.0, **data):
    r"""$$\|\nabla^2 \widehat L(\theta)\| \le \beta_2(\theta) = \frac{1}{\sqrt H}
    \beta_3(\theta) + \frac14 \beta_1(\theta)^2$$

    Nearly reached for small heads, where $\beta_1^2 / 4$ counts; far less for large ones.
    """
    return _smoothness(data, "printed", whole, share)


@sharpened(
    "Corollary 1 (2), sharpened",
    controls=[
        Control("without its last term", whole=False),
        Control("two fifths of the right side", share=2 / 5),
    ],
)
def corollary_1_2_sharp(*, whole=True, share=1.0, **data):
    r"""$$\|\nabla^2 \widehat L(\theta)\| \le \frac{\beta}{\sqrt H} + \frac{T R^2}{4}
    \max\big(1, R^2 \|\theta\|_{2,\infty}\big)^2,\quad \beta = \sqrt T R^3
    \frac{s + \sqrt{s^2 + 4}}{2},\quad s = \frac{4}{3\sqrt3} R^2 \|\theta\|_{2,\infty}$$

    The second term is reached at zero margins, where $l'' = 1/4$, with equal samples.
    """
    return _smoothness(data, "sharp", whole, share)


@on_models(
    "Corollary 1 (3)",
    Source.FOUND,
    sample=partial(models, sizes=(1, 3, 4, 2)),
    controls=[
        Control(r"$H$ in place of $\sqrt H$", power=1.0),
        Control("a twentieth of the right side", share=1 / 20),
    ],
    proof_step=ProofStep("Corollary 1 (3)", 3),
)
def corollary_1_3(*, power=0.5, share=1.0, **data):
    r"""$$\lambda_{\min}(\nabla^2 \widehat L(\theta)) \ge -\frac{\beta_3(\theta)}{\sqrt H}
    \widehat L(\theta),\quad \beta_3(\theta) = 2\sqrt{Td} R^3
    \big( 3 \sqrt d R^2 \|\theta\|_{2,\infty} + 1 \big)$$

    $\beta_3$ is loose by $6 d / 0.77$ for large heads.
    """
    return _weak_convexity(data, "printed", power, share)


@sharpened(
    "Corollary 1 (3), without the dimension",
    sample=with_the_extremal,
    controls=[Control(r"$H^{0.6}$ in place of $\sqrt H$", power=0.6)],
)
def corollary_1_3_sharp(*, power=0.5, **data):
    r"""$$\lambda_{\min}(\nabla^2 \widehat L(\theta)) \ge -\frac{\beta}{\sqrt H}
    \widehat L(\theta),\quad \beta = \sqrt T R^3 \frac{s + \sqrt{s^2 + 4}}{2},
    \quad s = \frac{4}{3\sqrt3} R^2 \|\theta\|_{2,\infty}$$

    $\sqrt H$ of the condition (3) shrinks by $6 d / 0.77$ for large heads. The first instance
    reaches it: opposite tokens, the weights of the largest third moment, all samples right by far.
    """
    return _weak_convexity(data, "sharp", power)
