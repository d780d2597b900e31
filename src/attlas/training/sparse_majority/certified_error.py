r"""Bounds on the error of models trained in norm balls fixed before the data were seen.

At a margin gamma the ramp loss is 1 / gamma-Lipschitz and bounds the error, so that for all models
of a ball

    error <= ramp risk + 2 R / gamma + confidence.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Int8

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas._jax.loop_jit import loop_jit
from attlas.bounds.comparison.single_layer_class import norms_in_ball, single_layer_bounds
from attlas.bounds.generalisation.generalisation_gap import generalisation_gap
from attlas.core.argument_validation import validate_arguments
from attlas.data.sparse_majority import BitEmbedding
from attlas.models.networks.single_layer_transformer import SingleLayerTransformer
from attlas.training.sparse_majority.outputs import majority_outputs

FAMILIES = (
    "Theorem 4.1 corrected",
    "Theorem 4.1 sharp",
    "log T",
    "parameters",
    "Theorem 4.1, fixed [CLS]",
    "parameters, fixed [CLS]",
)
"""If the [CLS] token is the same in every sequence, only W_QK x_CLS matters of W_QK."""


@loop_jit
def ramp_risks(
    models: SingleLayerTransformer,
    embedding: BitEmbedding,
    bits: Int8[Array, "n T"],
    labels: Int[Array, " n"],
    margins: Float[Array, " g"],
) -> tuple[Float[Array, " r"], Float[Array, "r g"]]:
    r"""Accuracy, where an output of 0 counts half, and the ramp risk at each margin.

    $$\frac1n\sum_i\min\Big(1,\max\Big(0,1-\frac{y_if(X_i)}\gamma\Big)\Big)$$

    Args:
        labels: 0 or 1.

    Examples:
        >>> embedding = BitEmbedding(*jnp.eye(3), positions=jnp.zeros((3, 3)))
        >>> eye = jnp.eye(3)[None]
        >>> model = SingleLayerTransformer(jnp.array([-1.0, 1.0, 0.0]), 0 * eye, eye, eye)
        >>> models = jax.tree.map(lambda a: a[None], model)
        >>> bits, labels = jnp.array([[1, 1], [0, 0]], jnp.int8), jnp.array([1, 0])
        >>> found = ramp_risks(models, embedding, bits, labels, jnp.array([0.5, 4 / 3]))
        >>> [[f"{float(risk):.2f}" for risk in part.ravel()] for part in found]
        [['1.00'], ['0.00', '0.50']]
    """

    def of_model(model: SingleLayerTransformer) -> Array:
        out = majority_outputs(model, embedding, bits)
        signed = jnp.where(labels > 0, out, -out)
        right = jnp.mean((jnp.sign(signed) + 1) / 2)
        # One margin at a time, to save memory.
        gammas = margins.astype(out.dtype)
        ramp = jax.lax.map(lambda g: jnp.mean(jnp.clip(1 - signed / g, 0, 1)), gammas)
        return jnp.append(right, ramp)

    risks = jax.lax.map(of_model, models)
    return risks[:, 0], risks[:, 1:]


@functools.partial(jax.jit, static_argnames=("T", "d"), compiler_options=CHEAP_COMPILATION)
def ball_complexities(
    radii: Float[Array, " r"] | np.ndarray, samples: Float[Array, " m"] | np.ndarray, T: int, d: int
) -> Float[Array, "r m 6"]:
    """Bounds on the complexity of one layer with ||W_QK||_{1,1} <= r, by `FAMILIES`; at most 1.

    Examples:
        >>> found = ball_complexities(np.array([4.0]), np.array([1e8]), 32, 34)
        >>> [f"{float(R):.3f}" for R in found[0, 0]]
        ['0.216', '0.070', '0.129', '0.024', '0.054', '0.004']
    """

    def complexity(r: Array, m: Array) -> Array:
        norms = norms_in_ball("1,1", r, d)
        bounds = functools.partial(single_layer_bounds, norms, d=d, m=m)
        corrected = bounds(covers=("1,1",), constants="corrected")
        sharp = bounds(covers=("1,1", m * T, "parameters"))
        fixed = bounds(covers=("1,1", "parameters"), rows=1)
        return jnp.minimum(jnp.concatenate([corrected, sharp, fixed]), 1.0)

    # A tiny value instead of radius 0 keeps the logarithms finite.
    row = jax.vmap(complexity, in_axes=(None, 0))
    return jax.lax.map(lambda r: row(jnp.maximum(r, 1e-9), jnp.asarray(samples)), radii)


class CertifiedError(NamedTuple):
    """Bounds on the error, each at its best margin, and the index of this margin."""

    error: Float[np.ndarray, "r m f"]
    margin: Int[np.ndarray, "r m f"]


@validate_arguments
def certified_error(
    ramp: Float[np.ndarray, "r g"],
    complexity: Float[np.ndarray, "r m f"],
    samples: Float[np.ndarray, " m"],
    margins: Float[np.ndarray, " g"],
    delta: float,
) -> CertifiedError:
    r"""The bound on the error at its best margin, for all radii and margins at once (union bound).

    $$\min_\gamma\ {\rm ramp}_\gamma+\frac{2R}\gamma+3\sqrt{\frac{\ln(2rg/\delta)}{2m}}$$

    Args:
        ramp: risk on the sample, by radius and margin.
        complexity: R, by radius, number of samples and family.
        delta: probability that some bound fails.

    Examples:
        >>> parts = np.array([[0.5, 0.6]]), np.full((1, 1, 1), 0.1), np.array([1e9])
        >>> found = certified_error(*parts, np.array([0.5, 1.0]), 0.05)
        >>> f"{found.error.item():.3f}", found.margin.item()
        ('0.800', 1)
    """
    share = delta / ramp.size
    tail = np.array([float(generalisation_gap(0.0, m, share)) for m in samples.tolist()])
    gap = 2 * complexity[..., None] / margins + tail[None, :, None, None]
    error = ramp[:, None, None] + gap
    return CertifiedError(error.min(axis=-1), error.argmin(axis=-1))
