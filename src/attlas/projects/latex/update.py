"""The project of a paper after its LaTeX has changed: new stubs, and what the author must do.

Files of the author are changed in two ways only: a stub that stands in its file as it was written
is replaced, and locators are renumbered on request. All else is named and stays.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from attlas.core.errors import UserError, refuse_misfits
from attlas.projects.latex.locators import is_located, name_as_written
from attlas.projects.latex.statements import PrintedPaper, PrintedStatement, digest_of_text
from attlas.projects.latex.stubs import by_section, stub_of, stub_pattern, text_of_file

Pair = tuple[PrintedStatement | None, PrintedStatement | None]
"""A statement of the stubs and of the sources today; None where it is missing."""
_MARK = '"the stub {} of attlas"\n'


@dataclass(frozen=True)
class Update:
    """What an update writes and says.

    Attributes:
        files: texts of changed and new files by their name.
        statements: those of the sources, each with its earlier text where claims are of that one.
        lines: for the author, one for each change.
    """

    files: Mapping[str, str]
    statements: tuple[PrintedStatement, ...]
    lines: tuple[str, ...]


def paired(
    before: Sequence[PrintedStatement], after: Sequence[PrintedStatement]
) -> tuple[Pair, ...]:
    """The statements that are the same: by their label, else by their text, else by their number.

    Returns:
        Pairs in the order of `before`; then those of `after` that are new.
    """
    left, pairs = list(after), []
    for old in before:
        new = _known_again(old, left)
        if new is not None:
            left.remove(new)
        pairs.append((old, new))
    return (*pairs, *((None, new) for new in left))


def _known_again(
    old: PrintedStatement, current: Sequence[PrintedStatement]
) -> PrintedStatement | None:
    labelled = [new for new in current if old.label and new.label == old.label]
    same_text = [new for new in current if new.digest == old.digest]
    same_number = [
        new for new in current if new.locator == old.locator and not (old.label and new.label)
    ]
    return next(iter([*labelled, *same_text, *same_number]), None)


def named(statement: PrintedStatement) -> str:
    """The locator of a statement with its label."""
    return f"{statement.locator} ({statement.label})" if statement.label else statement.locator


def updated(
    folder: Path,
    before: Sequence[PrintedStatement],
    paper: PrintedPaper,
    *,
    renumber: bool = False,
) -> Update:
    """The files of a project whose paper has changed.

    Args:
        folder: of the project, with the files of its stubs.
        before: the statements when the stubs were written.
        renumber: whether to write the new numbers into claims of renumbered statements.

    Raises:
        UserError: if claims of renumbered statements have the old numbers, and `renumber` is not
            set: a new statement may bear an old number, and would count as executed by them.
    """
    work = _Work({file.name: _read(file) for file in sorted(folder.glob("*.py"))})
    lines, statements = [], {}
    for old, new in paired(before, paper.statements):
        lines += work.lines(old, new)
        if new is not None:
            statements[id(new)] = replace(new, reworded=work.unread(old, new))
    lines += work.renumber(allowed=renumber)
    files = work.changed() | _new_files(work.texts, work.new)
    return Update(files, tuple(statements[id(new)] for new in paper.statements), tuple(lines))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UserError(f"{file} is no text in UTF-8: write it in that encoding") from None


@dataclass
class _Work:
    """The files of a project, and what the pairs of statements ask of them."""

    texts: dict[str, str]
    new: list[PrintedStatement] = field(default_factory=list)
    numbers: dict[str, str] = field(default_factory=dict)
    written: set[int] = field(default_factory=set)
    stubs: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._before = dict(self.texts)

    def changed(self) -> dict[str, str]:
        """The files whose text is another one now, with the stubs at their places."""
        texts = {}
        for name, text in self.texts.items():
            for place, stub in enumerate(self.stubs):
                text = text.replace(_MARK.format(place), stub)
            if text != self._before[name]:
                texts[name] = text
        return texts

    def renumber(self, *, allowed: bool) -> Iterator[str]:
        """Write the new numbers into the locators of claims, all at once.

        Raises:
            UserError: if some must be written and it is not allowed.
        """
        for name, text in self.texts.items():
            changed = renumbered_text(text, self.numbers)
            if changed == text:
                continue
            if not allowed:
                old, new = next(iter(self.numbers.items()))
                raise UserError(
                    f"{name} names statements that have other numbers now, such as {old}, which is "
                    f"{new}: add --renumber to write the new ones into your files"
                )
            self.texts[name] = changed
            yield f"{name}: locators have the new numbers"

    def lines(self, old: PrintedStatement | None, new: PrintedStatement | None) -> Iterator[str]:
        """Change what one statement asks for; a line for the author for each change."""
        if old is None:
            if new is not None and new.role == "statement" and not self._stubs(new):
                self.new.append(new)
                yield f"{named(new)} is new: it has a stub"
            return
        if old.role != "statement":
            return
        untouched = self._replace(old, new)
        if new is None:
            yield f"{named(old)} is gone from the sources{'' if untouched else ': its claims stay'}"
            return
        if not untouched:
            self.written.add(id(old))
        if new.locator != old.locator:
            if old.number:
                self.numbers[old.locator] = new.locator
            yield f"{named(old)} is now {new.locator}"
        if new.digest != old.digest:
            what = "its stub has the new text" if untouched else "read it and mend its claims"
            yield f"{named(new)} is worded otherwise now at {new.file}:{new.line}: {what}"

    def unread(self, old: PrintedStatement | None, new: PrintedStatement) -> str:
        """The text of which the author's claims are, where it is not that of today."""
        if old is None:
            return ""
        earlier = old.reworded or (old.text if id(old) in self.written else "")
        return earlier if earlier and digest_of_text(earlier) != new.digest else ""

    def _stubs(self, statement: PrintedStatement) -> list[tuple[str, re.Match[str]]]:
        """Where the stub of a statement stands as it was written."""
        pattern = stub_pattern(statement)
        return [(file, m) for file, text in self.texts.items() for m in pattern.finditer(text)]

    def _replace(self, old: PrintedStatement, new: PrintedStatement | None) -> bool:
        """Replace the stub of a statement, if it stands once in the files as it was written."""
        # That of the new text too: an update may have been interrupted.
        places = self._stubs(old) or (self._stubs(new) if new else [])
        if len(places) != 1:
            return False
        ((file, match),) = places
        text = self.texts[file]
        before, after = text[: match.start()], text[match.end() :]
        if new is None:
            self.texts[file] = f"{before.rstrip()}\n{after and chr(10) * 2}{after.lstrip()}"
        else:
            # A mark until the author's claims are renumbered, which leaves the stub as it is.
            self.texts[file] = before + _MARK.format(len(self.stubs)) + after
            self.stubs.append(stub_of(new, match[1]))
        return True


