"""Kinds of files that others write: a good one of each, how it is spoilt, and what reads it."""

import json
import random
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gguf_files import converted, random_model, write_gguf
from random_checkpoints import CONFIGURATIONS, random_checkpoint

from attlas._files.budget import SAFETENSORS_HEADER
from attlas.audit.read_batch import lines_of_text, text_batch, token_batch
from attlas.experiments.pair import seal
from attlas.experiments.store import Store
from attlas.projects.notebook import tagged_cells
from attlas.projects.project import project_in
from attlas.projects.references import read_references
from attlas.site.monitors import parse_monitor
from attlas.transformers.load_model import load_model
from attlas.transformers.safetensors_file import SafetensorsFile
from attlas.transformers.tokenizer import read_tokenizer
from attlas.transformers.write_safetensors import write_safetensors

ROOT = Path(__file__).parents[1]
ODD = (None, True, -1, 0, 1, 2, 7, 2**31, 2**63, 10**400, 1e308, -0.5, float("nan"), float("inf"),
       "", "a", "\ud800", "\x00", "9" * 40, [], {}, [[]], [{}], {"type": []})  # fmt: skip
TOKENS = (b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\n", b"\0", b"\xff", b"9" * 30, b"@",
          b"=", b"{}", b"[[", b"null", b"-1", b"1e999", b"\\ud800", b"PK\x01\x02")  # fmt: skip


class Kind(NamedTuple):
    """A kind of file.

    Attributes:
        name: of the file that is spoilt.
        make: writes good files into a folder.
        read: reads the folder; its result does not matter.
        is_json: whether the file's values are exchanged, not its bytes alone.
        sealed: makes the document one that its reader looks into.
    """

    name: str
    make: Callable[[Path, random.Random], None]
    read: Callable[[Path], object]
    is_json: bool = False
    sealed: Callable[[Any], Any] = lambda document: document


def spoilt(content: bytes, kind: Kind, rng: random.Random) -> bytes:
    """The content with one to four changes."""
    for _ in range(rng.randint(1, 4)):
        if kind.is_json and rng.random() < 0.8:
            content = _other_values(content, kind, rng)
        else:
            content = _other_bytes(content, rng)
    return content


def _other_values(content: bytes, kind: Kind, rng: random.Random) -> bytes:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return _other_bytes(content, rng)
    places = list(_places(document))
    if not places:
        return _other_bytes(content, rng)
    holder, key = rng.choice(places)
    change = rng.randrange(5)
    if change == 0:
        del holder[key]
    elif change == 1:
        other, there = rng.choice(places)
        holder[key] = json.loads(json.dumps(other[there]))
    elif change == 2:
        for _ in range(rng.choice((1, 10, 100))):
            holder[key] = [holder[key]] if rng.random() < 0.5 else {"type": holder[key]}
    else:
        holder[key] = rng.choice(ODD)
    return json.dumps(kind.sealed(document)).encode("utf-8", "surrogatepass")


def _places(document: Any) -> list[tuple[Any, Any]]:
    found, left = [], [document] if isinstance(document, dict | list) else []
    while left:
        holder = left.pop()
        keys = holder if isinstance(holder, dict) else range(len(holder))
        found += [(holder, key) for key in keys]
        left += [holder[key] for key in keys if isinstance(holder[key], dict | list)]
    return found


def _other_bytes(content: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(content) + 1)
    stop = min(len(content), start + rng.choice((0, 1, 2, 8, 100)))
    change = rng.randrange(4)
    piece = content[start:stop]
    if change == 0:
        piece = rng.choice(TOKENS) * rng.choice((1, 1, 3, 1000))
    elif change == 1:
        piece = bytes(byte ^ 1 << rng.randrange(8) for byte in piece)
    elif change == 2:
        piece = piece * rng.choice((0, 2, 50))
    else:
        piece = rng.randbytes(len(piece))
    return content[:start] + piece + content[stop:]


def _model(folder: Path, rng: random.Random) -> None:
    config, tensors = random_checkpoint(rng.choice(sorted(CONFIGURATIONS)))
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(config))


