"""`attlas certify FOLDER`: what models answer on a text or images, before it is certified."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from attlas.certificates.columns import Table


def require_examples(
    files: "Sequence[Path]",
    text: Path | None,
    images: Path | None,
    labels: Path | None,
    capture: bool | None,
    ignore_settings: bool,
) -> None:
    """Check that a text or images stand beside folders of models, and labels beside these.

    Raises:
        UserError: if one is missing, or files of predictions and folders of models are mixed.
    """
    from attlas._files.plain_file import printable
    from attlas.core.errors import UserError

    folders = [path for path in files if path.is_dir()]
    if not folders:
        if any(option is not None for option in (text, images, labels)):
            raise UserError("--text, --images and --labels are for the folder of a model: name one")
        if ignore_settings:
            raise UserError("--ignore-settings is for the folder of a model: name one")
        return
    name = printable(str(folders[0]))
    if len(folders) < len(files):
        raise UserError(f"{name} is a folder of a model: give folders, or files of predictions")
    if text is None and images is None:
        raise UserError(
            f"{name} is a folder of a model: give --text FILE, and --labels FILE for a classifier, "
            "or --images FOLDER for a vision model"
        )
    if text is not None and images is not None:
        raise UserError("--text and --images exclude each other: give one")
    if (labels is not None or images is not None) and capture is False:
        raise UserError("classifiers are run in PyTorch: leave --no-capture out")


def model_tables(
    folders: "Sequence[Path]",
    text: Path | None,
    images: Path | None,
    labels: Path | None,
    ignore_settings: bool,
) -> "list[Table]":
    """The answers of classifiers, as files of predictions would have them."""
    from attlas.audit.certify import answered_table
    from attlas.audit.read_batch import lines_of_text

    lines, right = (None if file is None else list(lines_of_text(file)) for file in (text, labels))
    return [answered_table(folder, lines, images, right, ignore_settings) for folder in folders]


def certify_streams(context: typer.Context, files: "Sequence[Path]", text: Path) -> bool | None:
    """Certify, show and write the bits per token of language models on a text.

    Returns:
        Whether one of them is certified at what was asked for; None where nothing was.
    """
    from attlas.audit.certify import stream_guarantees
    from attlas.audit.read_batch import lines_of_text
    from attlas.certificates.stream import stream_json, stream_rows, stream_sentences
    from attlas.display.terminal import say, show_table

    _require_stream_options(context)
    options: dict[str, Any] = context.params
    several = stream_guarantees(
        files,
        list(lines_of_text(text)),
        options["delta"],
        options["at_most"],
        options["capture"],
        options["ignore_settings"],
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
