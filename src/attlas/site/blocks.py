"""Text in a part of Markdown as markup: paragraphs, headings, lists, tables, formulas, pictures.

A block ends at an empty line. Links and pictures name what the atlas has, and the page decides
where that is.
"""

import re
from collections.abc import Callable, Iterable

from markupsafe import Markup

from attlas.display.statements import prose, typeset
from attlas.display.tables import table

_LINK = re.compile(r"\[([^\[\]]+)\]\[([^\[\]\n]+)\]")
_EMPHASIS = re.compile(r"(\*\*?)([^*\s][^*]*)\1")
_PICTURE = re.compile(r"!\[(.*)\]\[(.+)\]", re.S)
_ITEM = re.compile(r"\n(?:- |\d+\. )")
_START, _MIDDLE, _WEAK, _STRONG = "\ue000", "\ue001", "\ue002", "\ue003"
"""Signs that no text has, for what is markup before its text is escaped."""
_HIDDEN = "\ue004"
_MODEL = "```model"

Address = Callable[[str], str]
"""The address for the target of a link."""
Picture = Callable[[str, str], Markup]
"""The figure of a target, with a caption."""


def inline(text: str, address: Address) -> Markup:
    """Prose with *emphasis*, **more of it** and [links][target] beside $mathematics$ and `code`.

    Examples:
        >>> print(inline("See [*it*][lemma], $x$", lambda target: f"#{target}"))
        See <a href="#lemma"><em>it</em></a>, <math><mi>x</mi></math>
    """
    links: list[str] = []

    def marked(match: re.Match[str]) -> str:
        links.append(address(match[2]))
        return f"{_START}{match[1]}{_MIDDLE}"

    def emphatic(match: re.Match[str]) -> str:
        sign = _STRONG if match[1] == "**" else _WEAK
        return f"{sign}{match[2]}{sign}"

    hidden: list[str] = []

    def kept(match: re.Match[str]) -> str:
        hidden.append(match[0])
        return f"{_HIDDEN}{len(hidden) - 1};"

    marks = re.sub(r"\$[^$]+\$|`[^`]+`", kept, _LINK.sub(marked, text))
    marks = _EMPHASIS.sub(emphatic, marks)
    restored = re.sub(f"{_HIDDEN}(\\d+);", lambda match: hidden[int(match[1])], marks)
    html = str(prose(restored))
    for link in links:
        html = html.replace(_START, str(Markup('<a href="{}">').format(link)), 1)
    html = re.sub(f"{_WEAK}(.*?){_WEAK}", r"<em>\1</em>", html, flags=re.S)
    html = re.sub(f"{_STRONG}(.*?){_STRONG}", r"<strong>\1</strong>", html, flags=re.S)
    return Markup(html.replace(_MIDDLE, "</a>"))


def blocks(text: str) -> list[str]:
    r"""The blocks of a text.

    Examples:
        >>> blocks("One line and\nits next.\n\n## Two")
        ['One line and\nits next.', '## Two']
    """
    return [block.strip("\n") for block in re.split(r"\n\s*\n", text) if block.strip()]


def rendered(texts: Iterable[str], level: int, address: Address, picture: Picture) -> Markup:
    r"""The blocks as markup.

    Args:
        level: of a heading with one sign #.

    Examples:
        >>> print(rendered(["# One", "- a\n- b"], 3, str, lambda target, caption: Markup(target)))
        <h3>One</h3>
        <ul><li>a</li><li>b</li></ul>
    """
    return Markup("\n").join(_block(text, level, address, picture) for text in texts)


def _block(text: str, level: int, address: Address, picture: Picture) -> Markup:
    heading = re.fullmatch(r"(#+) (.+)", text)
    if heading:
        tag = Markup(f"h{min(level + len(heading[1]) - 1, 6)}")
        return Markup("<{0}>{1}</{0}>").format(tag, inline(heading[2], address))
    if text.startswith(_MODEL):
        return _model(text)
    shown = _PICTURE.fullmatch(text)
    if shown:
        return picture(shown[2], " ".join(shown[1].split()))
    if text.startswith("$$") and text.endswith("$$") and text.count("$$") == 2:
        formula = typeset(" ".join(text[2:-2].split()))
        return Markup('<div class="statement scroll" tabindex="0">{}</div>').format(formula)
    if text.startswith("|"):
        return _table(text, address)
    start = _ITEM.match(f"\n{text}")
    if start:
        items = (" ".join(item.split()) for item in _ITEM.split(f"\n{text}")[1:])
        tag = Markup("ul" if "- " in start.group() else "ol")
        written = Markup("").join(
            Markup("<li>{}</li>").format(inline(item, address)) for item in items
        )
        return Markup("<{0}>{1}</{0}>").format(tag, written)
    return Markup("<p>{}</p>").format(inline(" ".join(text.split()), address))


def _model(text: str) -> Markup:
    """The parts of a model in their order: in each line a formula and what it is."""
    parts = (line.partition(" | ") for line in text.splitlines()[1:] if line.strip("`"))
    boxes = Markup("").join(
        Markup("<li>{} <small>{}</small></li>").format(prose(formula), prose(what))
        for formula, _, what in parts
    )
    return Markup('<ol class="model">{}</ol>').format(boxes)


def _table(text: str, address: Address) -> Markup:
    """A table with a line of heads, one of dashes, and rows."""
    heads, _, *rows = (
        [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        for line in text.splitlines()
    )
    body = [[inline(cell, address) for cell in row] for row in rows]
    return Markup('<div class="scroll" tabindex="0">{}</div>').format(table(heads, body))
