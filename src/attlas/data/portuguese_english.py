"""Portuguese-English sentence pairs, from a local folder only."""

import gzip
from collections.abc import Iterable, Mapping
from pathlib import Path

from attlas.data.sources import DataSet, published_manifest, read_verified

Pairs = list[tuple[str, str]]

_CORPORA = ("flores200_devtest", "ntrex128", "python_docs_prose", "tatoeba", "tico19_test")


def _read(folder: Path) -> Mapping[str, Pairs]:
    content = {}
    for corpus in _CORPORA:
        path = folder / f"{corpus}_por-eng.tsv.gz"
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as stream:
            rows = [line.rstrip("\n").split("\t") for line in stream][1:]
        content[corpus] = [(row[0], row[1]) for row in rows]
    return content


def _canonical(content: Mapping[str, Pairs]) -> Mapping[str, Iterable[bytes]]:
    return {
        corpus: ("\t".join(pair).encode() for pair in pairs) for corpus, pairs in content.items()
    }


PORTUGUESE_ENGLISH = DataSet(
    name="pt_en",
    title="Portuguese-English sentence pairs: Tatoeba, NTREX-128, TICO-19, FLORES-200, Python docs",
    licence="by corpus: CC BY 2.0 FR, CC BY-SA 4.0, CC0, CC BY-SA 4.0, CC0 with PSF source",
    files=tuple(f"{corpus}_por-eng.tsv.gz" for corpus in _CORPORA),
    read=_read,
    canonical=_canonical,
    manifest=published_manifest("pt_en"),
)


def load_portuguese_english(folder: Path | None = None) -> Mapping[str, Pairs]:
    """All sentence pairs (Portuguese, English) by corpus.

    Args:
        folder: data folder; `ATTLAS_DATA` or the cache when None.

    Returns:
        Lists of pairs by corpus. English sentences repeat in Tatoeba: split by them.
    """
    return read_verified(PORTUGUESE_ENGLISH, folder)
