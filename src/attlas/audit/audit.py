r"""What attention theory says about a trained Transformer, at three levels."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Int
from threadpoolctl import threadpool_limits

from attlas.audit.data_level.audit_data import audit_data
from attlas.audit.data_level.data_settings import DataSettings
from attlas.audit.data_level.sequence_blocks import enclosing_tokens, read_sequences
from attlas.audit.decision import Decision
from attlas.audit.decisions import decisions_of
from attlas.audit.deep_level.deep_level import DeepLevel, deep_level
from attlas.audit.deep_level.head_trial import HeadTrial
from attlas.audit.deep_level.intervention import intervention
from attlas.audit.deep_level.sharpness import model_sharpness
from attlas.audit.deep_level.stable_step import THRESHOLD, require_step
from attlas.audit.deep_level.step_decision import step_decision
from attlas.audit.deep_level.tangent_drift import require_comparable, tangent_drift
from attlas.audit.findings import findings_of
from attlas.audit.halves import BUDGET, halves, held_out
from attlas.audit.level import Level, default_level, require_level
from attlas.audit.model_audit import ModelAudit
from attlas.audit.model_bounds import model_bounds
from attlas.audit.notes import notes_of
from attlas.audit.opened_model import opened
from attlas.audit.ranked_findings import ranked_findings
from attlas.audit.sequence_loss import JudgedBatch, judged_batch, sequences_of
from attlas.audit.weights_level.weights_level import Cache, no_cache, weights_level
from attlas.core.arrays import ArrayInput
from attlas.core.errors import UserError
from attlas.transformers.head_layout import check_head_layout
from attlas.transformers.load_model import load_model
from attlas.transformers.trained_transformer import TrainedTransformer
from attlas.transformers.whole_model import read_once

if TYPE_CHECKING:
    from attlas.capture.captured_model import CapturedModel

_CONTEXT = 512


class AuditOptions(NamedTuple):
    """How an audit is made.

    Attributes:
        mask: token that hides another, for models that predict masked tokens.
        special: tokens that stand for no text; those that enclose all sequences when None.
        context: largest number n of tokens of certificates; the model's own context, at most 512,
            when None.
        curvature: whether level deep computes the Hessian extremes of every head.
        deep_sequences: number of sequences at level deep.
        curvature_sequences: number of these, the shortest, for the Hessian extremes.
        samples: m at which bounds are evaluated.
        bits: bits of a stored number.
        learning_rate: step size of the training; level deep reports its product with the sharpness.
        optimizer: optimiser of the training, "sgd".
        source: name of the sequences on the page, such as that of a file.
        budget: share of the loss that removing heads may cost, at level deep.
        ignore_settings: whether PyTorch runs a folder whose config.json has keys that transformers
            does not know, as if they were not there.
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
    budget: float = BUDGET
    ignore_settings: bool = False


# The factors are small: threads of BLAS wait for each other longer than they compute.
@threadpool_limits.wrap(limits=1, user_api="blas")
def audit(
    model: Any,
    sequences: Sequence[ArrayInput] | None = None,
    *,
    level: Level | str | None = None,
    against: Any = None,
    capture: bool | None = None,
    labels: ArrayInput | None = None,
    documents: Sequence[ArrayInput] | None = None,
    options: AuditOptions | None = None,
    progress: Callable[[str, int, int], None] = lambda part, done, all_: None,
    say: Callable[[str], None] = lambda line: None,
    cache: Cache = no_cache,
) -> ModelAudit:
    r"""Audit a trained Transformer: what is certified, what stands out, what ablations do.

    Level "weights" reads spectra and certificates that hold for every text; "data" adds what heads
    do on the sequences, and attacks; "deep" adds the loss without each head, and its curvature.

    Args:
        model: an argument of `load_model`, or its result.
        sequences: vectors of token numbers, of any lengths, or images (channels, height, width).
        level: when None, "weights" without sequences and "data" with them.
        against: an earlier checkpoint of the model, at level deep: for the drift of the tangent
            kernel, and for the weights' quantities of each head there, `_before`.
        capture: True to run the model in PyTorch, which needs the extra `attlas[torch]`; when
            None, PyTorch runs a folder or a torch.nn.Module that attlas cannot read itself.
        labels: class of each sequence, by which findings judge a classifier that PyTorch runs.
        documents: vectors of token numbers among which each sequence looks for its own, by the
            cosine of embeddings; `labels` are their places, 0, 1, 2, ... when None.
        progress: called with the part, how much of it is done, and of how much.
        say: called with a sentence on how long level deep will take, before it begins.
        cache: storage of the layers of level weights, see `weights_level`.

    Raises:
        UserError: if the level needs sequences that are not there or that the model cannot read,
            an option is out of range, the two models are not checkpoints of one model, or the
            heads do not add up to their layer.

    Examples:
        >>> import jax
        >>> from attlas.models.networks.encoder import make_encoder
        >>> encoder = make_encoder(jax.random.key(0), 9, 5, width=6, blocks=1, heads=2, hidden=8)
        >>> found = audit(encoder)
        >>> found.level, found.heads.sizes["head"], bool((found.heads.logit_bound > 0).all())
        ('weights', 2, True)
    """
    settings, level = options or AuditOptions(), level or default_level(sequences)
    _require(level, sequences, against, settings)
    read = None if level == "weights" else sequences
    answers = _answers(read, labels, documents)
    loaded = _opened(model, capture, settings, is_answered=answers is not None)
    if not isinstance(loaded, TrainedTransformer):
        _require_captured(against)
        from attlas.audit.captured.captured_audit import Examples, audit_captured

        examples = Examples(_arrays(read), _arrays(documents), answers)
        return audit_captured(loaded, examples, level, settings, progress, say)
    return _audited(loaded, read, level, against, settings, progress, say, cache)


