r"""Products with the Hessian of the mean loss in the weights of single heads, layer by layer."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from attlas.audit.deep_level.layer_tangents import (
    HeadVectors,
    earlier_slopes,
    last_slopes,
    tangents,
)
from attlas.audit.sequence_loss import COMPARED, JudgedBatch
from attlas.transformers.forward import embed_sequences
from attlas.transformers.layer_pass import leave_layer
from attlas.transformers.whole_model import WholeModel

_BYTES = 2**28


class HeadHessians:
    """Hessians in the heads of one stored layer, those of other heads held fixed.

    A head's weights are W_Q, W_K, W_V, W_O in a row, with the keys and values of its group.
    """

    def __init__(self, weights: WholeModel, batch: JudgedBatch) -> None:
        self.whole, self.batch = weights, batch
        self.present = jnp.asarray(batch.present)
        self.rows = [embed_sequences(weights.embedding, jnp.asarray(batch.tokens))]
        for stored in weights.order:
            self.rows.append(leave_layer(weights.layers[stored], self.rows[-1], self.present))

    def size(self, stored: int) -> int:
        """Number of weights of a head."""
        return sum(int(np.prod(shape)) for shape in self._shapes(stored))

    def together(self, stored: int) -> int:
        """How many heads' vectors are taken at once, so that what they change stays small."""
        passed = len(self.whole.order) - self.whole.order.index(stored) + 1
        heads, length = len(self.whole.layers[stored].attention.group), self.batch.tokens.shape[1]
        rows = self.rows[0]
        size = (2 * passed * rows.size + 16 * heads * length**2) * rows.dtype.itemsize
        return int(np.clip(_BYTES // size, 1, heads))

    def products(
        self, stored: int, heads: np.ndarray
    ) -> Callable[[Float[np.ndarray, "B P"]], Float[np.ndarray, "B P"]]:
        """The map from one vector per head of a stored layer to H v in that head's own weights."""
        group = np.array(self.whole.layers[stored].attention.group)[heads]
        shapes = self._shapes(stored)
        cuts = np.cumsum([np.prod(shape) for shape in shapes])[:-1]

        def product(vectors: Float[np.ndarray, "B P"]) -> Float[np.ndarray, "B P"]:
            matrices = [
                jnp.asarray(part.reshape(-1, *shape), self.rows[0].dtype)
                for part, shape in zip(np.split(vectors, cuts, axis=1), shapes, strict=True)
            ]
            tangents = HeadVectors._make([*matrices, jnp.asarray(heads), jnp.asarray(group)])
            result = self._product(stored, tangents)
            flat = [np.asarray(part).reshape(len(heads), -1) for part in result[:4]]
            return np.concatenate(flat, axis=1)

        return product

    def _shapes(self, stored: int) -> list[tuple[int, ...]]:
        attention = self.whole.layers[stored].attention
        matrices = attention.W_Q, attention.W_K, attention.W_V, attention.W_O
        return [part.shape[1:] for part in matrices]

    def _product(self, stored: int, vectors: HeadVectors) -> HeadVectors:
        """Forwards from the layer's first use, then backwards to it."""
        order, layers, present = self.whole.order, self.whole.layers, self.present
        # What lies before the first use of a layer does not move with its weights.
        first = order.index(stored)
        rows = self.rows[first]
        moved = [jnp.zeros((rows.shape[0], len(vectors.head), *rows.shape[1:]), rows.dtype)]
        of_layer = [vectors if used == stored else None for used in order]
        for index in range(first, len(order)):
            at = layers[order[index]], self.rows[index], present
            moved.append(tangents(*at, moved[-1], of_layer[index]))
        batch = self.batch
        unchanged = self.rows[-1] if batch.kind in COMPARED else None
        judged = jnp.asarray(batch.targets), jnp.asarray(batch.counted), unchanged
        slopes = last_slopes(self.whole.readout, self.rows[-1], moved.pop(), *judged)
        total = jax.tree.map(jnp.zeros_like, vectors)
        for index in range(len(order) - 1, first - 1, -1):
            at = layers[order[index]], self.rows[index], present
            slopes, part = earlier_slopes(*at, moved.pop(), slopes, of_layer[index])
            if part is not None:
                total = _sum(total, part)
        return total


@eqx.filter_jit
def _sum(first: HeadVectors, second: HeadVectors) -> HeadVectors:
    added = [a + b for a, b in zip(first[:4], second[:4], strict=True)]
    return HeadVectors._make([*added, first.head, first.group])
