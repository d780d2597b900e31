r"""The sources of a paper as one text: nothing outside its folder is read, and nothing is executed.

A folder, a .tex file with what it inputs and the styles that lie beside it, or an archive (.tar.gz,
.tar, .gz, .zip) that is read in memory. Comments, verbatim text and what \iffalse hides become
blank, so that places stay.
"""

import gzip
import io
import re
import tarfile
import zipfile
import zlib
from bisect import bisect, bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO

from attlas._files.budget import LATEX
from attlas._files.plain_file import Damaged, open_plain_file, printable
from attlas.core.errors import UserError

_INPUT = re.compile(
    r"\\(?:input|include|subfile|subfileinclude)(?![A-Za-z@])\s*(?:\{([^{}]*)\}|([^\s{}\\]+))"
    r"|\\(?:import|subimport|includefrom|inputfrom)\*?\s*\{([^{}]*)\}\s*\{([^{}]*)\}"
    r"|\\(?:usepackage|RequirePackage)\s*(?:\[[^\]]{0,2000}\])?\s*\{([^{}]*)\}"
    r"|\\documentstyle\s*\[([^\]\\]{0,2000})\]"
    r"|\\(?:documentclass|LoadClass)\s*(?:\[[^\]]{0,2000}\])?\s*\{([^{}]*)\}"
)
_CLASS = re.compile(r"\\document(?:class|style)(?![A-Za-z])")
_STYLES = ".sty", ".cls"
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)%[^\n]*")
_HIDDEN = re.compile(
    r"\\begin\s*\{(verbatim\*?|lstlisting|minted|comment|filecontents\*?)\}|\\iffalse\b"
)
_MAIN = "main.tex", "paper.tex", "ms.tex", "article.tex", "arxiv.tex"
_MOST_LEVELS = 16
_ARCHIVES = ".gz", ".tgz", ".tar", ".zip"
_UNREADABLE = (OSError, EOFError, ValueError, zlib.error, tarfile.TarError, zipfile.BadZipFile)

Read = Callable[[str], bytes | None]
"""The content of a file by its name from the folder of the paper, None if there is none."""


@dataclass
class Document:
    """The text of a paper with all that it inputs, and where each part of it stands.

    Attributes:
        text: without comments and verbatim text.
        main: name of the file that LaTeX is given.
        auxiliary: content of its .aux file; empty without one.
        notes: a line for everything that was not read.
    """

    main: str
    text: str = ""
    auxiliary: str = ""
    notes: list[str] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    _files: list[tuple[str, int]] = field(default_factory=list)

    def place(self, position: int) -> tuple[str, int]:
        """File and line of a position of the text."""
        number = max(bisect(self._starts, position) - 1, 0)
        name, line = self._files[number]
        ends = self._line_ends
        return name, line + bisect_left(ends, position) - bisect_left(ends, self._starts[number])

    @cached_property
    def _line_ends(self) -> list[int]:
        """Where lines end; asked only when the text is complete."""
        return [match.start() for match in re.finditer("\n", self.text)]

    def at(self, position: int) -> str:
        """File and line of a position, as a message names them."""
        return "{}:{}".format(*self.place(position))


def read_sources(path: Path) -> Document:
    r"""The whole text of a paper from its folder, its main file or an archive of its sources.

    Args:
        path: a folder or archive has one file with \documentclass, or one that is called main.tex;
            a file is read with what it inputs from its folder and below.

    Raises:
        UserError: if it cannot be read, or does not say which file is the main one.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     main = Path(folder) / "main.tex"
        ...     _ = main.write_text(r"\begin{document} Hello \input{more} % a remark")
        ...     read_sources(main).notes
        ['main.tex:1: more.tex is missing']
    """
    try:
        read, names = _opened(path)
        main = _main_file(path, read, names)
        document = Document(main)
        _Assembly(read, document).add(main)
        auxiliary = read(str(PurePosixPath(main).with_suffix(".aux"))) or b""
        document.auxiliary = _decoded(auxiliary)
    except Damaged as damage:
        raise UserError(f"{damage}: give the folder, the main file or an archive") from None
    return document


