r"""The bound that counts the bits of a file, whatever the model in it computes."""

import math

from attlas.bounds.closed_form import closed_form


@closed_form
def occam_gap(parameters: int, bits: int, m: int | float, delta: float) -> float:
    r"""Gap of a model that is one of 2^(P b) that a file can hold, for losses in [0, 1].

    $$\sqrt{\frac{Pb\ln2+\ln(1/\delta)}{2m}}$$

    Hoeffding's inequality and a union bound over all files: whatever the model computes.

    Args:
        parameters: P, stored numbers, shared ones once.
        bits: b of each.

    Source: Occam's razor bound (Blumer et al., 1987), with equal codes.

    Examples:
        >>> print(f"{occam_gap(122, 16, 100_000, 0.05):.3f}")
        0.082
    """
    # The gap at one sample, squared, is the number of samples from which the gap is below 1.
    return math.sqrt(occam_samples(parameters, bits, delta) / m)


@closed_form
def occam_samples(parameters: int, bits: int, delta: float) -> float:
    r"""Samples from which `occam_gap` is below 1, $\tfrac12(Pb\ln2+\ln(1/\delta))$.

    Here P is `parameters` and b `bits`.

    Examples:
        >>> round(occam_samples(122, 16, 0.05))
        678
    """
    return (parameters * bits * math.log(2) + math.log(1 / delta)) / 2
