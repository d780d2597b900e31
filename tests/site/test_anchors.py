"""Anchors are fragments of a page, whatever an object is called."""

from attlas.site.links import anchor


def test_signs_become_hyphens():
    assert anchor("claim", '<a href="#x">') == "claim-a-href-x"
    assert anchor("figure", "direction Direction of $W$") == "figure-direction-Direction-of-W"
