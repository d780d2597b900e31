r"""How one layer carries a change of a head's weights: tangents forwards, then of the gradient.

A Hessian product H v is the change of the gradient when the weights change by v. Both pass the
model layer by layer, so that no more than one layer is linearised at a time; what does not depend
on v is computed once for the vectors of all heads. A change of a head's matrices enters as what
it adds to queries, keys, values and outputs, and touches no other head.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attlas.audit.sequence_loss import sequence_losses
from attlas.transformers.canonical import Attention, Layer, Readout
from attlas.transformers.forward import (
    Projections,
    attention_input,
    compare_heads,
    complete_layer,
    mix_values,
    projections,
    seen_softmax,
    unite_heads,
    visible,
)


class HeadVectors(NamedTuple):
    """One vector per head: a change of its own matrices.

    Attributes:
        Q: of W_Q.
        K: of W_K, of the head's key/value group.
        V: of W_V, likewise.
        O: of W_O.
        head: which head each vector belongs to.
        group: and its group.
    """

    Q: Float[Array, "B d k"]
    K: Float[Array, "B d k"]
    V: Float[Array, "B d v"]
    O: Float[Array, "B v out"]
    head: Int[Array, " B"]
    group: Int[Array, " B"]


class _Added(NamedTuple):
    """What stands beside the projections of a layer, and beside its output."""

    projected: Projections
    output: Float[Array, "T out"]


class _Passed(NamedTuple):
    """A layer's hidden states: those that leave, the input of its heads, and the mixed values."""

    leaving: Float[Array, "T d"]
    read: Float[Array, "T d"]
    mixed: Float[Array, "H T v"]


def _pass(layer: Layer, x: Array, added: _Added, present: Array) -> _Passed:
    """The layer on one sequence, with something added inside."""
    attention = layer.attention
    read = attention_input(layer, x)
    queries, keys, values = jax.tree.map(jnp.add, projections(attention, read), added.projected)
    logits = compare_heads(attention, queries, keys)
    mixed = mix_values(
        attention, seen_softmax(logits, visible(attention, x.shape[0], present)), values
    )
    output = unite_heads(attention, mixed) + added.output
    return _Passed(complete_layer(layer, x, output), read, mixed)


def _nothing(attention: Attention, x: Array) -> _Added:
    """Nothing is added."""

    def zeros(weights: Array) -> Array:
        return jnp.zeros((weights.shape[0], x.shape[0], weights.shape[2]), x.dtype)

    zero = Projections(zeros(attention.W_Q), zeros(attention.W_K), zeros(attention.W_V))
    return _Added(zero, jnp.zeros((x.shape[0], attention.W_O.shape[2]), x.dtype))


def _added_by(vector: HeadVectors, at: _Passed, nothing: _Added) -> _Added:
    """What a change of one head's matrices adds, to first order."""
    zero = nothing.projected
    return _Added(
        Projections(
            zero.queries.at[vector.head].set(at.read @ vector.Q),
            zero.keys.at[vector.group].set(at.read @ vector.K),
            zero.values.at[vector.group].set(at.read @ vector.V),
        ),
        at.mixed[vector.head] @ vector.O,
    )


@eqx.filter_jit
def tangents(
    layer: Layer,
    x: Float[Array, "n T d"],
    present: Bool[Array, "n T"],
    moved: Float[Array, "n B T d"],
    vectors: HeadVectors | None,
) -> Float[Array, "n B T d"]:
    """Change of the hidden states that leave a layer, for B changes of the model.

    Args:
        vectors: change of the layer's own heads; None where its weights stay.
    """

    def of_sequence(row: tuple[Array, Array, Array]) -> Array:
        x, there, dx = row
        nothing = _nothing(layer.attention, x)
        at, line = jax.linearize(lambda x, added: _pass(layer, x, added, there), x, nothing)
        if vectors is None:
            return jax.vmap(lambda dx: line(dx, nothing).leaving)(dx)
        along = jax.vmap(lambda dx, vector: line(dx, _added_by(vector, at, nothing)).leaving)
        return along(dx, vectors)

    return jax.lax.map(of_sequence, (x, present, moved))


class Slopes(NamedTuple):
    """The gradient of the loss in the hidden states that enter a layer, and its change.

    Attributes:
        slope: of each sequence's loss.
        moved: one change per vector.
    """

    slope: Float[Array, "n T d"]
    moved: Float[Array, "n B T d"]


