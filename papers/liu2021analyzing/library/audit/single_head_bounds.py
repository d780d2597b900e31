r"""Bounds of three papers for one trained head, beside `compare_bounds`.

Nothing here checks that a theorem applies; the functions return what its conditions require:
heads in deora2023optimization, a width in gu2024exploring, samples in liu2021analyzing. Unknown
constants are set to one, where stated.
"""

import functools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
from attlas.bounds.generalisation.deora2023_generalisation import (
    deora2023_generalisation_gap,
    deora2023_stability_heads,
)
from attlas.bounds.optimisation.deora2023_loss import Number, deora2023_beta_1
from attlas.bounds.optimisation.deora2023_model import HeadConstants
from attlas.bounds.optimisation.deora2023_training import (
    Setting,
    deora2023_head_condition,
    deora2023_rho,
    deora2023_step_limits,
    deora2023_training_loss,
)
from attlas.bounds.optimisation.gu2024_convergence import gu2024_width_log10
from liu2021analyzing.library.bounds.liu2021_sample_size import (
    liu2021_attention,
    liu2021_baseline,
    liu2021_self_attention,
)
from liu2021analyzing.library.bounds.liu2021_union_bound import Conditions

VERSIONS: tuple[HeadConstants, HeadConstants] = ("printed", "sharp")


class TrainedHead(NamedTuple):
    """Numbers of a head that reads the last token, after training.

    Attributes:
        n: samples.
        d: embedding dimension.
        largest: largest entry of a token.
        step_size: eta.
        steps: K.
        distance: ||theta_K - theta_0||.
        norm: ||theta_K||.
        risk: empirical risk of theta_K.
        start_risk: that of theta_0.
        decoder: ||u||.
        nuclear: nuclear norm of W.
    """

    n: Any
    T: Any
    d: Any
    R: Any
    largest: Any
    step_size: Any
    steps: Any
    distance: Any
    norm: Any
    risk: Any
    start_risk: Any
    decoder: Any
    nuclear: Any


def head_descent_bounds(head: TrainedHead) -> Mapping[str, Float[Array, "*s"]]:
    r"""Theorems 1 and 2 with theta_K itself as the target, and the heads that they require.

    A last-token decoder has 1 in place of T. The slope s of Theorem 2 is 1 as printed and
    min(4, eta beta_1^2) else.

    Args:
        head: the head; `jax.vmap` takes several.

    Returns:
        For both versions log10 of the heads of Theorem 1 ("heads") and of Theorem 2 ("stability
        heads"), the largest step size allowed ("step"), the bounds "training" on the average risk
        of the iterates and "gap" on the expected generalisation gap, of value only where the
        heads suffice and the step is no larger than allowed.

    Source: Theorems 1 and 2 of deora2023optimization (constants derived).

    Examples:
        >>> head = TrainedHead(10, 4, 4, 1.0, 1.0, 0.5, 10, 2.0, 2.0, 0.1, 0.7, 1.0, 1.0)
        >>> found = head_descent_bounds(head)
        >>> print(f"{found['training, printed']:.6f} {found['gap, printed']:.6f}")
        1.200000 8.000000
    """
    bounds = {}
    setting = Setting(1, head.d, head.R, head.distance, head.norm)
    path = (head.risk, head.distance, head.step_size, head.steps)
    slope = head.step_size * deora2023_beta_1(1, head.R, head.decoder, "sharp") ** 2
    for version in VERSIONS:
        rho = deora2023_rho(setting, 1, version)
        limits = deora2023_step_limits(rho, head.distance, head.steps, head.risk, head.start_risk)
        if version == "sharp":  # its proof does not use this limit
            limits.pop("unit")
        s = 1.0 if version == "printed" else jnp.minimum(4.0, slope)
        bounds |= {
            f"heads, {version}": jnp.log10(deora2023_head_condition(setting, version)),
            f"stability heads, {version}": jnp.log10(deora2023_stability_heads(setting, version)),
            f"step, {version}": functools.reduce(jnp.minimum, limits.values()),
            f"training, {version}": deora2023_training_loss(*path, version),
            f"gap, {version}": deora2023_generalisation_gap(head.n, *path, s, version),
        }
    return bounds


