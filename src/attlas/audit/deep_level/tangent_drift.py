r"""Two checkpoints of one model: drift of the tangent kernel, and whether training was lazy."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from attlas.audit.deep_level.head_curvature import mean_loss
from attlas.audit.deep_level.sharpness import trained_loss
from attlas.audit.sequence_loss import COMPARED, JudgedBatch, token_loss
from attlas.core.errors import UserError
from attlas.transformers.forward import read_out
from attlas.transformers.trained_transformer import TrainedTransformer
from attlas.transformers.trained_weights import HeldWeights, trained_weights
from attlas.transformers.whole_model import WholeModel, whole_model

LAZY = 0.1
"""Training is called lazy where the linearised model shows all of the change but this share."""


class TangentDrift(NamedTuple):
    r"""What happened between two checkpoints, on one batch.

    Attributes:
        loss_before: mean loss at the first.
        loss_after: mean loss at the second.
        loss_linear: mean loss of the first one's linearisation at the second one's weights.
        drift: ||K_1 - K_0||_F / ||K_0||_F of the tangent kernels of the sequences' losses.
        alignment: <K_0, K_1> / (||K_0|| ||K_1||).
        distance: ||theta_1 - theta_0|| / ||theta_0||.
    """

    loss_before: float
    loss_after: float
    loss_linear: float
    drift: float
    alignment: float
    distance: float

    @property
    def explained(self) -> float:
        """Share of the change of the loss that the linearised model shows; 1 is lazy training."""
        change = self.loss_after - self.loss_before
        return (self.loss_linear - self.loss_before) / change if change else float("nan")

    @property
    def lazy(self) -> str:
        """Whether training was lazy: "yes" where `explained` is within `LAZY` of 1, else "no".

        "not told", a stored value, where the loss did not change.
        """
        if math.isnan(self.explained):
            return "not told"
        return "yes" if abs(self.explained - 1) <= LAZY else "no"


def require_comparable(
    before: TrainedTransformer, after: TrainedTransformer, batch: JudgedBatch
) -> None:
    """Check that two models are checkpoints of one, before anything is computed.

    Raises:
        UserError: if the two differ in size, or the loss compares a model with itself.
    """
    if batch.kind in COMPARED:
        raise UserError(
            f"two checkpoints are compared by a loss on tokens, and that of {after.name} compares "
            f"its {batch.kind}: leave out the other checkpoint, or name a mask token"
        )
    names = ("stored_layer", "heads_per_layer", "width", "vocabulary", "parameters")
    for name in names:
        first, second = getattr(before, name), getattr(after, name)
        if first != second:
            raise UserError(
                f"{before.name} and {after.name} have other shapes ({name.replace('_', ' ')} "
                f"{first} and {second}): they are not checkpoints of one model"
            )


def tangent_drift(
    before: TrainedTransformer, after: TrainedTransformer, batch: JudgedBatch
) -> TangentDrift:
    r"""Compare two checkpoints of one model.

    $$K_{ij}=\langle\nabla_\theta\ell_i,\nabla_\theta\ell_j\rangle,\qquad
    f_{\rm lin}(\theta_1)=f(\theta_0)+Df(\theta_0)(\theta_1-\theta_0)$$

    with the loss $\ell_i$ of sequence i and the logits f. A small drift alone does not make
    training lazy: the linearised model's loss must be that of the trained one.

    Args:
        after: the later one, of the same shapes.
        batch: sequences and their loss, "next token" or "masked token".

    Raises:
        UserError: if the two differ in shape, or the loss compares a model with itself.

    Source: Definition of the tangent kernel as in gu2024exploring; of losses, not of outputs.
    """
    require_comparable(before, after, batch)
    first, second = whole_model(before), whole_model(after)
    shapes = [jax.tree.map(jnp.shape, weights) for weights in (first, second)]
    if jax.tree.structure(first) != jax.tree.structure(second) or shapes[0] != shapes[1]:
        raise UserError(f"{before.name} and {after.name} have other shapes: no checkpoints of one")
    data = tuple(jnp.asarray(part) for part in batch[1:])
    trained, held = trained_weights(first, second)
    kernels = []
    for weights in trained:
        rows = np.stack(
            [
                np.asarray(_loss_gradient(weights, held, *(part[k] for part in data)))
                for k in range(len(data[0]))
            ]
        )
        kernels.append(rows @ rows.T)
    K_0, K_1 = kernels
    sizes = np.linalg.norm(K_0), np.linalg.norm(K_1)
    flat = [np.asarray(ravel_pytree(checkpoint)[0]) for checkpoint in trained]
    loss = eqx.filter_jit(mean_loss)
    return TangentDrift(
        float(loss(first, *data)),
        float(loss(second, *data)),
        float(_linear_loss(first, second, *data)),
        float(np.linalg.norm(K_1 - K_0) / sizes[0]),
        float(np.sum(K_0 * K_1) / (sizes[0] * sizes[1])),
        float(np.linalg.norm(flat[1] - flat[0]) / np.linalg.norm(flat[0])),
    )


@eqx.filter_jit
def _loss_gradient(trained: WholeModel, held: HeldWeights, *data: Array) -> Float[Array, " P"]:
    """Gradient of one sequence's loss in all trained weights."""

    def loss(tree: WholeModel) -> Array:
        return trained_loss(tree, held, *(part[None] for part in data))

    return ravel_pytree(jax.grad(loss)(trained))[0]


@eqx.filter_jit
def _linear_loss(
    first: WholeModel,
    second: WholeModel,
    tokens: Array,
    present: Array,
    targets: Array,
    counted: Array,
) -> Array:
    """Mean loss of the logits that are linear in the weights."""
    step = jax.tree.map(jnp.subtract, second, first)

    def of_sequence(sequence: Array, there: Array, wanted: Array, where: Array) -> Array:
        def logits(tree: WholeModel) -> Array:
            return read_out(tree.readout, tree.hidden(sequence, there))

        value, change = jax.jvp(logits, (first,), (step,))
        return token_loss(value + change, wanted, where)

    return jnp.mean(jax.vmap(of_sequence)(tokens, present, targets, counted))
