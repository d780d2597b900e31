r"""What costs too much for every token: certificates, attacks and SVMs on a few short sequences."""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from attlas.audit.data_level.head_attack import ball_attack, local_attack
from attlas.audit.data_level.head_certificate import local_certificate
from attlas.audit.data_level.normalised_tokens import normalised_tokens
from attlas.audit.data_level.reduced_heads import read_rows, reduce_heads
from attlas.audit.data_level.selected_tokens import (
    HeadTokens,
    random_selection,
    selected_tokens,
)
from attlas.transformers.canonical import Attention, Dense, Norm
from attlas.transformers.folding import folded_attention
from attlas.transformers.forward import placed, projections, visible

SVM_SPACES = TOKEN_SPACE, QUERY_KEY_SPACE = "normalised tokens", "queries and keys"
"""Where attention SVMs are solved; margins of two spaces are not comparable."""


class ProbedLayer(NamedTuple):
    """A layer as it is read: what stands before its heads, and hidden states of some sequences.

    Attributes:
        norm: the norm whose gain and bias are folded into them, or None.
        projection: what stands between norm and heads, or None.
        layer_norm: the norm that the layer applies before it attends, or None.
        hidden: hidden states that enter the layer.
        start: a direction in which attacks begin.
    """

    attention: Attention
    norm: Norm | None
    projection: Dense | None
    layer_norm: Norm | None
    hidden: Float[Array, "s T d"]
    start: Float[Array, "T e"]


class SmoothHeads(NamedTuple):
    """Certificates, attacks and the sizes of logits, of each head.

    Attributes:
        local: certificate at the tokens of each sequence.
        local_attack: largest gain that power iteration reached there.
        ball_attack: largest gain that the ascent in the ball reached.
        folded: the heads as functions of normalised tokens.
        tokens: normalised tokens of each sequence.
    """

    local: Float[Array, "s H"]
    local_attack: Float[Array, "s H"]
    ball_attack: Float[Array, " H"]
    folded: Attention
    tokens: Float[Array, "s T e"]


@eqx.filter_jit
def smooth_heads(layer: ProbedLayer, local_steps: int, ball_steps: int) -> SmoothHeads:
    """How much the heads' outputs can change, proved and reached, as one program over heads.

    The ball is that of normalised tokens, of radius sqrt(d), where a norm stands before the
    heads; else it is the smallest one that holds the tokens of these sequences.

    Args:
        layer: heads and hidden states, in float64.
        ball_steps: steps of the ascent, which starts at the first sequence.
    """
    attention = folded_attention(layer.attention, layer.norm, layer.projection)
    read = layer.hidden if layer.layer_norm is None else layer.layer_norm(layer.hidden)
    tokens = normalised_tokens(read, layer.norm, layer.projection)
    radius = jnp.asarray(np.sqrt(tokens.shape[-1]), tokens.dtype)
    if layer.norm is None:
        radius = jnp.max(jnp.linalg.norm(tokens, axis=-1))
    heads, n = reduce_heads(attention), tokens.shape[1]
    seen = visible(attention, n)
    start = read_rows(heads, layer.start)

    def of_head(arguments: tuple[Any, Array, Array]) -> tuple[Array, Array, Array]:
        # The sequences are a batch within one head, whose factorisations they share.
        head, rows, u = arguments
        attack = partial(local_attack, attention, head, seen=seen, start=u, steps=local_steps)
        reached = jax.vmap(lambda y: attack(y=y)[0])(rows)
        bound = jax.vmap(lambda y: local_certificate(attention, head, y, seen))(rows)
        in_it = ball_attack(attention, head, rows[0], seen, radius, u, ball_steps).gain
        return bound, reached, in_it

    read_by = jnp.stack([read_rows(heads, x) for x in tokens], axis=1)
    local, reached, in_it = jax.lax.map(of_head, (heads, read_by, start))
    return SmoothHeads(local.T, reached.T, in_it, attention, tokens)


