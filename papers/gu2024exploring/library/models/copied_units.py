r"""The same network with more units, for networks of many widths in one program.

Copies of a unit stay equal along training: c copies multiply a softmax network by c and its
tangent kernel, per copy, by c; the two others, whose prefactor falls by $c^{1/2}$, by $c^{1/2}$
and 1. Input coordinates that are zero do nothing.
"""

import math
from typing import NamedTuple

import jax
import numpy as np

from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork


class CopiedUnits(NamedTuple):
    """A network whose units were copied.

    Attributes:
        network: the wider one.
        factor: its outputs over the narrower one's; multiply targets by it.
        step_factor: multiply the step size by it.
    """

    network: SoftmaxNetwork
    factor: float
    step_factor: float


def copied_units(network: SoftmaxNetwork, copies: int, d: int) -> CopiedUnits:
    """A network with every unit copied, and inputs of more coordinates.

    On inputs padded with zeros, targets times `factor` and at a step times `step_factor` it
    trains as the narrower one does.

    Args:
        d: input dimension, at least the network's.

    Examples:
        >>> narrow = SoftmaxNetwork(jax.numpy.zeros((1, 2)), jax.numpy.array([[1.0, 2.0]]))
        >>> wide = copied_units(narrow, 3, 2)
        >>> narrow(jax.numpy.ones(1)).tolist(), wide.network(jax.numpy.ones(2)).tolist()
        ([3.0], [9.0])
    """
    W = np.zeros((d, network.width * copies))
    W[: len(network.W)] = np.repeat(np.asarray(network.W), copies, axis=1)
    a = np.repeat(np.asarray(network.a), copies, axis=1)
    wide = SoftmaxNetwork(jax.device_put(W), jax.device_put(a), network.activation)
    if network.activation is Activation.SOFTMAX:
        return CopiedUnits(wide, float(copies), 1 / copies)
    return CopiedUnits(wide, math.sqrt(copies), 1.0)
