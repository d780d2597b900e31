"""The glossary of the field's words, for the documentation and beside a page's text."""

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

from markupsafe import Markup

from attlas.display.statements import prose
from attlas.site.links import anchor

_FENCE = re.compile(r"```\{glossary\}\n(.*?)```", re.S)
_EMPHASIS = re.compile(r"\*([A-Za-z][A-Za-z -]*)\*")
_OPAQUE = ("math", "code", "a", "svg", "table")
_TAG = re.compile(r"(<[^>]+>)")


@dataclass(frozen=True)
class Term:
    """A word of the field with its definition, prose with $mathematics$."""

    name: str
    text: str

    @property
    def anchor(self) -> str:
        """The term's fragment of a page."""
        return anchor("term", self.name)

    @property
    def definition(self) -> Markup:
        """The definition as markup."""
        marked = prose(_EMPHASIS.sub("\x02\\1\x03", self.text))
        return Markup(str(marked).replace("\x02", "<em>").replace("\x03", "</em>"))


@cache
def glossary() -> tuple[Term, ...]:
    """The terms, in the order of the file `glossary.md`.

    Examples:
        >>> [term.name for term in glossary()][:2]
        ['query-key weights', 'logit']
    """
    text = resources.files("attlas.site").joinpath("glossary.md").read_text("utf-8")
    (body,) = _FENCE.findall(text)
    entries = (block.split("\n", 1) for block in re.split(r"\n\s*\n", body.strip()))
    return tuple(Term(name.strip(), " ".join(definition.split())) for name, definition in entries)


class Marker:
    """Marks the first use of each term in the texts of one page, in the order of the page.

    Examples:
        >>> marked = Marker()
        >>> print(marked(Markup("Is it vacuous?")))
        Is it <a class="term" href="#term-vacuous" aria-describedby="term-vacuous-text">vacuous</a>?
        >>> print(marked(Markup("Is it vacuous?")), [term.name for term in marked.used])
        Is it vacuous? ['vacuous']
    """

    def __init__(self) -> None:
        self._left = {term.name.lower(): term for term in glossary()}
        self._pattern = self._compiled()
        self.used: list[Term] = []

    def __call__(self, markup: Markup) -> Markup:
        """The markup with a link to the definition at the first use of each term."""
        depth, pieces = 0, []
        for part in _TAG.split(str(markup)):
            if part.startswith("<"):
                name = part.strip("</>").split()[0]
                depth += (name in _OPAQUE) * (-1 if part.startswith("</") else 1)
                pieces.append(part)
            else:
                pieces.append(part if depth else self._pattern.sub(self._marked, part))
        return Markup("".join(pieces))

    def _marked(self, match: re.Match[str]) -> str:
        word = match.group(1)
        term = self._left.pop(word.lower(), None)
        if term is None:
            return match.group(0)
        self.used.append(term)
        link = Markup('<a class="term" href="#{0}" aria-describedby="{0}-text">{1}</a>')
        return link.format(term.anchor, Markup(word)) + match.group(0)[len(word) :]

    def _compiled(self) -> re.Pattern[str]:
        # The longest name first: a tangent-kernel margin is not a tangent kernel.
        names = sorted(self._left, key=len, reverse=True)
        return re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, names))})(?:s?)(?![\w-])", re.I)
