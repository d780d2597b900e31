r"""The statements of a paper: kind, number, label, title, text, and what each refers to."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from attlas._files.plain_file import printable
from attlas.core.errors import UserError
from attlas.projects.latex.arguments import group, named_settings, option
from attlas.projects.latex.macros import Macro, defined_bodies, expanded, read_macros
from attlas.projects.latex.restatements import printed_form
from attlas.projects.latex.sources import Document, read_sources
from attlas.projects.latex.theorems import SECTIONS, USUAL, Environments, read_environments

_EVENT = re.compile(
    r"\\(begin|appendix|chapter|section|subsection|subsubsection|setcounter|addtocounter|stepcounter"
    r"|refstepcounter)(?![A-Za-z])(\*?)"
)
_LABEL = re.compile(r"\\label\s*\{([^{}]*)\}")
_REFERENCE = re.compile(
    r"\\(?:[cC]?ref|autoref|eqref|[nN]ameref|[vV]ref|[tT]hmref|[lL]emref|hyperref\s*\[)"
    r"(?:\*?\s*\{([^{}]*)\}|([^\]]*)\])"
)
_NAMED = re.compile(r"\b(Assumption|Condition|Hypothesis|Setting)s?[~\s]+([A-Z]?[\d.]*\d|[A-Z])\b")
_AUXILIARY = re.compile(r"\\newlabel\{([^{}]*)\}\{\{([^{}]*)\}")
_TITLE = re.compile(r"\\title\s*(?=[\[{])")
_TITLE_KEYS = frozenset(
    ("name", "note", "title", "label", "restate", "restatable", "continues", "store")
)
"""What thmtools reads in the brackets of a statement; all else there is its title."""
_MOST_STATEMENTS = 5000
_MOST_NOTES = 200

ASSUMED = "assumption", "condition", "hypothesis", "setting", "axiom", "setup", "model"
CONTEXT = (
    *("definition", "remark", "example", "notation", "question", "problem", "note", "exercise"),
    *("algorithm", "discussion", "intuition", "convention", "warning", "comment", "solution"),
)
"""Environments that state nothing which could be tested."""


@dataclass(frozen=True)
class PrintedStatement:
    """A statement as a paper prints it.

    Attributes:
        kind: the printed name of its environment, such as "Lemma".
        number: as printed; empty without one.
        label: of the sources; empty without one.
        title: what stands in brackets or parentheses behind the number.
        text: LaTeX, with the macros of the paper replaced.
        section: title of its section.
        references: labels that it refers to.
        assumptions: those it refers to or names, as they are printed.
        file, line: where it begins.
        reworded: its text when the author's claims of it were written, where that is another one.
    """

    kind: str
    number: str
    label: str
    title: str
    text: str
    section: str
    references: tuple[str, ...]
    assumptions: tuple[str, ...]
    file: str
    line: int
    reworded: str = ""

    @property
    def locator(self) -> str:
        """Kind and number, as other papers cite it."""
        return f"{self.kind} {self.number}".strip()

    @property
    def digest(self) -> str:
        """A short digest of the text without its spaces: a statement is known again by it."""
        return digest_of_text(self.text)

    @property
    def role(self) -> str:
        """What it is: "statement", "assumption" or "context"."""
        kind = self.kind.casefold()
        if any(word in kind for word in ASSUMED):
            return "assumption"
        return "context" if any(word in kind for word in CONTEXT) else "statement"


@dataclass(frozen=True)
class PrintedPaper:
    """What was read of a paper's sources; `notes` has a line for everything that was not."""

    title: str
    statements: tuple[PrintedStatement, ...]
    macros: dict[str, Macro]
    notes: tuple[str, ...]


def digest_of_text(text: str) -> str:
    r"""Sixteen hexadecimal digits of a statement's text, whatever its spaces and labels.

    Examples:
        >>> digest_of_text("a  b\\label{x}") == digest_of_text("a b ")
        True
    """
    plain = "".join(_LABEL.sub("", text).split())
    return sha256(plain.encode()).hexdigest()[:16]