def selected_by_heads(
    layer: SmoothHeads, sequences: int, rows: int, draw: np.random.Generator
) -> dict[str, Float[np.ndarray, "s H"]]:
    """The attention SVM of the tokens that each head selects in some rows of each sequence.

    Args:
        rows: number of rows, at equal distances among those that see two tokens or more.
        draw: generator of the random selections that are the null.

    Returns:
        `svm_margin`, `svm_reached`, `svm_cosine`, in the space that `svm_space` names, and the
        same of random selections with `_null`; NaN where no row sees two tokens, and where
        positions add to the logits, so that no matrix alone selects.
    """
    attention, tokens_of = layer.folded, np.asarray(layer.tokens)[:sequences]
    names = ("margin", "reached", "cosine")
    heads = len(attention.group)
    useful = np.flatnonzero(np.array(visible(attention, tokens_of.shape[1])).sum(axis=1) > 1)
    if useful.size == 0 or attention.relative is not None:
        empty = np.full((len(tokens_of), heads), np.nan)
        return {f"svm_{name}{end}": empty.copy() for name in names for end in ("", "_null")}
    members = spread_rows(useful, rows)
    columns: dict[str, list[np.ndarray]] = {}
    for tokens in tokens_of:
        by_head = head_tokens(attention, tokens, members)
        null = random_selection(by_head.seen, heads, draw)
        for end, result in (
            ("", selected_tokens(by_head)),
            ("_null", selected_tokens(by_head, null)),
        ):
            for name in names:
                columns.setdefault(f"svm_{name}{end}", []).append(getattr(result, name))
    return {name: np.stack(values) for name, values in columns.items()}


def svm_space(attention: Attention) -> str:
    """The space in which the attention SVM of a layer's heads is solved.

    With rotated or normalised queries and keys a logit has no one matrix between two tokens.

    Returns:
        Of `SVM_SPACES` the second in that case, else the first.
    """
    bent = attention.rotary, attention.query_norm, attention.key_norm
    return SVM_SPACES[any(part is not None for part in bent)]


def spread_rows(useful: Int[np.ndarray, " m"], rows: int) -> Int[np.ndarray, " n"]:
    """Some of the rows, of which there is at least one, at equal distances.

    Examples:
        >>> spread_rows(np.arange(10), 2).tolist(), spread_rows(np.arange(1), 2).tolist()
        ([2, 7], [0])
    """
    return useful[np.unique(((np.arange(rows) + 0.5) / rows * useful.size).astype(int))]


def head_tokens(
    attention: Attention, tokens: Float[np.ndarray, "T e"], rows: Int[np.ndarray, " n"]
) -> HeadTokens:
    """A layer's heads on one sequence, as their attention SVM reads them.

    Args:
        rows: rows whose selections count.

    Returns:
        Tokens, queries and the matrix of each head, in the space that `svm_space` names.
    """
    seen = np.array(visible(attention, len(tokens)))[rows]
    if svm_space(attention) == QUERY_KEY_SPACE:
        raw = projections(attention, jnp.asarray(tokens))
        queries, keys = (np.asarray(a) for a in placed(attention, raw.queries, raw.keys))
        unit = np.eye(keys.shape[2])
        factors = [(attention.scale * unit, unit)] * len(keys)
        return HeadTokens(keys, queries[:, rows], factors, seen)
    W_Q, b_Q, W_K = (np.asarray(a) for a in (attention.W_Q, attention.b_Q, attention.W_K))
    matrices = [
        (attention.scale * W_K[g], np.concatenate([W_Q[h].T, b_Q[h][:, None]], axis=1))
        for h, g in enumerate(attention.group)
    ]
    queries = np.concatenate([tokens[rows], np.ones((rows.size, 1))], axis=1)
    return HeadTokens(tokens, queries, matrices, seen)
