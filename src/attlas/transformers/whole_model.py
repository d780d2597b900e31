r"""All weights of a Transformer as one tree, for derivatives with respect to any of them."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attlas.core.errors import UserError
from attlas.transformers.canonical import Embedding, Layer, Readout
from attlas.transformers.forward import (
    attended,
    attention_input,
    attention_weights,
    complete_layer,
    embed,
    head_outputs,
)
from attlas.transformers.trained_transformer import TrainedTransformer


class WholeModel(eqx.Module):
    """A Transformer whose arrays are all in memory; a shared layer is stored once.

    Attributes:
        embedding: from tokens to hidden states.
        readout: from hidden states to logits.
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
        """Hidden states that leave the last layer.

        Args:
            present: False for padding; no padding when None.
            gates: factor of each head's output; ones when None.
        """
        return self.depths(tokens, present, gates)[-1]

    def depths(
        self,
        tokens: Int[Array, " T"],
        present: Bool[Array, " T"] | None = None,
        gates: Float[Array, "L H"] | None = None,
        added: Float[Array, "L T d"] | None = None,
    ) -> list[Float[Array, "T d"]]:
        """Hidden states that enter each layer, and those that leave the last.

        Args:
            present: False for padding; no padding when None.
            gates: factor of each head's output; ones when None.
            added: term added to the output of each layer's attention; nothing when None.
        """
        rows = [embed(self.embedding, tokens)]
        for index, stored in enumerate(self.order):
            layer = self.layers[stored]
            read = attention_input(layer, rows[-1])
            weights = attention_weights(layer.attention, read, present)
            if gates is None:
                output = attended(layer.attention, weights, read)
            else:
                heads = head_outputs(layer.attention, weights, read)
                gated = jnp.einsum("h,hid->id", gates[index], heads)
                output = gated + layer.attention.b_O[None]
            output = output if added is None else output + added[index]
            rows.append(complete_layer(layer, rows[-1], output))
        return rows


def whole_model(model: TrainedTransformer) -> WholeModel:
    """Read all layers at once.

    Raises:
        UserError: for a vision model, whose batch is not made of tokens.
    """
    if not isinstance(model.embedding, Embedding):
        raise UserError(f"{model.name} reads images: derivatives of its loss need labels")
    stored = range(max(model.stored_layer) + 1)
    layers = tuple(model.read_layer(index) for index in stored)
    tree = WholeModel(model.embedding, layers, model.readout, model.stored_layer)
    return jax.tree.map(jnp.asarray, tree)


def read_once(model: TrainedTransformer) -> TrainedTransformer:
    """The model with all its weights in memory, for what passes its layers many times.

    Raises:
        UserError: for a vision model.
    """
    weights = whole_model(model)
    return replace(
        model,
        read_layer=weights.layers.__getitem__,
        read_embedding=lambda: weights.embedding,
        read_readout=lambda: weights.readout,
    )
