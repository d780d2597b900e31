"""The norm-based bounds of the library, on the attention heads of an adder alone."""

import jax
import numpy as np

from attlas.bounds.comparison.compare import Comparison, compare_bounds
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
from attlas_bounds.library.data.addition import Additions
from attlas_bounds.library.models.adder import Adder


def adder_norm_bounds(adder: Adder, data: Additions, m: int, delta: float) -> Comparison:
    r"""Bounds on the heads alone, tokens on the unit ball, with norms read off after training.

    Another function than the adder: no theorem covers its residual sums, rectified units and
    readout, which could only add to the class. A token is (x, 1, t): then the score of token j is
    the form $z_t^\top W_{QK}z_j$ with $W_{QK}=e_1(k,0,{\rm fall})^\top$, exactly, as what the place
    of the query adds cancels in the softmax. Lengths of tokens go into the matrices.

    Args:
        adder: its weights.
        data: some sums, for the length of their tokens.
        m: samples.
        delta: probability of failure.

    Returns:
        Every bound, for losses in [0, 1] with slope one.

    Examples:
        >>> from attlas_bounds.library.data.addition import draw_additions
        >>> from attlas_bounds.library.models.adder import make_adder
        >>> sums = draw_additions(np.random.default_rng(0), 4, digits=2)
        >>> table = adder_norm_bounds(make_adder(jax.random.key(0), 2, 2), sums, 1000, 0.05)
        >>> all(entry.vacuous for entry in table.entries if entry.name != "trivial")
        True
    """
    width, places = adder.start.shape[0], data.sums.shape[1]
    digits = np.asarray(adder.digits, float)
    x = digits[np.asarray(data.operands)].sum(axis=2)
    longest = np.sqrt(np.max(np.sum(x**2, axis=-1)) + 1 + (places - 1) ** 2)
    constant = np.zeros((width + 2, 1))
    constant[width] = longest
    key = np.zeros((width + 2, 1))
    key[:width, 0] = longest * np.asarray(adder.key, float)
    key[width + 1] = longest * float(adder.fall)
    value = np.zeros((width + 2, width + 2))
    value[:width, :width] = longest * np.asarray(adder.value, float)
    head = Head((constant, key), value, np.eye(width + 2))
    readout = np.full(width + 2, (width + 2) ** -0.5)
    sample = np.zeros((1, places, width + 2))
    sample[..., 0] = 1.0
    weights = TransformerWeights(((head,),) * adder.layers, readout)
    with jax.enable_x64(True):
        return compare_bounds(weights, sample, m, delta)
