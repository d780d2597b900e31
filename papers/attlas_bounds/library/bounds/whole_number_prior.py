r"""A prior over lists of whole numbers, such as weights that were rounded to a grid."""

import math

import numpy as np
from jaxtyping import Int

SPREADS = tuple(2.0**k for k in range(17))
"""Scales of the two-sided geometric laws that are mixed, in steps of the grid."""


def whole_number_bits(numbers: Int[np.ndarray, "..."]) -> int:
    r"""Minus the binary logarithm of the prior probability of a list, rounded up.

    $$-\log_2\frac1{17}\sum_{s=1,2,4,\dots,2^{16}}\prod_i\frac{1-r_s}{1+r_s}r_s^{|q_i|},\qquad
    r_s=e^{-1/s}$$

    The two-sided geometric law is one of all whole numbers, so that no largest one has to be
    known; the mixture adapts to their size. The probabilities of all lists of a length sum to one,
    which is all that Occam's bound asks; an arithmetic code with this law needs two bits more.

    Args:
        numbers: q, of any shape; the shape is known beforehand.

    Returns:
        Whole bits, at least one above the rounding of the floating arithmetic.

    Source: derived; mixtures of geometric laws are usual priors of whole numbers.

    Examples:
        >>> whole_number_bits(np.zeros(10, int)), whole_number_bits(np.array([3, -5, 2]))
        (17, 17)
    """
    q = np.abs(np.asarray(numbers, dtype=np.int64))
    total, count = int(q.sum()), q.size
    logs = []
    for spread in SPREADS:
        constant = math.log(math.tanh(0.5 / spread))  # (1 - r) / (1 + r)
        logs.append(count * constant - total / spread)
    largest = max(logs)
    mixed = largest + math.log(math.fsum(math.exp(log - largest) for log in logs))
    nats = math.log(len(SPREADS)) - mixed
    # The logarithms are within a few roundings of their size, far below one bit up to 2^40 bits.
    return math.ceil(nats / math.log(2)) + 1
