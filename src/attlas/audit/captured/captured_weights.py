"""Level weights of captured heads: what is not recognised has no number."""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from attlas.audit.quantity import labelled
from attlas.audit.weights_level.head_certificates import LAYER_CERTIFICATE
from attlas.audit.weights_level.weights_level import (
    WEIGHT_QUANTITIES,
    attention_values,
    spectrum_values,
)
from attlas.capture.canonical_heads import canonical_attention
from attlas.capture.captured_heads import CapturedHeads, Projected
from attlas.measures.attention.product_spectrum import product_spectrum
from attlas.transformers.canonical import Dense

_LOGITS = ("core_bound", "logit_bound", "entropy_bound", "lipschitz_bound", LAYER_CERTIFICATE.name)


def captured_weights(layers: list[CapturedHeads | None], context: int) -> xr.Dataset:
    """Spectra and certificates of every head, NaN where the matrices were not recognised.

    Args:
        layers: attentions in the order of the run; None for one without plain maps.
        context: n of the certificates.

    Returns:
        Variables [layer, head]; layers with fewer heads than the most end in NaN.
    """
    widest = max((layer.heads for layer in layers if layer is not None), default=1)
    names = list(_nothing(1))
    values = {name: np.full((len(layers), widest), np.nan) for name in names}
    for index, layer in enumerate(layers):
        if layer is None:
            continue
        for name, column in layer_values(layer, context).items():
            values[name][index, : layer.heads] = column
    return labelled(WEIGHT_QUANTITIES, values, ("layer", "head"))


def layer_values(layer: CapturedHeads, context: int) -> dict[str, np.ndarray]:
    """The values of one attention's heads, by name."""
    attention = canonical_attention(layer)
    if attention is not None:
        projection = None
        if layer.projection is not None:
            with jax.enable_x64(True):
                projection = Dense(*(jnp.asarray(part) for part in layer.projection))
        values = attention_values(attention, layer.norm, projection, context)
        if layer.biased:  # what positions add was seen for the tokens of this run alone
            values |= {name: np.full(layer.heads, np.nan) for name in _LOGITS}
        return values
    values = _nothing(layer.heads)
    with jax.enable_x64(True):
        if layer.query is not None and layer.key is not None:
            query, key = (_of_heads(part) for part in (layer.query, layer.key))
            factor = layer.query.factor * layer.key.factor * layer.scale
            if query.shape[1] == key.shape[1] and np.isfinite(factor):
                values |= spectrum_values("qk", product_spectrum(factor * query, key))
        if layer.value is not None and layer.W_O is not None:
            value = layer.value.factor * _of_heads(layer.value)
            out = np.swapaxes(layer.W_O, -1, -2)
            values |= spectrum_values("ov", product_spectrum(value, out))
    return values


def _of_heads(part: Projected) -> np.ndarray:
    """The matrix of each head, gains of its norm included."""
    W = part.W if part.norm is None else part.W * np.asarray(part.norm.gain)
    return W[list(part.group)]


def _nothing(heads: int) -> dict[str, np.ndarray]:
    names = [quantity.name for quantity in WEIGHT_QUANTITIES]
    names += [quantity.null for quantity in WEIGHT_QUANTITIES if quantity.null]
    return {name: np.full(heads, np.nan) for name in names}
