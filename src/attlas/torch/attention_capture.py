"""See the attention of a model while it runs, whatever kernel it trains with.

Models of Hugging Face transformers that take their attention from its interface
(`AttentionInterface`), and modules of `torch.nn.MultiheadAttention`, are asked for queries and
keys; the logits are computed from them here, for fused kernels show none. What attends in code of
its own (falcon, bloom, deberta, or your own module) is seen by `attlas.torch.attention_trace`.
Queries and keys are those that the products take, after rotary positions.
"""

import importlib
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from attlas.core.errors import UserError
from attlas.torch.attention_trace import Attended, AttentionTrace, shaped
from attlas.torch.head_statistics import with_sinks

_NAME = "attlas_monitor"
_WRAPPED = re.compile(r"(^|(?<=\.))(_fsdp_wrapped_module|_checkpoint_wrapped_module|_orig_mod)\.")
"""What sharding, checkpointing and compilation put into the names of modules."""


class Seen(NamedTuple):
    """One attention layer in one pass.

    Attributes:
        name: of its module.
        logits: (batch, heads, T, S), scaled, with additive positions, without the mask.
        allowed: (batch or 1, heads or 1, T, S), False where masked.
        size: (batch, heads, T), the norm of each query times the largest norm of a key.
        sinks: (heads,) or (batch, heads, T, 1), learned logits that stand beside the keys in every
            row and have no value, as in gpt-oss; None where there are none.
    """

    name: str
    logits: Tensor
    allowed: Tensor
    size: Tensor
    sinks: Tensor | None = None


Reduced = TypeVar("Reduced")


@contextmanager
def captured_attention(
    model: nn.Module, reduce: Callable[[Seen], Reduced]
) -> Iterator[list[Reduced]]:
    """A list that fills with what is made of every attention layer that a model runs inside.

    Args:
        model: a torch.nn or Hugging Face model, or a module that holds one, such as that of
            DistributedDataParallel; its attention implementation is restored afterwards.
        reduce: called with each layer as it runs; only what it returns is held afterwards.

    Yields:
        The list, in the order in which the layers run.

    Raises:
        UserError: where an attention is computed in blocks, so that it has no rows of all tokens.

    Examples:
        >>> layer = nn.MultiheadAttention(4, 2, batch_first=True)
        >>> x = torch.ones(1, 3, 4)
        >>> with captured_attention(layer, lambda seen: seen.logits.shape) as shapes:
        ...     _ = layer(x, x, x)
        >>> [tuple(shape) for shape in shapes]
        [(1, 2, 3, 3)]
    """
    reduced: list[Reduced] = []
    names = {id(module): _WRAPPED.sub("", name) for name, module in model.named_modules()}
    places = _Places(names)

    def note(seen: Seen) -> None:
        reduced.append(reduce(seen))

    def traced(attended: Attended) -> None:
        if not places.inside:
            note(_plain(attended, places))

    with ExitStack() as stack:
        layers = [m for m in model.modules() if isinstance(m, nn.MultiheadAttention)]
        if layers:
            # The fused path of an encoder layer does not call its attention.
            fast = torch.backends.mha.get_fastpath_enabled()
            stack.callback(torch.backends.mha.set_fastpath_enabled, fast)
            torch.backends.mha.set_fastpath_enabled(False)
        for layer in layers:
            hook = layer.register_forward_pre_hook(
                _reader(note, names[id(layer)]), with_kwargs=True
            )
            stack.callback(hook.remove)
        for host in _hosts(model):
            stack.enter_context(_interface(host, note, places))
        stack.enter_context(places.followed(model))
        stack.enter_context(AttentionTrace(traced))
        yield reduced


