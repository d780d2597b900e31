r"""The recurrent attention model of appendix B of liu2021analyzing.

For k = 1, ..., T, from s_0 = 0 and c_0 = 0, with x_j the words of an input:

    s_k = f(s_{k-1}, c_{k-1}),   e_kj = score(s_{k-1}, x_j),
    alpha_kj = exp(e_kj) / sum_i exp(e_ki),   c_k = sum_j alpha_kj x_j,

and y = w2' phi(W1' c_T). The paper prints alpha without exp, which gives no weights. It leaves
f open; a plain recurrent unit f(s, c) = tanh(W_s s + W_c c + b) stands here. With a dot product as
score c_1 is the words' mean, since s_0 = 0, and weights depend on their content from k = 3 on; a
network as score reads the words at the first step.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from attlas.core.errors import UserError
from liu2021analyzing.library.models.two_layer import TwoLayer, make_two_layer
from liu2021analyzing.library.models.word_columns import require_columns

WordMask = Bool[Array, " p"] | None


class DotScore(eqx.Module):
    r"""score(s, x) = s' x; state and words have one dimension.

    Examples:
        >>> DotScore()(jnp.array([2.0]), jnp.array([[1.0, -1.0]])).tolist()
        [2.0, -2.0]
    """

    def __call__(self, state: Float[Array, " t"], x: Float[Array, "t p"]) -> Float[Array, " p"]:
        """The scores of all words.

        Args:
            state: the state s_{k-1}.
        """
        return state @ x


class NetworkScore(eqx.Module):
    r"""score(s, x) = v' tanh(V_s s + V_x x), the score of Bahdanau et al. (2014).

    Attributes:
        V_s: from the state.
        V_x: from a word.
        v: readout.

    Examples:
        >>> one = jnp.ones((1, 1))
        >>> NetworkScore(one, one, jnp.ones(1))(jnp.array([1.0]), jnp.array([[-1.0]])).tolist()
        [0.0]
    """

    V_s: Float[Array, "a r"]
    V_x: Float[Array, "a t"]
    v: Float[Array, " a"]

    def __call__(self, state: Float[Array, " r"], x: Float[Array, "t p"]) -> Float[Array, " p"]:
        """The scores of all words.

        Args:
            state: the state s_{k-1}.
        """
        return self.v @ jnp.tanh((self.V_s @ state)[:, None] + self.V_x @ x)


class RecurrentAttention(eqx.Module):
    r"""The model on one input, see the module.

    Attributes:
        W_s: of f, from the state.
        W_c: of f, from the attended word.
        b: of f.
        score: a `DotScore` or a `NetworkScore`.
        network: the two layers that read c_T.
        steps: T.
    """

    W_s: Float[Array, "r r"]
    W_c: Float[Array, "r t"]
    b: Float[Array, " r"]
    score: DotScore | NetworkScore
    network: TwoLayer
    steps: int = eqx.field(static=True)

    def attention(self, x: Float[Array, "t p"], mask: WordMask = None) -> Float[Array, "T p"]:
        """The attention weights of all steps.

        Args:
            mask: True at words, False at padding, which gets no weight; all words when None.
                Without any word there are no weights, and the output is NaN.

        Returns:
            Row k holds the alpha of step k + 1, and sums to one.
        """
        return self._run(x, mask)[0]

    def __call__(self, x: Float[Array, "t p"], mask: WordMask = None) -> Float[Array, ""]:
        """The output after the last step.

        Args:
            mask: True at words, as for `attention`.
        """
        return self.network(self._run(x, mask)[1])

    def _run(self, x: Array, mask: WordMask) -> tuple[Array, Array]:
        require_columns(x, self.W_c.shape[1], mask=mask)
        seen = jnp.ones(x.shape[1], bool) if mask is None else mask

        def step(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
            state, context = carry
            weights = jax.nn.softmax(jnp.where(seen, self.score(state, x), -jnp.inf))
            after = jnp.tanh(self.W_s @ state + self.W_c @ context + self.b)
            return (after, x @ weights), weights

        start = (jnp.zeros_like(self.b), jnp.zeros(x.shape[0], x.dtype))
        (_, context), weights = jax.lax.scan(step, start, length=self.steps)
        return weights, context


def make_recurrent_attention(
    key: PRNGKeyArray,
    t: int,
    d: int,
    steps: int,
    state: int | None = None,
    score_units: int | None = None,
    dtype: Any | None = None,
) -> RecurrentAttention:
    r"""A model with Xavier's uniform start.

    Args:
        d: hidden units of the two layers that read c_T.
        state: dimension r of the state; t when None.
        score_units: units of a network as score; a dot product when None, which needs r = t.
        dtype: floating type; JAX's default when None.

    Returns:
        The model; the two layers have biases.

    Examples:
        >>> model = make_recurrent_attention(jax.random.key(0), t=3, d=4, steps=2)
        >>> model.attention(jnp.ones((3, 4)))[1].tolist()
        [0.25, 0.25, 0.25, 0.25]
    """
    r = t if state is None else state
    if min(t, d, steps, r, 1 if score_units is None else score_units) < 1:
        sizes = f"t = {t}, d = {d}, steps = {steps}, state = {r}, score_units = {score_units}"
        raise UserError(f"{sizes}: all must be at least 1")
    if score_units is None and r != t:
        raise UserError(f"a dot product of state {r} and words {t}: make them equal")
    keys = jax.random.split(key, 6)
    xavier = jax.nn.initializers.glorot_uniform()
    W_s, W_c = xavier(keys[0], (r, r), dtype), xavier(keys[1], (r, t), dtype)
    score: DotScore | NetworkScore = DotScore()
    if score_units is not None:
        shapes = ((score_units, r), (score_units, t), (score_units, 1))
        V_s, V_x, v = (xavier(k, shape, dtype) for k, shape in zip(keys[2:5], shapes, strict=True))
        score = NetworkScore(V_s, V_x, v[:, 0])
    network = make_two_layer(keys[5], t, d, biases=True, dtype=dtype)
    return RecurrentAttention(W_s, W_c, jnp.zeros(r, W_s.dtype), score, network, steps)
