r"""Attention of Luong et al. (2015) over the states of a bi-directional LSTM, for a text.

With the states h_s at the words and the last states h,

    a_s = softmax_s(h' W_a h_s),   c = sum_s a_s h_s,   z = tanh(W_c [c; h]),

and the network of the LSTM baseline reads z where the baseline has h. Section 6 of liu2021analyzing
says of its recurrent attention "we design the structure the same as Luong et al. (2015)"; W_a is
the score that Luong et al. call general.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from liu2021analyzing.library.models.lstm_reader import LstmReader, WordMask, make_lstm_reader


class LuongReader(eqx.Module):
    r"""The model on one input, see the module.

    Attributes:
        lstm: the two LSTMs, and the network that reads z.
        W_a: of the score.
        W_c: from the context and the last states.
        temperature: divisor of the scores; at a very large one all words weigh the same.
    """

    lstm: LstmReader
    W_a: Float[Array, "s s"]
    W_c: Float[Array, "s _"]
    temperature: Any = 1.0

    def attention(self, x: Float[Array, "t p"], mask: WordMask = None) -> Float[Array, "1 p"]:
        """The attention weights, one row.

        Args:
            mask: True at words, False at padding, which gets no weight; all words when None.
                Without any word there are no weights, and the output is NaN.
        """
        return self._weights(*self.lstm.states(x, mask), mask)[None]

    def __call__(self, x: Float[Array, "t p"], mask: WordMask = None) -> Float[Array, ""]:
        """The logit of class 1.

        Args:
            mask: True at words, as for `attention`.
        """
        last, states = self.lstm.states(x, mask)
        context = self._weights(last, states, mask) @ states
        return self.lstm.logit(jnp.tanh(self.W_c @ jnp.concatenate([context, last])))

    def _weights(self, last: Array, states: Array, mask: WordMask) -> Array:
        scores = states @ (self.W_a.T @ last) / self.temperature
        return jax.nn.softmax(scores if mask is None else jnp.where(mask, scores, -jnp.inf))


def make_luong_reader(
    key: PRNGKeyArray,
    t: int,
    cell: int = 32,
    hidden: tuple[int, ...] = (64, 20),
    dtype: Any | None = None,
) -> LuongReader:
    r"""A model with Xavier's uniform start; sizes are those of section 6 of liu2021analyzing.

    Args:
        cell: size of each LSTM.
        hidden: hidden units of the network that follows.
        dtype: floating type; JAX's default when None.

    Examples:
        >>> model = make_luong_reader(jax.random.key(0), t=3, cell=2, hidden=(4,))
        >>> model.attention(jnp.ones((3, 5)), jnp.arange(5) < 1).tolist()
        [[1.0, 0.0, 0.0, 0.0, 0.0]]
    """
    first, second, third = jax.random.split(key, 3)
    lstm = make_lstm_reader(first, t, cell, hidden, dtype)
    xavier = jax.nn.initializers.glorot_uniform()
    W_a = xavier(second, (2 * cell, 2 * cell), dtype)
    return LuongReader(lstm, W_a, xavier(third, (2 * cell, 4 * cell), dtype))
