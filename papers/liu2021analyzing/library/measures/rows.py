"""Attention rows of a translator, cut out of padded sentence pairs with their lengths.

Which rows are wanted is drawn first, from the lengths of the sentences alone. The rows then come
block by block, so that a million of them need no more memory than a block, and the same places
can be looked at in several models.
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas._jax.device_arrays import generator
from attlas.core.errors import UserError
from attlas.models.networks.translator import AttentionRows, Translator
from liu2021analyzing.library.data.translation_pairs import SentencePairs

KINDS = AttentionRows._fields


class RowPlaces(NamedTuple):
    """Where rows stand, in the order of their sentence pairs; one entry per row.

    Attributes:
        pair: sentence pair.
        kind: which attention, a number into `KINDS`.
        layer: of the attention.
        head: of the attention.
        query: the word that attends.
        length: p, the number of words it may attend to, which come first in the row.
    """

    pair: Int[np.ndarray, " r"]
    kind: Int[np.ndarray, " r"]
    layer: Int[np.ndarray, " r"]
    head: Int[np.ndarray, " r"]
    query: Int[np.ndarray, " r"]
    length: Int[np.ndarray, " r"]


def draw_rows(
    model: Translator, pairs: SentencePairs, count: int, key: PRNGKeyArray, least: int = 1
) -> RowPlaces:
    r"""Places of attention rows, drawn uniformly without repetition.

    A pair of s source pieces and t + 1 target pieces and marks has, in each layer and head, s
    rows of length s in the encoder, t rows of length s across, and rows of lengths 1 to t in the
    decoder: its queries are the t pieces from which a next one is predicted.

    Args:
        model: translator whose layers and heads are counted; its weights are not read.
        pairs: padded sentence pairs.
        count: number of rows; all there are, where they are fewer.
        least: rows of fewer weights are left out; the only weight of a row is always one.

    Raises:
        UserError: if count or least is below 1, or no row is long enough.

    Source: experiment 1 of liu2021analyzing.

    Examples:
        >>> from attlas.models.networks.translator import make_translator
        >>> model = make_translator(jax.random.key(0), (5, 5), 4, blocks=2, heads=2, hidden=3)
        >>> ids, shown = np.ones((1, 3), np.int32), np.array([[True, True, False]])
        >>> pairs = SentencePairs(ids, shown, ids, np.ones((1, 3), bool))
        >>> places = draw_rows(model, pairs, 99, jax.random.key(1))
        >>> np.bincount(places.kind).tolist(), np.bincount(places.length).tolist()
        ([8, 8, 8], [0, 4, 20])
    """
    if min(count, least) < 1:
        raise UserError(f"count = {count}, least = {least}: both must be at least 1")
    heads = model.encoder[0].own.heads
    source, target = pairs.mask.sum(axis=1), pairs.target_mask.sum(axis=1) - 1
    long_enough = source >= least
    queries = np.stack(
        [source * long_enough, np.maximum(target - (least - 1), 0), target * long_enough], axis=1
    )
    layers = np.array([len(model.encoder), len(model.decoder), len(model.decoder)])
    ends = np.cumsum((queries * layers * heads).ravel())
    total = int(ends[-1]) if ends.size else 0
    if total == 0:
        raise UserError(f"no attention row of {source.size} pairs has {least} weights: ask fewer")
    numbers = np.arange(total)
    if count < total:
        numbers = np.sort(generator(key).choice(total, count, replace=False, shuffle=False))
    group = np.searchsorted(ends, numbers, side="right")
    pair, kind = np.divmod(group, len(KINDS))
    query_counts = queries.ravel()[group]
    unit, query = np.divmod(
        numbers - (ends[group] - query_counts * layers[kind] * heads), query_counts
    )
    layer, head = np.divmod(unit, heads)
    query = np.where(kind == 1, query + least - 1, query)
    length = np.where(kind == 1, query + 1, source[pair])
    return RowPlaces(*(part.astype(np.int32) for part in (pair, kind, layer, head, query, length)))


def attention_rows(
    model: Translator,
    pairs: SentencePairs,
    places: RowPlaces,
    chunk: int = 32,
    quick_compile: bool = False,
) -> Iterator[tuple[Float[np.ndarray, "b W"], Int[np.ndarray, " b"]]]:
    """The rows at given places, one block for each chunk of sentence pairs.

    Args:
        pairs: the pairs of which the places were drawn.
        places: places of the rows, from `draw_rows`.
        chunk: pairs that go through the model at once; memory grows with it.
        quick_compile: let XLA optimise little, where compiling costs more than running.

    Yields:
        Weights, zero beyond their lengths, and the lengths: blocks of `streamed_concentration`,
        all together in the order of the places.

    Examples:
        >>> from attlas.models.networks.translator import make_translator
        >>> model = make_translator(jax.random.key(0), (5, 5), 4, blocks=1, heads=2, hidden=3)
        >>> ids, shown = np.ones((4, 3), np.int32), np.ones((4, 3), bool)
        >>> pairs = SentencePairs(ids, shown, ids, shown)
        >>> places = draw_rows(model, pairs, 20, jax.random.key(1))
        >>> blocks = list(attention_rows(model, pairs, places, chunk=2))
        >>> sum(lengths.size for _, lengths in blocks), blocks[0][0].shape[1]
        (20, 3)
    """
    if chunk < 1:
        raise UserError(f"chunk = {chunk} pairs at once: choose at least 1")
    maps_of = _maps_compiled_quickly if quick_compile else _maps
    used, local = np.unique(places.pair, return_inverse=True)
    width = max(pairs.source.shape[1], pairs.target.shape[1] - 1)
    for start in range(0, used.size, chunk):
        some = used[start : start + chunk]
        # The last chunk is filled up with its last pair: another shape would be compiled again.
        filled = some[np.minimum(np.arange(chunk), some.size - 1)]
        maps = maps_of(model, pairs.source[filled], pairs.mask[filled], pairs.target[filled, :-1])
        first, last = np.searchsorted(local, (start, start + some.size))
        block = RowPlaces(*(part[first:last] for part in places))
        yield _cut(maps, block, local[first:last] - start, width), block.length


def uniform_rows(
    places: RowPlaces, block: int = 16_384
) -> Iterator[tuple[Float[np.ndarray, "b W"], Int[np.ndarray, " b"]]]:
    """Uniform weights in place of a model's: what concentration must not be found in.

    Args:
        places: places of the rows, from `draw_rows`.
        block: rows that come at once.

    Yields:
        Weights 1 / p, zero beyond their lengths p, and the lengths.

    Examples:
        >>> one = np.zeros(1, np.int32)
        >>> next(uniform_rows(RowPlaces(one, one, one, one, one, np.array([4]))))[0].tolist()
        [[0.25, 0.25, 0.25, 0.25]]
    """
    for start in range(0, places.length.size, block):
        p = places.length[start : start + block]
        yield (np.arange(p.max()) < p[:, None]) / p[:, None], p


def sharpened_rows(rows: Float[np.ndarray, "b W"], factor: float) -> Float[np.ndarray, "b W"]:
    r"""softmax(r z) of rows softmax(z): each row alone at a temperature 1 / r.

    Args:
        rows: weights; zero beyond their lengths.
        factor: r, above 0.

    Returns:
        Rows of sum one; what precedes them in a model stays as it was.

    Examples:
        >>> sharpened_rows(np.array([[0.2, 0.8]]), 2.0).round(6).tolist()
        [[0.058824, 0.941176]]
    """
    powers = (rows / rows.max(axis=1, keepdims=True)) ** factor
    return powers / powers.sum(axis=1, keepdims=True)


def _cut(maps: AttentionRows, places: RowPlaces, local: np.ndarray, width: int) -> np.ndarray:
    rows = np.zeros((local.size, width), maps.encoder.dtype)
    for kind, weights in enumerate(maps):
        of_kind = places.kind == kind
        index = (part[of_kind] for part in (local, places.layer, places.head, places.query))
        rows[of_kind, : weights.shape[-1]] = np.asarray(weights)[tuple(index)]
    return rows


def _all_maps(model: Translator, source: Array, mask: Array, target: Array) -> AttentionRows:
    return jax.vmap(model.attention)(source, mask, target)


_maps = jax.jit(_all_maps)
_maps_compiled_quickly = jax.jit(_all_maps, compiler_options=CHEAP_COMPILATION)
