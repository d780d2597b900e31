"""A small trained-looking Transformer in canonical form, drawn at random."""

import jax.numpy as jnp
import numpy as np

from attlas.interop.canonical import (
    Attention,
    Dense,
    Embedding,
    Feedforward,
    Layer,
    Norm,
    Readout,
    Rotary,
)
from attlas.interop.trained_transformer import TrainedTransformer


def random_transformer(
    *,
    seed: int = 0,
    causal: bool = True,
    placement: str = "before",
    centred: bool = True,
    rotary: bool = False,
    layers: int = 2,
    heads: int = 3,
    groups: int = 3,
    d: int = 6,
    k: int = 4,
    vocabulary: int = 11,
    stored: tuple[int, ...] | None = None,
) -> TrainedTransformer:
    """Weights are normal numbers large enough that the attention is not uniform."""
    rng = np.random.default_rng(seed)

    def draw(*shape: int, scale: float = 0.6) -> jnp.ndarray:
        return jnp.asarray(scale * rng.normal(size=shape))

    def norm() -> Norm:
        bias = draw(d, scale=0.2) if centred else jnp.zeros(d)
        return Norm(1 + draw(d, scale=0.2), bias, 1e-5, centred)

    def layer() -> Layer:
        attention = Attention(
            draw(heads, d, k),
            draw(heads, k),
            draw(groups, d, k),
            draw(groups, k),
            draw(groups, d, k),
            draw(groups, k),
            draw(heads, k, d),
            draw(d),
            tuple(h * groups // heads for h in range(heads)),
            k**-0.5,
            causal,
            rotary=Rotary(jnp.array([1.0, 0.1]), interleaved=True) if rotary else None,
        )
        inner, outer = Dense(draw(d, 2 * d), draw(2 * d)), Dense(draw(2 * d, d), draw(d))
        return Layer(attention, norm(), Feedforward(inner, outer, None, "gelu"), norm(), placement)

    order = tuple(range(layers)) if stored is None else stored
    weights = [layer() for _ in range(max(order) + 1)]
    positions = None if rotary else draw(16, d)
    embedding = Embedding(draw(vocabulary, d), positions, norm=norm())
    readout = Readout(
        norm() if placement != "after" else None, words=Dense(draw(d, vocabulary), draw(vocabulary))
    )
    return TrainedTransformer(
        "random",
        "random",
        d,
        heads,
        vocabulary,
        None if rotary else 16,
        order,
        lambda index: weights[index],
        embedding,
        readout,
        0,
    )
