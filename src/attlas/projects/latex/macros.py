r"""The macros that a paper defines: read, and replaced by what they stand for; never executed."""

import re
from dataclasses import dataclass

from attlas._files.budget import MOST_EXPANSION
from attlas.core.errors import refuse_misfits
from attlas.projects.latex.arguments import group, option

_COMMAND = re.compile(
    r"\\(?:re|provide)?(?:newcommand|robustcmd)\*?|\\providecommand\*?|\\DeclareRobustCommand\*?"
    r"|\\DeclareMathOperator\*?|\\[gex]?def\b|\\newrobustcmd\*?|\\DeclarePairedDelimiter\b"
)
_ENVIRONMENT = re.compile(r"\\(?:re)?newenvironment\*?(?![A-Za-z])")
_NAME = re.compile(r"\s*\{?\s*\\([A-Za-z]+|.)\s*\}?")
_PARAMETERS = re.compile(r"((?:#[1-9])*)\s*(?=\{)")
_USED = re.compile(r"\\([A-Za-z]+|[^A-Za-z\s])")
_PROGRAM = re.compile(r"\\(?:if|csname|expandafter|@|newcommand|def|else|fi\b|ensuremath@)|@")
_SINGLE = re.compile(r"\s*(\\[A-Za-z]+|\\.|[^\s{}\\])")
_SPACES = re.compile(" *")
_MOST_LEVELS = 16


@dataclass(frozen=True)
class Macro:
    r"""A macro of a paper.

    Attributes:
        name: without its backslash.
        arguments: how many it takes, the optional one first.
        default: of the optional argument; None without one.
        body: what it stands for, with #1 and so on.
    """

    name: str
    arguments: int
    default: str | None
    body: str


def read_macros(text: str) -> dict[str, Macro]:
    r"""The macros that a text defines, by name; of several definitions the last one.

    Those that are programs of TeX (conditions, names that are made) are left out.

    Examples:
        >>> macros = read_macros(r"\newcommand{\R}{\mathbb{R}} \def\norm#1{\|#1\|}")
        >>> [(m.name, m.arguments, m.body) for m in macros.values()]
        [('R', 0, '\\mathbb{R}'), ('norm', 1, '\\|#1\\|')]
    """
    macros: dict[str, Macro] = {}
    for match in _COMMAND.finditer(text):
        macro = _read(text, match)
        if macro is not None and not _PROGRAM.search(macro.body):
            macros[macro.name] = macro
    return macros


def defined_bodies(text: str) -> list[tuple[int, int]]:
    r"""Where the bodies of environments that a text defines begin and end: nothing is stated there.

    Examples:
        >>> text = r"\newenvironment{lem}[1]{\begin{lemma}}{\end{lemma}} \begin{lem}"
        >>> [text[start:end] for start, end in defined_bodies(text)]
        ['{lem}[1]{\\begin{lemma}}{\\end{lemma}}']
    """
    bodies: list[tuple[int, int]] = []
    for match in _ENVIRONMENT.finditer(text):
        _, place = group(text, match.end())
        _, place = option(text, place)
        _, place = option(text, place)
        for _ in ("begin", "end"):
            _, place = group(text, place)
        bodies.append((match.end(), place))
    return bodies


def _read(text: str, match: re.Match[str]) -> Macro | None:
    named = _NAME.match(text, match.end())
    if named is None:
        return None
    name, place = named[1], named.end()
    if match[0].endswith("def"):
        parameters = _PARAMETERS.match(text, place)
        if parameters is None:
            return None
        number, default, place = parameters[1].count("#"), None, parameters.end()
    else:
        numbered, place = option(text, place)
        default, place = option(text, place) if numbered else (None, place)
        number = int(numbered) if numbered and re.fullmatch(r"\s*[0-9]\s*", numbered) else 0
    body, place = group(text, place)
    if body is None or number > 9:
        return None
    if "DeclareMathOperator" in match[0]:
        body = rf"\operatorname{'*' if match[0].endswith('*') else ''}{{{body}}}"
    if "PairedDelimiter" in match[0]:
        right, _ = group(text, place)
        number, body = 1, f"{body} #1 {right or ''}"
    return Macro(name, number, default, body.strip())


@refuse_misfits
def expanded(text: str, macros: dict[str, Macro]) -> str:
    r"""A text with the macros replaced by what they stand for, and those in turn.

    What would become more than sixteen times as long, or needs more levels, stays as it is.

    Examples:
        >>> expanded(r"$x\in\R^d$", read_macros(r"\newcommand{\R}{\mathbb{R}}"))
        '$x\\in\\mathbb{R}^d$'
        >>> expanded(r"\a", read_macros(r"\newcommand{\a}{\a\a}"))
        '\\a'
    """
    most = MOST_EXPANSION * len(text) + 4096
    current = text
    for _ in range(_MOST_LEVELS):
        following = _once(current, macros, most)
        if following == current:
            return current
        if following is None:
            return text
        current = following
    return text


def _once(text: str, macros: dict[str, Macro], most: int) -> str | None:
    """Every macro of a text replaced once; None if it becomes too long."""
    parts, done, length = [], 0, 0
    for match in _USED.finditer(text):
        macro = macros.get(match[1])
        if macro is None or match.start() < done:
            continue
        values, place = _values(text, match.end(), macro)
        if values is None:
            continue
        body = re.sub(r"#([1-9])", lambda m, v=values: v.get(m[1], m[0]), macro.body)
        follows = text[place : place + 1]
        # A letter after a command would become part of its name.
        space = " " if re.search(r"\\[A-Za-z]+$", body) and follows.isalpha() else ""
        parts += [text[done : match.start()], body, space]
        done, length = place, length + len(body) + match.start() - done
        if length > most:
            return None
    return "".join([*parts, text[done:]])


def _values(text: str, place: int, macro: Macro) -> tuple[dict[str, str] | None, int]:
    """The arguments of a macro by number, and where they end; None if one is missing."""
    values: dict[str, str] = {}
    for number in range(1, macro.arguments + 1):
        if number == 1 and macro.default is not None:
            value, place = option(text, place)
            value = macro.default if value is None else value
        else:
            value, place = group(text, place)
            if value is None:
                single = _SINGLE.match(text, place)
                if single is None:
                    return None, place
                value, place = single[1], single.end()
        values[str(number)] = value
    if macro.arguments == 0 and macro.name.isalpha():  # a command takes the spaces behind it
        spaces = _SPACES.match(text, place)
        place = spaces.end() if spaces else place
    return values, place
