"""The page escapes names, shows every guarantee, and the badge says the least bound."""

from attlas.certificates.certify import certify
from attlas.site.certificate_page import certificate_badge, render_certificate

LOSSES = [0.0] * 390 + [1.0] * 10


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
