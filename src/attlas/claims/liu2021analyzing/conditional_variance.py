r"""(A3) and (A5): what linear regression on the student's features leaves of the teacher's.

The print inverts the covariance of the wrong features, and its numerical check is made on the
sample that was fitted, where enough features predict anything.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

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
from attlas.measures.statistics.conditional_covariance import (
    conditional_covariance,
    schur_complement,
)

_PAPER = "liu2021analyzing"
# A tenth of the paper's check: 500 samples, 256 hidden units, "overparameterized with p = 2142".
_SAMPLES, _WIDE, _NARROW, _TARGETS, _INPUTS = 50, 214, 26, 4, 6
_SMALL, _POPULATION = 10, 24


def _features(rng: np.random.Generator, count: int, samples: int, width: int) -> np.ndarray:
    """Rectified random features of fresh Gaussian inputs."""
    x = rng.standard_normal((count, samples, _INPUTS))
    return np.maximum(x @ rng.standard_normal((count, _INPUTS, width)), 0)


def _population(key: PRNGKeyArray, count: int) -> Instance:
    """A population of 24 pairs of teacher's and student's features of the same inputs."""
    rng = generator(key)
    x = rng.standard_normal((count, _POPULATION, _INPUTS))
    scale = 10 ** rng.uniform(-1, 1, (2, count, 1, 1))
    target, given = (
        np.maximum(x @ rng.standard_normal((count, _INPUTS, width)), 0) * size
        for width, size in zip((3, 4), scale, strict=True)
    )
    return {"target": jnp.asarray(target), "given": jnp.asarray(given)}


def _covariances(target: Array, given: Array) -> tuple[Array, Array, Array]:
    z1, z2 = target - target.mean(0)[None, :], given - given.mean(0)[None, :]
    return z1.T @ z1 / len(z1), z1.T @ z2 / len(z1), z2.T @ z2 / len(z1)


def _schur(instance: Instance, printed: bool) -> Sides:
    target, given = instance["target"], instance["given"]
    own, cross, other = _covariances(target, given)
    if printed:
        # z1 and z2 need equal numbers of entries: the first ones of z2.
        part = cross[:, : len(own)]
        formula = own - part.T @ jnp.linalg.solve(own, part)
    else:
        formula = schur_complement(own, cross, other)
    residual = conditional_covariance(target, given).covariance
    spectrum = jnp.linalg.eigvalsh(other)
    # The inverse multiplies rounding by the condition number.
    scale = jnp.trace(own) * spectrum[-1] / spectrum[0]
    return Sides(formula, residual, scale=scale)


CONDITIONAL_VARIANCE = Claim(
    name=f"{_PAPER}/conditional-variance",
    paper=_PAPER,
    locator="Section 3.1, var(z_1 | z_2)",
    statement=(
        r"\mathrm{var}(z_1 | z_2) = \min_{A,b} E (z_1 - A z_2 - b)(z_1 - A z_2 - b)^\top = "
        r"\Sigma_{z_1 z_1} - \Sigma_{z_1 z_2} \Sigma_{z_2 z_2}^{-1} \Sigma_{z_2 z_1}"
    ),
    kind=Kind.IDENTITY,
    status=Status.CORRECTED,
    provenance=Provenance.DERIVED,
    instances=_population,
    sides=partial(_schur, printed=False),
    control=Control(
        "as printed, with the inverse of the other block", sides=partial(_schur, printed=True)
    ),
    count=32,
    note="Residuals of a least-squares fit on one side, the formula in covariances on the other.",
)


def _doubled() -> Witness:
    """z1 = 2 z2 on the two inputs -1 and 1."""
    return {"target": np.asarray([[-2.0], [2.0]]), "given": np.asarray([[-1.0], [1.0]])}


CONDITIONAL_VARIANCE_PRINTED = Claim(
    name=f"{_PAPER}/conditional-variance-printed",
    paper=_PAPER,
    locator="Section 3.1, var(z_1 | z_2) as printed",
    statement=(
        r"\mathrm{var}(z_1 | z_2) = "
        r"\Sigma_{z_1 z_1} - \Sigma_{z_2 z_1} \Sigma_{z_1 z_1}^{-1} \Sigma_{z_1 z_2}"
    ),
    kind=Kind.IDENTITY,
    status=Status.ERRATUM,
    provenance=Provenance.FOUND,
    instances=_population,
    sides=partial(_schur, printed=True),
    control=Control(
        "with the inverse of the covariance of z_2",
        sides=partial(_schur, printed=False),
        expect=Outcome.SUPPORTED,
    ),
    expect=Expectation(Outcome.VIOLATED, "z_1 = 2 z_2 is known from z_2; the print leaves 3"),
    witness=_doubled,
    note=(
        "The printed matrix is (up to the order of the factors) what z_1 predicts of z_2, taken "
        "from the covariance of z_1: it has no unit. The proof of Lemma 1.1 has the right one."
    ),
)


def _unrelated(key: PRNGKeyArray, count: int) -> Instance:
    """Targets, and features of other, independent inputs; and the same once more."""
    rng = generator(key)
    parts = {
        "target": _features(rng, count, 2 * _SAMPLES, _TARGETS),
        "given": _features(rng, count, 2 * _SAMPLES, _WIDE),
    }
    return {name: jnp.asarray(value) for name, value in parts.items()}


def _left_over(instance: Instance, width: int, fresh: bool = False) -> Sides:
    target, given = instance["target"], instance["given"][:, :width]
    other = (target[_SAMPLES:], given[_SAMPLES:]) if fresh else None
    found = conditional_covariance(target[:_SAMPLES], given[:_SAMPLES], other)
    return Sides(found.largest, jnp.zeros_like(found.largest), scale=found.unconditional)


CONDITIONAL_VARIANCE_WIDE = Claim(
    name=f"{_PAPER}/conditional-variance-wide",
    paper=_PAPER,
    locator="Appendix A.1, the numerical check of (A3)",
    statement=(
        r"d \ge n - 1,\ \mathrm{rank}(\Phi - \bar{\Phi}) = n - 1: \quad "
        r"\lambda_{\max}( \widehat{\mathrm{Var}}_n(\Phi^* | \Phi)) = 0"
    ),
    kind=Kind.IDENTITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_unrelated,
    sides=partial(_left_over, width=_WIDE),
    control=(
        Control(
            "the same features on fresh data", sides=partial(_left_over, width=_WIDE, fresh=True)
        ),
        Control("26 features instead of 214", sides=partial(_left_over, width=_NARROW)),
    ),
    count=32,
    note=(
        "The features are those of independent inputs: they know nothing of the target, and yet "
        "the check passes, at n = 50 and width 214, a tenth of the paper's n = 500 and 2142. If "
        "2142 is its width ('hidden layers are sufficiently overparameterized with p = 2142'), "
        "3.13e-8 is rounding and says nothing of (A3). If d = 256 is, unrelated features would "
        "leave about half, but the sample flatters still, and the features' size is not told."
    ),
)


def _judged(instance: Instance, fresh: bool) -> Sides:
    target, given = instance["target"], instance["given"]
    whole = conditional_covariance(target, given)
    other = (target, given) if fresh else None
    sample = conditional_covariance(target[:_SMALL], given[:_SMALL], other)
    return Sides(whole.largest, sample.largest, scale=whole.unconditional)


CONDITIONAL_VARIANCE_FRESH = Claim(
    name=f"{_PAPER}/conditional-variance-fresh",
    paper=_PAPER,
    locator="(A3) and (A5), evaluated on fresh data",
    statement=(
        r"\lambda_{\max}(\mathrm{Var}(\Phi^* | \Phi)) \le "
        r"\lambda_{\max} E (\Phi^* - \hat{A} \Phi - \hat{b})(\Phi^* - \hat{A} \Phi - \hat{b})^\top"
    ),
    kind=Kind.INEQUALITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_population,
    sides=partial(_judged, fresh=True),
    control=Control("judged on the sample that was fitted", sides=partial(_judged, fresh=False)),
    count=48,
    note=(
        "Whatever sample of 10 out of 24 the regression was fitted on, its second moment over the "
        "population bounds the left side of (A3) from above; on the sample it is too small. A "
        "gradient search over the targets comes within 1e-8 of equality."
    ),
)


def _spanned(key: PRNGKeyArray, count: int) -> Instance:
    """Teacher's features in the span of the student's, and unrelated student's features."""
    rng = generator(key)
    given = _features(rng, count, _POPULATION, 4)
    mixed = given @ rng.standard_normal((count, 4, 3)) + rng.standard_normal((count, 1, 3))
    unrelated = _features(rng, count, _POPULATION, 4)
    parts = {"target": mixed, "given": given, "unrelated": unrelated}
    return {name: jnp.asarray(value) for name, value in parts.items()}


