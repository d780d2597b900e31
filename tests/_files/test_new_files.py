import pytest

from attlas._files.file_changes import write_file
from attlas._files.new_files import JOURNAL, write_new_files

CONTENTS = {"a.txt": b"1", "b/c.txt": b"2", "last.txt": b"3"}


def killed_after(folder, count, monkeypatch):
    """A call that ends, without cleaning up, before the file of this number."""
    written = []

    def write(path, content):
        if len(written) > count:
            raise KeyboardInterrupt
        written.append(path)
        write_file(path, content)

    with monkeypatch.context() as patch:
        patch.setattr("attlas._files.new_files.write_file", write)
        patch.setattr("attlas._files.new_files.remove_file", lambda path: None)
        with pytest.raises(KeyboardInterrupt):
            write_new_files(folder, CONTENTS)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_next_call_deletes_what_a_killed_one_left(tmp_path, monkeypatch, count):
    (tmp_path / "users.txt").write_text("mine")
    killed_after(tmp_path, count, monkeypatch)
    assert (tmp_path / JOURNAL).exists()
    write_new_files(tmp_path, {"a.txt": b"other"})
    kept = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert (kept, (tmp_path / "a.txt").read_text()) == (["a.txt", "users.txt"], "other")


def test_a_file_that_the_user_changed_meanwhile_stays(tmp_path, monkeypatch):
    killed_after(tmp_path, 2, monkeypatch)
    (tmp_path / "a.txt").write_text("changed")
    with pytest.raises(FileExistsError):
        write_new_files(tmp_path, CONTENTS)
    assert (tmp_path / "a.txt").read_text() == "changed"


@pytest.mark.parametrize("journal", ["{", "3", '{"../out.txt": "0"}', '{"a": 1}'])
def test_a_journal_of_somebody_else_deletes_nothing(tmp_path, journal):
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "out.txt").write_text("")
    (folder / JOURNAL).write_text(journal)
    write_new_files(folder, CONTENTS)
    assert (tmp_path / "out.txt").exists()


def test_where_one_cannot_be_written_none_stays(tmp_path, monkeypatch):
    def write(path, content):
        if path.name == "last.txt":
            raise OSError(28, "No space left on device")
        write_file(path, content)

    monkeypatch.setattr("attlas._files.new_files.write_file", write)
    with pytest.raises(OSError, match="No space"):
        write_new_files(tmp_path / "new", CONTENTS)
    assert list(tmp_path.iterdir()) == []
