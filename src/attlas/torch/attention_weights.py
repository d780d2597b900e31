"""Where the attention weights of a model are, by the names that libraries give them.

Known are torch.nn.MultiheadAttention, and modules of any library whose children bear one of the
names below, which covers the attention of Hugging Face transformers. How a fused projection is
laid out cannot be read off its shape; where the name does not tell it, the tensor is one block.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from torch import Tensor, nn

PARTS = ("query", "key", "value", "output")

SEPARATE = (
    ("q_proj", "k_proj", "v_proj"),
    ("query", "key", "value"),
    ("q_lin", "k_lin", "v_lin"),
    ("query_proj", "key_proj", "value_proj"),
    ("to_q", "to_k", "to_v"),
    ("wq", "wk", "wv"),
    ("W_q", "W_k", "W_v"),
    ("Wq", "Wk", "Wv"),
    ("project_q", "project_k", "project_v"),
    ("q", "k", "v"),
)
FUSED = ("c_attn", "query_key_value", "qkv_proj", "Wqkv", "qkv")
LATENT = ("kv_a_proj_with_mqa", "kv_b_proj")
"""Keys and values by a product of two matrices, as DeepSeek's latent attention has them."""
OUTPUTS = (
    *("out_proj", "o_proj", "out_lin", "to_out", "c_proj", "dense", "proj", "wo", "W_o", "o"),
    "attention_out",
)
INTERLEAVED = {
    "GPTNeoXAttention": "query_key_value",
    "BloomAttention": "query_key_value",
    "DisentangledSelfAttention": "in_proj",  # of DeBERTa; other modules call other things so
}
"""Classes whose fused rows are query, key and value of the first head, then of the second."""


class AttentionWeight(NamedTuple):
    """One tensor of an attention layer.

    Attributes:
        name: of the parameter in the model.
        tensor: the parameter.
        parts: which of `PARTS` it holds.
        block: how they lie in it, as in `attlas.torch.blocks`: "tensor" for one part.
        note: what a reader should know about it, or nothing.
    """

    name: str
    tensor: Tensor
    parts: tuple[str, ...]
    block: Any
    note: str = ""


def attention_weights(model: nn.Module) -> list[AttentionWeight]:
    """The matrices of queries, keys, values and outputs of a model, each once.

    Returns:
        The weights in the order of the modules; biases are none of them.

    Examples:
        >>> found = attention_weights(nn.MultiheadAttention(4, 2))
        >>> [(weight.name, weight.block) for weight in found]
        [('in_proj_weight', (0, 1, (4, 4, 4))), ('out_proj.weight', 'tensor')]
    """
    names = {id(tensor): name for name, tensor in model.named_parameters()}
    weights: dict[int, AttentionWeight] = {}
    for module in model.modules():
        for tensor, roles, block, note in _of_module(module):
            if id(tensor) in names:
                weight = AttentionWeight(names[id(tensor)], tensor, roles, block, note)
                weights.setdefault(id(tensor), weight)
    return list(weights.values())


def _of_module(module: nn.Module) -> Iterator[tuple[Tensor, tuple[str, ...], Any, str]]:
    if isinstance(module, nn.MultiheadAttention):
        d = module.embed_dim
        if module.in_proj_weight is not None:
            yield module.in_proj_weight, PARTS[:3], (0, 1, (d, d, d)), ""
        else:
            three = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
            for part, tensor in zip(PARTS, three, strict=False):
                if tensor is not None:
                    yield tensor, (part,), "tensor", ""
        yield module.out_proj.weight, ("output",), "tensor", ""
        return
    children = dict(module.named_children())
    attends = False
    for trio in SEPARATE:
        if all(_matrix(children.get(name)) is not None for name in trio):
            attends = True
            for part, name in zip(PARTS, trio, strict=False):
                yield _matrix(children[name]), (part,), "tensor", ""
            break
    shared, by_head = (_matrix(children.get(name)) for name in LATENT)
    if shared is not None and by_head is not None:
        attends = True
        yield from _latent(module, children, shared, by_head)
    special = INTERLEAVED.get(type(module).__name__)
    for name in dict.fromkeys((*FUSED, *filter(None, [special]))):
        tensor = _matrix(children.get(name))
        if tensor is not None:
            attends = True
            block, note = _fused_layout(module, name, children[name], tensor)
            yield tensor, PARTS[:3], block, note
    places = [children.get(name) for name in OUTPUTS] if attends else []
    if {"self", "output"} <= children.keys():
        # BERT and its kin keep the output matrix beside the module that attends.
        places.append(getattr(children["output"], "dense", None))
    for place in places:
        tensor = _matrix(place)
        if tensor is not None:
            yield tensor, ("output",), "tensor", ""


