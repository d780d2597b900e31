"""`attlas audit`: what attention theory says about a trained Transformer."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attlas.cli.machine import require_machine
from attlas.cli.session import session_of

if TYPE_CHECKING:
    import numpy as np

    from attlas.interop.words import Words


def audit(
    context: typer.Context,
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODEL]",
            help="A folder or file of a model; the one that a run trained last when left out.",
        ),
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(metavar="weights|data|deep", help="What is measured; data when words are."),
    ] = None,
    text: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A text, one document per line.")
    ] = None,
    tokens: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Tokens: .npz with ids and lengths, .npy, or lines of numbers."
        ),
    ] = None,
    against: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="An earlier checkpoint of the model.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The HTML page.")] = Path("audit.html"),
    json_: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="All numbers, as JSON.")
    ] = None,
    sequences: Annotated[int, typer.Option(min=2, help="Sequences of the batch.")] = 64,
    length: Annotated[int, typer.Option(min=2, help="Largest number of tokens of each.")] = 256,
    deep_sequences: Annotated[
        int, typer.Option(min=2, help="Sequences that removals and curvature take.")
    ] = 16,
    curvature: Annotated[
        bool, typer.Option(help="Hessian extremes of every head at level deep.")
    ] = True,
) -> None:
    """Audit a trained Transformer: certificates, attacks, and what acting on a head does."""
    require_machine()  # before JAX is imported
    from rich.console import Console

    from attlas.audit.audit import AuditOptions
    from attlas.audit.audit import audit as make_audit
    from attlas.interop.load_model import load_model, open_checkpoint
    from attlas.interop.words import read_words
    from attlas.reports.audit_page import render_audit
    from attlas.runs.audits import audited_model, store_audit
    from attlas.runs.text_file import probe_text_file, write_text_file

    session = session_of(context)
    probe_text_file(out, "--out")
    source = audited_model(session.results, model)
    words = read_words(source if source.is_dir() else source.parent, open_checkpoint(source).config)
    batch = _batch(words, text, tokens, sequences, length, level)
    console = Console(stderr=True)
    with console.status("reading") as status:
        found = make_audit(
            load_model(source),
            batch,
            level=level,  # pyright: ignore[reportArgumentType] (checked by the function)
            against=against,
            options=AuditOptions(
                mask=words.mask,
                special=words.special or None,
                curvature=curvature,
                deep_sequences=deep_sequences,
            ),
            progress=lambda part, done, all_: status.update(f"level {part}: {done} of {all_}"),
        ).to_json()
    write_text_file(out, render_audit(found), "--out")
    if json_ is not None:
        write_text_file(json_, json.dumps(found, indent=1, allow_nan=False), "--json")
    store_audit(session.results, found)
    for finding in found["findings"]:
        typer.echo(f"- {finding['sentence']}")
    typer.echo(f"{out}")


def _batch(
    words: "Words",
    text: Path | None,
    tokens: Path | None,
    sequences: int,
    length: int,
    level: str | None,
) -> "list[np.ndarray] | None":
    """The user's sequences, our own text's where there is a tokenizer, or none."""
    from attlas.audit.read_batch import default_text, read_text, text_batch, token_batch
    from attlas.core.errors import UserError

    if text is not None and tokens is not None:
        raise UserError("--text and --tokens exclude each other: give one")
    if level == "weights":
        return None
    if tokens is not None:
        return token_batch(tokens, length=length, most=sequences)
    if text is None and (level is None and words.encode is None):
        return None
    own = default_text() if text is None else read_text(text)
    return text_batch(words, own, length=length, most=sequences)
