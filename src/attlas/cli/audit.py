"""`attlas audit`: what attention theory says about a trained Transformer."""

import datetime
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from attlas.cli.audit_files import Files, image_model, read_files, require_files
from attlas.cli.audit_options import (
    Against,
    Budget,
    Capture,
    Curvature,
    CurvatureSequences,
    DeepSequences,
    Export,
    Fresh,
    IgnoreSettings,
    Images,
    Insecure,
    Json,
    Labels,
    LearningRate,
    Length,
    Level,
    Model,
    Momentum,
    On,
    Out,
    Pairs,
    Sequences,
    Text,
    Tokens,
    Workers,
    require_used,
)
from attlas.cli.session import require_machine, session_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from attlas.audit.audit import AuditOptions
    from attlas.audit.labelled_batch import Batch
    from attlas.capture.captured_model import CapturedModel
    from attlas.experiments.layer_cache import LayerCache
    from attlas.transformers.trained_transformer import TrainedTransformer

FEWEST = 2
"""Fewest sequences of a batch."""
_SMALL = 2**26
_SETTINGS = (
    *("curvature", "curvature_sequences", "learning_rate", "momentum"),
    "budget",
)
"""Options that are settings of the audit by the same name."""
_DEEP = {False: 16, True: 64}
"""Sequences at level deep by whether each is one example, with one answer or loss."""


def audit(
    context: typer.Context,
    model: Model = None,
    level: Level = None,
    text: Text = None,
    tokens: Tokens = None,
    labels: Labels = None,
    images: Images = None,
    pairs: Pairs = None,
    against: Against = None,
    capture: Capture = None,
    ignore_settings: IgnoreSettings = False,
    out: Out = Path("audit.html"),
    json_: Json = None,
    sequences: Sequences = 64,
    length: Length = 256,
    deep_sequences: DeepSequences = None,
    curvature: Curvature = True,
    curvature_sequences: CurvatureSequences = 4,
    learning_rate: LearningRate = None,
    momentum: Momentum = 0.0,
    budget: Budget = 0.01,
    export: Export = None,
    fresh: Fresh = False,
    on: On = "local",
    workers: Workers = 2,
    insecure: Insecure = False,
) -> None:
    """Audit a trained Transformer: certificates, attacks, and ablations of its heads."""
    require_used(context, level, on)
    require_files(files := Files(text, tokens, labels, images, pairs), level, capture)
    require_machine()  # before JAX is imported, as the variables it reads then
    os.environ.update(_variables(model, level))
    from attlas.audit.checkpoint_curves import checkpoints_of
    from attlas.experiments.audits import audited_model
    from attlas.experiments.trained_models import model_title
    from attlas.transformers.load_model import open_checkpoint
    from attlas.transformers.tokenizer import read_tokenizer

    results = session_of(context).results
    source = audited_model(results, model)
    steps = checkpoints_of(source) or ((0, source),)
    _probe_places(out, json_, export, source := steps[-1][1])
    config = open_checkpoint(source).config
    tokenizer = read_tokenizer(source if source.is_dir() else source.parent, config)
    name = None if len(steps) > 1 else model_title(source.resolve())
    read_model = _opened(source, files, capture, ignore_settings, name, tokenizer.mask)
    batch = read_files(files, read_model, source, tokenizer, config, sequences, length, level)
    _require_several(batch)
    _require_checkpoint(against)
    settings = {name: context.params[name] for name in _SETTINGS} | {"source": batch.source}
    settings |= {"deep_sequences": deep_sequences or _DEEP[files.judged]}
    settings |= {"mask": tokenizer.mask, "special": tokenizer.special or None}
    store, spread = _AuditStore(results, fresh), (on, workers, insecure)
    document = _audited(read_model, steps, batch, level, against, settings, store, spread)
    _write(document, out, json_, store)
    if export is not None:
        _export(document, read_model, source, export)


