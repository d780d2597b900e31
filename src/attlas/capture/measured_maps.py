"""What the maps, products and logits of an attention are, by head."""

import numpy as np
import torch
from jaxtyping import Float

from attlas.torch.attention_trace import Attended


def measured_maps(seen: Attended, rows: int) -> Float[np.ndarray, "four B H"]:
    """Weight on the first token, that of equal weights, largest product and logit.

    Args:
        seen: tensors of the attention, with an axis of heads.
        rows: the rows from the second up to this one are read for the weight on the first token.

    Examples:
        >>> one, maps = torch.ones(1, 1, 2, 1), torch.tensor([[[[1.0, 0.0], [0.75, 0.25]]]])
        >>> logits = torch.tensor([[[[3.0, -1e9], [-2.0, 0.0]]]])
        >>> measured_maps(Attended(one, one, logits, maps, one, maps @ one), 64).ravel().tolist()
        [0.75, 0.5, 1.0, 3.0]
    """
    weights = seen.weights
    allowed = seen.allowed.expand_as(weights)
    later = slice(1, rows) if weights.shape[2] > 1 else slice(None)
    equal = allowed[..., 0] / allowed.sum(-1).clamp(min=1)
    products = (seen.queries @ seen.keys.transpose(-1, -2)).abs().amax((-1, -2))
    logits = seen.logits.masked_fill(~seen.allowed, 0).abs().amax((-1, -2))
    parts = (
        weights[:, :, later, 0].mean(-1),
        equal[:, :, later].mean(-1),
        products.expand(weights.shape[:2]),
        logits.expand(weights.shape[:2]),
    )
    return torch.stack([part.double() for part in parts]).cpu().numpy()
