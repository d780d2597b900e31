r"""Stubs of a paper's statements as Python files, with what they need to be known again."""

import json
import keyword
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from attlas._files.budget import LATEX, parse_json
from attlas._files.plain_file import Damaged, read_plain_file
from attlas._files.replaced_files import finish_replacing
from attlas._files.sealed_json import sealed, unsealed
from attlas.core.errors import UserError
from attlas.projects.latex.macros import Macro
from attlas.projects.latex.statements import PrintedPaper, PrintedStatement
from attlas.projects.places import say_once

STATEMENTS = "statements.json"
NOTATION = "notation.md"
_SCHEMA = 2
_FIELDS = "kind", "number", "label", "title", "text", "section", "file"
_GUESSES = (
    ("probability", r"with (?:high )?probability|w\.h\.p|\\Pr\b|\\mathbb\s*\{?P|almost surely"),
    ("limit", r"\\lim\b|\bconverges?\b|\\to\b|\\rightarrow"),
    ("rate", r"(?<![A-Za-z])O\s*(?:\\left)?\(|\\(?:mathcal|widetilde|tilde)\s*\{?\s*O|\\Omega\s*\(|"
             r"\\Theta\s*\("),
    ("expectation", r"\\mathbb\s*\{?E|in expectation|\\operatorname\{E\}"),
    ("existence", r"[Tt]here (?:exists?|is an?|are)\b|\\exists"),
    ("inequality", r"\\l[et]q?q?\b|\\g[et]q?q?\b|\\leqslant|\\geqslant|[<>]|\bbounded\b"),
    ("identity", r"="),
)  # fmt: skip
_EXPLANATION = '''"""Statements of {section}, read from the LaTeX of the paper.

A stub is executed once its mark `todo` is replaced by `at.inequality` or another kind: keep the
locator, and let the function return both sides. `attlas coverage` says what is done. A stub of
what cannot be executed stays, with a `reason`.
"""

from attlas.claims.todo import todo
'''


def guessed_kind(text: str) -> str:
    r"""The kind of claim that a statement may become, by its words; empty if none fits.

    Examples:
        >>> guessed_kind(r"$\|x_t\| \to 0$"), guessed_kind(r"$a \le b$"), guessed_kind("It works.")
        ('limit', 'inequality', '')
    """
    return next((kind for kind, pattern in _GUESSES if re.search(pattern, text)), "")


def stub_files(paper: PrintedPaper) -> dict[str, str]:
    r"""The stubs of a paper's statements, by the name of their file: one file for each section.

    Definitions, remarks and assumptions have no stub; `statements.json` holds them too.
    """
    names: set[str] = set()
    return {
        file: text_of_file(section, statements, names)
        for file, section, statements in by_section(paper.statements)
    }


def by_section(
    statements: Iterable[PrintedStatement],
) -> tuple[tuple[str, str, list[PrintedStatement]], ...]:
    """Statements that have a stub by their section: the name of the file, the title, statements."""
    sections: dict[str, list[PrintedStatement]] = {}
    for statement in statements:
        if statement.role == "statement":
            sections.setdefault(statement.section, []).append(statement)
    return tuple(
        (f"claims_{place:02}_{_slug(section)[:32]}".strip("_") + ".py", section, members)
        for place, (section, members) in enumerate(sections.items(), 1)
    )


def text_of_file(section: str, statements: Sequence[PrintedStatement], names: set[str]) -> str:
    """The stubs of one section with their explanation.

    Args:
        names: of functions that are there already; those of these stubs are added.
    """
    shown = f"the section {section!r}" if section else "the paper"
    head = _EXPLANATION.format(section=_in_docstring(shown))
    stubs = [stub_of(statement, _name(statement, names)) for statement in statements]
    return "\n\n".join([head, *stubs])


def stub_pattern(statement: PrintedStatement) -> re.Pattern[str]:
    """What the stub of a statement looks like as it was written; group 1 is its function's name."""
    before, after = stub_of(statement, "\0").split("\0")
    return re.compile(f"^{re.escape(before)}(\\w+){re.escape(after)}", re.MULTILINE)


def _name(statement: PrintedStatement, names: set[str]) -> str:
    name = _slug(statement.locator if statement.number else statement.label or statement.title)
    name = name if name and not keyword.iskeyword(name) and name[0].isalpha() else f"s_{name}"
    base, number = name.strip("_"), 2
    while name in names:
        name, number = f"{base}_{number}", number + 1
    names.add(name)
    return name


def stub_of(statement: PrintedStatement, name: str) -> str:
    """The stub of one statement as a function of a name."""
    arguments = [json.dumps(statement.locator, ensure_ascii=False)]
    for key, value in (("label", statement.label), ("kind", guessed_kind(statement.text))):
        if value:
            arguments.append(f"{key}={json.dumps(value, ensure_ascii=False)}")
    if statement.assumptions:
        assumed = ", ".join(json.dumps(name, ensure_ascii=False) for name in statement.assumptions)
        arguments.append(f"assumptions=[{assumed}]")
    lines = [f"@todo({', '.join(arguments)})", f"def {name}():"]
    title = f"{statement.title}. " if statement.title else ""
    text = _in_docstring(f"{title}{statement.text}")
    body = [line.rstrip() for line in text.splitlines()]
    return "\n".join([*lines, *_docstring(body)]) + "\n"


