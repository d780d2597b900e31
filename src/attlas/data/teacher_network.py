r"""Regression data of (A1) of liu2021analyzing: y = teacher(x) - mean + noise.

Inputs are bounded, uniform in [-C_x, C_x]; noise is sub-Gaussian with variance proxy C_3^2 and
independent of them; labels are centred. The teacher is any model, with attention or without.
"""

from collections.abc import Callable
from typing import Any, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.core.errors import UserError
from attlas.core.generator import generator
from attlas.models.attention.fixed_attention import Weights
from attlas.models.networks.two_layer import AttendedTwoLayer, TwoLayer

Noise = Literal["gaussian", "signs", "uniform"]

# Fresh inputs over which a teacher's mean is taken, and how many go through it at once.
_CENTRING, _CHUNK = 65_536, 8_192


class TeacherData(eqx.Module):
    """Inputs, noisy labels and the truth.

    Attributes:
        x: inputs, one along the leading axis each.
        y: labels.
        truth: E(y | x), the labels without their noise.
        centre: what was taken off the teacher's outputs, its mean over fresh inputs.
        centre_error: standard error of that mean; 0 where it is known.
    """

    x: Float[Array, "n *shape"]
    y: Float[Array, " n"]
    truth: Float[Array, " n"]
    centre: float = eqx.field(static=True)
    centre_error: float = eqx.field(static=True)


def make_teacher(
    key: PRNGKeyArray,
    p: int,
    d: int,
    *,
    norms: tuple[float, float] = (1.0, 1.0),
    attention: Weights | None = None,
    balanced: bool = False,
    sharpness: float | None = None,
    dtype: Any = None,
) -> TwoLayer | AttendedTwoLayer:
    r"""A two-layer teacher with ||W1||_F = C_1 and ||w2||_2 = C_2, in random directions.

    Args:
        key: random key.
        p: features.
        d: hidden units; even where `balanced`.
        norms: C_1 and C_2.
        attention: known weights f of the inputs; none when None.
        balanced: let the second half of the units be the first with the signs of their inputs
            changed and opposite weights. The mean is then 0 for inputs that are symmetric one
            by one, if f(x) does not change with their signs.
        sharpness: of the softplus; ReLU when None.
        dtype: of the weights; JAX's default when None.

    Returns:
        The teacher.

    Raises:
        UserError: if a size or the sharpness is not positive or d is odd for a balanced teacher.

    Examples:
        >>> teacher = make_teacher(jax.random.key(0), 5, 4, norms=(3.0, 2.0))
        >>> print(f"{jnp.linalg.norm(teacher.W1):.4f} {jnp.linalg.norm(teacher.w2):.4f}")
        3.0000 2.0000
    """
    if p < 1 or d < 1 or (balanced and d % 2) or not all(0 < norm < np.inf for norm in norms):
        raise UserError(
            f"p = {p}, d = {d}, norms = {norms}: give positive ones, an even d if balanced"
        )
    if sharpness is not None and not sharpness > 0:
        raise UserError(f"sharpness = {sharpness} is not positive: choose tau_0 > 0 or None")
    draw = generator(key)
    half = d // 2 if balanced else d
    W1, w2 = draw.standard_normal((p, half)), draw.standard_normal(half)
    if balanced:
        signs = draw.choice([-1.0, 1.0], (p, half))
        W1, w2 = np.hstack([W1, signs * W1]), np.r_[w2, -w2]
    W1, w2 = norms[0] * W1 / np.linalg.norm(W1), norms[1] * w2 / np.linalg.norm(w2)
    network = TwoLayer(jnp.asarray(W1, dtype), jnp.asarray(w2, dtype), sharpness=sharpness)
    return network if attention is None else AttendedTwoLayer(network, attention)


