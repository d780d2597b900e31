"""Mathematics of the site as MathML, by the function of the atlas: no script, no network."""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from attlas.core.display.statements import Untypeset, mathml, typeset

_LOG = logging.getLogger(__name__)


def inline(self: Any, node: nodes.math) -> None:
    """Write one formula within a line."""
    self.body.append(_typeset(node.astext(), node))
    raise nodes.SkipNode


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
    return {"parallel_read_safe": True, "parallel_write_safe": True}
