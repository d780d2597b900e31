"""See every softmax attention that a PyTorch model computes, whatever its code looks like.

A product of two activations whose result goes through a softmax and into another product is an
attention: the trace follows tensors from the first product to the second. Fused kernels hide them:
a model of transformers has to run with its eager attention.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

_PRODUCTS = {"matmul", "__matmul__", "bmm", "baddbmm", "einsum"}
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
    """

    queries: Tensor
    keys: Tensor
    logits: Tensor
    weights: Tensor
    values: Tensor
    context: Tensor
    own: Tensor | None = None

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
                    self._tags.clear()
                    seen = Attended(tag.queries, tag.keys, tag.logits, pair[0], pair[1], result)
                    replaced = self._attended(seen)
                    return result if replaced is None else replaced
                return result
            keys = _keys(pair, result)
            if keys is not None:
                self._tags[id(result)] = _Tag(result, pair[0], keys, None)
            return result
        if tag is None:
            return result
        if name == "softmax" and tag.logits is None:
            tag = tag._replace(logits=next(iter(operands)))
        self._tags[id(result)] = tag._replace(tensor=result)
        return result


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
    whole = Attended(queries, keys, logits, weights, values, context, own)  # pyright: ignore
    return whole if values.shape[-2] == weights.shape[-1] else None


def _with_heads(tensor: Tensor, heads: int) -> Tensor | None:
    if tensor.dim() == 4:
        return tensor.expand(-1, heads, -1, -1) if tensor.shape[1] in (1, heads) else None
    if tensor.dim() == 3 and tensor.shape[0] % heads == 0:
        return tensor.unflatten(0, (-1, heads))
    return None
