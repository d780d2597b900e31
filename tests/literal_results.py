"""Numbers of a template that were typed where a record should print them."""

import re

NUMBERED = re.compile(
    r"\b(?:Theorem|Lemma|Corollar|Proposition|Definition|Assumption|Claim|Section|section|step)"
    r"(?:s|y|ies)? (?:[A-Z]\.)?\d+(?:\.\d+)*(?:(?:,| and) \d+(?:\.\d+)*)*|\([A-Z]?\d\)|\(95 %\)"
)
FORMULA = r"\${1,2}[^$]+\${1,2}"
NO_RESULT = re.compile(
    r"```.*?```|`[^`]*`|\{%.*?%\}|\{\{.*?\}\}|\]\([^)]*\)|^\d+\. |\b[a-z_]+\d{4}[a-z]+\b",
    re.DOTALL | re.MULTILINE,
)


def literal_results(template: str) -> list[str]:
    """Numbers of a template that may be results.

    None stands outside mathematics, but in numbers of statements, levels of intervals, code and
    links; in mathematics a decimal or a number of several digits is a setting, right of an equals
    sign, and there is no power of ten.
    """
    text = NUMBERED.sub("", NO_RESULT.sub(" x ", template))
    formulas = re.findall(FORMULA, text)
    outside = re.findall(r"\d[\d.,]*", re.sub(FORMULA, "", text))
    within = [
        each
        for f in formulas
        for each in re.findall(r"10\s*\^\S*|(?<!= )(?<![\d.])-?(?:\d+\.\d+|\d{2,})", f)
    ]
    return outside + within
