"""Dense maps and norms of a file, by the path that their tensors' names begin with."""

import jax.numpy as jnp

from attlas.transformers.canonical import Dense, Norm
from attlas.transformers.head_blocks import dense
from attlas.transformers.stored_tensors import StoredTensors


def read_dense(stored: StoredTensors, path: str, *, outputs_first: bool = True) -> Dense:
    """A dense map of the file.

    Args:
        stored: the file.
        path: its name.
        outputs_first: whether rows of the matrix are outputs, as in torch's Linear; else inputs.

    Returns:
        The map; without bias where the file has none.
    """
    W = stored[f"{path}.weight"]
    return dense(W, stored.get(f"{path}.bias"), outputs_first=outputs_first)


def read_norm(stored: StoredTensors, path: str, eps: float) -> Norm:
    """A LayerNorm of the file.

    Args:
        stored: the file.
        path: its name.
        eps: added to the variance.

    Returns:
        The norm.
    """
    gain, bias = (jnp.asarray(stored[f"{path}.{part}"]) for part in ("weight", "bias"))
    return Norm(gain, bias, eps, centred=True)