class _AuditStore:
    """Where audits are stored, and the one of today with what it follows from.

    Attributes:
        digest: the sha256 of what the audit follows from; empty where it is not known.
        finished: when the audit was computed that was found there.
    """

    def __init__(self, results: Path, fresh: bool) -> None:
        self.results, self.fresh = results, fresh
        self.digest = ""
        self.finished: datetime.datetime | None = None

    def read(
        self,
        model: "TrainedTransformer",
        files: str,
        level: str | None,
        sequences: Any,
        options: "AuditOptions",
    ) -> "dict[str, Any] | None":
        """The stored audit of which nothing has changed; `files` is the digest of the model's."""
        from attlas.audit.level import default_level
        from attlas.experiments.audits import audit_digest, unchanged_audit

        self.digest = audit_digest(files, model.name, level, sequences, options)
        if self.fresh:
            return None
        used = level or default_level(sequences)
        stored = unchanged_audit(self.results, model.name, used, self.digest)
        if stored is None:
            return None
        self.finished = stored.finished
        return stored.audit


def _opened(
    source: Path,
    files: Files,
    capture: bool | None,
    ignore_settings: bool,
    name: str | None,
    mask: int | None,
) -> "TrainedTransformer | CapturedModel":
    """The model, or the part of it that reads the files."""
    from attlas.audit.opened_model import opened

    model = opened(
        source,
        files.judged or capture,
        name=name,
        mask=mask,
        ignore_settings=ignore_settings,
    )
    return model if files.images is None else image_model(model)


def _probe_places(out: Path, json_: Path | None, export: Path | None, source: Path) -> None:
    """Check that what the audit writes can be written, before hours of computation."""
    from attlas.audit.exported import require_exportable
    from attlas.experiments.text_file import probe_text_file, require_html
    from attlas.transformers.pruned_folder import require_new_folder

    require_html(out, "--out")
    probe_text_file(out, "--out")
    if json_ is not None:
        probe_text_file(json_, "--json")
    if export is not None:
        require_new_folder(export)
        require_exportable(source)


def _export(document: "dict[str, Any]", model: Any, source: Path, target: Path) -> None:
    """Write the model without the heads that the audit removed, and say so."""
    from attlas.audit.exported import export_without
    from attlas.core.errors import UserError

    removals = [each for each in document["decisions"] if each["kind"] == "heads" and each["heads"]]
    if not all(decision["advised"] for decision in removals):
        raise UserError(
            "the test does not support removing the heads, nothing is exported: raise "
            "--deep-sequences for a sharper test, or --budget"
        )
    heads = [(layer, head) for decision in removals for layer, head in decision["heads"]]
    names = export_without(model, source, target, heads)
    typer.echo(f"{target}: without {len(heads)} heads, in {len(names)} tensors")


def _write(document: "dict[str, Any]", out: Path, json_: Path | None, store: _AuditStore) -> None:
    """Write the page, the numbers on request, and the audit for the atlas; print the findings."""
    from attlas.audit.finding import Finding
    from attlas.audit.model_audit import CAUTION
    from attlas.display.terminal import show_fact
    from attlas.experiments.audits import store_audit
    from attlas.experiments.text_file import write_json_file, write_text_file
    from attlas.experiments.unchanged import age_text
    from attlas.site.audit_page import render_audit

    write_text_file(out, render_audit(document, out.parent), "--out")
    if json_ is not None:
        write_json_file(json_, document, "--json")
    if store.finished is None:
        say = partial(typer.echo, err=True)
        store_audit(store.results, document, say, store.digest)
    if CAUTION in document["facts"]:
        show_fact("!", document["facts"][CAUTION], width=2)
    for finding in document["findings"]:
        show_fact("*", Finding(**finding).text, width=2)
    if store.finished is not None:
        age = age_text(datetime.datetime.now(datetime.UTC) - store.finished)
        typer.echo(f"audit unchanged, computed {age} ago; --fresh computes it again")
    further = len(document["further"])
    typer.echo(f"{out}" + (f" ({further} more findings are there)" if further else ""))


def _variables(model: str | None, level: str | None) -> dict[str, str]:
    """Variables for JAX: small models spend their time compiling, large ones running.

    At level deep every model spends it running.
    """
    from attlas._jax.processes import auditor_variables, worker_variables

    place = Path(model or "")
    files = place.rglob("*") if model and place.is_dir() else [place]
    size = sum(file.stat().st_size for file in files if file.is_file())
    return auditor_variables() if size < _SMALL and level != "deep" else worker_variables(1)


