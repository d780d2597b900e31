"""The attention of attlas' own networks: four d x d matrices, no biases, LayerNorm after sums."""

from collections.abc import Callable, Mapping

import jax.numpy as jnp
import numpy as np

from attlas.transformers._readers.fused_reference import apart, mixed_values
from attlas.transformers._readers.head_blocks import attention_of, dense
from attlas.transformers.attlas_tensors import AttlasTensors
from attlas.transformers.canonical import AttentionBlock, Dense, Feedforward, Norm
from attlas.transformers.layer_reader import LayerReader


def plain_layers(
    stored: AttlasTensors,
    attention: Callable[[int], str],
    layer: Callable[[int], str],
    activation: str,
    eps: float,
) -> LayerReader:
    """The layers in canonical form.

    Args:
        attention: prefix of the names of W_Q, W_K, W_V and W_O, by the layer's number.
        layer: prefix of the names of feedforward and norms, by the layer's number.
    """
    return LayerReader(
        lambda index: _block(stored, attention(index), layer(index), eps),
        lambda index: _feedforward(stored, layer(index), activation),
    )


def _dense(stored: AttlasTensors, name: str, inputs: int, outputs: int) -> Dense:
    """A map without bias, its inputs first."""
    return dense(stored.read(name, inputs, outputs), None, outputs_first=False)


def _feedforward(stored: AttlasTensors, layer: str, activation: str) -> Feedforward:
    d, hidden = stored.size("width"), stored.size("hidden")
    up, down = _dense(stored, f"{layer}up", d, hidden), _dense(stored, f"{layer}down", hidden, d)
    return Feedforward(up, down, None, activation)


def _block(stored: AttlasTensors, attention: str, layer: str, eps: float) -> AttentionBlock:
    d = stored.size("width")
    stored.head_size()  # refuses heads that do not divide the width
    roles = ("query", "key", "value", "output")
    scales = jnp.asarray(stored.read(f"{layer}scales", 2, d))
    first, last = (Norm(scale, jnp.zeros_like(scale), eps, centred=True) for scale in scales)
    return AttentionBlock(
        attention=attention_of(
            (_dense(stored, f"{attention}{part}", d, d) for part in roles),
            stored.size("heads"),
            causal=False,
        ),
        attention_norm=first,
        feedforward_norm=last,
        norm_placement="post-norm",
    )


def plain_fused(
    tensors: Mapping[str, np.ndarray], attention: str, heads: int, x: np.ndarray
) -> np.ndarray:
    """The attention as the network lays it out, in NumPy float64.

    Args:
        attention: prefix of the names of W_Q, W_K, W_V and W_O.
        x: (T, d), the attention's input.

    Examples:
        Zero queries average the values.

        >>> maps = {name: np.eye(1) for name in ("query", "key", "value", "output")}
        >>> maps["query"] = np.zeros((1, 1))
        >>> plain_fused(maps, "", 1, np.array([[1.0], [3.0]])).tolist()
        [[2.0], [2.0]]
    """
    rows = np.asarray(x, np.float64)
    W_Q, W_K, W_V, W_O = (
        np.asarray(tensors[f"{attention}{part}"], np.float64)
        for part in ("query", "key", "value", "output")
    )
    queries, keys, values = (apart(rows @ W, heads) for W in (W_Q, W_K, W_V))
    scale = (rows.shape[1] // heads) ** -0.5
    return mixed_values(queries, keys, values, scale=scale, causal=False) @ W_O
