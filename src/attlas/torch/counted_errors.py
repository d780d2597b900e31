"""The errors of a classifier in torch, counted over all examples of a loader."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attlas.core.errors import UserError
from attlas.torch.model_inputs import evaluation_mode, run_on


class Errors(NamedTuple):
    """Counts of a classifier on examples.

    Attributes:
        errors: examples whose label is not the one of the largest logit.
        n: examples.
        classes: number of classes; 2 where the model has one logit.
    """

    errors: int
    n: int
    classes: int


def labelled_batches(data: Iterable[Any]) -> Iterator[tuple[Any, Tensor]]:
    """Inputs and labels of each batch.

    Args:
        data: batches such as those of a `DataLoader`: pairs of inputs and labels, tuples with the
            labels last, or mappings with an entry `labels`, as those of Hugging Face.

    Raises:
        UserError: if a batch has no labels, or not one whole number for each example.

    Examples:
        >>> batch = {"input_ids": torch.ones(2, 3), "labels": torch.tensor([0, 1])}
        >>> [(sorted(inputs), labels.tolist()) for inputs, labels in labelled_batches([batch])]
        [(['input_ids'], [0, 1])]
    """
    inputs: Any
    labels: Any
    for place, batch in enumerate(data):
        if isinstance(batch, Mapping):
            inputs = {name: value for name, value in batch.items() if name != "labels"}
            labels = batch.get("labels")
        elif isinstance(batch, tuple | list) and len(batch) > 1:
            inputs, labels = tuple(batch[:-1]), batch[-1]
            inputs = inputs[0] if len(inputs) == 1 else inputs
        else:
            inputs = labels = None
        if not isinstance(labels, Tensor) or labels.ndim != 1 or labels.is_complex():
            raise UserError(
                f"batch {place} has no tensor of one label for each example: give (inputs, labels) "
                "or a mapping with 'labels'"
            )
        if not torch.equal(labels, labels.round() if labels.is_floating_point() else labels):
            raise UserError(f"batch {place} has labels that are not whole: give numbers of classes")
        yield inputs, labels


def counted_errors(model: nn.Module, data: Iterable[Any], device: torch.device) -> Errors:
    """Errors of a model in evaluation mode, which is left in the mode that it had.

    A row of logits with an entry that is not finite is an error.

    Args:
        model: returns logits [B, C], or one logit [B] or [B, 1] of two classes, as a tensor, in a
            tuple's first place or as the attribute `logits`.
        data: batches that `labelled_batches` takes; every example counts once.
        device: where the model is, to which inputs are moved.

    Raises:
        UserError: if there are no examples, or labels and logits do not fit.

    Examples:
        >>> data = [(torch.tensor([[1.0], [-1.0], [2.0]]), torch.tensor([1, 0, 0]))]
        >>> counted_errors(nn.Identity(), data, torch.device("cpu"))
        Errors(errors=1, n=3, classes=2)
    """
    errors = n = classes = 0
    with evaluation_mode(model):
        for inputs, labels in labelled_batches(data):
            logits = _two_columns(_logits(run_on(model, inputs, device)), labels)
            classes = logits.shape[1]
            at = labels.to(logits.device).long()
            if labels.numel() and not bool(((at >= 0) & (at < classes)).all()):
                raise UserError(
                    f"labels from {int(at.min())} to {int(at.max())}: the model has logits of "
                    f"the classes 0 to {classes - 1}"
                )
            right = (logits.argmax(1) == at) & logits.isfinite().all(1)
            errors, n = errors + int((~right).sum()), n + len(at)
    if n == 0:
        raise UserError("data has no examples: give a loader, which can be read more than once")
    return Errors(errors, n, classes)


def _logits(output: Any) -> Any:
    output = getattr(output, "logits", output)
    return output[0] if isinstance(output, tuple | list) and output else output


def _two_columns(logits: Any, labels: Tensor) -> Tensor:
    """Logits of at least two classes: of one logit z they are (0, z)."""
    if isinstance(logits, Tensor) and logits.is_floating_point():
        column = logits[:, None] if logits.ndim == 1 else logits
        if column.ndim == 2 and len(column) == len(labels) and column.shape[1] > 0:
            zeros = torch.zeros_like(column)
            return torch.cat([zeros, column], 1) if column.shape[1] == 1 else column
    shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
    raise UserError(
        f"the model returns {shape} for {len(labels)} labels: it must return logits [B, C] or [B]"
    )
