"""Anchors: the fragment of an address at which a page shows an object, equal on every page."""

import re


def anchor(kind: str, name: str) -> str:
    """The fragment of an address at which a page shows an object.

    Examples:
        >>> anchor("claim", "a2020b/lemma-13 (L2)")
        'claim-a2020b-lemma-13-L2'
    """
    return f"{kind}-{re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-')}"