def _read_model(folder: Path) -> object:
    model = load_model(folder)
    return model.stored_block(0), model.embedding, model.readout


def _tensors(folder: Path, rng: random.Random) -> None:
    tensors = {"a": np.ones((2, 3), "f4"), "b": np.arange(4), "c": np.zeros((0, 2), "f2")}
    write_safetensors(folder / "model.safetensors", tensors, {"format": "pt"})


def _gguf(folder: Path, rng: random.Random) -> None:
    sizes = {"hidden_size": 4, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 2}
    sizes |= {"intermediate_size": 3, "num_hidden_layers": 1, "vocab_size": 3}
    kind = rng.choice(("llama", "gemma"))
    said, stored = converted(*random_model(kind, tie_word_embeddings=True, **sizes))
    write_gguf(folder / "model.gguf", said, stored, rng.choice(("F32", "F16", "BF16")))


def _header(folder: Path, rng: random.Random) -> None:
    _tensors(folder, rng)
    content = (folder / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    (folder / "header").write_bytes(content[8 : 8 + size].strip())
    (folder / "numbers").write_bytes(content[8 + size :])


def _read_header(folder: Path) -> object:
    header = (folder / "header").read_bytes()[: SAFETENSORS_HEADER.bytes]
    content = struct.pack("<Q", len(header)) + header + (folder / "numbers").read_bytes()
    (folder / "model.safetensors").write_bytes(content)
    return _read_tensors(folder)


def _read_tensors(folder: Path) -> object:
    file = SafetensorsFile(folder / "model.safetensors")
    return [file.read(name) for name in file.tensors]


def _tokenizer(folder: Path, rng: random.Random) -> None:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {"<unk>": 0, "a": 1, "b": 2, "ab": 3, "##b": 4}
    made = Tokenizer(
        rng.choice(
            (
                models.WordLevel(vocabulary, unk_token="<unk>"),
                models.BPE(vocabulary, [("a", "b")], unk_token="<unk>"),
                models.WordPiece(vocabulary, unk_token="<unk>"),
                models.Unigram([("<unk>", 0.0), ("a", -1.0), ("ab", -2.0)], 0),
            )
        )
    )
    rules = [normalizers.NFKC(), normalizers.Lowercase(), normalizers.Replace("c", "ab")]
    made.normalizer = rng.choice((None, normalizers.Sequence(rules), rules[0]))
    splits = (None, pre_tokenizers.Whitespace(), pre_tokenizers.ByteLevel())
    made.pre_tokenizer = rng.choice(splits)
    made.post_processor = processors.TemplateProcessing(single="a $A", special_tokens=[("a", 1)])
    made.add_special_tokens(["<mask>"])
    made.save(str(folder / "tokenizer.json"))


def _scored(folder: Path, rng: random.Random) -> None:
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), " ", "a", "ab"]
    content = struct.pack("<i", 8)
    for number, piece in enumerate(pieces):
        content += struct.pack("<fi", -float(number), len(piece)) + piece.encode()
    (folder / "tok300.bin").write_bytes(content)


def _pieces(folder: Path, rng: random.Random) -> None:
    (folder / "vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\na\nb\n##b\n")


