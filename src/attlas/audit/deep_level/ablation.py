r"""The exact loss when a head is ablated, under three replacements.

Layers before the ablated head are not computed again; the variants of a layer's heads pass the
layers behind it as one batch, of sequences of similar lengths.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from attlas.audit.sequence_loss import (
    COMPARED,
    JudgedBatch,
    sequence_losses,
    sequences_of,
    similar_lengths,
)
from attlas.transformers.canonical import Layer, Rotary
from attlas.transformers.forward import (
    attended,
    attention_input,
    attention_weights,
    complete_layer,
    head_outputs,
    visible,
)
from attlas.transformers.layer_pass import leave_layer
from attlas.transformers.trained_transformer import TrainedTransformer
from attlas.transformers.whole_model import whole_model

REPLACEMENTS = ("zero", "mean", "uniform")
"""What stands for the head: nothing; its mean output over the batch's tokens; its own values under
equal weights on the tokens that each token sees. Zero also removes a constant that other parts
may count on, and so overstates what the head does."""

_BYTES = 2**28
ROUNDING = 2.0**-8
"""Largest relative error of a weight that is rounded to bfloat16."""


class Ablation(NamedTuple):
    """Losses per sequence.

    Attributes:
        base: loss of the unchanged model.
        ablated: with one head ablated, by replacement.
        rounded: with every weight of the layers perturbed by a random share of at most `ROUNDING`.
    """

    base: Float[np.ndarray, " n"]
    ablated: Float[np.ndarray, "L H replacements n"]
    rounded: Float[np.ndarray, " n"]


def ablate_heads(
    model: TrainedTransformer,
    batch: JudgedBatch,
    progress: Callable[[int, int], None] = lambda done, all_: None,
) -> Ablation:
    r"""Loss of each sequence when each head is ablated, in the unit of the batch.

    Args:
        progress: called with the number of layers done, and of all layers.
    """
    weights = whole_model(model)  # every layer is passed many times: read once
    layers = [weights.layers[stored] for stored in weights.order]
    alike = [AlikeSequences(model, layers, batch, members) for members in similar_lengths(batch)]
    base = np.zeros(batch.tokens.shape[0])
    for group in alike:
        base[group.members] = group.judge(group.entering[-1])
    ablated = np.zeros((model.layers, model.heads_per_layer, len(REPLACEMENTS), base.size))
    for index, layer in enumerate(layers):
        means = [mean_head_outputs(layer, group.entering[index], group.present) for group in alike]
        share = np.array([group.present.sum() for group in alike]) / batch.present.sum()
        constant = sum(float(part) * mean for part, mean in zip(share, means, strict=True))
        for group in alike:
            ablated[index][:, :, group.members] = group.ablate(index, jnp.asarray(constant))
        progress(index + 1, model.layers)
    moved = [perturbed_weights(layer, seed) for seed, layer in enumerate(weights.layers)]
    rounded = np.zeros_like(base)
    for group in alike:
        rounded[group.members] = group.through([moved[stored] for stored in weights.order])
    return Ablation(base, ablated, rounded)


def perturbed_weights(layer: Layer, seed: int = 0) -> Layer:
    """A layer with perturbed weights, as rounding them to bfloat16 would.

    Weights that are stored in bfloat16 would be rounded to themselves: random shares stand in.

    Returns:
        Its weights times 1 + u, u uniform in [-`ROUNDING`, `ROUNDING`]; positions rotate as before.
    """
    draw = np.random.default_rng(seed)

    def moved(leaf: Any) -> Any:
        if not eqx.is_inexact_array(leaf):  # of rotations, too
            return leaf
        share = 1 + draw.uniform(-ROUNDING, ROUNDING, leaf.shape)
        return leaf * jnp.asarray(share, leaf.dtype)

    return jax.tree.map(moved, layer, is_leaf=lambda leaf: isinstance(leaf, Rotary))


class AlikeSequences:
    """Sequences of similar lengths, and their hidden states in the unchanged model."""

    def __init__(
        self,
        model: TrainedTransformer,
        layers: Sequence[Layer],
        batch: JudgedBatch,
        members: np.ndarray,
    ) -> None:
        part = sequences_of(batch, members)
        self.members, self.layers = members, layers
        self.present = jnp.asarray(part.present)
        self.judge = _Judge(model, part)
        self.entering = [model.embed_batch(part.tokens)]
        for layer in layers:
            self.entering.append(pass_layer(layer, self.entering[-1], self.present))
        self.judge.unchanged = self.entering[-1] if batch.kind in COMPARED else None

    def through(self, layers: Sequence[Layer]) -> Float[np.ndarray, " n"]:
        """Losses with other layers between the same embedding and the same readout."""
        x = self.entering[0]
        for layer in layers:
            x = pass_layer(layer, x, self.present)
        return self.judge(x)

    def ablate(
        self, index: int, constant: Float[Array, "H d"]
    ) -> Float[np.ndarray, "H replacements n"]:
        """Losses with each head of a layer ablated; the layers before it are not passed again."""
        layer, x = self.layers[index], self.entering[index]
        outputs = outputs_of(layer, x, self.present, constant)
        losses = []
        for heads in _blocks(len(layer.attention.group), x):
            variants = _ablate_each(layer, x, outputs, heads)
            for later in self.layers[index + 1 :]:
                variants = pass_layer(later, variants, self.present)
            losses.append(self.judge(variants).reshape(-1, len(REPLACEMENTS), self.members.size))
        return np.concatenate(losses)


def _blocks(heads: int, x: Float[Array, "n T d"]) -> list[np.ndarray]:
    """Heads that are ablated in one pass, so that the hidden states of all variants stay small."""
    most = max(1, _BYTES // (len(REPLACEMENTS) * x.size * x.dtype.itemsize))
    return np.array_split(np.arange(heads), -(-heads // most))


class JointAblation:
    """Losses of a batch with several heads replaced at once.

    A layer is read when it is passed, so that one is in memory at a time. Layers before the first
    replaced head are not passed again where the hidden states of all depths are small enough.
    """

    def __init__(self, model: TrainedTransformer, batch: JudgedBatch) -> None:
        self._model = model
        self._members = similar_lengths(batch)
        batches = [sequences_of(batch, members) for members in self._members]
        self._present = [jnp.asarray(group.present) for group in batches]
        self._judges = [_Judge(model, group) for group in batches]
        states = [model.embed_batch(group.tokens) for group in batches]
        size = sum(x.size * x.dtype.itemsize for x in states)
        self._entering = {0: states}
        for index in range(model.layers):
            layer = model.layer(index)
            states = [
                pass_layer(layer, x, present)
                for x, present in zip(states, self._present, strict=True)
            ]
            if size * (index + 2) <= _BYTES:
                self._entering[index + 1] = states
        if batch.kind in COMPARED:
            for judge, x in zip(self._judges, states, strict=True):
                judge.unchanged = x
        self._unchanged = self._losses(states)

    def __call__(
        self, heads: Sequence[tuple[int, int]], replacement: str
    ) -> Float[np.ndarray, "two n"]:
        """Loss of each sequence, unchanged and with the heads replaced.

        Args:
            heads: layer and head of each that is replaced, at least one.
            replacement: one of `REPLACEMENTS`; means are those of the model as it is changed below.
        """
        way = REPLACEMENTS.index(replacement)
        first = min(layer for layer, _ in heads)
        start = max(index for index in self._entering if index <= first)
        states = self._entering[start]
        for index in range(start, self._model.layers):
            members = [head for place, head in heads if place == index]
            states = self._leave(self._model.layer(index), states, members, way)
        return np.stack([self._unchanged, self._losses(states)])

    def _leave(
        self, layer: Layer, states: list[Array], heads: Sequence[int], way: int
    ) -> list[Array]:
        """Hidden states that leave a layer with some of its heads replaced."""
        pairs = list(zip(states, self._present, strict=True))
        if not heads:
            return [pass_layer(layer, x, present) for x, present in pairs]
        constant = jnp.zeros(states[0].shape[2], states[0].dtype)
        if REPLACEMENTS[way] == "mean":
            number = sum(int(present.sum()) for present in self._present)
            for x, present in pairs:
                mean = mean_head_outputs(layer, x, present)[jnp.array(heads)].sum(axis=0)
                constant = constant + mean * (int(present.sum()) / number)
        replaced = replaced_heads(layer, heads)
        return [leave_replaced(layer, x, present, replaced, constant, way) for x, present in pairs]

    def _losses(self, states: list[Array]) -> Float[np.ndarray, " n"]:
        losses = np.zeros(sum(members.size for members in self._members))
        for members, judge, x in zip(self._members, self._judges, states, strict=True):
            losses[members] = judge(x)
        return losses


class _Judge:
    """Loss per sequence of hidden states, one or several variants of the batch after each other."""

    def __init__(self, model: TrainedTransformer, batch: JudgedBatch) -> None:
        self.readout = model.readout
        self.batch = batch
        self.unchanged: Array | None = None

    def __call__(self, hidden: Float[Array, "variants_n T d"]) -> Float[np.ndarray, " variants_n"]:
        n = self.batch.tokens.shape[0]
        blocks = [hidden[k : k + n] for k in range(0, hidden.shape[0], n)]
        targets, counted = jnp.asarray(self.batch.targets), jnp.asarray(self.batch.counted)
        losses = [
            sequence_losses(self.readout, block, targets, counted, self.unchanged)
            for block in blocks
        ]
        return np.concatenate([np.asarray(group) for group in losses])


def pass_layer(
    layer: Layer, x: Float[Array, "variants_n T d"], present: Bool[Array, "n T"]
) -> Float[Array, "variants_n T d"]:
    """One layer on all variants, in equal blocks that keep the attention maps small."""
    rows, length = x.shape[:2]
    heads = len(layer.attention.group)
    most = max(1, _BYTES // (heads * length**2 * x.dtype.itemsize))
    blocks = -(-rows // most)
    size = -(-rows // blocks)
    there = jnp.tile(present, (rows // present.shape[0], 1))
    lacking = blocks * size - rows
    if lacking:  # whole blocks share one compiled program
        x = jnp.concatenate([x, x[:lacking]])
        there = jnp.concatenate([there, there[:lacking]])
    pieces = [
        leave_layer(layer, x[k : k + size], there[k : k + size])
        for k in range(0, blocks * size, size)
    ]
    return (jnp.concatenate(pieces) if len(pieces) > 1 else pieces[0])[:rows]


@eqx.filter_jit
def mean_head_outputs(
    layer: Layer, x: Float[Array, "n T d"], present: Bool[Array, "n T"]
) -> Float[Array, "H d"]:
    """Mean output of each head over the tokens of a batch."""

    def total(carry: Array, row: tuple[Array, Array]) -> tuple[Array, None]:
        rows, there = row
        read = attention_input(layer, rows)
        weights = attention_weights(layer.attention, read, there)
        mean = jnp.einsum("hij,i->hj", weights, there.astype(rows.dtype))
        # the outputs are linear in the weights: one row of summed weights per head suffices
        return carry + head_outputs(layer.attention, mean[:, None], read)[:, 0], None

    start = jnp.zeros((len(layer.attention.group), x.shape[2]), x.dtype)
    summed, _ = jax.lax.scan(total, start, (x, present))
    return summed / jnp.sum(present).astype(x.dtype)


class _Outputs(NamedTuple):
    """What the attention of a layer adds: the sum, each head's part and its replacements."""

    attended: Float[Array, "n T d"]
    heads: Float[Array, "H n T d"]
    constant: Float[Array, "H d"]
    uniform: Float[Array, "H n T d"]


