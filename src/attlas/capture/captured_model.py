"""A PyTorch model that is audited as it runs: its inputs, its loss, and how it is opened."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from attlas.capture.captured_run import CapturedAttention, Change, run_captured, run_changed
from attlas.core.errors import UserError
from attlas.transformers.pooling import Pooling

Kind = Literal["next token", "masked token", "sequence to sequence", "outputs", "hidden states"]
_NO_TOKEN = -1
_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}


@dataclass(frozen=True)
class CapturedModel:
    """A model of PyTorch.

    Attributes:
        name: what the user called it.
        architecture: its `model_type`, or its class.
        module: in evaluation mode.
        kind: of the loss that a change of it is judged by.
        vocabulary: number of tokens; 0 where it reads none.
        context: largest number of tokens, or None.
        mask: token that hides another, or None.
        softcap: c of the logits of its attention, as its configuration says, or None.
        pooling: how hidden states become one embedding of a sequence.
    """

    name: str
    architecture: str
    module: nn.Module
    kind: Kind
    vocabulary: int
    context: int | None
    mask: int | None = None
    softcap: float | None = None
    pooling: Pooling = "mean"

    @property
    def reads_images(self) -> bool:
        """Whether its input is images."""
        return getattr(self.module, "main_input_name", "input_ids") == "pixel_values"

    @property
    def reads_tokens(self) -> bool:
        """Whether its input is token numbers."""
        return _reads_tokens(self.module)

    @property
    def dtype(self) -> torch.dtype:
        """Type of the weights."""
        return next(p.dtype for p in self.module.parameters() if p.is_floating_point())

    @property
    def wide(self) -> bool:
        """Whether everything is computed in float64, also what the code would do in float32."""
        return self.dtype == torch.float64

    @property
    def tolerance(self) -> float:
        """Relative difference of numbers that count as the same."""
        return _TOLERANCE.get(self.dtype, 5e-2)

    @property
    def parameters(self) -> int:
        """Number of weights, shared ones once."""
        return sum(weight.numel() for weight in self.module.parameters())

    def run(self, inputs: Mapping[str, Tensor], reader: Callable[[CapturedAttention], Any]) -> Any:
        """See `run_captured`."""
        return run_captured(self.module, inputs, reader, wide=self.wide)

    def run_with(self, inputs: Mapping[str, Tensor], change: Change) -> Any:
        """See `run_changed`."""
        return run_changed(self.module, inputs, change, wide=self.wide)

    def inputs(self, tokens: np.ndarray, hidden: np.ndarray | None = None) -> dict[str, Tensor]:
        """Arguments of the model for sequences of one length.

        Args:
            tokens: token numbers of sequences of one length, (B, T), or images (B, C, H, W).
            hidden: booleans (B, T), True where the mask token stands in place of a token, or None.

        Raises:
            UserError: if the model reads neither tokens nor images, or these are the other kind.
        """
        self.require_readable(images=np.ndim(tokens) == 4)
        device = next(self.module.parameters()).device
        if self.reads_images:
            return {"pixel_values": torch.as_tensor(tokens, dtype=self.dtype, device=device)}
        ids = torch.as_tensor(np.asarray(tokens), dtype=torch.long, device=device)
        read = ids
        if hidden is not None and self.mask is not None:
            read = torch.where(torch.as_tensor(hidden, device=device), self.mask, ids)
        if self.kind == "sequence to sequence":
            return {"input_ids": ids, "decoder_input_ids": ids[:, :-1]}
        if self.kind == "hidden states" and _takes(self.module, "decoder_input_ids"):
            return {"input_ids": ids, "decoder_input_ids": ids}
        return {"input_ids": read}

    def require_readable(self, *, images: bool) -> None:
        """Check that the model reads images, or token numbers.

        Raises:
            UserError: if it does not.
        """
        if self.reads_images if images else self.reads_tokens:
            return
        kind = "images" if images else "sequences of tokens"
        reads = getattr(self.module, "main_input_name", "other inputs")
        raise UserError(
            f"{self.name} reads {reads}, not {kind}: choose level weights, or give the part of the "
            f"model that reads {kind}, as a torch.nn.Module"
        )

    def logits(self, tokens: np.ndarray) -> np.ndarray:
        """Logits of sequences of one length, (B, T) tokens, in float64."""
        return self.scores(self.run_with(self.inputs(tokens), lambda number, seen: None))

    def run_with_gradients(self, inputs: Mapping[str, Tensor]) -> Any:
        """What the model returns, with the graph of its derivatives."""
        return run_changed(
            self.module, inputs, lambda number, seen: None, wide=self.wide, has_gradients=True
        )

    def scores(self, output: Any) -> np.ndarray:
        """Logits, or the last hidden states of a model without them, in float64."""
        return score_tensor(output).cpu().numpy()

    def pooled(self, output: Any) -> Float[np.ndarray, "B d"]:
        """One embedding of each sequence of one length."""
        return self.pooled_tensor(output).cpu().numpy()

    def pooled_tensor(self, output: Any) -> Float[Tensor, "B d"]:
        """The same with its graph."""
        states = score_tensor(output)
        if self.pooling == "max":
            return states.amax(dim=1)
        if self.pooling == "mean":
            return states.mean(dim=1)
        return states[:, 0 if self.pooling == "cls" else -1]

    def batches(self, sequences: Sequence[np.ndarray], tokens: int) -> list[np.ndarray]:
        """Numbers of the sequences that run together: of one length, with at most `tokens`."""
        return [
            members
            for group in same_lengths(sequences)
            for members in np.array_split(
                group, -(-len(group) // max(1, tokens // self.length(sequences[group[0]])))
            )
        ]

    def length(self, sequence: np.ndarray) -> int:
        """Number of tokens of a sequence, or of patches of an image."""
        if sequence.ndim == 1:
            return len(sequence)
        height, width = patch_sides(self.module)
        return max(1, sequence.shape[1] // height * (sequence.shape[2] // width))

    def image_tower(self) -> "CapturedModel":
        """The part of a model of images and texts that reads images; itself where it reads them."""
        tower = getattr(self.module, "vision_model", None)
        if self.reads_images or not isinstance(tower, nn.Module):
            return self
        return captured_module(tower, self.name)

    def text_tower(self) -> "CapturedModel":
        """The part of a model of images and texts that reads texts; itself where it reads them."""
        tower = getattr(self.module, "text_model", None)
        both = isinstance(getattr(self.module, "vision_model", None), nn.Module)
        if not both or not isinstance(tower, nn.Module):
            return self
        return captured_module(tower, self.name)

    def without_head(self) -> "CapturedModel":
        """The same model up to its last hidden states, for embeddings of sequences.

        Of a model with an encoder and a decoder it is the encoder.
        """
        base: Any = getattr(self.module, "base_model", self.module)
        if getattr(getattr(base, "config", None), "is_encoder_decoder", False):
            base = base.get_encoder()
        return replace(self, module=base, kind="hidden states", mask=None)

    def probes(self, draw: np.random.Generator, count: int, length: int) -> dict[str, Tensor]:
        """Random arguments of the model: tokens, images or sounds, as it reads them.

        Raises:
            UserError: if the sizes of what it reads are not in its configuration.
        """
        module, first = self.module, getattr(self.module, "main_input_name", "input_ids")
        config: Any = getattr(module, "config", None)
        inputs: dict[str, Tensor] = {}
        tokens = draw.integers(0, max(self.vocabulary, 2), (count, length))
        ids = torch.as_tensor(tokens)
        if first == "input_ids":
            inputs |= self.inputs(tokens)
        both = hasattr(module, "vision_model") and hasattr(module, "text_model")
        shapes: dict[str, Callable[[Any], tuple[int, ...]]] = {
            "pixel_values": lambda c: (c.num_channels, *_sides(c.image_size)),
            "input_features": lambda c: (c.num_mel_bins, 2 * c.max_source_positions),
            "input_values": lambda c: (_SOUND,),
        }
        for name, shape in shapes.items():
            if first != name and not (both and name == "pixel_values"):
                continue
            try:
                size = shape(getattr(config, "vision_config", config))
            except AttributeError as error:
                raise UserError(
                    f"{self.name} reads {name}, whose size is not in its configuration ({error}): "
                    "capture reads tokens, or images and sounds of a known size"
                ) from error
            values = draw.normal(size=(count, *size))
            inputs[name] = torch.as_tensor(values, dtype=self.dtype)
        if not inputs:
            raise UserError(f"{self.name} reads {first}, which capture does not make up")
        if first != "input_ids" and getattr(config, "is_encoder_decoder", False):
            inputs["decoder_input_ids"] = ids % int(getattr(config, "vocab_size", 2))
        device = next(module.parameters()).device
        return {name: value.to(device) for name, value in inputs.items()}


def patch_sides(module: nn.Module) -> tuple[int, int]:
    """Height and width of the patches that a model of images cuts them into; of 1 if unknown."""
    config: Any = getattr(module, "config", None)
    return _sides(getattr(config, "patch_size", 1))


_SOUND = 4000
"""Samples of a random sound: a quarter of a second."""


def _sides(size: Any) -> tuple[int, int]:
    return tuple(size) if isinstance(size, list | tuple) else (size, size)


def sequence_losses(
    kind: Kind,
    output: Any,
    tokens: np.ndarray,
    hidden: np.ndarray | None = None,
    unchanged: Any = None,
) -> Float[np.ndarray, " B"]:
    """Mean loss of each of B sequences of T tokens, (B, T), see `loss_tensor`."""
    return loss_tensor(kind, output, tokens, hidden, unchanged).cpu().numpy()


def loss_tensor(
    kind: Kind,
    output: Any,
    tokens: np.ndarray,
    hidden: np.ndarray | None = None,
    unchanged: Any = None,
) -> Float[Tensor, " B"]:
    """Mean loss of each sequence, in nats, or in squared lengths for hidden states, with its graph.

    Args:
        output: value that the model returned.
        tokens: token numbers of sequences of one length, (B, T).
        hidden: True where a token was hidden, for a loss of these.
        unchanged: value that the unchanged model returned, for a loss that compares.
    """
    scores = score_tensor(output)
    if kind in ("outputs", "hidden states"):
        before = score_tensor(unchanged)
        if kind == "outputs":
            old, new = (logits.log_softmax(-1) for logits in (before, scores))
            each = (old.exp() * (old - new)).sum(-1)
        else:
            each = ((scores - before) ** 2).sum(-1) / (before**2).sum(-1)
        return each.reshape(len(each), -1).mean(1)
    ids = torch.as_tensor(np.asarray(tokens), device=scores.device).long()
    if kind == "next token":
        scores, ids = scores[:, :-1], ids[:, 1:]
    elif kind == "sequence to sequence":
        ids = ids[:, 1:]
    losses = -scores.log_softmax(-1).gather(-1, ids[..., None])[..., 0]
    counted = torch.ones_like(losses)
    if hidden is not None:
        counted = torch.as_tensor(hidden, device=scores.device).to(losses)
    return (losses * counted).sum(1) / counted.sum(1)


def score_tensor(output: Any) -> Tensor:
    """Logits, or the last hidden states of a model without them, in float64."""
    for name in ("logits", "logits_per_image", "last_hidden_state"):
        value = getattr(output, name, None)
        if value is not None and isinstance(value, Tensor):
            return value.double()
    value = output if isinstance(output, Tensor) else output[0]
    return value.double()


def captured_module(
    module: nn.Module, name: str | None = None, mask: int | None = None
) -> CapturedModel:
    """A model in memory, as it is.

    Args:
        name: its class when None.
        mask: token that hides another, for models that predict hidden tokens.

    Raises:
        UserError: if it has no weights.
    """
    if not any(p.is_floating_point() for p in module.parameters()):
        raise UserError(f"{type(module).__name__} has no weights: give a trained model")
    config = getattr(module, "config", None)
    own_text = getattr(config, "get_text_config", None)
    text = config if own_text is None else own_text()
    if hasattr(module, "set_attn_implementation"):
        module.set_attn_implementation("eager")  # pyright: ignore[reportCallIssue]
    classifies = type(module).__name__.endswith("ForSequenceClassification")
    if classifies and text is not None and getattr(text, "pad_token_id", 0) is None:
        # Decoders read the logits of the last token that is no padding: there is none here.
        text.pad_token_id = _NO_TOKEN
    positions = getattr(text, "max_position_embeddings", None)
    return CapturedModel(
        name or type(module).__name__,
        getattr(config, "model_type", type(module).__name__),
        module.eval(),
        _kind(module, config, mask),
        int(getattr(text, "vocab_size", 0) or 0) if _reads_tokens(module) else 0,
        positions if isinstance(positions, int) and positions > 0 else None,
        mask,
        getattr(text, "attn_logit_softcapping", None),
    )


def _reads_tokens(module: nn.Module) -> bool:
    return getattr(module, "main_input_name", "input_ids") == "input_ids"


def _takes(module: nn.Module, argument: str) -> bool:
    return argument in signature(module.forward).parameters


def _kind(module: nn.Module, config: Any, mask: int | None) -> Kind:
    name = type(module).__name__
    if getattr(config, "is_encoder_decoder", False) and hasattr(module, "lm_head"):
        return "sequence to sequence"
    if name.endswith(("ForCausalLM", "LMHeadModel")):
        return "next token"
    if name.endswith("ForMaskedLM") and mask is not None:
        return "masked token"
    tasks = ("ForMaskedLM", "ForSequenceClassification", "ForImageClassification")
    return "outputs" if name.endswith(tasks) else "hidden states"


def same_lengths(sequences: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Numbers of the sequences in groups of one length, the shortest first.

    Examples:
        >>> [group.tolist() for group in same_lengths([np.ones(3), np.ones(2), np.ones(3)])]
        [[1], [0, 2]]
    """
    lengths = np.array([len(sequence) for sequence in sequences])
    return [np.flatnonzero(lengths == length) for length in np.unique(lengths)]
