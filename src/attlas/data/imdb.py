"""IMDB: the Large Movie Review Dataset v1.0, 25,000 training and 25,000 test reviews.

No review is part of the package, of its tests or of its records.
"""

import json
import lzma
import re
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from attlas.data.sources import DataSet, Remote, published_manifest, read_verified
from attlas.data.splits import Split, Splits, split_groups

_ARCHIVE = "aclImdb_v1.tar.gz"
_PARTS = {"train": "imdb_train.jsonl.xz", "test": "imdb_test.jsonl.xz"}
_MEMBER = re.compile(r"aclImdb/((train|test)/(neg|pos)/\d+_(\d+))\.txt")

Review = tuple[str, int, int, str]
"""Identifier such as `train/pos/0_9`, label (1 is positive), rating 1..10, text."""


def _read(folder: Path) -> Mapping[str, list[Review]]:
    content = {}
    for part, file in _PARTS.items():
        with lzma.open(folder / file, "rt", encoding="utf-8") as stream:
            rows = [json.loads(line) for line in stream]
        # Only the words count: the archive and its repackings differ in blanks at most.
        reviews = [(r["id"], r["label"], r["rating"], " ".join(r["text"].split())) for r in rows]
        content[part] = sorted(reviews)
    return content


def _canonical(content: Mapping[str, list[Review]]) -> Mapping[str, Iterable[bytes]]:
    return {
        part: ("\t".join(map(str, review)).encode() for review in reviews)
        for part, reviews in content.items()
    }


def _install(downloads: Path, folder: Path) -> None:
    rows: dict[str, list[dict]] = {part: [] for part in _PARTS}
    with tarfile.open(downloads / _ARCHIVE, "r|gz") as archive:
        for member in archive:
            match = _MEMBER.fullmatch(member.name)
            stream = archive.extractfile(member) if match else None
            if match is None or stream is None:
                continue
            text = stream.read().decode("utf-8")
            row = {"id": match[1], "label": int(match[3] == "pos"), "rating": int(match[4])}
            rows[match[2]].append(row | {"text": text})
    for part, file in _PARTS.items():
        with lzma.open(folder / file, "wt", encoding="utf-8", preset=1) as stream:
            for row in sorted(rows[part], key=lambda r: r["id"]):
                stream.write(json.dumps(row, ensure_ascii=False) + "\n")


IMDB = DataSet(
    name="imdb",
    title="Large Movie Review Dataset v1.0 (Maas et al. 2011), 50,000 labelled reviews",
    licence="none stated: research benchmark, cite Maas et al. (ACL 2011), do not redistribute",
    files=tuple(_PARTS.values()),
    read=_read,
    canonical=_canonical,
    manifest=published_manifest("imdb"),
    remotes=(
        Remote(
            f"https://ai.stanford.edu/~amaas/data/sentiment/{_ARCHIVE}",
            "md5:7c2ac02c03563afcf9b574c7e56c153a",
            _ARCHIVE,
        ),
    ),
    install=_install,
)


def load_imdb(folder: Path | None = None, seed: int = 0, validation: int = 2_500) -> Splits:
    """IMDB with its official test reviews; validation reviews are taken from the training ones.

    Equal training texts fall on the same side of the split, for which at most a few are dropped.
    About 112 texts are in both official parts; they stay, as in every published result.

    Args:
        folder: data folder; `ATTLAS_DATA` or the cache when None.
        seed: seed of the split and of the order of the training reviews.

    Returns:
        Splits with texts in object arrays [n] and labels [n] int8, 1 is positive.
    """
    content = read_verified(IMDB, folder)
    texts, labels = _columns(content["train"])
    first: dict[str, int] = {}
    groups = np.array([first.setdefault(text, len(first)) for text in texts])
    held, train = split_groups(groups, (validation,), seed)
    return Splits(
        Split(texts[train], labels[train]),
        Split(texts[held], labels[held]),
        Split(*_columns(content["test"])),
    )


def _columns(reviews: list[Review]) -> tuple[np.ndarray, np.ndarray]:
    texts = np.array([review[3] for review in reviews], dtype=object)
    return texts, np.array([review[1] for review in reviews], dtype=np.int8)