def _condition(given: Array) -> Array:
    """Condition number of the centred features of the sample, 1 / eps where a unit is dead."""
    centred = given[:_SMALL] - given[:_SMALL].mean(0)[None, :]
    spread = jnp.linalg.svd(centred, compute_uv=False)
    return spread[0] / jnp.maximum(spread[-1], jnp.finfo(spread.dtype).eps * spread[0])


def _fresh(instance: Instance, name: str) -> Sides:
    target, given = instance["target"], instance[name]
    found = conditional_covariance(target[:_SMALL], given[:_SMALL], (target, given))
    scale = found.unconditional * _condition(instance["given"]) ** 2
    return Sides(found.largest, jnp.zeros_like(scale), scale=scale)


ASSUMPTION_A3 = Claim(
    name=f"{_PAPER}/assumption-a3",
    paper=_PAPER,
    locator="(A3) and (A5), where they hold",
    statement=(
        r"\Phi^* = A \Phi + b,\ \hat{\Sigma}_\Phi > 0: \quad \lambda_{\max} "
        r"E (\Phi^* - \hat{A} \Phi - \hat{b})(\Phi^* - \hat{A} \Phi - \hat{b})^\top = 0"
    ),
    kind=Kind.IDENTITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_spanned,
    assumptions=(
        Assumption("no unit is dead on the sample", lambda i: _condition(i["given"]) <= 1e4),
    ),
    sides=partial(_fresh, name="given"),
    control=Control("unrelated features", sides=partial(_fresh, name="unrelated")),
    count=32,
    note="On fresh data the check does tell features that span the teacher's from unrelated ones.",
)
