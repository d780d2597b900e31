"""An audit of a model that runs in PyTorch, in the form of every audit."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from attlas.audit.captured.captured_ablation import CapturedLoss
from attlas.audit.captured.captured_data import CapturedData
from attlas.audit.captured.captured_trial import CapturedTrial
from attlas.audit.captured.captured_weights import captured_weights
from attlas.audit.data_level.data_settings import DataSettings
from attlas.audit.data_level.sequence_blocks import enclosing_tokens
from attlas.audit.decisions import decisions_of
from attlas.audit.deep_level.ablation import REPLACEMENTS
from attlas.audit.deep_level.deep_level import ABLATIONS
from attlas.audit.findings import Change, Heads, Intervene, findings_of
from attlas.audit.model_audit import ModelAudit
from attlas.audit.quantity import labelled
from attlas.bounds.generalisation.occam import occam_gap, occam_samples
from attlas.capture.captured_heads import CapturedHeads, captured_heads
from attlas.capture.captured_model import CapturedModel
from attlas.core.errors import UserError
from attlas.measures.statistics.bootstrap_mean import bootstrap_mean

_CONTEXT = 512
_PROBES, _PROBE_LENGTH = 4, 12
_DELTA = 0.05
_LARGEST_RESIDUAL = {True: 1e-8, False: 1e-3}
"""By whether the model computes in float64."""

Progress = Callable[[str, int, int], None]


def audit_captured(
    model: CapturedModel,
    sequences: Sequence[np.ndarray] | None,
    level: str,
    options: Any,
    progress: Progress = lambda part, done, all_: None,
) -> ModelAudit:
    """Audit a model as it runs.

    Args:
        sequences: vectors of token numbers; None at level weights.
        level: "weights", "data" or "deep"; deep is the loss when each head is ablated.
        options: settings of the audit, an `AuditOptions`.

    Raises:
        UserError: if the model computes no attention that can be followed, cannot read the
            sequences, or does not compute what its matrices say.
    """
    tokens = None if sequences is None else _checked(model, sequences)
    special = options.special
    if special is None:
        special = () if tokens is None else enclosing_tokens(tokens)
    layers = recognised_heads(model, tokens)
    progress("weights", 1, 1)
    context = options.context or min(model.context or _CONTEXT, _CONTEXT)
    heads = captured_weights(layers, context)
    facts: dict[str, int | float | str] = {"slicing_residual": _residual(model, layers)}
    protocol: dict[str, Any] = {}
    loss, decisions = None, ()
    if tokens is not None and level != "weights":
        settings = DataSettings(special=special, seed=options.seed)
        data = CapturedData(
            model, tokens, special, settings, lambda done, all_: progress("data", done, all_)
        )
        heads = xr.merge([heads, data.heads()])
        facts, protocol = facts | data.sink_shares(), data.protocol()
        loss = CapturedLoss(model, tokens[: options.deep_sequences], special, options.seed)
    if level == "deep" and loss is not None:
        deep, numbers = _deep(layers, loss, progress)
        heads, facts = xr.merge([heads, deep]), facts | numbers
        trial = CapturedTrial(loss, layers)
        decisions = decisions_of(trial, options.budget, progress)
    return ModelAudit(
        model=_facts(model, layers, context, options.samples),
        level=level,
        heads=heads,
        depths=xr.Dataset(),
        bounds=_bounds(model, options),
        findings=findings_of(heads, None if loss is None else _intervention(loss)),
        decisions=decisions,
        facts=facts,
        notes=tuple(_notes(model, layers, tokens, loss, options.source)),
        protocol=protocol,
    )


def recognised_heads(
    model: CapturedModel, sequences: Sequence[np.ndarray] | None = None
) -> list[CapturedHeads | None]:
    """The weights of the heads of every attention of a run, read off one run.

    Args:
        sequences: sequences whose tokens are drawn for the run; random tokens when None.

    Raises:
        UserError: if the model computes no attention that can be followed.
    """
    draw = np.random.default_rng(0)
    length = min(_PROBE_LENGTH, model.context or _PROBE_LENGTH)
    if sequences is None:
        inputs = model.probes(draw, _PROBES, length)
    else:
        read = np.concatenate(list(sequences))  # tokens that the text has
        inputs = model.inputs(draw.choice(read, (_PROBES, length)))
    layers: list[CapturedHeads | None] = []
    model.run(
        inputs, lambda each: layers.append(captured_heads(each, model.tolerance, model.softcap))
    )
    if all(layer is None for layer in layers):
        what = "computed no attention" if not layers else "attends in chunks, not by maps"
        raise UserError(
            f"{model.name} {what} that can be followed: capture follows a product of queries and "
            "keys, its softmax, and the product with the values, over all tokens at once; "
            "write the attention so, or audit a model that does"
        )
    return layers


def _checked(model: CapturedModel, sequences: Sequence[np.ndarray]) -> list[np.ndarray]:
    if len(sequences) == 0:
        raise UserError("no sequence: give at least one vector of token numbers")
    rows = [np.asarray(sequence) for sequence in sequences]
    for place, row in enumerate(rows):
        if row.ndim != 1 or row.size == 0 or row.dtype.kind not in "iu":
            raise UserError(f"sequence {place} is no vector of whole numbers: give token numbers")
        if row.min() < 0 or (model.vocabulary and row.max() >= model.vocabulary):
            raise UserError(
                f"sequence {place}: token {row.max()} is outside the vocabulary 0 to "
                f"{model.vocabulary - 1}"
            )
        if model.context is not None and row.size > model.context:
            raise UserError(
                f"sequence {place}: {row.size} tokens are more than the {model.context} positions "
                f"of {model.name}: cut the sequence"
            )
    return rows


def _residual(model: CapturedModel, layers: list[CapturedHeads | None]) -> float:
    """The largest residual; a refusal where one is too large."""
    residuals = [layer.residual for layer in layers if layer is not None]
    finite = [each for each in residuals if np.isfinite(each)]
    worst = max(finite, default=float("nan"))
    if worst > _LARGEST_RESIDUAL[model.wide]:
        raise UserError(
            f"{model.name}: the heads do not add up to their layer (residual {worst:.2g}): the "
            "matrices that were recognised are not the ones that it uses"
        )
    return worst


def _deep(
    layers: list[CapturedHeads | None], loss: CapturedLoss, progress: Progress
) -> tuple[xr.Dataset, dict[str, int | float | str]]:
    """The loss when each head is replaced."""
    base = loss.losses()
    widest = max(layer.heads for layer in layers if layer is not None)
    names = [f"removal_{way}{end}" for way in REPLACEMENTS for end in ("", "_low", "_high")]
    values = {name: np.full((len(layers), widest), np.nan) for name in names}
    for index, layer in enumerate(layers):
        for head in range(0 if layer is None else layer.heads):
            for way in REPLACEMENTS:
                change = bootstrap_mean(loss.losses([(index, head)], way) - base)
                for end in ("mean", "low", "high"):
                    name = f"removal_{way}" if end == "mean" else f"removal_{way}_{end}"
                    values[name][index, head] = getattr(change, end)
        progress("deep, removals", index + 1, len(layers))
    quantities = [quantity._replace(unit=loss.unit, null="") for quantity in ABLATIONS]
    interval = bootstrap_mean(base)
    facts: dict[str, int | float | str] = {
        "loss": float(interval.mean),
        "loss_low": float(interval.low),
        "loss_high": float(interval.high),
        "loss_unit": loss.unit,
    }
    return labelled(quantities, values, ("layer", "head")), facts


def _intervention(loss: CapturedLoss) -> Intervene:
    base = loss.losses()

    def intervene(heads: Heads, replacement: str) -> Change:
        change = bootstrap_mean(loss.losses(heads, replacement) - base)
        numbers = (float(change.mean), float(change.low), float(change.high))
        return Change(float(np.mean(base)), *numbers, loss.unit)

    return intervene


def _bounds(model: CapturedModel, options: Any) -> tuple[dict[str, Any], ...]:
    """The bound from the bits of the stored numbers."""
    gap = occam_gap(model.parameters, options.bits, options.samples, _DELTA)
    return (
        {
            "name": f"bits of the file, {options.bits} per number",
            "gap": gap,
            "vacuous": gap >= 1,
            "samples_until_nonvacuous": occam_samples(model.parameters, options.bits, _DELTA),
            "about": "the model",
        },
    )


def _facts(
    model: CapturedModel, layers: list[CapturedHeads | None], context: int, samples: int
) -> dict[str, Any]:
    return {
        "name": model.name,
        "architecture": model.architecture,
        "read by": "capture: the model ran in PyTorch",
        "layers": len(layers),
        "heads per layer": max((layer.heads for layer in layers if layer is not None), default=0),
        "words": model.vocabulary,
        "parameters": model.parameters,
        "tokens of certificates": context,
        "samples of bounds": samples,
    }


_LOSSES = {
    "next token": "The loss is the cross-entropy of the next token, in nats.",
    "masked token": "The loss is the cross-entropy of hidden tokens, in nats.",
    "sequence to sequence": "The decoder repeats the text that the encoder reads: the loss is the "
    "cross-entropy of its next token, in nats.",
    "outputs": "The loss is the divergence from the unchanged model's own output, in nats.",
    "hidden states": "The model has no LM head: the loss is the squared distance of the last "
    "hidden states from those of the unchanged model, in squared lengths of these, a mean over "
    "tokens.",
}


def _notes(
    model: CapturedModel,
    layers: list[CapturedHeads | None],
    tokens: list[np.ndarray] | None,
    loss: CapturedLoss | None,
    source: str,
) -> list[str]:
    notes = []
    if tokens is not None:
        lengths = sorted({len(sequence) for sequence in tokens})
        sizes = f"{lengths[0]} to {lengths[-1]}" if lengths[1:] else f"{lengths[0]}"
        said = f"Read: {len(tokens)} sequences of {sizes} tokens"
        notes.append(f"{said}, {source}." if source else f"{said}.")
    precision = "float64" if model.wide else str(model.dtype).removeprefix("torch.")
    notes.append(
        f"The model ran in PyTorch ({precision}, eager attention) and its attention was captured; "
        "layers are its attentions in the order in which they ran: "
        + ", ".join("?" if layer is None else layer.name for layer in layers[:_NAMED])
        + (f" and {len(layers) - _NAMED} more." if len(layers) > _NAMED else ".")
    )
    notes.append(
        "The columns of queries, keys and values are those whose outputs the attention used, and "
        "the sum over heads was compared with what the output projection returned."
    )
    lacking = {
        "has no plain map of all tokens": [layer is None for layer in layers],
        "has queries or keys that are no rotated linear map of what it reads": [
            layer is not None and (layer.query is None or layer.key is None) for layer in layers
        ],
        "adds positions or other terms to its logits": [
            layer is not None and (layer.biased or not np.isfinite(layer.scale)) for layer in layers
        ],
        "changes its context before an output projection reads it": [
            layer is not None and layer.W_O is None for layer in layers
        ],
    }
    for what, where in lacking.items():
        if any(where):
            numbers = [str(index) for index, there in enumerate(where) if there]
            notes.append(
                f"Layer {', '.join(numbers[:_NAMED])} {what}: quantities that need it are omitted."
            )
    notes.append(
        "Attacks, attention SVMs, hidden states by depth and curvature are not part of a capture."
    )
    if loss is not None:
        notes.append(_LOSSES[model.kind])
    return notes


_NAMED = 12
"""Layers up to which a note names all."""