def _docstring(lines: list[str]) -> list[str]:
    first, *rest = lines or [""]
    if not rest:
        return [f'    r"""{first}"""']
    return [
        f'    r"""{first}',
        *(f"    {line.strip()}" if line else "" for line in rest),
        '    """',
    ]


def _in_docstring(text: str) -> str:
    """A text that a raw docstring can hold."""
    text = text.replace('"""', "'''").replace("\0", "")
    text = "".join(c for c in text if c == "\n" or c.isprintable())
    return f"{text} " if text.endswith(("\\", '"')) else text


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.casefold()).strip("_")


def notation(paper: PrintedPaper) -> str:
    r"""The macros of a paper that its statements use, as a table in Markdown."""
    rows = [
        f"| `\\{macro.name}` | `{_cell(macro.body)}` | {macro.arguments} |"
        for macro in sorted(paper.macros.values(), key=lambda macro: macro.name.casefold())
        if _is_notation(macro)
    ]
    head = ["| macro | stands for | arguments |", "|---|---|---|"]
    return "\n".join([f"# Notation of {paper.title or 'the paper'}", "", *head, *rows, ""])


def _is_notation(macro: Macro) -> bool:
    return bool(macro.body) and len(macro.body) <= 120 and "\n" not in macro.body


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "'")


def statements_text(title: str, statements: Iterable[PrintedStatement], source: str) -> str:
    """What `statements.json` holds: every statement with the digest by which it is known again.

    Args:
        title: of the paper.
        source: where the sources are, from the folder of the project.
    """
    entries = [
        {name: getattr(statement, name) for name in _FIELDS}
        | {
            "line": statement.line,
            "references": list(statement.references),
            "assumptions": list(statement.assumptions),
            "role": statement.role,
            "digest": statement.digest,
            "reworded": statement.reworded,
        }
        for statement in statements
    ]
    document = {"schema": _SCHEMA, "source": source, "title": title, "statements": entries}
    return json.dumps(sealed(document), indent=1, ensure_ascii=False) + "\n"


class StoredStatements(NamedTuple):
    """What `statements.json` holds: where the sources are, the paper's title, its statements."""

    source: str
    title: str
    statements: tuple[PrintedStatement, ...]


def read_statements(folder: Path) -> StoredStatements:
    """The statements of a project's paper when its stubs were written or updated.

    An update that was killed is finished first.

    Raises:
        UserError: if the project has none, or they cannot be read.
    """
    file = folder / STATEMENTS
    try:
        for name in finish_replacing(folder):
            say_once(f"attlas: {folder / name} was changed while it was updated, and stays")
        content = read_plain_file(file, LATEX.bytes)
        if content is None:
            raise UserError(
                f"{file} is missing: `attlas new paper KEY --from main.tex` writes it from LaTeX"
            )
        document = parse_json(content, LATEX._replace(entries=2**20, levels=8))
        if document["schema"] == _SCHEMA:
            document = unsealed(document)
        elif document["schema"] != 1:  # without a seal
            raise UserError(f"{file} is of schema {document['schema']!r}: write the stubs again")
        statements = tuple(_statement(entry) for entry in document["statements"])
        return StoredStatements(_text(document["source"]), _text(document["title"]), statements)
    except Damaged as damage:
        raise UserError(f"{file}: {damage}: write the stubs again") from None
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{file} is damaged ({error}): write the stubs again") from None


def marked_as_read(folder: Path, locators: Sequence[str]) -> str:
    """`statements.json` when claims of reworded statements are of today's wording.

    Raises:
        UserError: if a statement is not there, or was not reworded.
    """
    stored = read_statements(folder)
    reworded = {statement.locator for statement in stored.statements if statement.reworded}
    for locator in locators:
        if locator not in reworded:
            listed = ", ".join(sorted(reworded)) or "none"
            raise UserError(f"'{locator}' is no statement that was reworded: there are {listed}")
    current = [
        replace(statement, reworded="") if statement.locator in locators else statement
        for statement in stored.statements
    ]
    return statements_text(stored.title, current, stored.source)


def _statement(document: dict[str, Any]) -> PrintedStatement:
    line = document["line"]
    if type(line) is not int:
        raise ValueError("a line is no whole number")
    return PrintedStatement(
        **{name: _text(document[name]) for name in _FIELDS},
        references=tuple(map(_text, document["references"])),
        assumptions=tuple(map(_text, document["assumptions"])),
        line=line,
        # Earlier versions did not write this field.
        reworded=_text(document.get("reworded", "")),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a text is missing")
    return value
