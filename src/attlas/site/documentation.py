"""The documentation beside an atlas: its pages and public functions, for navigation and search."""

import ast
import os
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import attlas
from attlas.display.terminal import plain
from attlas.site.public_names import public_names

BUILT = Path("docs", "_build", "html")
_FOLDERS = ("", "choose", "tutorials")
_LEFT_OUT = ("index", "glossary")
"""Pages that list others, and the glossary, which the atlas has itself."""
_MOST = 240
_HEADING = re.compile(r"#{1,3} +(.+)")
_NO_TEXT = re.compile(r"```.*?```|<[^>]*>|^---.*?^---|^\s*[-|:{][^\n]*$", re.S | re.M)
_FENCE = re.compile(r"```.*?```", re.S)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


class DocumentationPage(NamedTuple):
    """A page or a public function of the documentation.

    Attributes:
        address: from the folder of the atlas's front page.
        anchor: the fragment; empty for a whole page.
        text: first words of the page, or of the docstring.
        headings: of the sections of the page.
    """

    title: str
    address: str
    anchor: str
    text: str
    headings: str = ""


class Documentation(NamedTuple):
    """The documentation of the checkout, built or as sources.

    Attributes:
        index: address of its first page, from the folder of the atlas's front page.
    """

    index: str
    pages: tuple[DocumentationPage, ...]
    functions: tuple[DocumentationPage, ...]


def documentation_beside(front: Path) -> Documentation | None:
    """The documentation, as seen from an atlas in the checkout that attlas runs from; else None.

    Links lead to the built pages, or to their sources where they were not built.

    Examples:
        >>> documentation_beside(Path("/nowhere/atlas.html")) is None
        True
    """
    root = Path(attlas.__path__[0]).parents[1]
    place = Path(os.path.realpath(front.parent))
    if not (root / "docs" / "index.md").is_file() or not place.is_relative_to(root):
        return None
    built = (root / BUILT / "index.html").is_file() or place == root / BUILT
    folder, suffix = (root / BUILT, ".html") if built else (root / "docs", ".md")

    def to(target: Path) -> str:
        return quote(Path(os.path.relpath(target, place)).as_posix())

    pages = tuple(
        DocumentationPage(title, to(folder / f"{name}{suffix}"), "", text, headings)
        for name, title, text, headings in _read(root / "docs")
    )
    functions = []
    for name in public_names(str(Path(attlas.__path__[0]) / "__init__.py")):
        module, _, short = name.rpartition(".")
        source = root.joinpath("src", *module.split(".")).with_suffix(".py")
        page = folder / "api" / f"{module.rpartition('.')[0]}.html" if built else source
        text = _first_lines(source).get(short, "")
        functions.append(
            DocumentationPage(f"attlas.{short}", to(page), name if built else "", text, name)
        )
    return Documentation(to(folder / f"index{suffix}"), pages, tuple(functions))


def sources_beside(front: Path) -> str | None:
    """What precedes the path of a source in its address from a front page.

    The built documentation has copies of the sources, so that it can be published alone.

    Args:
        front: the front page of an atlas.

    Returns:
        A relative address that ends in a slash, empty at the top of the checkout; None outside it.

    Examples:
        >>> sources_beside(Path("/nowhere/atlas.html")) is None
        True
    """
    root = Path(attlas.__path__[0]).parents[1]
    place = Path(os.path.realpath(front.parent))
    if not (root / "docs" / "index.md").is_file() or not place.is_relative_to(root):
        return None
    if place in (root, root / BUILT):
        return ""
    return quote(Path(os.path.relpath(root, place)).as_posix()) + "/"


@cache
def _read(docs: Path) -> tuple[tuple[str, str, str, str], ...]:
    """Names, titles, first words and headings of the pages."""
    files = [file for folder in _FOLDERS for file in sorted((docs / folder).glob("*.md"))]
    pages = []
    for file in files:
        source = file.read_text(encoding="utf-8")
        headings = [plain(text) for text in _HEADING.findall(_FENCE.sub("", source))]
        name = file.relative_to(docs).with_suffix("").as_posix()
        if not headings or name in _LEFT_OUT:
            continue
        words = " ".join(_LINK.sub(r"\1", _NO_TEXT.sub(" ", source)).split("\n"))
        body = plain(re.sub(r"#{1,3} ", "", words).replace("*", "").replace("`", ""))
        text = " ".join(body.split()).removeprefix(headings[0]).strip()
        pages.append((name, headings[0], text[:_MOST].rpartition(" ")[0], " ".join(headings[1:])))
    return tuple(pages)


@cache
def _first_lines(source: Path) -> dict[str, str]:
    """The first line of the docstring of each function and class of a module."""
    if not source.is_file():
        return {}
    return {
        node.name: (ast.get_docstring(node) or "").partition("\n")[0]
        for node in ast.parse(source.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
