"""Anchors: the fragment of a page at which an object is shown, alike on every page."""

import re


def anchor(kind: str, name: str) -> str:
    """The fragment of the page at which an object is shown.

    Examples:
        >>> anchor("claim", "a2020b/lemma-13 (L2)")
        'claim-a2020b-lemma-13-L2'
    """
    return f"{kind}-{re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-')}"