RUN_BY_TORCH = "models are judged by labels or documents as they run in PyTorch"


def _arrays(rows: Sequence[ArrayInput] | None) -> list[np.ndarray] | None:
    return None if rows is None else [np.asarray(row) for row in rows]


def _opened(
    model: Any, capture: bool | None, options: AuditOptions, *, is_answered: bool
) -> "TrainedTransformer | CapturedModel":
    """The model, by PyTorch where right answers judge it."""
    if is_answered and capture is False:
        raise UserError(f"{RUN_BY_TORCH}: leave capture=False out")
    loaded = opened(
        model,
        is_answered or capture,
        mask=options.mask,
        ignore_settings=options.ignore_settings,
    )
    if is_answered and isinstance(loaded, TrainedTransformer):
        raise UserError(f"{RUN_BY_TORCH}: give its folder, or a torch.nn.Module")
    return loaded


def _answers(
    sequences: Sequence[ArrayInput] | None,
    labels: ArrayInput | None,
    documents: Sequence[ArrayInput] | None,
) -> Int[np.ndarray, " n"] | None:
    """Right answer of each sequence; None where the model's own loss judges."""
    if labels is None and documents is None:
        return None
    if sequences is None:
        raise UserError("labels and documents need sequences: give them, at level data or deep")
    right = np.arange(len(sequences)) if labels is None else np.asarray(labels)
    if documents is not None and labels is None and len(documents) != len(sequences):
        raise UserError(
            f"{len(documents)} documents for {len(sequences)} sequences: give one for each, or "
            "labels that are places of documents"
        )
    if right.shape != (len(sequences),) or right.dtype.kind not in "iu":
        raise UserError(
            f"labels of shape {right.shape} for {len(sequences)} sequences: give one whole number "
            "for each"
        )
    if right.size and right.min() < 0:
        raise UserError(f"label {right.min()}: give numbers from 0")
    if documents is not None and right.size and right.max() >= len(documents):
        raise UserError(f"label {right.max()} is the place of none of {len(documents)} documents")
    return right.astype(np.int64)


def _audited(
    model: TrainedTransformer,
    sequences: Sequence[ArrayInput] | None,
    level: str,
    against: Any,
    options: AuditOptions,
    progress: Callable[[str, int, int], None],
    say: Callable[[str], None],
    cache: Cache,
) -> ModelAudit:
    """The audit of a model, with sequences at the levels that read them."""
    tokens, special, batch = _judged(model, sequences, options)
    before = None if against is None or batch is None else _loaded(against)
    if before is not None and batch is not None:
        require_comparable(before, model, batch)
    facts: dict[str, int | float | str] = {
        "slicing_residual": float(check_head_layout(model).max())
    }
    context = certificate_context(model, options)
    heads = weights_level(model, context, lambda done, all_: progress("weights", done, all_), cache)
    depths, protocol, silent = xr.Dataset(), {}, ()
    choosing = heads
    if tokens is not None and batch is not None:
        data = audit_data(
            model,
            tokens,
            DataSettings(special=special, seed=options.seed),
            lambda done, all_: progress("data", done, all_),
            held_out(len(batch.tokens)).tolist(),
        )
        heads, depths = xr.merge([heads, data.heads]), data.depths
        choosing, silent = data.choosing, data.silent
        protocol, facts = data.protocol, facts | data.sinks
    decisions: tuple[Decision, ...] = ()
    if level == "deep" and batch is not None:
        trial = HeadTrial(read_once(model), batch)
        decisions = decisions_of(trial, options.budget, progress, say)
        deep = _deep(model, batch, before, options, progress)
        heads, facts = xr.merge([heads, deep.heads]), facts | deep.facts
        choosing = xr.merge([choosing, deep.choosing])
        if options.learning_rate is not None:
            step, numbers = _stepped(read_once(model), batch, options)
            decisions, facts = (*step, *decisions), facts | numbers
        if before is not None:
            heads = heads.assign(_earlier(before, context, progress))
    seen = findings_of(choosing, intervention(model, batch), options.budget, silent)
    findings, further = ranked_findings(decisions, seen)
    return ModelAudit(
        model=_facts(model, context, options.samples),
        level=level,
        heads=heads,
        depths=depths,
        bounds=model_bounds(model, context, options.samples, bits=options.bits),
        findings=findings,
        further=further,
        decisions=decisions,
        facts=facts,
        notes=notes_of(model, tokens, batch, facts, options.source, context, protocol),
        protocol=protocol,
    )