def _latent(
    module: nn.Module, children: Mapping[str, nn.Module], shared: Tensor, by_head: Tensor
) -> Iterator[tuple[Tensor, tuple[str, ...], Any, str]]:
    """Queries by one matrix or two; keys and values by one that all heads share, then by head."""
    for name in ("q_proj", "q_a_proj", "q_b_proj"):
        tensor = _matrix(children.get(name))
        if tensor is not None:
            yield tensor, ("query",), "tensor", ""
    gated = _matrix(children.get("q_gate_proj"))
    if gated is not None:
        block, note = _by_head(module, gated, ("qk_head_dim", "v_head_dim"), "queries and gates")
        yield gated, ("query",), block, note or "queries, and the gate of the context, of each head"
    pair = ("key", "value")
    yield shared, pair, "tensor", "a latent vector that keys and values of all heads share"
    sizes = ("qk_nope_head_dim", "v_head_dim")
    yield by_head, pair, *_by_head(module, by_head, sizes, "keys and values")


def _by_head(
    module: nn.Module, tensor: Tensor, names: tuple[str, ...], what: str
) -> tuple[Any, str]:
    """The block of rows of the first head, then of the second; sizes as the module names them."""
    sizes, heads = tuple(getattr(module, name, 0) for name in names), _heads(module)
    if heads and all(sizes) and tensor.shape[0] == heads * sum(sizes):
        return (0, heads, sizes), ""
    return "tensor", f"how {what} lie in it is not known: one block"


def _heads(module: nn.Module) -> int:
    """The number of heads that a module or its configuration names, 0 where neither does."""
    config = getattr(module, "config", None)
    for holder, name in (
        (config, "num_attention_heads"),
        (module, "num_heads"),
        (module, "num_attention_heads"),
    ):
        if isinstance(number := getattr(holder, name, None), int):
            return number
    return 0


def _matrix(module: nn.Module | None) -> Tensor | None:
    weight: Any = getattr(module, "weight", None)
    return weight if isinstance(weight, Tensor) and len(weight.shape) == 2 else None


def _fused_layout(
    module: nn.Module, name: str, projection: nn.Module, tensor: Tensor
) -> tuple[Any, str]:
    # Conv1D of transformers keeps its matrix transposed: outputs are columns.
    axis = 1 if type(projection).__name__ == "Conv1D" else 0
    size = tensor.shape[axis]
    unknown = ("tensor", "how queries, keys and values lie in it is not known: one block")
    if name in INTERLEAVED.values():
        heads = _heads(module)
        if type(module).__name__ not in INTERLEAVED or not heads or size % (3 * heads):
            return unknown
        return (axis, heads, (size // (3 * heads),) * 3), ""
    inner = tensor.shape[1 - axis]
    if size == 3 * inner:
        return (axis, 1, (inner,) * 3), ""
    config = getattr(module, "config", None)
    heads = getattr(config, "num_attention_heads", 0)
    groups = getattr(config, "num_key_value_heads", 0)
    if name == "qkv_proj" and heads and groups and size % (heads + 2 * groups) == 0:
        head_size = size // (heads + 2 * groups)
        return (axis, 1, (heads * head_size, groups * head_size, groups * head_size)), ""
    return unknown
