"""Files that are replaced together; tests/crash kills the writer at each of its calls."""

import json

import pytest

from attlas._files import replaced_files
from attlas._files.plain_file import Damaged
from attlas._files.replaced_files import JOURNAL, finish_replacing, replace_files


@pytest.fixture
def interrupted(tmp_path, monkeypatch):
    """A folder in which an update of two files ended with its journal."""
    (tmp_path / "a.txt").write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr(replaced_files, "finish_replacing", lambda folder: ())
        replace_files(tmp_path, {"a.txt": "new", "b.txt": "two"})
    assert (tmp_path / "a.txt").read_text() == "old"
    return tmp_path


def test_an_update_that_was_killed_is_finished(interrupted):
    assert finish_replacing(interrupted) == ()
    texts = {path.name: path.read_text() for path in interrupted.iterdir()}
    assert texts == {"a.txt": "new", "b.txt": "two"}


def test_what_the_author_changed_meanwhile_stays(interrupted):
    (interrupted / "a.txt").write_text("the author's")
    assert finish_replacing(interrupted) == ("a.txt",)
    assert (interrupted / "a.txt").read_text() == "the author's"
    assert (interrupted / "b.txt").read_text() == "two"


@pytest.mark.parametrize("change", [("new", "now"), ("a.txt", "../a.txt"), ("[", "{")])
def test_a_damaged_journal_is_named_and_nothing_is_written(interrupted, change):
    journal = interrupted / JOURNAL
    journal.write_text(journal.read_text().replace(*change))
    with pytest.raises(Damaged, match=JOURNAL):
        finish_replacing(interrupted)
    assert (interrupted / "a.txt").read_text() == "old"
    assert not (interrupted / "b.txt").exists()


def test_an_entry_without_a_digest_is_damaged(interrupted):
    journal = interrupted / JOURNAL
    entries = json.loads(journal.read_text())
    journal.write_text(json.dumps([{**entry, "before": None} for entry in entries]))
    with pytest.raises(Damaged):
        finish_replacing(interrupted)
