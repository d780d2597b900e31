"""Adders trained on the first n of the drawn sums, for several n and starts in one program.

Training ends on rounded weights: from some step on the loss sees the weights on a grid, and its
slope moves those before the rounding (straight-through estimate).
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from attlas._jax.device_arrays import generator
from attlas.training.fit import Ensemble, fit
from attlas_bounds.library.addition.adder import Adder, make_adder
from attlas_bounds.library.addition.sums import Additions
from attlas_bounds.library.training.weight_grid import straight_through


class AdderSize(NamedTuple):
    """Sizes of an adder, fixed before any sum is seen.

    Attributes:
        layers: applications of the shared layer.
        width: dimension of a token.
        hidden: number of rectified units.
    """

    layers: int
    width: int
    hidden: int


class AdderDescent(NamedTuple):
    """Training of adders by Adam.

    Attributes:
        steps: steps of Adam.
        batch: sums per step, drawn with replacement from the n.
        rate: largest learning rate; it rises over the first tenth and falls along a cosine.
        spacing: spacing of the weight grid.
        free: share of the steps before the weights are rounded.
    """

    steps: int
    batch: int
    rate: float
    spacing: float
    free: float = 0.7


def place_loss(
    adder: Adder, data: Additions, batch: tuple[Int[Array, " b"], Float[Array, ""]]
) -> Float[Array, ""]:
    """Mean cross-entropy of the digits of some sums, of the weights on a grid.

    Args:
        adder: the weights before they are rounded.
        batch: numbers of the training sums of the batch, and the spacing of the grid; 0 for no
            rounding.

    Examples:
        >>> sums = Additions(jnp.zeros((1, 3, 2), jnp.int8), jnp.zeros((1, 3), jnp.int8))
        >>> adder = jax.tree.map(lambda a: 0 * a + 0.1, make_adder(jax.random.key(0), 2, 2))
        >>> print(f"{place_loss(adder, sums, (jnp.array([0]), jnp.array(0.5))):.4f}")
        2.3026
    """
    rows, spacing = batch
    seen = straight_through(adder, spacing)
    logits, digits = seen(data.operands[rows]), data.sums[rows]
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, digits))


def train_adders(
    key: PRNGKeyArray,
    data: Additions,
    sizes: Sequence[int],
    starts: int,
    size: AdderSize,
    descent: AdderDescent,
) -> Adder:
    """Train from the same starts on the first n sums, for each n.

    Args:
        data: sums, at least as many as the largest n.
        key: random key of starts and batches.
        sizes: sample sizes n, increasing.
        descent: schedule and step size of the training.

    Examples:
        >>> from attlas_bounds.library.addition.sums import draw_additions
        >>> sums = draw_additions(np.random.default_rng(0), 8, digits=2)
        >>> descent = AdderDescent(steps=2, batch=4, rate=0.01, spacing=0.125)
        >>> found = train_adders(jax.random.key(0), sums, [4, 8], 3, AdderSize(1, 2, 2), descent)
        >>> found.start.shape
        (2, 3, 2)
    """
    starts_key, order = jax.random.split(key)
    models = eqx.filter_vmap(lambda k: make_adder(k, size.width, size.hidden, size.layers))(
        jax.random.split(starts_key, starts)
    )
    many = jax.tree.map(lambda a: jnp.tile(a, (len(sizes), *[1] * (a.ndim - 1))), models)
    draw = generator(order)
    shape = (starts, descent.steps, descent.batch)
    rows = np.concatenate([draw.integers(0, n, shape, np.int32) for n in sizes])
    rounded = np.arange(descent.steps) >= descent.free * descent.steps
    grid = np.tile(np.where(rounded, np.float32(descent.spacing), 0), (len(rows), 1))
    rate = optax.cosine_onecycle_schedule(descent.steps, descent.rate, 0.1)
    path = fit(
        place_loss, optax.adam(rate), many, jax.tree.map(jnp.asarray, data),
        record_at=[descent.steps], batches=(jnp.asarray(rows), jnp.asarray(grid)), keep=False,
        ensemble=Ensemble(params=True, batches=True),
    )  # fmt: skip
    return jax.tree.map(lambda a: a.reshape(len(sizes), starts, *a.shape[1:]), path.last)
