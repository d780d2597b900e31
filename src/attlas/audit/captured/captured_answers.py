"""The loss of a captured model that has right answers: labels of classes, or documents to find."""

import copy
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from attlas.audit.answers import Outcome, outcome_of
from attlas.audit.captured.captured_ablation import CapturedLoss
from attlas.capture.captured_model import CapturedModel, score_tensor
from attlas.capture.captured_run import Change
from attlas.core.errors import UserError

SCALE = 20.0
"""Factor of cosines in the loss of a retrieval, as sentence encoders are trained with."""


class CapturedAnswers(CapturedLoss):
    """Losses of examples with a right answer, and errors beside them.

    Args:
        model: the model that runs; without its head where there are documents.
        examples: token numbers of each example, or images.
        right: class of each example, or place of its document.
        documents: sequences among which each example finds its own; None for classes.

    Raises:
        UserError: if the model gives no logits of classes, or a label is none of its classes.
    """

    def __init__(
        self,
        model: CapturedModel,
        examples: Sequence[np.ndarray],
        right: Int[np.ndarray, " n"],
        documents: Sequence[np.ndarray] | None = None,
    ) -> None:
        self.right, self.documents = right, documents
        super().__init__(model, [*examples, *(documents or ())], ())

    @property
    def size(self) -> int:
        """Number of the losses: documents have none."""
        return len(self.right)

    @property
    def compares(self) -> bool:
        """Whether the loss is a distance from the unchanged model: it is not."""
        return False

    @property
    def unit(self) -> str:
        """What the loss is counted in."""
        return "nats"

    @property
    def accuracy(self) -> str:
        """Name of the share of examples that are no errors."""
        return "accuracy" if self.documents is None else "accuracy@1"

    @property
    def examples(self) -> str:
        """What the losses are of, in the plural."""
        if self.documents is not None:
            return "queries"
        return "images" if self.model.reads_images else "texts"

    @property
    def batch(self) -> str:
        """What runs in one evaluation."""
        if self.documents is None:
            return super().batch
        return f"{len(self.right)} queries and {len(self.documents)} documents"

    @property
    def guessing(self) -> float:
        """The share that guessing has right: one document at random, or the most frequent class."""
        if self.documents is not None:
            return 1 / len(self.documents)
        return float(np.bincount(self.right).max() / len(self.right))

    def losses_with(self, change: Change, name: Hashable) -> Float[np.ndarray, " n"]:
        """Loss of each example with contexts changed, see `outcome_with`."""
        return self.outcome_with(change, name).losses

    def of(self, model: CapturedModel, places: Int[np.ndarray, " m"]) -> "CapturedAnswers":
        """The same losses of some of the examples, which look for their own documents alone.

        Args:
            places: numbers of the examples, in ascending order.
        """
        right, behind = self.right[places], np.zeros(0, int)
        if self.documents is not None:
            own = np.unique(right)
            right, behind = np.searchsorted(own, right), len(self.right) + own
        part = super().of(model, np.concatenate([places, behind]))
        assert isinstance(part, CapturedAnswers)
        part.right = right
        if self.documents is not None:
            part.documents = [self.documents[place - len(self.right)] for place in behind]
        return part

    def tensors(self) -> Iterator[Float[Tensor, " B"]]:
        """Losses with the graph of their derivatives: by batches, of a retrieval all at once."""
        rows, order = [], []
        for members, tokens, _, _ in self.batches:
            output = self.model.run_with_gradients(self.model.inputs(tokens))
            if self.documents is None:
                scores = score_tensor(output)
                right = torch.as_tensor(self.right[members], device=scores.device)
                yield cross_entropy(scores, right, reduction="none")
            else:
                rows.append(self.model.pooled_tensor(output))
                order.append(members)
        if self.documents is None:
            return
        places = torch.as_tensor(np.argsort(np.concatenate(order)), device=rows[0].device)
        states = normalize(torch.cat(rows)[places], dim=1)
        number = len(self.right)
        scores = SCALE * states[:number] @ states[number:].T
        right = torch.as_tensor(self.right, device=scores.device)
        yield cross_entropy(scores, right, reduction="none")

    def _evaluation(self, change: Change) -> Outcome:
        """Losses, errors and ranks of the examples with contexts changed."""
        number = len(self.right)
        rows = None
        for members, tokens, _, _ in self.batches:
            output = self.model.run_with(self.model.inputs(tokens), change)
            part = self._logits(output) if self.documents is None else self.model.pooled(output)
            rows = np.zeros((self.number, part.shape[1])) if rows is None else rows
            rows[members] = part
        assert rows is not None
        if self.documents is None:
            return outcome_of(rows, self._within(rows.shape[1]))
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)
        return outcome_of(SCALE * rows[:number] @ rows[number:].T, self.right)

    def errors(self) -> "CapturedLoss":
        """The same examples with errors, 0 or 1, in place of losses."""
        return _Errors(self)

    def of_examples(self, parts: Float[np.ndarray, "4 n heads"]) -> Float[np.ndarray, "4 m heads"]:
        """What was seen of each example; of a query and its document the mean, or the largest."""
        if self.documents is None:
            return parts
        number = len(self.right)
        both = np.stack([parts[:, :number], parts[:, number + self.right]])
        return np.concatenate([both[:, :2].mean(axis=0), both[:, 2:].max(axis=0)])

    def _logits(self, output: object) -> Float[np.ndarray, "B C"]:
        scores = self.model.scores(output)
        if scores.ndim != 2 or scores.shape[1] < 2:
            raise UserError(
                f"{self.model.name} gives no logits of classes: save the classifier with its head, "
                "or leave the labels out"
            )
        return scores

    def _within(self, classes: int) -> Int[np.ndarray, " n"]:
        if self.right.min() < 0 or self.right.max() >= classes:
            wrong = self.right[(self.right < 0) | (self.right >= classes)][0]
            raise UserError(
                f"label {wrong} is no class of {self.model.name}, which has {classes}: give 0 to "
                f"{classes - 1}"
            )
        return self.right


class _Errors(CapturedLoss):
    """Errors in place of losses; the unit is the name of what they diminish."""

    def __init__(self, answers: CapturedAnswers) -> None:
        self.__dict__ = copy.copy(answers.__dict__)
        self._answers = answers

    @property
    def unit(self) -> str:
        return self._answers.accuracy

    def losses_with(self, change: Change, name: Hashable) -> Float[np.ndarray, " n"]:
        return self._answers.outcome_with(change, name).errors.astype(float)
