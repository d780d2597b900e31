r"""The first format of llama2.c: seven whole numbers, then all weights as float32.

Tensors are called as in llama2.c's model.py, so that this file and its safetensors form are one
model. A negative vocabulary says that the output layer follows as a matrix of its own.

Source: the export of version 0 in the repository karpathy/llama2.c.
"""

import math
import os
import struct
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from attlas._files.plain_file import Damaged, open_plain_file, printable
from attlas.core.errors import UserError
from attlas.transformers.lazy_tensors import Unread

_SIZES: tuple[str, ...] = (
    "dim",
    "hidden_dim",
    "n_layers",
    "n_heads",
    "n_kv_heads",
    "vocab_size",
    "max_seq_len",
)
_LARGEST = 2**24
_PICKLES = (b"PK\x03\x04", b"\x80")


def read_llama2c_file(path: Path) -> tuple[dict[str, Any], dict[str, Unread]]:
    """Configuration and tensors of such a file; the numbers are not read yet.

    Returns:
        Configuration as llama2.c names it, and tensors by name.
    """
    label = printable(str(path))
    head, size = _head(path, label)
    if head.startswith(_PICKLES):
        _refuse_pickle(label)
    if len(head) < 28:
        _refuse(label, f"has {len(head)} bytes, fewer than its seven sizes take")
    values = dict(zip(_SIZES, struct.unpack("<7i", head), strict=True))
    tied = values["vocab_size"] > 0
    values["vocab_size"] = abs(values["vocab_size"])
    wrong = [f"{name} = {v}" for name, v in values.items() if not 0 < v < _LARGEST]
    if wrong:
        _refuse(label, f"has {wrong[0]}, no size of a model")
    for total, part in (("dim", "n_heads"), ("n_heads", "n_kv_heads")):
        if values[total] % values[part]:
            _refuse(label, f"has {part} = {values[part]}, which does not divide {total}")
    runs = _runs(values, tied)
    expected = 28 + 4 * sum(count * math.prod(shape) for _, count, shape in runs)
    if size != expected:
        _refuse(label, f"has {size} bytes, its sizes imply {expected}: truncated or altered")
    tensors, start = {}, 28
    for name, count, shape in runs:
        for index in range(count):
            if name:
                unread = _unread(path, label, start, shape)
                tensors[name.format(index)] = unread
            start += 4 * math.prod(shape)
    return {**values, "model_type": "llama2.c", "tied_embeddings": tied}, tensors


def _runs(values: dict[str, int], tied: bool) -> list[tuple[str, int, tuple[int, ...]]]:
    """What follows what: name, how often, and shape; tables of angles have no name."""
    d, m, L = values["dim"], values["hidden_dim"], values["n_layers"]
    size = d // values["n_heads"]
    g, table = values["n_kv_heads"] * size, (values["vocab_size"], d)
    angles = (values["max_seq_len"], size // 2)
    return [
        ("tok_embeddings.weight", 1, table),
        ("layers.{}.attention_norm.weight", L, (d,)),
        ("layers.{}.attention.wq.weight", L, (d, d)),
        ("layers.{}.attention.wk.weight", L, (g, d)),
        ("layers.{}.attention.wv.weight", L, (g, d)),
        ("layers.{}.attention.wo.weight", L, (d, d)),
        ("layers.{}.ffn_norm.weight", L, (d,)),
        ("layers.{}.feed_forward.w1.weight", L, (m, d)),
        ("layers.{}.feed_forward.w2.weight", L, (d, m)),
        ("layers.{}.feed_forward.w3.weight", L, (m, d)),
        ("norm.weight", 1, (d,)),
        ("", 2, angles),
        *([] if tied else [("output.weight", 1, table)]),
    ]


def _head(path: Path, label: str) -> tuple[bytes, int]:
    try:
        with open_plain_file(path) as file:
            return file.read(28), os.fstat(file.fileno()).st_size
    except Damaged as damage:
        raise UserError(printable(str(damage))) from None
    except OSError as error:
        raise UserError(f"{label} cannot be read ({error.strerror or error})") from None


def _unread(path: Path, label: str, start: int, shape: tuple[int, ...]) -> Unread:
    def read(dtype: np.dtype) -> np.ndarray:
        values = np.fromfile(path, "<f4", math.prod(shape), offset=start)
        if values.size != math.prod(shape):
            _refuse(label, "is truncated; it was whole when opened")
        return values.reshape(shape).astype(dtype, copy=False)

    return Unread(shape, np.dtype("<f4"), label, read)


def _refuse(label: str, what: str) -> NoReturn:
    raise UserError(f"{label} as a file of llama2.c, version 0, {what}")


def _refuse_pickle(label: str) -> NoReturn:
    raise UserError(
        f"{label} is a pickle, which can run code when it is read: convert it where you trust it, "
        "with model.save_pretrained(folder, safe_serialization=True), and give the folder"
    )
