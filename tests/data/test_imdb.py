import dataclasses
import io
import lzma
import tarfile

import pytest

from attlas.data import imdb
from attlas.data.sources import content_manifest

TEXTS = ("quite  good", "rather bad", "good again", "bad again", "good again", "bad, yes")


@pytest.fixture
def small(tmp_path, monkeypatch):
    """An archive of six training and two test lines of our own, installed as IMDB is."""
    downloads, folder = tmp_path / "downloads", tmp_path / "imdb"
    downloads.mkdir()
    folder.mkdir()
    members = {
        f"aclImdb/train/{('pos', 'neg')[i % 2]}/{i}_{(9, 2)[i % 2]}.txt": text
        for i, text in enumerate(TEXTS)
    }
    members |= {"aclImdb/test/pos/0_8.txt": "très bien", "aclImdb/test/neg/0_1.txt": "no"}
    members |= {"aclImdb/train/unsup/0_0.txt": "unlabelled", "aclImdb/README": "read"}
    with tarfile.open(downloads / "aclImdb_v1.tar.gz", "w:gz") as archive:
        for name, text in members.items():
            content = text.encode()
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    install = imdb.IMDB.install
    assert install is not None
    install(downloads, folder)
    content = imdb.IMDB.read(folder)
    own = dataclasses.replace(imdb.IMDB, manifest=content_manifest(imdb.IMDB.canonical(content)))
    monkeypatch.setattr(imdb, "IMDB", own)
    return tmp_path


def test_archive_becomes_reviews(small):
    splits = imdb.load_imdb(small, validation=2)
    texts = {text: label for split in splits for text, label in zip(*split, strict=True)}
    assert texts == {
        "quite good": 1,
        "rather bad": 0,
        "good again": 1,
        "bad again": 0,
        "bad, yes": 0,
        "très bien": 1,
        "no": 0,
    }
    assert splits.test.labels.size == 2


@pytest.mark.parametrize("seed", range(4))
def test_equal_reviews_do_not_straddle_the_split(small, seed):
    splits = imdb.load_imdb(small, seed=seed, validation=3)
    assert not set(splits.train.inputs) & set(splits.validation.inputs)


def test_blanks_do_not_change_the_content(small):
    path = small / "imdb" / "imdb_train.jsonl.xz"
    text = lzma.decompress(path.read_bytes()).decode()
    assert "quite  good" in text
    path.write_bytes(lzma.compress(text.replace("quite  good", "quite good ").encode()))
    assert imdb.load_imdb(small, validation=1).test.labels.sum() == 1
