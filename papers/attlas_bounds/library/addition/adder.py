r"""A Transformer with few parameters that adds numbers place by place.

A token is a place: the sum of the embeddings of the two digits there, least significant place
first, after a learned first token. Attention looks at earlier tokens alone and falls off with the
distance, as with the linear biases of ALiBi; its query is a learned constant, so that a score is

    key' x_j - fall (t - 1 - j),   j < t.

A layer adds attention and a network of rectified units to its input; all layers share one set of
weights. All choices here are made before any sum is seen.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int8, PRNGKeyArray

from attlas.core.errors import UserError

DIGITS = 10
FALL = 2.5
"""Score lost per place at the start of training, near ln 10: a digit is a tenth of the next."""


class Adder(eqx.Module):
    r"""Digits of the operands to logits of the digits of their sum.

    Attributes:
        digits: embedding of a digit, for both operands.
        start: the first token, which stands before the ones.
        key: direction that raises the score of a token.
        fall: score lost per place.
        value: W_V, values times output.
        up: matrix into the rectified units.
        bias: biases of the rectified units.
        down: matrix from the rectified units to a token.
        readout: matrix from a token to the logits of the digits.
        readout_bias: biases of the logits.
        layers: number of applications of the shared layer.
    """

    digits: Float[Array, "10 d"]
    start: Float[Array, " d"]
    key: Float[Array, " d"]
    fall: Float[Array, ""]
    value: Float[Array, "d d"]
    up: Float[Array, "d h"]
    bias: Float[Array, " h"]
    down: Float[Array, "h d"]
    readout: Float[Array, "d 10"]
    readout_bias: Float[Array, "10"]
    layers: int = eqx.field(static=True)

    def __call__(self, operands: Int8[Array, "n P 2"]) -> Float[Array, "n P 10"]:
        """Logits of each place of the sums.

        Args:
            operands: digits of both operands, as in `Additions`.
        """
        x = jnp.sum(self.digits[operands], axis=2)
        first = jnp.broadcast_to(self.start, (x.shape[0], 1, x.shape[2]))
        x = jnp.concatenate([first, x], axis=1)
        for _ in range(self.layers):
            y = x + self._attention(x) @ self.value
            x = y + jax.nn.relu(y @ self.up + self.bias[None, None]) @ self.down
        return x[:, 1:] @ self.readout + self.readout_bias[None, None]

    def _attention(self, x: Float[Array, "n S d"]) -> Float[Array, "n S d"]:
        """Weighted means of the earlier tokens; the first one sees itself."""
        score = x @ self.key
        # No query moves a score, so that numerator and denominator are one product with what the
        # distance leaves.
        weight = jnp.exp(score - jax.lax.stop_gradient(jnp.max(score, axis=1, keepdims=True)))
        place = jnp.arange(x.shape[1])
        back = place[:, None] - place[None, :] - 1
        seen = (back >= 0) | ((place[:, None] == 0) & (place[None, :] == 0))
        left = jnp.where(seen, jnp.exp(-self.fall * jnp.maximum(back, 0).astype(x.dtype)), 0)
        weighted = weight[:, :, None] * jnp.concatenate([x, jnp.ones_like(x[:, :, :1])], axis=2)
        sums = jnp.einsum("ts,nsd->ntd", left, weighted)
        return sums[:, :, :-1] / sums[:, :, -1:]


def make_adder(key: PRNGKeyArray, width: int, hidden: int, layers: int = 1) -> Adder:
    r"""An untrained adder: Gaussian weights, fan-in scaled, attention that falls off by `FALL`.

    Args:
        width: d of a token.
        hidden: h rectified units.
        layers: applications of the layer, at least 1.

    Returns:
        The adder, with $d^2+2dh+22d+h+11$ parameters.

    Examples:
        >>> adder = make_adder(jax.random.key(0), 4, 8)
        >>> sum(a.size for a in jax.tree.leaves(adder))
        187
        >>> adder(jnp.zeros((1, 11, 2), jnp.int8)).shape
        (1, 11, 10)
    """
    if min(width, hidden, layers) < 1:
        raise UserError(f"width {width}, {hidden} units, {layers} layers: each is at least 1")
    shapes = {
        "digits": (DIGITS, width), "start": (width,), "key": (width,), "value": (width, width),
        "up": (width, hidden), "bias": (hidden,), "down": (hidden, width),
        "readout": (width, DIGITS),
    }  # fmt: skip
    scale = {"digits": 0.5, "start": 0.5, "key": 0.3, "bias": 0.5, "down": hidden**-0.5}
    keys = jax.random.split(key, len(shapes))
    weights = {
        name: scale.get(name, width**-0.5) * jax.random.normal(k, shape)
        for k, (name, shape) in zip(keys, shapes.items(), strict=True)
    }
    dtype = weights["start"].dtype
    return Adder(
        **weights,
        fall=jnp.asarray(FALL, dtype),
        readout_bias=jnp.zeros(DIGITS, dtype),
        layers=layers,
    )
