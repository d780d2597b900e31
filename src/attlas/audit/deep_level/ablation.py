r"""The loss after removing a head, exactly, under three replacements.

Layers before the removed head are not computed again; the variants of a layer's heads pass the
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
        base: of the unchanged model.
        removed: without one head, by replacement.
        rounded: with every weight of the layers moved by a random share of at most `ROUNDING`.
    """

    base: Float[np.ndarray, " n"]
    removed: Float[np.ndarray, "L H replacements n"]
    rounded: Float[np.ndarray, " n"]


def ablate_heads(
    model: TrainedTransformer,
    batch: JudgedBatch,
    progress: Callable[[int, int], None] = lambda done, all_: None,
) -> Ablation:
    r"""Loss of each sequence after removing each head.

    Args:
        model: the model.
        batch: sequences and their loss.
        progress: told how many layers of how many are done.

    Returns:
        The losses, in the unit of the batch.
    """
    whole = whole_model(model)  # every layer is passed many times: read once
    layers = [whole.layers[stored] for stored in whole.order]
    alike = [_Alike(model, layers, batch, members) for members in similar_lengths(batch)]
    base = np.zeros(batch.tokens.shape[0])
    for each in alike:
        base[each.members] = each.judge(each.entering[-1])
    removed = np.zeros((model.layers, model.heads_per_layer, len(REPLACEMENTS), base.size))
    for index, layer in enumerate(layers):
        means = [mean_head_outputs(layer, each.entering[index], each.present) for each in alike]
        share = np.array([each.present.sum() for each in alike]) / batch.present.sum()
        constant = sum(float(part) * mean for part, mean in zip(share, means, strict=True))
        for each in alike:
            removed[index][:, :, each.members] = each.without(index, jnp.asarray(constant))
        progress(index + 1, model.layers)
    moved = [moved_weights(layer, seed) for seed, layer in enumerate(whole.layers)]
    rounded = np.zeros_like(base)
    for each in alike:
        rounded[each.members] = each.through([moved[stored] for stored in whole.order])
    return Ablation(base, removed, rounded)


