r"""Docstrings are Markdown in reStructuredText's clothes: `code`, $mathematics$ and sections.

What autodoc reads is reStructuredText. Mathematics becomes a role or a block, and the characters
that would be markup there (`*`, `|`, a trailing `_`) are escaped outside code and examples.
"""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

_BLOCK = re.compile(r"\$\$(.+?)\$\$", re.S)
_SPAN = re.compile(r"(``[^`]+``|`[^`]+`_?|(?<!\\)\$[^$]+\$|:[a-z]+:`[^`]+`)")
_ENUMERATOR = re.compile(
    r"^(\s*(?:\w+: )?)(?=\(?(?:\d+|#|[A-Za-z]|[ivxlcdmIVXLCDM]+)[.)](?:\s|$))", re.M
)
_SPECIAL = re.compile(r"([*|\\])|(?<=\w)_(?!\w)")


def restructured(lines: list[str]) -> list[str]:
    r"""Lines that reStructuredText reads as the author meant them.

    Args:
        lines: of a docstring.

    Returns:
        The lines.

    Examples:
        >>> restructured([r"The norm $\|x\|$ of `x` by a*b."])
        ['The norm :math:`\\|x\\|` of `x` by a\\*b.']
        >>> restructured(["    heads: H."])  # not the first item of a list
        ['    heads: \\H.']
    """
    found: list[str] = []
    for paragraph in _paragraphs(lines):
        found += _example(paragraph) if _is_example(paragraph) else _text(paragraph)
    return found


def _returns(lines: list[str]) -> list[str]:
    """The section on what is returned as a field: its first line may have a colon of its own."""
    found: list[str] = []
    for line in lines:
        if line.strip() == "Returns:":
            found += ["", line.replace("Returns:", ":returns:")]
        else:
            found.append(line)
    return found


def _paragraphs(lines: list[str]) -> list[list[str]]:
    """Lines up to and with the next blank one."""
    found: list[list[str]] = [[]]
    for line in lines:
        found[-1].append(line)
        if not line.strip():
            found.append([])
    return [paragraph for paragraph in found if paragraph]


def _is_example(paragraph: list[str]) -> bool:
    first = next((line for line in paragraph if not line.strip().endswith(":")), "")
    return first.lstrip().startswith(">>>") or "===" in paragraph[0]


def _example(paragraph: list[str]) -> list[str]:
    return paragraph


def _text(paragraph: list[str]) -> list[str]:
    text = "\n".join(paragraph)
    parts = _BLOCK.split(text)
    found = ""
    for place, part in enumerate(parts):
        if place % 2:
            before = found.rpartition("\n")[2]
            indent = " " * (len(before) - len(before.lstrip()))
            latex = " ".join(part.split())
            found = found.rstrip(" ") + f"\n\n{indent}.. math:: {latex}\n\n{indent}"
        else:
            found += _spans(_SPAN.split(part))
    found = _ENUMERATOR.sub(lambda match: match.group(1) + "\\", found)
    return found.split("\n")


def _spans(pieces: list[str]) -> str:
    """Text and code in turn; code may have an ending of its own, such as a plural."""
    found = ""
    for piece in pieces:
        joined = found.endswith("`") and piece[:1].isalnum()
        found += ("\\ " if joined else "") + _span(piece)
    return found


def _span(piece: str) -> str:
    if piece.startswith("$") and len(piece) > 2:
        latex = " ".join(piece[1:-1].split())
        return f":math:`{latex}`"
    if piece.startswith(("`", ":")) and piece.endswith(("`", "_")):
        return f"`{piece[1:-1].strip()}`" if piece[:2] == "` " or piece[-2:] == " `" else piece
    return _SPECIAL.sub(lambda match: "\\" + match.group(0), piece)


def process(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """What autodoc calls for each docstring, before its sections are read."""
    lines[:] = _returns(restructured(lines))


def drop_outside_names(app: Sphinx, doctree: nodes.document) -> None:
    """Leave annotations such as `Float` and `Array` as text: each costs a search of every name.

    Args:
        app: Sphinx.
        doctree: of a page.
    """
    for reference in list(doctree.findall(addnodes.pending_xref)):
        outside = not str(reference.get("reftarget", "")).startswith("attlas.")
        if reference.get("refdomain") == "py" and outside:
            reference.replace_self(reference.children)


def setup(app: Sphinx) -> dict[str, bool]:
    """Listen before the sections of a docstring are read, at priority 500."""
    app.connect("autodoc-process-docstring", process, priority=400)
    app.connect("doctree-read", drop_outside_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
