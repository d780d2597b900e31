"""The index has a row for all that there is, and is small."""

import json

import pytest

from attlas.site.atlas import gather
from attlas.site.links import Links
from attlas.site.pages import places_of
from attlas.site.search_index import HIDDEN, SHOWN, search_index


@pytest.fixture
def index(store, claims, errata, experiments):
    atlas = gather(store, claims, errata, experiments)
    return search_index(atlas, Links("", places_of(atlas), "atlas", "atlas.html"))


def rows(index, what):
    named = [dict(zip(index["columns"], row, strict=True)) for row in index["rows"]]
    for row in named:
        row |= {name: known[row[name]] for name, known in index["names"].items()}
    return [row for row in named if row["what"] == what]


def test_everything_has_a_row(index, claims, errata, experiments):
    assert len(rows(index, "claim")) == len(claims)
    assert len(rows(index, "erratum")) == len(errata)
    assert len(rows(index, "experiment")) == len(experiments)
    assert {"attention SVM", "vacuous"} <= {row["title"] for row in rows(index, "term")}


def test_a_row_leads_to_the_page_that_has_the_object(index):
    (row,) = [row for row in rows(index, "claim") if row["title"] == "Lemma 2"]
    assert index["pages"][row["page"]] == "./atlas/paper-julistiono2024optimizing.html"
    assert row["anchor"] == "~wrong"
    assert index["stems"][row["paper"]] == "-julistiono2024optimizing"
    assert (row["verdict"], row["attack"]) == ("violated", "attack withstood")
    assert (row["strength"], row["ratio"]) == ("", None)
    (row,) = [row for row in rows(index, "experiment") if row["anchor"].endswith("silent")]
    assert (row["anchor"], row["text"]) == ("experiment-silent", "Not run.")
    assert index["pages"][row["page"]] == "./atlas/experiment-silent.html"


def test_a_supported_claim_has_its_strength(index):
    found = {row["title"]: (row["strength"], row["ratio"]) for row in rows(index, "claim")}
    assert found["Lemma 1"] == ("consistent", 0.25)
    assert found["Lemma 0"] == ("without a constant", None)


def test_what_was_not_run_is_not_attacked_and_has_no_number(index):
    (row,) = [row for row in rows(index, "claim") if row["title"] == "Lemma 4"]
    assert (row["verdict"], row["ratio"], row["attack"]) == ("not run", None, "not attacked")


def test_rows_are_plain_short_data(index):
    assert json.loads(json.dumps(index, allow_nan=False))["rows"] == index["rows"]
    for row in rows(index, "claim"):
        assert len(row["text"]) <= SHOWN + 2
        assert len(row["more"]) <= HIDDEN + 2
