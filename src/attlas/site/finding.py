"""Findings as the pages show them: a sentence and the claims and experiments that support it."""

from typing import NamedTuple

from attlas.site.links import anchor


class Evidence(NamedTuple):
    """A claim or an experiment that supports a finding, and its fragment of the page.

    Attributes:
        name: locator of the claim, or title of the experiment.
        anchor: the fragment.
        scale: of the experiment's records; empty for a claim.
    """

    name: str
    anchor: str
    scale: str = ""


class Finding(NamedTuple):
    """One finding of a paper, text with $mathematics$, and its evidence."""

    text: str
    evidence: tuple[Evidence, ...]


class Findings(NamedTuple):
    """The findings of a paper on one question, or the answers to a user's question."""

    title: str
    findings: tuple[Finding, ...]

    @property
    def anchor(self) -> str:
        """The question's fragment of the front page."""
        return anchor("question", self.title)


class Card(NamedTuple):
    """A finding on the front page: a question, one sentence with $mathematics$, and its evidence.

    Attributes:
        thumbnail: a picture from the first experiment in the evidence, a data URL; may be empty.
        share: false ones and all of the printed statements, if the sentence is about them.
    """

    title: str
    text: str
    evidence: tuple[Evidence, ...]
    thumbnail: str = ""
    share: tuple[int, int] | None = None
