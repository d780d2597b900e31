"""The table of claims at new seeds is that of its record, which names claims that there are."""

from new_seeds import PAGE, page, published, table

from attlas.experiments.strengths import published_strengths


def test_the_table_stands_in_the_docs():
    text = PAGE.read_text("utf-8")
    assert page(text, published()) == text, "run in tests: python -m new_seeds"
    assert table(published()) in text


def test_claims_that_changed_are_claims():
    named = {name.split("/")[1] for name in published_strengths()}
    for row in published()["rows"]:
        assert row["claims"] > len(row["changed"])
        assert set(row["open"]) <= set(row["changed"])
        if len(row["papers"]) == 1:
            assert set(row["changed"]) <= named
