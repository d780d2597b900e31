"""Links: where an object of the atlas is shown, as seen from one of its pages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote


@dataclass(frozen=True)
class Links:
    """Addresses that hold on disk and on a server: relative, without a scheme.

    Attributes:
        here: the file of the page that has the links, empty for the front page.
        pages: the file of each object by its anchor; empty where all is on one page.
        folder: of the pages beside the front page, as the front page calls it.
        front: the front page, as the pages call it.
    """

    here: str = ""
    pages: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""
    front: str = ""

    def to(self, anchor: str) -> str:
        """Where an object is.

        Args:
            anchor: of the object; one that no page claims is on this page.

        Examples:
            >>> front = Links("", {"experiment-text": "experiment-text.html"}, "atlas")
            >>> front.to("experiment-text"), front.to("overview")
            ('./atlas/experiment-text.html#experiment-text', '#overview')
        """
        return self.page(self.pages.get(anchor, self.here)) + f"#{anchor}"

    def page(self, file: str) -> str:
        """Where a page is.

        Args:
            file: its name, empty for the front page.

        Returns:
            An address, empty for the page that asks.

        Examples:
            >>> Links("glossary.html", {}, "atlas", "atlas.html").page("")
            '../atlas.html'
        """
        if file == self.here:
            return ""
        if not file:
            return f"../{quote(self.front)}"
        # Without the dot a colon in the folder's name would end a scheme.
        return quote(file) if self.here else f"./{quote(self.folder)}/{quote(file)}"

    def source(self, link: str) -> str:
        """Where a source file is.

        Examples:
            >>> Links("glossary.html").source("src/attlas/claims/claim.py#L7")
            '../src/attlas/claims/claim.py#L7'
        """
        return f"../{link}" if self.here else link
