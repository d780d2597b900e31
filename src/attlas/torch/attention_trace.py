"""See every softmax attention that a PyTorch model computes, whatever its code looks like.

A product of two activations whose result goes through a softmax and into another product is an
attention: the trace follows tensors from the first product to the second. PyTorch's own
`scaled_dot_product_attention` is seen, too; other fused kernels hide what they compute: a model of
transformers has to run with its eager attention.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

_PRODUCTS = {"matmul", "__matmul__", "bmm", "baddbmm", "einsum"}
_TIMES = {"mul", "mul_", "multiply", "__mul__", "__rmul__", "__imul__"}
_OVER = {"div", "div_", "divide", "true_divide", "__truediv__", "__itruediv__"}
_MASKED = -9e3
"""Logits below it are masked: libraries put the least number of some type there, or -10,000."""


class Attended(NamedTuple):
    """One attention, all heads of it; B sequences, H heads, T rows, S tokens that they see.

    Attributes:
        queries: as the product has them, (B, H, T, k).
        keys: (B, H, S, k).
        logits: what enters the softmax, (B, H, T, S), masked entries far below.
        weights: what leaves it, (B, H, T, S); a sink's own weight is left out.
        values: (B, H, S, v).
        context: weights times values, (B, H, T, v).
        own: logits of a sink of the model's own, which is no token, (B, H, T, 1); None for none.
        scale: by what the product of queries and keys is multiplied on its way to the logits.
    """

    queries: Tensor
    keys: Tensor
    logits: Tensor
    weights: Tensor
    values: Tensor
    context: Tensor
    own: Tensor | None = None
    scale: float = 1.0

    @property
    def allowed(self) -> Tensor:
        """(B, H, T, S), False where masked."""
        return self.logits > _MASKED


class _Tag(NamedTuple):
    """What a tensor descends from; the tensor itself is held so that its id stays its own."""

    tensor: Tensor
    queries: Tensor
    keys: Tensor
    logits: Tensor | None
    scale: float = 1.0


class AttentionTrace(TorchFunctionMode):
    """A mode in which attentions are noticed.

    Args:
        attended: called with the tensors of each attention as the code has them, unshaped; what it
            returns, if anything, stands in place of the context.
        wide: whether float32 that the model's code names is read as float64.

    Examples:
        >>> seen = []
        >>> x = torch.ones(1, 2, 3, 4)
        >>> with AttentionTrace(seen.append):
        ...     y = (x @ x.transpose(-1, -2) / 2).softmax(-1) @ x
        >>> [tuple(each.weights.shape) for each in seen]
        [(1, 2, 3, 3)]
    """

    def __init__(
        self, attended: Callable[[Attended], Tensor | None], *, wide: bool = False
    ) -> None:
        super().__init__()
        self._attended, self._wide = attended, wide
        self._tags: dict[int, _Tag] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call the function; follow what goes through it."""
        kwargs = kwargs or {}
        if self._wide:
            func, args, kwargs = _widened(func, args, kwargs)
        result = func(*args, **kwargs)
        if func is scaled_dot_product_attention:
            return self._noticed(_unfused(result, *args, **kwargs))
        if func is Tensor.__setitem__:
            # What is written into a tensor is what it descends from.
            result = args[0]
            self._follow("", result, (args[2],), {})
            return None
        if isinstance(result, Tensor) and result.is_floating_point():
            return self._follow(getattr(func, "__name__", ""), result, args, kwargs)
        return result

    def _follow(
        self, name: str, result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Tensor:
        """Note where a result comes from; what replaces it, where it is a context."""
        operands = list(_tensors((*args, *kwargs.values())))
        tag = next((self._tags[id(each)] for each in operands if id(each) in self._tags), None)
        if name in _PRODUCTS:
            pair = operands[-2:]
            if tag is not None and tag.logits is not None:
                if tag.tensor is pair[0] and pair[0].shape[-1] == pair[1].shape[-2]:
                    tensors = tag.queries, tag.keys, tag.logits, pair[0], pair[1], result
                    return self._noticed(Attended(*tensors, scale=tag.scale))
                return result
            keys = _keys(pair, result)
            if keys is not None:
                scale = kwargs.get("alpha", 1.0)
                self._tags[id(result)] = _Tag(result, pair[0], keys, None, scale)
            return result
        if tag is None:
            return result
        if name == "softmax" and tag.logits is None:
            tag = tag._replace(logits=next(iter(operands)))
        elif name in _TIMES | _OVER and tag.logits is None:
            tag = tag._replace(scale=_scaled(tag.scale, name, args))
        self._tags[id(result)] = tag._replace(tensor=result)
        return result

    def _noticed(self, seen: Attended) -> Tensor:
        """Hand an attention over; its context, or what stands in place of it."""
        self._tags.clear()
        replaced = self._attended(seen)
        return seen.context if replaced is None else replaced


def _scaled(scale: float, name: str, factors: tuple[Any, ...]) -> float:
    """The scale after a product or quotient with a number; as it is after one with an array."""
    numbers = [each for each in factors if not isinstance(each, Tensor) or each.numel() == 1]
    if len(numbers) != 1:
        return scale
    return scale / float(numbers[0]) if name in _OVER else scale * float(numbers[0])


def _unfused(
    context: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Attended:
    """What PyTorch's fused kernel computed, with the logits and weights that it does not show."""
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key, value = (each.repeat_interleave(groups, -3) for each in (key, value))
    logits = factor * (query @ key.transpose(-1, -2))
    if is_causal:
        attn_mask = torch.ones(logits.shape[-2:], dtype=torch.bool, device=logits.device).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        logits = logits.masked_fill(~attn_mask, torch.finfo(logits.dtype).min)
    elif attn_mask is not None:
        logits = logits + attn_mask
    return Attended(query, key, logits, logits.softmax(-1), value, context, scale=factor)


def _keys(pair: list[Tensor], result: Tensor) -> Tensor | None:
    """The keys, where a product is one of two activations, and so may be one of queries and keys.

    Returns:
        The second factor with one key per row; None where it is a parameter or no matrix.
    """
    if len(pair) < 2 or any(isinstance(each, torch.nn.Parameter) for each in pair):
        return None
    queries, keys = pair
    if min(queries.dim(), keys.dim(), result.dim()) < 3:
        return None
    if queries.shape[-1] == keys.shape[-2] and result.shape[-1] == keys.shape[-1]:
        return keys.transpose(-1, -2)
    rows = (queries.shape[-2], keys.shape[-2])
    alike = queries.shape[-1] == keys.shape[-1] and tuple(result.shape[-2:]) == rows
    return keys if alike else None


def _tensors(values: Any) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _widened(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The same call with float64 wherever it names float32."""
    if func is torch.Tensor.float:
        return torch.Tensor.double, args, kwargs
    wide = tuple(torch.float64 if each is torch.float32 else each for each in args)
    named = {key: torch.float64 if each is torch.float32 else each for key, each in kwargs.items()}
    return func, wide, named


def shaped(seen: Attended, sequences: int) -> Attended | None:
    """The tensors of an attention with a batch axis and an axis of heads.

    Args:
        sequences: B; code that has B H in one axis has the sequences outside.

    Returns:
        None where the tensors are no plain maps of all tokens, such as those of windows in chunks.

    Examples:
        >>> seen = []
        >>> x = torch.ones(6, 3, 4)
        >>> with AttentionTrace(seen.append):
        ...     y = (x @ x.transpose(1, 2)).softmax(-1) @ x
        >>> tuple(shaped(seen[0], 2).weights.shape)
        (2, 3, 3, 3)
    """
    heads = seen.weights.shape[-3] if seen.weights.dim() == 4 else None
    if heads is None and seen.weights.dim() == 3 and seen.weights.shape[0] % sequences == 0:
        heads = seen.weights.shape[0] // sequences
    if heads is None:
        return None
    shaped_ = [_with_heads(tensor, heads) for tensor in seen[:6]]
    if any(tensor is None for tensor in shaped_):
        return None
    queries, keys, logits, weights, values, context = shaped_
    assert weights is not None
    assert logits is not None
    assert values is not None
    logits, own = logits.tensor_split([weights.shape[-1]], dim=-1)  # a sink's own stands last
    own = own if own.shape[-1] else None
    whole = Attended(queries, keys, logits, weights, values, context, own, seen.scale)  # pyright: ignore
    return whole if values.shape[-2] == weights.shape[-1] else None


def _with_heads(tensor: Tensor, heads: int) -> Tensor | None:
    if tensor.dim() == 4:
        return tensor.expand(-1, heads, -1, -1) if tensor.shape[1] in (1, heads) else None
    if tensor.dim() == 3 and tensor.shape[0] % heads == 0:
        return tensor.unflatten(0, (-1, heads))
    return None