def _audited(
    model: "TrainedTransformer | CapturedModel",
    steps: "Sequence[tuple[int, Path]]",
    batch: "Batch",
    level: Any,
    against: Path | None,
    settings: "Mapping[str, Any]",
    store: _AuditStore,
    spread: tuple[str, int, bool],
) -> "dict[str, Any]":
    """The audit of a model or of its checkpoints, with progress on the screen.

    One of a model that was audited before is read where nothing that it follows from has changed.
    """
    from attlas.audit.audit import AuditOptions, audit
    from attlas.audit.checkpoint_curves import audit_checkpoints
    from attlas.cli.audit_progress import level_bars
    from attlas.core.errors import UserError
    from attlas.transformers.trained_transformer import TrainedTransformer

    if len(steps) > 1 and against is not None:
        raise UserError("--against compares two checkpoints: name one model, not a folder of them")
    options = AuditOptions(**settings)
    if len(steps) > 1 and spread[0] != "local":
        raise UserError(f"--on {spread[0]} computes one model: name one of the checkpoints")
    captured = not isinstance(model, TrainedTransformer)
    if captured and (len(steps) > 1 or spread[0] != "local"):
        raise UserError("a captured model is audited alone and here: name one, without --on")
    with level_bars() as (progress, say):
        if len(steps) > 1:
            return audit_checkpoints(
                steps, batch.sequences, level=level, options=options, progress=progress
            ).to_json()
        if captured:
            return audit(
                model,
                batch.sequences,
                level=level,
                against=against,
                labels=batch.labels,
                documents=batch.documents,
                options=options,
                progress=progress,
                say=say,
            ).to_json()
        ((_, source),) = steps
        return _audited_here(
            model, source, batch, level, against, options, store, spread, progress, say
        )


def _audited_here(
    model: "TrainedTransformer",
    source: Path,
    batch: "Batch",
    level: Any,
    against: Path | None,
    options: "AuditOptions",
    store: _AuditStore,
    spread: tuple[str, int, bool],
    progress: "Callable[[str, int, int], None]",
    say: "Callable[[str], None]",
) -> "dict[str, Any]":
    """The audit of one model that attlas reads itself, from its stored layers where there are."""
    from attlas.audit.audit import audit, certificate_context
    from attlas.experiments.layer_cache import LayerCache

    cache = LayerCache(store.results, source, certificate_context(model, options), say)
    # What is compared with a second model, or computed in part elsewhere, is computed anew.
    is_alone = against is None and spread[0] == "local"
    if is_alone and (stored := store.read(model, cache.digest, level, batch.sequences, options)):
        return stored
    _spread(cache, source, model.layers, spread, progress)
    document = audit(
        model,
        batch.sequences,
        level=level,
        against=against,
        options=options,
        progress=progress,
        say=say,
        cache=cache.get_or_compute,
    ).to_json()
    cache.forget()
    return document


def _spread(
    cache: "LayerCache",
    source: Path,
    layers: int,
    spread: tuple[str, int, bool],
    progress: "Callable[[str, int, int], None]",
) -> None:
    """Compute level weights on a dask cluster, if requested; the audit reads it from the cache."""
    on, workers, insecure = spread
    if on == "local":
        return
    from attlas.experiments.dask_audit import compute_layers_on_dask

    def report(done: int, all_: int) -> None:
        progress("weights", done, all_)

    compute_layers_on_dask(
        cache, source, layers, on=on, workers=workers, insecure=insecure, progress=report
    )


def _require_several(batch: "Batch") -> None:
    """Refuse a batch of one sequence: confidence intervals need at least two."""
    from attlas.core.errors import UserError

    if batch.sequences is not None and len(batch.sequences) < FEWEST:
        raise UserError(
            f"the batch has {len(batch.sequences)} sequence, and confidence intervals need at "
            f"least {FEWEST}: give more lines of text, a smaller --length, or --level weights"
        )


def _require_checkpoint(against: Path | None) -> None:
    """Read the configuration of the model to compare with, before hours of computation."""
    from attlas.transformers.load_model import open_checkpoint

    if against is not None:
        open_checkpoint(against)