class _Assembly:
    """Adds files to a document in the order in which LaTeX reads them."""

    def __init__(self, read: Read, document: Document):
        self._read, self._document = read, document
        self._bytes, self._number = 0, 0
        self._parents: list[str] = []
        self._styles: set[str] = set()

    def add(self, name: str, base: str = "") -> None:
        """Add a file and, in their places, those that it inputs."""
        content = self._content(name)
        text = blanked(_decoded(content)).partition("\\endinput")[0]
        is_subfile = self._parents and not name.endswith(_STYLES)
        if is_subfile and "\\documentclass" in text:  # of a subfile only its body counts
            head, _, body = text.partition("\\begin{document}")
            text = "\n" * head.count("\n") + body.partition("\\end{document}")[0]
        self._parents.append(name)
        done, line = 0, 1
        for match in _INPUT.finditer(text):
            self._append(name, line, text[done : match.start()])
            line += text.count("\n", done, match.start())
            whole, bare, folder, file, packages, options, document_class = match.groups()
            styles = packages or options
            if styles is not None or document_class is not None:
                self._add_styles(styles or document_class or "", ".sty" if styles else ".cls")
            else:
                self._include(name, line, base, folder, (whole or bare or file or "").strip())
            line += text.count("\n", match.start(), match.end())
            done = match.end()
        self._append(name, line, text[done:] + "\n")
        self._parents.pop()

    def _content(self, name: str) -> bytes:
        content = self._read(name)
        if content is None:
            raise Damaged(f"{printable(name)[:200]} is missing")
        self._bytes += len(content)
        self._number += 1
        if self._bytes > LATEX.bytes or self._number > LATEX.entries:
            limits = f"{LATEX.bytes} bytes in {LATEX.entries} files"
            raise UserError(f"the sources of the paper are larger than {limits}")
        return content

    def _include(self, parent: str, line: int, base: str, folder: str | None, name: str) -> None:
        """Add what a file names; what cannot be read is a note."""
        where = f"{parent}:{line}"
        base = f"{base}{folder.strip('/')}/" if folder is not None else base
        named = _inside(f"{base}{name}")
        if named is None:
            self._note(f"{where}: {printable(name)[:200]} is outside the folder of the paper")
        elif not named or "#" in named or "\\" in named:
            self._note(f"{where}: {printable(name)[:200] or 'nothing'} is no name of a file")
        else:
            choices = (named,) if named.endswith(".tex") else (f"{named}.tex", named)
            file = next((choice for choice in choices if self._exists(choice)), None)
            if file is None:
                self._note(f"{where}: {choices[0][:200]} is missing")
            elif file in self._parents or len(self._parents) >= _MOST_LEVELS:
                self._note(f"{where}: {file} inputs itself, or too many files lie in each other")
            else:
                self.add(file, base)

    def _add_styles(self, names: str, suffix: str) -> None:
        """Add the styles that lie in the folder of the paper; the others are LaTeX's own."""
        for name in names.split(","):
            file = _inside(f"{name.strip()}{suffix}")
            if file is None or file in self._styles or len(self._parents) >= _MOST_LEVELS:
                continue
            self._styles.add(file)
            if self._exists(file):
                self.add(file)

    def _exists(self, name: str) -> bool:
        try:
            return self._read(name) is not None
        except Damaged as damage:
            self._note(str(damage))
            return False

    def _note(self, line: str) -> None:
        if line not in self._document.notes:
            self._document.notes.append(line)

    def _append(self, name: str, line: int, text: str) -> None:
        document = self._document
        document._starts.append(len(document.text))
        document._files.append((name, line))
        document.text += text


def blanked(text: str) -> str:
    r"""A text without comments, verbatim text and what \iffalse hides; lines stay.

    Examples:
        >>> blanked("5 \\% of it % a remark\nnext")
        '5 \\% of it \nnext'
    """
    text = _COMMENT.sub(r"\1", text.replace("\r\n", "\n").replace("\r", "\n"))
    parts, done, missing = [], 0, set()
    for match in _HIDDEN.finditer(text):
        ending = f"\\end{{{match[1]}}}" if match[1] else "\\fi"
        end = -1 if match.start() < done or ending in missing else text.find(ending, match.end())
        if end < 0:
            missing.add(ending) if match.start() >= done else None
            continue
        end += len(ending)
        parts += [text[done : match.start()], "\n" * text.count("\n", match.start(), end)]
        done = end
    return "".join([*parts, text[done:]])


