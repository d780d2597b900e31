r"""Gaussian laws of weights: a posterior, a prior on a grid of scales, and their divergence."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from attlas.core.arrays import read_array
from attlas.core.errors import UserError
from attlas.core.trees import as_tree, require_finite_tree


class GaussianWeights(NamedTuple):
    r"""Independent normal weights, $w_i\sim N(\mu_i,\sigma_i^2)$.

    Attributes:
        mean: a pytree of arrays, or a torch.nn.Module, whose named parameters it stands for.
        scale: one standard deviation for all, or a pytree of them, as the mean or of one number
            for each of its arrays.
    """

    mean: Any
    scale: Any


class GaussianPrior(NamedTuple):
    r"""A prior $N(\mu,\lambda^2I)$ whose scale may be chosen afterwards from a grid.

    Attributes:
        mean: a pytree like the posterior's: the initial weights, or weights trained on other
            examples than those of the bound.
        scales: the grid of $\lambda$, fixed in advance; each takes an equal share of delta.
    """

    mean: Any
    scales: Sequence[float]


def named_parameters(mean: Any) -> Any:
    """The parameters of a torch.nn.Module by name; any other pytree as it is.

    Examples:
        >>> named_parameters({"W": [1.0]})
        {'W': [1.0]}
    """
    parameters: Any = getattr(mean, "named_parameters", None)
    return mean if parameters is None else dict(parameters())


def read_gaussian(law: GaussianWeights) -> GaussianWeights:
    """A posterior with arrays of JAX, and one of scales for each array of means.

    Raises:
        UserError: where a mean is not finite, or scales do not fit or are not above 0.

    Examples:
        >>> law = read_gaussian(GaussianWeights({"W": np.ones((1, 2))}, 0.1))
        >>> law.scale["W"].shape
        ()
    """
    mean = _read_tree(law.mean, "posterior.mean")
    leaves, tree = jax.tree.flatten(mean)
    scale = as_tree(law.scale, "posterior.scale")
    scales = jax.tree.leaves(scale)
    if jax.tree.structure(scale) != tree:
        if len(scales) != 1 or np.ndim(scales[0]) > 0:
            raise UserError("posterior.scale: give one number, or a pytree like posterior.mean")
        scales = scales * len(leaves)
    widths = []
    for leaf, deviation in zip(leaves, scales, strict=True):
        width = read_array(deviation, "posterior.scale")
        if width.shape not in ((), leaf.shape):
            raise UserError(
                f"posterior.scale has shape {width.shape}: give one number or {leaf.shape}"
            )
        widths.append(jnp.asarray(width, leaf.dtype))
        if not bool(jnp.all((widths[-1] > 0) & jnp.isfinite(widths[-1]))):
            raise UserError("posterior.scale: every standard deviation must be finite and above 0")
    return GaussianWeights(mean, jax.tree.unflatten(tree, widths))


def gaussian_kl(posterior: GaussianWeights, prior: GaussianPrior) -> Float[np.ndarray, " K"]:
    r"""Divergence of the posterior from each prior of the grid, rounded up.

    $$\sum_i\frac{\sigma_i^2+(\mu_i-\mu^0_i)^2}{2\lambda^2}-\frac12+\ln\frac\lambda{\sigma_i}$$

    Returns:
        Nats in float64, one for each scale.

    Raises:
        UserError: where the trees or shapes differ, or a scale is not above 0.

    Examples:
        >>> law = GaussianWeights([[1.0, 2.0]], 0.5)
        >>> gaussian_kl(law, GaussianPrior([[1.0, 2.0]], [0.5, 1.0])).round(6).tolist()
        [0.0, 0.636294]
    """
    law = read_gaussian(posterior)
    start = _read_tree(prior.mean, "prior.mean")
    if jax.tree.structure(start) != jax.tree.structure(law.mean):
        raise UserError("prior.mean has another structure than posterior.mean: give the same tree")
    scales = read_array(prior.scales, "prior.scales").astype(np.float64).reshape(-1)
    if scales.size == 0 or not np.all((scales > 0) & np.isfinite(scales)):
        raise UserError("prior.scales: give at least one, each finite and above 0")
    squares = logs = 0.0
    count = 0
    for mean, width, origin in zip(
        *map(jax.tree.leaves, (law.mean, law.scale, start)), strict=True
    ):
        if mean.shape != origin.shape:
            raise UserError(f"prior.mean has shape {origin.shape} where {mean.shape} is drawn")
        mu, sigma, zero = (np.asarray(array, np.float64) for array in (mean, width, origin))
        sigma = np.broadcast_to(sigma, mu.shape)
        squares += float(np.sum(sigma**2 + (mu - zero) ** 2))
        logs += float(np.sum(np.log(sigma)))
        count += mu.size
    terms = squares / (2 * scales**2), count * np.log(scales), logs, count / 2
    roundings = (count + 16) * np.finfo(np.float64).eps
    size = sum(np.abs(part) for part in terms)
    return np.maximum(terms[0] + terms[1] - terms[2] - terms[3] + roundings * size, 0.0)


def _read_tree(tree: Any, name: str) -> Any:
    read = as_tree(named_parameters(tree), name)
    if not jax.tree.leaves(read):
        raise UserError(f"{name} has no weights: give a pytree of arrays")
    require_finite_tree(read, name)
    floating = jnp.asarray(1.0).dtype
    return jax.tree.map(
        lambda leaf: jnp.asarray(
            leaf, leaf.dtype if jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.floating) else floating
        ),
        jax.tree.map(jnp.asarray, read),
    )
