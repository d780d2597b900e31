"""Names of the rows of a comparison of bounds, in words that need no paper beside them."""

import re

WORDS = {
    "1,1": "entry-sum norm",
    "1,inf": "largest-column norm",
    "2,1": "column-length norm",
    "log T": "log of the length",
    "log m": "log of the sample size",
    "mixed": "best norm of each matrix",
    "parameters": "parameter counting",
}
"""Norms by their exponents, and the other covers, by the name of their row."""
_CODE = re.compile("|".join(rf"\(?{re.escape(code)}\)?(?!\w|,\d)" for code in WORDS))


def bound_in_words(name: str) -> str:
    """The name of a row as figures show it.

    Examples:
        >>> bound_in_words("1,1 corrected"), bound_in_words("samples: (2,1) sharp")
        ('entry-sum norm, corrected', 'samples: column-length norm, sharp')
        >>> bound_in_words("parameters"), bound_in_words("parameters, fixed [CLS]")
        ('parameter counting', 'parameter counting, fixed [CLS]')
        >>> bound_in_words("Theorem 4.1 sharp")
        'Theorem 4.1, sharp'
    """
    worded = _CODE.sub(lambda match: WORDS[match[0].strip("()")], name)
    return re.sub(r"(?<=\w) (sharp|corrected|printed)\b", r", \1", worded)


def bound_label(name: str) -> str:
    """The name of a bound in a legend: by what it bounds, its theorem in brackets.

    Examples:
        >>> bound_label("Theorem 4.1 sharp"), bound_label("1,1 corrected")
        ('bound by norms, sharp (Theorem 4.1)', 'bound by entry-sum norm, corrected')
        >>> bound_label("parameters, fixed [CLS]")
        'bound by parameter counting, fixed [CLS]'
    """
    words = bound_in_words(name)
    theorem = re.match(r"Theorem [\d.]+", words)
    if theorem is None:
        return f"bound by {words}"
    return f"bound by norms{words[theorem.end() :]} ({theorem[0]})"