def head_widths(n: int, smallest: Number, delta: float = 0.05) -> Mapping[str, Float[Array, "*s"]]:
    r"""log10 of the width that Theorem 4.2 requires at the least eigenvalue of this head's kernel.

    The theorem is on softmax networks with inputs of norm one, not on attention over tokens: the
    numbers say what its argument would cost here.

    Args:
        smallest: least eigenvalue of the tangent kernel over its largest diagonal entry.
        delta: probability of failure.

    Returns:
        "printed" with C = 10, and "corrected".

    Source: Theorem 4.2 of gu2024exploring (hidden constant 1).

    Examples:
        >>> {name: round(float(value)) for name, value in head_widths(32, 1e-3).items()}
        {'printed': 209, 'corrected': 305}
    """
    return {
        "printed": gu2024_width_log10(n, 1, smallest, delta, 1.0, constants="printed"),
        "corrected": gu2024_width_log10(n, 1, smallest, delta, 1.0),
    }


def head_sample_sizes(
    head: TrainedHead, s0: int, tau: float, smallest: float, gamma: float = 0.5
) -> Mapping[str, float]:
    r"""Samples that Theorems 1 and 2 and Corollary 1 require, hidden constants 1, and corrected.

    The head is a self-attention network of two hidden units: w_V = I, the rows +-u of W1 read the
    last word, w2 = (1, -1), and sqrt(d_q) W is split evenly between query and key. So
    C_1 = sqrt(2) ||u||, C_2 = sqrt(2), C_5 = C_6 = (sqrt(d_q) ||W||_*)^(1/2), C_7 = sqrt(d),
    C_8 = 1.

    Args:
        s0: attention weights that hold all but tau of their norm.
        tau: share of the norm on the other weights.
        smallest: smallest positive eigenvalue of the covariance of the two units' outputs.
        gamma: root of the squared error allowed.

    Source: Theorems 1 and 2 and Corollary 1 of liu2021analyzing (found); corrected (derived).

    Examples:
        >>> head = TrainedHead(10, 4, 4, 1.0, 1.0, 0.5, 10, 2.0, 2.0, 0.1, 0.7, 1.0, 1.0)
        >>> found = head_sample_sizes(head, 1, 0.1, 0.1)
        >>> found["Theorem 1, printed"] < found["Corollary 1, printed"]
        True
    """
    T, d = head.T, head.d
    C_1, C_2 = math.sqrt(2) * head.decoder, math.sqrt(2)
    side = math.sqrt(math.sqrt(d) * head.nuclear)
    fixed = (T, 2, gamma, (head.largest, C_1, C_2))
    learned = ((T, d, 2, d, d), gamma, (head.largest, C_1, C_2, side, side, math.sqrt(d), 1.0))
    attention, printed = {"s0": s0, "tau": tau}, "printed"
    return {
        "Theorem 1, printed": liu2021_attention(*fixed, **attention, constants=printed),
        "Corollary 1, printed": liu2021_baseline(*fixed, constants=printed),
        "Theorem 2, printed": liu2021_self_attention(*learned, **attention, constants=printed),
        "Theorem 2, corrected": liu2021_self_attention(*learned, Conditions(smallest)),
    }


def head_transformer(u: Float[np.ndarray, " d"], W: Float[np.ndarray, "d d"]) -> TransformerWeights:
    r"""The head as a layer of Theorem 4.1, for `compare_bounds` with model "plain".

    $$u'X'\mathrm{softmax}(XW'x_T)=w'W_c'\sigma(W_v'X'\mathrm{softmax}(XW_{QK}'x_{CLS}))$$

    with w = u, W_v = W_c = I, sigma the identity (L_sigma = 1), and x_T in the place of [CLS].

    Source: section 2.5 and Theorem 4.1 of trauger2023sequence.

    Examples:
        >>> weights = head_transformer(np.ones(2), np.eye(2))
        >>> len(weights.layers), weights.readout.tolist()
        (1, [1.0, 1.0])
    """
    eye = np.eye(len(u), dtype=u.dtype)
    return TransformerWeights(((Head(W, eye, eye),),), u)