class _Places:
    """Where in a model the code that runs stands.

    Attributes:
        names: of the modules, by id.
        running: names of the modules whose forward pass has begun and not ended.
        sequences: length of the batch axis of what the model was given.
        inside: whether the interface of transformers attends, which is noted there.
    """

    def __init__(self, names: dict[int, str]) -> None:
        self.names = names
        self.running: list[str] = []
        self.sequences = 1
        self.inside = False

    @contextmanager
    def followed(self, model: nn.Module) -> Iterator[None]:
        """Hooks on all modules, removed at the end."""

        def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if module is model:
                values = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor) and x.ndim]
                self.sequences = len(values[0]) if values else 1
            self.running.append(self.names.get(id(module), ""))

        def leave(_: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            self.running.pop()

        with ExitStack() as stack:
            for module in model.modules():
                before = module.register_forward_pre_hook(enter, with_kwargs=True, prepend=True)
                stack.callback(before.remove)
                stack.callback(module.register_forward_hook(leave).remove)
            yield


def _plain(attended: Attended, places: _Places) -> Seen:
    """What the trace noticed, with axes of sequences and heads."""
    name = places.running[-1] if places.running else ""
    seen = shaped(attended, places.sequences)
    if seen is None:
        raise UserError(
            f"{name or 'the model'} attends in blocks or windows (as longformer, led and big_bird "
            "do), so that no row of weights over all tokens exists: it is not seen; give "
            "head_statistics logits of your own"
        )
    return _seen(name, seen.logits, seen.allowed, seen.queries, seen.keys, seen.scale, seen.own)


def _hosts(model: nn.Module) -> list[nn.Module]:
    """The outermost modules whose attention has a name: the model, or those in a wrapper."""
    if hasattr(model, "set_attn_implementation"):
        return [model]
    return [host for child in model.children() for host in _hosts(child)]


@contextmanager
def _interface(model: Any, note: Callable[[Seen], None], places: _Places) -> Iterator[None]:
    library = importlib.import_module("transformers")
    masks = importlib.import_module("transformers.masking_utils")

    def attend(
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        scaling: float | None = None,
        **settings: Any,
    ) -> tuple[Tensor, Tensor]:
        groups = query.shape[1] // key.shape[1]
        key, value = (x.repeat_interleave(groups, 1) for x in (key, value))
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        sinks = settings.get("s_aux")
        logits = scale * torch.einsum("bhtd,bhsd->bhts", query, key)
        if settings.get("softcap"):
            logits = settings["softcap"] * torch.tanh(logits / settings["softcap"])
        if settings.get("position_bias") is not None:
            logits = logits + settings["position_bias"]
        allowed = torch.ones(1, 1, *logits.shape[2:], dtype=torch.bool, device=logits.device)
        if attention_mask is not None:
            added = attention_mask[..., : key.shape[2]]
            allowed = added > torch.finfo(added.dtype).min / 2
            # What is added and no mask is a position.
            logits = logits + torch.where(allowed, added, 0)
        name = places.names.get(id(module), "")
        note(_seen(name, logits, allowed, query, key, scale, sinks))
        masked = with_sinks(logits.masked_fill(~allowed, torch.finfo(logits.dtype).min), sinks)
        weights = masked.softmax(-1)[..., : key.shape[2]].to(value.dtype)
        out = torch.einsum("bhts,bhsd->bthd", weights, value).contiguous()
        return out, weights

    def attend_unseen(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        places.inside = True  # what the trace would see of it is noted already
        try:
            return attend(*args, **kwargs)
        finally:
            places.inside = False

    library.AttentionInterface.register(_NAME, attend_unseen)
    library.AttentionMaskInterface.register(_NAME, masks.eager_mask)
    before = [(config, config._attn_implementation_internal) for config in _settings(model)]
    try:
        # Of the others transformers warns that they attend in code of their own: they are traced.
        if getattr(model, "_can_set_attn_implementation", lambda: True)():
            model.set_attn_implementation(_NAME)
        yield
    finally:
        for config, implementation in before:
            config._attn_implementation_internal = implementation


def _settings(model: nn.Module) -> list[Any]:
    """The configurations of a model and of the models in it, each of which names a kernel."""
    waiting = [getattr(module, "config", None) for module in model.modules()]
    configurations: dict[int, Any] = {}
    while waiting:
        config = waiting.pop()
        if hasattr(config, "_attn_implementation_internal") and id(config) not in configurations:
            configurations[id(config)] = config
            waiting += vars(config).values()
    return list(configurations.values())


def _seen(
    name: str,
    logits: Tensor,
    allowed: Tensor,
    query: Tensor,
    key: Tensor,
    scale: float,
    sinks: Tensor | None = None,
) -> Seen:
    wide = torch.float64 if logits.dtype == torch.float64 else torch.float32
    norms = [torch.linalg.vector_norm(x.to(wide), dim=-1) for x in (query, key)]
    size = abs(scale) * norms[0] * norms[1].amax(-1, keepdim=True)
    beside = None if sinks is None else sinks.detach().to(wide)
    return Seen(name, logits.detach().to(wide), allowed, size.detach(), beside)


def _reader(note: Callable[[Seen], None], name: str) -> Callable[..., None]:
    order = ("query", "key", "value", "key_padding_mask", "need_weights", "attn_mask")

    def read(layer: nn.MultiheadAttention, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        arguments = {**dict(zip(order, args, strict=False)), **kwargs}
        query, key = arguments["query"], arguments["key"]
        if query.ndim == 2:
            query, key = query[None], key[None]
        elif not layer.batch_first:
            query, key = query.transpose(0, 1), key.transpose(0, 1)
        d, heads = layer.embed_dim, layer.num_heads
        if layer.in_proj_weight is not None:
            weights = layer.in_proj_weight[:d], layer.in_proj_weight[d : 2 * d]
        else:
            weights = layer.q_proj_weight, layer.k_proj_weight
        biases = (None, None) if layer.in_proj_bias is None else layer.in_proj_bias.split(d)[:2]
        queries, keys = (
            nn.functional.linear(x, W, b).unflatten(-1, (heads, -1)).transpose(1, 2)
            for x, W, b in zip((query, key), weights, biases, strict=True)
        )
        if layer.bias_k is not None or layer.add_zero_attn:
            raise UserError(f"{name}: attention with added keys is not seen: it has no plain rows")
        scale = (d // heads) ** -0.5
        logits = scale * torch.einsum("bhtd,bhsd->bhts", queries, keys)
        logits, allowed = _with_masks(logits, arguments, heads)
        note(_seen(name, logits, allowed, queries, keys, scale))

    return read


def _with_masks(logits: Tensor, arguments: dict[str, Any], heads: int) -> tuple[Tensor, Tensor]:
    """Masks of torch.nn: True is masked, floats are added."""
    allowed = torch.ones_like(logits, dtype=torch.bool)
    mask, padding = arguments.get("attn_mask"), arguments.get("key_padding_mask")
    shaped = []
    if mask is not None:
        shaped.append(mask.unflatten(0, (-1, heads)) if mask.ndim == 3 else mask[None, None])
    if padding is not None:
        shaped.append(padding.reshape(-1, 1, 1, padding.shape[-1]))
    for array in shaped:
        if array.dtype == torch.bool:
            allowed = allowed & ~array
        else:
            allowed = allowed & (array > -torch.inf)
            logits = logits + torch.where(array > -torch.inf, array, 0)
    return logits, allowed
