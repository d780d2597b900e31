r"""What attention theory says about a trained Transformer, at three levels."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr

from attlas.audit.data_level.audit_data import audit_data
from attlas.audit.data_level.data_settings import DataSettings
from attlas.audit.deep_level.ablation import ablate_together
from attlas.audit.deep_level.deep_level import deep_level
from attlas.audit.deep_level.tangent_drift import tangent_drift
from attlas.audit.findings import Change, Heads, Intervene, findings_of
from attlas.audit.model_audit import ModelAudit
from attlas.audit.model_bounds import OF_THE_MODEL, model_bounds
from attlas.audit.sequence_loss import JudgedBatch, judged_batch
from attlas.audit.weights_level.weights_level import weights_level
from attlas.core.arrays import ArrayInput
from attlas.core.errors import UserError
from attlas.interop.canonical import PatchEmbedding
from attlas.interop.load_model import load_model
from attlas.interop.slicing import prove_slicing
from attlas.interop.trained_transformer import TrainedTransformer
from attlas.measures.statistics.bootstrap_mean import bootstrap_mean

Level = Literal["weights", "data", "deep"]
LEVELS: tuple[Level, ...] = ("weights", "data", "deep")

_CONTEXT = 512


class AuditOptions(NamedTuple):
    """How an audit is made.

    Attributes:
        mask: word that hides another, for models that predict masked words.
        special: words that stand for no text; those that enclose all sequences when None.
        context: n of certificates; the model's own context, at most 512, when None.
        curvature: whether level deep computes the Hessian extremes of every head.
        deep_sequences: how many sequences level deep takes.
        samples: m at which bounds are evaluated.
        bits: of a stored number.
        seed: of everything that is drawn.
    """

    mask: int | None = None
    special: tuple[int, ...] | None = None
    context: int | None = None
    curvature: bool = True
    deep_sequences: int = 16
    samples: int = 1_000_000
    bits: int = 32
    seed: int = 0


def audit(
    model: Any,
    sequences: Sequence[ArrayInput] | None = None,
    *,
    level: Level | None = None,
    against: Any = None,
    options: AuditOptions | None = None,
    progress: Callable[[str, int, int], None] = lambda part, done, all_: None,
) -> ModelAudit:
    r"""Audit a trained Transformer: what is certified, what stands out, what acting on it does.

    Level "weights" reads spectra and certificates that hold for every text; "data" adds what the
    heads do on the user's sequences, with attacks on the certificates; "deep" adds the loss
    without each head, and the curvature of the loss in its weights.

    Args:
        model: what `load_model` takes, or a model that it gave.
        sequences: vectors of word numbers, of any lengths.
        level: the highest level without sequences is "weights", else "data" when None.
        against: another checkpoint of the model, for the drift of the tangent kernel at level
            deep.
        options: how.
        progress: told the part, and how much of it is done.

    Returns:
        Tables, bounds and findings.

    Raises:
        UserError: if the level needs sequences or a loss that are not there, or the heads do not
            add up to their layer.

    Examples:
        >>> from attlas.models.networks.encoder import make_encoder
        >>> encoder = make_encoder(jax.random.key(0), 9, 5, width=6, blocks=1, heads=2, hidden=8)
        >>> found = audit(encoder)
        >>> found.level, found.heads.sizes["head"], bool((found.heads.logit_bound > 0).all())
        ('weights', 2, True)
    """
    chosen = options or AuditOptions()
    level = level or ("weights" if sequences is None else "data")
    if level not in LEVELS:
        raise UserError(f"level = {level!r} is unknown: choose weights, data or deep")
    if level != "weights" and sequences is None:
        raise UserError(f"level {level} needs sequences: give a text or tokens")
    found = model if isinstance(model, TrainedTransformer) else load_model(model)
    residuals = prove_slicing(found)
    context = chosen.context or min(found.context or _CONTEXT, _CONTEXT)
    heads = weights_level(found, context, lambda done, all_: progress("weights", done, all_))
    depths, facts = xr.Dataset(), {"slicing_residual": float(residuals.max())}
    batch = None
    if sequences is not None and level != "weights":
        data = audit_data(
            found,
            sequences,
            DataSettings(special=chosen.special, seed=chosen.seed),
            lambda done, all_: progress("data", done, all_),
        )
        heads, depths = xr.merge([heads, data.heads]), data.depths
        batch = _batch(found, sequences[: chosen.deep_sequences], chosen, level)
    if level == "deep" and batch is not None:
        deep, numbers = deep_level(
            found,
            batch,
            curvature=chosen.curvature,
            progress=lambda done, all_: progress("deep", done, all_),
        )
        heads, facts = xr.merge([heads, deep]), facts | dict(numbers)
        if against is not None:
            other = against if isinstance(against, TrainedTransformer) else load_model(against)
            drift = tangent_drift(other, found, batch)
            facts |= {**drift._asdict(), "explained": drift.explained}
    return ModelAudit(
        model=_facts(found, context),
        level=level,
        heads=heads,
        depths=depths,
        bounds=model_bounds(found, context, chosen.samples, bits=chosen.bits),
        findings=findings_of(heads, None if batch is None else _intervention(found, batch)),
        facts=facts,
        notes=_notes(found, batch),
    )


def _batch(
    model: TrainedTransformer, sequences: Sequence[ArrayInput], options: AuditOptions, level: Level
) -> JudgedBatch | None:
    """What a change of the model is judged by, None where level data has no readout to judge."""
    if isinstance(model.embedding, PatchEmbedding) or model.readout.words is None:
        if level == "deep":
            model.output_layer()
            raise UserError(f"{model.name} reads images: level deep needs words to predict")
        return None
    return judged_batch(
        model,
        sequences,
        mask_token=options.mask,
        special=options.special or (),
        seed=options.seed,
    )


def _intervention(model: TrainedTransformer, batch: JudgedBatch) -> Intervene:
    def intervene(heads: Heads, replacement: str) -> Change:
        before, after = ablate_together(model, batch, heads, replacement)
        change = bootstrap_mean(after - before)
        return Change(
            float(np.mean(before)), float(change.mean), float(change.low), float(change.high)
        )

    return intervene


def _facts(model: TrainedTransformer, context: int) -> dict[str, Any]:
    return {
        "name": model.name,
        "architecture": model.architecture,
        "layers": model.layers,
        "stored layers": max(model.stored_layer) + 1,
        "heads per layer": model.heads_per_layer,
        "width": model.width,
        "words": model.vocabulary,
        "parameters": model.parameters,
        "tokens of certificates": context,
    }


def _notes(model: TrainedTransformer, batch: JudgedBatch | None) -> tuple[str, ...]:
    notes = [
        "The sum over heads was compared with every layer's own matrices before anything was "
        "measured: no head is cut wrongly.",
        OF_THE_MODEL,
    ]
    if max(model.stored_layer) + 1 < model.layers:
        notes.append(
            f"{model.layers} layers share {max(model.stored_layer) + 1}: weights are counted once, "
            "attention is measured in every layer."
        )
    if model.layer(0).attention.rotary is not None:
        notes.append("Positions rotate queries and keys: spectra of products are at offset 0.")
    if batch is not None:
        notes.append(
            {
                "next word": "The loss is the cross-entropy of the next word, in nats.",
                "masked word": "The loss is the cross-entropy of hidden words, in nats.",
                "own output": "The loss is the divergence from the unchanged model's own output: "
                "without a mask token there is no other.",
            }[batch.kind]
        )
    return tuple(notes)
