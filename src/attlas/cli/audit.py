"""`attlas audit`: what attention theory says about a trained Transformer."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from attlas.cli.audit_options import (
    Against,
    Curvature,
    CurvatureSequences,
    DeepSequences,
    Insecure,
    Json,
    LearningRate,
    Length,
    Level,
    Model,
    Momentum,
    On,
    Out,
    Sequences,
    Text,
    Tokens,
    Workers,
    require_used,
)
from attlas.cli.machine import require_machine
from attlas.cli.session import session_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np

    from attlas.audit.read_batch import TokenBatch
    from attlas.experiments.layer_cache import KeptLayers
    from attlas.transformers.tokenizer import Tokenizer

FEWEST = 2
"""Sequences of a batch."""
_SMALL = 2**26


def audit(
    context: typer.Context,
    model: Model = None,
    level: Level = None,
    text: Text = None,
    tokens: Tokens = None,
    against: Against = None,
    out: Out = Path("audit.html"),
    json_: Json = None,
    sequences: Sequences = 64,
    length: Length = 256,
    deep_sequences: DeepSequences = 16,
    curvature: Curvature = True,
    curvature_sequences: CurvatureSequences = 4,
    learning_rate: LearningRate = None,
    momentum: Momentum = 0.0,
    on: On = "local",
    workers: Workers = 2,
    insecure: Insecure = False,
) -> None:
    """Audit a trained Transformer: certificates, attacks, and ablations of its heads."""
    require_used(context, level, on)
    require_machine()  # before JAX is imported, as the variables it reads then
    os.environ.update(_variables(model, level))
    from attlas.audit.checkpoint_curves import checkpoints_of
    from attlas.experiments.audits import audited_model
    from attlas.experiments.text_file import probe_text_file, require_html
    from attlas.transformers.load_model import open_checkpoint
    from attlas.transformers.tokenizer import read_tokenizer

    session = session_of(context)
    require_html(out, "--out")
    probe_text_file(out, "--out")
    if json_ is not None:
        probe_text_file(json_, "--json")
    source = audited_model(session.results, model)
    steps = checkpoints_of(source) or ((0, source),)
    source = steps[-1][1]
    config = open_checkpoint(source).config
    tokenizer = read_tokenizer(source if source.is_dir() else source.parent, config)
    length = _within_context(source, config, length, level)
    batch, read = _batch(tokenizer, config, text, tokens, sequences, length, level)
    _require_several(batch)
    _require_checkpoint(against)
    given = {"curvature": curvature, "deep_sequences": deep_sequences, "source": read}
    given |= {"curvature_sequences": curvature_sequences}
    given |= {"learning_rate": learning_rate, "momentum": momentum}
    spread = (on, workers, insecure)
    found = _audited(steps, batch, level, against, tokenizer, given, session.results, spread)
    _write(found, out, json_, session.results)


def _write(found: "dict[str, Any]", out: Path, json_: Path | None, results: Path) -> None:
    """The page, the file of numbers where it is wanted, the audit for the atlas; the findings."""
    from attlas.experiments.audits import store_audit
    from attlas.experiments.text_file import write_text_file
    from attlas.site.audit_page import render_audit

    write_text_file(out, render_audit(found), "--out")
    if json_ is not None:
        write_text_file(json_, json.dumps(found, indent=1, allow_nan=False), "--json")
    store_audit(results, found)
    for finding in found["findings"]:
        typer.echo(f"- {finding['sentence']}")
    typer.echo(f"{out}")


def _variables(model: str | None, level: str | None) -> dict[str, str]:
    """What JAX reads when it starts: compiling is what a small model costs, running a large one.

    At level deep it is running, whatever the size.
    """
    from attlas._jax.processes import auditor_variables, worker_variables

    place = Path(model or "")
    files = place.rglob("*") if model and place.is_dir() else [place]
    size = sum(file.stat().st_size for file in files if file.is_file())
    return auditor_variables() if size < _SMALL and level != "deep" else worker_variables(1)


def _audited(
    steps: "Sequence[tuple[int, Path]]",
    batch: "list[np.ndarray] | None",
    level: Any,
    against: Path | None,
    tokenizer: "Tokenizer",
    given: "Mapping[str, Any]",
    results: Path,
    spread: tuple[str, int, bool],
) -> "dict[str, Any]":
    """The audit of a model, or of its checkpoints, with what is being done on the screen."""
    from attlas.audit.audit import AuditOptions, audit, certificate_context
    from attlas.audit.checkpoint_curves import audit_checkpoints
    from attlas.cli.audit_progress import level_bars
    from attlas.core.errors import UserError
    from attlas.experiments.layer_cache import KeptLayers
    from attlas.transformers.load_model import load_model

    if len(steps) > 1 and against is not None:
        raise UserError("--against compares two checkpoints: name one model, not a folder of them")
    options = AuditOptions(mask=tokenizer.mask, special=tokenizer.special or None, **given)
    if len(steps) > 1 and spread[0] != "local":
        raise UserError(f"--on {spread[0]} computes one model: name one of the checkpoints")
    with level_bars() as (progress, say):
        if len(steps) > 1:
            return audit_checkpoints(
                steps, batch, level=level, options=options, progress=progress
            ).to_json()
        ((_, source),) = steps
        model = load_model(source, name=source.resolve().name)
        kept = KeptLayers(results, source, certificate_context(model, options), say)
        _spread(kept, source, model.layers, spread, progress)
        found = audit(
            model,
            batch,
            level=level,
            against=against,
            options=options,
            progress=progress,
            cache=kept.keep,
        ).to_json()
    kept.forget()
    return found


def _spread(
    kept: "KeptLayers",
    source: Path,
    layers: int,
    spread: tuple[str, int, bool],
    progress: "Callable[[str, int, int], None]",
) -> None:
    """Level weights on a dask cluster, if one is asked for; the audit finds its layers kept."""
    on, workers, insecure = spread
    if on == "local":
        return
    from attlas.experiments.dask_audit import keep_on_dask

    def told(done: int, all_: int) -> None:
        progress("weights", done, all_)

    keep_on_dask(kept, source, layers, on=on, workers=workers, insecure=insecure, progress=told)


def _require_several(batch: "list[np.ndarray] | None") -> None:
    """Refuse a batch of one sequence: confidence intervals need at least two."""
    from attlas.core.errors import UserError

    if batch is not None and len(batch) < FEWEST:
        raise UserError(
            f"the batch has {len(batch)} sequence, and confidence intervals need at least "
            f"{FEWEST}: give more lines of text, a smaller --length, or --level weights"
        )


def _require_checkpoint(against: Path | None) -> None:
    """Read the description of the model that is compared with, before hours are spent."""
    from attlas.transformers.load_model import open_checkpoint

    if against is not None:
        open_checkpoint(against)


def _reads_images(config: "Mapping[str, Any]") -> bool:
    """Whether a description is of a model whose tokens are parts of an image."""
    return config.get("continuous") is True or config.get("model_type") == "vit"


def _within_context(
    source: Path, config: "Mapping[str, Any]", length: int, level: str | None
) -> int:
    """Largest number of tokens of a sequence: no more than the model has positions."""
    from attlas.transformers.load_model import load_model

    if level == "weights" or _reads_images(config):
        return length
    return min(length, load_model(source).context or length)


def _batch(
    tokenizer: "Tokenizer",
    config: "Mapping[str, Any]",
    text: Path | None,
    tokens: Path | None,
    sequences: int,
    length: int,
    level: str | None,
) -> "tuple[list[np.ndarray] | None, str]":
    """The user's sequences, those kept with the model, our own text's, or none; what they are."""
    from attlas.audit.read_batch import (
        default_text,
        read_text,
        stored_batch,
        text_batch,
        token_batch,
    )
    from attlas.core.errors import UserError

    if text is not None and tokens is not None:
        raise UserError("--text and --tokens exclude each other: give one")
    if level == "weights":
        return None, ""
    if _reads_images(config):
        if level is not None or text is not None or tokens is not None:
            raise UserError(
                "this model reads images, but levels data and deep need sequences of tokens: "
                "choose --level weights"
            )
        typer.echo("level weights: this model reads images, other levels need sequences of tokens")
        return None, ""
    if tokens is not None:
        return _with_source(
            token_batch(tokens, length=length, most=sequences), f"tokens of {tokens}"
        )
    if text is None:
        kept = stored_batch(config, length=length, most=sequences)
        if kept:
            return kept, "kept with the model"
        if level is None and tokenizer.encode is None:
            typer.echo(
                "level weights: no tokenizer is with the model; --tokens FILE adds level data"
            )
            return None, ""
    if text is None:
        own, source = default_text(), "the built-in English stories"
    else:
        own, source = read_text(text), str(text)
    return _with_source(
        text_batch(tokenizer, own, length=length, most=sequences, source=source), f"of {source}"
    )


def _with_source(batch: "TokenBatch", source: str) -> "tuple[list[np.ndarray], str]":
    """The sequences, and what they are, with the texts that did not fit into one."""
    return batch.sequences, f"{source}; {batch.longer}" if batch.longer else source
