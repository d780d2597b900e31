r"""What the error of one trained adder is certified at, from the sums it was trained on.

The weights are put on a grid, so that an adder is a list of whole numbers with a prior probability
2^-b that was fixed before any sum was seen. Of n independent sums it gets k wrong, any digit of a
sum making it wrong; Occam's bound with the exact binomial tail is then

    error <= sup{p : P(Bin(n, p) <= k) >= 2^-b delta},

for all adders at once. What was chosen after training, one of several sizes, starts and grids,
is paid for with the logarithm of their number, in bits.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from attlas._jax.loop_jit import loop_jit
from attlas.bounds.generalisation.compression_bound import compression_bound
from attlas.bounds.generalisation.held_out_bound import held_out_bound
from attlas_bounds.library.bounds.whole_number_prior import whole_number_bits
from attlas_bounds.library.data.addition import Additions
from attlas_bounds.library.models.adder import Adder
from attlas_bounds.library.training.weight_grid import rounded_weights

BLOCK = 1000
"""Sums that are evaluated at once."""


class AdderCertificate(NamedTuple):
    """Bounds on the probability that a sum comes out wrong.

    Attributes:
        certified: bound from the n sums trained on.
        train_error: share of those that the rounded adder gets wrong.
        held_out: share of fresh sums that it gets wrong.
        held_out_bound: exact binomial bound from those.
        digit_error: share of wrong digits of the fresh sums.
        bits: b, with what the choices cost.
        parameters: numbers in the adder.

    An adder whose training diverged has its number of parameters, and NaN for all others.
    """

    certified: float
    train_error: float
    held_out: float
    held_out_bound: float
    digit_error: float
    bits: float
    parameters: int


@loop_jit
def wrong_places(adder: Adder, data: Additions) -> Bool[Array, "n P"]:
    """Whether each digit of each sum is wrong, ties and numbers that are not finite included.

    Args:
        adder: the model.
        data: sums.

    Returns:
        True where a digit is wrong.

    Examples:
        >>> from attlas_bounds.library.models.adder import make_adder
        >>> adder = jax.tree.map(jnp.zeros_like, make_adder(jax.random.key(0), 1, 1))
        >>> zero = Additions(np.zeros((1, 2, 2), np.int8), np.zeros((1, 2), np.int8))
        >>> wrong_places(adder, zero).tolist()  # all digits tie
        [[True, True]]
    """

    def block(own: Additions) -> Array:
        logits = adder(jnp.asarray(own.operands)[None])[0]
        right = jnp.take_along_axis(logits, own.sums[:, None].astype(jnp.int32), axis=1)
        others = jnp.arange(logits.shape[1], dtype=jnp.int8)[None] != own.sums[:, None]
        return ~jnp.all((right > logits) | ~others, axis=1)

    return jax.lax.map(block, jax.tree.map(jnp.asarray, data), batch_size=BLOCK)


def certify_adder(
    adder: Adder, trained: Additions, fresh: Additions, spacing: float, choices: int, delta: float
) -> AdderCertificate:
    """The certificate of one adder on one grid.

    Args:
        adder: any weights.
        trained: the n sums it was trained on, independent draws.
        fresh: as many independent sums as a held-out set has.
        spacing: of the grid.
        choices: sizes, starts and grids among which the adder may be picked.
        delta: probability that one of them, or a bound from the fresh sums, fails.

    Returns:
        The certificate; each of the two bounds fails with probability delta at most.

    Examples:
        >>> from attlas_bounds.library.data.addition import draw_additions
        >>> from attlas_bounds.library.models.adder import make_adder
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
