"""Links from one page of the atlas to the objects on the others."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote


@dataclass(frozen=True)
class Links:
    """Relative addresses, valid on disk and on a server.

    Attributes:
        file: the file of the page that has the links, empty for the front page.
        pages: the file of each object by its anchor; empty if all is on one page.
        folder: the folder of the other pages, relative to the front page.
        front: name of the front page.
    """

    file: str = ""
    pages: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""
    front: str = ""

    def to(self, anchor: str) -> str:
        """The address of an object by its anchor; an anchor that no page has is on this page.

        Examples:
            >>> front = Links("", {"experiment-text": "experiment-text.html"}, "atlas")
            >>> front.to("experiment-text"), front.to("overview")
            ('./atlas/experiment-text.html#experiment-text', '#overview')
        """
        return self.page(self.pages.get(anchor, self.file)) + f"#{anchor}"

    def page(self, file: str) -> str:
        """The address of a page ("" for the front page); empty for this page.

        Examples:
            >>> Links("glossary.html", {}, "atlas", "atlas.html").page("")
            '../atlas.html'
        """
        if file == self.file:
            return ""
        if not file:
            return f"../{quote(self.front)}"
        # Without the dot a colon in the folder's name would end a scheme.
        return quote(file) if self.file else f"./{quote(self.folder)}/{quote(file)}"

    def source(self, link: str) -> str:
        """The address of a source file.

        Examples:
            >>> Links("glossary.html").source("src/attlas/claims/claim.py#L7")
            '../src/attlas/claims/claim.py#L7'
        """
        return f"../{link}" if self.file else link


def anchor(kind: str, name: str) -> str:
    """The fragment of an address at which a page shows an object.

    Examples:
        >>> anchor("claim", "a2020b/lemma-13 (L2)")
        'claim-a2020b-lemma-13-L2'
    """
    return f"{kind}-{re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-')}"
