r"""All weights of a Transformer as one tree, for derivatives with respect to any of them."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attlas.core.errors import UserError
from attlas.interop.canonical import Embedding, Layer, Readout
from attlas.interop.forward import (
    attended,
    attention_input,
    attention_weights,
    complete_layer,
    embed,
    head_outputs,
)
from attlas.interop.trained_transformer import TrainedTransformer


class WholeModel(eqx.Module):
    """A Transformer whose arrays are all in memory; a shared layer is stored once.

    Attributes:
        embedding: from tokens to rows.
        layers: the stored layers.
        readout: from rows to logits.
        order: which stored layer each layer uses.
    """

    embedding: Embedding
    layers: tuple[Layer, ...]
    readout: Readout
    order: tuple[int, ...] = eqx.field(static=True)

    def hidden(
        self,
        tokens: Int[Array, " T"],
        present: Bool[Array, " T"] | None = None,
        gates: Float[Array, "L H"] | None = None,
    ) -> Float[Array, "T d"]:
        """Hidden rows that leave the last layer.

        Args:
            tokens: one sequence.
            present: which tokens are no padding; all when None.
            gates: factor of each head's output; ones when None.

        Returns:
            One row per token.
        """
        x = embed(self.embedding, tokens)
        for index, stored in enumerate(self.order):
            layer = self.layers[stored]
            read = attention_input(layer, x)
            weights = attention_weights(layer.attention, read, present)
            if gates is None:
                added = attended(layer.attention, weights, read)
            else:
                heads = head_outputs(layer.attention, weights, read)
                gated = jnp.einsum("h,hid->id", gates[index], heads)
                added = gated + layer.attention.b_O[None]
            x = complete_layer(layer, x, added)
        return x


def whole_model(model: TrainedTransformer) -> WholeModel:
    """Read all layers at once.

    Args:
        model: as `load_model` read it.

    Returns:
        Its weights as one tree.

    Raises:
        UserError: for a vision model, whose batch is not made of tokens.
    """
    if not isinstance(model.embedding, Embedding):
        raise UserError(f"{model.name} reads images: derivatives of its loss need labels")
    stored = range(max(model.stored_layer) + 1)
    layers = tuple(model.read_layer(index) for index in stored)
    tree = WholeModel(model.embedding, layers, model.readout, model.stored_layer)
    return jax.tree.map(jnp.asarray, tree)
