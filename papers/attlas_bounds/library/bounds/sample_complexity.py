r"""The complexity of one layer of attention on the sample's tokens, and on the worst tokens.

The class is $\{\sum_ha_h^\top X^\top{\rm softmax}(XM_hx_{\rm cls})\}$ with $\sum_h\|a_h\|_1\le1$,
$\|M_h\|_{1,1}\le r$. It is the hull of $\pm e_j^\top X^\top{\rm softmax}(XMx_{\rm cls})$, so that
the number of heads costs nothing, and neither does a sign.
"""

import functools
import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.bounds.closed_form import closed_form
from attlas.bounds.covering.dudley import dudley_chain
from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.trauger2023_single import trauger2023_single
from attlas_bounds.library.bounds.linear_attention import MarginSample

Step = Literal["printed", "corrected", "sharp", "linear", "met"]
"""Theorem 4.1 with its constants, those of a linear readout, and the tokens met."""


class TokensMet(NamedTuple):
    """Root mean squares over a sample, and the largest values.

    Attributes:
        dimension: d.
        atom: largest length of the atoms of the cover, at r = 1.
        entry: root mean square of the largest |entry| of a token.
        half_span: root mean square of half the range of an entry.
        centre: root mean square of the middle of that range, for the worst entry.
        worst_entry: largest |entry| of all tokens.
        worst_token: largest Euclidean norm of all tokens.
        worst_cls: largest Euclidean norm of [CLS].
    """

    dimension: int
    atom: float
    entry: float
    half_span: float
    centre: float
    worst_entry: float
    worst_token: float
    worst_cls: float


def tokens_met(sample: MarginSample) -> TokensMet:
    r"""The norms of the tokens that a sample holds.

    $$\max_b\Big(\frac1m\sum_i\Big(\frac{s_iD_i}4x_{{\rm cls},ib}\Big)^2\Big)^{1/2}
    \quad\text{in place of}\quad\max_{i,t}\|x_{it}\|_\infty\,\|x_{it}\|_2\,\|x_{{\rm cls},i}\|_2$$

    Args:
        sample: sample, with the span s and the diameter D of each sequence.

    Returns:
        Both, and the radii of the class.

    Examples:
        >>> from attlas_bounds.library.bounds.linear_attention import LinearAttention
        >>> from attlas_bounds.library.bounds.linear_attention import measure_margins
        >>> own = LinearAttention([1.0, 0.0], np.zeros((2, 2)))
        >>> met = tokens_met(measure_margins(own, np.eye(2)[None], [1.0, 0.0], [1]))
        >>> round(met.atom, 4), met.worst_token
        (0.3536, 1.0)
    """
    weight = sample.span * sample.diameter / 4
    mean_square = np.mean((weight[:, None] * sample.cls) ** 2, axis=0)
    return TokensMet(
        sample.cls.shape[1],
        math.sqrt(mean_square.max()),
        math.sqrt(np.mean(sample.entries**2)),
        math.sqrt(np.mean(sample.span**2)) / 2,
        math.sqrt(np.mean(sample.centres**2, axis=0).max()),
        float(sample.entries.max()),
        float(sample.length.max()),
        float(np.linalg.norm(sample.cls, axis=1).max()),
    )


def sample_complexity(met: TokensMet, radius: float, m: float, *, step: Step = "met") -> float:
    r"""The empirical Rademacher complexity of the class at norms 1 and r.

    $$\hat R\le\min\Big({\rm chain}(\rho),\ c\sqrt{\tfrac{2\ln2d}m}+{\rm chain}(\tfrac\sigma2)\Big),
    \quad\log N(\epsilon)=\ln2d+\Big(\Big\lceil\frac{r^2\kappa^2}{\epsilon^2}\Big\rceil-1\Big)_+
    \ln(2d^2+1)$$

    with kappa the length of the atoms, rho that of the entries, c and sigma/2 those of the centres
    and half spans. "linear" has the largest norms in their places, and is half of "sharp", whose
    other half is for the sign of a readout that is not linear.

    Args:
        met: constants met in the sample.
        step: version of the complexity; "printed" is not a bound, as its constant is unknown and 1
            replaces it.

    Source: Theorem 4.1 of trauger2023sequence, sharpened; papers/attlas_bounds/proofs/bounds.md.

    Examples:
        >>> met = TokensMet(8, 0.25, 1.0, 0.5, 0.2, 1.0, 1.0, 1.0)
        >>> found = [sample_complexity(met, 2.0, 1e6, step=own) for own in ("linear", "met")]
        >>> [f"{R:.4f}" for R in found]
        ['0.1077', '0.0313']
    """
    with jax.enable_x64(True):
        numbers = np.array([radius, m, *(float(part) for part in met[1:])])
        return float(_complexity(jax.device_put(numbers), met.dimension, step))


@functools.partial(jax.jit, static_argnames=("d", "step"), compiler_options=CHEAP_COMPILATION)
def _complexity(numbers: Float[Array, " 9"], d: int, step: Step) -> Array:
    radius, m, atom, entry, half_span, centre, worst_entry, worst_token, worst_cls = numbers
    signs, atoms = math.log(2 * d), 2 * d * d

    def cover(epsilon: Array) -> Array:
        return signs + hilbert_cover_entropy((radius * atom / epsilon) ** 2, atoms)

    if step != "met":
        constants = "sharp" if step == "linear" else step
        C = trauger2023_cover("1,1", radius, worst_cls, d, d)
        R = trauger2023_single(
            1.0, C, worst_token, d, m, constants=constants, largest_entry=worst_entry
        )
        # the printed form is negative in places
        return R / 2 if step == "linear" else jnp.maximum(R, 0.0)
    around = centre * jnp.sqrt(2 * signs / m) + _chain(cover, m, half_span)
    return jnp.minimum(_chain(cover, m, entry), around)


def _chain(log_cover: Callable[[Array], Array], m: Array, radius: Array) -> Array:
    """The chain; the smallest numbers for a class of the function 0."""
    return dudley_chain(log_cover, m, jnp.maximum(radius, 1e-300))


@closed_form
def hilbert_cover_entropy(ratio: Float[Array, "..."], atoms: float | int) -> Float[Array, "..."]:
    r"""The entropy of the hull of 0 and N atoms of length b at distance eps.

    $$\log N(\epsilon)\le\max\Big(0,\Big\lceil\frac{b^2}{\epsilon^2}\Big\rceil-1\Big)\ln(N+1)$$

    For an inner product of the sample, b is a root mean square over its tokens, not a worst case.

    Args:
        ratio: b^2 / eps^2.
        atoms: N, with both signs where both belong to the hull.

    Source: derived from Lemma 3.1 of trauger2023sequence,
    papers/trauger2023sequence/proofs/covers.md.

    Examples:
        >>> hilbert_cover_entropy(jnp.array([0.5, 1.0, 2.5]), 2).tolist()
        [0.0, 0.0, 2.1972...]
    """
    steps = jnp.maximum(jnp.ceil(ratio) - 1, 0)
    return steps * jnp.log1p(jnp.asarray(atoms, ratio.dtype))
