"""Pages beside a front page: none is left over, none is another's, and a stop leaves no orphan."""

import json

import pytest

from attlas.core.errors import UserError
from attlas.site import folder as module
from attlas.site.folder import MANIFEST, fronts_beside, write_pages

OLD = (("paper-a.html", "old a"), ("paper-b.html", "old b"), ("", "old front"))
NEW = (("paper-a.html", "new a"), ("paper-c.html", "new c"), ("", "new front"))


@pytest.fixture
def front(tmp_path):
    write_pages(tmp_path / "atlas.html", tmp_path / "atlas", OLD)
    return tmp_path / "atlas.html"


def texts(front):
    files = [front, *front.with_suffix("").glob("*.html")]
    return {path.name: path.read_text() for path in files}


def test_a_page_that_is_no_longer_made_goes_and_other_files_stay(front):
    own = front.with_suffix("") / "paper-mine.html"
    own.write_text("mine")
    write_pages(front, front.with_suffix(""), NEW)
    assert texts(front) == {
        "atlas.html": "new front", "paper-a.html": "new a", "paper-c.html": "new c",
        "paper-mine.html": "mine",
    }  # fmt: skip


def test_a_file_that_is_not_ours_is_not_replaced(front):
    (front.with_suffix("") / "paper-c.html").write_text("mine")
    with pytest.raises(UserError, match=r"paper-c\.html exists and is not a page"):
        write_pages(front, front.with_suffix(""), NEW)
    assert texts(front)["paper-c.html"] == "mine"
    assert texts(front)["paper-a.html"] == "old a"


@pytest.mark.parametrize("after", range(4))
def test_what_an_interrupted_report_leaves_is_mended_by_the_next(front, monkeypatch, after):
    written = []

    def stopping(path, text, option, *, write=module.write_text_file):
        if len(written) == after:
            raise KeyboardInterrupt
        written.append(path)
        return write(path, text, option)

    with monkeypatch.context() as patched:
        patched.setattr(module, "write_text_file", stopping)
        with pytest.raises(KeyboardInterrupt):
            write_pages(front, front.with_suffix(""), NEW)
    write_pages(front, front.with_suffix(""), OLD)
    assert texts(front) == {
        "atlas.html": "old front", "paper-a.html": "old a", "paper-b.html": "old b",
    }  # fmt: skip


@pytest.mark.parametrize("names", ["{", '{"a": 1}', '["../atlas.html", "paper-b.txt", 3]'])
def test_a_manifest_of_others_removes_nothing(front, names):
    folder = front.with_suffix("")
    (folder / MANIFEST).write_text(names)
    (folder / "paper-b.txt").write_text("mine")
    (folder / "paper-a.html").unlink()
    write_pages(front, folder, NEW)
    assert (folder / "paper-b.txt").read_text() == "mine"
    assert texts(front)["paper-b.html"] == "old b"
    assert json.loads((folder / MANIFEST).read_text()) == ["paper-a.html", "paper-c.html"]


def test_a_front_page_is_found_by_the_pages_beside_it(front):
    assert fronts_beside(front.parent) == (front,)
    front.unlink()
    assert fronts_beside(front.parent) == ()
