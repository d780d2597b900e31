"""What a multi-head model gives on samples along training: outputs, and where it attends."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.models.attention.multi_head import MultiHead
from attlas.training.risk_gradient import model_outputs


class AttentionProfile(NamedTuple):
    """Outputs and attention, by training, record and sample.

    Attributes:
        outputs: Phi(X_i).
        mass: attention on each token, averaged over heads and queries.
        effective_tokens: exp of a query's attention entropy, averaged over heads and queries.
    """

    outputs: Float[Array, "e k n"]
    mass: Float[Array, "e k n T"]
    effective_tokens: Float[Array, "e k n"]


@jax.jit
def attention_profile(models: MultiHead, X: Float[Array, "n T d"]) -> AttentionProfile:
    """Outputs and attention of every recorded model of several trainings.

    Args:
        models: with axes of trainings and of records before those of every array.
        X: samples.

    Returns:
        The profile.

    Examples:
        >>> model = MultiHead(jnp.ones((3, 2, 4)), jnp.zeros((3, 4, 4)))
        >>> models = jax.tree.map(lambda a: a[None, None], model)
        >>> found = attention_profile(models, jnp.ones((5, 2, 4)))
        >>> found.mass[0, 0, 0].tolist(), float(found.effective_tokens[0, 0, 0])
        ([0.5, 0.5], 2.0)
    """

    def one(model: MultiHead) -> AttentionProfile:
        attention = jax.vmap(model.attention)(X)
        entropy = jnp.sum(jax.scipy.special.entr(attention), axis=-1)
        tokens = jnp.mean(jnp.exp(entropy), axis=(1, 2))
        return AttentionProfile(model_outputs(model, X), jnp.mean(attention, axis=(1, 2)), tokens)

    return jax.vmap(lambda records: jax.lax.map(one, records))(models)
