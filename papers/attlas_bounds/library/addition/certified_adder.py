r"""Certified errors of a trained adder, from the sums it was trained on.

Rounded to a grid, an adder is a list of whole numbers with a prior probability 2^-b that was fixed
before any sum was seen. If it gets k of n independent sums wrong, in any digit, Occam's bound with
the exact binomial tail is

    error <= sup{p : P(Bin(n, p) <= k) >= 2^-b delta},

for all adders at once. A choice among several sizes, starts and grids after training costs the
binary logarithm of their number in bits.
"""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from attlas._jax.loop_jit import loop_jit
from attlas.bounds.comparison.compare import Comparison, compare_bounds
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
from attlas.bounds.generalisation.compression_bound import compression_bound
from attlas.bounds.generalisation.held_out_bound import held_out_bound
from attlas_bounds.library.addition.adder import Adder
from attlas_bounds.library.addition.sums import Additions
from attlas_bounds.library.bounds.whole_number_prior import whole_number_bits
from attlas_bounds.library.training.weight_grid import rounded_weights

BLOCK = 1000
"""Sums that are evaluated at once."""


@dataclass(frozen=True)
class AdderCertificate:
    """Bounds on the probability that a sum comes out wrong.

    Attributes:
        certified: bound from the n training sums.
        train_error: share of the training sums that the rounded adder gets wrong.
        held_out: share of fresh sums that it gets wrong.
        held_out_bound: exact binomial bound from the fresh sums.
        digit_error: share of wrong digits of the fresh sums.
        bits: b, plus the cost of the choices.
        parameters: numbers in the adder.

    After a diverged training all fields but the number of parameters are NaN.
    """

    certified: float
    train_error: float
    held_out: float
    held_out_bound: float
    digit_error: float
    bits: float | int
    parameters: int


@loop_jit
def wrong_places(adder: Adder, data: Additions) -> Bool[Array, "n P"]:
    """Whether each digit of each sum is wrong, ties and numbers that are not finite included.

    Examples:
        >>> from attlas_bounds.library.addition.adder import make_adder
        >>> adder = jax.tree.map(jnp.zeros_like, make_adder(jax.random.key(0), 1, 1))
        >>> zero = Additions(np.zeros((1, 2, 2), np.int8), np.zeros((1, 2), np.int8))
        >>> wrong_places(adder, zero).tolist()  # all digits tie
        [[True, True]]
    """

    def block(sums: Additions) -> Array:
        logits = adder(jnp.asarray(sums.operands)[None])[0]
        right = jnp.take_along_axis(logits, sums.sums[:, None].astype(jnp.int32), axis=1)
        others = jnp.arange(logits.shape[1], dtype=jnp.int8)[None] != sums.sums[:, None]
        return ~jnp.all((right > logits) | ~others, axis=1)

    return jax.lax.map(block, jax.tree.map(jnp.asarray, data), batch_size=BLOCK)


def certify_adder(
    adder: Adder, trained: Additions, fresh: Additions, spacing: float, choices: int, delta: float
) -> AdderCertificate:
    """The certificate of one adder on one grid.

    Args:
        trained: the n sums it was trained on, independent draws.
        spacing: spacing of the weight grid.
        choices: sizes, starts and grids among which the adder may be picked.
        delta: probability that one of them, or a bound from the fresh sums, fails.

    Returns:
        The certificate; each of the two bounds fails with probability delta at most.

    Examples:
        >>> from attlas_bounds.library.addition.sums import draw_additions
        >>> from attlas_bounds.library.addition.adder import make_adder
        >>> sums = draw_additions(np.random.default_rng(0), 9, digits=2)
        >>> found = certify_adder(make_adder(jax.random.key(0), 1, 1), sums, sums, 0.5, 4, 0.05)
        >>> found.certified, found.parameters
        (1.0, 37)
    """
    leaves = [np.asarray(a) for a in jax.tree.leaves(adder)]
    if not all(np.isfinite(a).all() for a in leaves):
        return AdderCertificate(*[math.nan] * 6, parameters=sum(a.size for a in leaves))
    on_grid, numbers = rounded_weights(adder, spacing)
    wrong, tested = (np.asarray(wrong_places(on_grid, data)) for data in (trained, fresh))
    k, k_fresh = int(wrong.any(1).sum()), int(tested.any(1).sum())
    bits = whole_number_bits(numbers) + math.ceil(math.log2(choices))
    return AdderCertificate(
        certified=compression_bound(k / len(wrong), len(wrong), bits, delta, form="binomial").bound,
        train_error=k / len(wrong),
        held_out=k_fresh / len(tested),
        held_out_bound=held_out_bound(k_fresh, len(tested), delta).bound,
        digit_error=float(tested.mean()),
        bits=bits,
        parameters=numbers.size,
    )


def adder_norm_bounds(adder: Adder, data: Additions, m: int, delta: float) -> Comparison:
    r"""Bounds on the heads alone, tokens on the unit ball, with norms read off after training.

    Another function than the adder: no theorem covers its residual sums, rectified units and
    readout, which could only add to the class. A token is (x, 1, t): then the score of token j is
    the form $z_t^\top W_{QK}z_j$ with $W_{QK}=e_1(k,0,{\rm fall})^\top$, exactly, as what the place
    of the query adds cancels in the softmax. Lengths of tokens go into the matrices.

    Args:
        data: some sums, for the length of their tokens.
        delta: probability of failure.

    Returns:
        Every bound, for losses in [0, 1] with slope one.

    Examples:
        >>> from attlas_bounds.library.addition.sums import draw_additions
        >>> from attlas_bounds.library.addition.adder import make_adder
        >>> sums = draw_additions(np.random.default_rng(0), 4, digits=2)
        >>> table = adder_norm_bounds(make_adder(jax.random.key(0), 2, 2), sums, 1000, 0.05)
        >>> all(entry.vacuous for entry in table.entries if entry.name != "trivial")
        True
    """
    width, places = adder.start.shape[0], data.sums.shape[1]
    digits = np.asarray(adder.digits, float)
    x = digits[np.asarray(data.operands)].sum(axis=2)
    # The first token, at place 0, is among those that are read.
    squares = np.sum(np.asarray(adder.start, float) ** 2), np.sum(x**2, axis=-1).max()
    longest = np.sqrt(1 + max(squares[0], squares[1] + (places - 1) ** 2))
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
