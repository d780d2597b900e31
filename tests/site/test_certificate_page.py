"""The page escapes names, shows every guarantee, and the badge says the least bound."""

import numpy as np
import pytest

from attlas.certificates.certify import certify
from attlas.certificates.stream import bits_text, stream_guarantee
from attlas.site.certificate_page import (
    certificate_badge,
    render_certificate,
    render_stream,
    stream_badge,
)

LOSSES = [0.0] * 390 + [1.0] * 10


@pytest.mark.thorough
def test_names_are_escaped_and_every_guarantee_is_a_row():
    names = ["<script>alert(1)</script>", *map(str, range(50))]
    page = render_certificate(certify(dict.fromkeys(names, LOSSES)))
    assert "<script>alert" not in page
    assert page.count('<th scope="row">') == 51 + 50  # guarantees and comparisons
    assert "The first 40 of 51" in page


def test_the_badge_is_red_where_nothing_is_certified():
    assert "#b3261e" in certificate_badge(certify(LOSSES, at_most=0.03))
    badge = certificate_badge(certify(LOSSES, at_most=0.05))
    assert "#2e7d32" in badge
    assert "at most 4.21 %" in badge


def test_the_page_of_a_text_has_a_row_for_each_model_and_the_badge_its_least_bits():
    several = [
        stream_guarantee(name, np.full(4000, q), 512, 9000, 0.025, at_most=1.5)
        for name, q in (("<b>first</b>", 0.1), ("second", 0.5))
    ]
    page = render_stream(several, 1.5)
    assert "<b>first" not in page
    assert page.count('<th scope="row">') == 2
    badge = stream_badge(several, 1.5)
    assert f"at most {bits_text(several[1].bound.bound)}" in badge
    assert "#2e7d32" in badge
    assert "#b3261e" in stream_badge(several, 1.0)
