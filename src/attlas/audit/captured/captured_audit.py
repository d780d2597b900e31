"""An audit of a model that runs in PyTorch, in the form of every audit."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Int

from attlas.audit.captured.captured_ablation import UNCHANGED, CapturedLoss, unchanged
from attlas.audit.captured.captured_answers import CapturedAnswers
from attlas.audit.captured.captured_data import CapturedData
from attlas.audit.captured.captured_notes import captured_notes, guessing_caution
from attlas.audit.captured.captured_step import captured_step
from attlas.audit.captured.captured_trial import CapturedTrial
from attlas.audit.captured.captured_weights import captured_weights
from attlas.audit.captured.evaluation_count import EvaluationCount, most_evaluations
from attlas.audit.change import Change, Heads, Intervene, tested_change
from attlas.audit.data_level.data_settings import DataSettings
from attlas.audit.data_level.sequence_blocks import enclosing_tokens
from attlas.audit.decision import Decision
from attlas.audit.decisions import decisions_of
from attlas.audit.deep_level.ablation import REPLACEMENTS
from attlas.audit.deep_level.deep_level import ABLATIONS
from attlas.audit.findings import findings_of
from attlas.audit.halves import held_out
from attlas.audit.model_audit import CAUTION, ModelAudit
from attlas.audit.quantity import labelled
from attlas.audit.ranked_findings import ranked_findings
from attlas.audit.trial import silent_heads
from attlas.bounds.generalisation.binomial_tail import (
    binomial_lower_limit,
    binomial_upper_limit,
)
from attlas.bounds.generalisation.occam import occam_gap, occam_samples
from attlas.capture.captured_heads import CapturedHeads, captured_heads
from attlas.capture.captured_model import CapturedModel
from attlas.capture.rounded_blocks import blocks_of
from attlas.capture.thread_choice import quickest_threads
from attlas.core.errors import UserError
from attlas.measures.statistics.bootstrap_mean import bootstrap_mean

_CONTEXT = 512
_PROBES, _PROBE_LENGTH = 4, 12
_DELTA = 0.05
_LARGEST_RESIDUAL = {True: 1e-8, False: 1e-3}
"""By whether the model computes in float64."""

Progress = Callable[[str, int, int], None]
Say = Callable[[str], None]


class Examples(NamedTuple):
    """What a model is audited on.

    Attributes:
        sequences: vectors of token numbers, or images (C, H, W); None at level weights.
        documents: vectors of token numbers that the sequences look for, or None.
        labels: class of each sequence, or place of its document; the model's own loss when None.
    """

    sequences: Sequence[np.ndarray] | None
    documents: Sequence[np.ndarray] | None = None
    labels: Int[np.ndarray, " n"] | None = None


def audit_captured(
    model: CapturedModel,
    examples: Examples,
    level: str,
    options: Any,
    progress: Progress = lambda part, done, all_: None,
    say: Say = lambda line: None,
) -> ModelAudit:
    """Audit a model as it runs.

    Args:
        examples: sequences with their right answers, if they have any.
        level: "weights", "data" or "deep"; deep is the loss when each head is ablated.
        options: settings of the audit, an `AuditOptions`.
        say: called with a sentence on how long level deep will take, before it begins.

    Raises:
        UserError: if the model computes no attention that can be followed, cannot read the
            sequences, or does not compute what its matrices say.
    """
    if examples.sequences is not None and np.ndim(examples.sequences[0]) == 1:
        model = model.text_tower()
    if examples.documents is not None:
        model = model.without_head()
    tokens = None if examples.sequences is None else _checked(model, examples)
    with nullcontext() if tokens is None else quickest_threads(model, tokens):
        return _audited(model, tokens, examples.labels, level, options, progress, say)


def _audited(
    model: CapturedModel,
    tokens: list[np.ndarray] | None,
    labels: Int[np.ndarray, " n"] | None,
    level: str,
    options: Any,
    progress: Progress,
    say: Say,
) -> ModelAudit:
    """The audit of a model on sequences that it can read, with the documents behind them."""
    special = options.special
    if special is None:
        special = () if tokens is None or model.reads_images else enclosing_tokens(tokens)
    layers = recognised_heads(model, tokens)
    progress("weights", 1, 1)
    context = options.context or min(model.context or _CONTEXT, _CONTEXT)
    heads = captured_weights(layers, context)
    facts: dict[str, int | float | str] = {"slicing_residual": _residual(model, layers)}
    protocol: dict[str, Any] = {}
    loss, count, decisions, choosing = None, None, (), heads
    if tokens is not None and level != "weights":
        settings = DataSettings(special=special, seed=options.seed)
        data = CapturedData(
            model, tokens, special, settings, lambda done, all_: progress("data", done, all_)
        )
        testing = _held_out(labels, len(tokens), options.deep_sequences)
        heads, choosing = xr.merge([heads, data.heads()]), data.heads(testing.tolist())
        facts, protocol = facts | data.sink_shares(), data.protocol()
        loss = _loss(model, tokens, special, options, labels)
        if level == "deep":
            count = loss.evaluated = _count(layers, loss, progress, say)
        if isinstance(loss, CapturedAnswers):
            facts |= _accuracy(loss)
            caution = _guessing(loss)
            facts |= {CAUTION: caution} if caution else {}
    if level == "deep" and loss is not None:
        facts |= _loss_facts(loss)
        heads = xr.merge([heads, _ablated(layers, loss, np.arange(loss.losses().size))])
        choosing = xr.merge([choosing, _ablated(layers, loss, _choosing(loss))])
        decisions, numbers = _decisions(loss, layers, options, progress)
        facts |= numbers
    intervene = None if loss is None else _intervention(loss)
    seen = findings_of(choosing, intervene, options.budget, _silent(layers))
    findings, further = ranked_findings(decisions, seen)
    if count is not None:
        count.end()
    return ModelAudit(
        model=_facts(model, layers, context, options.samples),
        level=level,
        heads=heads,
        depths=xr.Dataset(),
        bounds=_bounds(model, options),
        findings=findings,
        further=further,
        decisions=decisions,
        facts=facts,
        notes=tuple(captured_notes(model, layers, tokens, loss, facts, options.source)),
        protocol=protocol,
    )


def _decisions(
    loss: CapturedLoss, layers: list[CapturedHeads | None], options: Any, progress: Progress
) -> tuple[tuple[Decision, ...], dict[str, int | float | str]]:
    """What to do, the learning rate first, and the facts that its answer rests on."""
    decisions = decisions_of(CapturedTrial(loss, layers), options.budget)
    if options.learning_rate is None:
        return decisions, {}
    step, numbers = captured_step(loss, options, progress)
    return (*step, *decisions), numbers


def _held_out(
    labels: Int[np.ndarray, " n"] | None, number: int, most: int
) -> Int[np.ndarray, " held_out"]:
    """Places of the sequences that test findings; documents behind queries go with these."""
    if labels is None:
        return held_out(min(number, most))
    testing = held_out(min(labels.size, most))
    has_documents = number > labels.size
    return np.concatenate([testing, labels.size + labels[testing]]) if has_documents else testing


def _choosing(loss: CapturedLoss) -> Int[np.ndarray, " n"]:
    """Places of the examples that choose findings."""
    number = loss.losses().size
    return np.delete(np.arange(number), held_out(number))


def _silent(layers: list[CapturedHeads | None]) -> list[tuple[int, int]]:
    """Heads that write nothing."""
    matrices = [None if layer is None else layer.W_O for layer in layers]
    return [
        (index, head)
        for index, W_O in enumerate(matrices)
        for head in ([] if W_O is None else silent_heads(W_O))
    ]


def _count(
    layers: list[CapturedHeads | None], loss: CapturedLoss, progress: Progress, say: Say
) -> EvaluationCount:
    """The evaluations that level deep needs; the first one says how long all will take."""
    recognised = [layer for layer in layers if layer is not None]
    heads = sum(layer.heads for layer in recognised)
    blocks = len(blocks_of([layer.name for layer in recognised]))
    return EvaluationCount(
        most_evaluations(heads, blocks),
        loss.batch,
        lambda done, all_: progress("deep", done, all_),
        say,
    )


def _loss(
    model: CapturedModel,
    tokens: list[np.ndarray],
    special: Sequence[int],
    options: Any,
    labels: Int[np.ndarray, " n"] | None,
) -> CapturedLoss:
    """What judges a change, on the first sequences or with the first labels."""
    if labels is None:
        return CapturedLoss(model, tokens[: options.deep_sequences], special, options.seed)
    few, documents = slice(options.deep_sequences), tokens[len(labels) :]  # behind the queries
    return CapturedAnswers(model, tokens[: len(labels)][few], labels[few], documents or None)


def _guessing(loss: CapturedAnswers) -> str:
    """A sentence where the accuracy is not shown to be better than that of a guess."""
    errors = loss.outcome_with(unchanged, UNCHANGED).errors
    low = 1 - binomial_upper_limit(int(errors.sum()), errors.size, _DELTA / 2)
    return guessing_caution(loss, int((~errors).sum()), low)


def _accuracy(loss: CapturedAnswers) -> dict[str, int | float | str]:
    """The share of right answers with its exact interval; of a retrieval also the mean rank."""
    outcome = loss.outcome_with(unchanged, UNCHANGED)
    wrong, number = int(outcome.errors.sum()), outcome.errors.size
    name = "retrieval_accuracy" if loss.documents is not None else "accuracy"
    facts: dict[str, int | float | str] = {
        name: 1 - wrong / number,
        f"{name}_low": 1 - binomial_upper_limit(wrong, number, _DELTA / 2),
        f"{name}_high": 1 - binomial_lower_limit(wrong, number, _DELTA / 2),
    }
    if loss.documents is None:
        return facts
    interval = bootstrap_mean(1 / outcome.ranks)
    ends = {"": interval.mean, "_low": interval.low, "_high": interval.high}
    return facts | {f"reciprocal_rank{end}": float(value) for end, value in ends.items()}


def recognised_heads(
    model: CapturedModel, sequences: Sequence[np.ndarray] | None = None
) -> list[CapturedHeads | None]:
    """The weights of the heads of every attention of a run, read off one run.

    Args:
        sequences: sequences whose tokens are drawn for the run, or images; random ones when None.

    Raises:
        UserError: if the model computes no attention that can be followed.
    """
    draw = np.random.default_rng(0)
    length = min(_PROBE_LENGTH, model.context or _PROBE_LENGTH)
    if sequences is None:
        inputs = model.probes(draw, _PROBES, length)
    elif model.reads_images:
        inputs = model.inputs(np.stack(sequences[:_PROBES]))
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


def _checked(model: CapturedModel, examples: Examples) -> list[np.ndarray]:
    """The sequences, and the documents behind them."""
    sequences = [*(examples.sequences or ()), *(examples.documents or ())]
    if len(sequences) == 0:
        raise UserError("no sequence: give at least one vector of token numbers")
    rows = [np.asarray(sequence) for sequence in sequences]
    model.require_readable(images=rows[0].ndim == 3)
    if model.reads_images:
        return _checked_images(rows)
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


def _checked_images(images: list[np.ndarray]) -> list[np.ndarray]:
    """Images of one size, channels first, which batches of any number can hold."""
    first = images[0].shape
    for place, image in enumerate(images):
        if image.ndim != 3 or image.dtype.kind not in "iuf" or not np.isfinite(image).all():
            raise UserError(f"image {place} is no finite array (channels, height, width)")
        if image.shape != first:
            raise UserError(f"image {place} has shape {image.shape}, the first {first}: resize it")
    return images


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


def _ablated(
    layers: list[CapturedHeads | None], loss: CapturedLoss, members: Int[np.ndarray, " n"]
) -> xr.Dataset:
    """The loss of some examples when each head is replaced."""
    base = loss.losses()
    widest = max(layer.heads for layer in layers if layer is not None)
    names = [f"removal_{way}{end}" for way in REPLACEMENTS for end in ("", "_low", "_high")]
    values = {name: np.full((len(layers), widest), np.nan) for name in names}
    for index, layer in enumerate(layers):
        for head in range(0 if layer is None else layer.heads):
            for way in REPLACEMENTS:
                change = bootstrap_mean((loss.losses([(index, head)], way) - base)[members])
                for end in ("mean", "low", "high"):
                    name = f"removal_{way}" if end == "mean" else f"removal_{way}_{end}"
                    values[name][index, head] = getattr(change, end)
    quantities = [quantity._replace(unit=loss.unit, null="") for quantity in ABLATIONS]
    return labelled(quantities, values, ("layer", "head"))


def _loss_facts(loss: CapturedLoss) -> dict[str, int | float | str]:
    """The loss of the unchanged model with its interval."""
    interval = bootstrap_mean(loss.losses())
    return {
        "loss": float(interval.mean),
        "loss_low": float(interval.low),
        "loss_high": float(interval.high),
        "loss_unit": loss.unit,
    }


def _intervention(loss: CapturedLoss) -> Intervene:
    base = loss.losses()

    def intervene(heads: Heads, replacement: str) -> Change:
        return tested_change(base, loss.losses(heads, replacement), loss.unit, loss.examples)

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