@eqx.filter_jit
def last_slopes(
    readout: Readout,
    hidden: Float[Array, "n T d"],
    moved: Float[Array, "n B T d"],
    targets: Int[Array, "n T"],
    counted: Bool[Array, "n T"],
    unchanged: Float[Array, "n T d"] | None,
) -> Slopes:
    """Slopes of the mean loss in the hidden states that leave the last layer.

    Args:
        counted: True where a token counts for the loss.
        unchanged: hidden states of the unchanged model, for a loss against its own output.
    """
    n = hidden.shape[0]

    def of_sequence(row: tuple[Array, ...]) -> tuple[Array, Array]:
        rows, changes, *judged = row

        def loss(rows: Array) -> Array:
            return (
                sequence_losses(readout, rows[None], *(argument[None] for argument in judged))[0]
                / n
            )

        slope, line = jax.linearize(jax.grad(loss), rows)
        return slope, jax.lax.map(line, changes)

    judged = (targets, counted) if unchanged is None else (targets, counted, unchanged)
    return Slopes(*jax.lax.map(of_sequence, (hidden, moved, *judged)))


@eqx.filter_jit
def earlier_slopes(
    layer: Layer,
    x: Float[Array, "n T d"],
    present: Bool[Array, "n T"],
    moved: Float[Array, "n B T d"],
    later: Slopes,
    vectors: HeadVectors | None,
) -> tuple[Slopes, HeadVectors | None]:
    """Slopes in the hidden states that enter a layer, from those that leave it.

    Returns:
        The slopes, and the change of the loss's gradient in each vector's own head.
    """

    def of_sequence(row: tuple[Array, ...]) -> tuple[Array, Array, HeadVectors | None]:
        x, there, dx, slope, changes = row
        nothing = _nothing(layer.attention, x)

        def back(x: Array, added: _Added, wanted: _Passed) -> tuple[Array, _Added, _Passed]:
            at, pull = jax.vjp(lambda x, added: _pass(layer, x, added, there), x, added)
            return *pull(wanted), at

        shapes = jax.eval_shape(lambda: _pass(layer, x, nothing, there))
        none = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        (before, inner, at), line = jax.linearize(back, x, nothing, none._replace(leaving=slope))

        def along(dx: Array, change: Array, vector: HeadVectors) -> tuple[Array, HeadVectors]:
            wanted = _wanted_by(vector, inner, none)._replace(leaving=change)
            d_before, d_inner, d_at = line(dx, _added_by(vector, at, nothing), wanted)
            return d_before, _own_part(vector, at, d_at, inner, d_inner)

        if vectors is None:
            still = jax.vmap(lambda dx, change: line(dx, nothing, none._replace(leaving=change))[0])
            return before, still(dx, changes), None
        return before, *jax.vmap(along)(dx, changes, vectors)

    before, d_before, of_heads = jax.lax.map(
        of_sequence, (x, present, moved, later.slope, later.moved)
    )
    if vectors is None:
        return Slopes(before, d_before), None
    summed = [part.sum(axis=0) for part in of_heads[:4]]
    of_heads = HeadVectors._make([*summed, vectors.head, vectors.group])
    return Slopes(before, d_before), of_heads


def _wanted_by(vector: HeadVectors, inner: _Added, none: _Passed) -> _Passed:
    """Change of the slopes in what a head reads and mixes, as its matrices change."""
    q, k, v = inner.projected
    return none._replace(
        read=q[vector.head] @ vector.Q.T
        + k[vector.group] @ vector.K.T
        + v[vector.group] @ vector.V.T,
        mixed=none.mixed.at[vector.head].set(inner.output @ vector.O.T),
    )


def _own_part(
    vector: HeadVectors, at: _Passed, d_at: _Passed, inner: _Added, d_inner: _Added
) -> HeadVectors:
    """Change of the gradient in the head's matrices: both factors of each product rule."""

    def product(rows: Array, d_rows: Array, slopes: Array, d_slopes: Array) -> Array:
        return d_rows.T @ slopes + rows.T @ d_slopes

    places = (vector.head, vector.group, vector.group)
    projected = [
        product(at.read, d_at.read, slopes[place], d_slopes[place])
        for slopes, d_slopes, place in zip(inner.projected, d_inner.projected, places, strict=True)
    ]
    mixed, d_mixed = at.mixed[vector.head], d_at.mixed[vector.head]
    output = product(mixed, d_mixed, inner.output, d_inner.output)
    return HeadVectors._make([*projected, output, vector.head, vector.group])
