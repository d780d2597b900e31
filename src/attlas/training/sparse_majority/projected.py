r"""Projected gradient descent on sparse majority: every norm of Theorem 4.1 stays in its ball.

The class is fixed before the data are seen, so that bounds on it need no union over norms. The l_1
norms of w and of the columns of W_c and W_v are at most 1, so that B = 1 and |f| is at most the
largest entry of a token. Larger norms would gain nothing: f is homogeneous in these matrices, so
that the margin would scale with them.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Int8, PRNGKeyArray

from attlas._jax.device_arrays import generator
from attlas._jax.loop_jit import loop_jit
from attlas.core.errors import UserError, refuse_misfits
from attlas.data.sparse_majority import BitEmbedding, SparseMajority
from attlas.losses.logistic import logistic
from attlas.models.networks.single_layer_transformer import SingleLayerTransformer
from attlas.norms.balls import project
from attlas.training.fit import fit
from attlas.training.sparse_majority.outputs import majority_outputs


class ProjectedSettings(NamedTuple):
    """Settings of the training.

    Attributes:
        batch: sequences per step, drawn with replacement.
        temperature: tau of the loss tau log(1 + exp(-y f / tau)).
        width: k, columns of W_v.
        ball: name of the norm that bounds W_QK.
        linear: whether the activation is the identity instead of a rectifier.
    """

    steps: int = 800
    batch: int = 64
    rate: float = 1.0
    momentum: float = 0.9
    temperature: float = 0.1
    width: int = 8
    ball: str = "1,1"
    linear: bool = False


USUAL = ProjectedSettings()


def project_single_layer(
    model: SingleLayerTransformer, radius: float | Float[Array, ""], ball: str = "1,1"
) -> SingleLayerTransformer:
    r"""The nearest model with ||w||_1, ||W_c||_{1,inf}, ||W_v||_{1,inf} <= 1 and ||W_QK|| <= r.

    `ball` names the norm of W_QK.

    Source: norms of Theorem 4.1 of trauger2023sequence, as its proof uses them.

    Examples:
        >>> eye = jnp.eye(2)[None]
        >>> model = SingleLayerTransformer(2 * jnp.ones(2), 3 * eye, 2 * eye, eye)
        >>> found = project_single_layer(model, 2.0)
        >>> found.w.tolist(), found.query_key[0].tolist(), found.value[0].tolist()
        ([0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]])
    """
    return SingleLayerTransformer(
        project(model.w[:, None], "1,1", 1.0)[:, 0],
        project(model.query_key, ball, radius),
        project(model.value, "1,inf", 1.0),
        project(model.output, "1,inf", 1.0),
        model.activation,
    )


@refuse_misfits
def train_projected(
    key: PRNGKeyArray,
    data: SparseMajority,
    radii: Float[Array, " r"],
    settings: ProjectedSettings = USUAL,
) -> SingleLayerTransformer:
    r"""Train one model in each ball, from the same start on the same batches; stacked by radius.

    Args:
        data: one draw, whose training sequences are used.
        radii: bounds on the norm of W_QK.

    Raises:
        UserError: if there is no step, no batch, or a negative radius.

    Examples:
        >>> from attlas.data.sparse_majority import MajorityDesign, make_sparse_majority
        >>> design = MajorityDesign(train=16, validation=1, indices=1, dimension=4)
        >>> data = make_sparse_majority(jax.random.key(0), 3, design)
        >>> settings = ProjectedSettings(steps=2, batch=4)
        >>> found = train_projected(jax.random.key(1), data, jnp.array([0.0, 2.0]), settings)
        >>> found.query_key.shape, float(jnp.abs(found.query_key[0]).sum())
        ((2, 1, 4, 4), 0.0)
    """
    if settings.steps < 1 or settings.batch < 1:
        raise UserError(
            f"steps = {settings.steps}, batch = {settings.batch}: both must be at least 1"
        )
    if np.any(np.asarray(radii) < 0):
        raise UserError(f"radius {float(np.min(np.asarray(radii)))} is negative: give 0 or more")
    draw = generator(key)
    start = _start(draw, data.embedding.cls.shape[-1], settings.width, data.embedding.cls.dtype)
    if settings.linear:
        start = SingleLayerTransformer(
            start.w, start.query_key, start.value, start.output, jax.nn.identity
        )
    rows = draw.integers(0, data.labels.shape[0], (settings.steps, settings.batch))
    # Only the sequences of the batches, so that one program serves all numbers of samples.
    batches = (np.asarray(data.bits)[rows], np.asarray(data.labels)[rows])
    return _train(settings, start, data.embedding, batches, radii)


def _start(draw: np.random.Generator, d: int, k: int, dtype: np.dtype) -> SingleLayerTransformer:
    """Small random weights, so that attention starts nearly uniform."""
    # Columns of W_v and rows of W_c come in pairs of opposite sign, so that the initial output is
    # odd in the values: it is neither dead after the rectifier nor of one sign on all sequences.
    half = (k + 1) // 2
    shapes = ((0.3 / d, (d,)), (0.01, (1, d, d)), (0.3, (1, d, half)), (0.3, (1, half, d)))
    w, query_key, value, output = (size * draw.normal(size=shape) for size, shape in shapes)
    value = np.concatenate([value, -value], axis=2)[..., :k]
    output = np.concatenate([output, -output], axis=1)[:, :k]
    arrays = (w, query_key, value, output)
    w, query_key, value, output = (jnp.asarray(a.astype(dtype)) for a in arrays)
    return SingleLayerTransformer(w, query_key, value, output)


class _LossInputs(NamedTuple):
    """The embedding of the bits, and the temperature of the loss."""

    embedding: BitEmbedding
    temperature: Array


Batch = tuple[Int8[Array, "*s b T"], Int[Array, "*s b"]]
"""Sequences and labels, those of a step or with a leading axis of steps."""


def _risk(model: SingleLayerTransformer, inputs: _LossInputs, batch: Batch) -> Array:
    embedding, tau = inputs
    bits, labels = batch
    out = majority_outputs(model, embedding, bits)
    signs = 2 * labels.astype(out.dtype) - 1
    return tau * jnp.mean(logistic(signs * out / tau))


@loop_jit(static_argnums=0)
def _train(
    settings: ProjectedSettings,
    start: SingleLayerTransformer,
    embedding: BitEmbedding,
    batches: Batch,
    radii: Float[Array, " r"],
) -> SingleLayerTransformer:
    """All models as one program."""
    optimizer = optax.sgd(settings.rate, settings.momentum)
    inputs = _LossInputs(embedding, jnp.asarray(settings.temperature, start.w.dtype))

    def train_in_ball(radius: Array) -> SingleLayerTransformer:
        return fit(
            _risk,
            optimizer,
            start,
            inputs,
            record_at=(settings.steps,),
            batches=batches,
            project=lambda model: project_single_layer(model, radius, settings.ball),
        ).last

    return jax.vmap(train_in_ball)(radii)