def make_teacher_data(
    key: PRNGKeyArray,
    teacher: Callable[[Array], Array],
    n: int,
    shape: tuple[int, ...],
    *,
    bound: float = 1.0,
    noise: float = 0.0,
    kind: Noise = "gaussian",
    centre: float | None = None,
    dtype: Any = None,
) -> TeacherData:
    r"""Samples of y = teacher(x) - E teacher(x) + epsilon.

    Args:
        key: random key of inputs and noise.
        teacher: any model of one input, an equinox module.
        n: samples.
        shape: of one input: (p,), or (t, p) for p words with t entries.
        bound: C_x.
        noise: C_3: normal of that deviation, signs times it, or uniform within sqrt(3) of it.
        kind: of the noise; each has E exp(t eps) <= exp(t^2 C_3^2 / 2).
        centre: E teacher(x), where it is known; else the mean over 65,536 fresh inputs, the same
            for every key, so that a training and a test set have one truth.
        dtype: of the data; JAX's default when None.

    Returns:
        The data.

    Raises:
        UserError: if the teacher's outputs are not one finite number each; settings are checked.

    Examples:
        >>> teacher = make_teacher(jax.random.key(0), 5, 4, balanced=True)
        >>> data = make_teacher_data(jax.random.key(1), teacher, 100, (5,), noise=0.1, centre=0.0)
        >>> data.x.shape, bool(jnp.max(jnp.abs(data.x)) <= 1)
        ((100, 5), True)
        >>> print(f"{jnp.std(data.y - data.truth):.1f}")
        0.1
    """
    _require_design(n, shape, bound, noise, kind, centre)
    error = 0.0
    if centre is None:
        centre, error = _mean(teacher, shape, bound, dtype)
    draw = generator(key)
    x = jnp.asarray(draw.uniform(-bound, bound, (n, *shape)), dtype)
    spread = {
        "gaussian": draw.standard_normal,
        "signs": lambda size: draw.choice([-1.0, 1.0], size),
        "uniform": lambda size: draw.uniform(-np.sqrt(3), np.sqrt(3), size),
    }[kind](n)
    truth = _outputs(teacher, x) - centre
    if truth.shape != (n,) or not bool(jnp.all(jnp.isfinite(truth))):
        raise UserError("the teacher's outputs must be one finite number each: check its weights")
    return TeacherData(x, truth + jnp.asarray(noise * spread, truth.dtype), truth, centre, error)


def _require_design(
    n: int, shape: tuple[int, ...], bound: float, noise: float, kind: str, centre: float | None
) -> None:
    if n < 1 or min(shape, default=0) < 1 or not 0 < bound < np.inf or not 0 <= noise < np.inf:
        raise UserError(
            f"n = {n}, shape = {shape}, C_x = {bound}, C_3 = {noise}: give positive sizes and "
            "bound, and a noise that is not negative, all finite"
        )
    if kind not in get_args(Noise):
        raise UserError(f"kind = {kind!r} of noise: choose one of {', '.join(get_args(Noise))}")
    if centre is not None and not np.isfinite(centre):
        raise UserError(f"centre = {centre} is not finite: leave it out to have it estimated")


@eqx.filter_jit
def _outputs(teacher: Callable[[Array], Array], x: Float[Array, "n *shape"]) -> Array:
    return jax.vmap(teacher)(x)


def _mean(
    teacher: Callable[[Array], Array], shape: tuple[int, ...], bound: float, dtype: Any
) -> tuple[float, float]:
    """Mean of the teacher's outputs over fresh inputs, and its standard error."""
    # A stream of its own: no key of a user's is this one.
    draw, outputs = np.random.default_rng([2021, *shape]), []
    for _ in range(_CENTRING // _CHUNK):
        x = jnp.asarray(draw.uniform(-bound, bound, (_CHUNK, *shape)), dtype)
        outputs.append(np.asarray(_outputs(teacher, x), float))
    values = np.concatenate(outputs)
    return float(values.mean()), float(values.std() / np.sqrt(values.size))