def _inside(name: str) -> str | None:
    """A name from the folder of the paper; None if it leads out of it."""
    if name.startswith(("/", "~")) or "\0" in name or ":" in name:
        return None
    parts: list[str] = []
    for part in PurePosixPath(name).parts:
        if part == ".." and not parts:
            return None
        parts = parts[:-1] if part == ".." else [*parts, part]
    return "/".join(parts)


def _opened(path: Path) -> tuple[Read, list[str]]:
    if path.is_dir():
        names = [file.relative_to(path).as_posix() for file in sorted(path.rglob("*.tex"))]
        return _of_folder(path), names[: LATEX.entries]
    if path.name.endswith(_ARCHIVES):
        files = _members(path)
        return files.get, [name for name in sorted(files) if name.endswith(".tex")]
    if path.suffix != ".tex":
        raise Damaged(f"{path} is neither a folder nor a .tex file nor an archive")
    return _of_folder(path.parent), [path.name]


def _of_folder(folder: Path) -> Read:
    root = folder.resolve()

    def read(name: str) -> bytes | None:
        file = root / name
        if not file.is_file():
            return None
        if not file.resolve().is_relative_to(root):
            raise Damaged(f"{name} is a link to a file outside the folder of the paper")
        with open_plain_file(file) as opened:
            content = opened.read(LATEX.bytes + 1)
        if len(content) > LATEX.bytes:
            raise Damaged(f"{name} has more than {LATEX.bytes} bytes")
        return content

    return read


def _members(path: Path) -> dict[str, bytes]:
    """The files of an archive that matter here; compressed sizes are not believed."""
    try:
        with open_plain_file(path) as file:
            content = file.read(LATEX.bytes * 8 + 1)
        if len(content) > LATEX.bytes * 8:
            raise Damaged(f"{path} has more than {LATEX.bytes * 8} bytes")
        if path.suffix == ".zip":
            return _of_zip(path, content)
        if path.suffix in (".gz", ".tgz"):
            with gzip.open(io.BytesIO(content)) as packed:
                content = _at_most(path, packed, LATEX.bytes * 16)
        if not tarfile.is_tarfile(io.BytesIO(content)):  # a paper of one file
            return {"main.tex": content}
        return _of_tar(path, content)
    except _UNREADABLE as error:
        raise Damaged(
            f"{path} is no archive that can be read ({printable(str(error))[:200]})"
        ) from None


def _of_zip(path: Path, content: bytes) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist()[: 16 * LATEX.entries]:
            name = _name_in_paper(member.filename)
            if name is not None and not member.is_dir():
                with archive.open(member) as file:
                    files[name] = _at_most(path, file, LATEX.bytes)
                _require_total(path, files)
    return files


def _of_tar(path: Path, content: bytes) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            name = _name_in_paper(member.name)
            file = archive.extractfile(member) if name is not None and member.isreg() else None
            if name is not None and file is not None:
                files[name] = _at_most(path, file, LATEX.bytes)
                _require_total(path, files)
    return files


def _name_in_paper(name: str) -> str | None:
    """The name inside the paper of what is text of it."""
    return _inside(name) if name.endswith((".tex", ".aux", *_STYLES)) else None


def _at_most(path: Path, file: IO[bytes] | io.BufferedIOBase, most: int) -> bytes:
    content = file.read(most + 1)
    if len(content) > most:
        raise Damaged(f"{path} holds more than {most} bytes in one file")
    return content


def _require_total(path: Path, files: dict[str, bytes]) -> None:
    if len(files) > LATEX.entries or sum(map(len, files.values())) > LATEX.bytes:
        raise Damaged(f"{path} holds more than {LATEX.entries} files or {LATEX.bytes} bytes")


def _main_file(path: Path, read: Read, names: list[str]) -> str:
    if not path.is_dir() and path.suffix == ".tex":
        if path.is_file():
            return path.name
        raise Damaged(f"{path} is missing")
    whole = [name for name in names if _is_whole(read, name)]
    named = [name for name in _MAIN if name in whole]
    if len(whole) == 1 or named:
        return (named or whole)[0]
    if not whole:
        raise Damaged(f"{path} has no .tex file with \\documentclass")
    shown = ", ".join(whole[:4])
    raise UserError(f"{path} holds {len(whole)} papers ({shown}): give the .tex file of one")


def _is_whole(read: Read, name: str) -> bool:
    text = blanked(_decoded(read(name) or b""))
    return bool(_CLASS.search(text)) and "\\begin{document}" in text


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")
