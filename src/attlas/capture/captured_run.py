"""Run a model once, and hand over each of its attentions with the modules around it."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attlas._files.plain_file import printable
from attlas.core.errors import UserError, in_short
from attlas.torch.attention_trace import Attended, AttentionTrace, shaped


class Call(NamedTuple):
    """One call of a linear map or a norm.

    Attributes:
        name: of the module in the model.
        module: itself.
        input: (B, T, inputs).
        output: (B, T, outputs).
    """

    name: str
    module: nn.Module
    input: Tensor
    output: Tensor


@dataclass
class CapturedAttention:
    """One attention of a run.

    Attributes:
        name: of the module in whose code it stands.
        seen: its tensors; None where they are no plain maps of all tokens.
        calls: linear maps and norms that were called since the attention before.
        output: the linear map that reads the context, or None.
    """

    name: str
    seen: Attended | None
    calls: list[Call] = field(default_factory=list)
    output: Call | None = None


Change = Callable[[int, Attended], Tensor | None]
"""Given the number of an attention and its tensors, a context in place of the model's, or None."""


def run_captured(
    model: nn.Module,
    inputs: Mapping[str, Any],
    reader: Callable[[CapturedAttention], Any],
    *,
    wide: bool = False,
) -> Any:
    """What a model returns; each attention is handed over, and nothing of it is held afterwards.

    Args:
        inputs: keyword arguments of the model, the first of them with a batch axis.
        reader: called after the linear map that reads the context was called, or where another
            attention begins.
        wide: whether float32 that the code names is read as float64.

    Raises:
        UserError: if the model's own code fails on the inputs.
    """
    callbacks = _Callbacks()
    run = _Run(model, callbacks.of(reader), len(next(iter(inputs.values()))))
    trace = AttentionTrace(callbacks.of(run.attended), wide=wide)
    with callbacks.refusal(model, inputs), run.hooked(), trace, _precision(wide):
        result = model(**inputs)
    run.hand_over()
    return result


def run_changed(
    model: nn.Module,
    inputs: Mapping[str, Any],
    change: Change,
    *,
    wide: bool = False,
    has_gradients: bool = False,
) -> Any:
    """What a model returns when the outputs of heads are changed on the way.

    Args:
        inputs: keyword arguments of the model, the first of them with a batch axis.
        change: called with each attention; attentions without plain maps are passed over.
        has_gradients: whether what is returned has the graph of its derivatives.

    Raises:
        UserError: if the model's own code fails on the inputs.
    """
    sequences = len(next(iter(inputs.values())))
    numbers = itertools.count()

    def attended(seen: Attended) -> Tensor | None:
        number, whole = next(numbers), shaped(seen, sequences)
        changed = None if whole is None else change(number, whole)
        return None if changed is None else changed.reshape(seen.context.shape)

    callbacks = _Callbacks()
    trace = AttentionTrace(callbacks.of(attended), wide=wide)
    with callbacks.refusal(model, inputs), trace, _precision(wide, has_gradients=has_gradients):
        return model(**inputs)


class _Callbacks:
    """What attlas does in the midst of a run, kept apart from what the model's code does."""

    def __init__(self) -> None:
        self._error: Exception | None = None

    def of(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        """The same callback; its exception is remembered as one that is not the model's."""

        def calling(*args: Any) -> Any:
            try:
                return callback(*args)
            except Exception as error:
                self._error = error
                raise

        return calling

    @contextmanager
    def refusal(self, model: nn.Module, inputs: Mapping[str, Any]) -> Iterator[None]:
        """One line where the model's own code fails; an exception of a callback as it is."""
        try:
            yield
        except Exception as error:
            if error is self._error or isinstance(error, UserError):
                raise
            shapes = ", ".join(
                f"{name} of shape {tuple(getattr(value, 'shape', ()))}"
                for name, value in inputs.items()
            )
            raise UserError(
                f"{type(model).__name__} fails on {shapes} ({printable(in_short(error))[:200]}): "
                "give sequences that it can read, or a part of the model that reads them alone, as "
                "a torch.nn.Module"
            ) from error


@contextmanager
def _precision(wide: bool, *, has_gradients: bool = False) -> Iterator[None]:
    """Float64 as the type of new tensors, and gradients, on request alone."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if wide else before)
    try:
        with torch.set_grad_enabled(has_gradients):
            yield
    finally:
        torch.set_default_dtype(before)


class _Run:
    """The calls of modules in one run, between one attention and the next."""

    def __init__(
        self, model: nn.Module, reader: Callable[[CapturedAttention], Any], sequences: int
    ) -> None:
        self.model, self.reader, self.sequences = model, reader, sequences
        self.names: list[str] = [""]
        self.calls: list[Call] = []
        self.waiting: CapturedAttention | None = None

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """Hooks on all modules, removed at the end."""
        with ExitStack() as stack:
            for name, module in self.model.named_modules():
                enter, leave = self._hooks(name, module)
                stack.callback(module.register_forward_pre_hook(enter).remove)
                stack.callback(module.register_forward_hook(leave).remove)
            yield

    def attended(self, seen: Attended) -> None:
        """An attention was computed."""
        self.hand_over()
        self.waiting = CapturedAttention(self.names[-1], shaped(seen, self.sequences), self.calls)
        self.calls = []

    def hand_over(self) -> None:
        """Hand over the attention that waits for its output map."""
        if self.waiting is not None:
            waiting, self.waiting = self.waiting, None
            self.reader(waiting)

    def _hooks(self, name: str, module: nn.Module) -> tuple[Callable[..., None], ...]:
        is_read = is_linear(module) or is_norm(module)

        def enter(_: nn.Module, args: tuple[Any, ...]) -> None:
            self.names.append(name)

        def leave(_: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            self.names.pop()
            if not is_read or not args or not isinstance(output, Tensor):
                return
            call = Call(
                name, module, *(_batched(each, self.sequences) for each in (args[0], output))
            )
            waiting = self.waiting
            if waiting is not None and waiting.seen is not None and is_linear(module):
                context = waiting.seen.context.transpose(1, 2).flatten(2)
                if context.shape == call.input.shape and torch.equal(context, call.input):
                    waiting.output = call
                    self.hand_over()
                    return
            self.calls.append(call)

        return enter, leave


def is_linear(module: nn.Module) -> bool:
    """Whether a module is x W + b, stored in either way."""
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"


def is_norm(module: nn.Module) -> bool:
    """Whether a module bears the name of a norm; what it computes is read off its numbers."""
    return "norm" in type(module).__name__.lower() and not list(module.children())


def _batched(tensor: Tensor, sequences: int) -> Tensor:
    """Rows of several sequences that code has put into one axis are taken apart."""
    if tensor.dim() == 4 and tensor.shape[1] == 1:
        tensor = tensor[:, 0]
    if tensor.dim() == 2 and len(tensor) % sequences == 0:
        return tensor.unflatten(0, (sequences, -1))
    return tensor
