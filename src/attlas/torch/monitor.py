"""The attention of a model in training, as lines of JSON that `attlas report` draws."""

import contextlib
import importlib
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attlas._files.appended_lines import append_line
from attlas._files.file_changes import write_file
from attlas._files.sealed_json import sealed
from attlas.core.errors import UserError
from attlas.torch.attention_capture import Seen, captured_attention
from attlas.torch.head_statistics import head_statistics
from attlas.torch.model_inputs import evaluation_mode, run_on

SCHEMA = "attlas.monitor/2"
SUFFIX = ".monitor.jsonl"


class Monitor:
    r"""Entropy, largest logit, sink, gap and margin of every head on one batch, every k steps.

    A line is an object with the step, T, the number of sequences, the layers' names, for each
    statistic of `head_statistics` one list per layer with one number per head (null where there
    is none), and `sink_share`, the share of heads whose first key holds more than `sink` of the
    weight on average (Sink_1^eps of Gu et al. 2025, eps = 0.3; it falls with T, which is therefore
    part of the line); in the file a line has a seal, too. Padding may stand on either side: the
    first key is the first that is none.

    Call it with the step number in your own loop, or hand `callback()` to
    `transformers.Trainer`. It sees every softmax over all tokens, as
    `attlas.torch.attention_capture` says, and refuses attention in blocks or windows, as that of
    longformer, which has no rows over all tokens; the model is run in evaluation mode without
    gradients, and left as it was.

    Args:
        batch: input of the model: a mapping of keyword arguments, a tuple of positional ones, or
            one tensor. For a Hugging Face model `attention_mask` says which rows are padding, and
            for its decoder beside an encoder `decoder_attention_mask`, or labels of -100; else
            `rows` does.
        path: the file, which must end in `.monitor.jsonl`; put it into the results folder for
            `attlas report`. It begins anew unless `resume`.
        every: k, at least 1.
        sink: threshold eps of a sink.
        rows: (batch, T), False for padding; all rows count when None.
        resume: whether to go on at the end of an existing file, after its last whole line.

    Raises:
        UserError: for another ending, an `every` below 1, or a file that cannot be written.

    Examples:
        >>> import tempfile
        >>> layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     monitor = Monitor(layer, torch.ones(1, 3, 4), f"{folder}/a.monitor.jsonl", every=10)
        ...     lines = [monitor(step) for step in range(20)]
        >>> [line["step"] for line in lines if line], lines[0]["T"]
        ([0, 10], 3)
    """

    def __init__(
        self,
        model: nn.Module,
        batch: Any,
        path: Path | str,
        *,
        every: int = 100,
        sink: float = 0.3,
        rows: Tensor | None = None,
        resume: bool = False,
    ) -> None:
        self.model, self.batch, self.path = model, batch, Path(path)
        self.every, self.sink, self.rows = every, sink, rows
        if not self.path.name.endswith(SUFFIX):
            raise UserError(f"path = {self.path.name}: give a name that ends in {SUFFIX}")
        if type(every) is not int or every < 1:
            raise UserError(f"every = {every!r} is not a number of steps: give at least 1")
        if not resume:
            with self._writing():
                write_file(self.path, [])

    def __call__(self, step: int) -> dict[str, Any] | None:
        """Measure and write a line at every k-th step, and do nothing at the others."""
        if step % self.every:
            return None
        line = self.measure(step)
        with self._writing():
            append_line(self.path, json.dumps(sealed(line), allow_nan=False))
        return line

    def measure(self, step: int) -> dict[str, Any]:
        """What a line says, without writing it.

        Raises:
            UserError: if the model ran no attention that can be seen.
        """
        with (
            evaluation_mode(self.model),
            _as_written(),
            captured_attention(self.model, self._reduced) as seen,
        ):
            run_on(self.model, self.batch, next(self.model.parameters()).device)
        if not seen:
            raise UserError(
                f"{type(self.model).__name__} ran no attention that can be seen: load it with "
                'attn_implementation="eager", or call head_statistics with logits of your own'
            )
        layers = [statistics for *_, statistics in seen]
        sinks = torch.cat([layer["sink"] for layer in layers])
        return {
            "schema": SCHEMA,
            "step": int(step),
            "T": seen[0][2],
            "sequences": seen[0][1],
            "layers": [name for name, *_ in seen],
            **{name: [_numbers(layer[name]) for layer in layers] for name in layers[0]},
            "sink_threshold": self.sink,
            "sink_share": (sinks > self.sink).double().mean().item(),
        }

    def callback(self) -> Any:
        """A `transformers.TrainerCallback` that calls the monitor at the start and after steps."""
        library = importlib.import_module("transformers")
        monitor = self

        class MonitorCallback(library.TrainerCallback):
            """Writes a line of the monitor."""

            def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
                monitor(state.global_step)

            def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
                monitor(state.global_step)

        return MonitorCallback()

    def _reduced(self, layer: Seen) -> tuple[str, int, int, dict[str, Tensor]]:
        """Name, sequences, tokens and statistics of a layer, whose maps are not held any longer."""
        count, _, T, _ = layer.logits.shape
        rows = self._rows(count, T, layer)
        statistics = head_statistics(layer.logits, layer.allowed, rows, layer.size, layer.sinks)
        return layer.name, count, T, statistics

    def _rows(self, count: int, T: int, layer: Seen) -> Tensor:
        rows = self.rows
        if rows is None and isinstance(self.batch, Mapping):
            if self._in_decoder(layer.name):
                rows, labels = (self.batch.get(x) for x in ("decoder_attention_mask", "labels"))
                rows = labels != -100 if rows is None and labels is not None else rows
            else:
                rows = self.batch.get("attention_mask")
        if rows is None or tuple(rows.shape) != (count, T):
            return torch.ones(count, T, dtype=torch.bool, device=layer.logits.device)
        return rows.to(layer.logits.device).bool()

    def _in_decoder(self, name: str) -> bool:
        """Whether the rows of a layer are those of a decoder that reads an encoder's tokens."""
        sides = any(
            getattr(getattr(module, "config", None), "is_encoder_decoder", False)
            for module in self.model.modules()
        )
        return sides and "decoder" in name.split(".")

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UserError(
                f"{self.path.name} cannot be written ({error.strerror}): choose another path"
            ) from error


def _as_written() -> Any:
    """Without compiled kernels, which show no attention; torch before 2.6 cannot be asked."""
    stance = getattr(torch.compiler, "set_stance", None)
    return contextlib.nullcontext() if stance is None else stance("force_eager")


def _numbers(values: Tensor) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]
