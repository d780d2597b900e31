r"""Recurrent baseline of section 6 of liu2021analyzing: a bi-directional LSTM, then a network."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from attlas.core.errors import UserError
from liu2021analyzing.library.models.word_columns import require_columns

WordMask = Bool[Array, " p"] | None


class LstmReader(eqx.Module):
    r"""A logit from the last states of two LSTMs, one reading forwards and one backwards.

    With i, f, o the sigmoids and g the tanh of the four parts of W x + U h + b,
    c' = f c + i g and h' = o tanh(c'). A position that the mask leaves out changes no state.

    Attributes:
        W: from a word, for each direction; its rows are i, f, g, o.
        U: from the state.
        b: biases.
        layers: matrices of the network that reads both last states; ReLU between them.
        biases: its biases.
    """

    W: Float[Array, "2 gates t"]
    U: Float[Array, "2 gates h"]
    b: Float[Array, "2 gates"]
    layers: tuple[Float[Array, "_ _"], ...]
    biases: tuple[Float[Array, " _"], ...]

    def __call__(self, x: Float[Array, "t p"], mask: WordMask = None) -> Float[Array, ""]:
        """The logit of class 1.

        Args:
            mask: True at words, False at padding; all words when None. Without any word the
                states stay zero.
        """
        return self.logit(self.states(x, mask)[0])

    def states(
        self, x: Float[Array, "t p"], mask: WordMask = None
    ) -> tuple[Float[Array, " s"], Float[Array, "p s"]]:
        """The last states of both directions, and the states of both at each word.

        Args:
            mask: True at words, as for a call.
        """
        require_columns(x, self.W.shape[2], mask=mask)
        seen = jnp.ones(x.shape[1], bool) if mask is None else mask
        inputs = jnp.einsum("dgt,tp->dpg", self.W, x) + self.b[:, None, :]
        inputs = jnp.stack([inputs[0], inputs[1, ::-1]], axis=1)
        words = jnp.stack([seen, seen[::-1]], axis=1)

        def step(carry: tuple[Array, Array], now: tuple[Array, Array]) -> tuple[Any, Array]:
            cell, state = carry
            entering, word = now
            gates = jnp.split(entering + jnp.einsum("dgh,dh->dg", self.U, state), 4, axis=1)
            enter, keep, leave = (jax.nn.sigmoid(gates[k]) for k in (0, 1, 3))
            after = keep * cell + enter * jnp.tanh(gates[2])
            read = leave * jnp.tanh(after)
            pick = word[:, None]
            state = jnp.where(pick, read, state)
            return (jnp.where(pick, after, cell), state), state

        zero = jnp.zeros((2, self.U.shape[2]), x.dtype)
        (_, state), path = jax.lax.scan(step, (zero, zero), (inputs, words))
        return state.reshape(-1), jnp.concatenate([path[:, 0], path[::-1, 1]], axis=1)

    def logit(self, z: Float[Array, " s"]) -> Float[Array, ""]:
        """The output of the layers on a vector of the states' size."""
        for place, (matrix, bias) in enumerate(zip(self.layers, self.biases, strict=True)):
            z = (jax.nn.relu(z) if place else z) @ matrix + bias
        return z[0]


def make_lstm_reader(
    key: PRNGKeyArray,
    t: int,
    cell: int = 32,
    hidden: tuple[int, ...] = (64, 20),
    dtype: Any | None = None,
) -> LstmReader:
    r"""A model with Xavier's uniform start; sizes are those of section 6 of liu2021analyzing.

    The forget gates start with bias one, all other biases with zero.

    Args:
        cell: size of each LSTM.
        hidden: hidden units of the network that follows.
        dtype: floating type; JAX's default when None.

    Examples:
        >>> model = make_lstm_reader(jax.random.key(0), t=3, cell=2, hidden=(4,))
        >>> [matrix.shape for matrix in model.layers]
        [(4, 4), (4, 1)]
    """
    if min(t, cell, *hidden) < 1:
        raise UserError(f"t = {t}, cell = {cell}, hidden = {hidden}: all must be at least 1")
    keys = jax.random.split(key, 3 + len(hidden))
    xavier = jax.nn.initializers.glorot_uniform(batch_axis=0)
    W, U = (xavier(k, (2, 4 * cell, n), dtype) for k, n in zip(keys[:2], (t, cell), strict=True))
    b = jnp.zeros((2, 4 * cell), W.dtype).at[:, cell : 2 * cell].set(1)
    sizes = (2 * cell, *hidden, 1)
    dense = jax.nn.initializers.glorot_uniform()
    pairs = zip(keys[2:], sizes[:-1], sizes[1:], strict=True)
    layers = tuple(dense(k, (m, n), dtype) for k, m, n in pairs)
    return LstmReader(W, U, b, layers, tuple(jnp.zeros(n, W.dtype) for n in sizes[1:]))
