r"""What attention theory says about a trained Transformer, at three levels."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from threadpoolctl import threadpool_limits

from attlas.audit.data_level.audit_data import audit_data
from attlas.audit.data_level.data_settings import DataSettings
from attlas.audit.data_level.sequence_blocks import enclosing_tokens, read_sequences
from attlas.audit.deep_level.ablation import ablate_together
from attlas.audit.deep_level.deep_level import deep_level
from attlas.audit.deep_level.sharpness import model_sharpness
from attlas.audit.deep_level.tangent_drift import tangent_drift
from attlas.audit.findings import Change, Heads, Intervene, findings_of
from attlas.audit.level import Level, require_level
from attlas.audit.model_audit import ModelAudit
from attlas.audit.model_bounds import model_bounds
from attlas.audit.sequence_loss import JudgedBatch, judged_batch
from attlas.audit.weights_level.head_certificates import enumerates_offsets
from attlas.audit.weights_level.weights_level import Keep, compute_anew, weights_level
from attlas.core.arrays import ArrayInput
from attlas.core.errors import UserError
from attlas.interop.load_model import load_model
from attlas.interop.slicing import prove_slicing
from attlas.interop.trained_transformer import TrainedTransformer
from attlas.measures.statistics.bootstrap_mean import bootstrap_mean

_CONTEXT = 512


class AuditOptions(NamedTuple):
    """How an audit is made.

    Attributes:
        mask: word that hides another, for models that predict masked words.
        special: words that stand for no text; those that enclose all sequences when None.
        context: n of certificates; the model's own context, at most 512, when None.
        curvature: whether level deep computes the Hessian extremes of every head.
        deep_sequences: how many sequences level deep takes.
        curvature_sequences: how many of these the Hessian extremes take, the shortest.
        samples: m at which bounds are evaluated.
        bits: of a stored number.
        seed: of everything that is drawn.
        learning_rate: of the training, whose product with the sharpness level deep then tells.
        optimizer: that used it, "sgd".
        momentum: of the optimiser.
        source: what the sequences are, for the page, such as the name of a file.
    """

    mask: int | None = None
    special: tuple[int, ...] | None = None
    context: int | None = None
    curvature: bool = True
    deep_sequences: int = 16
    curvature_sequences: int = 4
    samples: int = 1_000_000
    bits: int = 32
    seed: int = 0
    learning_rate: float | None = None
    optimizer: str = "sgd"
    momentum: float = 0.0
    source: str = ""


# The factors are small: threads of BLAS wait for each other longer than they compute.
@threadpool_limits.wrap(limits=1, user_api="blas")
def audit(
    model: Any,
    sequences: Sequence[ArrayInput] | None = None,
    *,
    level: Level | str | None = None,
    against: Any = None,
    options: AuditOptions | None = None,
    progress: Callable[[str, int, int], None] = lambda part, done, all_: None,
    keep: Keep = compute_anew,
) -> ModelAudit:
    r"""Audit a trained Transformer: what is certified, what stands out, what acting on it does.

    Level "weights" reads spectra and certificates that hold for every text; "data" adds what the
    heads do on the user's sequences, with attacks on the certificates; "deep" adds the loss
    without each head, and the curvature of the loss in its weights.

    Args:
        model: what `load_model` takes, or a model that it gave.
        sequences: vectors of word numbers, of any lengths.
        level: when None, "weights" without sequences and "data" with them.
        against: an earlier checkpoint of the model, for the drift of the tangent kernel at level
            deep.
        options: how.
        progress: told the part, and how much of it is done.
        keep: of level weights' layers, see `weights_level`.

    Returns:
        Tables, bounds and findings.

    Raises:
        UserError: if the level needs sequences that are not there or that the model cannot read,
            an option is out of range, or the heads do not add up to their layer.

    Examples:
        >>> import jax
        >>> from attlas.models.networks.encoder import make_encoder
        >>> encoder = make_encoder(jax.random.key(0), 9, 5, width=6, blocks=1, heads=2, hidden=8)
        >>> found = audit(encoder)
        >>> found.level, found.heads.sizes["head"], bool((found.heads.logit_bound > 0).all())
        ('weights', 2, True)
    """  # noqa: DOC502 (raised one call below)
    chosen = options or AuditOptions()
    level = level or ("weights" if sequences is None else "data")
    _require(level, sequences, against, chosen)
    read = None if level == "weights" else sequences
    return _audited(_loaded(model), read, level, against, chosen, progress, keep)


def _audited(
    model: TrainedTransformer,
    sequences: Sequence[ArrayInput] | None,
    level: str,
    against: Any,
    options: AuditOptions,
    progress: Callable[[str, int, int], None],
    keep: Keep,
) -> ModelAudit:
    """The audit of a model, with sequences at the levels that read them."""
    tokens = None if sequences is None else read_sequences(model, sequences)
    facts = {"slicing_residual": float(prove_slicing(model).max())}
    context = certificate_context(model, options)
    heads = weights_level(model, context, lambda done, all_: progress("weights", done, all_), keep)
    depths, batch, protocol = xr.Dataset(), None, {}
    if tokens is not None:
        special = enclosing_tokens(tokens) if options.special is None else options.special
        data = audit_data(
            model,
            tokens,
            DataSettings(special=special, seed=options.seed),
            lambda done, all_: progress("data", done, all_),
        )
        heads, depths = xr.merge([heads, data.heads]), data.depths
        protocol, facts = data.protocol, facts | data.sinks
        few = tokens[: options.deep_sequences]
        batch = judged_batch(
            model, few, mask_token=options.mask, special=special, seed=options.seed
        )
    if level == "deep" and batch is not None:
        deep, numbers = _deep(model, batch, against, options, progress)
        heads, facts = xr.merge([heads, deep]), facts | numbers
    return ModelAudit(
        model=_facts(model, context, options.samples),
        level=level,
        heads=heads,
        depths=depths,
        bounds=model_bounds(model, context, options.samples, bits=options.bits),
        findings=findings_of(heads, None if batch is None else _intervention(model, batch)),
        facts=facts,
        notes=(
            *_read(tokens, options.source),
            *_protocol(protocol),
            *_notes(model, context, batch, facts),
        ),
        protocol=protocol,
    )


def _require(level: str, sequences: Any, against: Any, options: AuditOptions) -> None:
    """Refuse, before anything is read, what cannot be done."""
    require_level(level)
    if level != "weights" and sequences is None:
        raise UserError(f"level {level} needs sequences: give a text or tokens")
    if level != "deep" and against is not None:
        raise UserError(f"level {level} compares no checkpoints: choose level deep, or one model")
    for name in ("context", "deep_sequences", "curvature_sequences", "samples", "bits"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise UserError(f"{name} = {value}: give at least 1")


def certificate_context(model: TrainedTransformer, options: AuditOptions | None = None) -> int:
    """The number of tokens that certificates are made for.

    Args:
        model: the model.
        options: of the audit.

    Returns:
        n: what the options say, else the model's own context, at most 512.
    """
    named = None if options is None else options.context
    return named or min(model.context or _CONTEXT, _CONTEXT)


def _loaded(model: Any) -> TrainedTransformer:
    return model if isinstance(model, TrainedTransformer) else load_model(model)


def _deep(
    model: TrainedTransformer,
    batch: JudgedBatch,
    against: Any,
    options: AuditOptions,
    progress: Callable[[str, int, int], None],
) -> tuple[xr.Dataset, dict[str, int | float]]:
    """Variables of level deep, and its numbers of the whole model."""
    deep, numbers = deep_level(
        model,
        batch,
        curvature=options.curvature,
        curvature_sequences=options.curvature_sequences,
        progress=lambda part, done, all_: progress(f"deep, {part}", done, all_),
    )
    facts = dict(numbers)
    if options.learning_rate is not None:
        rate, optimizer, momentum = options.learning_rate, options.optimizer, options.momentum
        found = model_sharpness(model, batch, rate, optimizer=optimizer, momentum=momentum)
        facts |= found._asdict()
    if against is not None:
        drift = tangent_drift(_loaded(against), model, batch)
        facts |= {**drift._asdict(), "explained": drift.explained}
    return deep, facts


def _intervention(model: TrainedTransformer, batch: JudgedBatch) -> Intervene:
    def intervene(heads: Heads, replacement: str) -> Change:
        before, after = ablate_together(model, batch, heads, replacement)
        change = bootstrap_mean(after - before)
        return Change(
            float(np.mean(before)), float(change.mean), float(change.low), float(change.high)
        )

    return intervene


def _facts(model: TrainedTransformer, context: int, samples: int) -> dict[str, Any]:
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
        "samples of bounds": samples,
    }


def _read(tokens: Sequence[np.ndarray] | None, source: str) -> tuple[str, ...]:
    """What was read, in one sentence."""
    if tokens is None:
        return ()
    lengths = sorted({len(each) for each in tokens})
    sizes = f"{lengths[0]} to {lengths[-1]}" if lengths[1:] else f"{lengths[0]}"
    said = f"Read: {len(tokens)} sequences of {sizes} tokens"
    return (f"{said}, {source}." if source else f"{said}.",)


def _protocol(protocol: Mapping[str, Any]) -> tuple[str, ...]:
    """How sinks, certificates and intervals were made, in two sentences."""
    if not protocol:
        return ()
    return (
        "Sinks: {sink_sequences} sequences, cut to their first {sink_tokens} tokens, as they are, "
        "with shuffled words and with one word repeated (seed {seed}); a share counts heads and "
        "sequences whose first token receives more than {sink_threshold} of the weight. "
        "Certificates and attacks at tokens: the first {probes} of these. Intervals: level "
        "{level}, {draws} bootstrap draws of the {sequences} sequences.".format(**protocol),
    )


def _notes(
    model: TrainedTransformer,
    context: int,
    batch: JudgedBatch | None,
    facts: Mapping[str, int | float],
) -> tuple[str, ...]:
    notes = [
        "The sum over heads was compared with every layer's own matrices before anything was "
        "measured: no head is cut wrongly.",
    ]
    if max(model.stored_layer) + 1 < model.layers:
        notes.append(
            f"{model.layers} layers share {max(model.stored_layer) + 1}: weights are counted once, "
            "attention is measured in every layer."
        )
    attention = model.block(0).attention
    if attention.rotary is not None:
        notes.append("Positions rotate queries and keys: spectra of products are at offset 0.")
    if not enumerates_offsets(attention, context):
        notes.append(
            f"Heads of size {attention.W_Q.shape[-1]} at {context} relative positions are too many "
            "products: in certificates the norm of W_Q times that of W_K, never smaller, stands "
            "for the largest norm over relative positions."
        )
    if model.vocabulary == 0:
        notes.append(
            "The model reads images, levels data and deep read sequences of words: this is an "
            "audit of its weights."
        )
    if batch is not None:
        notes.append(
            {
                "next word": "The loss is the cross-entropy of the next word, in nats.",
                "masked word": "The loss is the cross-entropy of hidden words, in nats.",
                "own output": "The loss is the divergence from the unchanged model's own output, "
                "in nats: no word is hidden or predicted.",
                "own rows": "The file holds no output layer: the loss is the squared distance of "
                "the last hidden rows from those of the unchanged model, relative to their length.",
            }[batch.kind]
        )
    if "curvature_products" in facts:
        notes.append(
            f"Hessian eigenvalues are those of the mean loss over the "
            f"{facts['curvature_sequences']} shortest sequences of the removals "
            f"({facts['curvature_tokens']} tokens), from at most {facts['curvature_products']} "
            "products per head; each interval fails with probability 1e-6."
        )
    return tuple(notes)
