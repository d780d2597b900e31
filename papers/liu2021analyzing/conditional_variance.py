r"""(A3) and (A5): what linear regression on the student's features leaves of the teacher's.

The print inverts the covariance of the wrong features, and its numerical check is made on the
sample that was fitted, where enough features predict anything.
"""

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Kind, Sides, Status, assume
from attlas.claims.statement import erratum, identity, inequality
from liu2021analyzing.library.measures.conditional_covariance import (
    conditional_covariance,
    schur_complement,
)

# A tenth of the paper's check: 500 samples, 256 hidden units, "overparameterized with p = 2142".
_SAMPLES, _WIDE, _NARROW, _TARGETS, _INPUTS = 50, 214, 26, 4, 6
_SMALL, _POPULATION = 10, 24


def features(rng, count, samples, width):
    """Rectified random features of fresh Gaussian inputs."""
    x = rng.standard_normal((count, samples, _INPUTS))
    return np.maximum(x @ rng.standard_normal((count, _INPUTS, width)), 0)


def population(rng, count):
    """A population of 24 pairs of teacher's and student's features of the same inputs."""
    x = rng.standard_normal((count, _POPULATION, _INPUTS))
    scale = 10 ** rng.uniform(-1, 1, (2, count, 1, 1))
    target, given = (
        np.maximum(x @ rng.standard_normal((count, _INPUTS, width)), 0) * size
        for width, size in zip((3, 4), scale, strict=True)
    )
    # A unit twice in every third population, and one of a thousandth in every third.
    given[::3, :, 3] = given[::3, :, 2]
    given[1::3, :, 3] *= 1e-3
    return {"target": target, "given": given}


def formula_and_residual(target, given, printed):
    """var(z_1 | z_2) by covariances, as printed or not, and by residuals of a regression."""
    z_1, z_2 = target - target.mean(0)[None, :], given - given.mean(0)[None, :]
    first, cross, second = (a.T @ b / len(z_1) for a, b in ((z_1, z_1), (z_1, z_2), (z_2, z_2)))
    if printed:
        # z1 and z2 need equal numbers of entries: the first ones of z2.
        part = cross[:, : len(first)]
        formula = first - part.T @ jnp.linalg.solve(first, part)
    else:
        formula = schur_complement(first, cross, second)
    spectrum = jnp.linalg.eigvalsh(second)
    # The inverse multiplies rounding by the condition number of what is not rounding itself.
    least = jnp.min(jnp.where(spectrum > 1e-12 * spectrum[-1], spectrum, jnp.inf))
    magnitude = jnp.trace(first) * spectrum[-1] / least
    return Sides(formula, conditional_covariance(target, given).covariance, magnitude)


@identity(
    r"Section 3.1, $\mathrm{var}(z_1 | z_2)$",
    sample=population,
    status=Status.CORRECTED,
    count=32,
    controls=[Control("as printed, with the inverse of the other block", printed=True)],
)
def conditional_variance(target, given, *, printed=False):
    r"""$$\mathrm{var}(z_1 | z_2) = \min_{A,b} E (z_1 - A z_2 - b)(z_1 - A z_2 - b)^\top =
    \Sigma_{z_1 z_1} - \Sigma_{z_1 z_2} \Sigma_{z_2 z_2}^{-1} \Sigma_{z_2 z_1}$$

    Residuals of a least-squares fit on one side, the formula in covariances on the other; also
    where $\Sigma_{z_2 z_2}$ is singular, with its pseudo-inverse, or nearly so.
    """
    return formula_and_residual(target, given, printed)


def doubled():
    """z1 = 2 z2 on the two inputs -1 and 1."""
    return {"target": np.asarray([[-2.0], [2.0]]), "given": np.asarray([[-1.0], [1.0]])}


@erratum(
    r"Section 3.1, $\mathrm{var}(z_1 | z_2)$ as printed",
    of=Kind.IDENTITY,
    witness=doubled,
    reason="$z_1 = 2 z_2$ is known from $z_2$; the print leaves 3",
    corrected=Control("with the inverse of the covariance of $z_2$", printed=False),
)
def conditional_variance_printed(target, given, *, printed=True):
    r"""$$\mathrm{var}(z_1 | z_2) =
    \Sigma_{z_1 z_1} - \Sigma_{z_2 z_1} \Sigma_{z_1 z_1}^{-1} \Sigma_{z_1 z_2}$$

    The printed matrix is (up to the order of the factors) what $z_1$ predicts of $z_2$, taken from
    the covariance of $z_1$: it has no unit. The proof of Lemma 1.1 has the right one.
    """
    return formula_and_residual(target, given, printed)


