import dataclasses
import gzip
import hashlib
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from attlas.core.errors import UserError
from attlas.data.sources import (
    DataSet,
    Remote,
    State,
    content_manifest,
    data_folder,
    fetch,
    find_set,
    is_present,
    list_sets,
    read_verified,
    require_sound,
    verify,
)


def _read(folder: Path):
    return gzip.decompress((folder / "words.gz").read_bytes())


def _canonical(content):
    return {"words": [content]}


WORDS = DataSet(
    name="words",
    title="three words",
    licence="none",
    files=("words.gz",),
    read=_read,
    canonical=_canonical,
    manifest=content_manifest(_canonical(b"one two three")),
)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        pass


@pytest.fixture
def server(tmp_path):
    served = tmp_path / "served"
    served.mkdir()
    found = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(served)))
    thread = threading.Thread(target=found.serve_forever)
    thread.start()
    yield served, f"http://127.0.0.1:{found.server_port}"
    found.shutdown()
    thread.join()
    found.server_close()


def _published(server, content=b"one two three"):
    served, address = server
    packed = gzip.compress(content)
    (served / "words.gz").write_bytes(packed)
    checksum = f"sha256:{hashlib.sha256(packed).hexdigest()}"
    remote = Remote(f"{address}/words.gz", checksum, "words.gz")
    return dataclasses.replace(WORDS, remotes=(remote,))


def test_fetch_downloads_and_verifies(server, tmp_path):
    home = fetch(_published(server), tmp_path / "data")
    assert read_verified(WORDS, tmp_path / "data") == b"one two three"
    assert [path.name for path in home.parent.iterdir()] == ["words"]


def test_fetch_names_and_replaces_a_damaged_set_and_leaves_a_verified_one(server, tmp_path):
    chosen, notes = _published(server), []
    home = fetch(chosen, tmp_path / "data", notes.append)
    (home / "words.gz").write_bytes(b"half")
    (home / "mine.txt").write_text("")
    fetch(chosen, tmp_path / "data", notes.append)
    (server[0] / "words.gz").unlink()
    fetch(chosen, tmp_path / "data", notes.append)
    (note,) = notes
    assert note.startswith(f"{home} cannot be read (")
    assert note.endswith("): fetched again")
    assert sorted(path.name for path in home.iterdir()) == ["mine.txt", "words.gz"]


def test_fetch_refuses_another_file(server, tmp_path):
    chosen = _published(server)
    (server[0] / "words.gz").write_bytes(gzip.compress(b"something else"))
    with pytest.raises(UserError, match=r"fetching words into .* failed: SHA256 hash") as caught:
        fetch(chosen, tmp_path / "data")
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "data").iterdir()) == []


def test_fetch_refuses_other_content_under_a_right_file_checksum(server, tmp_path):
    with pytest.raises(UserError, match="wrong checksum of words"):
        fetch(_published(server, b"one two four"), tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_fetch_installs_what_it_downloaded(server, tmp_path):
    def install(downloads, folder):
        (folder / "words.gz").write_bytes((downloads / "words.gz").read_bytes())

    chosen = dataclasses.replace(_published(server), install=install)
    assert (fetch(chosen, tmp_path / "data") / "words.gz").is_file()


def test_fetch_says_in_one_line_what_failed(server, tmp_path):
    chosen = _published(server)
    (server[0] / "words.gz").unlink()
    with pytest.raises(UserError, match=r"fetching words into .* failed: 404"):
        fetch(chosen, tmp_path / "data")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match=r"fetching words into .* failed: .*file"):
        fetch(chosen, tmp_path / "file")
    with pytest.raises(UserError, match="words has no source to fetch from"):
        fetch(WORDS, tmp_path / "data")


def test_other_compression_of_the_same_content_passes(tmp_path):
    (tmp_path / "words").mkdir()
    for level in (0, 9):
        packed = gzip.compress(b"one two three", compresslevel=level)
        (tmp_path / "words" / "words.gz").write_bytes(packed)
        assert read_verified(WORDS, tmp_path) == b"one two three"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress(b"one two tree"), "wrong checksum of words"),
        (gzip.compress(b"one two three")[:-9], "cannot be read"),
        (b"no gzip", "cannot be read"),
        (None, "lacks words.gz"),
    ],
    ids=["altered", "truncated", "no archive", "missing"],
)
def test_missing_and_damaged_files_are_told_in_one_line(tmp_path, content, said):
    (tmp_path / "words").mkdir()
    if content is not None:
        (tmp_path / "words" / "words.gz").write_bytes(content)
    with pytest.raises(UserError, match=said) as caught:
        read_verified(WORDS, tmp_path)
    assert "\n" not in str(caught.value)


def test_verify_reports_every_set_and_require_sound_refuses(tmp_path):
    findings = verify(tmp_path)
    states = {each.name: each.state for each in findings}
    assert states.pop("digits") is State.VERIFIED
    assert set(states.values()) == {State.ABSENT}
    with pytest.raises(UserError, match="holds none of imdb, mnist"):
        require_sound(findings, tmp_path)
    (tmp_path / "stories260k").mkdir()
    (tmp_path / "stories260k" / "config.json").write_text("{}")
    findings = verify(tmp_path, ("digits", "stories260k"))
    assert [each.state for each in findings] == [State.VERIFIED, State.DAMAGED]
    with pytest.raises(UserError, match=r"lacks stories260K\.safetensors"):
        require_sound(findings, tmp_path)
    require_sound(verify(tmp_path, ("digits",)), tmp_path)


def test_unknown_names_and_folders_are_refused(tmp_path):
    with pytest.raises(UserError, match="no data set 'imbd': did you mean imdb"):
        find_set("imbd")
    with pytest.raises(UserError, match="does not exist"):
        verify(tmp_path / "nowhere")


def test_data_folder_prefers_argument_then_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTLAS_DATA", str(tmp_path / "named"))
    assert data_folder() == tmp_path / "named"
    assert data_folder(tmp_path) == tmp_path
    monkeypatch.delenv("ATTLAS_DATA")
    assert data_folder().parts[-2:] == ("attlas", "data")


def test_presence_and_hashes(tmp_path):
    assert not is_present(WORDS, tmp_path)
    hashes = {each.data_hash for each in list_sets()}
    assert len(hashes) == len(list_sets()) == 5
    for each in list_sets():
        assert set(map(len, each.manifest.values())) == {64}
