r"""The float on the safe side of a number that has no closed form."""

import struct
from collections.abc import Callable

from attlas.core.errors import refuse_misfits


@refuse_misfits
def first_float(holds: Callable[[float], bool], guess: float, *, downward: bool = False) -> float:
    r"""The first float of [0, 1] at which a monotone statement holds, from one end to the other.

    Upward it is the smallest float at which it holds, for a statement that is false and then true;
    downward the largest, for one that is true and then false. Where it holds nowhere inside, it is
    the last one, 1 or 0, at which it is not asked.

    Args:
        holds: the statement, decided without rounding.
        guess: start of the search; the number of evaluations is the logarithm of its distance in
            floats.
        downward: search from 1 down to 0 instead of from 0 up to 1.

    Examples:
        >>> from fractions import Fraction
        >>> root = first_float(lambda x: Fraction(x) ** 2 >= Fraction(1, 2), 0.7)
        >>> root, first_float(lambda x: Fraction(x) ** 2 <= Fraction(1, 2), 0.7, downward=True)
        (0.7071067811865476, 0.7071067811865475)
    """
    # Positive floats are ordered as the whole numbers that their bits are.
    top = _bits(1.0)
    last = 0 if downward else top
    step = -1 if downward else 1

    def right(place: int) -> bool:
        return (place - last) * step >= 0 or holds(_float(place))

    first = top - last
    place = min(max(_bits(guess), 0), top)
    stride = step
    if right(place):
        good, bad = place, place - stride
        while (bad - first) * step >= 0 and right(bad):
            stride *= 2
            good, bad = bad, bad - stride
    else:
        bad, good = place, place + stride
        while not right(good):
            stride *= 2
            bad, good = good, good + stride
        good = min(max(good, 0), top)
    while abs(good - bad) > 1:
        middle = (good + bad) // 2
        # Beyond the first end nothing is asked: the statement may have no meaning there.
        if (middle - first) * step >= 0 and right(middle):
            good = middle
        else:
            bad = middle
    return _float(good)


def _bits(number: float) -> int:
    return struct.unpack("<q", struct.pack("<d", number))[0]


def _float(bits: int) -> float:
    return struct.unpack("<d", struct.pack("<q", bits))[0]