@eqx.filter_jit
def outputs_of(
    layer: Layer,
    x: Float[Array, "n T d"],
    present: Bool[Array, "n T"],
    constant: Float[Array, "H d"],
) -> _Outputs:
    """The outputs on a batch, one sequence after the other."""

    def of_sequence(row: tuple[Array, Array]) -> tuple[Array, Array]:
        rows, there = row
        read = attention_input(layer, rows)
        weights = attention_weights(layer.attention, read, there)
        equal = visible(layer.attention, rows.shape[0], there).astype(rows.dtype)
        equal = equal / jnp.sum(equal, axis=-1, keepdims=True)
        alike = jnp.broadcast_to(equal[None], weights.shape)
        return (
            head_outputs(layer.attention, weights, read),
            head_outputs(layer.attention, alike, read),
        )

    output, uniform = (jnp.swapaxes(part, 0, 1) for part in jax.lax.map(of_sequence, (x, present)))
    attended = jnp.sum(output, axis=0) + layer.attention.b_O[None, None]
    return _Outputs(attended, output, constant, uniform)


def replaced_heads(layer: Layer, heads: Sequence[int]) -> Bool[np.ndarray, " H"]:
    """Which heads of a layer are among some; one program serves all sets of them."""
    return np.isin(np.arange(len(layer.attention.group)), list(heads))