def moved_weights(layer: Layer, seed: int = 0) -> Layer:
    """A layer whose weights are moved by random shares, as rounding them to bfloat16 would.

    Weights that are stored in bfloat16 would be rounded to themselves: shares are drawn.

    Args:
        layer: the layer.
        seed: of the draw.

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


class _Alike:
    """Sequences of similar lengths, and their rows in the unchanged model."""

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
            self.entering.append(_pass(layer, self.entering[-1], self.present))
        self.judge.unchanged = self.entering[-1] if batch.kind in COMPARED else None

    def through(self, layers: Sequence[Layer]) -> Float[np.ndarray, " n"]:
        """Losses with other layers between the same embedding and the same readout."""
        x = self.entering[0]
        for layer in layers:
            x = _pass(layer, x, self.present)
        return self.judge(x)

    def without(
        self, index: int, constant: Float[Array, "H d"]
    ) -> Float[np.ndarray, "H replacements n"]:
        """Losses after removing each head of a layer; the layers before it are not passed again."""
        layer, x = self.layers[index], self.entering[index]
        parts = _parts_of(layer, x, self.present, constant)
        found = []
        for heads in _blocks(len(layer.attention.group), x):
            variants = _without_heads(layer, x, parts, heads)
            for later in self.layers[index + 1 :]:
                variants = _pass(later, variants, self.present)
            found.append(self.judge(variants).reshape(-1, len(REPLACEMENTS), self.members.size))
        return np.concatenate(found)


def _blocks(heads: int, x: Float[Array, "n T d"]) -> list[np.ndarray]:
    """Heads that are removed in one pass, so that the hidden rows of all variants stay small."""
    most = max(1, _BYTES // (len(REPLACEMENTS) * x.size * x.dtype.itemsize))
    return np.array_split(np.arange(heads), -(-heads // most))


def ablate_together(
    model: TrainedTransformer,
    batch: JudgedBatch,
    heads: Sequence[tuple[int, int]],
    replacement: str,
) -> Float[np.ndarray, "two n"]:
    """Loss of each sequence, unchanged and with several heads replaced at once.

    Args:
        model: the model.
        batch: sequences and their loss.
        heads: layer and head of each that is replaced.
        replacement: one of `REPLACEMENTS`; means are those of the model as it is changed below.

    Returns:
        The losses before and after, in the unit of the batch.
    """
    present = jnp.asarray(batch.present)
    way = REPLACEMENTS.index(replacement)
    judge = _Judge(model, batch)
    x = changed = model.embed_batch(batch.tokens)
    for index in range(model.layers):
        layer = model.layer(index)
        x = _pass(layer, x, present)
        chosen = [head for place, head in heads if place == index]
        if not chosen:
            changed = _pass(layer, changed, present)
            continue
        parts = _parts_of(layer, changed, present, mean_head_outputs(layer, changed, present))
        changed = _without_all(layer, changed, parts, jnp.array(chosen), way)
    judge.unchanged = x if batch.kind in COMPARED else None
    return np.stack([judge(x), judge(changed)])


class _Judge:
    """Loss per sequence of hidden rows, one or several variants of the batch after each other."""

    def __init__(self, model: TrainedTransformer, batch: JudgedBatch) -> None:
        self.readout = model.readout
        self.batch = batch
        self.unchanged: Array | None = None

    def __call__(self, hidden: Float[Array, "variants_n T d"]) -> Float[np.ndarray, " variants_n"]:
        n = self.batch.tokens.shape[0]
        blocks = [hidden[k : k + n] for k in range(0, hidden.shape[0], n)]
        targets, counted = jnp.asarray(self.batch.targets), jnp.asarray(self.batch.counted)
        found = [
            sequence_losses(self.readout, block, targets, counted, self.unchanged)
            for block in blocks
        ]
        return np.concatenate([np.asarray(each) for each in found])


def _pass(
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
    parts = [
        leave_layer(layer, x[k : k + size], there[k : k + size])
        for k in range(0, blocks * size, size)
    ]
    return (jnp.concatenate(parts) if len(parts) > 1 else parts[0])[:rows]


@eqx.filter_jit
def mean_head_outputs(
    layer: Layer, x: Float[Array, "n T d"], present: Bool[Array, "n T"]
) -> Float[Array, "H d"]:
    """Mean output of each head over the tokens of a batch.

    Args:
        layer: the layer.
        x: hidden rows that enter it.
        present: which tokens are no padding.

    Returns:
        One row per head.
    """

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


class _Parts(NamedTuple):
    """What the attention of a layer adds, taken apart: the sum and each head's replacements."""

    attended: Float[Array, "n T d"]
    own: Float[Array, "H n T d"]
    constant: Float[Array, "H d"]
    uniform: Float[Array, "H n T d"]


@eqx.filter_jit
def _parts_of(
    layer: Layer,
    x: Float[Array, "n T d"],
    present: Bool[Array, "n T"],
    constant: Float[Array, "H d"],
) -> _Parts:
    """The parts on a batch, one sequence after the other."""

    def one(row: tuple[Array, Array]) -> tuple[Array, Array]:
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

    own, uniform = (jnp.swapaxes(part, 0, 1) for part in jax.lax.map(one, (x, present)))
    attended = jnp.sum(own, axis=0) + layer.attention.b_O[None, None]
    return _Parts(attended, own, constant, uniform)


@eqx.filter_jit
def _without_all(
    layer: Layer, x: Float[Array, "n T d"], parts: _Parts, heads: Array, way: int
) -> Float[Array, "n T d"]:
    """Hidden rows that leave the layer with some heads replaced together."""
    own, uniform = parts.own[heads].sum(axis=0), parts.uniform[heads].sum(axis=0)
    constant = jnp.broadcast_to(parts.constant[heads].sum(axis=0), x.shape)
    stand = (jnp.zeros_like(x), constant, uniform)[way]
    return jax.vmap(complete_layer, in_axes=(None, 0, 0))(layer, x, parts.attended - own + stand)


@eqx.filter_jit
def _without_heads(
    layer: Layer, x: Float[Array, "n T d"], parts: _Parts, heads: Array | np.ndarray
) -> Float[Array, "heads_replacements_n T d"]:
    """Hidden rows that leave the layer with some heads replaced, one at a time."""

    def one(head: Array) -> Array:
        others = parts.attended - parts.own[head]
        stands = (
            jnp.zeros_like(others),
            jnp.broadcast_to(parts.constant[head], others.shape),
            parts.uniform[head],
        )
        complete = jax.vmap(complete_layer, in_axes=(None, 0, 0))
        return jnp.stack([complete(layer, x, others + each) for each in stands])

    return jax.lax.map(one, jnp.asarray(heads)).reshape(-1, *x.shape[1:])
