"""The loss of a captured model when heads are replaced in the run."""

import copy
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.audit.deep_level.ablation import REPLACEMENTS
from attlas.capture.captured_model import CapturedModel, loss_tensor, sequence_losses
from attlas.capture.captured_run import Change
from attlas.capture.replaced_context import replaced_context
from attlas.core.errors import UserError
from attlas.torch.attention_trace import Attended

_TOKENS = 2**12
"""Tokens of the sequences that run together."""
_SHARE = 0.15
"""Share of the tokens of a sequence that are hidden, for a loss of these."""

UNCHANGED = "unchanged"
"""The name of the change that changes nothing."""


def unchanged(number: int, seen: Attended) -> None:
    """The change that changes nothing."""


class CapturedLoss:
    """Losses of the sequences of one batch, unchanged and with heads replaced.

    Args:
        model: the model that runs.
        sequences: vectors of token numbers.
        special: tokens that are never hidden.
        seed: random seed of the choice of hidden tokens.

    Attributes:
        evaluated: called after every evaluation of the batch with the seconds that it took.

    Raises:
        UserError: if a sequence of one token has no next one, or none may be hidden.
    """

    def __init__(
        self,
        model: CapturedModel,
        sequences: Sequence[np.ndarray],
        special: Sequence[int],
        seed: int = 0,
    ) -> None:
        self.model, self.number = model, len(sequences)
        self.evaluated: Callable[[float], None] = lambda seconds: None
        self._outcomes: dict[Hashable, Any] = {}
        causal = model.kind in ("next token", "sequence to sequence")
        if causal and min(len(each) for each in sequences) < 2:
            raise UserError("a sequence of one token has no next token: give at least 2 tokens")
        draw = np.random.default_rng(seed)
        self.batches: list[tuple[Int[np.ndarray, " B"], np.ndarray, np.ndarray | None, Any]] = []
        for members in model.batches(sequences, _TOKENS):
            tokens = np.stack([sequences[member] for member in members])
            hidden = _hidden(tokens, special, draw) if model.kind == "masked token" else None
            self.batches.append((members, tokens, hidden, self._before(tokens, hidden)))

    def of(self, model: CapturedModel, places: Int[np.ndarray, " m"]) -> "CapturedLoss":
        """The same losses of some of the sequences, by a model with other weights.

        Args:
            places: numbers of the sequences, in ascending order.
        """
        part = copy.copy(self)
        part.model, part.number = model, len(places)
        part.evaluated, part._outcomes, part.batches = (lambda seconds: None), {}, []
        for members, tokens, hidden, _ in self.batches:
            rows = np.flatnonzero(np.isin(members, places))
            if not rows.size:
                continue
            few = tokens[rows], None if hidden is None else hidden[rows]
            numbers = np.searchsorted(places, members[rows])
            part.batches.append((numbers, *few, part._before(*few)))
        return part

    def tensors(self) -> Iterator[Float[Tensor, " B"]]:
        """Losses of the sequences of each batch with the graph of their derivatives."""
        for _, tokens, hidden, before in self.batches:
            output = self.model.run_with_gradients(self.model.inputs(tokens, hidden))
            yield loss_tensor(self.model.kind, output, tokens, hidden, before)

    @property
    def size(self) -> int:
        """Number of the losses."""
        return self.number

    @property
    def compares(self) -> bool:
        """Whether the loss is a distance from the unchanged model."""
        return self.model.kind in ("outputs", "hidden states")

    @property
    def examples(self) -> str:
        """What the losses are of, in the plural."""
        return "images" if self.model.reads_images else "sequences"

    @property
    def batch(self) -> str:
        """What runs in one evaluation."""
        return f"{self.number} {self.examples}"

    def of_examples(self, parts: Float[np.ndarray, "4 n heads"]) -> Float[np.ndarray, "4 m heads"]:
        """What was seen of each sequence, as `MapObservation` has it, by example."""
        return parts

    @property
    def unit(self) -> str:
        """What the loss is counted in, as said after a number."""
        return "squared state lengths" if self.model.kind == "hidden states" else "nats"

    def losses(
        self, heads: Sequence[tuple[int, int]] = (), replacement: str = "zero"
    ) -> Float[np.ndarray, " n"]:
        """Loss of each sequence with some heads replaced together.

        Args:
            heads: number of the attention and of the head of each.
            replacement: one of `REPLACEMENTS`; means are those of each batch as it is changed
                below.
        """
        assert replacement in REPLACEMENTS
        by_layer: dict[int, list[int]] = {}
        for layer, head in heads:
            by_layer.setdefault(layer, []).append(head)

        def change(number: int, seen: Attended) -> Any:
            members = by_layer.get(number)
            return None if members is None else replaced_context(seen, members, replacement)

        name = ("heads", frozenset(heads), replacement) if heads else UNCHANGED
        return self.losses_with(change, name)

    def losses_with(self, change: Change, name: Hashable) -> Float[np.ndarray, " n"]:
        """Loss of each sequence with contexts changed, see `outcome_with`."""
        return self.outcome_with(change, name)

    def outcome_with(self, change: Change, name: Hashable) -> Any:
        """What the losses are read off, with contexts changed, see `run_changed`.

        Args:
            name: a name of the change, by which the outcome is found when it is asked for again,
                since an evaluation of the batch is what an audit spends its time on.
        """
        if name not in self._outcomes:
            start = time.perf_counter()
            self._outcomes[name] = self._evaluation(change)
            self.evaluated(time.perf_counter() - start)
        return self._outcomes[name]

    def _before(self, tokens: np.ndarray, hidden: np.ndarray | None) -> Any:
        """What the unchanged model returns, where a change is compared with it."""
        if not self.compares:
            return None
        return self.model.run_with(self.model.inputs(tokens, hidden), unchanged)

    def _evaluation(self, change: Change) -> Any:
        losses = np.zeros(self.number)
        for members, tokens, hidden, before in self.batches:
            output = self.model.run_with(self.model.inputs(tokens, hidden), change)
            losses[members] = sequence_losses(self.model.kind, output, tokens, hidden, before)
        return losses


def _hidden(
    tokens: Int[np.ndarray, "B T"], special: Sequence[int], draw: np.random.Generator
) -> Bool[np.ndarray, "B T"]:
    """A share of each sequence's tokens that are not special, at least one."""
    score = draw.random(tokens.shape)
    score[np.isin(tokens, list(special))] = np.inf
    candidates = np.isfinite(score).sum(axis=1)
    if np.any(candidates == 0):
        raise UserError("a sequence has only special tokens, of which none is hidden: leave it out")
    count = np.clip(np.round(_SHARE * candidates), 1, candidates).astype(int)
    return np.argsort(np.argsort(score, axis=1), axis=1) < count[:, None]
