"""Layers of a file, read on access, and their attention by itself."""

from collections.abc import Callable
from dataclasses import dataclass

from attlas.transformers.canonical import AttentionBlock, Experts, Feedforward, Layer


@dataclass(frozen=True)
class LayerReader:
    """Reads a stored layer, or the layer without its feedforward units, most of its numbers.

    Attributes:
        block: reads attention and norms.
        feedforward: reads the feedforward units.
    """

    block: Callable[[int], AttentionBlock]
    feedforward: Callable[[int], Feedforward | Experts]

    def __call__(self, stored: int) -> Layer:
        """The whole layer."""
        return self.block(stored).completed(self.feedforward(stored))


def read_attention(read_layer: Callable[[int], Layer], stored: int) -> AttentionBlock:
    """A layer without its feedforward units.

    Args:
        read_layer: a `LayerReader`; of any other reader, the whole layer is read.
    """
    if isinstance(read_layer, LayerReader):
        return read_layer.block(stored)
    layer = read_layer(stored)
    return AttentionBlock(
        layer.attention,
        layer.attention_norm,
        layer.feedforward_norm,
        layer.norm_placement,
        layer.attention_out_norm,
        layer.feedforward_out_norm,
    )
