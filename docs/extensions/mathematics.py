"""Mathematics of the site as MathML, by the function of the atlas: no script, no network."""

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from attlas.display.statements import Untypeset, mathml, typeset

_LOG = logging.getLogger(__name__)
_CLOSING = re.compile(r"[.,;:!?)\]]+")
"""What may begin no line: it stays with the formula before it."""


def inline(self: Any, node: nodes.math) -> None:
    """Write one formula within a line."""
    found, signs = _typeset(node.astext(), node), node.get("closing", "")
    self.body.append(f'<span class="kept">{found}{signs}</span>' if signs else found)
    raise nodes.SkipNode


def keep_signs(app: Sphinx, tree: nodes.document, name: str) -> None:
    """Let each formula within a line have the signs that end its sentence or bracket.

    Args:
        app: the build.
        tree: of one page.
        name: of the page.
    """
    for node in list(tree.findall(nodes.math)):
        after = node.next_node(descend=False, siblings=True)
        if isinstance(after, nodes.Text) and (signs := _CLOSING.match(after.astext())):
            node["closing"] = signs.group()
            after.parent.replace(after, nodes.Text(after.astext()[signs.end() :]))


def block(self: Any, node: nodes.math_block) -> None:
    """Write one formula on lines of its own, which a narrow page may break."""
    latex = " ".join(node.astext().split())
    try:
        found = typeset(latex)
    except Untypeset as error:
        found = _refused(latex, error, node)
    self.body.append(f'<div class="math">{found}</div>')
    raise nodes.SkipNode


def _typeset(latex: str, node: nodes.Node) -> str:
    try:
        return mathml(" ".join(latex.split()))
    except Untypeset as error:
        return _refused(latex, error, node)


def _refused(latex: str, error: Untypeset, node: nodes.Node) -> str:
    _LOG.warning("cannot typeset %r: %s", latex, error, location=node)
    return ""


def setup(app: Sphinx) -> dict[str, bool]:
    """Name the renderer that conf.py chooses."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.connect("doctree-resolved", keep_signs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
