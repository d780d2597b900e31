r"""Sparse majority: the simulated data of section 6 of trauger2023sequence, as released.

A sequence of T fair bits has label 1 if most of the bits at s hidden positions are 1. The released
program embeds the bits in two orthogonal random directions, appends a third orthogonal [CLS] token,
divides each of the three by its l1 norm and adds sinusoidal positions. With d = 64 a content vector
has an l2 norm of about 0.14, and a position one of sqrt(d / 2) = 5.7.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Int8, Key, PRNGKeyArray

from attlas._jax.device_arrays import generator, on_device
from attlas.core.errors import UserError, refuse_unreadable
from attlas.core.memory import require_memory


class BitEmbedding(eqx.Module):
    r"""Tokens of a sequence of bits: x_t = e(b_t) + p_t, and the [CLS] token last.

    Attributes:
        zero: content of a bit 0.
        one: content of a bit 1.
        cls: content of [CLS].
        positions: p_0 ... p_T, the last for [CLS].
    """

    zero: Float[Array, "*e d"]
    one: Float[Array, "*e d"]
    cls: Float[Array, "*e d"]
    positions: Float[Array, "*e S d"]

    def __call__(self, bits: Int8[Array, " T"]) -> Float[Array, "S d"]:
        """Tokens of one sequence, [CLS] in the last of S = T + 1 rows."""
        content = jnp.where(bits[:, None] > 0, self.one[None, :], self.zero[None, :])
        return jnp.concatenate([content, self.cls[None, :]]) + self.positions


class SparseMajority(eqx.Module):
    """One draw of the data; an ensemble has a leading axis on every array.

    Attributes:
        labels: their classes, 0 or 1.
        indices: the s positions that decide.
    """

    bits: Int8[Array, "*e n T"]
    labels: Int[Array, "*e n"]
    validation_bits: Int8[Array, "*e n2 T"]
    validation_labels: Int[Array, "*e n2"]
    embedding: BitEmbedding
    indices: Int[Array, "*e s"]


class MajorityDesign(NamedTuple):
    """Settings of the data; the defaults are those released.

    Attributes:
        embedding_order: content vectors have norm one in this l_p; the released one is 1.
        paired: use the exponents 2 floor(i/2)/d of Vaswani et al. (2017) instead of the released
            i/d.
        position_scale: factor of the positions.
        distinct: no sequence occurs twice, so that none is in both sets.
    """

    train: int = 300
    validation: int = 10_000
    indices: int = 9
    dimension: int = 64
    embedding_order: float = 1.0
    paired: bool = False
    position_scale: float = 1.0
    distinct: bool = False


RELEASED = MajorityDesign()


def sinusoidal_positions(count: int, d: int, paired: bool = False) -> np.ndarray:
    r"""p_ji = sin(j 10000^(-i/d)) for even i and cos(j 10000^(-i/d)) for odd i.

    Args:
        paired: replace the exponent's i by 2 floor(i/2): the encoding of Vaswani et al. (2017).

    Returns:
        Positions [count, d] in float64.

    Examples:
        >>> sinusoidal_positions(2, 2).round(3).tolist()
        [[0.0, 1.0], [0.841, 1.0]]
        >>> sinusoidal_positions(2, 2, paired=True).round(3).tolist()
        [[0.0, 1.0], [0.841, 0.54]]
    """
    require_memory(8 * count * d, f"{count} positions of d = {d}", "give fewer")
    column = np.arange(d)
    exponent = (2 * (column // 2) if paired else column) / d
    angle = np.arange(count)[:, None] / 10_000.0 ** exponent[None, :]
    return np.where(column[None, :] % 2 == 0, np.sin(angle), np.cos(angle))


@refuse_unreadable
def make_sparse_majority(
    key: PRNGKeyArray, T: int, design: MajorityDesign = RELEASED, dtype: str = "float32"
) -> SparseMajority:
    r"""One draw: hidden positions, bits, embeddings; label 1 where the s bits sum to >= s/2.

    Args:
        T: bits per sequence; tokens are one more.

    Training and validation share one embedding, as in run_experiment.py of trauger2023sequence.

    Examples:
        >>> data = make_sparse_majority(jax.random.key(0), 20, MajorityDesign(validation=5))
        >>> X = jax.vmap(data.embedding)(data.bits)
        >>> X.shape
        (300, 21, 64)
        >>> print(f"{float(jnp.sum(jnp.abs(data.embedding.cls))):.4f}")
        1.0000
    """
    _require_design(T, design)
    draw = generator(key)
    indices = draw.choice(T, design.indices, replace=False)
    bits = _bits(draw, design.train + design.validation, T, design.distinct)
    labels = (2 * bits[:, indices].sum(axis=1) >= design.indices).astype(np.int32)
    content = _orthogonal(draw, design.dimension, design.embedding_order)
    positions = design.position_scale * sinusoidal_positions(T + 1, design.dimension, design.paired)
    embedding = BitEmbedding(*(jnp.asarray(a.astype(dtype)) for a in (*content, positions)))
    return SparseMajority(
        bits=jnp.asarray(bits[: design.train]),
        labels=jnp.asarray(labels[: design.train]),
        validation_bits=jnp.asarray(bits[design.train :]),
        validation_labels=jnp.asarray(labels[design.train :]),
        embedding=embedding,
        indices=jnp.asarray(indices.astype(np.int32)),
    )


@refuse_unreadable
def make_sparse_majorities(
    keys: Key[Array, " e"], T: int, design: MajorityDesign = RELEASED, dtype: str = "float32"
) -> SparseMajority:
    """`make_sparse_majority` for several keys, stacked along a leading axis.

    Args:
        keys: one random key per run.
        T: bits per sequence.

    Examples:
        >>> keys = jax.random.split(jax.random.key(0), 2)
        >>> make_sparse_majorities(keys, 9, MajorityDesign(validation=5)).bits.shape
        (2, 300, 9)
    """
    runs = [make_sparse_majority(key, T, design, dtype) for key in keys]
    return jax.tree.map(lambda *draws: on_device(np.stack(draws)), *runs)


def _bits(draw: np.random.Generator, count: int, T: int, distinct: bool) -> np.ndarray:
    """Fair bits; with `distinct`, a row that was seen before is redrawn."""
    bits = draw.integers(0, 2, (count, T), dtype=np.int8)
    while distinct:
        first = np.unique(bits, axis=0, return_index=True)[1]
        again = np.setdiff1d(np.arange(count), first)
        if again.size == 0:
            break
        bits[again] = draw.integers(0, 2, (again.size, T), dtype=np.int8)
    return bits


def _orthogonal(draw: np.random.Generator, d: int, order: float) -> list[np.ndarray]:
    """Three orthogonal vectors of l_p norm one: uniform draws, each cleared of those before."""
    vectors: list[np.ndarray] = []
    for raw in draw.uniform(-1, 1, (3, d)):
        vector = raw
        for earlier in vectors:
            vector = vector - (vector @ earlier) / (earlier @ earlier) * earlier
        vectors.append(vector)
    return [vector / np.linalg.norm(vector, order) for vector in vectors]


def _require_design(T: int, design: MajorityDesign) -> None:
    s, count = design.indices, design.train + design.validation
    if s % 2 == 0 or not 0 < s <= T:
        raise UserError(f"s = {s} of T = {T} positions: give an odd number of at most T")
    require_memory(count * T, f"{count} sequences of {T} bits", "make them shorter or fewer")
    if design.train < 1 or design.validation < 1:
        raise UserError(
            f"{design.train} training and {design.validation} validation sequences: "
            "give at least one of each"
        )
    if design.dimension < 3:
        raise UserError(
            f"d = {design.dimension} holds no three orthogonal embeddings: give at least 3"
        )
    if not design.embedding_order >= 1:
        raise UserError(f"embedding_order = {design.embedding_order} must be at least 1")
    # Above half of all sequences the redrawing of doubles becomes slow.
    if design.distinct and 2 * count > 2**T:
        raise UserError(
            f"{count} distinct sequences of T = {T} bits are over half of all: lower the counts"
        )
