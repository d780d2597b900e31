r"""Michel's score of a head: how fast the loss changes when the head's output is scaled."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.audit.sequence_loss import COMPARED, JudgedBatch, sequence_losses
from attlas.core.errors import UserError
from attlas.transformers.trained_transformer import TrainedTransformer
from attlas.transformers.whole_model import WholeModel, whole_model


def head_importance(model: TrainedTransformer, batch: JudgedBatch) -> Float[np.ndarray, "n L H"]:
    r"""|dL/dg_h| at g = 1 for every sequence, where g_h multiplies the output of head h.

    $$I_h=\mathbb E_x\Big|\operatorname{tr}\big(\mathrm{Att}_h'\,
    \tfrac{\partial L}{\partial\mathrm{Att}_h}\big)\Big|$$

    Its mean over sequences, divided by its length within a layer, is the score of Michel,
    Levy and Neubig (2019). It is the slope at the full head, not the loss without it. A loss
    that compares with the unchanged model has none: it is least there.

    Raises:
        UserError: if the loss compares the model with itself.

    Source: section 4.1 of Michel, Levy and Neubig, "Are sixteen heads really better than one?".
    """
    if batch.kind in COMPARED:
        raise UserError("Michel's score needs a loss on tokens, not one against the model itself")
    weights = whole_model(model)
    ones = jnp.ones((model.layers, model.heads_per_layer), weights.embedding.tokens.dtype)
    rows = [
        _slopes(weights, ones, *(jnp.asarray(part[k]) for part in batch[1:]))
        for k in range(batch.tokens.shape[0])
    ]
    return np.abs(np.stack(rows))


@eqx.filter_jit
def _slopes(
    weights: WholeModel,
    ones: Array,
    tokens: Array,
    present: Array,
    targets: Array,
    counted: Array,
) -> Array:
    """Derivative of one sequence's loss in the gates."""

    def loss(gates: Array) -> Array:
        hidden = weights.hidden(tokens, present, gates)[None]
        return sequence_losses(weights.readout, hidden, targets[None], counted[None])[0]

    return jax.grad(loss)(ones)
