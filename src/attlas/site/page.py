"""HTML pages that load nothing and run only the script whose hash their content policy names."""

import base64
import hashlib
import json
import zlib
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined, UndefinedError
from markupsafe import Markup

from attlas.claims.report_text import shrunk_html
from attlas.claims.shrunk_witness import witness_python
from attlas.claims.strength import strength_sentences
from attlas.claims.verdict import Outcome, Strength, strengths
from attlas.core.errors import UserError, refuse_unreadable
from attlas.display.numbers import number, plain_number
from attlas.display.statements import prose, typeset
from attlas.display.terminal import plain
from attlas.site.claim_entry import MARKS, published_sentence
from attlas.site.claim_lists import loose_claims
from attlas.site.content import SIZES, Atlas
from attlas.site.erratum_lines import lines_of
from attlas.site.links import Links
from attlas.site.tables import witness_html
from attlas.site.theorems import ranked


@refuse_unreadable
def render_template(
    name: str, *, style: str = "", script: str = "", atlas: Atlas | None = None, **context: object
) -> str:
    """Render a page from its template; all text is escaped.

    The content policy allows the page's style sheet and script by their hashes, and pictures inside
    the page, but no style attributes and no addresses.

    Args:
        style: CSS in addition to the style sheet of all pages.
        script: the page's script, if any.
        atlas: the contents of all pages, for a page that shows them.

    Raises:
        UserError: if the template names what it was not given.

    Examples:
        >>> render_template("glossary.html.j2", atlas=Atlas(papers=()))[:15]
        '<!doctype html>'
    """
    style = style_sheet() + style
    template = environment_of_templates().get_template(name)
    if atlas is not None:
        context["atlas"] = atlas
    try:
        return template.render(
            style=Markup(style),
            script=Markup(script),
            policy=content_policy(style, script),
            **context,
        )
    except UndefinedError as error:
        raise UserError(f"the template {name} cannot show what it was given: {error}") from error


def content_policy(style: str, script: str = "") -> str:
    """A Content-Security-Policy for one style sheet, one script and pictures inside the page.

    Examples:
        >>> content_policy("").split("; ")[0]
        "default-src 'none'"
    """
    ran = f"script-src 'sha256-{_digest(script)}'; " if script else ""
    return (
        f"default-src 'none'; style-src 'sha256-{_digest(style)}'; {ran}img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def script_data(value: object) -> Markup:
    r"""JSON for a data block, escaped so that it cannot end the element.

    Examples:
        >>> script_data(["</script>"])
        Markup('["\\u003c/script\\u003e"]')
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def packed_data(value: object) -> str:
    """Base64 of zlib-compressed JSON, which `packed.js` reads.

    Examples:
        >>> zlib.decompress(base64.b64decode(packed_data([1, "a"])))
        b'[1,"a"]'
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


@cache
def template_file(name: str) -> str:
    """A file beside the templates.

    Examples:
        >>> "<html" in template_file("base.html.j2")
        True
    """
    return resources.files("attlas.site").joinpath(f"templates/{name}").read_text("utf-8")


class _Unmarked:
    """Leaves a text unchanged, on pages without a glossary."""

    used = ()

    def __call__(self, markup: Markup) -> Markup:
        return markup


@cache
def style_sheet() -> str:
    """The style that all pages share."""
    return template_file("style.css")


@cache
def environment_of_templates() -> Environment:
    """The templates with autoescape and the filters of all pages."""
    environment = Environment(
        loader=PackageLoader("attlas.site"),
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
        "shrunk": shrunk_html,
        "replay_line": lambda witness, claim: witness_python(claim, witness),
        "strength": strength_sentences,
        "strengths": strengths,
        "loose": loose_claims,
        "ranked": ranked,
        "published": published_sentence,
        "breakable": lambda path: Markup("/<wbr>").join(path.split("/")),
        "count": lambda value: f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}"),
        "sized": lambda scale: Markup(SIZES.get(scale, scale)),
        "percent": lambda share: f"{100 * min(max(share, 0.0), 1.0):.4g}",
    }
    environment.globals |= {
        "marks": MARKS,
        "outcomes": (*Outcome, None),
        "levels": (*Strength, None),
        "links": Links(),
        "glossed": _Unmarked(),
        "theorems": {},
        "article_of": lambda paper: None,
        "folds_of": lambda paper: (),
        "one_token": "",
        "lines_of": lines_of,
        "all_terms": (),
        "topics": (),
    }
    return environment
