"""MNIST: 60,000 training and 10,000 test images of handwritten digits, 28 x 28 pixels."""

import gzip
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from attlas.data.sources import DataSet, Remote, published_manifest, read_verified
from attlas.data.splits import Split, Splits, split_groups

_FILES = {
    "train images": ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
    "train labels": ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
    "test images": ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
    "test labels": ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
}
_MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist"


def read_idx(path: Path) -> np.ndarray:
    """A gzipped IDX file of unsigned bytes, of any shape.

    Args:
        path: the file; two zero bytes, type code 8, the number of axes, then their sizes.

    Raises:
        ValueError: if the header or the length is not that of an IDX file of bytes.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "numbers.gz"
        ...     _ = file.write_bytes(gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9])))
        ...     read_idx(file).tolist()
        [7, 9]
    """
    content = gzip.decompress(path.read_bytes())
    if content[:3] != b"\0\0\x08":
        raise ValueError(f"{path.name} is not an IDX file of bytes")
    axes = content[3]
    shape = np.frombuffer(content, ">u4", axes, 4).astype(int)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)


def _read(folder: Path) -> Mapping[str, np.ndarray]:
    return {part: read_idx(folder / file) for part, (file, _) in _FILES.items()}


def _canonical(content: Mapping[str, np.ndarray]) -> Mapping[str, Iterable[bytes]]:
    return {part: [str(a.shape).encode(), a.tobytes()] for part, a in content.items()}


MNIST = DataSet(
    name="mnist",
    title="MNIST handwritten digits, 70,000 images of 28 x 28 pixels",
    licence="CC BY-SA 3.0 as stated by redistributors (Y. LeCun, C. Cortes; derived from NIST)",
    files=tuple(file for file, _ in _FILES.values()),
    read=_read,
    canonical=_canonical,
    manifest=published_manifest("mnist"),
    remotes=tuple(Remote(f"{_MIRROR}/{f}", f"md5:{md5}", f) for f, md5 in _FILES.values()),
)


def load_mnist(folder: Path | None = None, seed: int = 0, validation: int = 10_000) -> Splits:
    """MNIST with its official test images; validation images are taken from the training ones.

    Args:
        folder: data folder; `ATTLAS_DATA` or the cache when None.

    Returns:
        Splits with inputs [n, 28, 28] uint8 and labels [n] uint8.
    """
    content = read_verified(MNIST, folder)
    images, labels = content["train images"], content["train labels"]
    held, train = split_groups(np.arange(labels.size), (validation,), seed)
    return Splits(
        Split(images[train], labels[train]),
        Split(images[held], labels[held]),
        Split(content["test images"], content["test labels"]),
    )
