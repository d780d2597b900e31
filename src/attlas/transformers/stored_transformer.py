"""A Transformer in a file as a table: names of its tensors, their shapes and flags; and its reader.

An architecture makes the table from a configuration; see `attlas.transformers.architectures`.
"""

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import jax.numpy as jnp
import numpy as np

from attlas.transformers._readers.head_blocks import attention_of, scaled, turned_by
from attlas.transformers._readers.lm_head import read_lm_head, repeated_lm_head, with_embedding
from attlas.transformers.canonical import (
    AttentionBlock,
    Dense,
    Embedding,
    Experts,
    Feedforward,
    Norm,
    Readout,
    Rotary,
)
from attlas.transformers.file_forms import added_zeros, form_notes, in_full_form
from attlas.transformers.layer_reader import LayerReader
from attlas.transformers.stored_experts import StoredExperts
from attlas.transformers.stored_tensors import Shapes, StoredTensors, read_dense
from attlas.transformers.tensor_names import MAPS, Names
from attlas.transformers.trained_transformer import TrainedTransformer

_UNITS = ("gate", "inner", "gate_inner", "outer")


@dataclass(frozen=True, kw_only=True)
class StoredTransformer:
    """What a configuration says about a file.

    Attributes:
        architecture: value of `model_type`.
        prefixes: beginnings that the names in the file may have.
        layers: path of each stored layer.
        order: which stored layer each layer uses; each its own when None.
        heads: H.
        groups: key/value groups; one per head when None.
        pruned: heads that the file lacks, by layer.
        head_size: k; width / H when None.
        hidden: feedforward units.
        embedding_width: of the tokens' rows; the width when None.
        vocabulary: number of tokens.
        positions: rows of the table of positions.
        first_position: row that the first token reads.
        padding: token that the count of positions passes over, or None.
        context: largest number of tokens; what the table of positions allows when None.
        token_types: rows of the table of segments; 0 for no table.
        eps: of the norms.
        activation: of the feedforward units.
        head_activation: after the transform before the LM head; `activation` when None.
        norm_placement: "pre-norm", "post-norm" or "parallel".
        first_norm: whether the first layer has a norm before its attention.
        centred: LayerNorm, else RMSNorm.
        biased_norms: whether norms have a bias in the file.
        scaled_norms: whether norms have a gain (and bias) in the file.
        gain_shift: added to a stored gain: 1 for gemma, which stores gain - 1.
        biased: fields of `MAPS` that have a bias.
        inputs_first: whether matrices are stored as (inputs, outputs).
        fused_by_head: whether a fused matrix holds query, key and value head after head; else all
            queries, then all keys, then all values.
        causal: whether a token sees those up to itself only.
        scales: factor of the logits of each layer; k^(-1/2) when None.
        softcap: c of logits c tanh(logit / c), or None.
        windows: tokens that each layer sees to each side, the token among them; all when None.
        rotaries: rotary positions of each layer, or None.
        turned_factor: of coordinates that turn, in queries and in keys.
        relative: a tensor of logits, a column per head, and the row of each distance; or None.
        residual_scale: factor of what attention and feedforward units add.
        embedding_scale: factor of a token's row.
        readout_scale: factor of the LM head's logits.
        readout_softcap: c of the LM head's logits, or None.
        experts: what stands in place of the feedforward units of some layers, or None.
        tied: whether the embedding is the LM head too, where the file has no other.
        required: shapes of further tensors that must be there.
        optional: shapes of further tensors that may be there.
        buffers: pattern of names that are passed over.
    """

    architecture: str
    names: Names
    prefixes: tuple[str, ...] = ("",)
    layers: tuple[str, ...]
    order: tuple[int, ...] | None = None
    width: int
    heads: int
    groups: int | None = None
    pruned: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    head_size: int | None = None
    hidden: int
    embedding_width: int | None = None
    vocabulary: int = 0
    positions: int = 0
    first_position: int = 0
    padding: int | None = None
    context: int | None = None
    token_types: int = 0
    eps: float
    activation: str
    head_activation: str | None = None
    norm_placement: str
    first_norm: bool = True
    centred: bool = True
    biased_norms: bool | None = None
    scaled_norms: bool = True
    gain_shift: float = 0.0
    biased: Collection[str] = MAPS
    inputs_first: bool = False
    fused_by_head: bool = False
    causal: bool
    scales: tuple[float, ...] | None = None
    softcap: float | None = None
    windows: tuple[int | None, ...] | None = None
    rotaries: tuple[Rotary, ...] | None = None
    turned_factor: float = 1.0
    relative: tuple[str, tuple[int, ...]] | None = None
    residual_scale: float = 1.0
    embedding_scale: float = 1.0
    readout_scale: float = 1.0
    readout_softcap: float | None = None
    experts: StoredExperts | None = None
    tied: bool = True
    required: Shapes | None = None
    optional: Shapes | None = None
    buffers: str | None = None

    def read(self, tensors: Mapping[str, np.ndarray], name: str) -> TrainedTransformer:
        """The model in canonical form, called `name`; its layers are read when they are used."""
        stored = self.stored(tensors)
        return TrainedTransformer(
            name=name,
            architecture=self.architecture,
            width=self.width,
            heads_per_layer=self.heads,
            vocabulary=self.vocabulary,
            context=self.positions - self.first_position if self.context is None else self.context,
            stored_layer=self.order or tuple(range(len(self.layers))),
            read_layer=LayerReader(
                lambda index: self._block(stored, index),
                lambda index: self._feedforward(stored, index),
            ),
            read_embedding=lambda: self._embedding(stored),
            read_readout=lambda: self._readout(stored),
            parameters=stored.parameters - self._repeated(stored) - added_zeros(self, tensors),
            notes=form_notes(self, tensors),
        )

    def stored(self, tensors: Mapping[str, np.ndarray]) -> StoredTensors:
        """The tensors of the file, checked against the shapes of this table."""
        if self.tied:
            tensors = with_embedding(tensors, *self._tied_names, self.prefixes)
        return StoredTensors(
            in_full_form(self, tensors),
            self.shapes(),
            optional=self._optional_shapes(),
            prefixes=self.prefixes,
            buffers=self.buffers,
        )

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each tensor that must be there, by name."""
        names, d, e = self.names, self.width, self._e
        shapes: dict[str, tuple[int, ...]] = {}
        for path, rows in (
            (names.tokens, self.vocabulary),
            (names.positions, self.positions),
            (names.token_types, self.token_types),
        ):
            if path and rows:
                # positions are added to the projected tokens
                wide = path == names.positions and names.token_projection
                shapes[f"{path}.weight"] = (rows, d if wide else e)
        shapes |= self._norm_shapes(names.embedding_norm, e)
        if names.token_projection:
            shapes[f"{names.token_projection}.weight"] = (d, e)
        if names.projection:
            shapes |= {f"{names.projection}.weight": (d, e), f"{names.projection}.bias": (d,)}
        shapes |= self._norm_shapes(names.last_norm, d)
        if names.transform and not names.transform_norm:
            shapes[f"{names.transform}.weight"] = (e, d)
        shapes |= self.required or {}
        for path in self.layers:
            shapes |= self.layer_shapes(path)
        return shapes

    def layer_shapes(self, path: str) -> dict[str, tuple[int, ...]]:
        """Shape of each tensor of a layer, by name below the file's prefix."""
        names, d, m, k = self.names, self.width, self.hidden, self.size_of_heads
        q, g = self.heads * k, (self.groups or self.heads) * k
        sparse = self.experts is not None and path in self.experts.layers
        sizes = {
            "query": (q, d),
            "key": (g, d),
            "value": (g, d),
            "fused": (q + 2 * g, d),
            "output": (d, q),
            "gate": (m, d),
            "inner": (m, d),
            "gate_inner": (2 * m, d),
            "outer": (d, m),
        }
        shapes: dict[str, tuple[int, ...]] = {}
        if self.experts is not None and sparse:
            shapes |= self.experts.shapes(path, d)
            sizes = {role: shape for role, shape in sizes.items() if role not in _UNITS}
        for role, (outputs, inputs) in sizes.items():
            below: str = getattr(names, role)
            if below:
                shape = (inputs, outputs) if self.inputs_first else (outputs, inputs)
                shapes[f"{path}{below}.weight"] = shape
                if role in self.biased:
                    shapes[f"{path}{below}.bias"] = (outputs,)
        for below, size in (
            (self._attention_norm(path), d),
            (names.feedforward_norm, d),
            (names.attention_out_norm, d),
            (names.feedforward_out_norm, d),
            (names.query_norm, k),
            (names.key_norm, k),
        ):
            if below:
                shapes |= self._norm_shapes(path + below, size)
        return shapes

    @property
    def _e(self) -> int:
        return self.embedding_width or self.width

    @property
    def size_of_heads(self) -> int:
        """Coordinates of a query."""
        return self.head_size or self.width // self.heads

    def logits_of(self, stored: StoredTensors) -> np.ndarray:
        """What each distance adds to the logits of each head, (H, distances)."""
        assert self.relative is not None
        name, rows = self.relative
        return stored[name][list(rows)].T

    @property
    def _norms_have_biases(self) -> bool:
        return self.centred if self.biased_norms is None else self.biased_norms

    def _attention_norm(self, layer: str) -> str:
        """Name of the norm before the attention of a layer, empty where it has none."""
        without = not self.first_norm and layer == self.layers[0]
        return "" if without else self.names.attention_norm

    def _norm_shapes(self, path: str, size: int) -> dict[str, tuple[int, ...]]:
        if not path or not self.scaled_norms:
            return {}
        tensors = ("weight", "bias") if self._norms_have_biases else ("weight",)
        return {f"{path}.{part}": (size,) for part in tensors}

    def _optional_shapes(self) -> Shapes:
        names, e, V = self.names, self._e, self.vocabulary
        shapes: dict[str, tuple[int, ...]] = {}
        if names.transform_norm:
            shapes |= {
                f"{names.transform}.weight": (e, self.width),
                f"{names.transform}.bias": (e,),
            }
            shapes |= self._norm_shapes(names.transform_norm, e)
        shapes |= {f"{path}.weight": (V, e) for path in names.lm_heads}
        shapes |= dict.fromkeys(names.lm_biases, (V,))
        return {**shapes, **(self.optional or {})}

    def _embedding(self, stored: StoredTensors) -> Embedding:
        names = self.names
        tokens = stored[f"{names.tokens}.weight"]
        if names.token_projection:
            tokens = tokens @ stored[f"{names.token_projection}.weight"].T
        types = stored[f"{names.token_types}.weight"] if self.token_types else None
        return Embedding(
            jnp.asarray(tokens),
            positions=jnp.asarray(stored[f"{names.positions}.weight"]) if names.positions else None,
            kind=None if types is None else jnp.asarray(types[0]),
            norm=self.norm(stored, names.embedding_norm) if names.embedding_norm else None,
            projection=read_dense(stored, names.projection) if names.projection else None,
            scale=self.embedding_scale,
            first_position=self.first_position,
            padding=self.padding,
        )

    def _readout(self, stored: StoredTensors) -> Readout:
        names = self.names
        if names.transform_norm and f"{names.transform}.weight" not in stored:
            return Readout()  # a file of the encoder alone
        head = read_lm_head(stored, *self._tied_names, tied=self.tied)
        bias = next((stored[name] for name in names.lm_biases if name in stored), None)
        if head is not None and bias is not None:
            head = Dense(head.W, jnp.asarray(bias))
        head = None if head is None else scaled(head, self.readout_scale)
        return Readout(
            norm=self.norm(stored, names.last_norm) if names.last_norm else None,
            transform=read_dense(stored, names.transform) if names.transform else None,
            transform_norm=self.norm(stored, names.transform_norm)
            if names.transform_norm
            else None,
            lm_head=head,
            activation=self.head_activation or self.activation,
            softcap=self.readout_softcap,
        )

    @property
    def _tied_names(self) -> tuple[str, tuple[str, ...]]:
        heads = tuple(f"{path}.weight" for path in self.names.lm_heads)
        return f"{self.names.tokens}.weight", heads

    def _repeated(self, stored: StoredTensors) -> int:
        """How many numbers a file holds twice: the tied LM head, and its bias under two names."""
        repeated = repeated_lm_head(stored, *self._tied_names, tied=self.tied)
        biases = [stored[name] for name in self.names.lm_biases if name in stored]
        same = len(biases) == 2 and np.array_equal(biases[0], biases[1])
        return repeated + biases[0].size if same else repeated

    def norm(self, stored: StoredTensors, path: str) -> Norm:
        """A norm of the file."""
        if not self.scaled_norms:
            gain = jnp.ones(self.width, stored[f"{self.names.tokens}.weight"].dtype)
            return Norm(gain, jnp.zeros_like(gain), self.eps, self.centred)
        gain = jnp.asarray(stored[f"{path}.weight"]) + self.gain_shift
        has_bias = self._norms_have_biases
        bias = jnp.asarray(stored[f"{path}.bias"]) if has_bias else jnp.zeros_like(gain)
        return Norm(gain, bias, self.eps, self.centred)

    def _map(self, stored: StoredTensors, index: int, below: str) -> Dense:
        return read_dense(stored, self.layers[index] + below, outputs_first=not self.inputs_first)

    def _residual_map(self, stored: StoredTensors, index: int, below: str) -> Dense:
        """A map whose outputs are added to the hidden states."""
        return scaled(self._map(stored, index, below), self.residual_scale)

    def _feedforward(self, stored: StoredTensors, index: int) -> Feedforward | Experts:
        names, path = self.names, self.layers[index]
        if self.experts is not None and path in self.experts.layers:
            return self.experts.read(stored, path, self.activation)
        if names.gate_inner:
            both = self._map(stored, index, names.gate_inner)
            halves = slice(self.hidden), slice(self.hidden, None)
            gate, inner = (Dense(both.W[:, half], both.b[half]) for half in halves)
        else:
            gate = self._map(stored, index, names.gate) if names.gate else None
            inner = self._map(stored, index, names.inner)
        outer = self._residual_map(stored, index, names.outer)
        return Feedforward(inner, outer, gate, self.activation)

    def _inward_maps(self, stored: StoredTensors, index: int) -> list[Dense]:
        """Queries, keys and values of all heads."""
        names = self.names
        if not names.fused:
            return [
                self._map(stored, index, path) for path in (names.query, names.key, names.value)
            ]
        fused = self._map(stored, index, names.fused)
        if self.fused_by_head:
            heads = self.heads
            W, b = fused.W.reshape(len(fused.W), heads, 3, -1), fused.b.reshape(heads, 3, -1)
            return [Dense(W[:, :, i].reshape(len(W), -1), b[:, i].reshape(-1)) for i in range(3)]
        k, groups = self.size_of_heads, self.groups or self.heads
        ends = (0, self.heads * k, (self.heads + groups) * k, None)
        parts = [slice(*pair) for pair in itertools.pairwise(ends)]
        return [Dense(fused.W[:, part], fused.b[part]) for part in parts]

    def _block(self, stored: StoredTensors, index: int) -> AttentionBlock:
        path, names = self.layers[index], self.names

        def norm(below: str) -> Norm | None:
            return self.norm(stored, path + below) if below else None

        attention = attention_of(
            [*self._inward_maps(stored, index), self._residual_map(stored, index, names.output)],
            self.heads,
            causal=self.causal,
            groups=self.groups,
            scale=None if self.scales is None else self.scales[index],
            window=None if self.windows is None else self.windows[index],
            rotary=None if self.rotaries is None else self.rotaries[index],
            query_norm=norm(names.query_norm),
            key_norm=norm(names.key_norm),
            softcap=self.softcap,
            relative=None if self.relative is None else jnp.asarray(self.logits_of(stored)),
        )
        return AttentionBlock(
            turned_by(attention, self.turned_factor),
            norm(self._attention_norm(path)),
            norm(names.feedforward_norm),
            self.norm_placement,
            norm(names.attention_out_norm),
            norm(names.feedforward_out_norm),
        )
