"""References: entries of BibTeX files by their keys."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from attlas._files.budget import BIBLIOGRAPHY
from attlas._files.plain_file import Damaged, printable, read_plain_file
from attlas.core.errors import UserError

# Possessive (`++`), so that no text is read more than once from the start of an entry.
_START = re.compile(r"@\w++\s*+\{\s*+([^,\s@]++)\s*+,")
_FIELD = re.compile(r"^[ \t]*+(\w++)[ \t]*+=[ \t]*+\{(.*)\},?[ \t\r]*$", re.MULTILINE)
PROJECT = "The attlas project"
"""Author of what attlas proves itself."""


@dataclass(frozen=True)
class Reference:
    """One entry of the bibliography.

    Attributes:
        authors: "Family, Given", in the paper's order.
        year: year of first publication.
        venue: journal or site.
        bibtex: the entry as it stands in the file.
    """

    key: str
    title: str
    authors: tuple[str, ...]
    year: int
    venue: str
    url: str
    bibtex: str = ""

    @property
    def link(self) -> str:
        """The address for a page's link, empty if it is not one of the web.

        Examples:
            >>> Reference("a", "A", (), 2020, "", "javascript:alert(1)").link
            ''
        """
        return self.url if self.url.startswith("https://") else ""

    @property
    def short(self) -> str:
        """Authors and year as a sentence would cite them; by its title what attlas states itself.

        Examples:
            >>> from attlas.projects.bibliography import find_reference
            >>> find_reference("julistiono2024optimizing").short
            'Julistiono, Tarzanagh, Azizan (2024)'
            >>> find_reference("attlas_audit").short
            'The Audit (2026)'
        """
        families = [author.split(",", 1)[0] for author in self.authors]
        named = ", ".join(families) if len(families) <= 3 else f"{families[0]} et al."
        if self.authors == (PROJECT,):
            named = self.title.partition(":")[0]
        return f"{named} ({self.year})"


def parse_references(text: str) -> dict[str, Reference]:
    """Read BibTeX with one field a line and values in braces, by key in file order.

    Raises:
        ValueError: for a key that occurs twice, or an entry without title, author or year.

    Examples:
        >>> text = '''@misc{a1,
        ...   title = {On {T}okens},
        ...   author = {Doe, Jo and Roe, Al},
        ...   year = {2020},
        ... }'''
        >>> parse_references(text)["a1"].title
        'On Tokens'
    """
    references: dict[str, Reference] = {}
    for key, body, bibtex in _entries(text):
        fields = {name.lower(): value for name, value in _FIELD.findall(body)}
        lacking = {"title", "author", "year"} - fields.keys()
        if key in references or lacking:
            what = f"lacks {', '.join(sorted(lacking))}" if lacking else "comes twice"
            raise ValueError(f"references: entry '{printable(key)[:80]}' {what}")
        references[key] = Reference(
            key=key,
            title=fields["title"].replace("{", "").replace("}", ""),
            authors=tuple(fields["author"].split(" and ")),
            year=int(fields["year"]),
            venue=fields.get("journal", fields.get("howpublished", "")),
            url=fields.get("url", ""),
            bibtex=bibtex,
        )
    return references


def _entries(text: str) -> Iterator[tuple[str, str, str]]:
    """Key, fields and text of each entry, which ends with a brace at the start of a line."""
    at = 0
    while (start := _START.search(text, at)) is not None:
        stop = text.find("\n}", start.end())
        if stop < 0 or _START.search(text, start.end(), stop) is not None:
            raise ValueError(
                f"references: entry '{printable(start[1])[:80]}' has no brace that closes it on a "
                "line of its own"
            )
        yield start[1], text[start.end() : stop], text[start.start() : stop] + "\n}"
        at = stop


def read_references(path: Path) -> dict[str, Reference]:
    """The references of a BibTeX file by key, in file order.

    Raises:
        UserError: if the file is missing or cannot be read as BibTeX.

    Examples:
        >>> read_references(Path("/never/written.bib"))
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: there is no file /never/written.bib: write the references ...
    """
    try:
        content = read_plain_file(path, BIBLIOGRAPHY.bytes)
    except Damaged as damage:
        raise UserError(f"{damage}: name a BibTeX file") from damage
    if content is None:
        raise UserError(f"there is no file {path}: write the references there")
    try:
        return parse_references(content.decode("utf-8"))
    except ValueError as error:
        raise UserError(
            f"{path} cannot be read as BibTeX ({printable(str(error))[:200]}): correct it"
        ) from error
