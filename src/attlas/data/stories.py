"""stories260K: a trained Transformer of 260,032 parameters, from a local folder only."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attlas.data.sources import DataSet, published_manifest, read_verified


class Stories(NamedTuple):
    """A small Llama-style language model.

    Attributes:
        weights: 47 float32 arrays by name.
        vocabulary: piece of each of the 512 tokens.
        settings: dimensions, heads, and so on.
    """

    weights: Mapping[str, np.ndarray]
    vocabulary: list[str]
    settings: Mapping[str, int | float | str | bool]


def _read_weights(path: Path) -> Mapping[str, np.ndarray]:
    # The format is 8 bytes of length, a JSON header, then the arrays one after the other.
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    weights = {}
    for name in sorted(set(header) - {"__metadata__"}):
        entry = header[name]
        if entry["dtype"] != "F32":
            raise ValueError(f"{path.name}: {name} is {entry['dtype']}, not F32")
        first, last = entry["data_offsets"]
        flat = np.frombuffer(content[start + first : start + last], "<f4")
        weights[name] = flat.reshape(entry["shape"])
    return weights


def _read(folder: Path) -> Stories:
    return Stories(
        _read_weights(folder / "stories260K.safetensors"),
        json.loads((folder / "tok512_vocab.json").read_text(encoding="utf-8")),
        json.loads((folder / "config.json").read_text(encoding="utf-8")),
    )


def _canonical(content: Stories) -> Mapping[str, Iterable[bytes]]:
    return {
        "weights": (
            f"{name} {array.shape} ".encode() + array.tobytes()
            for name, array in content.weights.items()
        ),
        "vocabulary": [piece.encode() for piece in content.vocabulary],
        "settings": [json.dumps(content.settings, sort_keys=True).encode()],
    }


STORIES = DataSet(
    name="stories260k",
    title="stories260K, a trained Transformer (5 layers, 8 heads, width 64) with its tokenizer",
    licence="MIT (A. Karpathy); trained on TinyStories, CDLA-Sharing-1.0",
    files=("stories260K.safetensors", "tok512_vocab.json", "config.json"),
    read=_read,
    canonical=_canonical,
    manifest=published_manifest("stories260k"),
)


def load_stories(folder: Path | None = None) -> Stories:
    """The model's weights, vocabulary and settings.

    Args:
        folder: data folder; `ATTLAS_DATA` or the cache when None.
    """
    return read_verified(STORIES, folder)
