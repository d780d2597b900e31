"""The page of calls with spoilt arguments is that of the record."""

from spoilt_calls import ARGUMENTS, PAGE, page, published, table


def test_the_page_shows_the_record():
    text = PAGE.read_text("utf-8")
    assert page(text, published()) == text, "run in tests: python -m spoilt_calls"


def test_each_run_made_all_calls_and_more_than_ten_thousand_were_made():
    runs = published()
    assert runs.keys() == ARGUMENTS.keys()
    assert [run["tried"] for run in runs.values()] == [run["pairs"] for run in runs.values()]
    assert sum(run["tried"] for run in runs.values()) >= 10_000


def test_a_call_that_ended_otherwise_is_counted():
    run = {"functions": 3, "spoilt": 2, "pairs": 1200, "tried": 1200, "wrong": [["f", "x", "NaN"]]}
    assert table({"values": run}).splitlines()[-1].endswith("| 2 | 1,200 | 1 |")
