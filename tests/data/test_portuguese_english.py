import dataclasses
import gzip

from attlas.data import portuguese_english
from attlas.data.sources import content_manifest


def test_pairs_are_read_by_corpus(tmp_path, monkeypatch):
    known = portuguese_english.PORTUGUESE_ENGLISH
    folder = tmp_path / "pt_en"
    folder.mkdir()
    for file in known.files:
        text = f"por\teng\tmore\nnão\tno {file}\tx\n"
        (folder / file).write_bytes(gzip.compress(text.encode()))
    own = dataclasses.replace(known, manifest=content_manifest(known.canonical(known.read(folder))))
    monkeypatch.setattr(portuguese_english, "PORTUGUESE_ENGLISH", own)
    pairs = portuguese_english.load_portuguese_english(tmp_path)
    assert pairs["tatoeba"] == [("não", "no tatoeba_por-eng.tsv.gz")]
    assert len(pairs) == 5
