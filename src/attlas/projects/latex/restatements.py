r"""Statements that a paper prints again: known by their text, never by a title alone."""

import re

_LABEL = re.compile(r"\\label\s*\{[^{}]*\}")
_EMPHASIS = re.compile(r"\\(?:emph|textit|textbf|textsl|text|textrm)\s*\{([^{}]*)\}")
_DISPLAY = (
    r"\\(?:begin|end)\s*\{(?:equation|align|gather|multline|displaymath|math|aligned|split)\*?\}"
    r"|\\[\[\]()]|\$\$?"
)
_EDGE = re.compile(rf"[.,;:]?\s*(?:{_DISPLAY})\s*")
_SETTING = re.compile(
    r"\\(?:left|right|middle|[bB]igg?[lrm]?|displaystyle|textstyle|nolimits|limits|nonumber|notag"
    r"|qquad|quad|noindent|itshape|bfseries|normalfont)(?![A-Za-z])|\\[,;:!> ]|[~&]|\\\\"
)


def printed_form(text: str) -> str:
    r"""What a statement says, without its labels, spaces, displays and the sizes of its signs.

    Two statements of one form print the same mathematics in the same words. A number, a sign or a
    condition that differs makes another form: such a statement is never left out.

    Examples:
        >>> again = r"For all $x$: \begin{equation}\label{a} \bigl(x\bigr)^2 \ge 0. \end{equation}"
        >>> printed_form(again) == printed_form(r"\emph{For all} $x$: $(x)^2\ge 0$")
        True
        >>> printed_form("$x^2 > 0$") == printed_form(again)
        False
    """
    text = " ".join(_EMPHASIS.sub(r"\1", _LABEL.sub("", text)).split())
    text = _EDGE.sub("\n", text)
    text = "".join(_SETTING.sub("", text).split())
    return text.rstrip(".,;:")
