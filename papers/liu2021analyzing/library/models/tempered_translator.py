"""A translator at another temperature, with the weights it has."""

from typing import Any

import jax
import numpy as np

from attlas.core.errors import UserError
from attlas.models.networks.translator import MultiHeadAttention, Translator


def tempered(model: Translator, factor: float) -> Translator:
    r"""The model with the logits of all its attentions times a factor.

    softmax(r Q K' / sqrt(d / H)) is the attention of the queries r Q: W_Q is multiplied.

    Args:
        factor: r, above 0; 1 over the temperature.

    Returns:
        The model; all its attentions change, and what later ones attend to with them.

    Source: tempered softmax, section 6 of liu2021analyzing, there with r = 5.

    Examples:
        >>> from attlas.models.networks.translator import make_translator
        >>> model = make_translator(jax.random.key(0), (5, 5), 4, blocks=1, heads=2, hidden=3)
        >>> colder = tempered(model, 5.0)
        >>> ratio = colder.encoder[0].own.query / model.encoder[0].own.query
        >>> ratio.round(3)[0].tolist(), bool((colder.readout == model.readout).all())
        ([5.0, 5.0, 5.0, 5.0], True)
    """
    if not factor > 0:
        raise UserError(f"factor = {factor} of the logits: choose a positive one")

    def temper(part: Any) -> Any:
        if not isinstance(part, MultiHeadAttention):
            return part
        # Multiplied on the host: nothing is compiled for it.
        query = jax.device_put(factor * np.asarray(part.query))
        return MultiHeadAttention(query, part.key, part.value, part.output, part.heads)

    return jax.tree.map(temper, model, is_leaf=lambda part: isinstance(part, MultiHeadAttention))
