r"""Errata of Theorem 4.1: its transposes, the names of its constants, and a negative bound.

The witness is one sequence that stands m times: there the complexity of a class that holds f and
-f is at least |f| E|S_m| / m, S_m a sum of m signs, and E|S_m| = m binom(m, m/2) / 2^m.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.trauger2023_single import (
    trauger2023_alpha,
    trauger2023_bracket,
    trauger2023_single,
)
from attlas.claims.trauger2023sequence.single_layer_instances import ROUNDINGS
from attlas.core.claim import Erratum, ErratumClass
from attlas.core.norms.matrix import column_norm, row_norm
from attlas.core.old_claim import (
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
from attlas.models.networks.single_layer_transformer import SingleLayerTransformer

_PAPER = "trauger2023sequence"
_M = 300
_WIDTH = 256


def _repeated(witness: Callable[[], Witness], key: PRNGKeyArray, count: int) -> Instance:
    del key
    return {k: jnp.asarray(np.repeat(v[None], count, axis=0)) for k, v in witness().items()}


def _mean_sum(m: int) -> float:
    """E|S_m| / m for even m."""
    log_middle = math.lgamma(m + 1) - 2 * math.lgamma(m / 2 + 1)
    return math.exp(log_middle - m * math.log(2))


def _layer(first: np.ndarray, value: np.ndarray, token: np.ndarray) -> Witness:
    """One token, W_QK = 0, w = e_1, and W_c with one column that is not zero."""
    d = token.shape[0]
    return {
        "w": np.eye(d)[0],
        "query_key": np.zeros((d, d)),
        "value": value,
        "output": np.pad(first[:, None], ((0, 0), (0, d - 1))),
        "token": token,
    }


def _wide_witness() -> Witness:
    return _layer(np.ones(_WIDTH), np.eye(_WIDTH), np.full(_WIDTH, _WIDTH**-0.5))


def _large_value_witness() -> Witness:
    return _layer(np.ones(1), np.array([[64.0], [0.0]]), np.array([1.0, 0.0]))


def _measured(instance: Instance) -> Array:
    """|f| E|S_m| / m, which is at most the complexity."""
    heads = [instance[name][None] for name in ("query_key", "value", "output")]
    model = SingleLayerTransformer(instance["w"], heads[0], heads[1], heads[2])
    token = instance["token"]
    return jnp.abs(model(token[None], token)) * _mean_sum(_M)


def _norms(instance: Instance, transposed: bool, twice: bool) -> Array:
    """B_w B_c B_v with the largest row sums (printed) or column sums; "twice" has B_c^2."""
    largest = row_norm if transposed else column_norm
    c, v = (largest(instance[name], 1, float("inf")) for name in ("output", "value"))
    return jnp.sum(jnp.abs(instance["w"])) * c * (c if twice else v)


def _bounded(instance: Instance, transposed: bool = False, twice: bool = False) -> Sides:
    # W_QK = 0: a class of one matrix, so that any C will do.
    C, B_x = jnp.asarray(1e-6), jnp.linalg.norm(instance["token"])
    B, d = _norms(instance, transposed, twice), instance["token"].shape[0]
    return Sides(_measured(instance), trauger2023_single(B, C, B_x, d, float(_M), "sharp"))


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "status": Status.ERRATUM,
    "provenance": Provenance.FOUND,
    "terms": ROUNDINGS,
    "count": 1,
}

TRANSPOSES_CLAIM = Claim(
    name=f"{_PAPER}/theorem-4-1-transposes",
    locator="Theorem 4.1, norms as printed",
    statement=(
        r"\|W_c^\top\|_{1,\infty} \le B_c,\quad \|W_v^\top\|_{1,\infty} \le B_v \;\Rightarrow\;"
        r"\hat R \le 2 B_w B_c L_\sigma B_v \,\mathrm{chain}"
    ),
    instances=partial(_repeated, _wide_witness),
    witness=_wide_witness,
    sides=partial(_bounded, transposed=True),
    control=Control(
        "W_c and W_v themselves in place of their transposes",
        sides=_bounded,
        expect=Outcome.SUPPORTED,
    ),
    expect=Expectation(Outcome.VIOLATED, "the first column of W_c holds 256 ones, each row one"),
    note=(
        "In the paper's convention ||W||_{1,inf} is the largest column sum, so that the transpose "
        "has the rows. The proof takes e_j' W_c', a column of W_c. Witness: d = k = 256, W_v the "
        "identity, tokens (1, ..., 1) / 16, m = 300; the constants are those of the chain. With "
        "both transposes the class is sqrt(d) too large, with that of W_c alone k."
    ),
    **_COMMON,
)

TRANSPOSES = Erratum(
    paper=_PAPER,
    locator="Theorem 4.1, norms of W_c and W_v",
    kind=ErratumClass.REFUTED,
    text=(
        "Printed are ||W_c'||_{1,inf} <= B_c and ||W_v'||_{1,inf} <= B_v, which bound rows. The "
        "proof uses columns, ||W_c||_{1,inf} and ||W_v||_{1,inf}. With a first column of ones W_c "
        "has rows of norm 1; with W_v the identity the outputs reach sqrt(d) B_w B_c B_v B_x, and "
        "the complexity exceeds the bound by sqrt(d / ln d): no constant repairs that."
    ),
    claim=f"{_PAPER}/theorem-4-1-transposes",
)

COROLLARY_B_CLAIM = Claim(
    name=f"{_PAPER}/corollary-4-1-1-product",
    locator="Corollary 4.1.1, B as printed",
    statement=r"\hat R \le 2 B\,\mathrm{chain},\quad B = B_w B_c L_\sigma B_c",
    instances=partial(_repeated, _large_value_witness),
    witness=_large_value_witness,
    sides=partial(_bounded, twice=True),
    control=Control("B_v in place of the second B_c", sides=_bounded, expect=Outcome.SUPPORTED),
    expect=Expectation(Outcome.VIOLATED, "W_v is 64 times W_c, and the print does not see W_v"),
    note="Appendix D has the right product B_w B_c L_sigma B_v.",
    **_COMMON,
)


def _alpha_witness() -> Witness:
    return {"norm": np.array(3.0), "B_x": np.array(0.7)}


_ALPHA_D = 8


def _alpha(instance: Instance, version: Any) -> Sides:
    """The alpha against 2 sqrt(C) / B_x of Lemma 3.6."""
    norm, B_x = instance["norm"], instance["B_x"]
    C = trauger2023_cover("1,1", norm, B_x, _ALPHA_D, _ALPHA_D)
    return Sides(trauger2023_alpha("1,1", norm, _ALPHA_D, version), 2 * jnp.sqrt(C) / B_x)


ALPHA_CLAIM = Claim(
    name=f"{_PAPER}/corollary-4-1-1-alpha",
    locator="Corollary 4.1.1, alpha as printed",
    statement=(
        r"2B_x^2 \sqrt C = B_x^3 \alpha,\quad C = B_x^2 B_{QK}^2 \ln(2d^2+1),\quad"
        r"\alpha = B_{QK} \sqrt{2 \ln(2d^2+1)}"
    ),
    instances=partial(_repeated, _alpha_witness),
    witness=_alpha_witness,
    sides=partial(_alpha, version="printed"),
    control=Control(
        r"alpha = 2 B sqrt(ln(2 d^2 + 1))",
        sides=partial(_alpha, version="corrected"),
        expect=Outcome.SUPPORTED,
    ),
    expect=Expectation(Outcome.VIOLATED, "the printed alpha is sqrt(2) too small"),
    note="Appendix D puts the 2 before the root; here it stands under it.",
    **{**_COMMON, "kind": Kind.IDENTITY},
)

ALPHA = Erratum(
    paper=_PAPER,
    locator="Corollary 4.1.1, alpha",
    kind=ErratumClass.TYPO,
    text=(
        "alpha must be 2 B_QK sqrt(ln(2 d^2 + 1)), as Appendix D would have it; printed is "
        "B_QK sqrt(2 ln(2 d^2 + 1)), sqrt(2) smaller. With the softmax's sharp constant 1 even "
        "B_QK sqrt(ln(2 d^2 + 1)) is enough."
    ),
    claim=f"{_PAPER}/corollary-4-1-1-alpha",
)

PRODUCT = Erratum(
    paper=_PAPER,
    locator="Corollary 4.1.1, B",
    kind=ErratumClass.REFUTED,
    text=(
        "B must be B_w B_c L_sigma B_v, as in Appendix D; printed is B_c twice, so that the bound "
        "would not feel W_v."
    ),
    claim=f"{_PAPER}/corollary-4-1-1-product",
)


def _displays_witness() -> Witness:
    return {
        "X": np.array([[1.0, 0.0], [0.0, 1.0]]),
        "W": np.array([[0.0, 1.0], [0.0, 0.0]]),
    }


def _displays(instance: Instance, transposed: bool = True) -> Sides:
    """The two displays of the class, on a W_QK that is not symmetric."""
    X, W = instance["X"], instance["W"]
    first = jax.nn.softmax(X @ (W.T if transposed else W) @ X[0])
    return Sides(first, jax.nn.softmax(X @ W @ X[0]))


DISPLAYS_CLAIM = Claim(
    name=f"{_PAPER}/theorem-4-1-displays",
    locator="Section 4.1, the two displays of the class",
    statement=(r"\mathrm{softmax}(X W_{QK}^\top x_{[CLS]}) = \mathrm{softmax}(X W_{QK} x_{[CLS]})"),
    instances=partial(_repeated, _displays_witness),
    witness=_displays_witness,
    sides=_displays,
    control=Control(
        "the second display twice",
        sides=partial(_displays, transposed=False),
        expect=Outcome.SUPPORTED,
    ),
    expect=Expectation(Outcome.VIOLATED, "W_QK is not symmetric"),
    note=(
        "Harmless for the bounds: x_t' W x_cls may be read from the tokens' side as well, so that "
        "a cover of x -> W x serves both displays."
    ),
    **{**_COMMON, "kind": Kind.IDENTITY},
)

DISPLAYS = Erratum(
    paper=_PAPER,
    locator="Section 4.1, definition of Y_[CLS]",
    kind=ErratumClass.TYPO,
    text=(
        "The first display has W_QK', the second and the proof have W_QK. For the norm of rows "
        "or columns of W_QK it matters which one is meant; the covers serve both."
    ),
    claim=f"{_PAPER}/theorem-4-1-displays",
)

SHAPES = Erratum(
    paper=_PAPER,
    locator="Section 2.6",
    kind=ErratumClass.TYPO,
    text=(
        "W_Q and W_K are said to lie in R^(d x T); they must be d x k, or the number of parameters "
        "would grow with the sequence length, against what the section goes on to say."
    ),
)

INDICES = Erratum(
    paper=_PAPER,
    locator="Section 2.3",
    kind=ErratumClass.TYPO,
    text=(
        "The inequality of the gap has n samples on the left and m on the right. With one-sided "
        "McDiarmid's inequality 3 c sqrt(ln(2/delta) / (2m)) does, c the length of the interval of "
        "the losses, in place of 4 c sqrt(2 ln(4/delta) / m): claim gap-confidence."
    ),
)


def _negative_witness() -> Witness:
    return {"norm": np.array(10.0)}


def _negative(instance: Instance, version: Any) -> Sides:
    """Sequences of tokens e_1, all alike, against the bracket at d = 64, m = 300, B_x = 1."""
    C = trauger2023_cover("1,1", instance["norm"], 1.0, 64, 64)
    return Sides(jnp.asarray(_mean_sum(_M)), trauger2023_bracket(C, 1.0, 64, _M, version))


NEGATIVE_CLAIM = Claim(
    name=f"{_PAPER}/theorem-4-1-negative",
    locator="Theorem 4.1, closed form",
    statement=(
        r"d = 64,\ B_x = 1,\ m = 300,\ B_{QK} = 10: \quad "
        r"0 < \hat R \le c B \Big( \frac{2B_x^2\sqrt C}{\sqrt m} \Big( 1 +"
        r"\ln \frac{\sqrt m}{2B_x\sqrt C} \Big) + B_x \sqrt{\frac{\ln 2d}{m}} \Big)"
    ),
    instances=partial(_repeated, _negative_witness),
    witness=_negative_witness,
    sides=partial(_negative, version="printed"),
    control=Control(
        "the bracket minimised over 0 < delta <= B_x",
        sides=partial(_negative, version="corrected"),
        expect=Outcome.SUPPORTED,
    ),
    expect=Expectation(Outcome.VIOLATED, "the printed bracket is -0.72"),
    note=(
        "On sequences of equal tokens e_1 the complexity of the class is at least B E|S_m| / m = "
        "0.046 B. A negative bracket is wrong for every constant c. At B_QK = 30 it is -13.8, at "
        "100 it is -88. The corrected bracket is 1 there, the trivial bound."
    ),
    **_COMMON,
)

NEGATIVE = Erratum(
    paper=_PAPER,
    locator="Theorem 4.1 and Appendix C, the best delta",
    kind=ErratumClass.REFUTED,
    text=(
        "The proof inserts delta = 2 B_x^2 sqrt(C) / (sqrt(m) - sqrt(ln 2d)) into Dudley's "
        "integral over [delta, B_x] without asking for delta <= B_x. Beyond that the bracket falls "
        "below every bound and turns negative: -0.72 for d = 64, B_x = 1, m = 300, B_QK = 10. It "
        "holds for 2 B_x sqrt(C) <= sqrt(m) - sqrt(ln 2d) alone; elsewhere the bound is B_x. The "
        "paper's own experiment (m = 300, B_x about 6) lies outside."
    ),
    claim=f"{_PAPER}/theorem-4-1-negative",
)
