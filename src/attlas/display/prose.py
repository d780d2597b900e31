"""Prose with $mathematics$ in it, where nothing can be typeset."""

import re


def plain(text: str) -> str:
    r"""Prose for a terminal or an attribute: mathematics without dollar signs and backslashes.

    Examples:
        >>> plain(r"Theorem 1, $\eta = C_1^2\, C_2$")
        'Theorem 1, eta = C_1^2 C_2'
        >>> plain(r"a risk $$p \le 1$$ for all")
        'a risk p <= 1 for all'
    """
    text = re.sub(r"\s*\$\$([^$]+)\$\$\s*", lambda match: f" {_read(match.group(1))} ", text)
    return re.sub(r"\$([^$\n]+)\$", lambda match: _read(match.group(1)), text)


def _read(latex: str) -> str:
    spoken = re.sub(r"\\[,;:!]|\\q?quad|~", " ", latex)
    named = r"\\(?:mathrm|operatorname|text|mathcal|hat|bar|tilde)\s*\{([^{}]*)\}"
    spoken = re.sub(named, r"\1", spoken)
    spoken = re.sub(r"\\leq?(?![a-zA-Z])", "<=", spoken.replace(r"\|", "||"))
    spoken = re.sub(r"\\geq?(?![a-zA-Z])", ">=", spoken)
    return re.sub(r"\s+", " ", re.sub(r"\\([a-zA-Z]+)", r"\1", spoken)).strip()