def read_paper(path: Path) -> PrintedPaper:
    r"""The statements of a paper from its LaTeX sources, in order, each once.

    Numbers are those of the .aux file beside the main file where it knows the label, else they are
    counted as LaTeX would. A statement that is restated, in the same words and mathematics, has its
    number and is not repeated: a note names it. By the macro of its `restatable` it has no number.

    Args:
        path: folder, main .tex file, or archive of the sources.

    Raises:
        UserError: if nothing can be read.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     main = Path(folder) / "main.tex"
        ...     _ = main.write_text(
        ...         r"\newtheorem{lem}{Lemma}[section]\newcommand{\R}{\mathbb{R}}\begin{document}"
        ...         r"\section{A}\begin{lem}[Sum]\label{lem:a} $x\in\R$ \end{lem}"
        ...     )
        ...     (first,) = read_paper(main).statements
        >>> first.locator, first.label, first.title, first.text
        ('Lemma 1.1', 'lem:a', 'Sum', '$x\\in\\mathbb{R}$')
    """
    document = read_sources(path)
    macros = read_macros(document.text)
    environments = read_environments(document.text)
    notes = list(document.notes)
    read = list(_statements(document, environments, macros, notes))
    numbered = _with_printed_numbers(read, document.auxiliary)
    statements = tuple(_with_assumptions(numbered))
    if not statements:
        notes.append(f"{document.main} has no theorem environment that is declared or usual")
    title = _TITLE.search(document.text)
    text = ""
    if title:
        _, place = option(document.text, title.end())
        text = plain(expanded(group(document.text, place)[0] or "", macros))
    return PrintedPaper(text, statements, macros, tuple(notes))


def plain(text: str) -> str:
    r"""A title on one line, without commands that only set it.

    Examples:
        >>> plain(r"A \textbf{bold}\\ move\thanks{us} for $O(1/t)$")
        'A bold move for $O(1/t)$'
    """
    text = re.sub(r"\\(?:thanks|footnote|label|vspace|hspace)\*?\s*\{[^{}]*\}", "", text)
    text = re.sub(r"\\\\(?:\[[^\]]*\])?|~|\\(?:newline|linebreak)\b", " ", text)
    pieces = re.split(r"(\$[^$]*\$)", re.sub(r"(?<!\\)\\[()]", "$", text))
    for place in range(0, len(pieces), 2):
        pieces[place] = re.sub(r"\\[A-Za-z]+\*?|[{}]", "", pieces[place])
    return printable("".join(pieces))


def _statements(
    document: Document, environments: Environments, macros: dict[str, Macro], notes: list[str]
) -> Iterator[PrintedStatement]:
    text = document.text
    position, section = text.find("\\begin{document}"), ""
    position, end = max(position, 0), _end(text)
    printed: dict[str, PrintedStatement] = {}
    blocks, defined = 0, iter([*defined_bodies(text), (len(text), len(text))])
    body = next(defined)
    while (event := _EVENT.search(text, position, end)) is not None:
        name, star, position = event[1], bool(event[2]), event.end()
        while body[1] <= event.start() < len(text):
            body = next(defined)
        if body[0] <= event.start():
            continue
        if name in SECTIONS:
            if not star:
                environments.step(name)
            _, after = option(text, position)
            title, after = group(text, after)
            if title is not None and name in ("chapter", "section"):
                section, position = plain(expanded(title, macros)), after
        elif name == "appendix":
            environments.begin_appendix()
        elif name != "begin":
            _count(environments, name, text, position)
        else:
            environment, after = group(text, position)
            if environment == "appendices":
                environments.begin_appendix()
            block = _Block.read(text, (environment or "").strip(), after, environments)
            if block is None:
                continue
            if block.end < 0:
                notes.append(f"{document.at(event.start())}: {block.begin} has no end: left out")
                if len(notes) > _MOST_NOTES:
                    raise UserError(
                        f"{document.main}: more than {_MOST_NOTES} statements have no end"
                    )
                continue
            position, blocks = block.body, blocks + 1
            if blocks > _MOST_STATEMENTS:
                raise UserError(f"{document.main} has more than {_MOST_STATEMENTS} statements")
            statement = block.statement(document, environments, macros, event.start(), section)
            original = printed.setdefault(printed_form(statement.text), statement)
            if block.original:
                labelled = (each for each in printed.values() if each.label == block.original)
                original = next(labelled, original)
            if original is statement:
                yield statement
            else:
                notes.append(
                    f"{statement.locator} ({statement.file}:{statement.line}) is read as a "
                    f"restatement of {original.locator}"
                )


def _end(text: str) -> int:
    end = text.find("\\end{document}")
    return len(text) if end < 0 else end


