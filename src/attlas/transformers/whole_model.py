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
        return self.depths(tokens, present, gates)[-1]

    def depths(
        self,
        tokens: Int[Array, " T"],
        present: Bool[Array, " T"] | None = None,
        gates: Float[Array, "L H"] | None = None,
        added: Float[Array, "L T d"] | None = None,
    ) -> list[Float[Array, "T d"]]:
        """Hidden rows that enter each layer, and those that leave the last.

        Args:
            tokens: one sequence.
            present: which tokens are no padding; all when None.
            gates: factor of each head's output; ones when None.
            added: to what each layer's attention gives; nothing when None.

        Returns:
            L + 1 blocks of one row per token.
        """
        rows = [embed(self.embedding, tokens)]
        for index, stored in enumerate(self.order):
            layer = self.layers[stored]
            read = attention_input(layer, rows[-1])
            weights = attention_weights(layer.attention, read, present)
            if gates is None:
                own = attended(layer.attention, weights, read)
            else:
                heads = head_outputs(layer.attention, weights, read)
                gated = jnp.einsum("h,hid->id", gates[index], heads)
                own = gated + layer.attention.b_O[None]
            own = own if added is None else own + added[index]
            rows.append(complete_layer(layer, rows[-1], own))
        return rows


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


def read_once(model: TrainedTransformer) -> TrainedTransformer:
    """The model with all its weights in memory, for what passes its layers many times.

    Args:
        model: as `load_model` read it.

    Returns:
        The same model, whose layers are read no more.

    Raises:
        UserError: for a vision model.
    """
    whole = whole_model(model)
    return replace(
        model,
        read_layer=whole.layers.__getitem__,
        read_embedding=lambda: whole.embedding,
        read_readout=lambda: whole.readout,
    )