def _new_files(texts: Mapping[str, str], statements: Sequence[PrintedStatement]) -> dict[str, str]:
    """Stubs of new statements in files that do not exist yet, one for each section."""
    names = {n for text in texts.values() for n in re.findall(r"^def (\w+)", text, re.MULTILINE)}
    files: dict[str, str] = {}
    for file, section, members in by_section(statements):
        stem = "claims_new" + file.removeprefix("claims").removesuffix(".py")
        name, number = f"{stem}.py", 2
        while name in texts:
            name, number = f"{stem}_{number}.py", number + 1
        files[name] = text_of_file(section, members, names)
    return files


@refuse_misfits
def renumbered_text(text: str, numbers: Mapping[str, str]) -> str:
    r"""The text of a file with new numbers in the locators of its decorators, all at once.

    Args:
        text: a Python file.
        numbers: new locators by old ones.

    Examples:
        >>> print(renumbered_text('@todo("Lemma 1 (b)")\ndef f(): ...', {"Lemma 1": "Lemma 2"}))
        @todo("Lemma 2 (b)")
        def f(): ...
    """
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return text
    lines = text.splitlines(keepends=True)
    places = [
        (constant.lineno - 1, constant.col_offset, constant.end_col_offset or 0, constant.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for constant in map(_locator, node.decorator_list)
        if constant is not None and constant.lineno == constant.end_lineno
    ]
    for line, begin, end, locator in sorted(places, reverse=True):
        old = next((old for old in numbers if is_located(str(locator), old)), None)
        if old is None:
            continue
        code = lines[line].encode()  # the offsets of a syntax tree count bytes
        literal = code[begin:end].decode()
        literal = literal.replace(name_as_written(str(locator), old), numbers[old], 1)
        lines[line] = (code[:begin] + literal.encode() + code[end:]).decode()
    return "".join(lines)


def _locator(decorator: ast.expr) -> ast.Constant | None:
    """The text by which a decorator says where its statement stands."""
    if not isinstance(decorator, ast.Call):
        return None
    by_name = [keyword.value for keyword in decorator.keywords if keyword.arg == "locator"]
    # `computed` takes the kind before it.
    for value in (*by_name, *decorator.args[:2]):
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return value
    return None
