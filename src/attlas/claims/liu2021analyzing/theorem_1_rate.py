r"""Theorem 1 and Corollary 1 as a rate: errors of stationary points against the sample size.

A bound n >= c (eta^2/gamma^2) log(eta/gamma) P says that the square error falls at least as fast
as log(n)/n. A faster fall would not refute it.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np
from scipy.stats import chi2

from attlas.claims.liu2021analyzing.stationary_runs import (
    COUNT,
    INPUTS,
    NOISE,
    SIZES,
    UNITS,
    curves,
)
from attlas.core.claim import Control, Status, assume
from attlas.core.statement import limit, probability

# Slope of log(n)/n between the smallest and the largest size, in logarithms.
_SLOPE = float(np.log(np.log(SIZES[-1]) / np.log(SIZES[0])) / np.log(SIZES[-1] / SIZES[0]) - 1)
# At a maximum likelihood fit with Gaussian noise n error / sigma^2 is chi-square, of as many
# degrees as there are parameters, the bias included.
_PARAMETERS = INPUTS * UNITS + UNITS + 1

ATTENTION = assume(
    "a stationary point was certified at every size (attention)",
    lambda attention_certified: jnp.all(attention_certified >= 1),
)
BASELINE = assume(
    "a stationary point was certified at every size (baseline)",
    lambda baseline_certified: jnp.all(baseline_certified >= 1),
)
REPEATED = assume(
    "a stationary point was certified at every size (repeated)",
    lambda repeated_certified: jnp.all(repeated_certified >= 1),
)
AT_EQUAL_UNITS = Control("points with two equal units, where (A3) fails", repeated=True)

errors_vanish = partial(
    limit, sample=curves, scales="sizes", count=COUNT, controls=[AT_EQUAL_UNITS]
)
slope_is_reached = partial(
    probability, sample=curves, level=0.6, count=COUNT, controls=[AT_EQUAL_UNITS]
)


@errors_vanish("Theorem 1, the error vanishes", assumptions=[ATTENTION, REPEATED])
def theorem_1_consistency(attention_error, repeated_error, *, repeated=False):
    r"""$$\nabla R_n(\hat{w}) = 0: \quad
    E \left( \hat{w}^{(2) \top} \phi(\langle \hat{w}^{(1)}, x \odot f \rangle) - E(y|x)
    \right)^2 \to 0 \quad (n \to \infty)$$

    Followed from the teacher to 512, 8192 and 131072 samples by steps on the gradient's norm,
    certified at $10^{-9}$; $p = 3$, two softplus units with an output bias, noise .03. Read at
    points where (A3) holds in the limit. The control is as stationary: a network of one unit, put
    in twice, is a stationary point of the wider one (theorem-1-embedded) at every $n$, and has the
    error of an under-width student.
    """
    return repeated_error if repeated else attention_error, jnp.zeros(len(SIZES))


@errors_vanish("Corollary 1, the error vanishes", assumptions=[BASELINE, REPEATED])
def corollary_1_consistency(baseline_error, repeated_error, *, repeated=False):
    r"""$$f = \frac{1}{\sqrt{p}},\ \nabla R_n(\hat{w}) = 0: \quad
    E \left( \hat{w}^{(2) \top} \phi(\langle \hat{w}^{(1)}, x \odot f \rangle) - E(y|x)
    \right)^2 \to 0 \quad (n \to \infty)$$

    Followed from the teacher to 512, 8192 and 131072 samples by steps on the gradient's norm,
    certified at $10^{-9}$; $p = 3$, two softplus units with an output bias, noise .03. The same
    width and the same numbers of samples as in theorem-1-consistency.
    """
    return repeated_error if repeated else baseline_error, jnp.zeros(len(SIZES))


@slope_is_reached("Theorem 1, gamma^2 as a function of n", assumptions=[ATTENTION, REPEATED])
def theorem_1_slope(attention_low, repeated_low, *, repeated=False):
    r"""$$P\left( \mathrm{slope}_{\mathrm{low}} \le
    \frac{\Delta \log(\log(n)/n)}{\Delta \log n} \right) \ge \frac35$$

    Bootstrap intervals (95 %) of log-log slopes over 16 samples per size; one teacher each. The
    median slope is $-1.00$: the exponent of the bound is right, as it is for every smooth
    parametric model.
    """
    return (repeated_low if repeated else attention_low) <= _SLOPE


@slope_is_reached("Corollary 1, gamma^2 as a function of n", assumptions=[BASELINE, REPEATED])
def corollary_1_slope(baseline_low, repeated_low, *, repeated=False):
    r"""$$P\left( \mathrm{slope}_{\mathrm{low}} \le
    \frac{\Delta \log(\log(n)/n)}{\Delta \log n} \right) \ge \frac35$$

    As theorem-1-slope, without attention.
    """
    return (repeated_low if repeated else baseline_low) <= _SLOPE


@probability(
    "After Corollary 1, 'significantly reduced'",
    sample=curves,
    status=Status.NEW,
    assumptions=[ATTENTION, BASELINE],
    level=0.8,
    count=COUNT,
    controls=[Control("an error $p^2/s_0^2 = 9$ times smaller", fewer=float(INPUTS**2))],
)
def theorem_1_constant(attention_last, baseline_last, *, fewer=1.0):
    r"""$$P\left( \frac{n}{\sigma^2} E(\hat{h} - E(y|x))^2 \le
    \chi^2_{pd + d + 1,\, 0.9} \right) \ge \frac45 \quad \text{for every}\quad f$$

    With and without attention, each on a teacher of its own kind, $n E u^2 / \sigma^2$ is 9 on
    average (9.1 and 8.9 measured, standard error .17): the number of parameters and nothing else,
    as likelihood theory has it. The factor $p^2/s_0^2$ between Theorem 1 and Corollary 1 does not
    show.
    """
    allowed = float(chi2.ppf(0.9, _PARAMETERS)) * NOISE**2 / (SIZES[-1] * fewer)
    return jnp.stack([attention_last, baseline_last]) <= allowed