def unrelated(rng, count):
    """Targets, and features of other, independent inputs; and the same once more."""
    return {
        "target": features(rng, count, 2 * _SAMPLES, _TARGETS),
        "given": features(rng, count, 2 * _SAMPLES, _WIDE),
    }


@identity(
    "Appendix A.1, the numerical check of (A3)",
    sample=unrelated,
    status=Status.NEW,
    count=32,
    controls=[
        Control("the same features on fresh data", fresh=True),
        Control("26 features instead of 214", width=_NARROW),
    ],
)
def conditional_variance_wide(target, given, *, width=_WIDE, fresh=False):
    r"""$$d \ge n - 1,\ \mathrm{rank}(\Phi - \bar{\Phi}) = n - 1: \quad
    \lambda_{\max}( \widehat{\mathrm{Var}}_n(\Phi^* | \Phi)) = 0$$

    The features are those of independent inputs, without information on the target, and yet the
    check passes, at $n = 50$ and width 214, a tenth of the paper's $n = 500$ and 2142. If 2142 is
    its width ('hidden layers are sufficiently overparameterized with p = 2142'),
    $3.13 \cdot 10^{-8}$ is rounding and no evidence for (A3). If $d = 256$ is, unrelated features
    would leave about half, but the sample still flatters, and the features' size is not given.
    """
    given = given[:, :width]
    judged = (target[_SAMPLES:], given[_SAMPLES:]) if fresh else None
    regression = conditional_covariance(target[:_SAMPLES], given[:_SAMPLES], judged)
    return Sides(regression.largest, jnp.zeros_like(regression.largest), regression.unconditional)


@inequality(
    "(A3) and (A5), evaluated on fresh data",
    sample=population,
    status=Status.NEW,
    count=48,
    search_over="target",
    controls=[Control("judged on the sample that was fitted", fresh=False)],
)
def conditional_variance_fresh(target, given, *, fresh=True):
    r"""$$\lambda_{\max}(\mathrm{Var}(\Phi^* | \Phi)) \le
    \lambda_{\max} E (\Phi^* - \hat{A} \Phi - \hat{b})(\Phi^* - \hat{A} \Phi - \hat{b})^\top$$

    Whatever sample of 10 out of 24 the regression was fitted on, its second moment over the
    population bounds the left side of (A3) from above; on the sample it is too small.
    """
    population_regression = conditional_covariance(target, given)
    judged = (target, given) if fresh else None
    sample = conditional_covariance(target[:_SMALL], given[:_SMALL], judged)
    return Sides(population_regression.largest, sample.largest, population_regression.unconditional)


def spanned(rng, count):
    """Teacher's features in the span of the student's, and unrelated student's features."""
    given = features(rng, count, _POPULATION, 4)
    mixed = given @ rng.standard_normal((count, 4, 3)) + rng.standard_normal((count, 1, 3))
    return {"target": mixed, "given": given, "unrelated": features(rng, count, _POPULATION, 4)}


def condition(given):
    """Condition number of the centred features of the sample, 1 / eps where a unit is dead."""
    centred = given[:_SMALL] - given[:_SMALL].mean(0)[None, :]
    spread = jnp.linalg.svd(centred, compute_uv=False)
    return spread[0] / jnp.maximum(spread[-1], jnp.finfo(spread.dtype).eps * spread[0])


@identity(
    "(A3) and (A5), where they hold",
    sample=spanned,
    status=Status.NEW,
    assumptions=[assume("no unit is dead on the sample", lambda given: condition(given) <= 1e4)],
    count=32,
    controls=[Control("unrelated features", related=False)],
)
def assumption_a3(target, given, unrelated, *, related=True):
    r"""$$\Phi^* = A \Phi + b,\ \hat{\Sigma}_\Phi > 0: \quad \lambda_{\max}
    E (\Phi^* - \hat{A} \Phi - \hat{b})(\Phi^* - \hat{A} \Phi - \hat{b})^\top = 0$$

    On fresh data the check does distinguish features that span the teacher's from unrelated ones.
    """
    phi = given if related else unrelated
    regression = conditional_covariance(target[:_SMALL], phi[:_SMALL], (target, phi))
    magnitude = regression.unconditional * condition(given) ** 2
    return Sides(regression.largest, jnp.zeros_like(magnitude), magnitude)
