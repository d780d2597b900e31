"""What people search for and no statement is about: what there is instead, or which command."""

import re
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from attlas.core.errors import UserError, refuse_misfits
from attlas.site.content import Atlas
from attlas.site.links import anchor

_ENTRY = re.compile(
    r"(?P<name>\S.*)\n  (?P<text>.*)\n  also: (?P<also>.*)\n  nearest: (?P<nearest>.*)"
)


@dataclass(frozen=True)
class Topic:
    """A topic with a text (prose with $mathematics$), other words for it, and anchors nearby.

    `links` are names and anchors of what an atlas has nearby.
    """

    name: str
    text: str
    also: str
    nearest: tuple[str, ...]
    links: tuple[tuple[str, str], ...] = ()

    @property
    def anchor(self) -> str:
        """The topic's fragment of a page."""
        return anchor("topic", self.name)


@cache
def topics() -> tuple[Topic, ...]:
    """The topics, in the order of the file `topics.md`.

    Raises:
        UserError: if an entry has another form.

    Examples:
        >>> [topic.name for topic in topics()][:2]
        ['why attention selects one token', 'dropout']
    """
    text = resources.files("attlas.site").joinpath("topics.md").read_text("utf-8")
    return tuple(_topic(block) for block in text.strip().split("\n\n")[1:])


@refuse_misfits
def topics_of(atlas: Atlas) -> tuple[Topic, ...]:
    """The topics with links to what the atlas has nearby; none for a user's own paper.

    Examples:
        >>> topics_of(Atlas(papers=()))[0].links
        ()
    """
    if atlas.title:
        return ()
    names = {question.anchor: question.title for question in atlas.questions}
    names |= {entry.anchor: entry.experiment.title for entry in atlas.experiments}
    names |= {paper.anchor: paper.short for paper in atlas.papers}
    return tuple(
        replace(topic, links=tuple((names[each], each) for each in topic.nearest if each in names))
        for topic in topics()
    )


def _topic(block: str) -> Topic:
    entry = _ENTRY.fullmatch(block)
    if entry is None:
        raise UserError(f"topics.md: '{block.splitlines()[0]}' lacks a text, also: or nearest:")
    name, text, also, nearest = entry.groups()
    return Topic(name, text, also, tuple(nearest.split(", ")))
