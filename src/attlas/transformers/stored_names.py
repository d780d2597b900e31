"""Names of tensors as a model's own code has them, whatever wrote them."""

import re
from collections.abc import Mapping

from attlas._files.plain_file import printable
from attlas.core.errors import UserError
from attlas.transformers.lazy_tensors import Unread

_INSIDE = re.compile(r"(^|(?<=\.))(_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.")
"""What compilation, sharding and checkpointing put before the names below a module of theirs."""
_BEFORE = ("module.", "model.")
"""What data parallelism, and a module that holds the model, put before all names."""
_MODELS = re.compile(
    r"model\.(model|bert|roberta|electra|albert|distilbert|vit|transformer|gpt_neox)\."
)
"""Names of a model that another module holds: Llama's own begin with "model." once."""
_NORMS = (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias"))
"""TensorFlow's names, under which BERT's first files have their norms."""


def plain_names(tensors: Mapping[str, Unread], where: str) -> dict[str, Unread]:
    """The tensors under the names that the model's own code gives them.

    Args:
        where: what a message calls the place.

    Raises:
        UserError: if two tensors have one name then.

    Examples:
        >>> import numpy as np
        >>> one = Unread((1,), np.dtype("f4"), "memory", lambda dtype: np.ones(1, dtype))
        >>> list(plain_names({"module._orig_mod.LayerNorm.gamma": one}, "memory"))
        ['LayerNorm.weight']
    """
    plain: dict[str, Unread] = {}
    prefix = _common_prefix([_INSIDE.sub("", name) for name in tensors])
    for name, tensor in tensors.items():
        new = _INSIDE.sub("", name).removeprefix(prefix)
        for old, today in _NORMS:
            new = new.removesuffix(old) + today if new.endswith(old) else new
        if new in plain:
            raise UserError(
                f"{where} holds tensor '{printable(new)[:80]}' under two names: keep one of them"
            )
        plain[new] = tensor
    return plain


def _common_prefix(names: list[str]) -> str:
    """What stands before all names and is no part of the model's own."""
    prefix = ""
    while True:
        rest = [name.removeprefix(prefix) for name in names]
        wrapper = next((word for word in _BEFORE if all(n.startswith(word) for n in rest)), "")
        if not wrapper or (wrapper == "model." and not any(_MODELS.match(n) for n in rest)):
            return prefix
        prefix += wrapper
