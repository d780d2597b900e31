r"""Locators of claims: the statement that each of them names, and the part of it."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

from attlas.core.errors import refuse_misfits

ABBREVIATIONS = {
    "Assumption": ("Asm", "Assump"),
    "Conjecture": ("Conj",),
    "Corollary": ("Cor",),
    "Definition": ("Def", "Defn"),
    "Equation": ("Eq",),
    "Lemma": ("Lem",),
    "Proposition": ("Prop",),
    "Theorem": ("Thm", "Theo"),
}
"""Short forms, with or without a point, that stand for the name of a kind."""
_PART = re.compile(r"[\s,:]*\(?(?:parts?|items?|cases?)?\s*\(?([ivx]+|[a-h]|\d+)\b", re.IGNORECASE)
_PARTS = re.compile(r"\\item(?![A-Za-z])|(?<![A-Za-z\d])\((?:[ivx]+|[a-h]|\d)\)")


@refuse_misfits
def name_as_written(locator: str, statement: str) -> str:
    """The beginning of a locator that names a statement, as it is written; empty if none does.

    Examples:
        >>> name_as_written("Prop. 8 (iii)", "Proposition 8")
        'Prop. 8'
        >>> name_as_written("Proposition 81", "Proposition 8")
        ''
    """
    kind, _, number = statement.rpartition(" ")
    kinds = "|".join(re.escape(name) for name in (kind, *ABBREVIATIONS.get(kind, ())))
    before = rf"(?:{kinds})(?:\.[\s~]*|[\s~]+)" if kind else ""
    written = re.match(rf"{before}{re.escape(number)}(?![\w.]*\w)", locator)
    return written[0] if written else ""


def is_located(locator: str, statement: str) -> bool:
    """Whether a claim's locator is of a statement: it is the same, or one of its parts.

    Whatever follows the number names the part, or the reading that the claim tests.

    Examples:
        >>> is_located("Lemma 13 (L2)", "Lemma 13"), is_located("Lemma 13.1", "Lemma 13")
        (True, False)
        >>> is_located("Lemma 2, for balanced accuracy", "Lemma 2")
        True
    """
    return bool(name_as_written(locator, statement))


@refuse_misfits
def names_whole(locators: Iterable[str], statement: str, text: str) -> bool:
    r"""Whether claims at these locators test a statement as a whole, and not some of its parts.

    One of them names the statement alone, or they name as many different parts as its text has: as
    many as it has `\item`, or (i), (ii) and so on in its sentences.

    Examples:
        >>> text = r"(i) $a < b$ and (ii) $c < d$"
        >>> [names_whole(each, "Lemma 2", text)
        ...  for each in (["Lemma 2"], ["Lemma 2 (i)"], ["Lemma 2 (i)", "Lemma 2, part ii"])]
        [True, False, True]
    """
    suffixes = [name[len(name_as_written(name, statement)) :].strip() for name in locators]
    if "" in suffixes:
        return True
    parts = {match[1].casefold() for match in map(_PART.match, suffixes) if match}
    return 1 < len(set(_PARTS.findall(text)) - {r"\item"}) + text.count(r"\item") <= len(parts)


@refuse_misfits
def nearest_statement(locator: str, statements: Iterable[str]) -> str:
    """The statement whose name is nearest to a locator; empty where none is near.

    Examples:
        >>> nearest_statement("Propositon 8", ["Lemma 8", "Proposition 8"])
        'Proposition 8'
    """
    return next(iter(get_close_matches(locator, list(statements), 1)), "")
