"""The page: an atlas as one HTML text that loads nothing and runs nothing."""

import base64
import hashlib
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from attlas.core.display.numbers import number, plain_number
from attlas.core.display.statements import prose, typeset
from attlas.core.display.strength import strength_sentences
from attlas.core.prose import plain
from attlas.core.verdict import Outcome
from attlas.reports.content import MARKS, Atlas
from attlas.reports.tables import witness_html


def render(atlas: Atlas) -> str:
    """The atlas as HTML.

    The content policy allows the page's own style sheet, by its hash, and pictures inside
    the page: no script, no style attribute, no address. Every text is escaped.

    Args:
        atlas: what to show.

    Returns:
        A whole document; the same for the same atlas.

    Examples:
        >>> render(Atlas(papers=()))[:15]
        '<!doctype html>'
    """
    return render_template("atlas.html.j2", atlas=atlas)


def render_template(name: str, **shown: object) -> str:
    """A page from its template, under the content policy of all pages.

    Args:
        name: of the template.
        **shown: what it shows.

    Returns:
        A whole document.
    """
    style = style_sheet()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    template = environment_of_templates().get_template(name)
    return template.render(**shown, style=Markup(style), policy=policy)


@cache
def style_sheet() -> str:
    """The style that all pages share.

    Returns:
        CSS.
    """
    return resources.files("attlas.reports").joinpath("templates/style.css").read_text("utf-8")


@cache
def environment_of_templates() -> Environment:
    """Templates with autoescape and the filters that all pages share.

    Returns:
        The environment.
    """
    environment = Environment(
        loader=PackageLoader("attlas.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "plain": plain,
        "plain_number": plain_number,
        "typeset": typeset,
        "prose": prose,
        "witness": witness_html,
        "strength": strength_sentences,
        "count": lambda value: f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}"),
        "percent": lambda share: f"{100 * min(max(share, 0.0), 1.0):.4g}",
    }
    environment.globals |= {"marks": MARKS, "outcomes": (*Outcome, None)}
    return environment