def _count(environments: Environments, name: str, text: str, position: int) -> None:
    counter, place = group(text, position)
    value, _ = group(text, place)
    if not counter:
        return
    counter = environments.counter.get(counter, counter)
    if name in ("stepcounter", "refstepcounter"):
        environments.step(counter)
    elif value is not None and re.fullmatch(r"\s*-?\d{1,6}\s*", value):
        added = environments.value(counter) if name == "addtocounter" else 0
        environments.set(counter, int(value) + added)


@dataclass(frozen=True)
class _Block:
    """A theorem environment in the text: its name, title, and where its body lies.

    One that prints the number of an earlier statement again names that one by its label.
    """

    text: str
    name: str
    begin: str
    title: str
    is_repeated: bool
    original: str
    body: int
    end: int

    @classmethod
    def read(
        cls, text: str, environment: str, position: int, environments: Environments
    ) -> "_Block | None":
        """The block that begins here, None if the environment is no theorem of the paper."""
        name, title = environments.aliases.get(environment, environment), None
        repeated, original = False, None
        if environment in ("restatable", "restatable*"):
            title, position = option(text, position)
            inner, position = group(text, position)
            _, position = group(text, position)
            name = (inner or "").strip()
        elif environment.startswith("rep") and environment[3:] in environments.printed:
            name, repeated = environment[3:], True
            original, position = group(text, position)
        if name not in environments.printed:
            base = name.rstrip("*")
            if base not in USUAL or environment in environments.aliases:
                return None
            environments.printed[name] = environments.printed.get(base, USUAL[base])
            if not name.endswith("*"):
                environments.counter.setdefault(name, name)
        read_title = group if environment in environments.titled else option
        given, after = read_title(text, position)
        title = given if title is None else title
        inside = rf"\s*\{{{re.escape(environment)}\}}"
        again = re.compile(rf"\\begin{inside}").search(text, after)
        until = again.start() if again else len(text)
        end = re.compile(rf"\\end{inside}").search(text, after, until)
        begin = f"\\begin{{{environment}}}"
        place = end.start() if end else -1
        return cls(text, name, begin, title or "", repeated, original or "", after, place)

    def statement(
        self,
        document: Document,
        environments: Environments,
        macros: dict[str, Macro],
        start: int,
        section: str,
    ) -> PrintedStatement:
        """The statement of the block; its number is counted, unless it repeats an earlier one."""
        body = self.text[self.body : self.end]
        label = _LABEL.search(body) or _LABEL.search(self.title)
        title, options = named_settings(self.title, _TITLE_KEYS)
        title = options.get("name", options.get("note", options.get("title", title)))
        counter = environments.counter.get(self.name)
        number = environments.step(counter) if counter and not self.is_repeated else ""
        references = dict.fromkeys(
            name.strip()
            for match in _REFERENCE.finditer(body)
            for name in (match[1] or match[2] or "").split(",")
            if name.strip()
        )
        file, line = document.place(start)
        return PrintedStatement(
            kind=environments.printed[self.name],
            number=number,
            label=(label[1] if label else options.get("label", "")).strip(),
            title=plain(expanded(_LABEL.sub("", title), macros)),
            text=expanded(_LABEL.sub("", body), macros).strip(),
            section=section,
            references=tuple(references),
            assumptions=(),
            file=file,
            line=line,
        )


def _with_printed_numbers(
    statements: list[PrintedStatement], auxiliary: str
) -> list[PrintedStatement]:
    """The statements with the numbers that LaTeX itself gave their labels."""
    printed = {label: number for label, number in _AUXILIARY.findall(auxiliary) if number}
    return [
        replace(statement, number=printed.get(statement.label, statement.number))
        for statement in statements
    ]


def _with_assumptions(statements: list[PrintedStatement]) -> Iterator[PrintedStatement]:
    """Each with the assumptions that it refers to by label, or names in its text."""
    by_label = {statement.label: statement for statement in statements if statement.label}
    by_locator = {statement.locator: statement for statement in statements}
    for statement in statements:
        labelled = [by_label[name] for name in statement.references if name in by_label]
        named = [f"{kind} {number}" for kind, number in _NAMED.findall(statement.text)]
        assumptions = [other.locator for other in labelled if other.role == "assumption"]
        assumptions += [by_locator[name].locator for name in named if name in by_locator]
        own = {statement.locator}
        others = tuple(name for name in dict.fromkeys(assumptions) if name not in own)
        yield replace(statement, assumptions=others)
