r"""A small Transformer that predicts a character from a fixed number of those before it.

A token is a character; head h gives it the score key_h' x_j + age_hj, where j counts back from the
last one, so that the query is a learned constant. The heads' averages stand side by side and go
through a network of rectified units.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int8, PRNGKeyArray

from attlas.core.errors import UserError


class CharacterAttention(eqx.Module):
    """Characters before a place to logits of the character there.

    Attributes:
        letters: embedding of each of V characters.
        keys: what raises the score of a token, by head.
        ages: scores of the places counted back, by head.
        up: from the H averages into the rectified units.
        bias: of those.
        down: from them to the logits.
        readout: bias of the logits.
    """

    letters: Float[Array, "V d"]
    keys: Float[Array, "H d"]
    ages: Float[Array, "H C"]
    up: Float[Array, "H d h"]
    bias: Float[Array, " h"]
    down: Float[Array, "h V"]
    readout: Float[Array, " V"]

    def __call__(self, before: Int8[Array, " C"]) -> Float[Array, " V"]:
        """Logits of the next character.

        Args:
            before: the last character first.

        Returns:
            The logits.
        """
        x = self.letters[before]
        weight = jax.nn.softmax(self.keys @ x.T + self.ages, axis=1)
        hidden = jnp.einsum("hd,hdk->k", weight @ x, self.up) + self.bias
        return jax.nn.relu(hidden) @ self.down + self.readout


def make_character_attention(
    key: PRNGKeyArray, characters: int, width: int, heads: int, context: int, hidden: int
) -> CharacterAttention:
    """An untrained model, whose head h looks mostly at place h counted back.

    Args:
        key: random key.
        characters: V.
        width: d of a token.
        heads: H, at most the context.
        context: C characters that are seen.
        hidden: h rectified units.

    Returns:
        The model.

    Raises:
        UserError: for a size below 1, or more heads than places.

    Examples:
        >>> model = make_character_attention(jax.random.key(0), 27, 6, 4, 12, 16)
        >>> sum(a.size for a in jax.tree.leaves(model)), model(jnp.zeros(12, jnp.int8)).shape
        (1093, (27,))
    """
    if min(characters, width, heads, context, hidden) < 1 or heads > context:
        raise UserError(
            f"{characters} characters, width {width}, {heads} heads, context {context}, {hidden} "
            "units: each is at least 1, and there are no more heads than places"
        )
    letters, keys, up, down = jax.random.split(key, 4)
    return CharacterAttention(
        letters=jax.random.normal(letters, (characters, width)),
        keys=0.1 * jax.random.normal(keys, (heads, width)),
        ages=4.0 * jnp.eye(heads, context),
        up=jax.random.normal(up, (heads, width, hidden)) / (heads * width) ** 0.5,
        bias=jnp.zeros(hidden),
        down=jax.random.normal(down, (hidden, characters)) / hidden**0.5,
        readout=jnp.zeros(characters),
    )
