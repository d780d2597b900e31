import dataclasses
import gzip
import struct

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data import mnist
from attlas.data.sources import content_manifest, read_verified


def _write(path, array):
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(gzip.compress(header + array.tobytes()))


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Four training and two test images in MNIST's format, with their own manifest."""
    folder = tmp_path / "mnist"
    folder.mkdir()
    numbers = np.random.default_rng(0).integers(0, 256, (6, 28, 28), dtype=np.uint8)
    labels = np.arange(6, dtype=np.uint8)
    arrays = (numbers[:4], labels[:4], numbers[4:], labels[4:])
    for file, array in zip(mnist.MNIST.files, arrays, strict=True):
        _write(folder / file, array)
    content = mnist.MNIST.read(folder)
    own = dataclasses.replace(
        mnist.MNIST, manifest=content_manifest(mnist.MNIST.canonical(content))
    )
    monkeypatch.setattr(mnist, "MNIST", own)
    return tmp_path, numbers


def test_loader_reads_and_splits(small):
    folder, numbers = small
    splits = mnist.load_mnist(folder, validation=1)
    assert [split.labels.size for split in splits] == [3, 1, 2]
    for split in splits:
        assert np.array_equal(split.inputs, numbers[split.labels])


def test_one_changed_pixel_is_noticed(small):
    folder, numbers = small
    changed = numbers[4:].copy()
    changed[1, 3, 3] ^= 1
    _write(folder / "mnist" / "t10k-images-idx3-ubyte.gz", changed)
    with pytest.raises(UserError, match="wrong checksum of test images"):
        read_verified(mnist.MNIST, folder)


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(b"\0\0\x0d\x01\0\0\0\x01"))
    with pytest.raises(ValueError, match=r"file\.gz is not an IDX file"):
        mnist.read_idx(path)
