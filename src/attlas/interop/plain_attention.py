"""The attention of attlas' own networks: four d x d matrices, no biases, LayerNorm after sums."""

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.interop.attlas_tensors import AttlasTensors
from attlas.interop.canonical import Attention, Dense, Feedforward, Layer, Norm


def plain_layer(
    stored: AttlasTensors, attention: str, rest: str, activation: str, eps: float
) -> Layer:
    """One layer in canonical form.

    Args:
        stored: the model's tensors.
        attention: what the names of W_Q, W_K, W_V and W_O begin with.
        rest: what those of the feedforward and of the norms begin with.
        activation: of the feedforward.
        eps: of the norms.

    Returns:
        The layer.
    """
    d, H, k = stored.size("width"), stored.size("heads"), stored.head_size()
    hidden = stored.size("hidden")

    def inward(part: str) -> Array:
        # Columns of one head stand together: (x W) is reshaped to heads, then coordinates.
        whole = stored.read(f"{attention}{part}", d, d)
        return jnp.asarray(whole.reshape(d, H, k).transpose(1, 0, 2))

    W_Q, W_K, W_V = (inward(part) for part in ("query", "key", "value"))
    outward = stored.read(f"{attention}output", d, d).reshape(H, k, d)
    none = jnp.zeros((H, k), W_Q.dtype)
    scales = jnp.asarray(stored.read(f"{rest}scales", 2, d))
    shift = jnp.zeros(d, W_Q.dtype)
    first, last = (Norm(scales[i], shift, eps, centred=True) for i in range(2))
    up = Dense(jnp.asarray(stored.read(f"{rest}up", d, hidden)), jnp.zeros(hidden, W_Q.dtype))
    down = Dense(jnp.asarray(stored.read(f"{rest}down", hidden, d)), shift)
    return Layer(
        attention=Attention(
            W_Q=W_Q,
            b_Q=none,
            W_K=W_K,
            b_K=none,
            W_V=W_V,
            b_V=none,
            W_O=jnp.asarray(outward),
            b_O=shift,
            group=tuple(range(H)),
            scale=k**-0.5,
            causal=False,
        ),
        attention_norm=first,
        feedforward=Feedforward(up, down, None, activation),
        feedforward_norm=last,
        placement="after",
    )


def plain_unsliced(
    tensors: Mapping[str, np.ndarray], attention: str, heads: int, x: np.ndarray
) -> np.ndarray:
    """The attention as the network lays it out, in NumPy float64.

    Args:
        tensors: of the model.
        attention: what the names of W_Q, W_K, W_V and W_O begin with.
        heads: number of heads.
        x: (T, d), what the attention reads.

    Returns:
        (T, d).
    """
    rows = np.asarray(x, np.float64)
    W_Q, W_K, W_V, W_O = (
        np.asarray(tensors[f"{attention}{part}"], np.float64)
        for part in ("query", "key", "value", "output")
    )
    split = (len(rows), heads, rows.shape[1] // heads)
    q, k, v = ((rows @ W).reshape(split) for W in (W_Q, W_K, W_V))
    logits = np.einsum("shc,thc->hst", q, k) / np.sqrt(split[2])
    weights = np.exp(logits - logits.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)
    return np.einsum("hst,thc->shc", weights, v).reshape(rows.shape) @ W_O
