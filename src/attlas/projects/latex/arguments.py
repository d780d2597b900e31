r"""Arguments of a LaTeX command: braces that match, brackets, and what follows them."""

import re
from collections.abc import Collection, Iterator
from functools import lru_cache

_SPACE = re.compile(r"[ \t]*\n?[ \t]*")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_BRACKET = re.compile(r"\\.|[{}\[\]]|\n[ \t]*\n", re.DOTALL)
_COMMA = re.compile(r"\\.|[{}$,]", re.DOTALL)
_LONGEST_OPTION = 1024


def group(text: str, position: int) -> tuple[str | None, int]:
    r"""The argument in braces that follows, and where it ends; None if there is none.

    Examples:
        >>> group(r" {a {b} \}} c", 0)
        ('a {b} \\}', 11)
        >>> group("{a", 0), group("a", 0)
        ((None, 0), (None, 0))
    """
    start = _after_space(text, position)
    end = _partners(text).get(start) if text[start : start + 1] == "{" else None
    return (None, position) if end is None else (text[start + 1 : end], end + 1)


@lru_cache(maxsize=64)
def _partners(text: str) -> dict[int, int]:
    """The closing brace of every opening one: found for the whole text, once."""
    partners: dict[int, int] = {}
    opened: list[int] = []
    for match in _BRACE.finditer(text):
        if match[0] == "{":
            opened.append(match.start())
        elif match[0] == "}" and opened:
            partners[opened.pop()] = match.start()
    return partners


def option(text: str, position: int) -> tuple[str | None, int]:
    r"""The argument in brackets that follows, and where it ends; None if there is none.

    Brackets inside braces do not count; it has no empty line, and at most 1,024 characters.

    Examples:
        >>> option("[Main, {[1]}] x", 0), option("x", 0)
        (('Main, {[1]}', 13), (None, 0))
    """
    start = _after_space(text, position)
    if text[start : start + 1] != "[":
        return None, position
    braces = brackets = 0
    for match in _BRACKET.finditer(text, start, start + _LONGEST_OPTION):
        braces += {"{": 1, "}": -1}.get(match[0], 0)
        if braces == 0:
            brackets += {"[": 1, "]": -1}.get(match[0], 0)
        if braces == brackets == 0:
            return text[start + 1 : match.start()], match.end()
        if braces < 0 or match[0][0] == "\n":
            break
    return None, position


def settings(text: str) -> dict[str, str]:
    r"""What is set in `key = value, key = {value}`.

    Examples:
        >>> settings("name=Lemma, sibling = theorem, numbered=no, title={a, b}")
        {'name': 'Lemma', 'sibling': 'theorem', 'numbered': 'no', 'title': 'a, b'}
    """
    return {key: value for key, value in map(_setting, _between_commas(text)) if key}


def named_settings(text: str, names: Collection[str]) -> tuple[str, dict[str, str]]:
    r"""The text without its settings, and those of them that have one of the names.

    A sign = inside $...$, \(...\) or braces sets nothing, and neither does an unknown name.

    Examples:
        >>> named_settings(r"Closed form, $m=2$, label=a", {"label"})
        ('Closed form, $m=2$', {'label': 'a'})
    """
    remaining, known = [], {}
    for piece in _between_commas(text):
        key, value = _setting(piece)
        if key in names and "=" in piece:
            known[key] = value
        else:
            remaining.append(piece)
    return ",".join(remaining).strip(), known


def _setting(piece: str) -> tuple[str, str]:
    key, _, value = piece.partition("=")
    value = value.strip()
    if value.startswith("{") and value.endswith("}"):
        value = value[1:-1]
    return key.strip(), value


def _between_commas(text: str) -> Iterator[str]:
    """The pieces between commas that stand outside of braces and of mathematics."""
    depth, start, in_dollars = 0, 0, False
    for match in _COMMA.finditer(f"{text},"):
        sign = match[0]
        depth += {"{": 1, "}": -1, r"\(": 1, r"\)": -1}.get(sign, 0)
        in_dollars ^= sign == "$"
        if sign == "," and depth <= 0 and (not in_dollars or match.start() == len(text)):
            yield text[start : match.start()]
            start = match.end()


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position