def _judged(
    model: TrainedTransformer, sequences: Sequence[ArrayInput] | None, options: AuditOptions
) -> tuple[list[np.ndarray] | None, tuple[int, ...] | None, JudgedBatch | None]:
    """The sequences, their special tokens, and those that the loss judges."""
    if sequences is None:
        return None, options.special, None
    tokens = read_sequences(model, sequences)
    special = enclosing_tokens(tokens) if options.special is None else options.special
    few = tokens[: options.deep_sequences]
    batch = judged_batch(model, few, mask_token=options.mask, special=special, seed=options.seed)
    return tokens, special, batch


def _require(level: str, sequences: Any, against: Any, options: AuditOptions) -> None:
    """Check the arguments before anything is read."""
    require_level(level)
    if level != "weights" and sequences is None:
        raise UserError(f"level {level} needs sequences: give a text or tokens")
    if level != "deep" and against is not None:
        raise UserError(f"level {level} compares no checkpoints: choose level deep, or one model")
    if not 0 <= options.budget < np.inf:
        raise UserError(f"budget = {options.budget}: give a share of the loss, at least 0")
    require_step(options.learning_rate, options.optimizer, options.momentum)
    for name in ("context", "deep_sequences", "curvature_sequences", "samples", "bits"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise UserError(f"{name} = {value}: give at least 1")


def _require_captured(against: Any) -> None:
    """Refuse what an audit of a captured model would ignore."""
    if against is not None:
        raise UserError("a captured model is compared with no checkpoint: leave `against` out")


def certificate_context(model: TrainedTransformer, options: AuditOptions | None = None) -> int:
    """The number of tokens that certificates are made for.

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
    before: TrainedTransformer | None,
    options: AuditOptions,
    progress: Callable[[str, int, int], None],
) -> DeepLevel:
    """Level deep, with the drift from an earlier checkpoint among its facts."""
    model = read_once(model)
    deep = deep_level(
        model,
        batch,
        curvature=options.curvature,
        curvature_sequences=options.curvature_sequences,
        progress=lambda part, done, all_: progress(f"deep, {part}", done, all_),
    )
    if before is None:
        return deep
    drift = tangent_drift(before, model, batch)
    facts = {**drift._asdict(), "explained": drift.explained, "lazy": drift.lazy}
    return deep._replace(facts={**deep.facts, **facts})


def _stepped(
    model: TrainedTransformer, batch: JudgedBatch, options: AuditOptions
) -> tuple[tuple[Decision, ...], dict[str, int | float | str]]:
    """What to do about the learning rate, if anything, and the facts that it rests on."""
    step = {name: getattr(options, name) for name in ("learning_rate", "optimizer", "momentum")}
    descending, _ = halves(len(batch.tokens))
    sharpness = model_sharpness(model, sequences_of(batch, descending), **step)
    decision = step_decision(
        model, batch, sharpness, step["learning_rate"], options.momentum, options.budget
    )
    facts = step | sharpness._asdict() | {"threshold_formula": THRESHOLD}
    facts["sharpness_sequences"] = len(descending)
    return (() if decision is None else (decision,)), facts


def _earlier(
    before: TrainedTransformer, context: int, progress: Callable[[str, int, int], None]
) -> dict[str, xr.DataArray]:
    """Quantities of level weights at the earlier checkpoint, under their names with `_before`."""
    check_head_layout(before)
    part = "weights of the earlier"
    weights = weights_level(before, context, lambda done, all_: progress(part, done, all_))
    return {
        f"{name}_before": array.assign_attrs({"of": name})
        for name, array in weights.data_vars.items()
        if "title" in array.attrs
    }


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
