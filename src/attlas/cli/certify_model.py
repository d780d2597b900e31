"""`attlas certify FOLDER --text FILE`: what models answer on a text, before it is certified."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from attlas.certificates.columns import Table


def require_text(
    files: "Sequence[Path]",
    text: Path | None,
    labels: Path | None,
    capture: bool | None,
    ignore_settings: bool,
) -> None:
    """Check that a text stands beside folders of models, and labels beside a text.

    Raises:
        UserError: if one is missing, or files of predictions and folders of models are mixed.
    """
    from attlas._files.plain_file import printable
    from attlas.core.errors import UserError

    folders = [path for path in files if path.is_dir()]
    if not folders:
        if text is not None or labels is not None:
            raise UserError("--text and --labels are for the folder of a model: name one")
        if ignore_settings:
            raise UserError("--ignore-settings is for the folder of a model: name one")
        return
    name = printable(str(folders[0]))
    if len(folders) < len(files):
        raise UserError(f"{name} is a folder of a model: give folders, or files of predictions")
    if text is None:
        raise UserError(
            f"{name} is a folder of a model: give --text FILE, and --labels FILE for a classifier"
        )
    if labels is not None and capture is False:
        raise UserError("classifiers are run in PyTorch: leave --no-capture out")


def model_table(folder: Path, text: Path, labels: Path, ignore_settings: bool) -> "Table":
    """The answers of a classifier, as a file of predictions would have them."""
    from attlas.audit.model_answers import class_table
    from attlas.audit.read_batch import lines_of_text

    return class_table(
        folder,
        list(lines_of_text(text)),
        list(lines_of_text(labels)),
        ignore_settings=ignore_settings,
    )


def certify_streams(context: typer.Context, files: "Sequence[Path]", text: Path) -> bool | None:
    """Certify, show and write the bits per token of language models on a text.

    Returns:
        Whether one of them is certified at what was asked for; None where nothing was.
    """
    import math

    from attlas._files.plain_file import printable
    from attlas.audit.model_answers import token_probabilities
    from attlas.audit.read_batch import lines_of_text
    from attlas.certificates.stream import (
        stream_guarantee,
        stream_json,
        stream_rows,
        stream_sentences,
    )
    from attlas.display.terminal import say, show_table

    _require_stream_options(context)
    options: dict[str, Any] = context.params
    delta = float(options["delta"])
    share = math.nextafter(delta / len(files), 0) if len(files) > 1 else delta
    lines = list(lines_of_text(text))
    several = []
    for path in files:
        tokens = token_probabilities(
            path, lines, options["capture"], ignore_settings=options["ignore_settings"]
        )
        name = printable(path.resolve().name)
        several.append(
            stream_guarantee(
                name,
                tokens.probabilities,
                tokens.vocabulary,
                tokens.bytes,
                share,
                at_most=options["at_most"],
            )
        )
    show_table(*stream_rows(several), always=("bits per token at most",))
    say("")
    for sentence in stream_sentences(several):
        say(sentence)
    document = stream_json(several, options["at_most"])

    def page() -> str:
        from attlas.site.certificate_page import render_stream

        return render_stream(several, options["at_most"])

    def badge() -> str:
        from attlas.site.certificate_page import stream_badge

        return stream_badge(several, options["at_most"])

    write_certificate(options, document, page, badge)
    return document["passes"]


def write_certificate(
    options: "Mapping[str, Any]",
    document: "Mapping[str, Any]",
    page: "Callable[[], str]",
    badge: "Callable[[], str]",
) -> None:
    """Write the files that the options name: the document, and what draws it as page and badge."""
    from attlas.experiments.text_file import require_html, write_json_file, write_text_file

    if options["json_file"] is not None:
        write_json_file(options["json_file"], document, "--json")
    if options["page"] is not None:
        require_html(options["page"], "--page")
        write_text_file(options["page"], page(), "--page")
    if options["badge"] is not None:
        write_text_file(options["badge"], badge(), "--badge")


_OF_STREAMS = {"files", "delta", "at_most", "text", "capture", "json_file", "page"}
_OF_STREAMS |= {"badge", "ignore_settings"}


def _require_stream_options(context: typer.Context) -> None:
    """Refuse options that a text without labels would ignore."""
    from attlas.core.errors import UserError

    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in _OF_STREAMS and source is not None and source.name == "COMMANDLINE":
            option = {"example": "id"}.get(name, name.replace("_", "-"))
            raise UserError(
                f"--{option} is for errors, and a text without --labels has none: leave it out, or "
                "give --labels FILE"
            )
