"""Small Transformers with random weights, for what needs no meaning."""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.transformers.canonical import (
    Attention,
    Dense,
    Embedding,
    Feedforward,
    Layer,
    Norm,
    Readout,
    Rotary,
)
from attlas.transformers.trained_transformer import TrainedTransformer


def random_attention(
    draw: np.random.Generator,
    *,
    d: int = 6,
    H: int = 2,
    k: int = 3,
    causal: bool = True,
    rotary: bool = False,
    norms: bool = False,
    window: int | None = None,
    softcap: float | None = None,
    relative: bool = False,
) -> Attention:
    """Heads with biases, all keys and values shared by two heads each."""
    groups = max(1, H // 2)

    def normal(*shape):
        return jnp.asarray(draw.normal(size=shape))

    def norm():
        return Norm(1 + 0.3 * normal(k), 0.2 * normal(k), 1e-6, centred=False) if norms else None

    return Attention(
        W_Q=normal(H, d, k),
        b_Q=normal(H, k),
        W_K=normal(groups, d, k),
        b_K=normal(groups, k),
        W_V=normal(groups, d, k),
        b_V=normal(groups, k),
        W_O=normal(H, k, d) / 3,
        b_O=normal(d),
        group=tuple(h * groups // H for h in range(H)),
        scale=float(1 / np.sqrt(k)),
        causal=causal,
        window=window,
        rotary=Rotary(jnp.asarray([0.7]), interleaved=False) if rotary else None,
        query_norm=norm(),
        key_norm=norm(),
        softcap=softcap,
        relative=normal(H, 5) if relative else None,
    )


def random_norm(draw: np.random.Generator, d: int = 6, *, centred: bool = True) -> Norm:
    """A norm with gain and bias."""
    gain, bias = 1 + 0.2 * draw.normal(size=d), 0.2 * draw.normal(size=d)
    return Norm(jnp.asarray(gain), jnp.asarray(bias), 1e-5, centred=centred)


def random_transformer(
    seed: int = 0,
    *,
    layers: int = 2,
    norm_placement: str = "pre-norm",
    vocabulary: int = 11,
    context: int | None = 40,
    d: int = 6,
    dtype: str = "float64",
    out_norms: bool = False,
    **heads,
) -> TrainedTransformer:
    """A model of words with learned positions and a readout.

    Args:
        out_norms: whether norms stand behind attention and feedforward too.
    """
    draw = np.random.default_rng(seed)

    def dense(a, b):
        return Dense(jnp.asarray(draw.normal(size=(a, b))) / np.sqrt(a), jnp.zeros(b))

    stack = [
        Layer(
            random_attention(draw, d=d, **heads),
            random_norm(draw, d),
            Feedforward(dense(d, 8), dense(8, d), None, "gelu"),
            random_norm(draw, d),
            norm_placement,
            *(random_norm(draw, d) for _ in range(2 * out_norms)),
        )
        for _ in range(layers)
    ]
    positions = None if context is None else jnp.asarray(draw.normal(size=(context, d)))
    embedding = Embedding(
        jnp.asarray(draw.normal(size=(vocabulary, d))), positions, norm=random_norm(draw, d)
    )
    readout = Readout(norm=random_norm(draw, d), lm_head=dense(d, vocabulary))
    stack, embedding, readout = jax.tree.map(lambda a: a.astype(dtype), (stack, embedding, readout))
    return TrainedTransformer(
        name="random",
        architecture="random",
        width=d,
        heads_per_layer=stack[0].attention.W_Q.shape[0],
        vocabulary=vocabulary,
        context=context,
        stored_layer=tuple(range(layers)),
        read_layer=stack.__getitem__,
        read_embedding=lambda: embedding,
        read_readout=lambda: readout,
        parameters=sum(a.size for a in jax.tree.leaves((stack, embedding, readout))),
    )