def _pairs(folder: Path, rng: random.Random) -> None:
    (folder / "vocab.json").write_text(json.dumps({"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3}))
    (folder / "merges.txt").write_text("#version: 0.2\na b\n")


def _read_tokenizer(folder: Path) -> object:
    tokenizer = read_tokenizer(folder, {"model_type": "gpt2"})
    return text_batch(tokenizer, ["a ab cc", "é" * 9], length=4, most=3)


def _archive(folder: Path, rng: random.Random) -> None:
    save = rng.choice((np.savez, np.savez_compressed))
    save(folder / "a.npz", ids=np.arange(9), lengths=np.array([4, 5]))


def _read_tokens(name: str, folder: Path) -> object:
    return token_batch(folder / name, length=4, most=3)


def _array(folder: Path, rng: random.Random) -> None:
    np.save(folder / "a.npy", np.arange(12).reshape(3, 4))


def _numbers(folder: Path, rng: random.Random) -> None:
    (folder / "a.txt").write_text("1 2 3\n4 5\n")


def _text(folder: Path, rng: random.Random) -> None:
    (folder / "a.txt").write_text("a b c\né\n")


def _notebook(folder: Path, rng: random.Random) -> None:
    tagged = {"cell_type": "code", "metadata": {"tags": ["attlas"]}, "source": ["x = 1\n", "%a"]}
    other = {"cell_type": "markdown", "metadata": {}, "source": "# A"}
    (folder / "a.ipynb").write_text(json.dumps({"cells": [other, tagged], "nbformat": 4}))


def _bibliography(folder: Path, rng: random.Random) -> None:
    entry = "@misc{a1,\n  title = {On {T}},\n  author = {D, J and R, A},\n  year = {2020},\n}\n"
    (folder / "a.bib").write_text(entry + entry.replace("a1", "b2"))


def _record(folder: Path, rng: random.Random) -> None:
    files = sorted((ROOT / "records").rglob("*.json"), key=lambda path: path.stat().st_size)
    there = rng.choice([path for path in files if list(path.parent.glob(f"{path.stem}*.npz"))][:9])
    place = folder / there.parent.name
    place.mkdir()
    for path in (there, *there.parent.glob(f"{there.stem}*.npz")):
        (place / path.name).write_bytes(path.read_bytes())


def _resealed(document: Any) -> Any:
    if isinstance(document, dict) and "seal" in document:
        try:
            document["seal"] = seal(document)
        except (ValueError, TypeError, RecursionError):
            return document
    return document


def _read_record(folder: Path) -> object:
    (file,) = folder.glob("*/*.json")
    return Store(folder).read(file.parent.name, file.stem)


def _project(folder: Path, rng: random.Random) -> None:
    table = 'title = "T"\nclaims = ["claims_*.py"]\ndata = ["a.csv"]\nstatus = "new"\n'
    (folder / "pyproject.toml").write_text(f"[project]\nname = 'a'\n[tool.attlas]\n{table}")


def _monitor(folder: Path, rng: random.Random) -> None:
    line = {"schema": "attlas.monitor/1", "step": 0, "T": 4, "layers": ["a"], "sink_share": 0.5}
    line |= {key: [[0.5, 0.25]] for key in ("entropy", "sharpness")}
    (folder / "a.jsonl").write_text(json.dumps(line))


KINDS: dict[str, Kind] = {
    "config": Kind("config.json", _model, _read_model, is_json=True),
    "safetensors": Kind("model.safetensors", _tensors, _read_tensors),
    "gguf": Kind("model.gguf", _gguf, _read_model),
    "header": Kind("header", _header, _read_header, is_json=True),
    "tokenizer": Kind("tokenizer.json", _tokenizer, _read_tokenizer, is_json=True),
    "scored": Kind("tok300.bin", _scored, _read_tokenizer),
    "pieces": Kind("vocab.txt", _pieces, _read_tokenizer),
    "pairs": Kind("vocab.json", _pairs, _read_tokenizer, is_json=True),
    "merges": Kind("merges.txt", _pairs, _read_tokenizer),
    "npz": Kind("a.npz", _archive, partial(_read_tokens, "a.npz")),
    "npy": Kind("a.npy", _array, partial(_read_tokens, "a.npy")),
    "numbers": Kind("a.txt", _numbers, partial(_read_tokens, "a.txt")),
    "text": Kind("a.txt", _text, lambda folder: list(lines_of_text(folder / "a.txt"))),
    "notebook": Kind("a.ipynb", _notebook, lambda f: tagged_cells(f / "a.ipynb"), is_json=True),
    "bibliography": Kind("a.bib", _bibliography, lambda f: read_references(f / "a.bib")),
    "record": Kind("*/*.json", _record, _read_record, is_json=True, sealed=_resealed),
    "project": Kind("pyproject.toml", _project, project_in),
    "monitor": Kind("a.jsonl", _monitor, lambda f: parse_monitor((f / "a.jsonl").read_bytes()),
                    is_json=True),
}  # fmt: skip
