"""Certified errors of sparse majority at sample sizes that were drawn, none of them extrapolated.

The bounds are uniform over balls that were fixed beforehand, so that training may stop reading
after `READ` sequences; the ramp risk is that on all m of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int8, Key

from attlas.bounds.generalisation.held_out_bound import held_out_bound
from attlas.core.piece_cache import cached_pieces
from attlas.data.sparse_majority import SparseMajority
from attlas.models.networks.single_layer_transformer import SingleLayerTransformer
from attlas.training.sparse_majority.certified_error import (
    ball_complexities,
    certified_error,
    ramp_risks,
)
from attlas.training.sparse_majority.outputs import majority_outputs
from attlas.training.sparse_majority.projected import ProjectedSettings, train_projected

READ = 1 << 16
"""Sequences that training reads at most."""
BLOCK = 100_000
"""Sequences whose risks are computed at once."""


class MeasuredCrossing(NamedTuple):
    """Bounds and errors by sample size m and, for the bounds, by family.

    Attributes:
        certified: bound on the error, at the best radius and margin.
        radius: the best radius.
        held_out: error of the model of the best of all bounds on fresh sequences.
        held_out_bound: exact binomial bound for it, from as many fresh sequences.
    """

    certified: Float[np.ndarray, "m f"]
    radius: Float[np.ndarray, "m f"]
    held_out: Float[np.ndarray, " m"]
    held_out_bound: Float[np.ndarray, " m"]


def measured_crossing(
    key: Key[Array, ""],
    data: SparseMajority,
    samples: Sequence[int],
    radii: Float[np.ndarray, " r"],
    margins: Float[np.ndarray, " g"],
    settings: ProjectedSettings,
    delta: float,
) -> MeasuredCrossing:
    """Train in every ball on the first m sequences, for each m, and bound the error from them.

    Args:
        data: training sequences, at least as many as the largest m.
        samples: sample sizes m, each at most `BLOCK` or a multiple of it.
        radii: radii of the balls of W_QK.
        delta: probability that some bound at one m fails.

    Returns:
        The bounds; each m is a separate statement.

    Examples:
        >>> from attlas.data.sparse_majority import MajorityDesign, make_sparse_majority
        >>> data = make_sparse_majority(jax.random.key(0), 3, MajorityDesign(40, 30, 1, 5))
        >>> settings, at = ProjectedSettings(steps=2, batch=4), np.array([0.5])
        >>> found = measured_crossing(jax.random.key(1), data, [20, 40], at, at, settings, 0.05)
        >>> found.certified.shape, bool((found.certified[1] < found.certified[0]).all())
        ((2, 6), True)
    """
    d, T = data.embedding.cls.shape[-1], data.bits.shape[1]
    sizes = np.array(samples, float)
    complexity = np.asarray(ball_complexities(radii, sizes, T, d))
    balls = jnp.asarray(radii.astype(data.embedding.cls.dtype))

    def rows(some: Iterable[int]) -> Iterator[tuple[np.ndarray, ...]]:
        models, read = None, 0
        for k, m in ((k, samples[k]) for k in some):
            if models is None or min(m, READ) != read:
                read = min(m, READ)
                part = eqx.tree_at(
                    lambda samples_of: (samples_of.bits, samples_of.labels),
                    data,
                    (data.bits[:read], data.labels[:read]),
                )
                models = train_projected(key, part, balls, settings)
            ramp = _ramp(models, data, data.bits[:m], data.labels[:m], margins)
            at = slice(k, k + 1)
            error = certified_error(ramp, complexity[:, at], sizes[at], margins, delta).error[:, 0]
            best = error.argmin(axis=0)
            winner = int(best[error.min(axis=0).argmin()])
            held_out = map(np.array, _held_out(models, data, winner, m, delta))
            yield (error.min(axis=0), radii[best], *held_out)

    columns = cached_pieces((sizes, radii, margins), len(sizes), rows, like=lambda: (0, 0, 0, 0))
    return MeasuredCrossing(*(np.array(column) for column in zip(*columns, strict=True)))


def _held_out(
    models: SingleLayerTransformer, data: SparseMajority, index: int, m: int, delta: float
) -> tuple[float, float]:
    """Error of one model on m fresh sequences, as far as there are, and the exact bound."""
    bits, labels = data.validation_bits[:m], data.validation_labels[:m]
    out = majority_outputs(jax.tree.map(lambda a: a[index], models), data.embedding, bits)
    tested, wrong = len(labels), int(jnp.sum(jnp.where(labels > 0, out, -out) <= 0))
    return wrong / tested, held_out_bound(wrong, tested, delta).bound


def _ramp(
    models: SingleLayerTransformer,
    data: SparseMajority,
    bits: Int8[Array, "m T"],
    labels: Array,
    margins: Float[np.ndarray, " g"],
) -> Float[np.ndarray, "r g"]:
    """Ramp risks on all sequences, in blocks of one size."""
    width = min(BLOCK, len(labels))
    blocks = [
        np.asarray(
            ramp_risks(
                models, data.embedding, bits[at : at + width], labels[at : at + width],
                jnp.asarray(margins),
            )[1],
            float,
        )
        for at in range(0, len(labels), width)
    ]  # fmt: skip
    return np.mean(blocks, axis=0)
