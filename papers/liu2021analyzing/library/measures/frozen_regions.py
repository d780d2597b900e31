"""Linear regions of a self-attention network whose attention is frozen at an input."""

import numpy as np
from jaxtyping import Float

from attlas.core.argument_validation import validate_arguments
from attlas.core.axes import require_axes
from liu2021analyzing.library.measures.activation_patterns import activation_patterns
from liu2021analyzing.library.measures.linear_regions import count_cells
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP


@validate_arguments
def frozen_regions(
    model: SelfAttentionMLP,
    attention: Float[np.ndarray, "n p p"],
    points: Float[np.ndarray, "m p"],
) -> tuple[float, float]:
    r"""Mean number of regions of the hidden units $\phi(W_1'\mathrm{vec}(vA)+b_1)$ in the values v.

    With weights that depend on x a softmax network has no linear regions; with A fixed it has.

    Args:
        model: with values of one dimension, so that v has one entry per word.
        attention: weights A of some inputs, column z of query z.
        points: values v.

    Returns:
        Means over the inputs: exact number of regions, and how many of them the points meet.

    Examples:
        >>> import jax.numpy as jnp
        >>> one = jnp.ones((1, 1))
        >>> model = SelfAttentionMLP(one, one, one, jnp.eye(2), jnp.ones(2))
        >>> frozen_regions(model, np.eye(2)[None], np.array([[1.0, 1.0], [2.0, 3.0]]))
        (4.0, 1.0)
    """
    W1 = np.asarray(model.W1)
    require_axes("n p p, p d", {"attention": attention.shape, "model.W1": W1.shape})
    b = np.zeros(W1.shape[1]) if model.b1 is None else np.asarray(model.b1)
    first = [(A @ W1).T for A in attention]
    exact = np.mean([count_cells(W, b) for W in first])
    return float(exact), float(np.mean([activation_patterns(W, b, points) for W in first]))
