"""The page of calls with spoilt arguments is that of the record."""

from spoilt_calls import PAGE, page, published, table


def test_the_page_shows_the_record():
    text = PAGE.read_text("utf-8")
    assert page(text, published()) == text, "run in tests: python -m spoilt_calls"


def test_a_call_that_ended_otherwise_is_counted():
    row = {"functions of": "sums", "functions": 2, "calls": 1200, "wrong": 3}
    assert table({"rows": [row]}).splitlines()[-1] == "| sums | 2 | 1,200 | 3 |"
