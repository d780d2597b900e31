r"""Multi-head attention with groups of equal heads: any number of heads at no cost.

Heads that start equal stay equal under full-batch gradient descent. After the randomised first
step of deora2023optimization (section 5.1) heads differ only in their sign, so H heads are two
groups for any H.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from attlas._jax.device_arrays import generator
from attlas.core.errors import UserError
from attlas.models.attention.multi_head import MultiHead, head_norms


class RepeatedHeads(eqx.Module):
    r"""Phi(X) = H^(-1/2) sum_g m_g <U_g, softmax(X W_g X') X>, with H = sum_g m_g.

    The parameters are z_g = sqrt(m_g) theta_g: their gradient descent is that of all H heads, and
    their Euclidean norm and distances are those of all H heads.

    Attributes:
        U: sqrt(m_g) times the decoders of the groups.
        W: sqrt(m_g) times their key-query matrices.
        copies: m_g, the number of equal heads; a group may be empty.

    Examples:
        >>> model = RepeatedHeads(2 * jnp.ones((1, 1, 1)), jnp.zeros((1, 1, 1)), jnp.array([4]))
        >>> float(model(jnp.array([[3.0]])))  # four heads with U = 1: 4 * 3 / sqrt(4)
        6.0
    """

    U: Float[Array, "*e G T d"]
    W: Float[Array, "*e G d d"]
    copies: Int[Array, "*e G"]

    def __call__(self, X: Float[Array, "T d"]) -> Float[Array, ""]:
        """The output on one sample."""
        copies = self.copies.astype(X.dtype)
        mixed = self.distinct.attention(X) @ X
        outputs = jnp.sum(self.U * mixed, axis=(-2, -1))
        return jnp.sum(outputs * jnp.sqrt(copies)) / jnp.sqrt(jnp.sum(copies))

    @property
    def distinct(self) -> MultiHead:
        """One head theta_g of every group; its own output has no meaning."""
        # An empty group keeps its parameters, which no output depends on.
        copies = jnp.maximum(self.copies, 1).astype(self.W.dtype)
        root = jnp.sqrt(copies)[..., None, None]
        return MultiHead(self.U / root, self.W / root)

    @property
    def largest_head(self) -> Float[Array, ""]:
        """||theta||_{2,inf}, over the groups that are not empty."""
        return jnp.max(jnp.where(self.copies > 0, head_norms(self.distinct), 0))


def repeat_signed_head(key: PRNGKeyArray, head: MultiHead, heads: int) -> RepeatedHeads:
    r"""H heads that are theta or -theta with equal probability: two groups.

    With the one head of `one_step_initialisation` this is the start of the second phase of
    deora2023optimization for any H; the sizes of the groups are drawn from the binomial law.

    Args:
        key: random key of the signs.
        head: a model with one head and a full decoder.
        heads: H, from 1 to 2^62.

    Examples:
        >>> import jax
        >>> head = MultiHead(jnp.ones((1, 1, 1)), jnp.zeros((1, 1, 1)))
        >>> model = repeat_signed_head(jax.random.key(0), head, 10)
        >>> int(model.copies.sum()), model.distinct.U[:, 0, 0].round(6).tolist()
        (10, [1.0, -1.0])
    """
    if head.heads != 1 or head.U.ndim != 3:
        raise UserError(f"the head has U of shape {head.U.shape}: give one head, full decoder")
    if not 1 <= heads <= 2**62:
        raise UserError(f"heads = {heads}: choose from 1 to 2^62")
    same = int(generator(key).binomial(heads, 0.5))
    copies = np.array([same, heads - same])
    signs = jnp.asarray([1, -1], head.U.dtype)[:, None, None]
    root = jnp.asarray(np.sqrt(np.maximum(copies, 1)), head.U.dtype)[:, None, None] * signs
    return RepeatedHeads(root * head.U, root * head.W, jnp.asarray(copies))


def repeat_signed_heads(
    key: PRNGKeyArray, head: MultiHead, counts: Sequence[int], first: int = 0
) -> RepeatedHeads:
    """Starts for several numbers of heads, stacked; see `repeat_signed_head`.

    Args:
        key: random key; start k uses the key folded with first + k.
        head: a model with one head and a full decoder.
        counts: numbers of heads, each from 1 to 2^62.
        first: number of the first start.

    Returns:
        The models, one entry of the leading axis for each number.
    """
    starts = [
        repeat_signed_head(jax.random.fold_in(key, first + k), head, H)
        for k, H in enumerate(counts)
    ]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *starts)
