r"""Errata of Theorem 4.1: its transposes, the names of its constants, and a negative bound.

The witness is one sequence that stands m times: there the complexity of a class that holds f and
-f is at least |f| E|S_m| / m, S_m a sum of m signs, and E|S_m| = m binom(m, m/2) / 2^m.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from attlas.bounds.constants import Constants
from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.trauger2023_single import (
    trauger2023_alpha,
    trauger2023_bracket,
    trauger2023_single,
)
from attlas.claims.claim import Control, Kind
from attlas.claims.statement import erratum
from attlas.models.networks.single_layer_transformer import SingleLayerTransformer
from attlas.norms.matrix import column_norm, row_norm
from trauger2023sequence.single_layer_instances import ROUNDINGS

_M = 300
_WIDTH = 256
_ALPHA_D = 8


def _mean_sum(m):
    """E|S_m| / m for even m."""
    log_middle = math.lgamma(m + 1) - 2 * math.lgamma(m / 2 + 1)
    return math.exp(log_middle - m * math.log(2))


def _layer(first, value, token):
    """One token, W_QK = 0, w = e_1, and W_c with one column that is not zero."""
    d = token.shape[0]
    return {
        "w": np.eye(d)[0],
        "query_key": np.zeros((d, d)),
        "value": value,
        "output": np.pad(first[:, None], ((0, 0), (0, d - 1))),
        "token": token,
    }


def _repeated_token(w, query_key, value, output, token, B):
    """|f| E|S_m| / m, which is at most the complexity, and the bound with B."""
    model = SingleLayerTransformer(w, query_key[None], value[None], output[None])
    complexity = jnp.abs(model(token[None], token)) * _mean_sum(_M)
    # W_QK = 0: a class of one matrix, so that any C will do.
    C, B_x = jnp.asarray(1e-6), jnp.linalg.norm(token)
    return complexity, trauger2023_single(B, C, B_x, token.shape[0], float(_M), constants="sharp")


@erratum(
    "Theorem 4.1, its transposes with norms of columns",
    witness=lambda: _layer(np.ones(_WIDTH), np.eye(_WIDTH), np.full(_WIDTH, _WIDTH**-0.5)),
    reason="the first column of $W_c$ holds 256 ones, each row one",
    corrected=Control("$W_c$ and $W_v$ themselves in place of their transposes", transposed=False),
    roundings=ROUNDINGS,
)
def theorem_4_1_transposes(w, query_key, value, output, token, *, transposed=True):
    r"""$$\|W_c^\top\|_{1,\infty} \le B_c,\quad \|W_v^\top\|_{1,\infty} \le B_v \;\Rightarrow\;
    \hat R \le 2 B_w B_c L_\sigma B_v \,\mathrm{chain}$$

    Without the two transposes, as in the proof, it holds (theorem-4-1). With them, and with
    Section 2.1's norms of columns, the class is $\sqrt d$ too large: $d = k = 256$, $W_v$ the
    identity, tokens $(1, \dots, 1) / 16$, $m = 300$, and the constants of the chain. With norms of
    rows the theorem holds as printed, and Lemma 3.3 is false (lemma-3-3-rows).
    """
    largest = row_norm if transposed else column_norm
    c, v = (largest(W, 1, float("inf")) for W in (output, value))
    B = jnp.sum(jnp.abs(w)) * c * v
    return _repeated_token(w, query_key, value, output, token, B)


@erratum(
    "Corollary 4.1.1, $B$ as printed",
    witness=lambda: _layer(np.ones(1), np.array([[64.0], [0.0]]), np.eye(2)[0]),
    reason="$W_v$ is 64 times $W_c$, and the print does not see $W_v$",
    corrected=Control("$B_v$ in place of the second $B_c$", twice=False),
    roundings=ROUNDINGS,
)
def corollary_4_1_1_product(w, query_key, value, output, token, *, twice=True):
    r"""$$\hat R \le 2 B\,\mathrm{chain},\quad B = B_w B_c L_\sigma B_c$$

    Appendix D has the right product $B_w B_c L_\sigma B_v$.
    """
    c, v = (column_norm(W, 1, float("inf")) for W in (output, value))
    B = jnp.sum(jnp.abs(w)) * c * (c if twice else v)
    return _repeated_token(w, query_key, value, output, token, B)


@erratum(
    r"Corollary 4.1.1, $\alpha$ as printed",
    of=Kind.IDENTITY,
    witness=lambda: {"norm": np.array(3.0), "B_x": np.array(0.7)},
    reason=r"the printed $\alpha$ is $\sqrt 2$ too small",
    corrected=Control(r"$\alpha = 2 B \sqrt{\ln(2 d^2 + 1)}$", constants="corrected"),
    roundings=ROUNDINGS,
)
def corollary_4_1_1_alpha(norm, B_x, *, constants: Constants = "printed"):
    r"""$$2B_x^2 \sqrt C = B_x^3 \alpha,\quad C = B_x^2 B_{QK}^2 \ln(2d^2+1),\quad
    \alpha = B_{QK} \sqrt{2 \ln(2d^2+1)}$$

    Appendix D puts the 2 before the root; here it stands under it.
    """
    C = trauger2023_cover("1,1", norm, B_x, _ALPHA_D, _ALPHA_D)
    alpha = trauger2023_alpha("1,1", norm, _ALPHA_D, constants=constants)
    return alpha, 2 * jnp.sqrt(C) / B_x


@erratum(
    "Section 4.1, the two displays of the class",
    of=Kind.IDENTITY,
    witness=lambda: {"X": np.eye(2), "W": np.outer(np.eye(2)[0], np.eye(2)[1])},
    reason="$W_{QK}$ is not symmetric",
    corrected=Control("the second display twice", transposed=False),
    roundings=ROUNDINGS,
)
def theorem_4_1_displays(X, W, *, transposed=True):
    r"""$$\mathrm{softmax}(X W_{QK}^\top x_{[CLS]}) = \mathrm{softmax}(X W_{QK} x_{[CLS]})$$

    Harmless for the bounds: $x_t^\top W x_{cls}$ may be read from the tokens' side as well, so
    that a cover of $x \mapsto W x$ serves both displays.
    """
    first = jax.nn.softmax(X @ (W.T if transposed else W) @ X[0])
    return first, jax.nn.softmax(X @ W @ X[0])


@erratum(
    "Theorem 4.1, closed form",
    witness=lambda: {"norm": np.array(10.0)},
    reason="the printed bracket is $-0.72$",
    corrected=Control(r"the bracket minimised over $0 < \delta \le B_x$", constants="corrected"),
    roundings=ROUNDINGS,
)
def theorem_4_1_negative(norm, *, constants: Constants = "printed"):
    r"""$$d = 64,\ B_x = 1,\ m = 300,\ B_{QK} = 10: \quad
    0 < \hat R \le c B \Big( \frac{2B_x^2\sqrt C}{\sqrt m} \Big( 1 +
    \ln \frac{\sqrt m}{2B_x\sqrt C} \Big) + B_x \sqrt{\frac{\ln 2d}{m}} \Big)$$

    It holds for $2 B_x \sqrt C \le \sqrt m - \sqrt{\ln 2d}$, hence as an order for $m \to \infty$;
    elsewhere the corrected bracket is 1, the trivial bound. As it is stated, for all $m > d$, the
    bracket can be negative, which is wrong for every constant $c$: on sequences of equal tokens
    $e_1$ the complexity of the class is at least $B\, \mathbb{E}|S_m| / m = 0.046 B$.
    """
    C = trauger2023_cover("1,1", norm, 1.0, 64, 64)
    bracket = trauger2023_bracket(C, 1.0, 64, _M, constants=constants)
    return jnp.asarray(_mean_sum(_M)), bracket
