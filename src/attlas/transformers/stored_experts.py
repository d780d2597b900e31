"""Experts of a layer in a file: their tensors by name, each by itself or all in one."""

from collections.abc import Collection
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from attlas.transformers.canonical import Experts, Feedforward
from attlas.transformers.stored_tensors import Shapes, StoredTensors, read_dense


@dataclass(frozen=True, kw_only=True)
class StoredExperts:
    """What a configuration says about the experts of a file.

    Attributes:
        layers: paths of the layers that have experts.
        count: number of experts.
        active: number of experts that a token uses.
        hidden: units of an expert.
        normalized: whether the weights of the active ones are divided by their sum.
        router: path of the map to a logit per expert, below the layer's.
        gate: path of an expert's gate, with {} for its number; `inner` and `outer` likewise.
        stacked: path of all experts, which hold `gate_up_proj` and `down_proj`; empty where each
            has tensors of its own.
        shared: path of the units that every token passes, or empty.
        shared_hidden: their number.
        shared_gate: path of the map to their factor's logit, or empty.
    """

    layers: Collection[str]
    count: int
    active: int
    hidden: int
    normalized: bool
    router: str
    gate: str = ""
    inner: str = ""
    outer: str = ""
    stacked: str = ""
    shared: str = ""
    shared_hidden: int = 0
    shared_gate: str = ""

    def shapes(self, layer: str, width: int) -> dict[str, tuple[int, ...]]:
        """Shape of each tensor of a layer's experts, by name."""
        m, E = self.hidden, self.count
        shapes: dict[str, tuple[int, ...]] = {f"{layer}{self.router}.weight": (E, width)}
        if self.stacked:
            shapes[f"{layer}{self.stacked}.gate_up_proj"] = (E, 2 * m, width)
            shapes[f"{layer}{self.stacked}.down_proj"] = (E, width, m)
        else:
            for expert in range(E):
                shapes |= _units(layer, (self.gate, self.inner, self.outer), expert, m, width)
        if self.shared:
            names = tuple(f"{self.shared}.{part}_proj" for part in ("gate", "up", "down"))
            shapes |= _units(layer, names, 0, self.shared_hidden, width)
        if self.shared_gate:
            shapes[f"{layer}{self.shared_gate}.weight"] = (1, width)
        return shapes

    def read(self, stored: StoredTensors, layer: str, activation: str) -> Experts:
        """The experts of a layer."""
        if self.stacked:
            both = np.swapaxes(stored[f"{layer}{self.stacked}.gate_up_proj"], 1, 2)
            gate, inner = both[..., : self.hidden], both[..., self.hidden :]
            outer = np.swapaxes(stored[f"{layer}{self.stacked}.down_proj"], 1, 2)
        else:
            gate, inner, outer = (
                np.stack([stored[f"{layer}{path.format(e)}.weight"].T for e in range(self.count)])
                for path in (self.gate, self.inner, self.outer)
            )
        shared = None
        if self.shared:
            gated, up, down = (
                read_dense(stored, f"{layer}{self.shared}.{part}_proj")
                for part in ("gate", "up", "down")
            )
            shared = Feedforward(up, down, gated, activation)
        return Experts(
            router=read_dense(stored, layer + self.router),
            inner=jnp.asarray(inner),
            gate=jnp.asarray(gate),
            outer=jnp.asarray(outer),
            shared=shared,
            shared_gate=read_dense(stored, layer + self.shared_gate) if self.shared_gate else None,
            active=self.active,
            normalized=self.normalized,
            activation=activation,
        )


def _units(layer: str, names: tuple[str, ...], expert: int, hidden: int, width: int) -> Shapes:
    gate, inner, outer = (f"{layer}{name.format(expert)}.weight" for name in names)
    return {gate: (hidden, width), inner: (hidden, width), outer: (width, hidden)}
