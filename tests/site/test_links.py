"""Links lead to the page that has the object, from wherever they stand."""

from attlas.site.links import Links

PAGES = {"claim-a": "paper-a.html", "claim-b": "paper-b.html"}


def test_from_the_front_page_into_the_folder():
    links = Links("", PAGES, "my: atlas", "my: atlas.html")
    assert links.to("claim-a") == "./my%3A%20atlas/paper-a.html#claim-a"
    assert links.to("overview") == "#overview"
    assert links.source("src/x.py#L1") == "src/x.py#L1"


def test_between_pages_and_back():
    links = Links("paper-a.html", PAGES, "atlas", "atlas.html")
    assert links.to("claim-a") == "#claim-a"
    assert links.to("claim-b") == "paper-b.html#claim-b"
    assert links.page("") == "../atlas.html"
    assert links.source("src/x.py#L1") == "../src/x.py#L1"


def test_one_file_has_fragments_only():
    assert Links().to("claim-a") == "#claim-a"
