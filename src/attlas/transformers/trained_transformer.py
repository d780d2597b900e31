r"""A trained Transformer in canonical form: its layers are read on access."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from attlas.core.arrays import ArrayInput
from attlas.core.errors import UserError
from attlas.transformers.canonical import (
    Attention,
    AttentionBlock,
    Dense,
    Embedding,
    Layer,
    Norm,
    PatchEmbedding,
    Readout,
)
from attlas.transformers.forward import apply_layer, embed, embed_patches, embed_sequences, read_out
from attlas.transformers.layer_reader import read_attention


@dataclass(frozen=True)
class TrainedTransformer:
    r"""A model that was read by `load_model`.

    Tokens are one sequence, a vector of token numbers (an image, channels first, for a vision
    model). Arrays have the precision that the model was read in.

    Attributes:
        name: what the user called it.
        architecture: its row of the table, such as "gpt2".
        width: d, length of a hidden row.
        heads_per_layer: H.
        vocabulary: number of tokens in its vocabulary; 0 for a vision model.
        context: largest number of tokens, or None where positions set no limit.
        stored_layer: for each layer, which stored layer it uses; ALBERT has twelve times 0.
        read_layer: reads a stored layer; a `LayerReader` where its parts can be read alone.
        parameters: number of stored numbers, shared ones once.
        fused_attention: a layer's attention from the file's own matrices, (layer, x) to (T, d), for
            `check_head_layout`; None for a model that was put together by hand.
        notes: sentences on what was done to the file's numbers.
    """

    name: str
    architecture: str
    width: int
    heads_per_layer: int
    vocabulary: int
    context: int | None
    stored_layer: tuple[int, ...]
    read_layer: Callable[[int], Layer]
    read_embedding: Callable[[], Embedding | PatchEmbedding]
    read_readout: Callable[[], Readout]
    parameters: int
    fused_attention: Callable[[int, np.ndarray], np.ndarray] | None = None
    notes: tuple[str, ...] = ()

    @property
    def layers(self) -> int:
        """Number of layers that a token passes."""
        return len(self.stored_layer)

    def layer(self, index: int) -> Layer:
        """Weights of a layer; shared layers are the same object's.

        Args:
            index: number of the layer, 0 after the embedding.
        """
        return self.read_layer(self.stored_layer[index])

    def block(self, index: int) -> AttentionBlock:
        """Attention and norms of a layer, without its feedforward units."""
        return self.stored_block(self.stored_layer[index])

    def stored_block(self, stored: int) -> AttentionBlock:
        """The same of a stored layer, which several layers may share."""
        return read_attention(self.read_layer, stored)

    @cached_property
    def embedding(self) -> Embedding | PatchEmbedding:
        """From tokens to hidden states; read at its first use."""
        return self.read_embedding()

    @cached_property
    def readout(self) -> Readout:
        """From hidden states to logits; read at its first use."""
        return self.read_readout()

    @cached_property
    def heads(self) -> tuple[Attention, ...]:
        """Canonical weights of the heads, one entry per stored layer."""
        return tuple(
            self.stored_block(index).attention for index in range(max(self.stored_layer) + 1)
        )

    def input_norm(
        self,
        index: int,
        block: AttentionBlock | Layer | None = None,
        before: AttentionBlock | Layer | None = None,
    ) -> tuple[Norm | None, Dense | None]:
        """What stands between a normalised token and a layer's attention.

        Args:
            block: the layer's block, where it is in memory already.
            before: the previous layer's block, likewise.

        Returns:
            The layer's own norm where it stands before, else the one that ended what came
            before, None where there is none; and the projection between that norm and the
            layer, None where there is none.
        """
        layer = self.block(index) if block is None else block
        post_norm = layer.norm_placement == "post-norm"
        if not post_norm and layer.attention_norm is not None:
            return layer.attention_norm, None
        if index > 0:
            if not post_norm:
                return None, None
            last = self.block(index - 1) if before is None else before
            return last.feedforward_norm, None
        embedding = self.embedding
        if isinstance(embedding, PatchEmbedding):
            return None, None
        return embedding.norm, embedding.projection

    def steps(
        self, tokens: ArrayInput
    ) -> Iterator[tuple[Layer, Float[Array, "T d"], Float[Array, "H T T"], Float[Array, "T d"]]]:
        """The layers one after the other, so that one at a time is in memory.

        Yields:
            Each layer, the hidden states that enter it, its attention maps, the states that leave.
        """
        x = self.embed(tokens)
        for index in range(self.layers):
            layer = self.layer(index)
            leaving, weights = apply_layer(layer, x)
            yield layer, x, weights, leaving
            x = leaving

    def embed(self, tokens: ArrayInput) -> Float[Array, "T d"]:
        """Hidden states that enter the first layer."""
        if isinstance(self.embedding, PatchEmbedding):
            return embed_patches(self.embedding, self._image(tokens))
        return embed(self.embedding, self.read_tokens(tokens))

    def attention(self, tokens: ArrayInput) -> Float[Array, "L H T T"]:
        """Attention maps of all layers."""
        return jnp.stack([weights for _, _, weights, _ in self.steps(tokens)])

    def hidden(self, tokens: ArrayInput) -> Float[Array, "layers T d"]:
        """Hidden states: the embedding, then what leaves each layer."""
        rows = [self.embed(tokens)]
        rows.extend(leaving for *_, leaving in self.steps(tokens))
        return jnp.stack(rows)

    def logits(self, tokens: ArrayInput) -> Float[Array, "..."]:
        """Logits of the next (or masked) token at each token; of the classes for vision models."""
        readout = self.output_layer()
        x = self.embed(tokens)
        for *_, leaving in self.steps(tokens):
            x = leaving
        return read_out(readout, x)

    def embed_batch(self, tokens: Int[np.ndarray, "n T"]) -> Float[Array, "n T d"]:
        """Hidden states of several sequences of one length."""
        assert isinstance(self.embedding, Embedding)
        return embed_sequences(self.embedding, jnp.asarray(tokens))

    def output_layer(self) -> Readout:
        """The readout.

        Raises:
            UserError: if the file holds none.
        """
        if self.readout.lm_head is None:
            raise UserError(
                f"{self.name}: the file holds no LM head, so that there are no logits; "
                "save the model with its task's head"
            )
        return self.readout

    def read_tokens(self, tokens: ArrayInput) -> Int[Array, " T"]:
        """One sequence of token numbers, a vector, checked.

        Raises:
            UserError: if tokens are not whole numbers within the vocabulary, or too many.
        """
        sequence = np.asarray(tokens)
        if sequence.ndim != 1 or sequence.size == 0 or sequence.dtype.kind not in "iu":
            raise UserError(
                f"tokens of shape {sequence.shape} and type {sequence.dtype}: give one sequence, a "
                "vector of whole numbers"
            )
        low, high = int(sequence.min()), int(sequence.max())
        if low < 0 or high >= self.vocabulary:
            wrong = low if low < 0 else high
            raise UserError(f"token {wrong} is outside the vocabulary 0 to {self.vocabulary - 1}")
        if self.context is not None and sequence.size > self.context:
            raise UserError(
                f"{sequence.size} tokens are more than the {self.context} positions of "
                f"{self.name}: cut the sequence"
            )
        return jnp.asarray(sequence)

    def _image(self, image: ArrayInput) -> Array:
        assert isinstance(self.embedding, PatchEmbedding)
        weights, size = self.embedding.patches.W, self.embedding.size
        channels = weights.shape[0] // size**2
        side = round((self.embedding.positions.shape[0] - 1) ** 0.5)
        rows, columns = self.embedding.grid or (side, side)
        wanted = (channels, rows * size, columns * size)
        pixels = np.asarray(image)
        if pixels.shape != wanted:
            raise UserError(f"image of shape {pixels.shape}: {self.name} reads {wanted}")
        return jnp.asarray(pixels, weights.dtype)