@eqx.filter_jit
def leave_replaced(
    layer: Layer,
    x: Float[Array, "n T d"],
    present: Bool[Array, "n T"],
    replaced: Bool[Array | np.ndarray, " H"],
    constant: Float[Array, " d"],
    way: int,
) -> Float[Array, "n T d"]:
    """Hidden states that leave the layer with some heads replaced together.

    Args:
        constant: what the heads' means add, where these replace them; else zeros.
        way: place in `REPLACEMENTS`.
    """

    def of_sequence(row: tuple[Array, Array]) -> Array:
        rows, there = row
        read = attention_input(layer, rows)
        weights = attention_weights(layer.attention, read, there)
        stand = jnp.zeros_like(weights[0])
        if REPLACEMENTS[way] == "uniform":
            equal = visible(layer.attention, rows.shape[0], there).astype(rows.dtype)
            stand = equal / jnp.sum(equal, axis=-1, keepdims=True)
        weights = jnp.where(jnp.asarray(replaced)[:, None, None], stand[None], weights)
        return complete_layer(
            layer, rows, attended(layer.attention, weights, read) + constant[None]
        )

    return jax.lax.map(of_sequence, (x, present))


@eqx.filter_jit
def _ablate_each(
    layer: Layer, x: Float[Array, "n T d"], outputs: _Outputs, heads: Array | np.ndarray
) -> Float[Array, "heads_replacements_n T d"]:
    """Hidden states that leave the layer with some heads replaced, one at a time."""

    def of_head(head: Array) -> Array:
        others = outputs.attended - outputs.heads[head]
        stands = (
            jnp.zeros_like(others),
            jnp.broadcast_to(outputs.constant[head], others.shape),
            outputs.uniform[head],
        )
        complete = jax.vmap(complete_layer, in_axes=(None, 0, 0))
        return jnp.stack([complete(layer, x, others + replacement) for replacement in stands])

    return jax.lax.map(of_head, jnp.asarray(heads)).reshape(-1, *x.shape[1:])
