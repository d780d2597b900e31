r"""The model of section 6 of trauger2023sequence in plain form: attention, ReLU, two linear maps.

f(X) = R' (D' relu(MHA(X)_[CLS]) + b_D) + b_R with two logits. It is Keras' MultiHeadAttention
(heads of width `key_dim` each, biases everywhere, scores divided by sqrt(key_dim)), then ReLU and
Dense at every position, of which the last one, [CLS], is read. This form is the ground truth for
`trauger2023sequence.library.sparse_majority.table`, which computes the same function in another
order.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas._jax.device_arrays import generator
from attlas.core.errors import UserError


class MajorityAttention(eqx.Module):
    """One attention layer with a [CLS] readout of two logits.

    An ensemble has a leading axis on every array.

    Attributes:
        query: kernel of the queries, one slice per head, and its bias.
        key: kernel of the keys and its bias, which no output depends on.
        value: kernel of the values and its bias.
        output: kernel from the heads back to d dimensions and its bias.
        dense: kernel after the ReLU and its bias.
        readout: kernel to the two logits and its bias.
    """

    query: tuple[Float[Array, "*e d h k"], Float[Array, "*e h k"]]
    key: tuple[Float[Array, "*e d h k"], Float[Array, "*e h k"]]
    value: tuple[Float[Array, "*e d h k"], Float[Array, "*e h k"]]
    output: tuple[Float[Array, "*e h k d"], Float[Array, "*e d"]]
    dense: tuple[Float[Array, "*e d w"], Float[Array, "*e w"]]
    readout: tuple[Float[Array, "*e w c"], Float[Array, "*e c"]]

    def __call__(self, X: Float[Array, "S d"]) -> Float[Array, " c"]:
        """Logits of one sequence whose last row is [CLS]."""
        Q, K, V = (
            jnp.einsum("td,dhk->thk", X, kernel) + bias[None]
            for kernel, bias in (self.query, self.key, self.value)
        )
        scores = jnp.einsum("shk,thk->hst", Q, K) / Q.shape[-1] ** 0.5
        heads = jnp.einsum("hst,thk->shk", jax.nn.softmax(scores, axis=-1), V)
        mixed = jnp.einsum("shk,hkd->sd", heads, self.output[0]) + self.output[1][None]
        wide = jax.nn.relu(mixed) @ self.dense[0] + self.dense[1][None]
        return wide[-1] @ self.readout[0] + self.readout[1]


def make_majority_attention(
    key: PRNGKeyArray,
    d: int = 64,
    heads: int = 2,
    key_dim: int = 64,
    dtype: str = "float32",
) -> MajorityAttention:
    r"""The released start: Glorot-uniform kernels, readout N(0, 0.05^2), zero biases.

    Keras takes the fans of a kernel with three axes as (a, b, c) -> (a b, a c), so that the
    kernels of queries, keys and values, [d, h, k], start within sqrt(6 / (d h + d k)): 0.038 for
    the released sizes, where a plain d x (h k) matrix would have 0.177.

    Args:
        d: dimension of the tokens, also of the layer after the ReLU.
        key_dim: width of a head.

    Examples:
        >>> model = make_majority_attention(jax.random.key(0))
        >>> sum(a.size for a in jax.tree.leaves(model))
        37506
    """
    if min(d, heads, key_dim) < 1:
        raise UserError(f"d = {d}, heads = {heads}, key_dim = {key_dim}: give at least 1 of each")
    draw = generator(key)

    def glorot(*shape: int) -> Array:
        fans = np.prod(shape[:-2]) * (shape[-2] + shape[-1])
        return jnp.asarray(draw.uniform(-1, 1, shape).astype(dtype) * float(np.sqrt(6 / fans)))

    def zeros(*shape: int) -> Array:
        return jnp.zeros(shape, dtype)

    inward = [(glorot(d, heads, key_dim), zeros(heads, key_dim)) for _ in range(3)]
    readout = jnp.asarray((0.05 * draw.normal(size=(d, 2))).astype(dtype))
    return MajorityAttention(
        *inward,
        output=(glorot(heads, key_dim, d), zeros(d)),
        dense=(glorot(d, d), zeros(d)),
        readout=(readout, zeros(2)),
    )


def total_absolute_weight(model: MajorityAttention) -> Float[Array, ""]:
    r"""Sum of |w| over all parameters with the biases: the norm of Figure 1.

    Examples:
        >>> model = make_majority_attention(jax.random.key(0), 4, 2, 3)
        >>> ones = jax.tree.map(jnp.ones_like, model)
        >>> print(float(total_absolute_weight(ones)))
        148.0
    """
    return jnp.sum(jnp.stack([jnp.sum(jnp.abs(a)) for a in jax.tree.leaves(model)]))
