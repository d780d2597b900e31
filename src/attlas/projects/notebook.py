"""Notebooks as modules: the tagged cells of an .ipynb file, run in order."""

import ast
import linecache
from pathlib import Path
from types import ModuleType
from typing import Any

from attlas._files.budget import NOTEBOOK, parse_json
from attlas._files.plain_file import Damaged, read_plain_file
from attlas.core.errors import UserError

TAGS = ("attlas", "claims")


def tagged_cells(path: Path) -> tuple[tuple[int, str], ...]:
    """The number, counted from 1, and source of each code cell tagged `attlas` or `claims`.

    Raises:
        UserError: if the file is missing, is no notebook, or has no tagged cell.
    """
    try:
        content = read_plain_file(path, NOTEBOOK.bytes)
        if content is None:
            raise UserError(f"there is no file {path}: name a notebook")
        cells = _document(path, content)["cells"]
        tagged = tuple(
            (number, _source(cell))
            for number, cell in enumerate(cells, 1)
            if cell["cell_type"] == "code"
            and set(TAGS) & set(cell.get("metadata", {}).get("tags", ()))
        )
    except Damaged as damage:
        raise UserError(f"{damage}: name a notebook") from damage
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is no notebook of version 4: save it again as .ipynb") from error
    if not tagged:
        raise UserError(
            f"{path} has no cell tagged 'attlas': tag the cells that define claims (and what they "
            "need) in the notebook's property inspector"
        )
    return tagged


def _document(path: Path, content: bytes) -> Any:
    try:
        return parse_json(content, NOTEBOOK)
    except Damaged as damage:
        raise UserError(
            f"{path} is no notebook of version 4 (it {damage}): save it again as .ipynb"
        ) from None


def run_cells(path: Path, module: ModuleType) -> None:
    """Run the tagged cells of a notebook in the namespace of a module, in order.

    Lines that only a notebook understands (`%magic`, `!command`) are ignored. A cell's file name is
    `<path>[cell N]`, so that errors and claims name the cell.

    Raises:
        UserError: see `tagged_cells`.
    """
    for number, source in tagged_cells(path):
        name = f"{path}[cell {number}]"
        text = plain_python(source)
        # What is read by line, such as tracebacks, finds the cell here.
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        exec(compile(text, name, "exec"), vars(module))  # the user's own cells


def plain_python(source: str) -> str:
    r"""The source of a cell without lines of notebooks alone; the others keep their numbers.

    Examples:
        >>> plain_python("%matplotlib inline\nx = 1")
        'pass\nx = 1'
        >>> plain_python("x = (7\n     % 4)")
        'x = (7\n     % 4)'
    """
    try:
        ast.parse(source)
    except SyntaxError:
        return "\n".join(map(_without_magic, source.split("\n")))
    return source


def _without_magic(line: str) -> str:
    bare = line.lstrip()
    return f"{line[: len(line) - len(bare)]}pass" if bare.startswith(("%", "!")) else line


def _source(cell: Any) -> str:
    """A cell's source is a text or a list of lines."""
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)
